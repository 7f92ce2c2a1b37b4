"""What is in an archive: all that a run has stored, compressed, and nothing of it lost. Pure.

Two streams of xz, one behind the other. The first is text: a line of JSON with the files of the
whole run, then a line for each ConfigMap. JSON texts stand there as JSON. The second one has their
histograms in the same order: what generators printed (base64 of gzip of JSON with base64 of zlib of
histograms) is unpacked, since what is compressed already cannot be compressed any more. Whatever
does not come out as it went in is kept as the text that it is.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from laptime.manifests.archive import ARCHIVE_LABEL, ArchiveError, is_archive, joined
from laptime.manifests.context import COMPONENT_LABEL, known_as
from laptime.manifests.result import PAYLOAD_KEY, RESULTS
from laptime.measure.generator import inflated
from laptime.measure.histogram import HistogramError, pack_histogram, unpack_histogram
from laptime.measure.kept import archived
from laptime.report.document import JSON_FILE, json_text

Manifest = dict[str, Any]

# 1 MiB of memory for what has been seen holds the trials of a whole run that look alike; the
# encoder needs eleven times as much.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 2**20, "pb": 0}]
_LONGEST_BYTES = 256 * 2**20
"""No stream is longer: nobody can fill the memory with an archive that somebody else made."""
_HISTOGRAM = "histogram bytes"
"""Stands where a histogram was, with its length; the second stream has them in this order."""

_FORMS: dict[str, Callable[[Any], str]] = {
    "results": json_text,
    "json": lambda value: json.dumps(value, ensure_ascii=False, indent=1),
}
"""How a text that is JSON was written, so that it can be written the same again."""


@dataclass(frozen=True)
class Archive:
    """The files of a whole run by name, and the ConfigMaps that it had stored."""

    files: dict[str, str]
    objects: list[Manifest] = field(default_factory=list)


class Packer:
    """Packs one object after the other, so that a large run is never in the memory as a whole."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._streams = [(lzma.LZMACompressor(filters=_FILTERS), bytearray()) for _ in range(2)]
        self._write({"files": {name: _of_text(text) for name, text in files.items()}}, b"")

    def add(self, manifest: Mapping[str, Any]) -> None:
        """Pack a ConfigMap with results."""
        metadata = manifest["metadata"]
        histograms = bytearray()
        line = {
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "data": {
                key: _of_payload(text, histograms) if key == PAYLOAD_KEY else _of_text(text)
                for key, text in (manifest.get("data") or {}).items()
            },
        }
        self._write(line, bytes(histograms))

    def finish(self) -> bytes:
        """Return the archive."""
        return b"".join(bytes(packed) + xz.flush() for xz, packed in self._streams)

    def _write(self, line: dict[str, Any], histograms: bytes) -> None:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        plain = (text.encode(errors="surrogatepass") + b"\n", histograms)
        for (xz, packed), content in zip(self._streams, plain, strict=True):
            packed += xz.compress(content)


def pack(files: Mapping[str, str], objects: Iterable[Mapping[str, Any]]) -> bytes:
    """Return an archive of files and ConfigMaps."""
    packer = Packer(files)
    for manifest in objects:
        packer.add(manifest)
    return packer.finish()


def unpack(packed: bytes) -> Archive:
    """Return what is in an archive.

    Raises:
        ArchiveError: it is none, or is not whole.
    """
    try:
        text, rest = _inflated(packed)
        plain, _ = _inflated(rest)
        *whole, last = text.decode(errors="surrogatepass").split("\n")
        first, *lines = map(json.loads, [*whole, last] if last else whole)
        files = {name: _text(one, io.BytesIO()) for name, one in first["files"].items()}
        histograms = io.BytesIO(plain)
        return Archive(files, [_manifest(line, histograms) for line in lines])
    except ArchiveError:
        raise
    except (lzma.LZMAError, ValueError, LookupError, TypeError, AttributeError, OverflowError,
            RecursionError) as error:  # fmt: skip
        raise ArchiveError(f"the archive cannot be read: {error!r}") from error


