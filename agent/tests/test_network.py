"""The network counters of a pod."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from laptime_agent.network import ProcessNetwork, parse_devices, processes_of
from laptime_agent.readings import NetworkReading

UID = "0a1b2c3d-1111-2222-3333-444455556666"
DEVICES = b"""\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:     740      12    0    0    0     0          0         0      740      12    0    0    0
  eth0:   20583     206    0    0    0     0          0         0    25219     196    0    0    0
  net1:3 1 0 0 0 0 0 0 4 1 0 0 0
"""


def test_all_interfaces_but_the_loopback_count() -> None:
    assert parse_devices(DEVICES) == NetworkReading(20586, 25223)


def test_a_process_is_found_by_the_uid_of_its_pod(tmp_path: Path) -> None:
    for process, text in {
        7: "0::/system.slice/ssh.service\n",
        30: f"1:cpu:/x/kubepods/burstable/pod{UID}/4f\n",
        9: f"0::/../../kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-4f.scope\n",
    }.items():
        (tmp_path / str(process)).mkdir()
        (tmp_path / str(process) / "cgroup").write_text(text)
    (tmp_path / "sys").mkdir()
    (tmp_path / "11").mkdir()
    assert processes_of(str(tmp_path), [UID, "other"]) == {UID: 9}


def test_the_monitor_of_a_container_is_no_process_of_the_pod(tmp_path: Path) -> None:
    """CRI-O's is in the pod's cgroup and has the lower number, and is in the node's network."""
    pod = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
    for process, group in {40: "crio-conmon-4f.scope", 41: "crio-4f.scope"}.items():
        (tmp_path / str(process)).mkdir()
        (tmp_path / str(process) / "cgroup").write_text(f"0::{pod}/{group}\n")
    assert processes_of(str(tmp_path), [UID]) == {UID: 41}


def test_a_living_process_has_counters() -> None:
    network = ProcessNetwork("/proc", os.getpid())
    assert network.read().received_bytes >= 0
    network.close()


def test_after_its_end_there_are_none_and_none_of_another_process() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        network = ProcessNetwork("/proc", process.pid)
        network.read()
        process.kill()
    with pytest.raises(OSError, match=r"No such process|No such file"):
        network.read()
    network.close()


def test_a_process_that_never_was() -> None:
    with pytest.raises(FileNotFoundError):
        ProcessNetwork("/proc", 2**22 + 1)
