"""What a placement says reaches all pods of its part, and holds beside what Laptime asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from laptime.manifests.context import RunContext
from laptime.manifests.objects import COMPONENT_LABEL, Component, Manifest
from laptime.manifests.placement import PlacedPart, Placement, part_of
from laptime.manifests.server import server_deployment
from laptime.plan import Places
from tests.manifests.runs import SPECS, context, objects, pod_specs
from tests.manifests.test_placement import MUST, WISH, affinity, generator, server

SAID = {
    "nodeSelector": {"laptime": "PART"},
    "tolerations": [{"key": "laptime", "operator": "Equal", "value": "PART"}],
    "runtimeClassName": "PART",
    "priorityClassName": "PART",
    "schedulerName": "PART",
}


LINUX = {"kubernetes.io/os": "linux"}
TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
LEAVES = [
    {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    for taint in TAINTS
]


def said_of(part: str) -> Manifest:
    """Return rules that name the part wherever they can."""
    return {
        **SAID,
        **{key: part for key, value in SAID.items() if value == "PART"},
        "nodeSelector": {"laptime": part},
        "tolerations": [{"key": "laptime", "operator": "Equal", "value": part}],
    }


ISOLATED = Placement.from_wire("isolated", {part: said_of(part) for part in PlacedPart})


def placed_in(ctx: RunContext, **rules: Mapping[str, Any]) -> RunContext:
    return replace(ctx, placement=Placement.from_wire("isolated", rules))


@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_pod_of_a_run_has_the_rules_of_its_part(name: str) -> None:
    ctx = replace(context(name), placement=ISOLATED)
    found = list(pod_specs(objects(ctx)))
    assert found
    for _, template, pod in found:
        labels = template["metadata"]["labels"]
        part = part_of(labels[COMPONENT_LABEL])
        said = said_of(part)
        assert {key: pod[key] for key in said} == {
            **said,
            "nodeSelector": {**LINUX, **said["nodeSelector"]},
            "tolerations": [*said["tolerations"], *LEAVES],
        }
        assert labels["laptime.dev/placement"] == "isolated"


@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_pod_of_a_run_leaves_a_node_that_is_gone(name: str) -> None:
    for _, _, pod in pod_specs(objects(context(name))):
        assert pod["tolerations"] == LEAVES


@pytest.mark.parametrize("name", sorted(SPECS))
def test_no_pod_of_a_run_goes_to_a_node_of_windows(name: str) -> None:
    plain = context(name)
    for _, _, pod in pod_specs(objects(plain)):
        assert pod["nodeSelector"] == LINUX
    # An administrator's word is the last.
    other = {"kubernetes.io/os": "other"}
    said = {part: {"nodeSelector": other} for part in PlacedPart}
    for _, _, pod in pod_specs(objects(placed_in(plain, **said))):
        assert pod["nodeSelector"] == other


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"operator": "Exists"}, []),
        ({"key": TAINTS[0], "operator": "Exists"}, LEAVES[1:]),
        ({"key": TAINTS[1], "operator": "Exists", "effect": "NoExecute"}, LEAVES[:1]),
        ({"key": TAINTS[1], "operator": "Exists", "effect": "NoSchedule"}, LEAVES),
        ({"key": "laptime", "operator": "Exists"}, LEAVES),
    ],
)
def test_what_a_placement_says_of_nodes_that_are_gone_is_its_own(
    said: Manifest, left: list[Manifest]
) -> None:
    ctx = placed_in(context("full"), servers={"tolerations": [said]})
    deployment = server_deployment(ctx, ctx.spec.server("axum"), None)
    assert deployment["spec"]["template"]["spec"]["tolerations"] == [said, *left]


def test_each_component_belongs_to_one_part() -> None:
    generators = {
        Component.GENERATOR,
        Component.PROFILER,
        Component.VERIFIER,
        Component.PATH_GENERATOR,
    }
    servers = {Component.SERVER, Component.PATH_SERVER, Component.ASKER}
    for component in Component:
        if component in generators:
            assert part_of(component) is PlacedPart.GENERATORS
        elif component in servers:
            assert part_of(component) is PlacedPart.SERVERS
        else:
            assert part_of(component) is PlacedPart.TIERS
    around = context("around").scenario.services
    assert {part_of(one.component) for one in around} == {PlacedPart.TIERS}
    assert {part_of(one.reset_component) for one in around} == {PlacedPart.TIERS}


@pytest.mark.parametrize("name", sorted(SPECS))
def test_no_placement_and_one_that_says_nothing_leave_pods_as_they_are(name: str) -> None:
    plain = context(name)
    empty = placed_in(plain)
    pods = [pod for _, _, pod in pod_specs(objects(plain))]
    assert [pod for _, _, pod in pod_specs(objects(empty))] == pods
    for _, template, _ in pod_specs(objects(plain)):
        assert "laptime.dev/placement" not in template["metadata"]["labels"]


def test_what_is_bound_to_nodes_has_to_be_on_nodes_of_the_placement_too() -> None:
    zones = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        for zone in ("a", "b")
    ]
    ctx = placed_in(
        replace(context(), places=Places({"server": ("n1", "n2")})),
        servers={"affinity": {"nodeAffinity": {MUST: {"nodeSelectorTerms": zones}}}},
    )
    terms = server(ctx)["nodeAffinity"][MUST]["nodeSelectorTerms"]
    # A node has to match one term: each of those has a zone and a name.
    assert [
        (term["matchExpressions"][0]["values"][0], term["matchFields"][0]["values"][0])
        for term in terms
    ] in (
        [(zone, name) for name in ("n1", "n2") for zone in ("a", "b")],
        [(zone, name) for zone in ("a", "b") for name in ("n1", "n2")],
    )
    unbound = placed_in(context(), servers={"affinity": {"nodeAffinity": {MUST: {
        "nodeSelectorTerms": zones}}}})  # fmt: skip
    assert server(unbound)["nodeAffinity"][MUST]["nodeSelectorTerms"] == zones


def test_wishes_and_needs_of_the_administrator_are_added_to_those_of_laptime() -> None:
    beside = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    wish = {"weight": 7, "podAffinityTerm": beside}
    ctx = placed_in(
        context(), generators={"affinity": {"podAntiAffinity": {WISH: [wish], MUST: [beside]}}}
    )
    plain, rules = generator(context()), generator(ctx)
    assert rules["podAntiAffinity"][WISH] == [*plain["podAntiAffinity"][WISH], wish]
    assert rules["podAntiAffinity"][MUST] == [beside]
    # Of the other parts it says nothing.
    assert server(ctx) == server(context())


def test_a_part_may_be_without_rules() -> None:
    ctx = placed_in(context(), generators={"nodeSelector": {"a": "b"}})
    deployment = server_deployment(ctx, ctx.spec.server("axum"), "demo-trial-007")
    assert deployment["spec"]["template"]["spec"]["nodeSelector"] == LINUX
    assert affinity(deployment) == server(context())


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "no name": ("Isolated", {}),
    "a name that is no label": ("a" * 41, {}),
    "a part that there is not": ("isolated", {"databases": {}}),
    "a field that would leave the sandbox": ("isolated", {"servers": {"hostNetwork": True}}),
    "a node by its name": ("isolated", {"servers": {"nodeName": "n1"}}),
    "an affinity that there is not": ("isolated", {"tiers": {"affinity": {"nodes": {}}}}),
    "a selector that is a text": ("isolated", {"tiers": {"nodeSelector": "a=b"}}),
    "namespaces that are a text": ("isolated", {"namespaces": "bench"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_placement_is_refused(case: str) -> None:
    name, document = WRONG[case]
    with pytest.raises(ValueError, match="placement"):
        Placement.from_wire(name, document)


def test_the_pin_is_of_the_rules_alone() -> None:
    isolated: dict[str, Any] = {"servers": {"nodeSelector": {"a": "b"}}}
    pin = Placement.from_wire("isolated", isolated).pin
    alike: list[dict[str, Any]] = [
        {"description": "x"},
        {"namespaces": ["a"]},
        {"default": True},
        {"tiers": {}},
    ]
    for more in alike:
        assert Placement.from_wire("isolated", {**isolated, **more}).pin == pin
    for more in ({"servers": {}}, {"tiers": {"nodeSelector": {"a": "b"}}}):
        assert Placement.from_wire("isolated", {**isolated, **more}).pin != pin
