"""What containers of a run ask for, and what they may have at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from laptime.api.resources import Resources, quantity
from laptime.manifests.objects import Manifest
from laptime.manifests.pods import helper_resources
from laptime.reconcile.turns import without_resources
from tests.manifests.runs import SCENARIOS, SPECS, containers, context, objects, pod_specs

HALF = {"cpu": "500m", "memory": "256Mi"}
# What is measured, or a program of somebody else's: they have what the run says, and nothing else.
PARTS = {
    *("server", "postgres", "pgbouncer", "haproxy", "upstream", "delay", "k6", "service", "reset"),
}


def said_everywhere(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec in which every part says its resources."""
    topology = spec.get("topology", {})
    tiers = ("postgres", "pgbouncer", "haproxy", "upstream", "delay")
    servers = [one if "service" in one else {**one, "resources": HALF} for one in spec["servers"]]
    return {
        **spec,
        "servers": servers,
        "topology": {
            name: {**one, "resources": HALF} if name in tiers else one
            for name, one in topology.items()
        },
        "generator": {**spec.get("generator", {}), "resources": HALF},
    }


def made(spec: dict[str, Any]) -> Iterator[tuple[str, Manifest, Manifest]]:
    for name, template, pod in pod_specs(objects(context(spec))):
        labels = template["metadata"]["labels"]
        yield f"{name} ({labels['laptime.dev/component']})", labels, pod


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_no_part_of_a_run_always_has_limits(spec: str) -> None:
    for name, _, pod in made(SPECS[spec]):
        for container in containers(pod):
            if container["name"] in PARTS and container["image"] != "docker.io/laptime/operator:1":
                continue
            resources = container["resources"]
            for what in ("cpu", "memory"):
                assert quantity(resources["requests"][what]) <= quantity(resources["limits"][what])
            assert set(resources["limits"]) == {"cpu", "memory"}, (name, container["name"])


@pytest.mark.parametrize("spec", SPECS)
def test_where_every_part_says_its_resources_every_container_has_limits(spec: str) -> None:
    asked = said_everywhere(SPECS[spec])
    silent = context(asked).scenario.services
    assert all("scenario" in one for one in without_resources(context(asked).spec, silent))
    for name, labels, pod in made(asked):
        if labels["laptime.dev/component"].startswith(("service-", "reset-")):
            # Its scenario says that, and not all of these do.
            continue
        for container in containers(pod):
            resources = container["resources"]
            assert set(resources["limits"]) == {"cpu", "memory"}, (name, container["name"])
            alone = ("verifier", "profiler", "path-server", "path-generator", "asker")
            if labels["laptime.dev/component"] not in alone:
                # The class Guaranteed asks it of each of them.
                assert resources["requests"] == resources["limits"], (name, container["name"])


def test_who_says_nothing_is_named_as_the_author_knows_it() -> None:
    ctx = context("full")
    services = SCENARIOS["around"].services
    assert without_resources(ctx.spec, services) == [
        "topology.pgbouncer",
        "topology.haproxy",
        "service pay-mock of the scenario",
        "service db of the scenario",
        "service fonts of the scenario",
        "server sync",
        "server own",
        "generator",
    ]


@pytest.mark.parametrize(
    ("beside", "requests", "limits"),
    [
        (None, ("50m", "64Mi"), ("1", "512Mi")),
        ({"cpu": "2", "memory": "1Gi"}, ("2", "1Gi"), ("2", "1Gi")),
        # A Python does not fit into what a small server has.
        ({"cpu": "250m", "memory": "16Mi"}, ("250m", "128Mi"), ("250m", "128Mi")),
        ({"cpu": "2"}, ("2", "64Mi"), ("2", "512Mi")),
        ({"memory": "1Gi"}, ("50m", "1Gi"), ("1", "1Gi")),
    ],
)
def test_a_helper_has_what_its_part_has_and_as_much_memory_as_it_needs(
    beside: dict[str, str] | None, requests: tuple[str, str], limits: tuple[str, str]
) -> None:
    found = helper_resources(Resources.model_validate(beside) if beside else None)
    assert found == {
        "requests": dict(zip(("cpu", "memory"), requests, strict=True)),
        "limits": dict(zip(("cpu", "memory"), limits, strict=True)),
    }
