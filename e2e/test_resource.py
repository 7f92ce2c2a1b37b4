"""A BenchmarkRun as kubectl users meet it: refused, stored, immutable, listed with its columns."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Tool
from schema_paths import changed, full_run

RUN = full_run()


def test_kubectl_refuses_a_misspelt_field_and_a_bad_value(
    kubectl: Tool, crd: dict[str, Any], namespace: str
) -> None:
    for place, value, says in (
        ("spec.repetition", 3, 'unknown field "spec.repetition"'),
        ("spec.baseline", "axum", "baseline must be the name of one of spec.servers"),
    ):
        done = kubectl.run(
            *("apply", "-n", namespace, "--dry-run=server", "-f", "-"),
            stdin=json.dumps(changed(RUN, {place: value})),
        )
        assert done.returncode != 0
        assert says in done.stderr


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name
)
def test_every_example_is_accepted(
    kubectl: Tool, crd: dict[str, Any], namespace: str, example: Path
) -> None:
    kubectl("apply", "-n", namespace, "--dry-run=server", "-f", str(example))


NAME = RUN["metadata"]["name"]


@pytest.fixture(scope="module")
def existing(kubectl: Tool, crd: dict[str, Any], namespace: str) -> str:
    """A run in a namespace where no runs are allowed, so that nothing is started for it."""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(RUN))
    return namespace


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("spec.repetitions", 4),
        ("spec.servers.0.workers", 3),
        ("spec.baseline", "own"),
        ("spec.seed", None),
        ("spec.objectives", None),
    ],
)
def test_the_spec_of_a_run_cannot_be_changed(
    kubectl: Tool, existing: str, place: str, value: Any
) -> None:
    field = place.split(".")[1]
    patch = {"spec": {field: changed(RUN, {place: value})["spec"].get(field)}}
    done = kubectl.run(
        *("patch", "br", NAME, "-n", existing, "--dry-run=server", "--type=merge"),
        *("-p", json.dumps(patch)),
    )
    assert done.returncode != 0
    assert "of a spec can be changed once the run is accepted" in done.stderr
    assert "apply it under another name" in done.stderr


@pytest.mark.parametrize("changes", [{"suspend": False}, {"cancel": True}, {"retry": 4}])
def test_what_may_be_asked_of_a_run_while_it_goes_on_can_be_changed(
    kubectl: Tool, existing: str, changes: dict[str, bool]
) -> None:
    kubectl(
        *("patch", "br", NAME, "-n", existing, "--dry-run=server", "--type=merge"),
        *("-p", json.dumps({"spec": changes})),
    )


def test_applying_the_same_run_again_and_labelling_it_is_fine(kubectl: Tool, existing: str) -> None:
    before = kubectl.json("get", "br", NAME, "-n", existing, "-o", "json")["metadata"]
    labelled = {**RUN, "metadata": {"name": NAME, "labels": {"team": "web"}}}
    kubectl("apply", "-n", existing, "-f", "-", stdin=json.dumps(labelled))
    after = kubectl.json("get", "br", NAME, "-n", existing, "-o", "json")["metadata"]
    assert after["labels"]["team"] == "web"
    assert after["generation"] == before["generation"]


def test_the_status_is_a_subresource(kubectl: Tool, existing: str) -> None:
    through_the_run = {"status": {"state": "Failed", "seed": 99}}
    kubectl("patch", "br", NAME, "-n", existing, "--type=merge", "-p", json.dumps(through_the_run))
    run = kubectl.json("get", "br", NAME, "-n", existing, "-o", "json")
    assert run.get("status", {}).get("seed") != 99
    patch = {"spec": {"repetitions": 9}, "status": {"seed": 42}}
    # The answer to the patch, not a later look: an operator corrects the status at once.
    patched = kubectl.json(
        *("patch", "br", NAME, "-n", existing, "--subresource=status", "--type=merge"),
        *("-p", json.dumps(patch), "-o", "json"),
    )
    assert patched["status"]["seed"] == 42
    assert patched["spec"]["repetitions"] == RUN["spec"]["repetitions"]
    assert patched["metadata"]["generation"] == run["metadata"]["generation"]


STATUS = {
    "state": "Succeeded",
    "progress": {"completed": 15, "total": 15, "percent": 100, "text": "15/15"},
    "fastest": "own",
    "fastestFactor": "25.1x",
    "baseline": "preset",
    "seed": 42,
    "verdict": "own is 25.1 times as fast as preset",
}


def test_kubectl_get_shows_the_columns(kubectl: Tool, existing: str) -> None:
    columns = ["NAME", "SCENARIO", "STATE", "PROGRESS", "FASTEST", "FACTOR"]
    cells = [NAME, "users", "Succeeded", "15/15", "own", "25.1x"]
    deadline = time.monotonic() + 20
    while True:
        # An operator in the cluster may still be writing its own view; a run that is over it
        # leaves alone.
        kubectl(
            *("patch", "br", NAME, "-n", existing, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": STATUS})),
        )
        head, row = kubectl("get", "br", "-n", existing).splitlines()
        wide = kubectl("get", "br", "-n", existing, "-o", "wide")
        if row.split()[:6] == cells or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert head.split() == [*columns, "AGE"]
    assert row.split()[:6] == cells
    for wider in ("BASELINE", "SEED", "VERDICT", str(STATUS["verdict"])):
        assert wider in wide


@pytest.mark.parametrize(
    "name", ["br", "benchmarkrun", "benchmarkruns", "benchmarkruns.laptime.dev"]
)
def test_the_resource_answers_to_its_names(kubectl: Tool, existing: str, name: str) -> None:
    assert NAME in kubectl("get", name, "-n", existing)


def test_a_status_that_no_operator_writes_is_refused(kubectl: Tool, existing: str) -> None:
    done = kubectl.run(
        *("patch", "br", NAME, "-n", existing, "--subresource=status", "--type=merge"),
        *("-p", '{"status":{"state":"Happy"}}'),
    )
    assert done.returncode != 0
    assert "supported values" in done.stderr
