"""Who is fastest, and how a sentence says so without saying more than is known."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.blocks import block_of_loads, fullest, repetition_of
from laptime.analysis.comparing import Comparison
from laptime.analysis.left_out import LeftOut, clauses, left_out, nobody
from laptime.analysis.logs import ROUNDING, ByRepetition, Logs, has_no_end, left_open
from laptime.analysis.looks import looks_of
from laptime.analysis.ranks import fastest_first, ranks
from laptime.analysis.repeated import (
    compared_by,
    factor_of,
    logs_of,
    scores,
)
from laptime.analysis.rows import Cell
from laptime.analysis.statistics import paired_logs
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import Interval, ResultRow, Validity
from laptime.api.spec import BenchmarkRunSpec

_MAX_VERDICT = 1000
Pairs = Collection[tuple[str, str]]
"""Servers and loads."""


@dataclass(frozen=True)
class Ranking:
    """The servers by one figure, over all loads that are compared by it.

    A score is the mean, over these loads, of the logarithms of the figure in one repetition, more
    being better: its differences are the logarithms of geometric mean factors.
    """

    metric: Metric
    loads: tuple[str, ...]
    scores: Mapping[str, ByRepetition]
    """By server and repetition; only servers that have the figure under each of the loads."""
    under: Mapping[str, Collection[str]]
    """The servers that have the figure, by load."""
    order: tuple[str, ...]
    """Fastest first, of those that have a place: a single repetition that stays one has none where
    others have more, nor has who was measured at another time than most (blocks.py)."""
    leaders: tuple[str, ...]
    """Those that nobody is faster than for sure; of a single repetition the fastest, with all that
    may be as fast by what is left open of their figures."""
    once: bool
    """Whether that is the order of a single repetition, the only one that all with a place have."""
    unopposed: bool
    """Whether one alone has a place, while others have the figure or are still to be measured."""
    baseline: str
    factors: Mapping[str, Interval]
    """Against the baseline; where one repetition decides, those that are of it alone."""
    comparison: Comparison

    @property
    def repetitions(self) -> int:
        """The most repetitions that one with a place has."""
        return max((len(self.scores[name]) for name in self.order), default=0)

    @property
    def named(self) -> tuple[str, ...]:
        """Those whose figures the verdict is about; it compares the baseline with the next."""
        alone = self.order[:1] == self.leaders == (self.baseline,)
        return (*self.leaders, self.baseline, *(self.order[1:2] if alone else ()))

    def factor(self, server: str) -> Interval | None:
        """Return a server's factor against the baseline, over these loads; None if none."""
        return self.factors.get(server)


def rank(
    spec: BenchmarkRunSpec, cells: Mapping[tuple[str, str], Cell], coming: Pairs = ()
) -> tuple[Ranking, ...]:
    """Return a ranking of a run's servers for each figure that its loads are compared by.

    In the order of the loads. Throughputs and response times are not averaged with each other, nor
    are loads that stop after repetitions of their own: each of those has a ranking. So has each
    where the mean over all of them would leave somebody without a place. A load that
    says nothing of any server does not hide what the others say: one under which every server was
    given up is left out, and one under which none has the figure has a ranking of its own, without
    anybody. `coming` are the servers and loads of which trials are still to be made.
    """
    loads: dict[tuple[Metric, str], dict[str, Mapping[str, Logs]]] = {}
    results = [one for cell in cells.values() for one in cell.results]
    vain = in_vain(spec, cells, coming)
    for load in spec.loads:
        if load.name in vain:
            continue
        metric = compared_by(spec, load, results)
        known = _scores(spec, cells, metric, load.name)
        alone = spec.stop_when is not None or (
            not known and all(cell.measured or _is_over(cell, coming) for cell in _of(load, cells))
        )
        loads.setdefault((metric, load.name if alone else ""), {})[load.name] = known
    found: list[Ranking] = []
    for (metric, _), by_load in loads.items():
        together = _rank(spec, metric, by_load, coming)
        apart = ({name: one} for name, one in by_load.items())
        complete = len(together.order) == len(together.scores)
        found += [together] if complete else [_rank(spec, metric, one, coming) for one in apart]
    return tuple(found)


def in_vain(
    spec: BenchmarkRunSpec, cells: Mapping[tuple[str, str], Cell], coming: Pairs = ()
) -> list[str]:
    """Return the loads under which no server was measured, nor will be."""
    by_load = {load.name: _of(load, cells) for load in spec.loads}
    return [
        name
        for name, some in by_load.items()
        if some and all(not cell.measured and _is_over(cell, coming) for cell in some)
    ]


