"""Durations as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250us", 0.00025),
        ("500ms", 0.5),
        ("30s", 30.0),
        ("1.5s", 1.5),
        ("1m30s", 90.0),
        ("6h", 21600.0),
        ("0s", 0.0),
    ],
)
def test_a_duration_is_so_many_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "30 s", "-1s", "1d", "30s\n", "1h ", "9999999h"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 500ms, 30s or 1m30s"):
        parse_duration(text)


@given(st.integers(0, 999_999), st.sampled_from(["us", "ms", "s", "m", "h"]))
def test_units_are_in_order(number: int, unit: str) -> None:
    sizes = ["us", "ms", "s", "m", "h"]
    for smaller in sizes[: sizes.index(unit)]:
        assert parse_duration(f"{number}{smaller}") <= parse_duration(f"{number}{unit}")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0.4, "0s"), (42, "42s"), (59.6, "1m00s"), (185, "3m05s"), (3725, "1h02m")],
)
def test_time_left_reads_naturally(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
