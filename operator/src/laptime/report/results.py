"""The document results.json: what is in it, its JSON Schema, and reading it back."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field, ValidationError

from laptime.analysis import Summary
from laptime.api.base import TolerantModel
from laptime.api.isolation import Isolation
from laptime.api.node_path import NodePath
from laptime.api.placement import RunPlacement
from laptime.api.results import (
    ControlResult,
    ObjectiveResult,
    Outcome,
    ResultRow,
    Tie,
    TrialLength,
    TrialResult,
)
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.text import plain_tree
from laptime.catalog import Published, Scenario
from laptime.report.contents import End, Report
from laptime.report.feeders import FeederKept, feeders_kept, without_rows

SCHEMA_VERSION = 2
"""Changes when a field of the document changes its meaning or goes away."""


class RunFacts(TolerantModel):
    """Which run it was."""

    name: str
    namespace: str
    seed: int = Field(description="Seed of the order of the trials.")
    baseline: str = Field(description="The server that factors are against.")
    started_at: str | None = Field(None, description="First measured request, RFC 3339.")
    finished_at: str | None = Field(None, description="Last measured response, RFC 3339.")
    state: str | None = Field(
        None,
        description="How the run ended: Succeeded, Failed or Cancelled; null in results of older "
        "versions.",
    )
    reason: str | None = Field(None, description="CamelCase: why it ended so.")
    message: str | None = Field(
        None, description="The same for people, of a run that did not succeed."
    )
    placement: RunPlacement | None = Field(
        None,
        description="The placement of its pods; left out where it had none, or where an older "
        "version measured it.",
    )
    scripts: list[KeptScript] = Field(
        default_factory=list,
        description="The ConfigMaps of its scripts as they were when it began, as in the run's "
        "status; left out where it had none, or where an older version measured it.",
    )
    node_paths: list[NodePath] = Field(
        default_factory=list,
        description="What the nodes of generators and servers exchange, as in the run's status; "
        "left out where they were not apart.",
    )


class ScenarioKept(TolerantModel):
    """The work that the servers of the run were compared on."""

    hash: str = Field(description="Stands for the work: the same hash, the same work.")
    builtin: bool | None = Field(
        None,
        description="Whether it comes with Laptime; null in results of older versions.",
    )
    feeders: list[FeederKept] = Field(
        default_factory=list,
        description="The feeders whose rows are left out of the document: they may be secret.",
    )
    document: Scenario | None = Field(
        None,
        description="The scenario itself, all SQL in it, without the rows of its feeders.",
    )


class Results(TolerantModel):
    """The results of one run of Laptime. A field without a value is null or left out."""

    schema_version: int = Field(
        description="Changes when a field changes its meaning or goes away; new fields may come "
        "without a change."
    )
    laptime_version: str
    run: RunFacts
    scenario: ScenarioKept | None = Field(
        None, description="What the run did; null where nobody kept it."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Where it was measured, as far as known."
    )
    verdict: str = Field(description="The result in a sentence.")
    fastest: str | None = Field(
        None,
        description="The fastest server, or those that cannot be told apart from it; none where "
        "nobody knows.",
    )
    fastest_factor: str | None = Field(
        None,
        description="Its factor against the baseline, such as `25.1x`, or `2.00x (at least 1.95)` "
        "where a search found no upper end; null where several cannot be told apart, each of which "
        "has its own in its row. Older versions gave that of one, and no end.",
    )
    rows: list[ResultRow] = Field(description="One per server and load.")
    objectives: list[ObjectiveResult] = Field(default_factory=list)
    control: list[ControlResult] = Field(
        default_factory=list, description="The control arm, load by load; empty without one."
    )
    ties: list[Tie] = Field(
        default_factory=list,
        description="Servers that a load does not tell apart, and what it would cost to do so.",
    )
    trial_lengths: list[TrialLength] = Field(
        default_factory=list,
        description="Shorter trials that would find the same differences in throughput in less "
        "time, of loads where there are any.",
    )
    half_width: float | None = Field(
        None,
        description="Of the widest interval that the run is about, as a share; null where one has "
        "no interval.",
    )
    isolation: Isolation | None = Field(
        None,
        description="Whether the run had its nodes for itself, by its worst trial; left out where "
        "an older version measured it: then it is not known.",
    )
    published: Published | None = Field(
        None, description="The published benchmark behind the scenario."
    )
    spec: BenchmarkRunSpec | None = Field(None, description="What was asked for.")
    trials: list[TrialResult] = Field(
        default_factory=list, description="Every trial, in the order in which they ran."
    )
    left_out: list[str] = Field(
        default_factory=list, description="What did not fit into a ConfigMap; usually empty."
    )


class ResultsError(ValueError):
    """The text is no results.json that this version can read; the message says why."""


def read_results(text: str, spec: BenchmarkRunSpec | None = None) -> tuple[Results, Report]:
    """Return the document, and the report that it was made from.

    `spec` is that of the run in the cluster, for a document so large that it was left out.

    Raises:
        ResultsError: it is not such a document, or one of another version.
    """
    try:
        # Whoever may write ConfigMaps may have changed it.
        document: Any = plain_tree(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"it is not JSON: {error}") from None
    version = document.get("schemaVersion") if isinstance(document, dict) else None
    if version == 1:
        document = _of_version_1(document)
    elif version != SCHEMA_VERSION:
        raise ResultsError(
            f"it has schemaVersion {str(version)[:20]}, this version of Laptime reads 1 to "
            f"{SCHEMA_VERSION}"
        )
    try:
        results = Results.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ResultsError(f"{place}: {first['msg']}") from None
    asked = results.spec or spec
    if asked is None:
        raise ResultsError("its spec was left out, and the run is not there any more")
    summary = Summary(
        rows=tuple(results.rows),
        fastest=results.fastest,
        fastest_factor=results.fastest_factor,
        verdict=results.verdict,
        objectives=tuple(results.objectives),
        control=tuple(results.control),
        ties=tuple(results.ties),
        half_width=results.half_width,
        finished=True,
        isolation=results.isolation,
        trial_lengths=tuple(results.trial_lengths),
    )
    run, kept = results.run, results.scenario
    scenario = kept.document if kept else None
    builtin = kept.builtin if kept else None
    feeders = tuple(kept.feeders) if kept else ()
    if scenario is not None:
        # An older version stored them with their rows.
        try:
            feeders = feeders or feeders_kept(scenario)
        except ValueError as error:
            raise ResultsError(f"scenario.document.feeders: {error}") from None
        scenario = without_rows(scenario)
    return results, Report(
        run.name,
        run.namespace,
        asked,
        run.seed,
        summary,
        results.trials,
        results.environment,
        tuple(results.left_out),
        scenario=scenario,
        scenario_hash=kept.hash if kept else None,
        scenario_builtin=scenario.builtin if scenario else builtin,
        feeders=feeders,
        # Not by the name of the scenario: one of the namespace may have that of another one.
        published=results.published,
        placement=run.placement,
        scripts=tuple(run.scripts),
        node_paths=tuple(run.node_paths),
        end=End(run.state, run.reason or "", run.message or "") if run.state else None,
        laptime_version=results.laptime_version,
        between=(None, None) if results.trials else (run.started_at, run.finished_at),
    )


def _of_version_1(node: Any) -> Any:
    """Return a document of version 1, or a part of it, as one of version 2.

    There percentiles were of right answers alone. Where there were other ones they are too low by
    what these add, which nobody can know any more: such response times are left out, as those that
    are not known. An objective was met or not.
    """
    if isinstance(node, list):
        return [_of_version_1(child) for child in node]
    if not isinstance(node, dict):
        return node
    found = {key: _of_version_1(child) for key, child in node.items()}
    if "met" in found and "bound" in found:
        met = found.pop("met")
        found |= {
            "outcome": Outcome.MET if met else Outcome.MISSED,
            "reason": "BoundKept" if met else "BoundNotKept",
        }
    if found.get("errors"):
        for name in ("latency", "uncorrectedLatency"):
            found.pop(name, None)
    return found


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the document."""
    schema = Results.model_json_schema(by_alias=True)
    _tidy(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Laptime results.json, version {SCHEMA_VERSION}",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _tidy(node: Any) -> None:
    """Leave out titles that repeat names, and what only the API server understands."""
    if isinstance(node, list):
        for child in node:
            _tidy(child)
    if not isinstance(node, dict):
        return
    for key in [key for key in node if key.startswith("x-kubernetes-")]:
        del node[key]
    if isinstance(node.get("title"), str):
        del node["title"]
    for child in node.values():
        _tidy(child)
