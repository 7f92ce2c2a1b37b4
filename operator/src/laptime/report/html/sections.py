"""What the page shows of one load, ready for the template: words, tables and charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.analysis.logs import ByRepetition
from laptime.analysis.looks import looks_of
from laptime.analysis.published_order import OrderComparison, compare_order
from laptime.analysis.repeated import fewest_values, logs_by_server, scores
from laptime.analysis.ties import tie_groups
from laptime.api.loads import Load
from laptime.api.metrics import Metric
from laptime.api.results import ResultRow, TrialResult
from laptime.measure import (
    GeneratorError,
    Histogram,
    HistogramError,
    latency_histogram,
    measured_phase,
    parse_payload,
    right_answers_by_second,
)
from laptime.report.advice import advice
from laptime.report.contents import Report
from laptime.report.html.charts import (
    Chart,
    cpu_chart,
    factor_chart,
    latency_chart,
    throughput_chart,
)
from laptime.report.html.limits import Limit, Use, cores_by_second, counted, limits, usage
from laptime.report.html.palette import look
from laptime.report.markdown import (
    compared_by,
    describe_load,
    errors_of,
    factor_heading,
    lengths_said,
    small_tables,
    ties_said,
    validity_of,
)
from laptime.report.published import missing_said
from laptime.report.small_table import SmallTable

SERVER = "server"
_NO_CURVES = "The generator's own results were not at hand: no curves."
SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1.0)


@dataclass(frozen=True)
class Line:
    """One server in the table of results, in words."""

    server: str
    colour: str
    is_baseline: bool
    rate: str
    p50: str
    p90: str
    p99: str
    p999: str
    errors: str
    factor: str
    published: str
    group: str
    limited_by: str
    validity: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Everything about one load."""

    name: str
    shape: str
    lines: tuple[Line, ...]
    factor: str
    """What the factors are about."""
    compared_by: str
    groups_said: str
    """What the letters of groups say, or why there are none."""
    ties: tuple[str, ...]
    """What it would cost to tell apart servers that cannot be, a sentence each."""
    lengths: tuple[str, ...]
    """Which shorter trials would do, if any; a sentence."""
    published: bool
    missing_said: tuple[str, ...]
    """Why published factors are missing beside some, a sentence for each reason."""
    order: OrderComparison | None
    """The published order beside the measured one; None where nothing was published."""
    tables: tuple[SmallTable, ...]
    """What only loads of this kind have."""
    charts: tuple[Chart, ...]
    part_charts: tuple[Chart, ...]
    """CPU over time of every part but the servers."""
    percentiles: Mapping[str, Sequence[str]]
    """By server, one response time for each of `SHARES`, over all requests as in its row; of too
    few there is none."""
    limits: tuple[Limit, ...]
    usage: tuple[Use, ...]
    advice: Mapping[str, str]
    """What to do about the doubts and failures, each once."""
    missing: str
    """Why charts are missing; empty when they are there, or nothing was measured."""
    measured: bool
    """Whether it was, or nobody knows, since the trials were left out."""


def section(report: Report, load: Load, payloads: Mapping[str, str]) -> Section:
    """Return the section of a load; `payloads` are the generator's results by trial."""
    servers = [server.name for server in report.spec.servers]
    rows = [row for row in report.summary.rows if row.load == load.name]
    trials = [trial for trial in report.trials if trial.load == load.name]
    # Not by the trials, which may have been too large for what their scripts said.
    metric = compared_by(rows)
    known = scores(logs_by_server(trials, load.name, metric), metric)
    # As everywhere, the control is compared with the baseline alone.
    known.pop(report.spec.control_name or "", None)
    groups = tie_groups(known, looks_of(report.spec))
    limited = limits(report, load.name)
    shown = counted(trials, servers)
    histograms, failed, seconds = _of_generator(shown, payloads)
    published = report.published
    measured = not report.trials_known or any(one.figures is not None for one in trials)
    # It comes into styles. The API server lets no other name in, but results can be tampered with.
    identifier = f"chart-{re.sub('[^-a-z0-9]', '-', load.name)}"
    cores = cores_by_second(shown)
    charts = (
        factor_chart(rows, servers, f"{identifier}-factors"),
        latency_chart(histograms, failed, servers, f"{identifier}-latency"),
        throughput_chart(seconds, servers, f"{identifier}-throughput", load.ramp or load.stairs),
        cpu_chart(cores.pop(SERVER, {}), servers, f"{identifier}-cpu"),
    )
    part_charts = [
        cpu_chart(of_part, servers, f"{identifier}-cpu-{part}", part)
        for part, of_part in sorted(cores.items())
    ]
    return Section(
        name=load.name,
        shape=describe_load(load),
        lines=tuple(_line(report, row, servers, groups, limited) for row in rows),
        factor=factor_heading(rows).capitalize(),
        compared_by=wording.metric(metric),
        groups_said=_groups_said(report, known, groups, metric),
        ties=tuple(ties_said(report, load)),
        lengths=tuple(lengths_said(report, load)),
        published=any(row.published_factor is not None for row in rows),
        missing_said=tuple(missing_said(rows)),
        order=(
            compare_order(published, report.spec, load.name, trials)
            if published and report.trials_known
            else None
        ),
        tables=tuple(small_tables(report, load, rows)),
        charts=tuple(chart for chart in charts if chart is not None),
        part_charts=tuple(chart for chart in part_charts if chart is not None),
        percentiles={
            server: _by_share(one, failed[server])
            for server, one in histograms.items()
            if one.total
        },
        limits=tuple(limited),
        usage=tuple(usage(shown, servers)),
        advice=advice(rows),
        missing=_NO_CURVES if measured and not histograms else "",
        measured=measured,
    )


