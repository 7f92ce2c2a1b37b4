"""That a node stood still is told from a node that is full, by real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laptime_agent import stalls
from laptime_agent.stalls import Stalls

# A thread that looks after each of its rounds, and says what it counted once it is asked.
LOOP = """
import sys, threading, time
from laptime_agent.stalls import Stalls

stalls = Stalls()
asked = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), asked.set()), daemon=True).start()
print("ready", flush=True)
while not asked.is_set():
    time.sleep(0.05)
    stalls.round_ended(0.05)
print(stalls.seconds)
"""


def test_a_process_that_was_stopped_stood_still_for_so_long() -> None:
    command = [sys.executable, "-c", LOOP]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        # On a full machine it first waits for a CPU to hear of it, which is no stall.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        stopped = time.monotonic()
        time.sleep(1.5)
        least = time.monotonic() - stopped - 0.05
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        said, _ = process.communicate("\n")
        most = time.monotonic() - stopped
    assert least <= float(said) <= most


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> float:
    """So short a stall counts here."""
    monkeypatch.setattr(stalls, "LEAST_SECONDS", 0.2)
    return 0.3


def test_what_was_slept_on_purpose_is_no_stall(soon: float) -> None:
    one = Stalls()
    began = time.monotonic()
    time.sleep(soon)
    one.round_ended(time.monotonic() - began)
    assert one.seconds == 0.0


def test_what_was_reckoned_is_no_stall(soon: float) -> None:
    one = Stalls()
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + soon:
        pass
    one.round_ended(0.0)
    assert one.seconds is not None
    # What the hypervisor and interrupts took is no part of a thread's time: of seconds of waiting
    # for a CPU on a full machine that is more than what counts here.
    assert one.seconds < 0.5 * (time.monotonic() - began)


def test_a_thread_that_was_ready_and_had_no_cpu_says_nothing_of_its_node(
    tmp_path: Path, soon: float
) -> None:
    schedule = tmp_path / "schedstat"
    schedule.write_text("5 1000 3\n")
    one = Stalls(schedule=str(schedule))
    began = time.monotonic()
    time.sleep(soon)
    waited = int(1e9 * (time.monotonic() - began))
    schedule.write_text(f"6 {1000 + waited} 4\n")
    one.round_ended(0.0)
    assert one.seconds == 0.0
    time.sleep(soon)
    one.round_ended(0.0)
    assert one.seconds is not None
    assert one.seconds >= 0.9 * soon


@pytest.mark.parametrize("said", [None, "0 0 0\n"])
def test_where_the_kernel_does_not_tell_who_waits_for_a_cpu_nothing_is_known(
    tmp_path: Path, soon: float, said: str | None
) -> None:
    schedule = tmp_path / "schedstat"
    if said is not None:
        schedule.write_text(said)
    one = Stalls(schedule=str(schedule))
    time.sleep(soon)
    one.round_ended(0.0)
    assert one.seconds is None


def counted(soon: float, *used: float) -> float:
    """Return what is counted where pods use so many CPU seconds in each round, the last a stall."""
    seconds = 100.0

    def pods() -> float:
        return seconds

    one = Stalls(pods)
    for number, more in enumerate(used, 1):
        seconds += more
        if number == len(used):
            time.sleep(soon)
        one.round_ended(0.0)
    assert one.seconds is not None
    return one.seconds


def test_pods_that_went_on_show_that_the_agent_alone_stood_still(soon: float) -> None:
    assert counted(soon, 0.0, 0.6 * soon) == 0.0
    assert counted(soon, 0.0, 0.0) >= 0.9 * soon
    # Many CPUs that were busy before it and after it use much in the rest of the round.
    assert counted(soon, 9.0, 17.0) >= 0.9 * soon
    assert counted(soon, 9.0, 19.0) == 0.0


def test_short_ones_do_not_add_up(soon: float) -> None:
    one = Stalls()
    for _ in range(4):
        time.sleep(soon / 6)
        one.round_ended(0.0)
    assert one.seconds == 0.0
