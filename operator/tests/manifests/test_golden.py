"""The manifests of three runs, as they are. A change of a builder shows here as a change of YAML.

`LAPTIME_GOLDEN=write pytest tests/manifests` writes the files anew.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from laptime.api.loads import ClosedLoad
from laptime.manifests.asking import asking_job
from laptime.manifests.generator import trial_document, trial_job
from laptime.manifests.node_path import path_generator_job, path_server_job
from laptime.manifests.objects import Manifest
from laptime.manifests.profiler import profile_job
from laptime.manifests.server import server_deployment, server_service
from laptime.manifests.target import reach_policy
from laptime.manifests.tiers import tier_objects
from laptime.manifests.verifier import verify_job
from laptime.plan import Places, load_problem, plan_profiles, plan_trials
from tests.manifests.runs import ISOLATED, OWN, SPECS, context, side_objects

GOLDEN = Path(__file__).parent / "golden"
DOCUMENTS = Path(__file__).parents[3] / "images/k6/internal/spec/testdata/operator.json"


class Dumper(yaml.SafeDumper):
    """Writes configuration files as blocks, and nothing by reference."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


Dumper.add_representer(str, _text)


def _cases() -> dict[str, list[Manifest]]:
    cases: dict[str, list[Manifest]] = {}
    for name in ("full", "bare", "several", "embedded", "sessions"):
        ctx = context(name)
        trials = {trial.load: trial for trial in plan_trials(ctx.name, ctx.spec, 1)}
        server = ctx.spec.servers[0]
        cases[f"{name}-tiers"] = tier_objects(ctx)
        cases[f"{name}-servers"] = [
            server_deployment(ctx, one, None if one is server else "demo-trial-001")
            for one in ctx.spec.servers
        ]
        if profiles := plan_profiles(ctx.name, ctx.spec):
            profiled = ctx.spec.server(profiles[0].server)
            cases[f"{name}-profiles"] = [
                server_service(ctx, profiled, profiles[0].name),
                server_deployment(ctx, profiled, profiles[0].name),
                profile_job(ctx, profiles[0]),
            ]
        cases[f"{name}-trials"] = [
            verify_job(ctx, server),
            *(trial_job(ctx, trials[load.name]) for load in ctx.spec.loads),
        ]
    ctx = context("around")
    cases["around"] = [
        *tier_objects(ctx),
        *side_objects(ctx, "demo-trial-001"),
        *(server_deployment(ctx, one, "demo-trial-001") for one in ctx.spec.servers),
    ]
    cases["large"] = tier_objects(context("large"))
    ctx = context("apart")
    of_both = plan_trials(ctx.name, ctx.spec, 1)
    cases["apart"] = [
        *tier_objects(ctx),
        *(server_deployment(ctx, one, "demo-trial-001") for one in ctx.spec.servers),
        *(verify_job(ctx, one) for one in ctx.spec.servers),
        *(trial_job(ctx, one) for one in of_both if one.server == "own"),
    ]
    # On nodes of their own, in a trial after the first.
    ctx = replace(
        context("direct", placement=ISOLATED),
        places=Places({"server": ("bench-1",), "generator": ("bench-2",)}),
    )
    (trial,) = plan_trials(ctx.name, ctx.spec, 1)
    cases["placed"] = [
        *(one for one in tier_objects(ctx) if one["kind"] == "Deployment"),
        *(server_deployment(ctx, one, trial.name) for one in ctx.spec.servers),
        verify_job(ctx, ctx.spec.servers[0]),
        trial_job(ctx, trial),
        path_server_job(ctx, 1, "bench-1"),
        path_generator_job(ctx, 1, "bench-2", "10.0.0.7"),
    ]
    ctx = context("bare")
    cases["asking"] = [
        asking_job(ctx, ctx.spec.server("own"), registry=registry) for registry in (False, True)
    ]
    ctx = context("there")
    there = [server for server in ctx.spec.servers if not server.deployed]
    cases["there"] = [
        *(reach_policy(ctx, server) for server in there),
        *(verify_job(ctx, server) for server in there),
        *(
            trial_job(ctx, trial)
            for trial in plan_trials(ctx.name, ctx.spec, 1)
            if trial.server == "shop"
        ),
    ]
    return cases


@pytest.mark.parametrize("name", sorted(_cases()))
def test_manifests_are_as_committed(name: str) -> None:
    text = yaml.dump_all(_cases()[name], Dumper=Dumper, sort_keys=False, width=100)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("LAPTIME_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_the_generator_is_tested_with_documents_that_it_is_given() -> None:
    """What is written here images/k6/internal/spec/operator_test.go understands."""
    # All that a generator is told of.
    ctx = context({**SPECS["sessions"], "servers": [{**OWN, "healthPort": 9001}]})
    many = {"closed": ClosedLoad(connections=8, requests=10**6)}
    problem = load_problem(ctx.spec.load("all").model_copy(update=many), ctx.scenario)
    found = re.search(r"send at most (\d+)", problem or "")
    assert found is not None
    document = {
        "files": ctx.scenario.feeder_files,
        "mostRequests": int(found[1]),
        "trials": [trial_document(ctx, one) for one in plan_trials(ctx.name, ctx.spec, 1)],
    }
    text = json.dumps(document, indent=1) + "\n"
    if os.environ.get("LAPTIME_GOLDEN") == "write":
        DOCUMENTS.parent.mkdir(exist_ok=True)
        DOCUMENTS.write_text(text)
    assert text == DOCUMENTS.read_text()


def test_there_is_no_golden_file_without_a_case() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == sorted(_cases())