def _by_share(times: Histogram, failed: int) -> list[str]:
    """Return the percentiles of `SHARES`; those that would be the slowest answer are left out."""
    requests = times.total + failed
    return [
        "-" if share < 1 and requests < fewest_values(share) else wording.latency(value)
        for share, value in zip(SHARES, times.quantiles_with(failed, SHARES), strict=True)
    ]


def _groups_said(
    report: Report, known: Mapping[str, ByRepetition], groups: Mapping[str, str], metric: Metric
) -> str:
    if groups:
        return (
            "Servers that share a letter under Group cannot be told apart by "
            f"{wording.metric(metric)}: all pairs are compared, so that all answers hold at once "
            "with 95 %; differences below 1 % count as none."
        )
    if not report.trials_known:
        return "The trials did not fit into the results of the run: no groups."
    if len(known) < 2:
        return ""  # nobody to be compared with
    return "No two servers have two repetitions in common, so nobody knows how far chance goes."


def _of_generator(
    trials: Sequence[TrialResult], payloads: Mapping[str, str]
) -> tuple[dict[str, Histogram], dict[str, int], dict[str, list[dict[int, int]]]]:
    """Return what there is by server.

    Merged response times, the number of requests without a right answer beside them, and right
    answers by second of each repetition.
    """
    times: dict[str, list[Histogram]] = {}
    failed: Counter[str] = Counter()
    seconds: dict[str, list[dict[int, int]]] = {}
    for trial in trials:
        parsed = parse_payload(payloads.get(trial.trial, ""))
        phase = None if isinstance(parsed, GeneratorError) else measured_phase(parsed)
        if phase is None or trial.figures is None:
            continue
        try:
            times.setdefault(trial.server, []).append(latency_histogram(phase))
        except HistogramError:
            continue
        failed[trial.server] += trial.figures.errors
        seconds.setdefault(trial.server, []).append(right_answers_by_second(phase))
    merged = {server: Histogram.merged(all_of) for server, all_of in times.items()}
    return merged, failed, seconds


def _line(
    report: Report,
    row: ResultRow,
    servers: Sequence[str],
    groups: Mapping[str, str],
    limited: Sequence[Limit],
) -> Line:
    limit = next((one for one in limited if one.server == row.server), None)
    return Line(
        server=row.server,
        colour=look(servers, row.server).variable,
        is_baseline=row.server == report.spec.baseline_name,
        rate=wording.with_interval(row.requests_per_second) if row.requests_per_second else "-",
        p50=wording.latency_figure(row.response_time(Metric.P50), ends=True),
        p90=wording.latency_figure(row.response_time(Metric.P90), ends=True),
        p99=wording.latency_figure(row.response_time(Metric.P99), ends=True),
        p999=wording.latency_figure(row.response_time(Metric.P999), ends=True),
        errors=errors_of(row),
        factor=wording.factor(row.factor) if row.factor else "-",
        published=f"{wording.number(row.published_factor)}x" if row.published_factor else "-",
        group=groups.get(row.server, "-"),
        limited_by=(limit.cause if limit else "") or "-",
        validity=validity_of(row),
        notes=(*_notes(row), *report.repeated(row)),
    )


def _notes(row: ResultRow) -> list[str]:
    said = ": ".join(part for part in (row.reason, row.message) if part)
    first = [f"{str(row.state).lower()}: {said}"] if said else []
    warnings = row.script.warnings if row.script else []
    return [
        *first,
        *(f"{row.validity}: {reason}" for reason in row.validity_reasons),
        *(f"script: {warning}" for warning in warnings),
        *(f"CPU, memory and cause: {one}" for one in (row.usage.doubts if row.usage else [])),
    ]
