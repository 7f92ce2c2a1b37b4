"""`laptime compare`: the same servers in two runs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from laptime.cli.completion import run_names
from laptime.cli.mistakes import Mistake
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    connect,
    existing_run,
    namespace_of,
)

if TYPE_CHECKING:
    from laptime.analysis.two_runs import Comparison
    from laptime.api.results import Interval
    from laptime.cli.stored_results import Stored

_WORSE_EXIT_CODE = 2
_NOT_KNOWN_EXIT_CODE = 3


class ComparisonFormat(StrEnum):
    """What `compare` makes of two runs."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"
    YAML = "yaml"


def compare(
    before: Annotated[
        str,
        typer.Argument(help="The earlier run, or a results.json of it.", autocompletion=run_names),
    ],
    after: Annotated[
        str,
        typer.Argument(help="The later run, or a results.json of it.", autocompletion=run_names),
    ],
    output: Annotated[
        ComparisonFormat,
        typer.Option("--output", "-o", help="For people, for a pull request, or for programs."),
    ] = ComparisonFormat.TABLE,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit with 2 when any figure got worse, with 3 when none did for sure and any may "
            "have.",
        ),
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say whether servers have changed from one run to another, and how sure that is.

    Welch's test on the logarithms of the repetitions; less than 1 % is no difference. The intervals
    of all lines hold at once with 95 %, as far as chance within the runs goes: what the machine did
    between the two runs is in no interval. Measure both versions in one run, or add to both runs a
    server that stays the same: the others are compared relative to it then.
    """
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
        compare_runs,
        count_less,
        measured_in_one,
        speeds_apart,
    )
    from laptime.cli.printing import print_all, print_document, say
    from laptime.report import comparison_to_markdown

    earlier, later = (_results(one, namespace, kubeconfig, context) for one in (before, after))
    works = earlier.report.scenario_hash, later.report.scenario_hash
    scripts = earlier.report.scripts, later.report.scripts
    same = same_in_both(
        earlier.report.spec,
        later.report.spec,
        (earlier.report.trials, later.report.trials),
        works,
        scripts,
    )
    found = compare_runs(
        earlier.report.spec, earlier.report.trials, later.report.trials, later.report.spec, same
    )
    both = _in_both(earlier, later)
    if not both:
        raise Mistake(f"{before} and {after} have no server and load in common.")
    gone, new = measured_in_one(
        earlier.report.spec, earlier.report.trials, later.report.trials, later.report.spec
    )
    not_compared = _not_compared(both, found)
    fewer = count_less(earlier.report.trials, later.report.trials)
    end = later.report.end
    incomplete = not_all_made(
        earlier.report.trials,
        later.report.trials,
        later.report.summary.rows,
        later.report.spec,
        (end.reason or None) if end else None,
    )
    ends = [
        f"{name}: {said}"
        for name, stored in ((before, earlier), (after, later))
        if (said := stored.report.end_said)
    ]
    doubts = [
        *ends,
        *not_compared,
        *fewer,
        *incomplete.values(),
        *(
            f"{name}: {doubt}"
            for name, stored in ((before, earlier), (after, later))
            for doubt in _doubts(stored, both.union(gone, new))
        ),
    ]
    if not found:
        raise Mistake("\n  ".join([f"Nothing in {before} and {after} can be compared:", *doubts]))
    differences = what_differs(
        earlier.report.spec,
        later.report.spec,
        works,
        (earlier.report.placement, later.report.placement),
        scripts,
    )
    differences += other_images(
        earlier.report.spec, earlier.report.trials, later.report.trials, later.report.spec
    )
    versions = [one.report.laptime_version for one in (earlier, later)]
    if versions[0] != versions[1]:
        differences.append(f"the version of Laptime: {' and '.join(versions)}")
    nodes = [_nodes(one) for one in (earlier, later)]
    if all(nodes) and nodes[0] != nodes[1]:
        differences.append(f"the nodes: {', '.join(nodes[0])} and {', '.join(nodes[1])}")
    differences += other_cpus(earlier.report.trials, later.report.trials)
    differences += [
        f"{server} under {load} has trials in the {which} one only"
        for which, pairs in (("earlier", gone), ("later", new))
        for server, load in pairs
    ]
    differences += paired_otherwise(earlier.report.trials, later.report.trials)
    if apart := speeds_apart(earlier.report.trials, later.report.trials):
        differences.append(apart)
    # Of what stays the same only the machine can have lost trials.
    of_others = {(one.server, one.load) for one in found if one.change is not Change.SAME_SERVER}
    lost = count_less(
        *(
            [one for one in run.report.trials if (one.server, one.load) in of_others]
            for run in (earlier, later)
        )
    )
    unmade = of_others & incomplete.keys()
    not_judged = _not_judged(bool(gone), bool(not_compared), bool(lost), bool(unmade))
    sentence = _sentence(found, not_judged)
    notes = _notes(found, all_same=both.union(gone, new) <= same)
    if output is ComparisonFormat.TABLE:
        print_all(_lines(found, before, after, [sentence, *notes], differences, doubts))
    elif output is ComparisonFormat.MARKDOWN:
        headings, cells = _table(found, before, after)
        differ = [_differ(differences)] if differences else []
        say(comparison_to_markdown(headings, cells, sentence, [*notes, *differ, *doubts]))
    else:
        document = _document(found, before, after, notes, differences, doubts)
        print_document(document, Output(output.value))
    if fail_if_worse and any(one.change is Change.WORSE for one in found):
        raise typer.Exit(_WORSE_EXIT_CODE)
    if fail_if_worse and (not_judged or any(one.may_be_worse for one in found)):
        raise typer.Exit(_NOT_KNOWN_EXIT_CODE)


def _results(
    argument: str, namespace: str | None, kubeconfig: Path | None, context: str | None
) -> Stored:
    from laptime.cli.stored_results import results_of_file, stored_results

    if argument.endswith(".json"):
        stored = results_of_file(Path(argument))
    else:
        cluster = connect(kubeconfig, context)
        target = namespace_of(namespace, None, cluster)
        stored = stored_results(cluster, existing_run(cluster, target, argument))
    if not stored.report.trials:
        raise Mistake(
            f"{argument} has no figures of single trials"
            + (": they did not fit into its results" if stored.results.left_out else "")
        )
    return stored


def _nodes(stored: Stored) -> list[str]:
    trials = stored.report.trials
    return sorted({node.node for one in trials if one.usage for node in one.usage.nodes})


def _in_both(earlier: Stored, later: Stored) -> set[tuple[str, str]]:
    """Return of which servers under which loads both runs have trials."""
    pairs = [{(one.server, one.load) for one in run.report.trials} for run in (earlier, later)]
    return pairs[0] & pairs[1]


def _not_compared(both: set[tuple[str, str]], found: Sequence[Comparison]) -> list[str]:
    """Return which of them have nothing to compare: their trials are invalid, or failed."""
    return [
        f"{server} under {load} is not compared: no trial of it counts in either run"
        for server, load in sorted(both - {(one.server, one.load) for one in found})
    ]


def _doubts(stored: Stored, both: set[tuple[str, str]]) -> list[str]:
    """Return why figures of what both runs have may be off, or are not there."""
    said = []
    for row in stored.report.summary.rows:
        if (row.server, row.load) in both:
            where = f"{row.server} under {row.load}"
            if why := ": ".join(part for part in (row.reason, row.message) if part):
                said.append(f"{where}: {why}")
            said += [f"{where} is {row.validity}: {reason}" for reason in row.validity_reasons]
    return said


def _table(
    found: Sequence[Comparison], before: str, after: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and lines; the last cell of a line is the change."""
    from laptime.analysis import wording
    from laptime.api.metrics import Metric

    def figure(one: Comparison, interval: Interval | None, failed: int) -> str:
        if interval is None:
            return f"failed ({failed}x)" if failed else "-"
        if one.metric is Metric.REQUESTS_PER_SECOND:
            return wording.number(interval.value)
        return wording.latency(interval.value)

    headings = ("SERVER", "LOAD", "FIGURE", before, after, "AFTER / BEFORE (95 %)", "CHANGE")
    return headings, [
        (
            one.server,
            one.load,
            _figure_name(one),
            figure(one, one.before, one.failed_before),
            figure(one, one.after, one.failed_after),
            wording.factor(one.ratio) if one.ratio else "-",
            _change_said(one),
        )
        for one in found
    ]


