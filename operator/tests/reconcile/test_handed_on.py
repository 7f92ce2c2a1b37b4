"""What a scrape of the seconds of trials gets: each trial once, and again when it was lost."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from laptime.measure.each_second import PhaseSeconds, TrialSeconds
from laptime.measure.sparse_histogram import SparseHistogram
from laptime.reconcile import handed_on
from laptime.reconcile.handed_on import LINGER_SECONDS, PROTOBUF, HandedOn

KEY = ("team", "demo", "demo-trial-001")
OTHER = ("team", "demo", "demo-trial-002")
LABELS = {"namespace": "team", "run": "demo", "trial": "demo-trial-001", "server": 'a"\\b'}
COUNTS = SparseHistogram({-900: 8, -899: 2, -890: 5, 3: 1})
AT = 1_700_000_001_250


def trial(labels: Mapping[str, str] = LABELS) -> TrialSeconds:
    measured = PhaseSeconds(
        requests=((AT, 16), (AT + 1000, 4)),
        errors={"reset": ((AT, 0), (AT + 1000, 4))},
        # The second one is not whole.
        elapsed=((AT, 1),),
        latency=((AT, COUNTS),),
        quantiles={"0.5": ((AT, 0.0076),), "0.99": ((AT, 1.5e-05),)},
    )
    return TrialSeconds(labels, {"measured": measured})


# A reader of protocol buffers that knows no more than the wire format.


def fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = number(data, at)
        kind = key & 7
        value: Any
        if kind == 0:
            value, at = number(data, at)
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        else:
            assert kind == 2
            length, at = number(data, at)
            value, at = data[at : at + length], at + length
        found[key >> 3].append(value)
    return found


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def families(body: bytes) -> dict[str, dict[int, list[Any]]]:
    found: dict[str, dict[int, list[Any]]] = {}
    at = 0
    while at < len(body):
        length, at = number(body, at)
        family = fields(body[at : at + length])
        found[family[1][0].decode()] = family
        at += length
    return found


def test_prometheus_gets_counts_and_native_histograms_under_their_times() -> None:
    handed = HandedOn()
    handed.offer(KEY, trial())
    content_type, body = handed.answer("10.0.0.1", f"{PROTOBUF};proto=x;encoding=delimited")
    assert content_type.startswith(PROTOBUF)
    found = families(body)
    requests = found["laptime_second_requests"]
    assert requests[3] == [1], "a gauge"
    samples = [fields(one) for one in requests[4]]
    assert [(one[6][0], fields(one[2][0])[1][0]) for one in samples] == [
        (AT, 16.0),
        (AT + 1000, 4.0),
    ]
    for sample, whole in zip(samples, ("true", "false"), strict=True):
        pairs = [fields(pair) for pair in sample[1]]
        labels = {pair[1][0].decode(): pair[2][0].decode() for pair in pairs}
        assert labels == {**LABELS, "phase": "measured", "whole": whole}
    quantiles = found["laptime_second_latency_quantile_seconds"]
    assert quantiles[3] == [1], "a gauge"
    times = [fields(one) for one in quantiles[4]]
    assert [fields(one[2][0])[1][0] for one in times] == [0.0076, 1.5e-05]
    assert [one[6][0] for one in times] == [AT, AT]
    (metric,) = (fields(one) for one in found["laptime_second_latency_seconds"][4])
    assert found["laptime_second_latency_seconds"][3] == [5], "a gauge histogram"
    histogram = fields(metric[7][0])
    assert histogram[1] == [16]
    assert signed(histogram[5][0]) == 7
    assert histogram[2][0] == pytest.approx(COUNTS.seconds())
    assert decoded(histogram) == COUNTS


def decoded(histogram: dict[int, list[Any]]) -> dict[int, int]:
    packed, deltas = histogram[13][0], []
    at = 0
    while at < len(packed):
        value, at = number(packed, at)
        deltas.append(signed(value))
    counts: dict[int, int] = {}
    bucket = count = 0
    for span in map(fields, histogram[12]):
        bucket += signed(span[1][0])
        for _ in range(span[2][0]):
            count += deltas.pop(0)
            counts[bucket] = count
            bucket += 1
    assert not deltas
    return counts


def test_a_prometheus_without_native_histograms_gets_the_counts() -> None:
    handed = HandedOn()
    handed.offer(KEY, trial())
    content_type, body = handed.answer("10.0.0.1", "text/plain;version=0.0.4")
    assert content_type.startswith("text/plain")
    lines = body.decode().splitlines()
    labels = (
        'namespace="team",run="demo",trial="demo-trial-001",server="a\\"\\\\b",phase="measured"'
    )
    assert lines[:3] == [
        "# TYPE laptime_second_requests gauge",
        f'laptime_second_requests{{{labels},whole="true"}} 16 {AT}',
        f'laptime_second_requests{{{labels},whole="false"}} 4 {AT + 1000}',
    ]
    assert f'laptime_second_errors{{{labels},kind="reset"}} 4 {AT + 1000}' in lines
    of_half = f'laptime_second_latency_quantile_seconds{{{labels},quantile="0.5"}}'
    assert f"{of_half} 0.0076 {AT}" in lines
    assert len(lines) == 11


def test_each_reader_gets_each_trial_once() -> None:
    now = [0.0]
    handed = HandedOn(clock=lambda: now[0])
    handed.offer(KEY, trial())
    assert not handed.was_shown(KEY)
    assert handed.answer("one", "")[1]
    assert handed.was_shown(KEY)
    assert not handed.answer("one", "")[1]
    assert handed.answer("two", "")[1]
    # It was lost on its way to somebody.
    handed.again(KEY)
    assert not handed.was_shown(KEY)
    assert handed.answer("one", "")[1]
    # Somebody has it.
    handed.withdraw(KEY)
    assert not handed.answer("one", "")[1]
    now[0] += LINGER_SECONDS
    assert not handed.answer("three", "")[1]
    assert not handed.was_shown(KEY)


def test_the_second_of_a_pair_gets_what_the_first_one_has() -> None:
    """The operator asks one of them, by chance which, and it has each trial some seconds sooner."""
    now = [0.0]
    handed = HandedOn(clock=lambda: now[0])
    for reader in ("one", "two"):
        handed.answer(reader, "")
    handed.offer(KEY, trial())
    assert handed.answer("one", "")[1]
    handed.withdraw(KEY)
    now[0] += 60.0
    assert handed.answer("two", "")[1]
    assert not handed.answer("one", "")[1]
    # An operator that looks at it again in the meantime shows it until it is stored.
    handed.offer(KEY, trial())
    now[0] += 600.0
    assert handed.answer("two", "")[1]
    handed.withdraw(KEY)
    handed.withdraw(OTHER)
    now[0] += LINGER_SECONDS
    assert not handed.answer("three", "")[1]


def test_an_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_on, "MOST_BYTES", 100)
    handed = HandedOn()
    handed.offer(KEY, trial())
    handed.offer(OTHER, trial({**LABELS, "trial": "demo-trial-002"}))
    assert b"demo-trial-002" not in handed.answer("one", "")[1]
    assert b"demo-trial-002" in handed.answer("one", "")[1]
    assert not handed.answer("one", "")[1]


def test_who_has_not_asked_for_long_does_not_count() -> None:
    now = [0.0]
    handed = HandedOn(clock=lambda: now[0])
    assert handed.read, "of a new process nobody knows"
    now[0] = 200.0
    assert not handed.read
    handed.answer("one", "")
    assert handed.read
    for reader in range(1000):
        handed.answer(str(reader), "")
    now[0] = 400.0
    assert not handed.read
