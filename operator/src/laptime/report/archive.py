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
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from laptime.catalog import Scenario, stored_document, stored_text
from laptime.manifests.archive import ARCHIVE_LABEL, ArchiveError, is_archive, joined
from laptime.manifests.objects import COMPONENT_LABEL, known_as
from laptime.manifests.result import PAYLOAD_KEY, RESULTS
from laptime.manifests.scenario import SCENARIO_KEY
from laptime.measure.generator import MAX_PLAIN_BYTES, MAX_VALUES, inflated
from laptime.measure.histogram import (
    MAX_HISTOGRAM_BYTES,
    HistogramError,
    pack_histogram,
    unpack_histogram,
)
from laptime.measure.kept import archived
from laptime.report.document import JSON_FILE, json_text
from laptime.report.feeders import feeders_kept, without_rows

Manifest = dict[str, Any]

# 1 MiB of memory for what has been seen holds the trials of a whole run that look alike; the
# encoder needs eleven times as much.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 2**20, "pb": 0}]
_MOST_TEXT_BYTES = 256 * 2**20
_MOST_HISTOGRAM_BYTES = 512 * 2**20
"""No stream is longer for the operator, which all runs share. 2,000 trials with figures of 50
endpoints each make 190 MB of text and 330 MB of histograms, by what one of them takes: 600 bytes
where its figures are, twice, 27 values in 4 objects, and 3 kB of histograms. Of open loads, and of
scripts with 200 names, such a run can have three times as much, which is then read by reports."""
_OF_REPORTS = 8
"""So many times as much is read by who reports, a process that nobody else needs."""
_FILES_BYTES = 128 * 2**20
"""Of the first line: 70 MB of that run, which only who reports reads."""
_LINE_BYTES, _LINE_VALUES, _LINE_OBJECTS = MAX_PLAIN_BYTES + 2**22, MAX_VALUES + 2**20, 300_000
"""Of any other line: a generator's result, and what else fits into a ConfigMap of 1 MiB. One line
at a time is held, of which its texts stay. Nobody fills the memory with an archive of their own:
where a few kB became gigabytes, the worst now takes 290 MB."""
_DECODER_BYTES = 80 * 2**20
"""What xz may take for itself: it is told how much by the archive."""
_PIECE_BYTES = 2**20
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


def unpack(packed: bytes, *, files: bool = True) -> Archive:
    """Return what is in an archive; without its files it needs less memory by far.

    Raises:
        ArchiveError: it is none, or is not whole.
    """
    try:
        times = _OF_REPORTS if files else 1
        texts, rest = _parted(packed, times * _MOST_TEXT_BYTES)
        histograms, _ = _parted(rest, times * _MOST_HISTOGRAM_BYTES)
        with lzma.open(io.BytesIO(texts)) as text, lzma.open(io.BytesIO(histograms)) as counts:
            read = _files(text) if files else _skipped(text)
            lines = iter(lambda: _line(text), "")
            objects = (_manifest(json.loads(line), counts) for line in lines)
            return Archive(read, _held(objects, times * _MOST_TEXT_BYTES))
    except ArchiveError:
        raise
    except (lzma.LZMAError, EOFError, ValueError, LookupError, TypeError, AttributeError,
            OverflowError, RecursionError) as error:  # fmt: skip
        raise ArchiveError(f"the archive cannot be read: {error!r}") from error


def stored_in(config_maps: Iterable[Manifest]) -> Archive:
    """Return what a run has stored, by all of its ConfigMaps, the parts of an archive among them.

    For whoever takes it out of the cluster: the scenario, which the run keeps and which stands in
    its results, is without the rows of its feeders, which may be secret, and left out where it
    cannot be read.

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
    files = {
        name: _results_without_rows(text) if name == JSON_FILE else text
        for name, text in archive.files.items()
    }
    return Archive(files, [_without_rows(one) for one in (*single, *rest)])


def _results_without_rows(text: str) -> str:
    """Return a results.json as this version writes it: older ones stored the feeders' rows."""
    try:
        document = json.loads(text)
        kept = document["scenario"]
        if not kept["document"]["feeders"]:
            return text
    except (ValueError, LookupError, TypeError, RecursionError):
        return text
    try:
        scenario = Scenario.model_validate(kept["document"])
        emptied = without_rows(scenario)
        if emptied == scenario:
            return text
        feeders = [one.to_wire() for one in feeders_kept(scenario)]
        without: dict[str, Any] = {"feeders": feeders, "document": stored_document(emptied)}
    except ValueError:
        without = {"document": None}
    return json_text({**document, "scenario": {**kept, **without}})


