"""Who is fastest, and how a sentence says so without saying more than is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.ranks import fastest_first
from laptime.analysis.rows import Cell
from laptime.analysis.statistics import can_be_told_apart, interval_of_logs, paired_logs
from laptime.api.results import Interval, ResultRow, Validity
from laptime.api.spec import BenchmarkRunSpec

_KEPT_UP = 0.99
_MAX_VERDICT = 1000


@dataclass(frozen=True)
class Ranking:
    """The servers by throughput over all loads.

    A score is the mean, over all loads, of the logarithms of requests/s in one repetition: its
    differences are the logarithms of geometric mean factors.
    """

    scores: Mapping[str, Mapping[int, float]]
    """By server and repetition; only servers measured under every load."""
    order: tuple[str, ...]
    leaders: tuple[str, ...]
    """The fastest one, and those that cannot be told apart from it."""
    baseline: str

    @property
    def repetitions(self) -> int:
        """Repetitions behind the fastest server's score."""
        return len(self.scores[self.order[0]]) if self.order else 0

    def factor(self, server: str, against: str | None = None) -> Interval | None:
        """Return a server's factor against another (the baseline), over all loads; None if none."""
        other = against or self.baseline
        if server not in self.scores or other not in self.scores:
            return None
        logs = paired_logs(self.scores[server], self.scores[other])
        return interval_of_logs(logs) if logs else None


def rank(spec: BenchmarkRunSpec, cells: Mapping[tuple[str, str], Cell]) -> Ranking:
    """Return the ranking of a run's servers."""
    scores: dict[str, dict[int, float]] = {}
    for server in spec.servers:
        if server.name == spec.control_name:
            continue
        rates = [
            cells[server.name, load.name].log_rates if (server.name, load.name) in cells else {}
            for load in spec.loads
        ]
        repetitions = set(rates[0]).intersection(*rates[1:])
        if repetitions:
            scores[server.name] = {
                repetition: math.fsum(rate[repetition] for rate in rates) / len(rates)
                for repetition in sorted(repetitions)
            }
    order = tuple(fastest_first(scores, len(scores) - 1))
    # In the order of the spec: among those that cannot be told apart there is no first.
    leaders = tuple(
        name
        for name in scores
        if name == order[0]
        or (
            len(scores[order[0]]) > 1
            and not can_be_told_apart(scores[order[0]], scores[name], len(order) - 1)
        )
    )
    return Ranking(scores, order, leaders, spec.baseline_name)


def verdict(
    spec: BenchmarkRunSpec,
    ranking: Ranking,
    rows: Sequence[ResultRow],
    server_failures: Mapping[str, tuple[str, str]],
    finished: bool,
    notes: Sequence[str] = (),
) -> str:
    """Return the result in a sentence, cut at 1,000 characters; `notes` stand at its end."""
    if not ranking.order:
        said = "no server could be measured" if finished else "nothing is measured yet"
        parts = [said]
    else:
        parts = [_who(spec, ranking, rows), *_doubts(ranking, rows)]
    parts += [*_left_out(spec, ranking, server_failures, finished), *notes]
    sentence = "; ".join(parts)
    if ranking.order and not finished:
        sentence = f"so far: {sentence}"
    return sentence if len(sentence) <= _MAX_VERDICT else sentence[: _MAX_VERDICT - 1] + "…"


def _who(spec: BenchmarkRunSpec, ranking: Ranking, rows: Sequence[ResultRow]) -> str:
    first, where = ranking.order[0], _where(spec)
    if len(ranking.order) == 1:
        served = [row for row in rows if row.server == first and row.requests_per_second]
        figures = wording.listing(
            [
                f"{wording.with_interval(row.requests_per_second)} requests/s under {row.load}"
                for row in served
                if row.requests_per_second
            ]
        )
        return f"{first} served {figures}"
    if len(ranking.leaders) > 1:
        return _tie(spec, ranking, rows)
    is_fastest = "is fastest" if ranking.repetitions > 1 else "was fastest in the only repetition"
    against_baseline = ranking.factor(first)
    if first == ranking.baseline:
        second = ranking.order[1]
        behind = ranking.factor(second)
        share = f"{wording.factor(behind)} its throughput" if behind else "less throughput"
        return f"{first}, the baseline, {is_fastest}: the next, {second}, has {share} {where}"
    if against_baseline is None:
        return f"{first} {is_fastest} {where}, but there is no baseline to compare it with"
    factor = wording.factor(against_baseline)
    return f"{first} {is_fastest}: {factor} the throughput of {ranking.baseline} {where}"


def _tie(spec: BenchmarkRunSpec, ranking: Ranking, rows: Sequence[ResultRow]) -> str:
    names = wording.listing(ranking.leaders)
    sentence = f"{names} cannot be told apart by throughput {_where(spec)}"
    if ranking.baseline not in ranking.leaders:
        factors = [ranking.factor(name) for name in ranking.leaders]
        listed = wording.listing([wording.factor(one) for one in factors if one])
        if listed:
            sentence = f"{sentence}: {listed} that of {ranking.baseline}"
    if _kept_up(spec, ranking.leaders, rows):
        sentence += "; each kept up with the rate that was asked for, so compare their latencies"
    return sentence


def _kept_up(spec: BenchmarkRunSpec, servers: Sequence[str], rows: Sequence[ResultRow]) -> bool:
    asked = {load.name: float(load.open.rate) for load in spec.loads if load.open}
    # Over the whole of a ramp.
    asked |= {load.name: (load.ramp.from_ + load.ramp.to) / 2 for load in spec.loads if load.ramp}
    served = [row for row in rows if row.server in servers]
    return len(asked) == len(spec.loads) and all(
        row.requests_per_second is not None
        and row.requests_per_second.value >= _KEPT_UP * asked[row.load]
        for row in served
    )


def _where(spec: BenchmarkRunSpec) -> str:
    loads = [load.name for load in spec.loads]
    if len(loads) == 1:
        return f"under {loads[0]}"
    return f"over the loads {wording.listing(loads)} (geometric mean)"


def _doubts(ranking: Ranking, rows: Sequence[ResultRow]) -> list[str]:
    """Return which figures behind the sentence are doubtful, with the first reason of each."""
    concerned = dict.fromkeys([*ranking.leaders, ranking.baseline])
    doubts: list[str] = []
    for server in concerned:
        doubtful = [
            row
            for row in rows
            if row.server == server and row.validity not in (None, Validity.VALID)
        ]
        if doubtful and server in ranking.scores:
            reason = (doubtful[0].validity_reasons or [str(doubtful[0].validity)])[0]
            doubts.append(f"the figures of {server} are doubtful ({reason})")
    if len(doubts) > 2:
        return [f"the figures of {len(doubts)} of these servers are doubtful"]
    return doubts


def _left_out(
    spec: BenchmarkRunSpec,
    ranking: Ranking,
    server_failures: Mapping[str, tuple[str, str]],
    finished: bool,
) -> list[str]:
    missing = [
        server.name
        for server in spec.servers
        if server.name not in ranking.scores and server.name != spec.control_name
    ]
    failed = [name for name in missing if name in server_failures]
    parts = []
    if failed:
        reasons = [f"{name} ({server_failures[name][0]})" for name in failed]
        parts.append(f"not measured: {wording.listing(reasons)}")
    others = [name for name in missing if name not in server_failures]
    if others and finished and ranking.order:
        everywhere = "under every load" if len(spec.loads) > 1 else "at all"
        parts.append(f"without a right answer {everywhere}: {wording.listing(others)}")
    return parts
