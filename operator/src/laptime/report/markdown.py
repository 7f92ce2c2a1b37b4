"""The report that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from laptime.analysis import wording
from laptime.analysis.published_order import compare_order
from laptime.api.causes import Cause
from laptime.api.loads import Arrivals, Load, OpenLoad, Protocol, RampLoad, StairsLoad
from laptime.api.metrics import Metric
from laptime.api.results import Outcome, ResultRow, RowState
from laptime.api.server import Server
from laptime.api.topology import Delay
from laptime.api.usage import RowUsage
from laptime.catalog import Published
from laptime.report.advice import advice
from laptime.report.arrivals import arrival_tables
from laptime.report.contents import Report
from laptime.report.intervals import intervals_said
from laptime.report.processes import process_tables
from laptime.report.published import HEADINGS, missing_said, published_tables
from laptime.report.requests import request_tables
from laptime.report.scripts import script_tables
from laptime.report.small_table import SmallTable

_HEADINGS = (
    "server", "rank", "requests/s (95 %)", "p50 (95 %)", "p99 (95 %)", "p99.9 (95 %)", "errors",
    "factor (95 %)",
    "CPU cores", "memory", "limited by (suspected)", "validity",
)  # fmt: skip
_PERCENTILES = (Metric.P50, Metric.P99, Metric.P999)
_OUTCOMES = {
    Outcome.MET: "met", Outcome.MISSED: "**missed**", Outcome.NOT_KNOWN: "**not known**",
}  # fmt: skip
_ACTIVE = re.compile(
    r"""
    (?P<word>
      (?: [a-z][a-z0-9+.-]{0,19}+:// | www\. | (?:mailto|xmpp): ) [^\s`|]+  # an address
    | (?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+                           # of mail
    | (?<!\w)@[a-z0-9][\w./-]*                                            # a person, a team
    | (?<![\w./-])[\w.-]++(?:/[\w.-]++)*+[#!]\d+ | [#!]\d+ | \bGH-\d+    # an issue
    )
    | [\\`*|<>\[\]~]
    | (?<![^\W_])_ | _(?![^\W_])                                           # _so_, but not in a_name
    | &(?=\#?\w+;)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FACTOR = 7
_PUBLISHED = 8
"""Place of the published factor in a line: beside the measured one."""


def to_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    spec, summary = report.spec, report.summary
    yield f"# {report.name}"
    yield ""
    yield f"**{_plain(summary.verdict)}**"
    yield ""
    if report.end_said:
        yield from (f"{_plain(report.end_said)}.", "")
    yield from _facts(report)
    for load in spec.loads:
        yield from _load(report, load)
    yield from _objectives(report)
    if report.published is not None:
        yield from _published(report.published)
    yield from _environment(report)
    yield from _images(report)
    yield from _explanation(report)


def _facts(report: Report) -> Iterator[str]:
    spec, summary = report.spec, report.summary
    begin, end = report.measured_between
    yield f"- Scenario: {scenario_said(report)}; baseline: {spec.baseline_name}"
    version = _plain(report.laptime_version)
    yield f"- Run: {report.namespace}/{report.name}; tiers: {tiers(report)}; Laptime {version}"
    yield f"- Trials: {report.trials_said}, shuffled with seed {report.seed}"
    if spec.precision:
        yield f"- Precision: {spec.precision} asked for, {_widest(report)} reached"
    for one in summary.control:
        yield f"- Control under {one.load}: {wording.control(one)}"
    if report.measured:
        yield f"- Nodes: {_plain(wording.isolation(summary.isolation))}"
    if begin and end:
        yield f"- Measured from {begin} to {end}"
    if report.left_out_said:
        yield f"- Not here: {_plain(report.left_out_said)}"


def scenario_said(report: Report) -> str:
    """Return which work it was: `shop, of namespace web, work 0123456789abcdef`."""
    name = report.spec.scenario
    if report.scenario_hash is None:
        return name
    where = f", of namespace {report.namespace}" if report.scenario_builtin is False else ""
    return f"{name}{where}, work {report.scenario_hash}"


def _widest(report: Report) -> str:
    width = report.summary.half_width
    return "none" if width is None else f"{wording.share(width)} to each side"


def small_tables(report: Report, load: Load, rows: Sequence[ResultRow]) -> list[SmallTable]:
    """Return the tables that only loads of some kind have, or servers with several workers."""
    return [
        *request_tables(report.trials, load),
        *arrival_tables(rows),
        *script_tables(rows),
        *process_tables(report.trials, report.spec.servers, load.name),
    ]


def tiers(report: Report) -> str:
    """Return the way of a request, and what stands beside: `server → Postgres; services: cache`."""
    topology, parts = report.spec.topology, []
    delay = topology.delay or Delay()
    if delay.servers is not None:
        parts.append(f"delay ({delay.servers_milliseconds}ms)")
    if topology.haproxy is not None:
        parts.append("HAProxy")
    parts.append("server")
    if delay.database is not None:
        parts.append(f"delay ({delay.database_milliseconds}ms)")
    if topology.pgbouncer is not None:
        parts.append("PgBouncer")
    if topology.postgres is not None:
        each = ", a database for each server" if topology.own_databases else ""
        parts.append(f"Postgres{each}")
    if topology.sqlite:
        parts.append("SQLite in its pod")
    upstream = topology.upstream
    asked = f"; upstream that takes {upstream.latency}" if upstream is not None else ""
    services = ", ".join(one.name for one in report.scenario.services) if report.scenario else ""
    own = "".join(f"; {one.name}: {said}" for one in report.spec.servers if (said := _own(one)))
    return " → ".join(parts) + asked + own + (f"; services: {services}" if services else "")


def _own(server: Server) -> str:
    """Return what the tiers did for a server alone; empty: nothing."""
    database = server.topology.postgres if server.topology else None
    pool = server.topology.pgbouncer if server.topology else None
    proxy = server.topology.haproxy if server.topology else None
    upstream = server.topology.upstream if server.topology else None
    said = []
    if upstream is not None:
        said.append(f"an upstream that takes {upstream.latency}")
    if database is not None:
        said.append(f"{database.cpu} CPU of Postgres")
    if pool is not None and pool.cpu is not None:
        said.append(f"{pool.cpu} CPU of PgBouncer")
    if pool is not None and pool.pool_size is not None:
        said.append(f"{pool.pool_size} connections in PgBouncer")
    if pool is not None and pool.pool_mode is not None:
        said.append(f"PgBouncer's pool mode {pool.pool_mode}")
    if proxy is not None and proxy.cpu is not None:
        said.append(f"{proxy.cpu} CPU of HAProxy")
    if proxy is not None and proxy.max_connections is not None:
        said.append(f"at most {proxy.max_connections} requests at once through HAProxy")
    return ", ".join(said)


def _load(report: Report, load: Load) -> Iterator[str]:
    rows = [row for row in report.summary.rows if row.load == load.name]
    published = any(row.published_factor is not None for row in rows)
    yield ""
    yield f"## Load {load.name}: {describe_load(load)}"
    yield ""
    headings = [*_HEADINGS]
    headings[_FACTOR] = f"{factor_heading(rows)} (95 %)"
    if published:
        headings.insert(_PUBLISHED, "published")
    yield _table_line(headings)
    yield _table_line(["---", *["---:"] * (len(headings) - 3), "---", "---"])
    for row in rows:
        yield _table_line(_cells(row, report.spec.baseline_name, published))
    yield from (part for one in missing_said(rows) for part in ("", _plain(one)))
    yield from _ties(report, load)
    yield from (part for one in lengths_said(report, load) for part in ("", f"Next time: {one}."))
    yield from _order(report, load)
    for table in small_tables(report, load, rows):
        yield from ("", f"{table.caption}:", "")
        yield _table_line(table.headings)
        yield _table_line(["---", *["---:"] * (len(table.headings) - 1)])
        for line in table.lines:
            yield _table_line([_plain(cell) for cell in line])
    notes = [
        note
        for row in rows
        for note in (*_notes(row), *_tried(report, row), *_repeated(report, row))
    ]
    if notes:
        yield ""
        yield from notes
    todo = advice(rows)
    if todo:
        yield from ("", "What to do:", "")
        yield from (f"- {_plain(what)}: {text}" for what, text in todo.items())


def compared_by(rows: Sequence[ResultRow]) -> Metric:
    """Return the figure that factors, ranks and groups of the rows of one load are about."""
    return rows[0].compared_by if rows else Metric.REQUESTS_PER_SECOND


def factor_heading(rows: Sequence[ResultRow]) -> str:
    """Return what the factors of the rows of one load are about: `factor`, `p99 factor`."""
    metric = compared_by(rows)
    return f"{wording.metric(metric)} factor" if metric.is_latency else "factor"


def _ties(report: Report, load: Load) -> Iterator[str]:
    said = ties_said(report, load)
    if said:
        yield from ("", "Ties:", "", *(f"- {_plain(one)}" for one in said))


def ties_said(report: Report, load: Load) -> list[str]:
    """Return what it would cost to tell apart the servers that a load does not, in words."""
    return [wording.tie(one) for one in report.summary.ties if one.load == load.name]


def lengths_said(report: Report, load: Load) -> list[str]:
    """Return which shorter trials would do for a load, in words; mostly none."""
    found = report.summary.trial_lengths
    return [wording.trial_length(one) for one in found if one.load == load.name]


def _order(report: Report, load: Load) -> Iterator[str]:
    if report.published is None or not report.trials_known:
        return
    found = compare_order(report.published, report.spec, load.name, report.trials)
    if found is not None:
        yield ""
        yield f"Same order as published: **{found.agreement}**. {_plain(found.text)}"


def describe_load(load: Load) -> str:
    """Return the shape of a load in words."""
    said = _shape(load)
    if load.protocol is Protocol.HTTP2 and load.script is None:
        said += ", over HTTP/2"
        said += f" with {load.streams} streams each" if load.streams > 1 else ""
    if load.arriving is not None and load.arriving.arrivals is Arrivals.POISSON:
        said += ", Poisson arrivals"
    if load.mix is not None:
        said += ", " + ", ".join(f"{one.weight} {one.name}" for one in load.mix)
    if load.think_time is not None:
        think = load.think_time
        said += f", thinking {think.min}" + (f" to {think.max}" if think.max else "")
    return said


def _shape(load: Load) -> str:
    if load.closed is not None:
        shape = load.closed
        keep = "with" if shape.keep_alive else "without"
        length = f"{shape.requests:,} requests" if shape.requests else f"for {shape.duration}"
        connections = (
            "1 connection" if shape.connections == 1 else f"{shape.connections} connections"
        )
        return f"closed, {connections} {keep} keep-alive, {length}"
    if load.arriving is None:
        return "a k6 script of one's own"
    keep = f"{'with' if load.arriving.keep_alive else 'without'} keep-alive"
    match load.arriving:
        case OpenLoad(rate=rate, duration=duration):
            return f"open, {rate:,} requests/s for {duration}, {keep}"
        case RampLoad() as ramp:
            return f"ramp, {ramp.from_:,} to {ramp.to:,} requests/s over {ramp.duration}, {keep}"
        case StairsLoad(steps=steps):
            rates = ", ".join(f"{step.rate:,} for {step.duration}" for step in steps)
            return f"stairs, requests/s: {rates}, {keep}"
        case search:
            return (
                f"saturation, the highest rate with a p99 of at most {search.p99} and errors of "
                f"at most {wording.share(search.error_rate)}, {keep}"
            )


def _cells(row: ResultRow, baseline: str, published: bool) -> list[str]:
    name = f"{row.server} (baseline)" if row.server == baseline else row.server
    rate = row.requests_per_second
    usage = row.usage
    cells = [
        name,
        str(row.rank or "-"),
        wording.with_interval(rate) if rate else "-",
        *(wording.latency_figure(row.response_time(one), ends=True) for one in _PERCENTILES),
        errors_of(row),
        wording.factor(row.factor) if row.factor else "-",
        _cores(usage),
        wording.memory(usage.memory_bytes) if usage and usage.memory_bytes else "-",
        wording.cause(row.limited_by.cause) if row.limited_by else "-",
        validity_of(row),
    ]
    if published:
        factor = row.published_factor
        cells.insert(_PUBLISHED, f"{wording.number(factor)}x" if factor is not None else "-")
    return cells


def _cores(usage: RowUsage | None) -> str:
    if usage is None or usage.cores_mean is None:
        return "-"
    text = wording.cores(usage.cores_mean)
    return text if usage.cores_peak is None else f"{text} (peak {wording.cores(usage.cores_peak)})"


def errors_of(row: ResultRow) -> str:
    """Return the errors of a row with their share: `10 (0.826%)`."""
    if row.error_rate is None:
        return "-"
    return f"{row.errors:,} ({wording.share(row.error_rate)})" if row.errors else "0"


def validity_of(row: ResultRow) -> str:
    """Return whether the figures of a row can be trusted, or that there are none."""
    if row.state in (RowState.FAILED, RowState.PENDING):
        return "failed" if row.state is RowState.FAILED else "not measured"
    return wording.validity(row)


def _tried(report: Report, row: ResultRow) -> Iterator[str]:
    for one in report.experiments_on(row):
        for said in one.found:
            yield f"- {row.server}, tried in {one.name}: {_plain(said)}"


def _notes(row: ResultRow) -> Iterator[str]:
    if row.reason or row.message:
        said = ": ".join(part for part in (row.reason, row.message) if part)
        yield f"- {row.server}, {str(row.state).lower()}: {_plain(said)}"
    for reason in row.validity_reasons:
        yield f"- {row.server}, {row.validity}: {_plain(reason)}"
    for warning in row.script.warnings if row.script else []:
        yield f"- {row.server}, script: {_plain(warning)}"
    if row.limited_by is not None:
        also = wording.listing([wording.cause(one) for one in row.limited_by.also])
        near = f"; near their limits too: {also}" if also else ""
        cause = wording.cause(row.limited_by.cause)
        evidence = _plain(row.limited_by.evidence)
        suspected = "" if row.limited_by.cause is Cause.UNKNOWN else " (suspected)"
        yield f"- {row.server}, limited by {cause}{suspected}: {evidence}{near}"
    if row.usage is not None:
        yield from _efficiency(row, row.usage)


def _repeated(report: Report, row: ResultRow) -> Iterator[str]:
    for said in report.repeated(row):
        yield f"- {row.server}, {_plain(said)}"


def _efficiency(row: ResultRow, usage: RowUsage) -> Iterator[str]:
    parts = []
    if usage.requests_per_cpu_second is not None:
        parts.append(f"{wording.number(usage.requests_per_cpu_second)} requests per CPU-second")
    if usage.requests_per_second_per_mib is not None:
        parts.append(f"{wording.number(usage.requests_per_second_per_mib)} requests/s per MiB")
    if row.statements_per_request is not None:
        parts.append(f"{wording.number(row.statements_per_request)} statements per request")
    if parts:
        yield f"- {row.server}: {', '.join(parts)}"
    for doubt in usage.doubts:
        yield f"- {row.server}, CPU, memory and cause: {_plain(doubt)}"


def _objectives(report: Report) -> Iterator[str]:
    if not report.summary.objectives:
        return
    yield from ("", "## Objectives", "")
    yield _table_line(["", "server", "load", "bound", "measured", "why"])
    yield _table_line(["---"] * 6)
    for one in report.summary.objectives:
        said = (_plain(text) for text in (one.bound, one.measured, one.message or ""))
        yield _table_line([_OUTCOMES[one.outcome], one.server, one.load, *said])


def _published(published: Published) -> Iterator[str]:
    yield from ("", f"## As published: {_plain(published.title)}")
    for table in published_tables(published):
        yield from ("", f"Load: {table.shape}", "")
        if table.order:
            yield from (f"Fastest first: {_plain(', '.join(table.order))}", "")
        if not table.lines:
            continue
        yield _table_line(HEADINGS)
        yield _table_line(["---", *["---:"] * (len(HEADINGS) - 1)])
        for line in table.lines:
            yield _table_line([_plain(cell) for cell in line])
    yield ""
    for note in published.notes:
        yield f"- {_plain(note)}"


def _environment(report: Report) -> Iterator[str]:
    if report.surroundings:
        yield from ("", "## Environment", "")
        for name, value in sorted(report.surroundings.items()):
            yield f"- {_plain(name)}: {_plain(value)}"


def _images(report: Report) -> Iterator[str]:
    said: dict[str, str] = {}
    for trial in report.trials:
        for part, image in trial.images.items():
            whose = {"server": f"server {trial.server}", "script": f"script of {trial.load}"}
            said.setdefault(whose.get(part, part), image)
    if said:
        yield from ("", "## Images", "")
        for part, image in sorted(said.items()):
            yield f"- {part}: {_plain(image)}"


def _explanation(report: Report) -> Iterator[str]:
    yield from (
        "",
        "## How to read this",
        "",
        "Requests/s are right answers within the measured window: "
        f"{intervals_said(report.spec)}. Factors of three servers and more come from one model of "
        "all of them. Intervals of servers that cannot be told apart are drawn so that they "
        "overlap. "
        "The factor divides a server's throughput by the baseline's, paired by repetition; where "
        "requests come at a fixed rate, it is that of a response time, and less is faster. "
        "Percentiles are over all requests, of which those without a right answer count as slower "
        "than all others: where one falls among them it says failed. Each repetition has its own, "
        "and value and interval are found as those of requests/s. They count from the moment a "
        "request was issued (closed load) or due (open load), connection set-up included, until "
        "the last byte of its answer arrived. "
        "Counted from when a request was sent, an open load hides what waiting for a connection "
        "did to users; lateness is from due to sent. A search names bounds that held in all "
        "repetitions. "
        "Warm-up is never counted. A doubtful figure says why. Servers that share a rank "
        "cannot be told apart; a rank is one more than the number of servers that are faster for "
        "sure. CPU cores and memory (highest working set) are the server's alone. What "
        "limited a server is the innermost resource that was full (docs/measurement.md): suspected "
        "from readings, until kubectl laptime explain proves it.",
    )


def comparison_to_markdown(
    headings: Sequence[str], lines: Sequence[Sequence[str]], said: str, notes: Sequence[str]
) -> str:
    """Return the comparison of two runs as Markdown: its table, what it comes to, notes."""
    written = [
        _table_line([_plain(one) for one in headings]),
        _table_line(["---"] * len(headings)),
        *(_table_line([_plain(cell) for cell in line]) for line in lines),
        "",
        _plain(said),
    ]
    if notes:
        written += ["", *(f"- {_plain(note)}" for note in notes)]
    return "\n".join(written) + "\n"


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return text of others so that Markdown shows it and does nothing else with it.

    Where people talk about a report, such as in a pull request, words call people, link to issues
    and to addresses by themselves: those stand as code, in which nothing does.
    """
    return _ACTIVE.sub(
        lambda found: f"`{found[0]}`" if found["word"] else f"\\{found[0]}", " ".join(text.split())
    )
