"""Where the pods of a run ask to go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from laptime.api.placement import Nodes
from laptime.manifests.context import RunContext
from laptime.manifests.generator import trial_job
from laptime.manifests.objects import Manifest
from laptime.manifests.server import server_deployment
from laptime.manifests.side_services import side_service_deployment
from laptime.manifests.tiers import tier_objects
from laptime.plan import Places, Trial
from tests.manifests.runs import UID, context

WISH = "preferredDuringSchedulingIgnoredDuringExecution"
MUST = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]["affinity"]
    return found


def generator(ctx: RunContext) -> dict[str, Any]:
    return affinity(trial_job(ctx, Trial("demo-trial-007", 7, "axum", "closed", 1)))


def server(ctx: RunContext) -> dict[str, Any]:
    return affinity(server_deployment(ctx, ctx.spec.server("axum"), "demo-trial-007"))


def selected(rule: dict[str, Any]) -> dict[str, Any]:
    (term,) = rule[WISH]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    found: dict[str, Any] = term["podAffinityTerm"]["labelSelector"]
    return found


def test_generators_keep_away_from_what_they_drive_and_the_rest_keeps_together() -> None:
    ctx = context()
    rules = generator(ctx)
    assert set(rules) == {"podAntiAffinity"}
    driven = selected(rules["podAntiAffinity"])
    # Of this run alone: another one of the same name may still be ending.
    assert driven["matchLabels"] == {"laptime.dev/run-uid": UID}
    (expression,) = driven["matchExpressions"]
    # All but who drives or asks: services around a server have components of their own names.
    assert expression["operator"] == "NotIn"
    assert set(expression["values"]) == {"generator", "profiler", "verifier"}
    assert server(ctx) == {"podAffinity": {WISH: rules["podAntiAffinity"][WISH]}}
    tiers = [one for one in tier_objects(ctx) if one["kind"] == "Deployment"]
    assert len(tiers) >= 3
    assert all(affinity(one) == server(ctx) for one in tiers)


def test_a_generator_keeps_away_from_the_pods_of_a_service_too() -> None:
    ctx = context("there")
    name = ctx.spec.servers[0].name
    job = trial_job(ctx, Trial("demo-trial-001", 1, name, ctx.spec.loads[0].name, 1))
    terms = affinity(job)["podAntiAffinity"][WISH]
    selectors = [one["podAffinityTerm"]["labelSelector"] for one in terms]
    assert {"matchLabels": dict(ctx.targets[name].selector)} in selectors
    assert len(selectors) == 2


def test_a_trial_is_bound_to_the_nodes_of_the_first() -> None:
    ctx = replace(context(), places=Places({"server": ("n1",), "generator": ("n2", "n3")}))

    def names(rules: dict[str, Any]) -> list[str]:
        terms = rules["nodeAffinity"][MUST]["nodeSelectorTerms"]
        fields = [field for term in terms for field in term["matchFields"]]
        assert all(field["key"] == "metadata.name" for field in fields)
        # The API server takes one name a term.
        return [name for field in fields for name in field["values"] if len(field["values"]) == 1]

    assert names(server(ctx)) == ["n1"]
    assert names(generator(ctx)) == ["n2", "n3"]


def test_a_tier_would_rather_be_where_it_was_and_need_not() -> None:
    ctx = replace(context(), places=Places({"postgres": ("n1",)}))
    tiers = [affinity(one) for one in tier_objects(ctx) if one["kind"] == "Deployment"]
    (rule,) = (one["nodeAffinity"] for one in tiers if "nodeAffinity" in one)
    (wish,) = rule[WISH]
    assert wish["preference"]["matchFields"][0]["values"] == ["n1"]
    assert MUST not in rule


def test_a_service_that_each_trial_has_afresh_is_bound_and_one_that_stays_is_not() -> None:
    ctx = context("around")
    ctx = replace(ctx, places=Places({one.component: ("n1",) for one in ctx.scenario.services}))
    cache = ctx.scenario.services[0]
    of_trial = affinity(side_service_deployment(ctx, cache, "demo-trial-007"))
    (term,) = of_trial["nodeAffinity"][MUST]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["n1"]
    for one in ctx.scenario.services:
        assert MUST not in affinity(side_service_deployment(ctx, one))["nodeAffinity"]


def test_after_a_lost_attempt_it_would_rather_be_there() -> None:
    ctx = replace(context(), places=Places({"server": ("n1",)}, firm=False))
    (wish,) = server(ctx)["nodeAffinity"][WISH]
    assert wish["preference"]["matchFields"][0]["values"] == ["n1"]
    assert MUST not in server(ctx)["nodeAffinity"]


def test_several_generators_keep_apart_less_than_from_what_they_drive() -> None:
    ctx = context("several")
    several = ctx.spec.generator.parallelism
    job = trial_job(ctx, Trial("demo-trial-001", 1, "axum", ctx.spec.loads[0].name, 1))
    driven, beside = affinity(job)["podAntiAffinity"][WISH]
    selector = beside["podAffinityTerm"]["labelSelector"]["matchLabels"]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items()
    assert selector["laptime.dev/component"] == "generator"
    # Rather all the others on one node than one server.
    assert 0 < (several - 1) * beside["weight"] < driven["weight"]


def rotating(avoided: tuple[tuple[str, ...], ...] = (), **nodes: tuple[str, ...]) -> RunContext:
    ctx = context()
    spec = ctx.spec.model_copy(update={"nodes": Nodes.ROTATE})
    return replace(ctx, spec=spec, places=Places(nodes, avoided=avoided))


def test_where_nodes_rotate_tiers_keep_together_and_hold_no_server() -> None:
    ctx = rotating()
    assert server(ctx) == {}
    for tier in (one for one in tier_objects(ctx) if one["kind"] == "Deployment"):
        (others,) = selected(affinity(tier)["podAffinity"])["matchExpressions"]
        assert (others["operator"], "server" in others["values"]) == ("NotIn", True)
    # Generators keep away from servers as ever.
    assert generator(ctx) == generator(context())


def test_a_server_would_rather_go_to_a_node_that_had_none_then_to_one_of_fewer_turns() -> None:
    (new, fewer) = server(rotating((("n1", "n2"), ("n1",))))["nodeAffinity"][WISH]
    assert (new["weight"], fewer["weight"]) == (99, 1)

    def names(wish: dict[str, Any]) -> list[str]:
        fields = wish["preference"]["matchFields"]
        assert {(one["key"], one["operator"]) for one in fields} == {("metadata.name", "NotIn")}
        # The API server takes one name a requirement.
        return [name for one in fields for name in one["values"] if len(one["values"]) == 1]

    assert (names(new), names(fewer)) == (["n1", "n2"], ["n1"])
    # Once a trial of its repetition was measured it goes where that one was.
    bound = server(rotating((("n2",),), server=("n1",)))["nodeAffinity"]
    assert set(bound) == {MUST}
