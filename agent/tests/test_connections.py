"""Connection tracking of the node: the kernel's file, whom it is read through, and a real table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cgroup_maker import MOUNT, RealPod, real_pod
from prometheus_client.parser import text_string_to_metric_families

from laptime_agent.connections import ConnectionTracking, parse_tracking
from laptime_agent.exposition import Exposition
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.main import own_metrics
from laptime_agent.node import Node
from laptime_agent.processes import process_of_node
from laptime_agent.readings import TrackingReading
from laptime_agent.sampler import Sampler

SOURCES = Path(__file__).parents[1] / "src"
UID = "0a1b2c3d-1111-2222-3333-444455556666"
OTHER = UID.replace("0a1b", "9f9f")

FULL = (Path(__file__).parent / "fixtures/network/nf_conntrack").read_bytes()
NAMES, FIRST, SECOND = FULL.splitlines()


def with_event(name: str, of_cpus: tuple[int, int]) -> bytes:
    """The recorded file with other counts of an event."""
    at = NAMES.split().index(name.encode())
    rows = [line.split() for line in (FIRST, SECOND)]
    for row, count in zip(rows, of_cpus, strict=True):
        row[at] = b"%08x" % count
    return b"\n".join([NAMES, *(b" ".join(row) for row in rows)])


def test_entries_are_of_the_table_and_events_of_all_cpus() -> None:
    entries, events = parse_tracking(FULL)
    assert entries == 262_140
    assert events == {"drop": 0, "early_drop": 0x873C + 0x81D8, "insert_failed": 0}
    assert parse_tracking(with_event("drop", (16, 1203)))[1]["drop"] == 1219
    assert parse_tracking(with_event("insert_failed", (0, 2)))[1]["insert_failed"] == 2


def test_columns_are_found_by_their_names() -> None:
    """Linux 4.19 had `searched` and `delete_list`, later ones have `clashres` and `chainlength`."""
    old = b"entries searched found early_drop drop insert_failed\n0000000a 1 2 3 4 5\n"
    assert parse_tracking(old) == (10, {"drop": 4, "early_drop": 3, "insert_failed": 5})


@pytest.mark.parametrize("text", [b"", NAMES, b"entries drop\n1 2\n"])
def test_what_is_no_such_file_is_no_reading(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"list|line"):
        parse_tracking(text)


def machine(folder: Path, version: int, root: str) -> Hierarchy:
    """A machine with a pod of the own node in a tree of a kubelet, and another node."""
    tree = folder if version == 2 else folder / "cpuacct"
    tree.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (tree / "cgroup.controllers").write_text("cpu memory")
    (tree / root / "burstable" / f"pod{UID}").mkdir(parents=True)
    (tree / "cluster/b/kubepods/burstable" / f"pod{OTHER}").mkdir(parents=True)
    hierarchy = Hierarchy(str(folder))
    hierarchy.settle(UID)
    return hierarchy


def processes(proc: Path, **groups: str) -> None:
    for name, text in groups.items():
        (proc / name.removeprefix("p")).mkdir(parents=True)
        (proc / name.removeprefix("p") / "cgroup").write_text(text)


V1 = "9:cpu,cpuacct:{}\n5:memory:/elsewhere\n0::/elsewhere\n"


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        (1, V1),
        # The agent sees the machine's groups, or those around its own container.
        (2, "0::{}\n"),
        (2, "0::/../../../../../..{}\n"),
    ],
)
def test_a_node_that_is_a_part_of_a_machine_is_found_by_its_daemons(
    tmp_path: Path, version: int, shown: str
) -> None:
    hierarchy = machine(tmp_path / "cgroup", version, "cluster/a/kubepods")
    proc = tmp_path / "proc"
    pod = f"/cluster/a/kubepods/burstable/pod{UID}/4f"
    processes(
        proc,
        p1=shown.format("/init.scope"),
        p20=shown.format("/cluster/b/daemons"),
        p30=shown.format(pod),
        p100=shown.format("/cluster/a/daemons"),
        p40=shown.format("/cluster/a-longer-name/daemons"),
    )
    (proc / "sys").mkdir()
    (proc / "9").mkdir()
    assert process_of_node(str(proc), hierarchy) == 100
    shutil.rmtree(proc / "100")
    assert process_of_node(str(proc), hierarchy) is None


def test_a_whole_machine_is_found_by_its_first_process(tmp_path: Path) -> None:
    assert process_of_node("/nowhere", machine(tmp_path, 2, "kubepods")) == 1


def test_where_the_node_is_not_known_nothing_is_read(tmp_path: Path) -> None:
    machine(tmp_path / "cgroup", 2, "cluster/a/kubepods")
    stranger = Hierarchy(str(tmp_path / "cgroup"))
    assert process_of_node("/proc", stranger) is None
    tracking = ConnectionTracking(stranger, "/proc")
    tracking.read()
    assert tracking.newest is None


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, Hierarchy]:
    """The /proc of a machine that is one node, with tracking, and its cgroups."""
    proc = tmp_path / "proc"
    (proc / "1/net/stat").mkdir(parents=True)
    (proc / "1/net/stat/nf_conntrack").write_bytes(FULL)
    (proc / "sys/net/netfilter").mkdir(parents=True)
    (proc / "sys/net/netfilter/nf_conntrack_max").write_text("262144\n")
    return proc, machine(tmp_path / "cgroup", 2, "kubepods")


def exposed(sampler: Sampler) -> dict[str, list[tuple[dict[str, str], float]]]:
    text = Exposition(sampler, "n1", own_metrics(sampler)).render("r").decode()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            if "conntrack" in one.name:
                assert one.timestamp is not None
                found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def test_what_is_exposed(whole: tuple[Path, Hierarchy]) -> None:
    proc, hierarchy = whole
    sampler = Sampler(hierarchy, Node(), None)
    assert exposed(sampler) == {}
    sampler.connections = ConnectionTracking(hierarchy, str(proc), str(proc))
    sampler.tick(everything=True)
    node = {"node": "n1"}
    assert exposed(sampler) == {
        "laptime_node_nf_conntrack_entries": [(node, 262_140)],
        "laptime_node_nf_conntrack_entries_limit": [(node, 262_144)],
        "laptime_node_nf_conntrack_events_total": [
            ({**node, "event": "drop"}, 0),
            ({**node, "event": "early_drop"}, 0x873C + 0x81D8),
            ({**node, "event": "insert_failed"}, 0),
        ],
    }


def test_without_the_module_nothing_is_said_and_never_nought(
    whole: tuple[Path, Hierarchy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime_agent.connections._FIRST_SEARCH_SECONDS", 0.0)
    proc, hierarchy = whole
    (proc / "1/net/stat/nf_conntrack").rename(proc / "away")
    sampler = Sampler(hierarchy, Node(), None)
    sampler.connections = tracking = ConnectionTracking(hierarchy, str(proc), str(proc))
    tracking.read()
    assert tracking.newest is None
    assert exposed(sampler) == {}
    # Loaded later, and where the limit is not told.
    (proc / "away").rename(proc / "1/net/stat/nf_conntrack")
    (proc / "sys/net/netfilter/nf_conntrack_max").unlink()
    tracking.read()
    assert tracking.newest is not None
    assert tracking.newest.limit is None
    assert "laptime_node_nf_conntrack_entries_limit" not in exposed(sampler)


def test_in_vain_it_searches_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(
        "laptime_agent.connections.process_of_node", lambda proc, _: looked.append(proc)
    )
    tracking = ConnectionTracking(machine(tmp_path, 2, "kubepods"), "/proc")
    for _ in range(5):
        tracking.read()
    assert looked == ["/proc"]


# Makes the network of a node: a rule that tracks connections, and as many of them as it is told.
NETWORK = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
rules = "table ip t { chain c { type filter hook output priority 0; ct state new counter; }; }"
subprocess.run(["nft", "-f", "-"], input=rules.encode(), check=True)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(int(sys.argv[1])):
    try:
        sender.sendto(b"x", ("127.0.0.1", 20000 + port))
    except ConnectionRefusedError:
        sender.sendto(b"x", ("127.0.0.1", 20000 + port))
print("there", flush=True)
sys.stdin.readline()
"""
READ = """
import dataclasses, json, os, sys
from laptime_agent.connections import ConnectionTracking
from laptime_agent.hierarchy import Hierarchy
assert os.geteuid() != 0
hierarchy = Hierarchy(sys.argv[1])
hierarchy.settle(sys.argv[2])
tracking = ConnectionTracking(hierarchy, "/proc")
tracking.read()
print(json.dumps(tracking.newest and dataclasses.asdict(tracking.newest)))
"""


