"""Figures as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from laptime.analysis.logs import ROUNDING
from laptime.api.attempts import LostAttempt
from laptime.api.causes import Cause
from laptime.api.durations import format_duration
from laptime.api.isolation import Isolation, Quietness
from laptime.api.metrics import Metric
from laptime.api.node_path import NodePath
from laptime.api.results import (
    ControlResult,
    Interval,
    LatencyFigure,
    ResultRow,
    Saturation,
    Tie,
    TrialLength,
    Validity,
)
from laptime.api.script import ScriptFigures, ThresholdResult
from laptime.api.spec import MAX_REPETITIONS
from laptime.api.usage import Source
from laptime.api.written import beside as beside
from laptime.api.written import number as number
from laptime.api.written import percent
from laptime.api.written import share as share
from laptime.measure import bound_of

_MANY = 4
_TOLD_SPEED_SPREAD = 0.1
"""Readings of the same CPUs differ by some 5 % where a trial lasts 2 s, and by 3 % where 6 s."""
_CAUSES = {
    Cause.SERVER_CPU: "server CPU",
    Cause.SERVER_CONCURRENCY: "server threads",
    Cause.UNEVEN_WORKERS: "uneven workers",
    Cause.SERVER_MEMORY: "server memory",
    Cause.SERVER_DISK: "server disk",
    Cause.PGBOUNCER_POOL: "PgBouncer pool",
    Cause.DATABASE_CONNECTIONS: "database connections",
    Cause.POSTGRES_CPU: "Postgres CPU",
    Cause.POSTGRES_LOCKS: "Postgres locks",
    Cause.POSTGRES_IO: "Postgres I/O",
    Cause.POSTGRES_WAL: "Postgres WAL",
    Cause.PGBOUNCER_CPU: "PgBouncer CPU",
    Cause.HAPROXY_CAP: "HAProxy cap",
    Cause.HAPROXY_CPU: "HAProxy CPU",
    Cause.UPSTREAM: "upstream",
    Cause.SERVICE_CPU: "service CPU",
    Cause.NETWORK: "network",
    Cause.GENERATOR: "generator",
    Cause.NODE: "node",
    Cause.OFFERED_LOAD: "offered load",
    Cause.UNKNOWN: "unknown",
}


_METRICS = {
    Metric.REQUESTS_PER_SECOND: "throughput",
    Metric.MEAN: "mean response time",
    Metric.P999: "p99.9",
}
_UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0}


def with_interval(
    interval: Interval, unit: str = "", written: Callable[[float], str] = number
) -> str:
    """Return a value with its interval, where it has one: `22.3x (20.1 to 24.6)`.

    With the end that it has, where a search found no upper one: `22.3x (at least 20.1)`.
    """
    text = f"{written(interval.value)}{unit}"
    low, high = interval.low, interval.high
    if _is_nothing(low, high):
        return text
    if low is None or high is None:
        end = f"at most {written(high)}" if high is not None else f"at least {written(low or 0.0)}"
        return f"{text} ({end})"
    return f"{text} ({written(low)} to {written(high)})"


def _is_nothing(low: float | None, high: float | None) -> bool:
    if low is None or high is None:
        return low is high
    return math.isclose(low, high, rel_tol=ROUNDING)


def factor(interval: Interval) -> str:
    """Return a factor with its interval: `22.3x (20.1 to 24.6)`.

    One that does not hold 1, so who is told apart, has the digits that say so: `(1.005 to 1.04)`.
    """
    low, high = interval.low, interval.high
    if (0.0 if low is None else low) <= 1 <= (math.inf if high is None else high):
        return with_interval(interval, "x")
    return with_interval(interval, "x", beside(1.0))


def factor_alone(interval: Interval) -> str:
    """Return a factor without its interval: `22.3x`.

    With the end that it has where a search found no upper one, since it may be any amount more:
    `2.00x (at least 1.95)`.
    """
    has_one_end = (interval.low is None) is not (interval.high is None)
    return factor(interval) if has_one_end else f"{number(interval.value)}x"


def factors(intervals: Sequence[Interval]) -> str:
    """Return factors as a sentence has them: each with its interval; of many the range."""
    if len(intervals) <= _MANY:
        return listing([factor(one) for one in intervals])
    values = [one.value for one in intervals]
    return f"{number(min(values))}x to {number(max(values))}x"


def latency(seconds: float | None) -> str:
    """Return a response time in the unit that suits it: `840 us`, `15.4 ms`, `1.41 s`.

    None is that of a request without a right answer: `failed`.
    """
    if seconds is None:
        return "failed"
    if seconds < 0.0009995:
        return f"{number(seconds * 1e6)} us"
    if seconds < 0.9995:
        return f"{number(seconds * 1e3)} ms"
    return f"{number(seconds)} s"


def bit_rate(bytes_per_second: float) -> str:
    """Return a bandwidth in bits, as networks are sold: `940 Mbit/s`, `9.41 Gbit/s`."""
    bits = 8 * bytes_per_second
    if bits < 999.5e6:
        return f"{number(bits / 1e6)} Mbit/s"
    return f"{number(bits / 1e9)} Gbit/s"


def node_path(path: NodePath) -> str:
    """Return what two nodes exchange: `far to near 9.41 Gbit/s, back at least 9.38 Gbit/s`."""
    to, back = path.to_server_bytes_per_second, path.from_server_bytes_per_second
    where = f"{path.generator_node} to {path.server_node}"
    if to is None or back is None:
        return f"{where} not known ({path.message})" if path.message else f"{where} not known"
    there = f"at least {bit_rate(to)}" if path.to_server_at_least else bit_rate(to)
    answers = f"at least {bit_rate(back)}" if path.from_server_at_least else bit_rate(back)
    return f"{where} {there}, back {answers}"


def latency_figure(
    figure: LatencyFigure | None, *, ends: bool = False, bound: float | None = None
) -> str:
    """Return a response time over repetitions, `15.4 ms`; with `ends` `15.4 ms (14.9 to 16.0)`.

    With the digits that tell it from a `bound` in seconds.

    `failed` where it fell among the requests without a right answer, `failed (2x)` where it did so
    in two repetitions; `-` where there is none.
    """
    if figure is None:
        return "-"
    interval = figure.seconds
    if interval is None:
        return f"failed ({figure.failed}x)" if figure.failed else "failed"
    # All three in the unit of the value.
    unit = latency(interval.value).partition(" ")[2]
    scale = _UNITS[unit]
    written = number if bound is None else beside(bound * scale)
    text = f"{written(interval.value * scale)} {unit}"
    if not ends or interval.low is None or interval.high is None:
        return text
    if _is_nothing(interval.low, interval.high):
        return text
    low, high = (written(end * scale) for end in (interval.low, interval.high))
    return f"{text} ({low} to {high})"


def quietness(one: Isolation | None) -> str:
    """Return whether nodes were there for a trial alone, in a word; None: an older version."""
    return "not known" if one is None or one.word is Quietness.NOT_KNOWN else one.word.value


def isolation(one: Isolation | None) -> str:
    """Return the same of a run with the reason: `quiet`, `shared: others used … (trial x)`."""
    if one is None:
        return f"{quietness(one)}: the version of Laptime that measured it did not tell"
    text = quietness(one)
    if one.message:
        text += f": {one.message}"
        text += f" (trial {one.trial})" if one.trial else ""
    if one.trials_not_known and one.word is not Quietness.NOT_KNOWN:
        text += f"; not known of {one.trials_not_known} trial"
        text += "" if one.trials_not_known == 1 else "s"
    if one.cpu_speed_spread is not None and one.cpu_speed_spread >= _TOLD_SPEED_SPREAD:
        varied = share(one.cpu_speed_spread)
        text += f"; the CPUs were not always as fast (standard deviation {varied})"
    return text


def validity(row: ResultRow) -> str:
    """Return whether the figures of a row can be trusted: `doubtful`, `valid, not watched`.

    Where nobody watched the pods, nobody knows whether a CPU limit held a tier back, or what others
    did on the nodes: that is less than valid without a word, also where it was so in some of the
    repetitions (`valid, partly watched`).
    """
    said = str(row.validity or "-")
    if row.usage is None or row.validity is Validity.INVALID:
        return said
    if row.usage.source is Source.NOBODY:
        return f"{said}, not watched"
    return f"{said}, partly watched" if row.usage.unwatched else said


def metric(value: Metric) -> str:
    """Return the name of a figure: `throughput`, `p99.9`."""
    return _METRICS.get(value, value.value)


def cause(value: Cause) -> str:
    """Return what limited a server, in words: `Postgres CPU`."""
    return _CAUSES[value]


def control(result: ControlResult) -> str:
    """Return what the control arm says: `1.00x (0.99 to 1.01), not told apart; …`."""
    told = "told apart from itself by chance" if result.differs else "not told apart"
    text = f"{factor(result.factor)} the baseline, {told}"
    if result.smallest_detectable is None:
        return text
    return f"{text}; differences from {share(result.smallest_detectable)} on can be found"


def tie(found: Tie) -> str:
    """Return what it would cost to tell two servers apart, as a sentence without its end."""
    return cost(listing(found.servers), found.difference, found.repetitions, found.seconds)


def cost(whom: str, difference: float, repetitions: int | None, seconds: float | None) -> str:
    """Return what it would cost to tell apart who differs by so much, as a share.

    `repetitions` are further ones, None where they would be more than a run may have; `seconds`
    are theirs, None where nobody knows.
    """
    by = f"{100 * difference:.3g} %"
    if repetitions is None:
        return (
            f"to find a difference of {by} between {whom} takes more than {MAX_REPETITIONS} "
            "repetitions: longer trials or a quieter machine help more"
        )
    times = f"{repetitions} more repetition{'' if repetitions == 1 else 's'}"
    lasts = "" if seconds is None else f" ({format_duration(seconds)})"
    return f"about {times}{lasts} would tell {whom} apart, if they differ by {by} or more"


def trial_length(found: TrialLength) -> str:
    """Return which shorter trials would do, as a sentence without its end."""
    now, then = (format_duration(one) for one in (found.instead_of_seconds, found.seconds))
    text = (
        f"trials of {then} instead of {now} would find the same differences in throughput in "
        f"about {found.time_share:.2f} of this load's time"
    )
    if found.repetitions == found.instead_of_repetitions:
        return text
    return f"{text}, in {repetitions(found.repetitions)} instead of {found.instead_of_repetitions}"


def repetitions(count: int) -> str:
    """Return how many repetitions in words: `1 repetition`, `5 repetitions`."""
    return f"{count} repetition{'' if count == 1 else 's'}"


def search(found: Saturation) -> str:
    """Return what a search found: `met up to 4,800 requests/s, missed from 5,040 on; …`."""
    text = f"met up to {number(found.low_rate)} requests/s" if found.low_rate else "met at no rate"
    if found.high_rate is not None:
        text += f", missed from {number(found.high_rate)} on"
    else:
        text += ", no upper end was found"
    if found.breaking_rate is not None:
        text += f"; fewer completed than arrived from {number(found.breaking_rate)} on"
    return text


def checks(script: ScriptFigures) -> str:
    """Return how the checks of a script came out: `12 of 3,400 failed (0.353%)`; empty: none."""
    total = script.checks_passed + script.checks_failed
    if not script.checks_failed:
        return f"all {total:,} passed" if total else ""
    failed = script.checks_failed
    return f"{failed:,} of {total:,} failed ({share(failed / total)})"


def threshold(result: ThresholdResult) -> str:
    """Return what a threshold was compared with: `12.3 ms (9.1 to 15.1), missed in 2 of 5`.

    With the digits that tell it from the bound.
    """
    if result.measured is None:
        return "no samples"
    each_second = result.expression.startswith("rate")
    counted = each_second or result.expression.startswith("count")
    contains = "default" if counted and result.contains == "time" else result.contains
    bound = bound_of(result.expression)
    text = interval_in_unit(result.measured, contains, bound, each_second=each_second)
    if result.repetitions == 1:
        return text
    return f"{text}; missed in {result.missed} of {result.repetitions} repetitions"


def interval_in_unit(
    interval: Interval, contains: str, bound: float | None = None, *, each_second: bool = False
) -> str:
    """Return a value of k6's with its interval, where it has one: `12.3 ms (9.1 to 15.1)`.

    With the digits that tell it from a `bound`; data `each_second` are `12.3 B/s`.
    """
    written = number if bound is None else beside(bound)
    if contains == "data":
        return with_interval(interval, " B/s" if each_second else " B", written)
    if contains != "time":
        return with_interval(interval, "", written)
    if interval.value < 0 or (interval.low or 0) < 0:
        return with_interval(interval, " ms", written)
    seconds = Interval(**{name: value / 1000 for name, value in interval if value is not None})
    within = None if bound is None else bound / 1000
    return latency_figure(LatencyFigure(seconds=seconds), ends=True, bound=within)


def in_unit(value: float, contains: str) -> str:
    """Return a value of k6's: times are milliseconds there, data bytes, all else plain numbers."""
    if contains == "data":
        return f"{number(value)} B"
    return latency(value / 1000) if contains == "time" and value >= 0 else number(value)


