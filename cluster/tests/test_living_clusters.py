"""A cluster in which something runs is not given up for a node that is taken away for a while."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laptime_cluster import (
    api,
    cgroups,
    components,
    health,
    images,
    lifecycle,
    pause,
    places,
    processes,
    store,
)
from laptime_cluster.commands import ClusterError
from laptime_cluster.places import Node
from laptime_cluster.processes import Daemon

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
DEDICATED = {"key": "dedicated", "value": "laptime", "effect": "NoSchedule"}


class World:
    """A machine with a cluster of three nodes that works, until a test has something break."""

    def __init__(self, folder: Path) -> None:
        self.fingerprint = folder / "fingerprint"
        self.record = folder / "nodes.json"
        self.nodes: tuple[Node, ...] = ()
        self.dead: set[str] = set()
        self.frozen: set[str] = set()
        self.unplugged: set[str] = set()
        self.problems: list[str] = []
        self.is_answering = True
        self.started_with: list[int] = []

    def is_alive(self, daemon: Daemon) -> bool:
        """Whether a daemon was started and is not among the dead."""
        return daemon.pid_file.exists() and str(daemon) not in self.dead

    def stop(self, node: Node) -> None:
        """Leave what `stop` leaves of a node."""
        for file in node.pids.iterdir():
            file.unlink()
        node.pids.rmdir()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    there = World(tmp_path)
    monkeypatch.setattr(places, "RUN", tmp_path / "run")
    monkeypatch.setattr(places, "NODES", there.record)
    monkeypatch.setattr(lifecycle, "FINGERPRINT", there.fingerprint)
    there.nodes = places.record(3, range(3))
    there.fingerprint.touch()
    for daemon in components.every(there.nodes):
        daemon.pid_file.parent.mkdir(parents=True, exist_ok=True)
        daemon.pid_file.touch()
    monkeypatch.setattr(processes, "is_alive", there.is_alive)
    monkeypatch.setattr(api, "is_ready", lambda: there.is_answering)
    monkeypatch.setattr(cgroups, "is_frozen", lambda node: node.name in there.frozen)
    monkeypatch.setattr(health, "is_connected", lambda node: node.name not in there.unplugged)
    monkeypatch.setattr(health, "problems", lambda: there.problems)
    monkeypatch.setattr(health, "summary", lambda: "")
    monkeypatch.setattr(lifecycle, "_PATIENCE_SECONDS", -1)
    monkeypatch.setattr("laptime_cluster.lifecycle.time.sleep", lambda seconds: None)
    # Whatever the one beside the tests has.
    monkeypatch.setattr(lifecycle, "FAMILY", "ipv4")
    monkeypatch.setattr(lifecycle, "WANTED_FAMILY", None)
    # What `up` does beside looking.
    monkeypatch.setattr(lifecycle, "STATE", tmp_path / "state")
    for name in ("_require_root", "_require_disk", "_build_node"):
        monkeypatch.setattr(lifecycle, name, lambda: None)
    monkeypatch.setattr(pause, "archive", lambda: None)
    monkeypatch.setattr(images, "describe", lambda archive: None)
    monkeypatch.setattr(store, "refresh", lambda: None)

    def clean(announcement: str) -> bool:
        there.record.unlink(missing_ok=True)
        return True

    monkeypatch.setattr(lifecycle, "_clean", clean)
    monkeypatch.setattr(lifecycle, "_start", lambda count, _: there.started_with.append(count))
    return there


def node_object(*taints: dict[str, str], ready: str = "True") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": "2026-01-01T00:00:10Z"}
    return {"spec": {"taints": list(taints)}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("found", "is_ready", "is_open"),
    [
        (node_object(), True, True),
        (node_object(CORDONED), True, False),
        (node_object(DEDICATED, CORDONED), True, False),
        (node_object(NOT_READY), False, False),
        (node_object(DEDICATED, UNREACHABLE), False, False),
        (node_object(ready="Unknown"), False, False),
        (None, False, False),
    ],
)
def test_a_node_that_is_closed_to_pods_is_ready_and_not_open(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    found: dict[str, Any] | None,
    is_ready: bool,
    is_open: bool,
) -> None:
    monkeypatch.setattr(api, "get", lambda path: found)
    assert health.is_node_ready(world.nodes[1]) is is_ready
    assert health.is_node_open(world.nodes[1]) is is_open


@pytest.mark.parametrize(
    ("take_away", "advice"),
    [
        (lambda world: world.stop(world.nodes[1]), "stopped (`start laptime-2` starts it)"),
        (lambda world: world.frozen.add("laptime-2"), "frozen (`thaw laptime-2` has it go on)"),
        (
            lambda world: world.unplugged.add("laptime-2"),
            "cut off (`mend laptime-2` joins it again)",
        ),
    ],
    ids=["stopped", "frozen", "cut-off"],
)
def test_up_says_how_to_bring_a_node_back_and_removes_nothing(
    world: World, take_away: Callable[[World], None], advice: str
) -> None:
    take_away(world)
    with pytest.raises(ClusterError) as refused:
        lifecycle.up()
    assert f"the node laptime-2 is {advice}" in str(refused.value)
    assert "`down`" in str(refused.value)
    assert world.record.exists()


def test_up_removes_nothing_for_a_node_that_does_not_get_ready(world: World) -> None:
    world.problems = ["the node laptime-2 is not ready"]
    with pytest.raises(ClusterError, match=r"the node laptime-2 is not ready; .*`start NODE`"):
        lifecycle.up()
    assert world.record.exists()


@pytest.mark.parametrize("is_healthy", [True, False])
def test_up_removes_nothing_that_has_other_addresses_than_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch, is_healthy: bool
) -> None:
    if not is_healthy:
        world.dead.add("etcd")
    monkeypatch.setattr(lifecycle, "WANTED_FAMILY", "ipv6")
    with pytest.raises(ClusterError, match="has the addresses ipv4, not ipv6: `down` first"):
        lifecycle.up()
    assert world.record.exists()


@pytest.mark.parametrize("died", ["etcd", "kube-scheduler", "kubelet of laptime-2"])
def test_up_starts_afresh_with_as_many_nodes_where_a_daemon_died(world: World, died: str) -> None:
    world.dead.add(died)
    lifecycle.up()
    assert world.started_with == [3]


def test_up_starts_afresh_where_no_api_server_answers(world: World) -> None:
    world.stop(world.nodes[1])
    world.is_answering = False
    world.problems = ["the API server is not ready"]
    lifecycle.up()
    assert world.started_with == [3]


def test_up_starts_afresh_after_an_up_that_was_killed(world: World) -> None:
    world.fingerprint.unlink()
    lifecycle.up(2)
    assert world.started_with == [2]


def test_up_starts_one_node_where_there_was_no_cluster(world: World) -> None:
    world.fingerprint.unlink()
    world.record.unlink()
    lifecycle.up()
    assert world.started_with == [1]
