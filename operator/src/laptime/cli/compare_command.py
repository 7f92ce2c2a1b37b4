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
    from laptime.cli.compared_runs import Compared
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
    from laptime.cli.compared_runs import NamedRun, compared
    from laptime.cli.printing import print_all, print_document, say
    from laptime.report import comparison_to_markdown

    earlier, later = (
        NamedRun(one, _results(one, namespace, kubeconfig, context).report)
        for one in (before, after)
    )
    runs = compared(earlier, later)
    if output is ComparisonFormat.TABLE:
        print_all(_lines(runs, before, after))
    elif output is ComparisonFormat.MARKDOWN:
        headings, cells = _table(runs.found, before, after)
        differ = [_differ(runs.differences)] if runs.differences else []
        below = [*runs.notes, *differ, *runs.doubts]
        say(comparison_to_markdown(headings, cells, runs.sentence, below))
    else:
        print_document(_document(runs, before, after), Output(output.value))
    if fail_if_worse and runs.worse:
        raise typer.Exit(_WORSE_EXIT_CODE)
    if fail_if_worse and runs.may_be_worse:
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


def _table(
    found: Sequence[Comparison], before: str, after: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and lines; the last cell of a line is the change."""
    from laptime.analysis import wording
    from laptime.api.metrics import Metric
    from laptime.cli.compared_runs import figure_name

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
            figure_name(one),
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


def _lines(runs: Compared, before: str, after: str) -> list[Any]:
    from laptime.analysis.two_runs import Change
    from laptime.cli.printing import plain_table

    styles = {Change.BETTER: "green", Change.WORSE: "red", Change.NONE_FOUND: ""}
    headings, cells = _table(runs.found, before, after)
    rows: list[tuple[str | Text, ...]] = [
        (*line[:-1], Text(line[-1], styles.get(one.change, "dim")))
        for one, line in zip(runs.found, cells, strict=True)
    ]
    lines: list[Any] = [plain_table(headings, rows), *map(Text, [runs.sentence, *runs.notes])]
    if runs.differences:
        lines.append(Text(_differ(runs.differences), "yellow"))
    lines += [Text(f"  {doubt}", "yellow") for doubt in runs.doubts]
    return lines


def _differ(differences: Sequence[str]) -> str:
    return f"The runs differ in more: {'; '.join(differences)}."


def _document(runs: Compared, before: str, after: str) -> dict[str, Any]:
    from laptime.cli.compared_runs import figure_name

    def wire(interval: Interval | None) -> dict[str, Any] | None:
        return interval.to_wire() if interval else None

    return {
        "before": before,
        "after": after,
        "comparisons": [
            {
                "server": one.server,
                "load": one.load,
                "figure": figure_name(one),
                "before": wire(one.before),
                "after": wire(one.after),
                "failedBefore": one.failed_before,
                "failedAfter": one.failed_after,
                "ratio": wire(one.ratio),
                "relativeTo": list(one.relative_to),
                "change": str(one.change),
            }
            for one in runs.found
        ],
        "notes": list(runs.notes),
        "differences": list(runs.differences),
        "doubts": list(runs.doubts),
    }
