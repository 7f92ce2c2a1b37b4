"""ConfigMaps that keep what was measured while a run goes on; each is written once.

When the run is over they are folded into its archive (manifests/archive.py).

A profile has one, which is written once too, whether it could be taken or not. So has each server
of a run that only verifies: what it answered.
A trial has two: its result, and what Prometheus had read of its pods. The second follows some
seconds later, since samples need that long to arrive and the next trial need not wait for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from laptime.api import GROUP
from laptime.api.answers import CheckedAnswer, answers_in
from laptime.api.profile import Profile
from laptime.api.results import TrialReadings, TrialResult
from laptime.api.storage import VERSION_ANNOTATION, check_version
from laptime.api.text import has_more_values, plain, plain_tree
from laptime.manifests.context import RunContext
from laptime.manifests.objects import LOAD_LABEL, SERVER_LABEL, Component, Manifest

RESULT_KEY = "result.json"
PAYLOAD_KEY = "generator.b64"
READINGS_KEY = "readings.json"
ANSWERS_KEY = "answers.jsonl"
STACKS_KEY = "stacks.folded"
FLAME_GRAPH_KEY = "flamegraph.svg"
PROFILE_PROBLEM_ANNOTATION = f"{GROUP}/profile-problem"
PAYLOAD_OMITTED_ANNOTATION = f"{GROUP}/payload-omitted"

RESULTS = frozenset(
    {
        *(Component.RESULT, Component.READINGS, Component.PROFILE, Component.SCENARIO),
        Component.ANSWERS,
    }
)
"""Components whose ConfigMaps hold what was measured, and on which work."""
MAX_PAYLOAD_BYTES = 900_000
"""An object of the API server may have 1 MiB in all."""
MAX_VALUES = 60_000
"""In the result or the readings of a trial. With all that is kept of a script one generator has a
tenth of this, and sixteen, whose names are all kept, half; of empty objects an object of the API
server has room for 350,000, and they would fill the operator's memory."""


def result_config_map(
    ctx: RunContext, result: TrialResult, payload: str, room_bytes: float = math.inf
) -> Manifest:
    """Return the immutable ConfigMap of a trial's result, named like the trial.

    `payload` is what the generator printed: base64 of gzipped JSON, with the histograms that
    merge without loss. One that the API server could not take, or for which its run has no room, is
    left out, and an annotation says how many bytes it had; an empty one (a failed trial) is left
    out as well.
    """
    data = {RESULT_KEY: result.model_dump_json(by_alias=True, exclude_none=True, indent=1)}
    fits = len(payload.encode()) <= min(MAX_PAYLOAD_BYTES, room_bytes)
    if payload and fits:
        data[PAYLOAD_KEY] = payload
    manifest = _stored(
        ctx,
        result.trial,
        ctx.labels(Component.RESULT, server=result.server, load=result.load, trial=result.trial),
        data,
    )
    if not fits:
        omitted = str(len(payload.encode()))
        manifest["metadata"]["annotations"][PAYLOAD_OMITTED_ANNOTATION] = omitted
    return manifest


def read_result(manifest: Mapping[str, Any]) -> tuple[TrialResult, str]:
    """Return what `result_config_map` stored: the result, and the payload (empty if left out).

    Raises:
        ValueError: somebody else wrote this object, or a newer version of Laptime.
    """
    result = TrialResult.model_validate(_document(manifest, RESULT_KEY))
    return result, manifest["data"].get(PAYLOAD_KEY, "")


def readings_name(trial: str) -> str:
    """Return the name of the ConfigMap with the readings of a trial."""
    return f"{trial}-readings"


def readings_config_map(ctx: RunContext, result: TrialResult, readings: TrialReadings) -> Manifest:
    """Return the immutable ConfigMap of what was read of the pods of a measured trial."""
    return _stored(
        ctx,
        readings_name(result.trial),
        ctx.labels(Component.READINGS, server=result.server, load=result.load, trial=result.trial),
        {READINGS_KEY: readings.model_dump_json(by_alias=True, exclude_none=True, indent=1)},
    )


def read_readings(manifest: Mapping[str, Any]) -> TrialReadings:
    """Return what `readings_config_map` stored.

    Raises:
        ValueError: somebody else wrote this object, or a newer version of Laptime.
    """
    return TrialReadings.model_validate(_document(manifest, READINGS_KEY))


def _document(manifest: Mapping[str, Any], key: str) -> Any:
    name = f"ConfigMap {manifest['metadata']['name']}"
    check_version(name, manifest["metadata"])
    data = manifest.get("data") or {}
    if key not in data:
        raise ValueError(f"{name} has no {key}")
    document = json.loads(data[key])
    if has_more_values(document, MAX_VALUES):
        raise ValueError(f"{key} of {name} has more than {MAX_VALUES} values")
    return plain_tree(document)


def profile_config_map(
    ctx: RunContext, name: str, profile: Profile, flame_graph: str = ""
) -> Manifest:
    """Return the immutable ConfigMap of a profile: its flame graph, or why there is none."""
    data = {STACKS_KEY: profile.folded, FLAME_GRAPH_KEY: flame_graph} if profile.folded else {}
    labels = ctx.labels(Component.PROFILE, server=profile.server, load=profile.load)
    manifest = _stored(ctx, name, labels, data)
    if profile.problem:
        manifest["metadata"]["annotations"][PROFILE_PROBLEM_ANNOTATION] = profile.problem
    return manifest


def profile_problem(metadata: Mapping[str, Any]) -> str:
    """Return why a profile could not be taken, by its ConfigMap's metadata; empty when it was."""
    return plain(str((metadata.get("annotations") or {}).get(PROFILE_PROBLEM_ANNOTATION, "")))


def read_profile(metadata: Mapping[str, Any], data: Mapping[str, str]) -> Profile:
    """Return what `profile_config_map` stored."""
    labels = metadata.get("labels") or {}
    return Profile(
        server=labels.get(SERVER_LABEL, ""),
        load=labels.get(LOAD_LABEL, ""),
        folded=data.get(STACKS_KEY, ""),
        problem=profile_problem(metadata),
    )


def answers_name(run_name: str, server: str) -> str:
    """Return the name of the ConfigMap with the answers of a server.

    Together with the longest names of a run and a server it just fits (63 characters).
    """
    return f"{run_name}-answer-{server}"


def answers_config_map(ctx: RunContext, server: str, output: str) -> Manifest:
    """Return the immutable ConfigMap of a server's answers, by what its verifier printed."""
    lines = [one.to_line() for one in answers_in(output)]
    return _stored(
        ctx,
        answers_name(ctx.name, server),
        ctx.labels(Component.ANSWERS, server=server),
        {ANSWERS_KEY: "\n".join(lines)},
    )


def read_answers(manifest: Mapping[str, Any]) -> tuple[str, list[CheckedAnswer]]:
    """Return what `answers_config_map` stored: the server, and its answers."""
    server = (manifest["metadata"].get("labels") or {}).get(SERVER_LABEL, "")
    return server, answers_in((manifest.get("data") or {}).get(ANSWERS_KEY, ""))


def results_name(run_name: str) -> str:
    """Return the name of the ConfigMap with the results of a whole run."""
    return f"{run_name}-results"


def _stored(
    ctx: RunContext, name: str, labels: Mapping[str, str], data: Mapping[str, str]
) -> Manifest:
    manifest = ctx.manifest("v1", "ConfigMap", name, labels, immutable=True, data=dict(data))
    manifest["metadata"]["annotations"][VERSION_ANNOTATION] = str(ctx.stored_version)
    return manifest
