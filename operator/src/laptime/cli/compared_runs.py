"""Two runs, compared: what changed, what else differs, and what is to be doubted, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.cut_short import not_all_made
from laptime.analysis.run_differences import (
    other_cpus,
    other_images,
    paired_otherwise,
    same_in_both,
    what_differs,
)
from laptime.analysis.two_runs import (
    Change,
    Comparison,
    compare_runs,
    count_less,
    measured_in_one,
    speeds_apart,
)
from laptime.api.metrics import Metric
from laptime.cli.mistakes import Mistake
from laptime.report import Report

_Pairs = Sequence[tuple[str, str]]
"""Servers and loads."""


@dataclass(frozen=True)
class NamedRun:
    """One of the two runs, by the name that the user gave it."""

    name: str
    report: Report


@dataclass(frozen=True)
class Compared:
    """What there is to say of two runs."""

    found: Sequence[Comparison]
    not_judged: set[str]
    """What nobody can judge, but for single figures: the ends of "what ..."."""
    notes: Sequence[str]
    """What has to be known of the figures."""
    differences: Sequence[str]
    """What else the two runs differ in."""
    doubts: Sequence[str]

    @property
    def sentence(self) -> str:
        """What got better, worse, and what cannot be judged."""
        return _sentence(self.found, self.not_judged)

    @property
    def worse(self) -> bool:
        """Whether any figure got worse."""
        return any(one.change is Change.WORSE for one in self.found)

    @property
    def may_be_worse(self) -> bool:
        """Whether any may have, or may be so of what was not judged."""
        return bool(self.not_judged) or any(one.may_be_worse for one in self.found)


def compared(earlier: NamedRun, later: NamedRun) -> Compared:
    """Return what changed from one run to another.

    Raises:
        Mistake: the two have nothing that can be compared; the message says why.
    """
    before, after = earlier.report, later.report
    same = same_in_both(
        before.spec,
        after.spec,
        (before.trials, after.trials),
        (before.scenario_hash, after.scenario_hash),
        (before.scripts, after.scripts),
    )
    found = compare_runs(before.spec, before.trials, after.trials, after.spec, same)
    both = _in_both(before, after)
    if not both:
        raise Mistake(f"{earlier.name} and {later.name} have no server and load in common.")
    gone, new = measured_in_one(before.spec, before.trials, after.trials, after.spec)
    everything = both.union(gone, new)
    not_compared = _not_compared(both, found)
    incomplete = _incomplete(before, after)
    doubts = [
        *(f"{one.name}: {said}" for one in (earlier, later) if (said := one.report.end_said)),
        *not_compared,
        *count_less(before.trials, after.trials),
        *incomplete.values(),
        *(
            f"{one.name}: {doubt}"
            for one in (earlier, later)
            for doubt in _doubts(one.report, everything)
        ),
    ]
    if not found:
        nothing = f"Nothing in {earlier.name} and {later.name} can be compared:"
        raise Mistake("\n  ".join([nothing, *doubts]))
    # Of what stays the same only the machine can have lost trials.
    of_others = {(one.server, one.load) for one in found if one.change is not Change.SAME_SERVER}
    return Compared(
        found,
        _not_judged(
            gone=bool(gone),
            not_compared=bool(not_compared),
            fewer=bool(_lost(before, after, of_others)),
            cut_short=bool(of_others & incomplete.keys()),
        ),
        _notes(found, all_same=everything <= same),
        _differences(before, after, gone, new),
        doubts,
    )


def _incomplete(before: Report, after: Report) -> dict[tuple[str, str], str]:
    """Return of which servers and loads the later run made not all repetitions, and the words."""
    reason = (after.end.reason or None) if after.end else None
    return not_all_made(before.trials, after.trials, after.summary.rows, after.spec, reason)


def _lost(before: Report, after: Report, pairs: set[tuple[str, str]]) -> list[str]:
    """Return which of these servers and loads have fewer trials that count than before."""
    trials = (
        [one for one in run.trials if (one.server, one.load) in pairs] for run in (before, after)
    )
    return count_less(*trials)


def _differences(before: Report, after: Report, gone: _Pairs, new: _Pairs) -> list[str]:
    """Return what the runs differ in beside the servers that are compared."""
    differences = what_differs(
        before.spec,
        after.spec,
        (before.scenario_hash, after.scenario_hash),
        (before.placement, after.placement),
        (before.scripts, after.scripts),
    )
    differences += other_images(before.spec, before.trials, after.trials, after.spec)
    versions = [one.laptime_version for one in (before, after)]
    if versions[0] != versions[1]:
        differences.append(f"the version of Laptime: {' and '.join(versions)}")
    nodes = [_nodes(one) for one in (before, after)]
    if all(nodes) and nodes[0] != nodes[1]:
        differences.append(f"the nodes: {', '.join(nodes[0])} and {', '.join(nodes[1])}")
    differences += other_cpus(before.trials, after.trials)
    differences += [
        f"{server} under {load} has trials in the {which} one only"
        for which, pairs in (("earlier", gone), ("later", new))
        for server, load in pairs
    ]
    differences += paired_otherwise(before.trials, after.trials)
    if apart := speeds_apart(before.trials, after.trials):
        differences.append(apart)
    return differences


def _nodes(report: Report) -> list[str]:
    return sorted({node.node for one in report.trials if one.usage for node in one.usage.nodes})


def _in_both(before: Report, after: Report) -> set[tuple[str, str]]:
    """Return of which servers under which loads both runs have trials."""
    pairs = [{(one.server, one.load) for one in run.trials} for run in (before, after)]
    return pairs[0] & pairs[1]


def _not_compared(both: set[tuple[str, str]], found: Sequence[Comparison]) -> list[str]:
    """Return which of them have nothing to compare: their trials are invalid, or failed."""
    return [
        f"{server} under {load} is not compared: no trial of it counts in either run"
        for server, load in sorted(both - {(one.server, one.load) for one in found})
    ]


def _doubts(report: Report, both: set[tuple[str, str]]) -> list[str]:
    """Return why figures of what both runs have may be off, or are not there."""
    said = []
    for row in report.summary.rows:
        if (row.server, row.load) in both:
            where = f"{row.server} under {row.load}"
            if why := ": ".join(part for part in (row.reason, row.message) if part):
                said.append(f"{where}: {why}")
            said += [f"{where} is {row.validity}: {reason}" for reason in row.validity_reasons]
    return said


def _not_judged(*, gone: bool, not_compared: bool, fewer: bool, cut_short: bool) -> set[str]:
    """Return what nobody can judge, but for single figures: the end of "what ..."."""
    said = {
        "was not measured again": gone,
        "has no trial that counts": not_compared,
        "has fewer trials that count than before": fewer,
        "was not measured to the end": cut_short,
    }
    return {words for words, is_so in said.items() if is_so}


def _sentence(found: Sequence[Comparison], not_judged: set[str]) -> str:
    said = []
    for change in (Change.BETTER, Change.WORSE):
        names = [
            f"{one.server} ({figure_name(one)}, {one.load})"
            for one in found
            if one.change is change
        ]
        if names:
            said.append(f"{change}: {wording.listing(names)}")
    unknown = not_judged | {_why_not_known(one) for one in found if one.change is Change.NOT_KNOWN}
    if unknown:
        said.append(f"what {wording.listing(sorted(unknown), 'or')} cannot be judged")
    if not said:
        return "No difference found: a smaller one than the intervals say may still be there."
    return f"{'; '.join(said).capitalize()}."


def _why_not_known(one: Comparison) -> str:
    sides = (one.before, one.failed_before), (one.after, one.failed_after)
    if any(figure is None and not failed for figure, failed in sides):
        return "has no figure in one of the runs"
    if one.failed_before or one.failed_after:
        return "may have failed by no doing of its own"
    if one.open_ended:
        return "may do more than its search found"
    if one.relative_to:
        return "is relative to servers that did not change alike"
    return "has a figure of one repetition only"


def _notes(found: Sequence[Comparison], *, all_same: bool) -> list[str]:
    """Return what has to be known of the lines, as far as there are such."""
    others = [one for one in found if one.change is not Change.SAME_SERVER]
    relative = [one for one in others if one.relative_to]
    by_themselves = len(others) - len(relative)
    said = []
    if any(one.ratio is not None for one in relative):
        names = list(dict.fromkeys(name for one in relative for name in one.relative_to))
        are, them = ("is", "it") if len(names) == 1 else ("are", "them")
        said.append(
            f"A factor relative to {wording.listing(names)}, which {are} the same in both runs, is "
            f"not the quotient of the two figures beside it: what changed for {them} is taken off."
        )
    if len(others) < len(found):
        said.append(
            "What changed for the same servers is what the machine did between the two runs, or "
            "anything else that the servers of a run share."
        )
    if all_same:
        said.append(
            "By specs and images no server has changed: what is better or worse is what else "
            "differs, or what the machine did between the two runs, which is in no interval."
        )
    elif by_themselves:
        of = " of the other lines" if relative else ""
        more = "add to both runs a server that stays the same"
        if len(others) < len(found):
            more = "more repetitions: servers that stay the same share too few with them"
        said.append(
            f"What the machine did between the two runs is in no interval{of}: measure both "
            f"versions in one run, or {more}."
        )
    return said


def figure_name(one: Comparison) -> str:
    """Return the name of the figure that is compared."""

    return "requests/s" if one.metric is Metric.REQUESTS_PER_SECOND else wording.metric(one.metric)
