"""The documents in docs/results: one of each benchmark, and their index. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from measured import Measured, factor_of, published_factor_of

from laptime.analysis import wording
from laptime.analysis.published_order import Agreement, OrderComparison
from laptime.api.causes import Cause
from laptime.api.durations import format_duration
from laptime.api.results import ResultRow
from laptime.catalog import PublishedServer
from laptime.report.markdown import describe_load

BEGIN = "<!-- index: make examples writes it -->"
END = "<!-- end of the index -->"
_INDEX_HEAD = "| benchmark | measured | took | result | same order |\n|---|---|---|---|---|"
_HEAD = (
    "server", "factor (95 %)", "published factor", "requests/s (95 %)", "published requests/s",
    "limited by (suspected)",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where and when it was measured."""

    machine: str
    version: str
    """Of Laptime."""
    date: str
    """Of the day, such as 2026-11-21."""


def benchmark_document(measured: Measured, product_report: str, place: Place, path: str) -> str:
    """Return the document of a benchmark: the machine, both sides' figures, the whole report.

    `product_report` is the report in Markdown, `path` the file of the run below `examples`. Where
    nobody has published figures the report stands alone.
    """
    return "\n".join(_lines(measured, product_report, place, path)) + "\n"


def _lines(measured: Measured, product_report: str, place: Place, path: str) -> Iterator[str]:
    yield f"# {measured.name}"
    yield ""
    yield f"- Run: [`{path}`](../../examples/{path})"
    yield f"- Machine: {place.machine}"
    yield f"- Measured {place.date} by Laptime {place.version}, in {took(measured)}"
    published = measured.report.published
    if published is not None:
        yield from ("", "## Beside the published figures", "", f"Source: {published.title}.")
        for load in measured.spec.loads:
            yield from ("", f"### {load.name}: {describe_load(load)}", "")
            yield from _beside(measured, load.name)
    yield from ("", "## The report of the run", "")
    yield from _demoted(product_report)


def _beside(measured: Measured, load: str) -> Iterator[str]:
    rows = [row for row in measured.rows if row.load == load]
    yield _table_line(*_HEAD)
    yield _table_line("---", *["---:"] * (len(_HEAD) - 2), "---")
    for row in rows:
        yield _table_line(*_cells(measured, row))
    order = measured.orders.get(load)
    yield ""
    if order is None:
        yield "The source has no order of these servers under such a load."
    else:
        yield f"Same order: **{order.agreement}**. {order.text}{_why(order)}"
    limits = [(row.server, row.limited_by) for row in rows if row.limited_by is not None]
    if limits:
        yield ""
    for server, limit in limits:
        suspected = "" if limit.cause is Cause.UNKNOWN else " (suspected)"
        cause = f"{wording.cause(limit.cause)}{suspected}"
        yield f"- {server}, limited by {cause}: {_plain(limit.evidence)}"


def _why(order: OrderComparison) -> str:
    """Return what is known of why it is not the published order: nothing, without an experiment."""
    if order.agreement is Agreement.YES:
        return ""
    return " Why is **open**: no experiment has confirmed a cause ([findings](findings.md))."


def _cells(measured: Measured, row: ResultRow) -> list[str]:
    published = measured.report.published
    source = published.about(measured.spec, row.server, row.load) if published else None
    rate = row.requests_per_second
    return [
        row.server,
        factor_of(row, measured.spec.baseline_name),
        published_factor_of(row),
        wording.with_interval(rate) if rate else "-",
        _published_rate(source),
        wording.cause(row.limited_by.cause) if row.limited_by else "-",
    ]


def _published_rate(source: PublishedServer | None) -> str:
    if source is None or source.requests_per_second is None:
        return "-"
    return wording.number(source.requests_per_second)


def _demoted(report: str) -> Iterator[str]:
    """Yield the lines of a report without its title, its headings one level further down."""
    lines = report.rstrip("\n").split("\n")
    if lines and lines[0].startswith("# "):
        lines = lines[1:]
    while lines and not lines[0]:
        lines = lines[1:]
    for line in lines:
        yield f"#{line}" if re.match(r"#+ ", line) else line


def took(measured: Measured) -> str:
    """Return how long it took: `31m20s`."""
    return format_duration(measured.seconds)


def index_line(measured: Measured, place: Place) -> str:
    """Return the line of a benchmark in the index."""
    agreements = [order.agreement for order in measured.orders.values()]
    counts = [
        f"{agreement} under {agreements.count(agreement)}"
        for agreement in Agreement
        if agreement in agreements
    ]
    loads = len(agreements)
    order = f"{', '.join(counts)} of {loads} {'load' if loads == 1 else 'loads'}"
    return _table_line(
        f"[{measured.name}]({measured.name}.md)",
        place.date,
        took(measured),
        _plain(measured.report.summary.verdict),
        order if loads else "-",
    )


def updated_index(text: str, lines: Mapping[str, str]) -> str:
    """Return the text of the index with these lines, by benchmark; other lines of it stay.

    Raises:
        ValueError: the text has no place for the index.
    """
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the index has to stand between the lines {BEGIN} and {END}")
    kept = {found[1]: found[0] for found in re.finditer(r"^\| \[([^]]+)\].*$", old, re.MULTILINE)}
    table = "\n".join([_INDEX_HEAD, *{**kept, **lines}.values()])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _table_line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return text in which Markdown sees no mark-up."""
    return re.sub(r"([\\`*|<>\[\]])", r"\\\1", " ".join(text.split()))
