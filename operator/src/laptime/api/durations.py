"""Durations as users write them (`500ms`, `30s`, `1m30s`) and as the code wants them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from laptime.api.base import rule, rules

_UNIT_SECONDS = {"us": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|m|h)")
# Digits are bounded so that CEL's duration() cannot overflow: then the message would be lost.
DURATION = r"^([0-9]{1,9}([.][0-9]+)?(us|ms)|[0-9]{1,6}([.][0-9]+)?(s|m|h))+$"
"""What a duration looks like, as Python and CEL read it."""
_MILLISECONDS = r"^([0-9]{1,9}([.]0+)?ms|[0-9]{1,6}([.][0-9]{1,3}0*)?s)+$"
"""What one looks like that has no part of a millisecond."""


# A run has a handful of them, which each look at it asks for hundreds of times.
@lru_cache(maxsize=1024)
def parse_duration(text: str) -> float:
    """Return the seconds that a duration such as `500ms`, `30s` or `1m30s` stands for.

    Raises:
        ValueError: the text is not a duration; the message says what to write.
    """
    if not re.fullmatch(DURATION, text):
        raise ValueError(f"{text!r} is not a duration: write for example 500ms, 30s or 1m30s")
    return duration_of_any_digits(text)


def duration_of_any_digits(text: str) -> float:
    """Return the seconds of a duration that was taken before the number of its digits was bounded.

    What is no duration is 0.
    """
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """Return whole seconds as people read them: `42s`, `3m05s`, `1h02m`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def _bounded(
    shortest: str,
    longest: str,
    form: str = DURATION,
    what: str = "a duration",
    such_as: str = "500ms, 30s or 1m30s",
) -> dict[str, object]:
    return rules(
        rule(
            f"self.matches('{form}') && duration(self) >= duration('{shortest}') "
            f"&& duration(self) <= duration('{longest}')",
            f"must be {what} from {shortest} to {longest}, such as {such_as}",
        ),
        maxLength=16,
    )


# What holds answers back knows nothing shorter (images/delay).
_DELAY = _bounded("0s", "10s", _MILLISECONDS, "whole milliseconds", "22ms or 1.5s")
DelayDuration = Annotated[str, Field(json_schema_extra=_DELAY)]
LatencyDuration = Annotated[str, Field(json_schema_extra=_bounded("0s", "10s"))]
LoadDuration = Annotated[str, Field(json_schema_extra=_bounded("1s", "6h"))]
BudgetDuration = Annotated[str, Field(json_schema_extra=_bounded("1m", "48h"))]
ConnectDuration = Annotated[str, Field(json_schema_extra=_bounded("0s", "10m"))]
WarmupDuration = Annotated[str, Field(json_schema_extra=_bounded("0s", "1h"))]
TimeoutDuration = Annotated[str, Field(json_schema_extra=_bounded("1ms", "10m"))]
