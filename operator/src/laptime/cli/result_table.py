"""The result of a run as a table for the terminal, out of nothing but its status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from laptime.analysis import wording
from laptime.analysis.against_baseline import AgainstBaseline
from laptime.api.causes import Cause
from laptime.api.isolation import Quietness
from laptime.api.metrics import Metric
from laptime.api.results import Interval, Outcome, ResultRow, RowState, Validity
from laptime.api.status import ConditionStatus, ConditionType, RunStatus, State
from laptime.cli.runs import Run
from laptime.report.contents import Experiment
from laptime.report.markdown import describe_load, errors_of, factor_heading
from laptime.report.published import missing_said
from laptime.report.scripts import counted_tables
from laptime.report.small_table import SmallTable

_ROUNDING = 0.001
"""Of a rate: so much longer may one side of its interval be for one width to tell of both."""
_PERCENTILES = (Metric.P50, Metric.P99, Metric.P999)
_OUTCOMES = {
    Outcome.MET: "[green]met      [/]",
    Outcome.MISSED: "[red]missed   [/]",
    Outcome.NOT_KNOWN: "[yellow]not known[/]",
}
_MARKS = {Validity.VALID: "green", Validity.DOUBTFUL: "yellow", Validity.INVALID: "red"}


def result_lines(
    run: Run, console: Console, experiments: Sequence[Experiment] = ()
) -> Iterator[RenderableType]:
    """Yield what to print: the verdict, one table per load, notes, isolation, objectives.

    With what `experiments` on the servers found beside what is suspected to limit them.
    A table that would not fit on the console's lines is set more closely.
    """
    status = run.status
    yield headline(run)
    rows = status.results or []
    for load in dict.fromkeys(row.load for row in rows):
        of_load = [row for row in rows if row.load == load]
        yield _widest(run, of_load, console)
        yield from (Text(f"  {one}", "dim") for one in missing_said(of_load))
        yield from (
            Text(f"  control: {wording.control(one)}", "dim")
            for one in status.control or []
            if one.load == load
        )
        costs = [wording.tie(one) for one in status.ties or [] if one.load == load]
        # What the verdict says already needs no line of its own.
        yield from (Text(f"  {one}", "dim") for one in costs if one not in (status.verdict or ""))
        yield from (
            Text(f"  {wording.trial_length(one)}", "dim")
            for one in status.trial_lengths or []
            if one.load == load
        )
        yield from map(_small, counted_tables(of_load))
    yield from _notes(rows, experiments)
    if any(row.trials for row in rows):
        disturbed = status.isolation is not None and status.isolation.word is Quietness.DISTURBED
        said = f"Nodes: {wording.isolation(status.isolation)}"
        yield Text(said, "yellow" if disturbed else "dim")
    for objective in status.objectives or []:
        said = f"{objective.server}, {objective.load}: {objective.bound}"
        why = f": {objective.message}" if objective.message else ""
        yield Text.from_markup(
            f"{_OUTCOMES[objective.outcome]} {escape(said)} "
            f"(measured {escape(objective.measured)}){escape(why)}",
            emoji=False,
        )


def headline(run: Run) -> Text:
    """Return how a run stands, and its verdict or why it ended so."""
    status = run.status
    succeeded = status.condition("Succeeded")
    style, said = "bold", status.verdict
    if status.state is State.SUCCEEDED:
        style = "bold green"
        # One that only verifies has no verdict.
        said = said or (succeeded.message if succeeded is not None else None)
    elif status.state in (State.FAILED, State.CANCELLED):
        style = "bold red" if status.state is State.FAILED else "bold yellow"
        if succeeded is not None:
            why = f"{succeeded.reason}: {succeeded.message}"
            # What was measured counts, and what is to be known of it stands there alone.
            measured = any(row.trials for row in status.results or [])
            said = f"{why}. {said}" if said and measured and said not in why else why
    elif status.progress is not None:
        said = status.progress.text
    text = Text(f"{run.name}: {status.state or 'not started'}", style)
    if said:
        text.append(f". {said}", "default not bold")
    return text


def _title(run: Run, name: str, repetitions: int) -> str:
    if run.spec is None:
        return f"Load {name}"
    said = wording.repetitions(repetitions)
    return f"Load {name}: {describe_load(run.spec.load(name))}, {said}"


def _repetitions(run: Run, rows: list[ResultRow]) -> int:
    """Return how many trials each row of a load is to have, as far as that is known."""
    # Where the results decide nobody knows before how many more there will be.
    made = max(row.trials for row in rows)
    return max(run.spec.first_look, made) if run.spec is not None else made


def _widest(run: Run, rows: list[ResultRow], console: Console) -> Table:
    """Return the fullest table that fits: CPU and memory only on wide consoles."""
    baseline, repetitions = run.status.baseline, _repetitions(run, rows)
    title = _title(run, rows[0].load, repetitions)
    over = run.status.state is not None and run.status.state.terminal
    unbounded = console.options.update_width(1000)
    sets = [{"narrow": False}, {"narrow": True}]
    if any(row.usage is not None for row in rows):
        sets.insert(0, {"narrow": False, "usage": True})
    for how in sets:
        table = _table(rows, baseline, title, repetitions, over=over, **how)
        if console.measure(table, options=unbounded).maximum <= console.width:
            return table
    return _table(rows, baseline, title, repetitions, over=over, narrow=True, folded=True)


def _small(said: SmallTable) -> Table:
    """Return a table of what a script counted."""
    table = Table(
        title=said.caption,
        title_justify="left",
        title_style="dim",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in said.headings:
        table.add_column(heading.lower(), overflow="fold")
    for line in said.lines:
        table.add_row(*map(Text, line))
    return table


def _table(
    rows: list[ResultRow],
    baseline: str | None,
    title: str,
    repetitions: int,
    *,
    over: bool,
    narrow: bool,
    folded: bool = False,
    usage: bool = False,
) -> Table:
    limits = any(row.limited_by is not None for row in rows)
    published = any(row.published_factor is not None for row in rows)
    checks = any(row.script is not None and wording.checks(row.script) for row in rows)
    table = Table(
        title=title,
        title_justify="left",
        title_style="dim",
        box=box.SIMPLE_HEAD,
        padding=0 if narrow else (0, 1),
        pad_edge=False,
    )
    table.add_column("server", overflow="fold")
    headings = ["requests/s", "p50", "p99", "p99.9", "errors", factor_heading(rows)]
    headings[0] = "req/s" if narrow else headings[0]
    if published:
        headings.append("publ." if narrow else "published")
    if usage:
        headings += ["CPU", "memory"]
    if checks:
        headings.append("checks")
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    if limits:
        # On two lines it takes no more room than the causes.
        table.add_column("limited by\n(suspected)", overflow="fold")
    table.add_column("validity", overflow="fold")
    for row in rows:
        cells: list[str | Text] = [row.server, *_figures(row, row.server == baseline)]
        if narrow:
            # An estimate and its interval on two lines, and where not even that fits on three.
            ends = "-\n" if folded else "-"
            compact = [str(cell).replace(" to ", ends) for cell in cells[1:]]
            cells[1:] = [cell.replace(" ", "\n", 1) for cell in compact]
        if published:
            factor = row.published_factor
            cells.append("" if factor is None else f"{wording.number(factor)}x")
        if usage:
            cells += _used(row)
        if checks:
            cells.append(_checks(row))
        if limits:
            cells.append(wording.cause(row.limited_by.cause) if row.limited_by else "-")
        cells.append(_validity(row, repetitions, over=over))
        table.add_row(*cells, style="dim" if row.state is RowState.PENDING else "")
    return table


def _figures(row: ResultRow, is_baseline: bool) -> list[str]:
    rate = row.requests_per_second
    percentiles = [
        _close(wording.latency_figure(row.response_time(name), ends=name is row.compared_by))
        for name in _PERCENTILES
    ]
    factor = "-" if row.factor is None else wording.factor(row.factor)
    if is_baseline and rate is not None:
        # Where a percentile failed in a repetition nothing can be compared with it.
        factor = f"{'-' if row.factor is None else '1x'} (baseline)"
    return ["-" if rate is None else format_rate(rate), *percentiles, errors_of(row), factor]


def _close(time: str) -> str:
    """Return a time without the space before its unit."""
    return time if time.startswith("failed") else time.replace(" ", "", 1)


def _used(row: ResultRow) -> list[str]:
    if row.usage is None:
        return ["-", "-"]
    cores, memory = row.usage.cores_mean, row.usage.memory_bytes
    return [
        "-" if cores is None else wording.cores(cores),
        "-" if memory is None else wording.memory(memory),
    ]


def _checks(row: ResultRow) -> str:
    script = row.script
    if script is None or not wording.checks(script):
        return "-"
    if not script.checks_failed:
        return "passed"
    total = script.checks_passed + script.checks_failed
    return f"{wording.share(script.checks_failed / total)} failed"


def format_rate(rate: Interval) -> str:
    """Return requests per second with the width of their interval to each side: `612 ± 8`.

    Where one side is longer, or the width rounds to nothing, both ends are given:
    `1,000 (992 to 1,049)`.
    """
    text = wording.number(rate.value)
    if rate.low is None or rate.high is None:
        return wording.with_interval(rate)
    digits = len(text.partition(".")[2])
    value, low, high = (round(one, digits) for one in (rate.value, rate.low, rate.high))
    below, above = value - low, high - value
    # The longer one: intervals that meet must not be printed apart.
    width = max(below, above)
    uneven = abs(above - below) > max(1.5 * 10**-digits, _ROUNDING * value)
    if value < 1 or uneven or width == 0:
        return wording.with_interval(rate)
    return f"{text} ± {width:,.{digits}f}"


def _validity(row: ResultRow, repetitions: int, *, over: bool) -> Text:
    if row.state is RowState.FAILED:
        return Text("failed", "red")
    if row.state is RowState.PENDING:
        return Text("not measured" if over else "pending")
    if row.validity is None:
        return Text("-")
    said = wording.validity(row)
    text = Text(said, _MARKS[row.validity] if said == str(row.validity) else "yellow")
    if row.state is RowState.PARTIAL:
        planned = max(repetitions, row.trials + row.failed_trials)
        text.append(f" ({row.trials}/{planned})", "yellow")
    return text


def _notes(rows: list[ResultRow], experiments: Sequence[Experiment]) -> Iterator[Text]:
    for row in rows:
        where = f"{row.server}, {row.load}" if len({r.load for r in rows}) > 1 else row.server
        if row.reason or row.message:
            said = ": ".join(part for part in (row.reason, row.message) if part)
            yield Text(f"  {where}: {said}", "red" if row.state is RowState.FAILED else "yellow")
        for reason in row.validity_reasons:
            yield Text(f"  {where}: {row.validity}: {reason}", "yellow")
        if row.lost_attempts:
            yield Text(f"  {where}: {wording.repeated(row.lost_attempts)}", "dim")
        for doubt in row.usage.doubts if row.usage else []:
            yield Text(f"  {where}: CPU, memory and cause: {doubt}", "yellow")
        yield from (Text(f"  {where}: {said}", "dim") for said in _arrivals(row))
        yield from (Text(f"  {where}: {said}", "dim") for said in _of_script(row))
        if row.limited_by is not None and row.limited_by.cause is not Cause.UNKNOWN:
            cause, evidence = wording.cause(row.limited_by.cause), row.limited_by.evidence
            yield Text(f"  {where}: limited by {cause} (suspected): {evidence}", "dim")
        for one in experiments:
            if (one.server, one.load) == (row.server, row.load):
                yield from (Text(f"  {where}: tried, {said}", "dim") for said in one.found)


def _arrivals(row: ResultRow) -> Iterator[str]:
    if row.saturation is not None:
        yield f"objective {wording.search(row.saturation)}"
    late = row.lateness_p99_seconds
    # One kind of estimate for both: what they differ by is the queue and nothing else.
    both = [row.due_and_sent(metric) for metric in (Metric.P50, Metric.P99, Metric.P999)]
    parts = []
    if all(due is not None and sent is not None for due, sent in both):
        due, sent = (
            wording.listing([wording.latency_figure(pair[one]) for pair in both]) for one in (0, 1)
        )
        parts.append(f"p50, p99 and p99.9 are {due} from due, {sent} from sent")
    if late is not None:
        parts.append(f"lateness p99 {wording.latency(late)}")
    if parts:
        yield "; ".join(parts)


def _of_script(row: ResultRow) -> Iterator[str]:
    if row.script is None:
        return
    script = row.script
    yield from script.warnings
    for host in script.other_hosts:
        yield (
            f"{host.requests:,} requests went to {host.host} and are in no figure "
            f"({host.errors:,} errors)"
        )


def exit_code(status: RunStatus, judged: AgainstBaseline | None = None) -> int:
    """Return what a gate needs.

    0 succeeded and met all objectives, 1 failed or not over, 2 missed one, 3 not known of one.
    Where servers are `judged` by the baseline, too, 2 is one that is worse, 3 one that may be.
    """
    if status.state is not State.SUCCEEDED:
        return 1
    objectives = status.condition(ConditionType.OBJECTIVES_MET)
    met = ConditionStatus.TRUE if objectives is None else objectives.status
    if met is ConditionStatus.FALSE or (judged and judged.worse):
        return 2
    return 3 if met is ConditionStatus.UNKNOWN or (judged and judged.not_known) else 0
