"""The control groups of the cluster: one parent, in every hierarchy, above daemons and pods.

Whatever runs in them belongs to the cluster, which is how leftovers are found without guessing.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import CGROUP

_ROOT = Path("/sys/fs/cgroup")
_DAEMONS = "node"


def hierarchies() -> list[Path]:
    """Mount points of all cgroup hierarchies: one with cgroup v2, one per controller with v1."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split(" - ")
        if fields[1].split()[0] in ("cgroup", "cgroup2"):
            mounts.append(Path(fields[0].split()[4]))
    return mounts


def create() -> None:
    """Make the groups of the cluster. Raises ClusterError when the machine has no cgroups."""
    found = hierarchies()
    if not found:
        raise ClusterError(f"no cgroup hierarchy is mounted below {_ROOT}")
    for hierarchy in found:
        for group in (hierarchy / CGROUP, hierarchy / CGROUP / _DAEMONS):
            group.mkdir(exist_ok=True)
            # A new cpuset of cgroup v1 is empty, and no process can enter it until it is not.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists() and (group.parent / file).exists():
                    (group / file).write_text((group.parent / file).read_text().strip())


def enter() -> None:
    """Move the calling process into the group of the daemons, in every hierarchy."""
    for hierarchy in hierarchies():
        (hierarchy / CGROUP / _DAEMONS / "cgroup.procs").write_text("0")


def process_ids() -> set[int]:
    """Everything that runs in the groups of the cluster: daemons, shims and pods."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        found |= _process_ids_below(hierarchy / CGROUP)
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
        for daemons in hierarchy.glob(f"*/{_DAEMONS}"):
            if daemons.parent.name != CGROUP and (daemons.parent / "kubepods").exists():
                found |= _process_ids_below(daemons.parent)
    return found


def kill_all(timeout_seconds: float = 20.0) -> None:
    """Kill every process of the cluster and wait until all are gone."""
    deadline = time.monotonic() + timeout_seconds
    killed: set[int] = set()
    while left := process_ids():
        killed |= left
        if time.monotonic() > deadline:
            raise ClusterError(f"these processes do not die: {sorted(left)}")
        _thaw()
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


def _thaw() -> None:
    """A frozen process of cgroup v1 does not even die."""
    for hierarchy in hierarchies():
        for folder, _, files in os.walk(hierarchy / CGROUP):
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
