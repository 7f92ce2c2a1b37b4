"""What goes into an archive comes out of it; what is none is said to be none."""

from __future__ import annotations

import base64
import gzip
import json
import lzma
import random
import tracemalloc
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.storage import STORED_VERSION, StoredByNewerVersion
from laptime.manifests.archive import (
    MAX_PART_BYTES,
    PARTS_ANNOTATION,
    ArchiveError,
    archive_config_maps,
    archive_parts,
    joined,
)
from laptime.manifests.result import PAYLOAD_KEY
from laptime.measure import Histogram, parse_payload
from laptime.measure.generator import (
    MAX_PLAIN_BYTES,
    RESULT_PREFIX,
    GeneratorResult,
    inflated,
)
from laptime.report import archive
from laptime.report.archive import Archive, pack, stored_in, unpack
from tests import version_1
from tests.manifests.runs import context
from tests.measure import samples

FILES = version_1.files()["data"]
SINGLE = version_1.single()
PACKED = pack(FILES, SINGLE)


def config_map(data: dict[str, str], name: str = "demo-trial-001") -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-of-{name}", "labels": {"a": "b"}, "annotations": {}}
    return {"kind": "ConfigMap", "metadata": metadata, "data": data}


def result_of(payload: str) -> GeneratorResult:
    parsed = parse_payload(payload)
    assert isinstance(parsed, GeneratorResult)
    return parsed


def test_a_measured_run_comes_out_as_it_went_in() -> None:
    read = unpack(PACKED)
    assert read.files == FILES
    assert len(read.objects) == len(SINGLE) == 12
    for one, was in zip(read.objects, SINGLE, strict=True):
        for key in ("name", "uid", "labels", "annotations"):
            assert one["metadata"][key] == was["metadata"][key]
        assert one["data"].keys() == was["data"].keys()
        for key, text in was["data"].items():
            if key != PAYLOAD_KEY:
                assert one["data"][key] == text


def test_histograms_come_out_with_every_count() -> None:
    compared = 0
    for one, was in zip(unpack(PACKED).objects, SINGLE, strict=True):
        if PAYLOAD_KEY not in was["data"]:
            continue
        before, after = (result_of(each["data"][PAYLOAD_KEY]) for each in (was, one))
        for name, phase in before.phases.items():
            for endpoint, counted in phase.endpoints.items():
                again = after.phases[name].endpoints[endpoint]
                for kind in ("latency", "connect"):
                    histogram = Histogram.decode(getattr(counted, kind))
                    assert Histogram.decode(getattr(again, kind)) == histogram
                    compared += bool(histogram.total)
        # All else of what the generator said.
        assert _without_texts(before) == _without_texts(after)
    assert compared == 24


def test_what_nothing_reads_any_more_is_left_out_and_no_count_is() -> None:
    rows = [{"t": 0, "requests": 9, "errors": 1, "kinds": {"reset": 1}}]
    measured = samples.phase([1000], seconds=[{**rows[0], "latency": [-900, 8]}], latencySeconds=1)
    payload = samples.line(samples.document(measured)).removeprefix(RESULT_PREFIX)
    for _ in range(2):
        (one,) = unpack(pack({}, [config_map({PAYLOAD_KEY: payload})])).objects
        payload = one["data"][PAYLOAD_KEY]
        said = json.loads(gzip.decompress(base64.b64decode(payload)))["phases"]["measured"]
        assert said["seconds"] == rows
        assert "latencySeconds" not in said
        assert said["endpoints"] == {
            name: {key: value for key, value in endpoint.items() if key != "serverTime"}
            for name, endpoint in measured["endpoints"].items()
        }
        assert all("serverTime" in endpoint for endpoint in measured["endpoints"].values())
        assert result_of(payload).phases["measured"].seconds[0].kinds == {"reset": 1}


def _without_texts(result: GeneratorResult) -> str:
    document = json.loads(gzip.decompress(base64.b64decode(result.payload)))
    for phase in document["phases"].values():
        for endpoint in phase["endpoints"].values():
            for kind in ("latency", "connect"):
                endpoint[kind] = ""
            endpoint.pop("serverTime", None)
    return json.dumps(document)


def test_an_archive_needs_less_than_half_of_what_it_holds() -> None:
    stored = sum(len(text) for one in SINGLE for text in one["data"].values())
    stored += sum(map(len, FILES.values()))
    assert len(PACKED) < stored * 0.45