@contextmanager
def node_of(pod: RealPod) -> Iterator[None]:
    """The kubelet's place on a node whose pod this is, with a network of 50 connections."""
    tree = MOUNT / ("." if pod.version == 2 else "cpuacct")
    daemons = tree / f"agent-test-{os.getpid()}" / "daemons"
    daemons.mkdir()
    try:
        with subprocess.Popen(
            ["unshare", "--net", sys.executable, "-c", NETWORK, "50"],
            preexec_fn=lambda: (daemons / "cgroup.procs").write_text(str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            if process.stdout.readline() != "there\n":
                _, said = process.communicate()
                pytest.skip(f"no network of its own can be made here: {said[-300:]}")
            yield
            process.communicate("end\n")
    finally:
        daemons.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
@pytest.mark.skipif(
    not all(map(shutil.which, ("unshare", "ip", "nft", "setpriv"))),
    reason="needs unshare, ip, nft and setpriv",
)
def test_the_kernels_own_table_of_a_node_is_read_by_an_ordinary_user() -> None:
    with real_pod() as pod, node_of(pod):
        nobody = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", "--inh-caps=-all"]
        said = subprocess.run(
            [*nobody, "--bounding-set=-all", sys.executable, "-c", READ, str(MOUNT), pod.uid],
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    found = TrackingReading(**json.loads(said))
    # One for each port, in the namespace of the node and not in that of the machine.
    assert found.entries == 50
    assert found.limit is not None
    assert found.limit > 1000
    assert found.events == {"drop": 0, "early_drop": 0, "insert_failed": 0}
