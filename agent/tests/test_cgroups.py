"""Both versions of cgroups say the same of the same container."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from laptime_agent.cgroups import CgroupV2, parse_operations, parse_pressure
from laptime_agent.files import field
from laptime_agent.hierarchy import Hierarchy, NodeGroup, parse_cpus
from laptime_agent.node import Node

FIXTURES = Path(__file__).parent / "fixtures"
UID = "0a1b2c3d-1111-2222-3333-444455556666"
CONTAINER = "4f" * 32
SANDBOX = "9e" * 32


@pytest.fixture(params=["v1", "v2"])
def hierarchy(request: pytest.FixtureRequest) -> Hierarchy:
    return Hierarchy(str(FIXTURES / request.param))


def test_the_version_is_recognised() -> None:
    assert Hierarchy(str(FIXTURES / "v1")).version == 1
    assert Hierarchy(str(FIXTURES / "v2")).version == 2


def test_a_folder_without_cgroups_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"neither cgroup.controllers \(v2\) nor cpuacct \(v1\)"):
        Hierarchy(str(tmp_path))


def test_a_pod_is_found_by_its_uid_and_its_containers_by_their_ids(hierarchy: Hierarchy) -> None:
    pod = hierarchy.find_pod(UID, search_roots=True)
    assert pod is not None
    found = hierarchy.find_containers(pod, [CONTAINER, SANDBOX, "77" * 32])
    assert set(found) == {CONTAINER, SANDBOX}
    assert all(path.startswith(pod + "/") for path in found.values())


def test_another_pod_is_not_found(hierarchy: Hierarchy) -> None:
    assert hierarchy.find_pod(UID.replace("0a", "0b"), search_roots=True) is None
    assert hierarchy.find_pod(UID[1:], search_roots=True) is None


def test_the_trees_of_kubelets_are_searched_only_on_demand(hierarchy: Hierarchy) -> None:
    assert hierarchy.find_pod(UID, search_roots=False) is None
    assert hierarchy.find_pod(UID, search_roots=True) is not None
    assert hierarchy.find_pod(UID, search_roots=False) is not None


@pytest.mark.parametrize(
    "root",
    [
        "kubepods",
        "cluster-a/kubepods",
        "kubelet.slice/kubelet-kubepods.slice",
        "docker/abc/kubelet.slice/kubelet-kubepods.slice",
    ],
)
@pytest.mark.parametrize("quality", ["", "burstable", "besteffort"])
def test_a_pod_is_found_wherever_its_kubelet_puts_it(
    tmp_path: Path, root: str, quality: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    if root.endswith(".slice"):
        prefix = Path(root).name.removesuffix(".slice")
        if quality:
            prefix += f"-{quality}"
        parts = [f"{prefix}.slice"] if quality else []
        pod = Path(root, *parts, f"{prefix}-pod{UID.replace('-', '_')}.slice")
    else:
        pod = Path(root, quality, f"pod{UID}")
    (tmp_path / pod).mkdir(parents=True)
    (tmp_path / "system.slice" / "ssh.service").mkdir(parents=True)
    assert Hierarchy(str(tmp_path)).find_pod(UID, search_roots=True) == str(pod)


# As each runtime names them: systemd's driver, then the kubelet's own (cgroupfs).
@pytest.mark.parametrize(
    ("monitor", "container"),
    [
        ("crio-conmon-{}.scope", "crio-{}.scope"),
        ("crio-conmon-{}", "crio-{}"),
        (None, "cri-containerd-{}.scope"),
        (None, "docker-{}.scope"),
        (None, "{}"),
    ],
)
# Before and behind `conmon` in the alphabet.
@pytest.mark.parametrize("one", ["4f" * 32, "de" * 32])
def test_a_container_is_found_and_not_its_monitor(
    tmp_path: Path, monitor: str | None, container: str, one: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    pod = f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
    for name in (monitor, container):
        if name is not None:
            (tmp_path / pod / name.format(one)).mkdir(parents=True)
    hierarchy = Hierarchy(str(tmp_path))
    found = hierarchy.find_containers(pod, [one, "77" * 32])
    assert found == {one: f"{pod}/{container.format(one)}"}


OTHER = UID.replace("0a", "0b")


@pytest.fixture(params=[1, 2])
def two_nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two kubelets on one machine: each has the pod of its agent and another, and one CPU."""
    for number, node in enumerate(("a", "b")):
        for tree in ["."] if request.param == 2 else ["cpuacct", "cpuset"]:
            group = tmp_path / tree / "cluster" / node
            for pod in (f"agent-{node}", OTHER if node == "b" else UID):
                (group / "kubepods" / f"pod{pod}").mkdir(parents=True)
            name = "cpuset.cpus.effective" if request.param == 2 else "cpuset.effective_cpus"
            (group / name).write_text(f"{number}\n")
    if request.param == 2:
        (tmp_path / "cgroup.controllers").write_text("cpu memory cpuset")
    return tmp_path


