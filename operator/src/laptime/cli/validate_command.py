"""`laptime validate`: is this file a run that the API server would take?"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from laptime.cli.mistakes import Mistake
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    connect,
    namespace_of,
    program_name,
)

_METADATA = {"type": "object", "properties": {"name": {"type": "string"}}}


def validate(
    file: Annotated[Path, typer.Argument(help="Manifest of a BenchmarkRun; - reads stdin.")],
    server: Annotated[
        bool,
        typer.Option("--server", help="Ask the API server too, which stores nothing."),
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check a manifest without a cluster: unknown fields, bounds, names, and every rule of the CRD.

    What only a cluster knows (images, room on the nodes, a ConfigMap) shows when it runs.
    """
    from laptime.cli.manifest_file import read_manifest
    from laptime.cli.printing import say

    manifest = read_manifest(file)
    said, checked = violations(manifest.run)
    if said:
        lines = "\n".join(f"  {one}" for one in said)
        raise Mistake(f"{manifest.name} would be refused.\n{lines}")
    unchecked = (
        ""
        if checked
        else "; its rules were not checked: pip install 'laptime[validate]', or "
        f"{program_name()} validate --server"
    )
    if server:
        cluster = connect(kubeconfig, context)
        target = namespace_of(namespace, manifest.namespace, cluster)
        cluster.check_run(target, manifest.run)
        say(f"{manifest.name} is valid, and {cluster.server} would take it.")
    else:
        say(f"{manifest.name} is valid{unchecked}.")
    if checked or server:
        say(expected_length(manifest.name, as_taken(manifest.run)["spec"]))


def expected_length(name: str, spec: dict[str, Any]) -> str:
    """Return how many trials a valid spec makes and about how long they take, in a sentence."""
    from laptime.api.durations import format_duration
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.plan import (
        USUAL_RATE,
        plan_profiles,
        plan_trials,
        profiling_seconds,
        remaining_seconds,
    )

    asked = BenchmarkRunSpec.model_validate(spec).with_control()
    # The order of the trials, which the seed decides, changes nothing.
    trials = plan_trials(name, asked, seed=0)
    least = "at least " if asked.precision else ""
    profiling = profiling_seconds(asked, plan_profiles(name, asked))
    length = format_duration(remaining_seconds(asked, trials, {}) + profiling)
    text = f"{least}{len(trials)} trials, about {length}"
    if any(load.closed is not None and load.closed.requests for load in asked.loads):
        text += f"; those bound by requests are reckoned with {USUAL_RATE:,.0f} requests/s"
    return f"It takes {text}."


def as_taken(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run as the API server takes it."""
    from laptime.cli.schema_rules import without_nulls

    taken: dict[str, Any] = without_nulls(_schema(), run)
    return taken


def violations(run: dict[str, Any]) -> tuple[list[str], bool]:
    """Return what the API server would refuse in a run, and whether rules could be checked."""
    from laptime.cli.schema_rules import rule_violations, schema_violations

    schema = _schema()
    document = as_taken({**run, "metadata": {"name": run["metadata"]["name"]}})
    said = schema_violations(schema, document)
    if said:
        return said, True
    try:
        return rule_violations(schema, document), True
    except ImportError:
        return [], False


@cache
def _schema() -> dict[str, Any]:
    from laptime.cli.generate import catalogue_crd

    schema = catalogue_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # The API server has a schema of its own for metadata; the rules see the name.
    return {**schema, "properties": {**schema["properties"], "metadata": _METADATA}}