def stored_in(config_maps: Iterable[Manifest]) -> Archive:
    """Return what a run has stored, by all of its ConfigMaps, the parts of an archive among them.

    What stands there singly counts before what is in the archive: it may be in there as well, or
    may have replaced it. Version 1 had no archive, and the files of the run in a ConfigMap.

    Raises:
        ArchiveError: the archive is not whole.
        StoredByNewerVersion: this version cannot read it.
    """
    by_name = {one["metadata"]["name"]: one for one in config_maps}
    archive = Archive({})
    single: list[Manifest] = []
    for one in by_name.values():
        labels = one["metadata"].get("labels") or {}
        if ARCHIVE_LABEL in labels:
            continue
        if is_archive(one):
            archive = unpack(joined(one, by_name))
        elif JSON_FILE in (one.get("data") or {}):
            archive = Archive(dict(one["data"]))
        elif labels.get(COMPONENT_LABEL) in RESULTS:
            single.append(one)
    there = {known_as(one["metadata"]) for one in single}
    rest = (one for one in archive.objects if known_as(one["metadata"]) not in there)
    return Archive(archive.files, [*single, *rest])


def _inflated(packed: bytes) -> tuple[bytes, bytes]:
    """Return a stream without its compression, and what follows it."""
    xz = lzma.LZMADecompressor()
    plain = xz.decompress(packed, _LONGEST_BYTES)
    if len(plain) == _LONGEST_BYTES:
        raise ArchiveError(f"the archive has more than {_LONGEST_BYTES} bytes")
    if not xz.eof:
        raise ArchiveError("the archive is cut off")
    return plain, xz.unused_data


def _manifest(line: dict[str, Any], histograms: io.BytesIO) -> Manifest:
    metadata = {key: line[key] for key in ("name", "uid", "labels", "annotations")}
    data = {key: _text(one, histograms) for key, one in line["data"].items()}
    return {"kind": "ConfigMap", "metadata": metadata, "data": data}


# Texts -------------------------------------------------------------------------------------


def _of_text(text: str) -> Any:
    """Return a text, or the JSON that it is, with the form in which it was written."""
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        for form, write in _FORMS.items():
            if write(value) == text:
                return {"form": form, "value": value}
    return text


def _text(one: Any, histograms: io.BytesIO) -> str:
    if isinstance(one, str):
        return one
    if one["form"] == "payload":
        return _payload(_with_histograms(one["value"], histograms))
    return _FORMS[one["form"]](one["value"])


def _of_payload(text: str, histograms: bytearray) -> Any:
    """Return the document that a generator's result is; its histograms go into `histograms`.

    What nothing reads any more is left out (measure/kept.py). What another library compressed
    cannot be compressed to the same bytes again: it is the document and the histograms that come
    out the same.
    """
    try:
        document = archived(json.loads(inflated(text)))
        value = _without_histograms(document, histograms)
        read = _with_histograms(value, io.BytesIO(histograms))
        again = bytearray()
        if _without_histograms(read, again) == value and again == histograms:
            return {"form": "payload", "value": value}
    except (ValueError, OverflowError, RecursionError, TypeError):
        pass
    histograms.clear()
    return text


def _payload(document: Any) -> str:
    plain = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(plain.encode(errors="surrogatepass"), mtime=0)
    return base64.b64encode(packed).decode()


def _without_histograms(node: Any, histograms: bytearray) -> Any:
    if isinstance(node, dict):
        return {key: _without_histograms(one, histograms) for key, one in node.items()}
    if isinstance(node, list):
        return [_without_histograms(one, histograms) for one in node]
    if not isinstance(node, str):
        return node
    try:
        plain = unpack_histogram(node)
    except HistogramError:
        return node
    histograms += plain
    return {_HISTOGRAM: len(plain)}


def _with_histograms(node: Any, histograms: io.BytesIO) -> Any:
    if isinstance(node, list):
        return [_with_histograms(one, histograms) for one in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {_HISTOGRAM}:
        return pack_histogram(histograms.read(node[_HISTOGRAM]))
    return {key: _with_histograms(one, histograms) for key, one in node.items()}
