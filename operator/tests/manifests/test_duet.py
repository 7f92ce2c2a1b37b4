"""What the objects of a duet have that those of other runs have not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.storage import DUET_VERSION, PLACED_VERSION, USUAL_VERSION
from laptime.manifests.context import RunContext
from laptime.manifests.generator import deadline_seconds, trial_document, trial_job
from laptime.manifests.meeting import meeting_objects
from laptime.manifests.objects import LEADS_LABEL
from laptime.manifests.placement import Placement
from laptime.manifests.server import server_deployment
from laptime.plan import Places, Trial, plan_trials
from tests.manifests.runs import context

HOST = "kubernetes.io/hostname"
WISHED = "preferredDuringSchedulingIgnoredDuringExecution"
NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"


def duet(parallelism: int = 1, **more: Any) -> RunContext:
    return context(
        {
            "scenario": "hello",
            "servers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
            "loads": [{"name": "l", "closed": {"connections": 4, "duration": "5s"}}],
            "generator": {"parallelism": parallelism},
            "pairing": "duet",
            "repetitions": 1,
            **more,
        }
    )


def pair(ctx: RunContext) -> tuple[Trial, Trial]:
    first, second = plan_trials(ctx.name, ctx.spec, 7)
    return first, second


def labels(ctx: RunContext, trial: Trial) -> dict[str, str]:
    found: dict[str, str] = trial_job(ctx, trial)["spec"]["template"]["metadata"]["labels"]
    return found


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_generators_of_both_meet_at_those_of_the_one_that_leads(parallelism: int) -> None:
    ctx = duet(parallelism)
    first, second = pair(ctx)
    (meeting,) = meeting_objects(ctx)
    selector = meeting["spec"]["selector"]
    assert selector[LEADS_LABEL] == "true"
    assert ("batch.kubernetes.io/job-completion-index" in selector) is (parallelism > 1)
    assert labels(ctx, first)[LEADS_LABEL] == "true"
    assert LEADS_LABEL not in labels(ctx, second)
    said = [trial_document(ctx, one)["together"] for one in (first, second)]
    assert {one["name"] for one in said} == {first.name}
    assert [one["first"] for one in said] == [0, parallelism]
    assert {one["count"] for one in said} == {2 * parallelism}
    for trial in (first, second):
        (generator,) = trial_job(ctx, trial)["spec"]["template"]["spec"]["containers"]
        ports = {one["name"]: one["containerPort"] for one in generator["ports"]}
        assert said[0]["meet"] == f"{meeting['metadata']['name']}:{ports['meet']}"


@pytest.mark.parametrize("leads", [True, False])
def test_one_whose_partner_is_out_finds_its_own_generators(leads: bool) -> None:
    ctx = duet(2)
    alone = replace(pair(ctx)[0 if leads else 1], beside=None)
    # The Service leads to generators with this label alone.
    assert labels(ctx, alone)[LEADS_LABEL] == "true"
    assert "together" not in trial_document(ctx, alone)


def test_it_has_the_time_to_wait_for_the_other_one() -> None:
    alone = duet(pairing=None)
    longer = deadline_seconds(duet(), duet().spec.load("l"))
    assert longer == deadline_seconds(alone, alone.spec.load("l")) + alone.spec.startup_seconds


@pytest.mark.parametrize("nodes", [None, "rotate"])
def test_both_servers_go_to_one_node(nodes: str | None) -> None:
    ctx = duet(nodes=nodes)
    names = [one.name for one in pair(ctx)]
    both = replace(ctx, together=tuple(names))
    for server, trial in zip(ctx.spec.servers, names, strict=True):
        pod = server_deployment(both, server, trial)["spec"]["template"]
        (term,) = pod["spec"]["affinity"]["podAffinity"][NEEDED]
        assert term["topologyKey"] == HOST
        (of_trials,) = term["labelSelector"]["matchExpressions"]
        assert of_trials["values"] == names
        # Its own labels are among those, or the first of the two could go nowhere.
        own = pod["metadata"]["labels"]
        assert own[of_trials["key"]] in of_trials["values"]
        assert term["labelSelector"]["matchLabels"].items() <= own.items()
    alone = server_deployment(ctx, ctx.spec.servers[0], names[0])["spec"]["template"]["spec"]
    assert NEEDED not in (alone.get("affinity") or {}).get("podAffinity", {})
    there = replace(both, places=Places({"server": ("node-1",)}))
    pod = server_deployment(there, ctx.spec.servers[0], names[0])["spec"]["template"]["spec"]
    assert NEEDED in pod["affinity"]["nodeAffinity"]
    assert NEEDED in pod["affinity"]["podAffinity"]


def test_generators_of_which_there_is_one_each_would_rather_be_on_one_node() -> None:
    for parallelism in (1, 2):
        ctx = duet(parallelism)
        first, second = pair(ctx)
        both = replace(ctx, together=(first.name, second.name))
        pod = trial_job(both, second)["spec"]["template"]["spec"]
        wishes = pod["affinity"].get("podAffinity", {}).get(WISHED, [])
        assert len(wishes) == (parallelism == 1)
        # They stay away from the servers all the same.
        assert pod["affinity"]["podAntiAffinity"][WISHED]


def test_where_a_placement_has_servers_follow_others_the_pair_is_a_wish() -> None:
    # The scheduler places a first pod only where pods are that all terms are about.
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": HOST}
    follows = {"affinity": {"podAffinity": {NEEDED: [term]}}}
    placement = Placement.from_wire("near", {"servers": follows})
    names = [one.name for one in pair(duet())]
    ctx = replace(duet(), placement=placement, together=tuple(names))
    pod = server_deployment(ctx, ctx.spec.servers[0], names[0])["spec"]["template"]["spec"]
    assert pod["affinity"]["podAffinity"][NEEDED] == [term]
    of_pair = [
        one
        for one in pod["affinity"]["podAffinity"][WISHED]
        if one["podAffinityTerm"]["labelSelector"].get("matchExpressions")
    ]
    assert names in [
        rule["values"]
        for one in of_pair
        for rule in one["podAffinityTerm"]["labelSelector"]["matchExpressions"]
    ]


def test_an_older_version_leaves_it_alone() -> None:
    assert duet().stored_version == DUET_VERSION
    assert duet(pairing="interleaved").stored_version == USUAL_VERSION
    assert duet(pairing=None, nodes="rotate").stored_version == PLACED_VERSION
    assert BenchmarkRunSpec.model_validate(duet().spec.to_wire()).duet