def _without_rows(stored: Manifest) -> Manifest:
    data = stored.get("data") or {}
    if SCENARIO_KEY not in data:
        return stored
    others = {key: text for key, text in data.items() if key != SCENARIO_KEY}
    try:
        scenario = Scenario.model_validate_json(data[SCENARIO_KEY])
    except ValueError:
        return {**stored, "data": others}
    emptied = without_rows(scenario)
    if emptied == scenario:
        return stored
    return {**stored, "data": {**others, SCENARIO_KEY: stored_text(emptied)}}


def _parted(packed: bytes, most_bytes: int) -> tuple[bytes, bytes]:
    """Return the first stream, which is whole, and what follows it; nothing unpacked is kept."""
    xz = lzma.LZMADecompressor(memlimit=_DECODER_BYTES)
    given, plain_bytes = packed, 0
    while not xz.eof:
        if xz.needs_input and not given:
            raise ArchiveError("the archive is cut off")
        plain_bytes += len(xz.decompress(given, _PIECE_BYTES))
        given = b""
        if plain_bytes > most_bytes:
            raise ArchiveError(f"the archive has more than {most_bytes} bytes")
    ends = len(packed) - len(xz.unused_data)
    return packed[:ends], packed[ends:]


def _files(text: IO[bytes]) -> dict[str, str]:
    line = text.readline(_FILES_BYTES)
    if len(line) == _FILES_BYTES:
        raise ArchiveError(f"the files in the archive have more than {_FILES_BYTES} bytes")
    files = json.loads(line.decode(errors="surrogatepass"))["files"]
    return {name: _text(one, io.BytesIO()) for name, one in files.items()}


def _skipped(text: IO[bytes]) -> dict[str, str]:
    while (piece := text.readline(_PIECE_BYTES)) and not piece.endswith(b"\n"):
        pass
    return {}


def _line(text: IO[bytes]) -> str:
    """Return the next line of JSON, which may be read as a whole; empty at the end."""
    line = text.readline(_LINE_BYTES)
    objects = line.count(b"{")
    values = line.count(b",") + line.count(b"[") + objects
    if len(line) == _LINE_BYTES or objects > _LINE_OBJECTS or values > _LINE_VALUES:
        raise ArchiveError(
            f"an object in the archive has more than {_LINE_BYTES} bytes, {_LINE_OBJECTS} JSON "
            f"objects or {_LINE_VALUES} values"
        )
    return line.decode(errors="surrogatepass")


def _held(manifests: Iterable[Manifest], most_bytes: int) -> list[Manifest]:
    """Return ConfigMaps; in the memory a text may be four times as long as in UTF-8."""
    held, held_bytes = [], 0
    for one in manifests:
        held_bytes += sum(map(sys.getsizeof, one["data"].values()))
        if held_bytes > most_bytes:
            raise ArchiveError(f"the texts in the archive take more than {most_bytes} bytes")
        held.append(one)
    return held


def _manifest(line: dict[str, Any], histograms: IO[bytes]) -> Manifest:
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


def _text(one: Any, histograms: IO[bytes]) -> str:
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


def _with_histograms(node: Any, histograms: IO[bytes]) -> Any:
    if isinstance(node, list):
        return [_with_histograms(one, histograms) for one in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {_HISTOGRAM}:
        if not 0 <= node[_HISTOGRAM] <= MAX_HISTOGRAM_BYTES:
            raise ValueError("there is no histogram of such a length")
        return pack_histogram(histograms.read(node[_HISTOGRAM]))
    return {key: _with_histograms(one, histograms) for key, one in node.items()}
