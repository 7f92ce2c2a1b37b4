"""What kept a server's pod from running although there was something to do. Pure.

The kernel's own count (PSI, `full`): tasks of the pod waited for memory, or for a disk, and none of
them did anything else. Of several CPUs it is a mean (Linux, kernel/sched/psi.c). Why the bounds are
what they are stands in docs/measurement.md, "Memory and disk of the server".
"""

from __future__ import annotations

from laptime.api.causes import Cause
from laptime.api.usage import ComponentUsage
from laptime.measure.saturation import MOSTLY, ONE_THREAD, Resource, Scene

SLOWEST_OPERATION_SECONDS = 0.02
"""Nobody waits longer than that for one operation of a disk. One that turns takes 10 ms to get to a
place, and a write may go to two, of which that of the file system's journal is not the pod's."""


def stalls(scene: Scene) -> list[Resource]:
    """Return memory and disk of the server, each as full as its pod waited for it.

    Memory first: a page that was given up, and is read again, counts for both. Nothing where the
    kernel, or the agent, does not tell; of an image of one's own a disk that it used, see `_disk`.
    """
    used = scene.component("server")
    if used is None:
        return []
    disk = _disk(scene, used)
    # To an image that may be in an io_uring each pause is a wait for a disk: none would be left.
    added = disk or 0.0 if scene.server.preset is not None else 0.0
    busy, rest = _without_pause(scene, used, added)
    found = []
    for cause, share, what in (
        (Cause.SERVER_MEMORY, used.memory_waiting_share, f"memory{_limit(scene, used)}"),
        (Cause.SERVER_DISK, disk, f"its disk{_operations(used)}"),
    ):
        if share is None:
            continue
        said, full = f"the server's pod waited for {what} in {share:.0%} of the time", share
        if share >= MOSTLY and busy > share:
            said, full = said + rest, busy
        found.append(Resource(cause, full, said))
    return found


def _disk(scene: Scene, used: ComponentUsage) -> float | None:
    """Return for which share of the time the pod waited for a disk; None where it may be no disk.

    Since Linux 6.5 (and 6.1.39) the kernel counts whoever waits in `io_uring_enter` among those who
    wait for a disk, be it for the next connection. No preset waits so; of other programs nobody
    knows, and they have to have used a disk so often that it could be what they waited for.
    """
    share = used.disk_waiting_share
    if share is None or scene.server.preset is not None:
        return share
    longest = SLOWEST_OPERATION_SECONDS * (used.disk_operations_per_second or 0.0)
    return share if longest >= share else None


def _without_pause(scene: Scene, used: ComponentUsage, disk: float) -> tuple[float, str]:
    """Return for how much of the time the only worker of a server had no pause, and its words.

    Whoever waits for a `disk` (a share of the time) does not run meanwhile. Of memory that is not
    so, since making room is work: what is waited for it is not added. Nor is what is waited for a
    CPU: of a process with several threads one waits while another one runs. Of several workers
    nobody knows which one waited.
    """
    server, cores = scene.server, used.cores_mean
    if not server.knows_workers or server.worker_count != 1 or cores is None:
        return 0.0, ""
    if max(cores, used.cores_peak or 0.0) > ONE_THREAD:
        return 0.0, ""
    return min(1.0, cores + disk), f", and its one worker used {cores:.2f} cores"


def _operations(used: ComponentUsage) -> str:
    operations = used.disk_operations_per_second
    return "" if operations is None else f" ({operations:,.0f} reads and writes a second)"


def _limit(scene: Scene, used: ComponentUsage) -> str:
    limit = scene.server.resources.memory if scene.server.resources else None
    if limit is None or used.memory_peak_bytes is None:
        return ""
    return f" (it had {used.memory_peak_bytes / 2**20:,.0f} MiB at most of its limit of {limit})"