def _of(load: Load, cells: Mapping[tuple[str, str], Cell]) -> list[Cell]:
    return [cell for (_, name), cell in cells.items() if name == load.name]


def _is_over(cell: Cell, coming: Pairs) -> bool:
    return (cell.server, cell.load) not in coming


def _scores(
    spec: BenchmarkRunSpec, cells: Mapping[tuple[str, str], Cell], metric: Metric, load: str
) -> dict[str, Logs]:
    logs = {
        server.name: logs_of(cells[server.name, load].counted, metric)
        for server in spec.servers
        if server.name != spec.control_name and (server.name, load) in cells
    }
    return scores(logs, metric)


def _rank(
    spec: BenchmarkRunSpec,
    metric: Metric,
    by_load: Mapping[str, Mapping[str, Logs]],
    coming: Pairs,
) -> Ranking:
    found: dict[str, Logs] = {}
    for server in spec.servers:
        of_loads = [one.get(server.name, Logs({})) for one in by_load.values()]
        if mean := _mean_by_block(of_loads):
            found[server.name] = Logs(
                mean, left_open(*of_loads) / len(of_loads), has_no_end(*of_loads)
            )
    comparison = Comparison(found, looks_of(spec))
    beside = fullest(found)
    repeated = {name for name, logs in beside.items() if len(logs) > 1}
    goes_on = {server for server, load in coming if load in by_load}
    placed = {
        name: logs
        for name, logs in found.items()
        if name in repeated or name in goes_on or (not repeated and beside[name])
    }
    order = tuple(fastest_first(placed, comparison))
    places = ranks(placed, comparison)
    # In the order of the spec: among those that cannot be told apart there is no first.
    leaders = tuple(name for name in placed if places.get(name, 1) == 1)
    only = _only_block({name: beside[name] for name in placed})
    once = False
    if only is not None:
        in_only = fastest_first({name: {only: placed[name][only]} for name in placed})
        first = placed[in_only[0]]
        # Unless more repetitions say already that another one is faster.
        once = in_only[0] in leaders
        if once:
            order = tuple(in_only)
            leaders = tuple(one for one in leaders if _may_reach(placed[one], first, only))
    # A baseline without a place would give all others what one repetition of it says.
    of_baseline = comparison.factors(spec.baseline_name) if spec.baseline_name in placed else {}
    factors = {
        name: factor_of(ratio, metric)
        for name, ratio in of_baseline.items()
        if not once or len(paired_logs(found[name], found[spec.baseline_name])) == 1
    }
    rivals = goes_on.union(found) - {spec.control_name}
    return Ranking(
        metric,
        tuple(by_load),
        found,
        {load: tuple(one) for load, one in by_load.items()},
        order,
        leaders,
        once,
        len(order) == 1 and len(rivals.union(order)) > 1,
        spec.baseline_name,
        factors,
        comparison,
    )


def _only_block(beside: Mapping[str, Collection[int]]) -> int | None:
    """Return the block that all servers have where some have no other; None where all have more.

    While the second repetition goes on, who is faster in it says nothing: the machine may have
    been faster as well.
    """
    if not beside or min(map(len, beside.values())) > 1:
        return None
    return next(iter(set.intersection(*(set(blocks) for blocks in beside.values()))), None)


def _may_reach(one: Logs, first: Logs, block: int) -> bool:
    """Return whether a server may be as fast as the first of a block, by what is left open."""
    within = left_open(one, first) * (1 + ROUNDING)
    return has_no_end(one) or one[block] + within >= first[block]


def _mean_by_block(of_loads: Sequence[Logs]) -> dict[int, float]:
    """Return the means of a server over loads, in the repetitions that it has under each."""
    blocks = [{repetition_of(block): block for block in one} for one in of_loads]
    found = {}
    for repetition in sorted(set(blocks[0]).intersection(*blocks[1:])):
        of_each = [one[repetition] for one in blocks]
        logs = (one[block] for one, block in zip(of_loads, of_each, strict=True))
        found[block_of_loads(of_each)] = math.fsum(logs) / len(of_loads)
    return found


