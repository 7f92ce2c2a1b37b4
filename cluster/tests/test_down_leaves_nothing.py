"""`down` leaves a machine as it was before `up`, whatever was killed in between.

Runs a second cluster beside one that may be in use; needs root and two minutes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.throwaway import (
    ENVIRONMENT,
    PROGRAM,
    cluster,
    kubectl,
    pod,
    processes_of_the_cluster,
    start_pods,
)

pytestmark = [
    pytest.mark.starts_a_cluster,
    pytest.mark.skipif(
        os.environ.get("LAPTIME_CLUSTER_TESTS") != "1",
        reason="starts and kills a cluster; set LAPTIME_CLUSTER_TESTS=1",
    ),
]

Snapshot = dict[str, list[str]]


def snapshot() -> Snapshot:
    content: Snapshot = json.loads(cluster("snapshot").stdout)
    return content


def added_since(before: Snapshot) -> Snapshot:
    """What is there now and was not before, by kind."""
    after = snapshot()
    added = {kind: sorted(set(after[kind]) - set(before[kind])) for kind in before}
    return {kind: things for kind, things in added.items() if things}


def left_behind(before: Snapshot) -> Snapshot:
    """What stays of what was added: things of others come and go meanwhile, and init buries."""
    deadline = time.monotonic() + 20
    while (left := added_since(before)) and time.monotonic() < deadline:
        time.sleep(1)
    return left


def kill(is_wanted: Callable[[str], bool]) -> int:
    killed = 0
    for process_id, name in processes_of_the_cluster().items():
        if is_wanted(name):
            # One that has ended by itself since the look is as dead as wanted.
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
                killed += 1
    return killed


def _daemons() -> dict[int, str]:
    names = ("etcd", "kube-apiserver", "kubelet", "containerd", "kube-proxy", "coredns")
    return {pid: name for pid, name in processes_of_the_cluster().items() if name in names}


@pytest.fixture
def before() -> Iterator[Snapshot]:
    cluster("down")
    yield snapshot()
    cluster("down")


@pytest.fixture
def panic() -> Iterator[str]:
    """Have the machine restart at another time after a panic than 10 s, which a kubelet wants.

    What is another already is left alone: who is killed puts nothing back.
    """
    setting = Path("/proc/sys/kernel/panic")
    before = setting.read_text()
    if before.strip() == "10":
        setting.write_text("11")
    yield f"kernel.panic = {setting.read_text().strip()}"
    if before.strip() == "10":
        setting.write_text(before)


def test_down_after_up_leaves_nothing_and_up_again_starts_nothing_anew(
    panic: str, before: Snapshot
) -> None:
    cluster("up")
    start_pods(pod("sleeper"))
    assert panic in before["settings"]
    assert "settings" not in added_since(before)
    assert {"etcd", "kubelet", "containerd", "pause"} <= set(processes_of_the_cluster().values())
    assert added_since(before).keys() >= {"processes", "links", "addresses", "cgroups", "files"}

    daemons = _daemons()
    cluster("up")
    assert _daemons() == daemons, "it was started anew"
    assert kubectl("get", "pod", "sleeper", "-o", "jsonpath={.status.phase}") == "Running"

    cluster("down")
    assert processes_of_the_cluster() == {}
    assert left_behind(before) == {}
    assert "no cluster to stop" in cluster("down").stdout


@pytest.mark.parametrize(
    "victims",
    [
        lambda name: True,
        lambda name: name in ("containerd", "kubelet"),
        lambda name: name.startswith(("etcd", "containerd-shim")),
        lambda name: name == "kube-proxy",
    ],
    ids=["everything", "containerd-and-kubelet", "etcd-and-shims", "kube-proxy"],
)
def test_up_starts_afresh_after_processes_were_killed(
    before: Snapshot, victims: Callable[[str], bool]
) -> None:
    cluster("up")
    start_pods(pod("sleeper"))
    assert kill(victims) > 0
    assert cluster("status", check=False).returncode == 1
    cluster("up")
    assert cluster("status").returncode == 0
    start_pods(pod("sleeper"))
    kill(victims)
    cluster("down")
    assert processes_of_the_cluster() == {}
    assert left_behind(before) == {}


@pytest.mark.parametrize(
    ("stage", "nodes"),
    [("certificates", 1), ("containerd of laptime is ready", 3), ("controller manager", 1)],
)
def test_up_that_is_killed_half_way_leaves_nothing_in_the_way(
    before: Snapshot, stage: str, nodes: int
) -> None:
    command = [sys.executable, str(PROGRAM), "up", "--nodes", str(nodes)]
    with subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE) as up:
        assert up.stdout is not None
        assert any(stage in line for line in up.stdout), "up ended before the stage was reached"
        time.sleep(0.2)
        up.kill()
    kill(lambda name: name != "etcd")
    cluster("up", "--nodes", str(nodes))
    assert cluster("status").returncode == 0
    assert kubectl("get", "nodes", "-o", "name").split() == [
        f"node/{name}" for name in ("laptime", "laptime-2", "laptime-3")[:nodes]
    ]
    cluster("down")
    assert left_behind(before) == {}
