"""The network counters of a pod."""

from __future__ import annotations

import os
import subprocess

import pytest

from laptime_agent.network import ProcessNetwork, parse_devices
from laptime_agent.readings import NetworkReading

DEVICES = b"""\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:     740      12    0    0    0     0          0         0      740      12    0    0    0
  eth0:   20583     206    0    0    0     0          0         0    25219     196    0    0    0
  net1:3 1 0 0 0 0 0 0 4 1 0 0 0
"""


def test_all_interfaces_but_the_loopback_count() -> None:
    assert parse_devices(DEVICES) == NetworkReading(20586, 25223)


def test_a_packet_to_a_virtual_machine_counts_once() -> None:
    """What comes in by eth0 goes out by the tap to the machine of Kata, and the other way round."""
    tap = b"tap0_kata: 25219 196 0 0 0 0 0 0 20583 206 0 0 0 0 0 0\n"
    assert parse_devices(DEVICES + tap) == parse_devices(DEVICES)


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
