"""What an experiment says: whether more of a resource makes a server faster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from laptime.analysis import wording
from laptime.analysis.repeated import factor_of, fewest_answers
from laptime.api.causes import LimitedBy
from laptime.api.doubts import (
    ASKED_AGAIN,
    OTHER_RESOURCES,
    about,
    added_limit,
    leaves_end_open,
    made_otherwise,
    share_of_repetitions,
)
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ResultRow, Validity
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.measure.saturation import ONE_THREAD
from laptime.plan.experiments import change, workers_fill

WORTH = 1.05
"""A gain below 5 % is none: it would not be worth the resource, and the smallest that the usual
number of repetitions can tell from chance on a quiet machine is about as large."""
ONE_SIDED = 0.3
"""What is in a smaller share of the repetitions is in the interval of the gain, however many there
are: of the means of two repetitions, of which signed ranks take the middle ones, about half (0.7
squared) are without it then."""


class Finding(StrEnum):
    """What came of a candidate."""

    CONFIRMED = "confirmed"
    """The whole interval of the gain is 5 % or more: it was a limit."""
    REFUTED = "refuted"
    """The whole interval is below: more of it gives nothing."""
    UNDECIDED = "undecided"
    NOT_KNOWN = "not known"
    """There is no gain to judge: something was not measured, or is invalid."""
    NOT_TO_BE_HAD = "not to be had here"
    """Nobody can try it: there is no more of it for one server alone."""


@dataclass(frozen=True)
class Explained:
    """A candidate under a load, and what came of it."""

    load: str
    arm: str
    """Name of the server that had more."""
    change: str
    finding: Finding
    gain: Interval | None
    """How many times as good: throughput as a factor, response times as how many times as short."""
    compared_by: Metric
    """What the gain is of."""
    then: LimitedBy | None
    """What limits with more of it, as the readings suspect; None: not known."""
    why: str = ""
    """What is missing, or doubtful."""


def said_of(one: Explained) -> str:
    """Return in words what came of a candidate: `confirmed: 1.62x (…) with 10 … instead of 5`."""
    why = f" ({one.why})" if one.why else ""
    gain = gain_of(one)
    return f"{one.finding}: {f'{gain} with ' if gain else ''}{one.change}{why}"


def gain_of(one: Explained) -> str:
    """Return a gain in words, of what it is if not throughput; empty: there is none."""
    if one.gain is None:
        return ""
    gain, metric = wording.factor(one.gain), one.compared_by
    return f"{gain} as short a {wording.metric(metric)}" if metric.is_latency else gain


def explained(spec: BenchmarkRunSpec, rows: Sequence[ResultRow]) -> list[Explained]:
    """Return what each arm of an experiment gives, by load and then in the order of the spec.

    `spec` is that of `laptime.plan.experiments.experiment`: its baseline is the unchanged server.
    An experiment whose loads had no row yet says nothing.
    """
    return list(_explained(spec, rows))


def _explained(spec: BenchmarkRunSpec, rows: Sequence[ResultRow]) -> Iterator[Explained]:
    by_pair = {(row.server, row.load): row for row in rows}
    unchanged = spec.server(spec.baseline_name)
    for load in spec.loads:
        before = by_pair.get((unchanged.name, load.name))
        for server in spec.servers:
            row = by_pair.get((server.name, load.name))
            if server.name == unchanged.name or row is None or before is None:
                continue
            finding, gain, why = _found(before, row)
            then = row.limited_by
            unseen = _unseen_workers(unchanged, server, before, row)
            if unseen and finding is not Finding.CONFIRMED:
                # The row counts on workers that it may not have.
                then = None
            no_word = unseen or _workers_in_vain(unchanged, server, before)
            if no_word and finding is Finding.REFUTED:
                finding, why = Finding.NOT_KNOWN, "; ".join(filter(None, (no_word, why)))
            yield Explained(
                load=load.name,
                arm=server.name,
                change=change(spec, unchanged, server),
                finding=finding,
                gain=gain,
                compared_by=row.compared_by,
                then=then,
                why=why,
            )


def _found(before: ResultRow, row: ResultRow) -> tuple[Finding, Interval | None, str]:
    for one in (before, row):
        if not one.trials:
            said = one.message or one.reason or "no trial"
            return Finding.NOT_KNOWN, None, f"{one.server} was not measured: {said}"
        if one.validity is Validity.INVALID:
            why = next(iter(one.validity_reasons), "no valid trial")
            return Finding.NOT_KNOWN, None, f"the figures of {one.server} are invalid: {why}"
    if row.factor is None:
        none = _why_none(before) or _why_none(row) or _why_apart(before) or _why_apart(row)
        return Finding.NOT_KNOWN, None, none or "there is no factor"
    gain = factor_of(row.factor, row.compared_by)
    doubts = dict.fromkeys([*before.validity_reasons, *row.validity_reasons])
    why = f"doubtful: {'; '.join(doubts)}" if doubts else ""
    if not doubts and Validity.DOUBTFUL in (before.validity, row.validity):
        # The status of a large run has no room for reasons.
        why = "doubtful: its report says why"
    if (otherwise := made_one_sided(before, row)) is not None:
        why = f"more differs than what was tried: {otherwise}"
        return Finding.NOT_KNOWN, gain, why
    open_ended = None
    if gain.low is not None and gain.low >= WORTH:
        finding, open_ended = Finding.CONFIRMED, _open_ended(before)
    elif gain.high is not None and gain.high < WORTH:
        finding, open_ended = Finding.REFUTED, _open_ended(row)
    else:
        finding = Finding.UNDECIDED
        # No number of repetitions decides that.
        open_ended = _open_ended(before) or _open_ended(row)
        if gain.low is None and gain.high is None and open_ended is None:
            why = "the gain has no interval: there are too few repetitions"
            return Finding.NOT_KNOWN, gain, why
    return (Finding.NOT_KNOWN, gain, open_ended) if open_ended else (finding, gain, why)


def _unseen_workers(
    unchanged: Server, arm: Server, before: ResultRow, row: ResultRow
) -> str | None:
    """Return why nobody knows whether an arm had more workers; None: it had, or was to have none.

    An image that does with `WORKERS` what it likes runs on no more CPU, whatever it is told.
    """
    if unchanged.knows_workers or arm.worker_count == unchanged.worker_count:
        return None
    said = f"whether {arm.name} had more workers nobody knows"
    peak, peak_before = (one.usage.cores_peak if one.usage else None for one in (row, before))
    if peak is None:
        return f"{said}: nobody read what it used"
    if peak > ONE_THREAD * max(unchanged.worker_count, peak_before or 0.0):
        return None
    return f"{said}: it never used more than {peak:.2f} cores"


def _workers_in_vain(unchanged: Server, arm: Server, before: ResultRow) -> str | None:
    """Return why more workers of an arm refute nothing; None: they do, or it has no more of them.

    Under a limit of the cluster's that those of before fill, more of them are held by it as well.
    """
    given = given_limit(unchanged.name, [before])
    more = arm.worker_count > unchanged.worker_count
    if given is None or not (more and workers_fill(unchanged, given)):
        return None
    return limited_by_the_cluster(unchanged.name, given)


def made_one_sided(before: ResultRow, row: ResultRow) -> str | None:
    """Return how a server's nodes or pods were others than another one's; None: they were not.

    An arm that asks for more CPU may fit on another node alone. What disturbs the trials of both is
    in their interval; what is so in those of one of them cannot be told from what it has more of.
    """
    of_arm, of_unchanged = _made_otherwise(row), _made_otherwise(before)
    most, why = 0.0, ""
    for kind in of_arm | of_unchanged:
        one, other = of_arm.get(kind, (0.0, "")), of_unchanged.get(kind, (0.0, ""))
        if abs(one[0] - other[0]) > most:
            most, why = abs(one[0] - other[0]), max(one, other)[1]
    return why if most >= ONE_SIDED else None


def _made_otherwise(row: ResultRow) -> dict[tuple[str, ...], tuple[float, str]]:
    """Return in which share of its repetitions a server was otherwise, by what was, and a reason.

    Of several reasons the one that is said of the most.
    """
    found: dict[tuple[str, ...], tuple[float, str]] = {}
    reasons = filter(made_otherwise, row.validity_reasons)
    for reason in sorted(reasons, key=share_of_repetitions, reverse=True):
        share = share_of_repetitions(reason)
        # Of both its own server is the same part.
        known = about(reason.replace(f"server {row.server}", "server"))
        kinds: list[tuple[str, ...]] = [(known[0], known[-1])]
        resources = OTHER_RESOURCES.said(reason)
        if not resources:
            # Another node than the first is not the same for both; of twice as much CPU somebody
            # may have left a half to both.
            kinds.append(known)
        for kind in kinds:
            before, said = found.get(kind, (0.0, reason))
            # Limit and request may be others in the same repetitions; a pod has one node in each.
            found[kind] = max(before, share) if resources else before + share, said
    return found


def _open_ended(row: ResultRow) -> str | None:
    """Return why a server may do any amount more than was found; None where its end is known."""
    if row.compared_by.is_latency:
        return None
    found = next((one for one in row.validity_reasons if leaves_end_open(one)), None)
    return found and f"{row.server} may do more than was found: {found}"


def _why_none(row: ResultRow) -> str | None:
    """Return why a row has no figure to compare; None where it has one."""
    metric = row.compared_by
    if not metric.is_latency:
        return None if row.requests_per_second else f"{row.server} has no throughput"
    figure, what = row.response_time(metric), wording.metric(metric)
    if figure is None:
        fewest = fewest_answers(metric)
        return f"{row.server} has too few answers for its {what}: {fewest:,} in each repetition"
    if figure.seconds is None:
        return f"{what} of {row.server} fell among requests without a right answer"
    return None


def in_vain(row: ResultRow) -> str | None:
    """Return why no experiment on a server could tell anything under a load; None: one may.

    Where its response time fell among the requests without a right answer in half of its
    repetitions or more, it will do so again, and nothing can be compared with it.
    """
    figure = row.response_time(row.compared_by) if row.compared_by.is_latency else None
    if figure is None or not figure.failed or 2 * figure.failed < row.trials:
        return None
    fell = "fell among requests without a right answer"
    said = f"under {row.load} {wording.metric(row.compared_by)} of {row.server} {fell}"
    return f"{said}: a lower rate, or a closed load, has something to compare"


def given_limit(server: str, rows: Iterable[ResultRow]) -> str | None:
    """Return the limit of CPU that the cluster gave a server, as a quantity; None: none is known.

    Of a server of which the run has no limit: a LimitRange sets one, or an admission rule.
    """
    reasons = (reason for row in rows for reason in row.validity_reasons)
    given = (added_limit(reason, f"server {server}") for reason in reasons)
    return next(filter(None, given), None)


def limited_by_the_cluster(server: str, given: str) -> str:
    """Return what to do about a limit of CPU, as a quantity, that the cluster gave a server."""
    return (
        f"the cluster limits {server} to {given} CPU, and the run does not: write resources.cpu of "
        "it in a run, and explain that one"
    )


def _why_apart(row: ResultRow) -> str | None:
    """Return why a row cannot be compared with those of before; None where that is not said."""
    said = next(filter(ASKED_AGAIN.said, row.validity_reasons), None)
    return said and f"{row.server} was {said}"