def test_an_archive_of_an_archive_is_the_same() -> None:
    read = unpack(PACKED)
    assert pack(read.files, read.objects) == PACKED


texts = st.text() | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).flatmap(
    lambda value: st.sampled_from(
        [
            json.dumps(value),
            json.dumps(value, indent=1, ensure_ascii=False),
            json.dumps(value, separators=(",", ":")),
            base64.b64encode(gzip.compress(json.dumps(value).encode(), mtime=0)).decode(),
        ]
    )
)


@settings(max_examples=200)
@given(st.dictionaries(st.text(), texts), st.dictionaries(st.sampled_from("ab"), texts))
def test_any_text_comes_out_as_it_went_in(files: dict[str, str], data: dict[str, str]) -> None:
    assert unpack(pack(files, [config_map(data)])) == Archive(files, [config_map(data)])


@settings(max_examples=100)
@given(texts)
def test_a_payload_that_no_generator_wrote_comes_out_with_what_it_says(text: str) -> None:
    (one,) = unpack(pack({}, [config_map({PAYLOAD_KEY: text})])).objects
    again = one["data"][PAYLOAD_KEY]
    assert again == text or _said(again) == _said(text)


def _said(payload: str) -> str:
    return json.dumps(json.loads(gzip.decompress(base64.b64decode(payload))))


def test_a_payload_that_looks_like_what_the_archive_writes_is_kept() -> None:
    document = {"checks": {"histogram bytes": 7}, "more": [{"histogram bytes": [1, 2]}]}
    payload = base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
    objects = [config_map({PAYLOAD_KEY: payload}), SINGLE[0]]
    read = unpack(pack({}, objects)).objects
    assert read[0]["data"][PAYLOAD_KEY] == payload
    assert read[1]["data"]["result.json"] == SINGLE[0]["data"]["result.json"]


def test_what_is_cut_off_or_changed_is_no_archive() -> None:
    for end in range(0, len(PACKED) - 1, 997):
        with pytest.raises(ArchiveError):
            unpack(PACKED[:end])
    chance = random.Random(7)
    for _ in range(100):
        broken = bytearray(PACKED)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        with pytest.raises(ArchiveError):
            unpack(bytes(broken))


def test_what_is_something_else_is_no_archive() -> None:
    for lines in (
        b"",
        b"[]\n",
        b"{}\n",
        b'{"files": {}}\n{}\n',
        b'{"files": {"a": {}}}\n',
        b"[" * 10**5,
    ):
        streams = [lzma.compress(part) for part in (lines, b"")]
        with pytest.raises(ArchiveError):
            unpack(b"".join(streams))


def test_nobody_fills_the_memory_with_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_TEXT_BYTES", 2**20)
    with pytest.raises(ArchiveError, match="more than 1048576 bytes"):
        unpack(pack({"a": " " * 2**20}, []), files=False)
    # Who reports has more of it.
    assert unpack(pack({"a": " " * 2**20}, [])).files


