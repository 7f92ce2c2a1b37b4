"""Histograms: read as the library writes them, merged without loss, exact to 0.1 %."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.manifests.objects import COMPONENT_LABEL, Component
from laptime.manifests.result import read_result
from laptime.measure import GeneratorResult, Histogram, HistogramError, measured_phase
from laptime.measure.figures import latency_histogram
from laptime.measure.generator import parse_payload
from tests import version_1

HOUR = 3_600_000_000
MICROSECONDS = st.one_of(st.integers(1, 5000), st.integers(1, HOUR))
VALUES = st.lists(MICROSECONDS, min_size=1, max_size=300)
QUANTILES = st.sampled_from([0.01, 0.5, 0.8, 0.9, 0.99, 0.999, 1.0])


def encode(values: list[int]) -> str:
    histogram = HdrHistogram(1, HOUR, 3)
    for value in values:
        assert histogram.record_value(value)
    encoded: bytes = histogram.encode()
    return encoded.decode()


def exact_quantile(values: list[int], q: float) -> float:
    """Return the smallest value at or below which the share q of all values lies, in seconds."""
    return sorted(values)[max(1, math.ceil(q * len(values) - 1e-9)) - 1] / 1e6


@given(VALUES)
def test_what_the_library_writes_is_read(values: list[int]) -> None:
    assert Histogram.decode(encode(values)) == Histogram.of_microseconds(values)


@given(VALUES, QUANTILES)
def test_quantiles_are_exact_within_a_thousandth_and_never_too_good(
    values: list[int], q: float
) -> None:
    exact = exact_quantile(values, q)
    got = Histogram.of_microseconds(values).quantile_seconds(q)
    assert exact <= got <= exact * 1.001


@settings(max_examples=20)
@given(VALUES)
def test_quantiles_agree_with_the_library(values: list[int]) -> None:
    library = HdrHistogram(1, HOUR, 3)
    for value in values:
        library.record_value(value)
    assert Histogram.of_microseconds(values).quantile_seconds(1.0) == pytest.approx(
        library.get_max_value() / 1e6
    )
    assert Histogram.of_microseconds(values).mean_seconds() == pytest.approx(
        library.get_mean_value() / 1e6, rel=1e-3
    )


@given(st.lists(VALUES, min_size=1, max_size=6), QUANTILES)
def test_merging_gives_the_quantiles_of_all_values_together(
    parts: list[list[int]], q: float
) -> None:
    everything = [value for part in parts for value in part]
    merged = Histogram.merged(Histogram.decode(encode(part)) for part in parts)
    assert merged == Histogram.of_microseconds(everything)
    assert merged.quantile_seconds(q) == pytest.approx(exact_quantile(everything, q), rel=1e-3)


@given(VALUES)
def test_the_mean_is_exact_within_a_thousandth(values: list[int]) -> None:
    exact = sum(values) / len(values) / 1e6
    assert Histogram.of_microseconds(values).mean_seconds() == pytest.approx(exact, rel=1e-3)


class Reads(dict[int, int]):
    """Counts of a histogram that count how often somebody goes through all cells."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        self.times += 1
        return super().__iter__()


def test_cells_are_put_in_order_once_for_all_percentiles() -> None:
    counts = Reads(Histogram.of_microseconds(range(1, 5000)).counts)
    assert Histogram(counts).latency() is not None
    # Once to put them in order, and once for the least of them.
    assert counts.times <= 2


def test_what_is_stored_of_a_recorded_run_is_what_its_histograms_say_to_the_last_bit() -> None:
    seen = 0
    for manifest in version_1.single():
        if manifest["metadata"]["labels"][COMPONENT_LABEL] != Component.RESULT:
            continue
        stored, payload = read_result(manifest)
        result = parse_payload(payload)
        assert stored.figures is not None
        assert isinstance(result, GeneratorResult)
        phase = measured_phase(result)
        assert phase is not None
        times = Histogram.merged(
            Histogram.decode(one.server_time) for one in phase.endpoints.values()
        )
        latency = times.latency()
        assert latency is not None
        assert latency == stored.figures.server_time
        assert latency_histogram(phase).response_times() == stored.figures.latency
        # And what each percentile is when it is asked for alone.
        assert latency.p50_seconds == times.quantile_seconds(0.5)
        assert latency.p80_seconds == times.quantile_seconds(0.8)
        assert latency.p90_seconds == times.quantile_seconds(0.9)
        assert latency.p99_seconds == times.quantile_seconds(0.99)
        assert latency.p999_seconds == times.quantile_seconds(0.999)
        assert latency.max_seconds == times.quantile_seconds(1.0)
        seen += 1
    assert seen == 6


def test_no_values_have_no_latency() -> None:
    assert Histogram().latency() is None
    assert Histogram.decode(encode([])).total == 0


def test_counts_beyond_32_bits_are_read() -> None:
    histogram = HdrHistogram(1, HOUR, 3)
    histogram.record_value(700, count=2**40)
    assert Histogram.decode(histogram.encode().decode()).total == 2**40


def wire(plain: bytes) -> str:
    packed = zlib.compress(plain)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def header(length: int, digits: int = 3, highest: int = HOUR) -> bytes:
    return struct.pack(">IIIIQQd", 0x1C849313, length, 0, digits, 1, highest, 1.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not base64!", "base64"),
        ("QUJD", "base64"),
        (base64.b64encode(b"\0" * 20).decode(), "version 2"),
        (encode([5])[:-8], "version 2"),
        (wire(b"short"), "shorter"),
        (wire(header(5)), "does not fit"),
        (wire(header(0, digits=2)), "three significant digits"),
        (wire(header(0, highest=10**9)), "1 h"),
        (wire(header(1) + b"\x80"), "within a number"),
        # A run of -2**40 empty cells.
        (wire(header(6) + b"\xff\xff\xff\xff\xff\x7f"), "more cells"),
        (wire(header(10**6) + b"\0" * 10**6), "larger than"),
    ],
)
def test_anything_else_is_refused_with_a_reason(text: str, says: str) -> None:
    with pytest.raises(HistogramError, match=says):
        Histogram.decode(text)


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans())
def test_no_input_breaks_the_decoder(data: bytes, dressed: bool) -> None:
    text = wire(header(len(data)) + data) if dressed else base64.b64encode(data).decode()
    try:
        histogram = Histogram.decode(text)
    except HistogramError:
        return
    assert histogram.total >= 0
    assert all(count > 0 for count in histogram.counts.values())


def test_many_quantiles_in_one_pass_are_those_that_single_ones_are() -> None:
    histogram = Histogram.of_microseconds([(n * 7919) % 50_000 + 1 for n in range(5000)])
    shares = [0.0, 0.25, 0.5, 0.5, 0.99, 0.999, 1.0]
    assert histogram.quantiles_seconds(shares) == [histogram.quantile_seconds(q) for q in shares]
    assert Histogram().quantiles_seconds([0.5, 1.0]) == [0.0, 0.0]
