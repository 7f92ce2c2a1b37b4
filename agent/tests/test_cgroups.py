"""Both versions of cgroups say the same of the same container."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from laptime_agent.cgroups import CgroupV2, parse_pressure
from laptime_agent.files import field
from laptime_agent.hierarchy import Hierarchy

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a 1\nab 2\nb 3\n", {b"a": 1, b"ab": 2, b"b": 3, b"c": None}),
        (b"xb 2\nb 3", {b"b": 3, b"xb": 2, b"x": None}),
    ],
)
def test_a_field_is_found_by_its_whole_name(text: bytes, expected: dict[bytes, int]) -> None:
    assert {name: field(text, name) for name in expected} == expected