@pytest.mark.parametrize(
    "value", ["[]", "{}", '"' + 20 * 2**20 * "a" + '"'], ids=["lists", "objects", "text"]
)
def test_no_line_of_an_archive_fills_the_memory(value: str) -> None:
    values = ",".join([value] * (12 * 2**20 // len(value) or 1))
    lines = b'{"files":{}}\n' + f'{{"x":[{values}]}}\n'.encode()
    with pytest.raises(ArchiveError, match="an object in the archive has more than"):
        unpack(lzma.compress(lines) + lzma.compress(b""))


def test_texts_are_counted_as_the_memory_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_TEXT_BYTES", 3 * 2**20)
    ascii_only, wide = 2**20 * "a", 2**20 * "a" + "\U0001f600"
    assert unpack(pack({}, [config_map({"x": ascii_only})])).objects
    with pytest.raises(ArchiveError, match="the texts in the archive take more than 3145728"):
        unpack(pack({}, [config_map({"x": wide})]), files=False)


def test_of_files_that_fill_the_memory_the_objects_are_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "_FILES_BYTES", 2**20)
    packed = pack({"results.json": 3 * 2**20 * "a"}, SINGLE)
    with pytest.raises(ArchiveError, match="the files in the archive have more than 1048576"):
        unpack(packed)
    assert unpack(packed, files=False) == Archive({}, unpack(PACKED).objects)


@pytest.mark.parametrize("length", [-1, 10**9])
def test_a_histogram_of_no_length_is_no_archive(length: int) -> None:
    value = {"form": "payload", "value": {"latency": {"histogram bytes": length}}}
    one = {"name": "a", "uid": "b", "labels": {}, "annotations": {}, "data": {"x": value}}
    lines = b'{"files":{}}\n' + json.dumps(one).encode() + b"\n"
    with pytest.raises(ArchiveError, match="no histogram of such a length"):
        unpack(lzma.compress(lines) + lzma.compress(b"0" * 1000))


def test_an_archive_is_never_in_the_memory_as_a_whole() -> None:
    size = 2**20
    packed = pack({}, [config_map({"x": size * "a"}, f"trial-{number}") for number in range(40)])
    tracemalloc.start()
    try:
        found = unpack(packed)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What comes out, and a few lines of it.
    assert len(found.objects) == 40
    assert most < 50 * size


class TestObjects:
    """One ConfigMap, and parts where it is too large."""

    def test_a_small_archive_is_one_object(self) -> None:
        head, parts = archive_config_maps(context(), PACKED)
        assert parts == []
        assert joined(head, {}) == PACKED
        assert head["metadata"]["name"] == "demo-results"
        # It can be replaced by one with more in it.
        assert "immutable" not in head

    def test_a_large_one_has_parts_that_it_names(self) -> None:
        packed = random.Random(7).randbytes(2 * MAX_PART_BYTES + 5)
        head, parts = archive_config_maps(context(), packed)
        by_name = {part["metadata"]["name"]: part for part in parts}
        assert archive_parts(head) == list(by_name)
        assert len(parts) == 2
        assert joined(head, by_name) == packed
        for one in (head, *parts):
            assert len(json.dumps(one)) < 1.4 * 2**20

    def test_a_part_is_not_among_the_objects_that_version_1_deletes(self) -> None:
        _, parts = archive_config_maps(context(), bytes(MAX_PART_BYTES + 1))
        (part,) = parts
        assert "laptime.dev/run-uid" not in part["metadata"]["labels"]
        # The garbage collector deletes it with the run.
        assert part["metadata"]["ownerReferences"][0]["uid"] == context().uid

    def test_a_part_that_is_missing_or_changed_is_named(self) -> None:
        head, (part,) = archive_config_maps(context(), bytes(MAX_PART_BYTES + 1))
        name = part["metadata"]["name"]
        with pytest.raises(ArchiveError, match=f"{name}, a part of the archive, is missing"):
            joined(head, {name: None})
        part["binaryData"]["archive.xz"] = base64.b64encode(b"else").decode()
        with pytest.raises(ArchiveError, match=f"{name}, a part of the archive, was changed"):
            joined(head, {name: part})

    def test_an_archive_of_a_newer_version_is_left_alone(self) -> None:
        head, _ = archive_config_maps(context(), PACKED)
        assert head["metadata"]["annotations"][PARTS_ANNOTATION] == ""
        head["metadata"]["annotations"]["laptime.dev/stored-version"] = str(STORED_VERSION + 1)
        with pytest.raises(StoredByNewerVersion, match="use the version that wrote it"):
            joined(head, {})


def test_what_stands_singly_counts_once_and_before_the_archive() -> None:
    head, _ = archive_config_maps(context(), PACKED)
    replaced = deepcopy(SINGLE[0])
    replaced["data"] = {"result.json": "{}"}
    stored = stored_in([SINGLE[1], head, replaced])
    assert len(stored.objects) == len(SINGLE)
    assert stored.objects[:2] == [SINGLE[1], replaced]
    assert stored.files == FILES


def test_what_version_1_left_is_read_in_the_same_way() -> None:
    stored = stored_in([*SINGLE, version_1.files()])
    assert stored.files == FILES
    assert stored.objects == SINGLE


def test_a_payload_that_would_fill_the_memory_is_kept_as_it_is() -> None:
    bomb = base64.b64encode(gzip.compress(b" " * (MAX_PLAIN_BYTES + 1))).decode()
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        packed = pack({}, [config_map({PAYLOAD_KEY: bomb})])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unpack(packed).objects[0]["data"] == {PAYLOAD_KEY: bomb}
    # What is told apart is not kept: a real one could be a thousand times as large as it looks.
    assert most < 4 * MAX_PLAIN_BYTES
    with pytest.raises(OverflowError, match="bytes unpacked"):
        inflated(bomb)