def _change_said(one: Comparison) -> str:
    if not one.relative_to:
        return str(one.change)
    # Below the table they have their names, once.
    several = len(one.relative_to) > 1
    measure = f"{len(one.relative_to)} same servers" if several else one.relative_to[0]
    return f"{one.change}, relative to {measure}"


def _lines(
    found: Sequence[Comparison],
    before: str,
    after: str,
    sentences: Sequence[str],
    differences: Sequence[str],
    doubts: Sequence[str],
) -> list[Any]:
    from laptime.analysis.two_runs import Change
    from laptime.cli.printing import plain_table

    styles = {Change.BETTER: "green", Change.WORSE: "red", Change.NONE_FOUND: ""}
    headings, cells = _table(found, before, after)
    rows: list[tuple[str | Text, ...]] = [
        (*line[:-1], Text(line[-1], styles.get(one.change, "dim")))
        for one, line in zip(found, cells, strict=True)
    ]
    lines: list[Any] = [plain_table(headings, rows), *map(Text, sentences)]
    if differences:
        lines.append(Text(_differ(differences), "yellow"))
    lines += [Text(f"  {doubt}", "yellow") for doubt in doubts]
    return lines


def _differ(differences: Sequence[str]) -> str:
    return f"The runs differ in more: {'; '.join(differences)}."