def cores(value: float) -> str:
    """Return a number of CPU cores: `0.97`, `1.4`, `12`."""
    return f"{value:.2f}" if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def memory(size_bytes: float) -> str:
    """Return a size of memory: `78 MiB`, `1.2 GiB`."""
    mebibytes = size_bytes / 2**20
    return f"{number(mebibytes)} MiB" if mebibytes < 1000 else f"{number(mebibytes / 1024)} GiB"


def rate(value: float) -> str:
    """Return a share of right answers as a percentage, in which a wrong one in a million shows."""
    text = f"{100 * value:.4f}".rstrip("0").rstrip(".")
    return f"{'99.9999' if text == '100' and value < 1 else text}%"


def share_with_interval(interval: Interval) -> str:
    """Return a share with its interval as percentages: `0.2% (0.1 to 0.3)`."""
    parts = {name: 100 * value for name, value in interval if value is not None}
    return with_interval(Interval(**parts), "%", percent)


def counted_from(executor: str) -> str:
    """Return what response times of requests in an executor of k6 count from."""
    began = "when k6 began the request"
    if executor.endswith("-arrival-rate"):
        return f"{began}; an iteration for which no VU was free was dropped, and has none"
    return f"{began}; a slow answer puts off the next iteration of its VU"


def listing(names: Sequence[str], joint: str = "and") -> str:
    """Return names as a sentence has them: `a`, `a and b`, `a, b and c`; many are counted."""
    if len(names) > _MANY:
        names = [*names[: _MANY - 1], f"{len(names) - _MANY + 1} others"]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {joint} {names[-1]}"


DUET = (
    "both were measured at the same time (duet): their figures are those of servers that share the "
    "machine"
)
"""Of servers that were measured with `pairing: duet`."""


def repeated(lost_attempts: int) -> str:
    """Return in words that so many attempts of trials were made again."""
    one = lost_attempts == 1
    return (
        f"{lost_attempts} {'attempt was' if one else 'attempts were'} lost by no fault of the "
        f"server, and made again"
    )


def lost_attempt(lost: LostAttempt) -> str:
    """Return what became of an attempt, in words."""
    return f"attempt {lost.attempt} was lost to the {lost.fault}: {lost.reason}: {lost.message}"