def test_an_agent_stays_in_the_tree_of_its_own_node(two_nodes: Path) -> None:
    hierarchy = Hierarchy(str(two_nodes))
    group = hierarchy.settle("agent-b")
    assert group is not None
    assert group.cpus == frozenset({1})
    assert group.pressure.endswith("cluster/b")
    assert hierarchy.find_pod(OTHER, search_roots=True) == f"cluster/b/kubepods/pod{OTHER}"
    assert hierarchy.find_pod(UID, search_roots=True) is None


def test_an_agent_that_does_not_find_itself_looks_everywhere(two_nodes: Path) -> None:
    hierarchy = Hierarchy(str(two_nodes))
    assert hierarchy.settle("agent-c") is None
    assert hierarchy.find_pod(UID, search_roots=True) is not None
    assert hierarchy.find_pod(OTHER, search_roots=True) is not None


def test_a_node_that_has_its_machine_alone_is_the_machine(hierarchy: Hierarchy) -> None:
    assert hierarchy.settle(UID) is None
    assert hierarchy.find_pod(UID, search_roots=True) is not None


def test_a_list_of_cpus_is_read() -> None:
    assert parse_cpus("0-2,8\n") == frozenset({0, 1, 2, 8})


def test_a_node_counts_its_own_cpus(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu 30 0 3 900\ncpu0 10 0 1 300\ncpu1 20 0 2 600\nintr 5\n")
    (tmp_path / "loadavg").write_text("0.5 0 0 1/1 1\n")
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 4 kB\n")
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Xeon: 2.5 GHz\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text("some avg10=0.00 total=7\n")
    (tmp_path / "cpu.pressure").write_text("some avg10=0.00 total=5\n")
    whole = Node(str(tmp_path), str(tmp_path)).read()
    part = Node(str(tmp_path), str(tmp_path), NodeGroup(frozenset({1}), str(tmp_path))).read()
    second = os.sysconf("SC_CLK_TCK")
    assert (whole.cpus, whole.cpu_seconds["user"] * second) == (2, 30)
    assert (part.cpus, part.cpu_seconds["user"] * second) == (1, 20)
    assert part.cpu_model == "Xeon: 2.5 GHz"
    assert part.cpu_seconds["idle"] * second == 600
    assert (whole.pressure["cpu", "some"], part.pressure["cpu", "some"]) == (7, 5)


def test_a_node_of_many_cpus_counts_all_of_them(tmp_path: Path) -> None:
    ticks = " ".join(["1234567"] * 8)
    lines = [f"cpu  {ticks} 0 0", *(f"cpu{number} {ticks} 0 0" for number in range(1024))]
    (tmp_path / "stat").write_text("\n".join([*lines, "intr 5", ""]))
    (tmp_path / "loadavg").write_text("0.5 0 0 1/1 1\n")
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 4 kB\n")
    whole = Node(str(tmp_path), str(tmp_path)).read()
    assert whole.cpus == 1024
    last = Node(str(tmp_path), str(tmp_path), NodeGroup(frozenset({1023}), str(tmp_path))).read()
    assert last.cpu_seconds["steal"] * os.sysconf("SC_CLK_TCK") == 1234567


def test_counters_of_a_container(hierarchy: Hierarchy) -> None:
    pod = hierarchy.find_pod(UID, search_roots=True)
    assert pod is not None
    cgroup = hierarchy.open(hierarchy.find_containers(pod, [CONTAINER])[CONTAINER])
    reading = cgroup.read()
    assert reading.cpu_nanoseconds == cgroup.cpu_nanoseconds()
    assert reading.cpu_nanoseconds // 1000 == 661014
    assert reading.throttled_nanoseconds // 1000 == 493109
    assert reading.throttled_periods == 23
    assert reading.working_set_bytes == 70991872 - 31457280
    assert reading.memory_peak_bytes == 102588416
    assert reading.pressure["cpu", "some"] == reading.pressure["cpu", "full"] == 2650453
    assert reading.pressure["memory", "some"] == reading.pressure["io", "full"] == 0
    cgroup.close()


def test_v1_counts_nanoseconds() -> None:
    hierarchy = Hierarchy(str(FIXTURES / "v1"))
    pod = hierarchy.find_pod(UID, search_roots=True)
    assert pod is not None
    assert hierarchy.open(pod).read().cpu_nanoseconds == 661014928


def test_memory_of_a_pod_is_that_of_all_below_it(hierarchy: Hierarchy) -> None:
    pod = hierarchy.find_pod(UID, search_roots=True)
    assert pod is not None
    reading = hierarchy.open(pod).read()
    assert reading.working_set_bytes == 71012352 - 31457280
    assert reading.memory_peak_bytes == 102608896


def test_without_a_peak_of_the_kernel_it_is_the_highest_seen(tmp_path: Path) -> None:
    tree = tmp_path / "v2"
    shutil.copytree(FIXTURES / "v2", tree)
    for file in tree.rglob("memory.peak"):
        file.unlink()
    path = Hierarchy(str(tree)).find_pod(UID, search_roots=True)
    assert path is not None
    cgroup = CgroupV2(str(tree), path, with_pressure=True)
    current = tree / path / "memory.current"
    for value in (1000, 5000, 2000):
        current.write_text(f"{value}\n")
        reading = cgroup.read()
    assert reading.memory_peak_bytes == 5000


def test_a_missing_cgroup_cannot_be_opened(hierarchy: Hierarchy) -> None:
    with pytest.raises(FileNotFoundError):
        hierarchy.open("kubepods/no-such-pod")


def test_pressure_that_nobody_may_read_is_left_out() -> None:
    assert parse_pressure("cpu", b"") == {}
    assert parse_pressure("cpu", b"some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n") == {
        ("cpu", "some"): 7
    }


@pytest.mark.parametrize(("version", "tree"), [("v1", "unified"), ("v2", ".")])
def test_what_a_pod_reads_and_writes_is_told_where_the_kernel_counts_it(
    tmp_path: Path, version: str, tree: str
) -> None:
    shutil.copytree(FIXTURES / version, tmp_path, dirs_exist_ok=True)
    hierarchy = Hierarchy(str(tmp_path))
    path = hierarchy.find_pod(UID, search_roots=True)
    assert path is not None
    assert hierarchy.open(path).read().disk_operations == {}
    file = tmp_path / tree / path / "io.stat"
    file.write_text("")
    cgroup = hierarchy.open(path)
    assert cgroup.read().disk_operations == {}
    file.write_text("8:0 rbytes=4096 wbytes=12288 rios=1 wios=3 dbytes=0 dios=5\n")
    assert cgroup.read().disk_operations == {"8:0": 4}
    cgroup.close()
    # Nobody asks that of a container alone.
    assert hierarchy.open(path, with_pressure=False).read().disk_operations == {}


def test_operations_are_those_of_each_device_that_has_a_number() -> None:
    text = (
        b"259:0 rbytes=1449984 wbytes=3145728 rios=18 wios=24 dbytes=0 dios=0\n"
        b"(unknown) rbytes=1449984 wbytes=3145728 rios=18 wios=24 dbytes=0 dios=0\n"
        b"8:16 8:0 rbytes=0 wbytes=4096 rios=0 wios=1 dbytes=0 dios=0 cost.usage=7\n"
        b"252:0 "
    )
    assert parse_operations(text) == {"259:0": 42, "8:0": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a 1\nab 2\nb 3\n", {b"a": 1, b"ab": 2, b"b": 3, b"c": None}),
        (b"xb 2\nb 3", {b"b": 3, b"xb": 2, b"x": None}),
    ],
)
def test_a_field_is_found_by_its_whole_name(text: bytes, expected: dict[bytes, int]) -> None:
    assert {name: field(text, name) for name in expected} == expected
