"""The results of a run as one JSON document, and the files that its archive begins with."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from laptime.analysis import Summary
from laptime.api.node_path import NodePath
from laptime.api.placement import RunPlacement
from laptime.api.results import ResultRow, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.catalog import Scenario, stored_document
from laptime.report.contents import End, Report
from laptime.report.feeders import feeders_kept, without_rows
from laptime.report.results import SCHEMA_VERSION
from laptime.report.status import estimates_alone

JSON_FILE = "results.json"
MAX_JSON_BYTES = 600_000
"""Well below the 1 MiB that a ConfigMap may have."""

# A list of numbers and nulls. No text can hold one: there a line break is written as an escape.
_NUMBERS = re.compile(r"\[\n[\s\d.,eE+\-nul]+\]")


def result_files(
    name: str,
    namespace: str,
    spec: BenchmarkRunSpec,
    seed: int,
    summary: Summary,
    trials: Sequence[TrialResult],
    scenario: Scenario | None = None,
    placement: RunPlacement | None = None,
    node_paths: Sequence[NodePath] = (),
    end: End | None = None,
    scripts: Sequence[KeptScript] = (),
) -> dict[str, str]:
    """Return the files about the whole run, by name."""
    report = Report(
        name,
        namespace,
        spec,
        seed,
        summary,
        trials,
        scenario=without_rows(scenario) if scenario else None,
        scenario_hash=scenario.hash if scenario else None,
        scenario_builtin=scenario.builtin if scenario else None,
        feeders=feeders_kept(scenario) if scenario else (),
        published=scenario.published if scenario else None,
        placement=placement,
        node_paths=node_paths,
        end=end,
        scripts=scripts,
    )
    return {JSON_FILE: to_json(report)}


def to_json(report: Report, max_bytes: int = MAX_JSON_BYTES) -> str:
    """Return the document as JSON, the same for the same report.

    Of a run too large for `max_bytes` first CPU over time of each trial is left out, then its
    figures per request and what its script says, then the metrics of scripts, then the trials, then
    what the rows say beyond figures and the intervals of their response times, then the response
    times of all repetitions together; `leftOut` lists what is missing.
    Nothing else is ever left out: the rows of the largest run that the schema allows fit.
    """
    text = ""
    for document in _smaller_and_smaller(_document(report), report.summary.rows):
        text = json_text(document)
        if len(text.encode()) > max_bytes:
            text = json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"
        if len(text.encode()) <= max_bytes:
            break
    return text


def json_text(document: Any) -> str:
    """Return a document as it is written for people: a list of numbers is in one line."""
    return _NUMBERS.sub(_in_a_line, json.dumps(document, ensure_ascii=False, indent=1)) + "\n"


def _document(report: Report) -> dict[str, Any]:
    summary, published = report.summary, report.published
    begin, end = report.measured_between
    return {
        "schemaVersion": SCHEMA_VERSION,
        "laptimeVersion": report.laptime_version,
        "run": {
            "name": report.name,
            "namespace": report.namespace,
            "seed": report.seed,
            "baseline": report.spec.baseline_name,
            "startedAt": begin,
            "finishedAt": end,
            **(asdict(report.end) if report.end else {}),
            **({"placement": report.placement.to_wire()} if report.placement else {}),
            **({"scripts": [one.to_wire() for one in report.scripts]} if report.scripts else {}),
            **({"nodePaths": paths} if (paths := [p.to_wire() for p in report.node_paths]) else {}),
        },
        "scenario": _scenario(report),
        "environment": dict(sorted(report.environment.items())),
        "verdict": summary.verdict,
        "fastest": summary.fastest,
        "fastestFactor": summary.fastest_factor,
        "rows": [row.to_wire() for row in summary.rows],
        "control": [one.to_wire() for one in summary.control],
        "ties": [one.to_wire() for one in summary.ties],
        "trialLengths": [one.to_wire() for one in summary.trial_lengths],
        "halfWidth": summary.half_width,
        **({"isolation": summary.isolation.to_wire()} if summary.isolation else {}),
        "objectives": [objective.to_wire() for objective in summary.objectives],
        "published": published.to_wire() if published else None,
        "spec": report.spec.to_wire(),
        "trials": [trial.to_wire() for trial in report.trials],
        "leftOut": [],
    }


def _scenario(report: Report) -> dict[str, Any] | None:
    if report.scenario_hash is None:
        return None
    kept = report.scenario
    return {
        "hash": report.scenario_hash,
        "builtin": report.scenario_builtin,
        "feeders": [one.to_wire() for one in report.feeders],
        "document": stored_document(kept) if kept else None,
    }


def _in_a_line(numbers: re.Match[str]) -> str:
    return f"[{' '.join(numbers[0][1:-1].split())}]"


def _without_detail(trial: dict[str, Any], detail: str) -> dict[str, Any]:
    usage = trial.get("usage")
    if usage is None:
        return trial
    parts = [
        {key: value for key, value in part.items() if key != detail} for part in usage["components"]
    ]
    return {**trial, "usage": {**usage, "components": parts}}


def _without_metrics(row: dict[str, Any]) -> dict[str, Any]:
    if "script" not in row:
        return row
    script = {key: value for key, value in row["script"].items() if key != "metrics"}
    return {**row, "script": script}


def _smaller_and_smaller(
    document: dict[str, Any], whole_rows: Sequence[ResultRow]
) -> Iterator[dict[str, Any]]:
    yield document
    copies: list[str] = []
    if scenario := document["scenario"]:
        # The archive has it as well, as what the run keeps.
        document = {**document, "scenario": {**scenario, "document": None}}
        copies = ["scenario.document"]
        yield {**document, "leftOut": copies}
    left_out, trials = copies, document["trials"]
    for detail in ("coresOverTime", "processes"):
        whole, trials = trials, [_without_detail(trial, detail) for trial in trials]
        if trials != whole:
            left_out = [*left_out, f"trials.usage.components.{detail}"]
            yield {**document, "trials": trials, "leftOut": left_out}
    if any("script" in trial for trial in trials):
        left_out = [*left_out, "trials.script"]
    trials = [
        {key: value for key, value in {**trial, "endpoints": {}}.items() if key != "script"}
        for trial in trials
    ]
    left_out = [*left_out, "trials.endpoints"]
    yield {**document, "trials": trials, "leftOut": left_out}
    rows = [_without_metrics(row) for row in document["rows"]]
    metrics: list[str] = []
    if rows != document["rows"]:
        metrics = ["rows.script.metrics"]
        yield {**document, "rows": rows, "trials": trials, "leftOut": [*left_out, *metrics]}
    yield {**document, "rows": rows, "trials": [], "leftOut": [*copies, "trials", *metrics]}
    document |= {"trials": [], "spec": None}
    texts = ("message", "publishedMissing", "validityReasons", "limitedBy", "usage", "script")
    intervals = ("latencyFigures", "uncorrectedFigures")
    rows = [_without(texts, estimates_alone(row).to_wire()) for row in whole_rows]
    left_out = [*copies, "trials", *(f"rows.{one}" for one in (*texts, *intervals)), "spec"]
    yield {**document, "rows": rows, "leftOut": left_out}
    together = ("latency", "uncorrectedLatency")
    rows = [_without(together, row) for row in rows]
    left_out = [*left_out, *(f"rows.{one}" for one in together)]
    yield {**document, "rows": rows, "leftOut": left_out}


def _without(parts: Collection[str], row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in parts}
