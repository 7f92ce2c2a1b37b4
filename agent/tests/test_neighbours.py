"""What else runs on the node, in temporary trees of two kubelets on one machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from two_nodes import FAR, ONE, TWO, Machine

from laptime_agent.exposition import Exposition
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.main import own_metrics
from laptime_agent.neighbours import MOST_NEIGHBOURS, Neighbours
from laptime_agent.node import Node
from laptime_agent.pods import Pod
from laptime_agent.sampler import Sampler


@pytest.fixture(params=[(1, False), (1, True), (2, False), (2, True)], ids=str)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, *request.param)


def pod(uid: str, name: str, namespace: str = "team") -> Pod:
    metadata = {"uid": uid, "name": name, "namespace": namespace}
    return Pod.from_wire({"metadata": metadata})


def seconds(neighbours: Neighbours) -> dict[str, float]:
    return {one.name: reading.cpu_nanoseconds / 1e9 for one, reading in neighbours.pods}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new cgroups at each reading."""
    monkeypatch.setattr("laptime_agent.neighbours._SEARCH_SECONDS", 0.0)


def test_all_pods_of_the_own_node_together_and_each_that_was_told_of(machine: Machine) -> None:
    machine.set_cpu(machine.pod("a", ONE), 5)
    neighbours = Neighbours(machine.settled())
    neighbours.tell("team", {ONE: pod(ONE, "one"), TWO: pod(TWO, "two")})
    neighbours.tell("other", {FAR: pod(FAR, "far")})
    before = time.time()
    neighbours.read()
    assert neighbours.all_pods is not None
    assert neighbours.all_pods.cpu_nanoseconds == 9 * 10**9
    assert before - 0.001 <= neighbours.all_pods.timestamp_ms / 1000 <= time.time()
    # Of two nothing runs, far is on another node.
    assert seconds(neighbours) == {"one": 5.0}
    machine.set_cpu(machine.tree("a"), 11)
    machine.set_cpu(machine.pod("a", ONE), 6)
    neighbours.read()
    assert neighbours.all_pods.cpu_nanoseconds == 11 * 10**9
    assert seconds(neighbours) == {"one": 6.0}


def test_pods_come_and_go(machine: Machine, at_once: None) -> None:
    neighbours = Neighbours(machine.settled())
    neighbours.tell("team", {ONE: pod(ONE, "one"), TWO: pod(TWO, "two")})
    neighbours.read()
    assert neighbours.pods == ()
    machine.set_cpu(machine.pod("a", TWO), 2)
    neighbours.read()
    assert seconds(neighbours) == {"two": 2.0}
    machine.set_cpu(machine.pod("a", ONE), 1)
    neighbours.tell("team", {ONE: pod(ONE, "one")})
    neighbours.read()
    assert seconds(neighbours) == {"one": 1.0}


def test_a_tree_without_a_counter_is_not_known_until_it_has_one(machine: Machine) -> None:
    hierarchy = machine.settled()
    machine.end(machine.tree("a"))
    neighbours = Neighbours(hierarchy)
    neighbours.read()
    assert neighbours.all_pods is None
    machine.set_cpu(machine.tree("a"), 0)
    neighbours.read()
    assert neighbours.all_pods is not None


def test_an_agent_that_does_not_know_its_node_says_nothing_of_it(machine: Machine) -> None:
    machine.set_cpu(machine.pod("a", ONE), 5)
    hierarchy = Hierarchy(str(machine.folder))
    assert hierarchy.find_pod(ONE, search_roots=True) is not None
    neighbours = Neighbours(hierarchy)
    neighbours.tell("team", {ONE: pod(ONE, "one")})
    neighbours.read()
    assert neighbours.all_pods is None
    assert neighbours.pods == ()


def test_so_many_pods_are_read_and_no_more(tmp_path: Path, at_once: None) -> None:
    machine = Machine(tmp_path, 2, systemd=False)
    uids = [f"{number:08x}" for number in range(MOST_NEIGHBOURS + 5)]
    for uid in uids:
        machine.set_cpu(machine.pod("a", uid), 1)
    neighbours = Neighbours(machine.settled())
    neighbours.tell("team", {uid: pod(uid, uid) for uid in uids})
    neighbours.read()
    neighbours.read()
    assert len(neighbours.pods) == MOST_NEIGHBOURS
    # What goes makes room.
    neighbours.tell("team", {uid: pod(uid, uid) for uid in uids[5:]})
    neighbours.read()
    assert len(neighbours.pods) == MOST_NEIGHBOURS
    assert set(seconds(neighbours)) == set(uids[5:])


def test_it_is_written_beside_the_node_and_never_among_the_pods_of_runs(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, systemd=True)
    machine.set_cpu(machine.pod("a", ONE), 5)
    sampler = Sampler(machine.settled(), Node(), None)
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    sampler.neighbours.tell("team", {ONE: pod(ONE, "one")})
    assert b"laptime_node_pods_cpu_seconds_total" not in exposition.render("r")
    sampler.tick(everything=True)
    text = exposition.render("r").decode()
    found = {
        family.name: family.samples
        for family in text_string_to_metric_families(text)
        if family.samples
    }
    (tree,) = found["laptime_node_pods_cpu_seconds"]
    assert (tree.labels, tree.value) == ({"node": "n1"}, 9.0)
    (one,) = found["laptime_neighbour_cpu_seconds"]
    assert one.labels == {"namespace": "team", "pod": "one", "node": "n1"}
    assert one.value == 5.0
    assert float(str(one.timestamp)) == pytest.approx(time.time(), abs=5)
    assert "laptime_pod_cpu_seconds" not in found
    # A scrape reads nothing anew.
    machine.set_cpu(machine.pod("a", ONE), 50)
    assert exposition.render("r").decode().count(" 5.0 ") == 1
