"""Which CPUs a pod has for itself, in temporary trees of two kubelets on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_nodes import AGENT, FAR, ONE, TWO, Machine

from laptime_agent.hierarchy import Hierarchy
from laptime_agent.own_cpus import OwnCpus
from laptime_agent.pods import Pod
from laptime_agent.tracking import TrackedPod

LONG = 10.0
"""Seconds of CPU that are more than those between two looks here."""


class Node:
    """Node a of a machine with eight CPUs, of which it has 0 to 3; TWO is a pod of a run."""

    def __init__(self, folder: Path, version: int, systemd: bool) -> None:
        self.machine = Machine(folder, version, systemd)
        self.machine.set_cpus("", "0-7")
        self.machine.set_cpus("cluster/a", "0-3")
        self.machine.set_cpus("cluster/b", "4-7")
        self.seconds = 0.0
        self.everything = "0-3"
        self.machine.set_cpu(self.machine.pod("a", TWO), 1)
        self.where = {"agent": "0-3", "server": "0-3", "pause": "0-3", "other": "0-3"}
        self.runs = {"agent", "server", "other"}
        self.go_on()
        status = {"name": "server", "containerID": f"containerd://{'s' * 64}"}
        found = Pod.from_wire(
            {
                "metadata": {"uid": TWO, "name": "two", "namespace": "team"},
                "status": {"containerStatuses": [status]},
            }
        )
        self.pod = TrackedPod(found, self.machine.settled())
        self.own = OwnCpus(self.machine.settled())

    def go_on(self) -> None:
        """Have everything run on for a while."""
        self.seconds += LONG
        pods = {"agent": AGENT, "server": TWO, "pause": TWO, "other": ONE}
        for name, uid in pods.items():
            used = self.seconds if name in self.runs else 0.03
            self.machine.container("a", uid, name, self.where[name], used)
            # What is above containers may run on all that any of them may, and on more.
            above = Path(self.machine.pod("a", uid))
            for group in (above, above.parent, above.parent.parent):
                self.machine.set_cpu(str(group), self.seconds)
                self.machine.set_cpus(str(group), self.everything)
        self.machine.container("b", FAR, "far", "4-7", self.seconds)

    def look(self) -> int | None:
        """Return how many CPUs the pod has for itself, at the second look."""
        for _ in range(2):
            self.go_on()
            self.own.read([self.pod])
        return self.pod.exclusive_cpus


@pytest.fixture(params=[(1, False), (1, True), (2, False), (2, True)], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr("laptime_agent.own_cpus.LOOK_SECONDS", 0.0)
    monkeypatch.setattr(
        "laptime_agent.tracking.TrackedPod.path",
        property(lambda one: one._hierarchy.find_pod(one.pod.cgroup_uid, search_roots=True)),
    )
    return Node(tmp_path, *request.param)


def test_who_may_run_everywhere_has_nothing_for_itself(node: Node) -> None:
    assert node.look() == 0


def test_what_the_cpu_manager_gave_to_a_pod_alone_is_its_own(node: Node) -> None:
    # The others have what is left; pauses are not told, and do not run.
    node.where.update(server="2-3", agent="0-1", other="0-1")
    assert node.look() == 2


def test_a_smaller_set_in_which_others_run_is_not(node: Node) -> None:
    node.where.update(server="2-3")
    assert node.look() == 0
    node.where.update(other="0,2", agent="0")
    assert node.look() == 1


def test_others_that_may_run_everywhere_and_do_not_are_nobody(node: Node) -> None:
    node.where.update(server="2-3", agent="0-1")
    assert node.look() == 0
    node.runs -= {"other"}
    assert node.look() == 2


def test_others_in_a_smaller_set_are_others_although_they_idle(node: Node) -> None:
    # What all share is nobody's own, however little the others need of it.
    node.where.update(server="0-1", agent="0-1", other="2-3")
    node.runs -= {"agent"}
    assert node.look() == 0
    # As with reserved CPUs on which no pod may run.
    node.where.update(server="1-3", agent="1-3", other="1-3")
    node.runs -= {"other"}
    assert node.look() == 0


def test_a_pause_that_begins_takes_nothing_away(node: Node) -> None:
    node.where.update(server="2-3", agent="0-1", other="0-1")
    assert node.look() == 2
    node.machine.container("a", ONE, "new", "0-3", 3.0)
    node.go_on()
    node.own.read([node.pod])
    assert node.pod.exclusive_cpus == 2


def test_pods_that_are_all_kept_from_some_cpus_have_none_for_themselves(node: Node) -> None:
    node.everything = "1-3"
    node.where.update(server="1-3", agent="1-3", other="1-3", pause="1-3")
    assert node.look() == 0


def test_a_container_beside_it_in_the_shared_set_takes_nothing_away(node: Node) -> None:
    node.where.update(server="3", agent="0-1", other="0-1", pause="0-1")
    node.runs |= {"pause"}
    assert node.look() == 1


def test_the_first_look_says_nothing_of_who_ran(node: Node) -> None:
    node.where.update(server="2-3", agent="0-1", other="0-1")
    node.go_on()
    node.own.read([node.pod])
    assert node.pod.exclusive_cpus is None


def test_where_the_own_tree_is_not_known_nothing_is(node: Node) -> None:
    node.own = OwnCpus(Hierarchy(str(node.machine.folder)))
    node.where.update(server="2-3", agent="0-1", other="0-1")
    assert node.look() is None


def test_a_kernel_without_sets_tells_nothing(node: Node) -> None:
    for file in (*node.machine.folder.rglob("cpuset.*"),):
        file.unlink()
    node.own.read([node.pod])
    assert node.pod.exclusive_cpus is None
