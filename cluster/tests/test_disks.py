"""A node's own disk is full when it is filled, and the machine's is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from laptime_cluster import disks, places


@pytest.fixture
def node(tmp_path: Path) -> Iterator[places.Node]:
    if (
        os.geteuid()
        or subprocess.run(["losetup", "-f"], check=False, capture_output=True).returncode
    ):
        pytest.skip("needs root and a loop device")
    with mock.patch.object(places, "STATE", tmp_path):
        (node,) = places.make_nodes(1, [0])
        disks.create(node, "64M")
        yield node
        for mount in (node.logs / "pods", node.state / "kubelet"):
            subprocess.run(["umount", "-n", mount], check=True)


def test_a_full_disk_refuses_what_pods_and_their_logs_write(node: places.Node) -> None:
    folder, log = node.state / "kubelet", node.logs / "pods" / "log"
    assert not disks.is_full(folder)
    taken = disks.fill(folder)
    assert 32 << 20 < taken < 64 << 20
    assert disks.is_full(folder)
    with pytest.raises(OSError, match="No space left"):
        log.write_bytes(b"x" * 100_000)
    # Sparse: it takes what metadata there is of the machine's own disk, not the whole. What is free
    # there says nothing of that while others write to it.
    assert (node.state / "disk").stat().st_blocks * 512 < taken // 2
    disks.empty(folder)
    log.write_bytes(b"x" * 100_000)
    assert log.stat().st_size == 100_000
