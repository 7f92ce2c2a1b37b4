"""The agent against the kernel of this machine: a real process in a real cgroup."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping

import pytest
from cgroup_maker import MOUNT, RealPod, real_pod

from laptime_agent.hierarchy import Hierarchy
from laptime_agent.node import Node
from laptime_agent.pods import Pod
from laptime_agent.readings import PodReading
from laptime_agent.sampler import Sampler
from laptime_agent.tracking import TrackedPod

# Takes 60 MB, then uses the CPU for one second of the clock and says how much of it it got.
BURN = """
import sys, time
memory = bytearray(60_000_000)
print("ready", flush=True)
sys.stdin.readline()
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < 1.0:
    pass
print(time.process_time() - used, flush=True)
sys.stdin.readline()
"""


# Forks a worker for each line that it reads, that works or waits as it says; tells their numbers.
FORK = """
import os, signal, sys
workers = []
for line in sys.stdin:
    worker = os.fork()
    while worker == 0:
        if line == "wait\\n":
            signal.pause()
    workers.append(worker)
    print(worker, flush=True)
for worker in workers:
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
"""


@pytest.fixture
def pod() -> Iterator[RealPod]:
    try:
        with real_pod() as made:
            yield made
    except OSError as error:
        pytest.skip(f"no cgroups can be made here: {error}")


def sampler_of(made: RealPod, component: str = "") -> Sampler:
    sampler = Sampler(Hierarchy(str(MOUNT)), Node(), "/proc")
    labels = {"component": component}
    containers = {"main": made.container}
    pod = Pod(made.uid, made.uid, "default", "burner", labels, containers, False, False)
    sampler.tell("test", {made.uid: pod})
    return sampler


def _read_since(sampler: Sampler, time_seconds: float) -> tuple[TrackedPod, PodReading]:
    """Return the one pod with a reading that began after a Unix time, as soon as there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for tracked in sampler.pods:
            reading = tracked.newest
            if reading is not None and reading.timestamp_ms > 1000 * time_seconds:
                return tracked, reading
        time.sleep(0.05)
    pytest.fail("no reading in 60 s")


def test_a_second_of_work_is_counted_and_shows_as_a_peak(pod: RealPod) -> None:
    sampler = sampler_of(pod)
    with subprocess.Popen(
        [sys.executable, "-c", BURN],
        preexec_fn=pod.enter,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as burner:
        assert burner.stdin is not None
        assert burner.stdout is not None
        threading.Thread(target=sampler.run_for_ever, daemon=True).start()
        assert burner.stdout.readline() == "ready\n"
        tracked, idle = _read_since(sampler, time.time())
        tracked.peak.take("test")
        burner.stdin.write("go\n")
        burner.stdin.flush()
        used = float(burner.stdout.readline())
        # A second's window that has the end of the burst is over by then.
        _, now = _read_since(sampler, time.time() + 1.5)
        kernel = pod.cpu_nanoseconds()
        burner.stdin.write("end\n")
        burner.stdin.flush()
        peak = tracked.peak.take("test")
        burner.wait()

    measured = (now.pod.cpu_nanoseconds - idle.pod.cpu_nanoseconds) / 1e9
    assert measured == pytest.approx(used, rel=0.02)
    assert now.pod.cpu_nanoseconds == pytest.approx(kernel, rel=0.02)
    assert now.containers["main"].cpu_nanoseconds == pytest.approx(kernel, rel=0.02)
    assert now.pod.memory_peak_bytes == pytest.approx(pod.memory_peak_bytes(), rel=0.02)
    assert now.pod.memory_peak_bytes > 60_000_000
    assert now.pod.working_set_bytes > 60_000_000
    # All of the burst is in one window of a second, or nine tenths of it; on a machine that is so
    # busy that the readings themselves came late, the window was longer.
    assert peak is not None
    assert (0.4 if sampler.late_ticks else 0.8) * used < peak < 1.15 * used
    assert now.network is not None


def test_a_limit_shows_as_throttling_and_the_end_of_the_pod_as_its_end(pod: RealPod) -> None:
    pod.limit_cores(0.1)
    sampler = sampler_of(pod)
    with subprocess.Popen(
        [sys.executable, "-c", "while True: pass"], preexec_fn=pod.enter
    ) as burner:
        time.sleep(1.5)
        sampler.tick(everything=True)
        (tracked,) = sampler.pods
        reading = tracked.newest
        burner.kill()
        burner.wait()
    assert reading is not None
    assert reading.throttled_nanoseconds > 300_000_000
    assert reading.throttled_periods >= 5
    assert reading.containers["main"].throttled_nanoseconds == reading.throttled_nanoseconds
    pod.remove()
    sampler.tick(everything=True)
    assert tracked.ended
    assert not tracked.found
    # The next scrapes still have what was read last.
    assert tracked.newest == reading


def test_of_a_servers_workers_one_is_full_and_the_other_idle(
    pod: RealPod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime_agent.search._FIRST_PAUSE_SECONDS", 0.0)
    sampler = sampler_of(pod, "server")

    def processes() -> Mapping[int, float]:
        # Those that are found after a reading are in the next one.
        sampler.tick(everything=True)
        sampler.tick(everything=True)
        (tracked,) = sampler.pods
        assert tracked.newest is not None
        return {one: read.cpu_seconds for one, read in tracked.newest.processes.items()}

    with subprocess.Popen(
        [sys.executable, "-c", FORK],
        preexec_fn=pod.enter,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        known = {server.pid}
        assert processes().keys() == known
        workers = []
        for kind in ("work", "wait"):
            server.stdin.write(f"{kind}\n")
            server.stdin.flush()
            workers.append(int(server.stdout.readline()))
            known.add(workers[-1])
            assert processes().keys() == known
        full, idle = workers
        first = processes()
        while processes()[full] < first[full] + 0.3:
            time.sleep(0.05)
        kernel_before = pod.cpu_nanoseconds() / 1e9
        last = processes()
        kernel_after = pod.cpu_nanoseconds() / 1e9
    assert last[idle] - first[idle] < 0.05
    assert last[server.pid] - first[server.pid] < 0.05
    assert kernel_before - 0.1 < sum(last.values()) < kernel_after + 0.1
