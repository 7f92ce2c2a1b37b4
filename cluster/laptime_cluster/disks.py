"""A disk of a node's own, so that it can be full without anything else on the machine being so.

What its pods write is on it: their folders and their logs, not the images. It is a sparse file: to
fill it takes no space of the machine.
"""

import errno
import os
import shutil
from pathlib import Path

from laptime_cluster.commands import run
from laptime_cluster.places import Node

_PIECE_BYTES = 16 << 20
_SMALLEST_BYTES = 4 << 10


def create(node: Node, size: str) -> None:
    """Put the folders and the logs of a node's pods on a disk of so many bytes, such as "8G".

    Raises:
        ClusterError: the size is none, or the kernel has no loop devices left.
    """
    disk = node.state / "disk"
    folder = node.state / "kubelet"
    logs = node.logs / "pods"
    node.state.mkdir(exist_ok=True)
    run(["truncate", f"--size={size}", disk])
    run(["mkfs.ext4", "-q", "-m", "0", disk])
    for path in (folder, logs):
        path.mkdir(parents=True, exist_ok=True)
    run(["mount", "-n", "-o", "loop", disk, folder])
    own = folder / "pod-logs"
    own.mkdir()
    run(["mount", "-n", "--bind", own, logs])


def fill(folder: Path) -> int:
    """Leave no space on the file system of a folder; return how many bytes that took.

    Raises:
        OSError: what kept it from being filled, other than that it is full.
    """
    _ballast(folder).unlink(missing_ok=True)
    taken = 0
    with open(_ballast(folder), "wb") as ballast:
        size = _PIECE_BYTES
        while size >= _SMALLEST_BYTES:
            try:
                os.posix_fallocate(ballast.fileno(), taken, size)
                taken += size
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    return taken


def is_full(folder: Path) -> bool:
    """Whether the file system of a folder has no space left for a page of data."""
    return shutil.disk_usage(folder).free < _SMALLEST_BYTES


def empty(folder: Path) -> None:
    """Give back what `fill` took."""
    _ballast(folder).unlink(missing_ok=True)


def _ballast(folder: Path) -> Path:
    return folder / "ballast"