def _figure_name(one: Comparison) -> str:
    from laptime.analysis import wording
    from laptime.api.metrics import Metric

    return "requests/s" if one.metric is Metric.REQUESTS_PER_SECOND else wording.metric(one.metric)


def _not_judged(gone: bool, not_compared: bool, fewer: bool, cut_short: bool) -> set[str]:
    """Return what nobody can judge, but for single figures: the end of "what ..."."""
    said = {
        "was not measured again": gone,
        "has no trial that counts": not_compared,
        "has fewer trials that count than before": fewer,
        "was not measured to the end": cut_short,
    }
    return {words for words, is_so in said.items() if is_so}


def _sentence(found: Sequence[Comparison], not_judged: set[str]) -> str:
    from laptime.analysis import wording
    from laptime.analysis.two_runs import Change

    said = []
    for change in (Change.BETTER, Change.WORSE):
        names = [
            f"{one.server} ({_figure_name(one)}, {one.load})"
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
    from laptime.analysis import wording
    from laptime.analysis.two_runs import Change

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


def _document(
    found: Sequence[Comparison],
    before: str,
    after: str,
    notes: Sequence[str],
    differences: Sequence[str],
    doubts: Sequence[str],
) -> dict[str, Any]:
    def wire(interval: Interval | None) -> dict[str, Any] | None:
        return interval.to_wire() if interval else None

    return {
        "before": before,
        "after": after,
        "comparisons": [
            {
                "server": one.server,
                "load": one.load,
                "figure": _figure_name(one),
                "before": wire(one.before),
                "after": wire(one.after),
                "failedBefore": one.failed_before,
                "failedAfter": one.failed_after,
                "ratio": wire(one.ratio),
                "relativeTo": list(one.relative_to),
                "change": str(one.change),
            }
            for one in found
        ],
        "notes": list(notes),
        "differences": list(differences),
        "doubts": list(doubts),
    }