def verdict(
    spec: BenchmarkRunSpec,
    rankings: Sequence[Ranking],
    rows: Sequence[ResultRow],
    server_failures: Mapping[str, tuple[str, str]],
    finished: bool,
    vain: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return the result in a sentence of at most 1,000 characters.

    `vain` are loads under which no server was measured. `notes` stand at its end: what is to be
    kept in mind about all of it, so they are cut last.

    It says by which figure servers are compared, one clause for each.
    """
    known = [ranking for ranking in rankings if ranking.order]
    parts = [part for ranking in known for part in (_who(ranking, rows), *_done(ranking, rows))]
    parts += _doubts(known, rows)
    out = _never_measured(spec, rows, server_failures)
    # While nothing is known yet, what is not there may just be to come.
    missing = _left_out(spec, rankings, rows, out, finished) if known or finished else []
    if not parts and finished:
        somewhere = any(names for one in rankings for names in one.under.values())
        nothing, missing = nobody(missing, somewhere, tried=_tried(rows))
        parts.append(nothing)
    elif not parts:
        parts.append("nothing is measured yet")
    if out:
        reasons = [f"{name} ({server_failures[name][0]})" for name in out]
        parts.append(f"not measured: {wording.listing(reasons)}")
    parts += clauses(missing)
    parts += [part for ranking in known for part in _without_place(ranking)]
    if rankings:
        tried = [name for name in vain if _tried(row for row in rows if row.load == name)]
        others = [name for name in vain if name not in tried]
        for names, why in ((tried, "could be"), (others, "was")):
            if names:
                parts.append(f"nothing {why} measured under {wording.listing(names)}")
    said = "; ".join(parts)
    if known and not finished:
        said = f"so far: {said}"
    room = _MAX_VERDICT - len("; ".join(["", *notes]))
    # Notes on many loads leave half of it to what was found.
    return _cut("; ".join([_cut(said, max(room, _MAX_VERDICT // 2)), *notes]), _MAX_VERDICT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _tried(rows: Iterable[ResultRow]) -> bool:
    """Return whether each server was tried that was not measured: a row says why it was not."""
    return all(row.reason is not None for row in rows if not row.trials)


def _who(ranking: Ranking, rows: Sequence[ResultRow]) -> str:
    first, where, what = ranking.order[0], _where(ranking), wording.metric(ranking.metric)
    if len(ranking.order) == 1:
        of_first = [row for row in rows if row.server == first and row.load in ranking.loads]
        return _alone(ranking, of_first)
    if len(ranking.leaders) > 1:
        return _tie(ranking)
    is_fastest = f"was fastest{_once(ranking)}" if ranking.once else "is fastest"
    against_baseline = ranking.factor(first)
    if first == ranking.baseline:
        second = ranking.order[1]
        behind = ranking.factor(second)
        if behind is None:
            return f"{first}, the baseline, {is_fastest} by {what} {where}"
        share = f"{wording.factor(behind)} its {what}"
        return f"{first}, the baseline, {is_fastest}: the next, {second}, has {share} {where}"
    if against_baseline is None and ranking.baseline in ranking.scores:
        return f"of {wording.listing(ranking.order)} {first} {is_fastest} by {what} {where}"
    if against_baseline is None:
        measured = any(
            row.trials
            for row in rows
            if row.server == ranking.baseline and row.load in ranking.loads
        )
        no = f"the baseline has no {what}" if measured else "there is no baseline"
        return f"{first} {is_fastest} by {what} {where}, but {no} to compare it with"
    factor = wording.factor(against_baseline)
    return f"{first} {is_fastest}: {factor} the {what} of {ranking.baseline} {where}"


def _done(ranking: Ranking, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield the iterations under each script that is compared by response times.

    Of a server alone, or of the first two against the baseline: they say whether all had the same
    load.
    """
    if not ranking.metric.is_latency:
        return
    alone, against = len(ranking.order) == 1, ranking.baseline
    for load in ranking.loads:
        said = []
        for row in rows:
            done = row.script.iterations_figure if row.script is not None else None
            if done is None or row.load != load or row.server not in ranking.order[:2]:
                continue
            if alone:
                said.append(f"{row.server} did {wording.with_interval(done.estimate)} a second")
            elif done.factor is not None and row.server != against:
                said.append(f"{row.server} did {wording.factor(done.factor)} those of {against}")
        if said:
            yield f"of iterations under {load}, {wording.listing(said)}"


def _alone(ranking: Ranking, rows: Sequence[ResultRow]) -> str:
    if not ranking.metric.is_latency:
        rates = [
            f"{wording.with_interval(row.requests_per_second)} requests/s under {row.load}"
            for row in rows
            if row.requests_per_second
        ]
        return f"{ranking.order[0]} served {wording.listing(rates)}"
    times = [
        f"{wording.latency_figure(row.response_time(ranking.metric), ends=True)} under {row.load}"
        for row in rows
        if row.response_time(ranking.metric)
    ]
    what = wording.metric(ranking.metric)
    return f"{ranking.order[0]} has a {what} of {wording.listing(times)}"


def _tie(ranking: Ranking) -> str:
    names = wording.listing(ranking.leaders)
    what = wording.metric(ranking.metric)
    sentence = f"{names} cannot be told apart by {what} {_where(ranking)}{_once(ranking)}"
    if ranking.baseline not in ranking.leaders:
        found = {name: one for name in ranking.leaders if (one := ranking.factor(name))}
        # Not all need have a repetition in common with the baseline.
        some = f"{wording.listing([*found])} {'has' if len(found) == 1 else 'have'} "
        whose = some if len(found) < len(ranking.leaders) else ""
        if found:
            factors = wording.factors([*found.values()])
            sentence = f"{sentence}: {whose}{factors} that of {ranking.baseline}"
    return sentence


def _once(ranking: Ranking) -> str:
    """Return in words that the order is that of a single repetition, if it is."""
    if not ranking.once:
        return ""
    return " in the only repetition" + (" that all have" if ranking.repetitions > 1 else "")


def _where(ranking: Ranking) -> str:
    if len(ranking.loads) == 1:
        return f"under {ranking.loads[0]}"
    return f"over the loads {wording.listing(ranking.loads)} (geometric mean)"


def _doubts(rankings: Sequence[Ranking], rows: Sequence[ResultRow]) -> list[str]:
    """Return which figures behind the sentence are doubtful, with the first reason of each.

    Of the loads that they are ranked under, which are named where the run has others.
    """
    concerned = dict.fromkeys(
        (name, load)
        for ranking in rankings
        for name in ranking.named
        if name in ranking.scores
        for load in ranking.loads
    )
    by_pair = {(row.server, row.load): row for row in rows}
    doubtful: dict[str, list[ResultRow]] = {}
    for pair in concerned:
        row = by_pair.get(pair)
        if row is not None and row.validity not in (None, Validity.VALID):
            doubtful.setdefault(row.server, []).append(row)
    several = len({row.load for row in rows}) > 1
    doubts: list[str] = []
    for server, of_server in doubtful.items():
        reason = (of_server[0].validity_reasons or [str(of_server[0].validity)])[0]
        where = f" under {wording.listing([row.load for row in of_server])}" if several else ""
        doubts.append(f"the figures of {server}{where} are doubtful ({reason})")
    if len(doubts) > 2:
        return [f"the figures of {len(doubts)} of these servers are doubtful"]
    return doubts


def _never_measured(
    spec: BenchmarkRunSpec, rows: Sequence[ResultRow], failures: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Return the servers that are out and were measured under no load."""
    measured = {row.server for row in rows if row.trials}
    return [
        server.name
        for server in spec.servers
        if server.name in failures
        and server.name not in measured
        and server.name != spec.control_name
    ]


def _left_out(
    spec: BenchmarkRunSpec,
    rankings: Sequence[Ranking],
    rows: Sequence[ResultRow],
    out: Sequence[str],
    finished: bool,
) -> list[LeftOut]:
    """Return the other servers without a figure, load by load; without what is still to come."""
    return [
        left_out(row, ranking.metric)
        for ranking in rankings
        for load in ranking.loads
        for row in rows
        if row.load == load
        and row.server not in (*ranking.under[load], *out, spec.control_name)
        and (row.trials or finished)
    ]


def _without_place(ranking: Ranking) -> Iterator[str]:
    everywhere = set.intersection(*(set(names) for names in ranking.under.values()))
    names = [name for name in ranking.under[ranking.loads[0]] if name in everywhere]
    without = [name for name in names if name not in ranking.order]
    enough = min(2, ranking.repetitions)
    apart = [name for name in without if len(ranking.scores.get(name, ())) >= enough]
    few = [name for name in without if name not in apart]
    # Not always who was asked for again: where that were most, it is who was not.
    at_another_time = "measured at another time than most (`retry`)"
    for who, why in ((few, "fewer than two repetitions"), (apart, at_another_time)):
        if who:
            yield f"{_where(ranking)} {why}, and so no rank: {wording.listing(who)}"
