"""The control groups of the cluster: one parent, in every hierarchy, with a group for each place.

Whatever runs in them belongs to the cluster, which is how leftovers are found without guessing.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import CGROUP
from laptime_cluster.places import Place

_ROOT = Path("/sys/fs/cgroup")
_DAEMONS = "daemons"
_FREEZE_SECONDS = 10.0
_CPU_PERIOD_US = 100_000


def hierarchies() -> list[Path]:
    """Mount points of all cgroup hierarchies: one with cgroup v2, one per controller with v1."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split(" - ")
        if fields[1].split()[0] in ("cgroup", "cgroup2"):
            mounts.append(Path(fields[0].split()[4]))
    return mounts


def machine_cpus() -> tuple[int, ...]:
    """The CPUs of the machine that may be used here."""
    for hierarchy in hierarchies():
        for name in ("cpuset.effective_cpus", "cpuset.cpus.effective"):
            if (hierarchy / name).exists():
                return parse_cpus((hierarchy / name).read_text(encoding="utf-8"))
    return tuple(range(os.cpu_count() or 1))


def parse_cpus(text: str) -> tuple[int, ...]:
    """The numbers of a list as the kernel writes it: 0-3,8."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def create(place: Place, cpus: Sequence[int] | None = None) -> None:
    """Make the groups of a place, of these CPUs or all.

    Raises ClusterError when the machine has no cgroups.
    """
    found = hierarchies()
    if not found:
        raise ClusterError(f"no cgroup hierarchy is mounted below {_ROOT}")
    for hierarchy in found:
        own = hierarchy / place.cgroup
        for group in (own.parent, own, own / _DAEMONS):
            group.mkdir(exist_ok=True)
            _hand_down_cpusets(group)
            # Before there are groups below: none may have a CPU that the one above it has not.
            if group == own and cpus is not None and (group / "cpuset.cpus").exists():
                (group / "cpuset.cpus").write_text(",".join(map(str, cpus)))


def _hand_down_cpusets(group: Path) -> None:
    """Make a group one that processes can enter and whose CPUs can be chosen."""
    control = group.parent / "cgroup.subtree_control"
    if control.exists() and "cpuset" in (group.parent / "cgroup.controllers").read_text().split():
        control.write_text("+cpuset")
        return
    # A new cpuset of cgroup v1 is empty, and no process can enter it until it is not.
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if file.exists() and (group.parent / name).exists() and not file.read_text().strip():
            file.write_text((group.parent / name).read_text().strip())


def enter(place: Place) -> None:
    """Move the calling process into the group of a place's daemons, in every hierarchy."""
    for hierarchy in hierarchies():
        (hierarchy / place.cgroup / _DAEMONS / "cgroup.procs").write_text("0")


def freeze(place: Place, frozen: bool) -> None:
    """Have all processes of a place stand still, or go on.

    Raises ClusterError when they do not within ten seconds, or the machine has no freezer.
    """
    # Where both trees are, v1's is the one in which pods are, too.
    for name, wanted in (
        ("freezer.state", "FROZEN" if frozen else "THAWED"),
        ("cgroup.freeze", "1" if frozen else "0"),
    ):
        for hierarchy in hierarchies():
            group = hierarchy / place.cgroup
            if (group / name).exists():
                (group / name).write_text(wanted)
                _await_freezer(group, frozen)
                return
    raise ClusterError("no control group of this machine can be frozen")


def limit_cpu(place: Place, cpus: float | None) -> None:
    """Have all that runs in a place get so many CPUs together at most, or as many as it has.

    Raises ClusterError when a container in it may use more (cgroup v1 refuses that), and when the
    machine has no group to limit.
    """
    quota = "-1" if cpus is None else str(round(cpus * _CPU_PERIOD_US))
    for hierarchy in hierarchies():
        v1, v2 = (hierarchy / place.cgroup / name for name in ("cpu.cfs_quota_us", "cpu.max"))
        try:
            if v1.exists():
                v1.write_text(quota)
                return
            if v2.exists():
                v2.write_text(f"{'max' if cpus is None else quota} {_CPU_PERIOD_US}")
                return
        except OSError as error:
            raise ClusterError(
                f"{place.name} cannot be limited to {cpus} CPUs: {error.strerror}; does a "
                "container on it have a larger limit of its own?"
            ) from error
    raise ClusterError("no control group of this machine limits CPU time")


def is_frozen(place: Place) -> bool:
    """Whether the processes of a place stand still."""
    return any(_stands_still(hierarchy / place.cgroup) for hierarchy in hierarchies())


def _stands_still(group: Path) -> bool:
    for name, frozen in (("freezer.state", "FROZEN"), ("cgroup.events", "frozen 1")):
        if (group / name).exists():
            return frozen in (group / name).read_text()
    return False


def _await_freezer(group: Path, frozen: bool) -> None:
    deadline = time.monotonic() + _FREEZE_SECONDS
    while _stands_still(group) != frozen:
        if time.monotonic() > deadline:
            raise ClusterError(f"{group} is not {'frozen' if frozen else 'thawed'}")
        time.sleep(0.05)


def process_ids(group: str = CGROUP) -> set[int]:
    """Everything that runs in the groups of the cluster, or of a place: daemons, shims and pods."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        found |= _process_ids_below(hierarchy / group)
    return found - {0, os.getpid()}


def _process_ids_below(group: Path) -> set[int]:
    found: set[int] = set()
    for folder, _, _ in os.walk(group):
        with contextlib.suppress(OSError):
            text = Path(folder, "cgroup.procs").read_text(encoding="utf-8")
            found.update(int(word) for word in text.split())
    return found


def of_other_clusters() -> set[int]:
    """Everything that runs in clusters of other names on this machine."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        for pods in (*hierarchy.glob("*/kubepods"), *hierarchy.glob("*/*/kubepods")):
            top = hierarchy / pods.relative_to(hierarchy).parts[0]
            if top.name != CGROUP:
                found |= _process_ids_below(top)
    return found


def kill_all(group: str = CGROUP, timeout_seconds: float = 20.0) -> None:
    """Kill every process of the cluster, or of a place, and wait until all are gone."""
    deadline = time.monotonic() + timeout_seconds
    killed: set[int] = set()
    while left := process_ids(group):
        killed |= left
        if time.monotonic() > deadline:
            raise ClusterError(f"these processes do not die: {sorted(left)}")
        _thaw(group)
        for process_id in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(0.05)
    _await_burial(killed)


def _await_burial(killed: set[int], timeout_seconds: float = 5.0) -> None:
    """Wait until init has buried the dead; one that does not is no reason to fail."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if not any(Path("/proc", str(process_id)).exists() for process_id in killed):
            return
        time.sleep(0.05)


def _thaw(group: str) -> None:
    """A frozen process of cgroup v1 does not even die."""
    for hierarchy in hierarchies():
        for folder, _, files in os.walk(hierarchy / group):
            if "freezer.state" in files:
                with contextlib.suppress(OSError):
                    Path(folder, "freezer.state").write_text("THAWED")


def remove(timeout_seconds: float = 10.0) -> None:
    """Remove all groups of the cluster, which must be empty of processes."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = _remove_once()
        if not left:
            return
        if time.monotonic() > deadline:
            raise ClusterError(f"these control groups cannot be removed: {left}")
        time.sleep(0.05)


def _remove_once() -> list[Path]:
    left = []
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                left.append(Path(folder))
    return left
