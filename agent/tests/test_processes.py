"""The processes of a pod: which they are, and their CPU time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from laptime_agent.exposition import Exposition
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.main import own_metrics
from laptime_agent.node import Node
from laptime_agent.pods import Pod
from laptime_agent.processes import (
    MOST_PROCESSES,
    ProcessTimes,
    parse_stat,
    processes_of,
)
from laptime_agent.readings import ProcessReading
from laptime_agent.sampler import Sampler
from laptime_agent.search import Pauses

UID = "0a1b2c3d-1111-2222-3333-444455556666"
FIXTURES = Path(__file__).parent / "fixtures"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# State, then 10 fields, then utime, stime, cutime, cstime, and more.
STAT = "{} ({}) S 1 7 7 0 -1 4194560 2500 90000 3 40 {} 12 7000 900 20 0 5 0 1234 2000000 350 1 2\n"

# Works in a child, a thread and itself; says how much of the CPU it got itself and by its child.
WORK = """
import os, sys, threading, time
def work():
    while time.thread_time() < 0.3:
        pass
child = os.fork()
if child == 0:
    work()
    os._exit(0)
os.waitpid(child, 0)
thread = threading.Thread(target=work)
thread.start()
thread.join()
work()
times = os.times()
print(times.user + times.system, times.children_user + times.children_system, flush=True)
sys.stdin.readline()
"""


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            yield process
        finally:
            process.kill()


def open_files(process: int, proc: str = "/proc") -> int:
    """How many descriptors this process has of another's times."""
    files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(one) == f"{proc}/{process}/stat" for one in files if os.path.islink(one))


def add_process(proc: Path, number: int, cgroup: str) -> None:
    (proc / str(number)).mkdir(parents=True)
    (proc / str(number) / "cgroup").write_text(cgroup)


def test_the_processes_of_a_pod_are_found_by_its_uid(tmp_path: Path) -> None:
    for process, text in {
        7: "0::/system.slice/ssh.service\n",
        30: f"1:cpu:/x/kubepods/burstable/pod{UID}/4f\n2:pids:/y/pod{UID.replace('-', '_')}/4f\n",
        9: f"0::/../../kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-4f.scope\n",
    }.items():
        add_process(tmp_path, process, text)
    (tmp_path / "sys").mkdir()
    (tmp_path / "11").mkdir()
    assert processes_of(str(tmp_path), [UID, "other"]) == {UID: [9, 30]}


def test_the_monitor_of_a_container_is_no_process_of_the_pod(tmp_path: Path) -> None:
    """CRI-O's is in the pod's cgroup and has the lower number, and is in the node's network."""
    pod = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
    for process, group in {40: "crio-conmon-4f.scope", 41: "crio-4f.scope"}.items():
        add_process(tmp_path, process, f"0::{pod}/{group}\n")
    assert processes_of(str(tmp_path), [UID]) == {UID: [41]}


def test_the_name_of_a_program_may_be_anything() -> None:
    for name in ("nginx", "tmux: server", "a) S (b", "1 (2) 3) ", ")\n"):
        reading = parse_stat(STAT.format(7, name, 188).encode())
        assert reading == ProcessReading(name, 1, 200 / TICKS_PER_SECOND)


def test_the_threads_of_a_process_count_and_its_children_do_not() -> None:
    times = ProcessTimes()
    with subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        own, of_children = map(float, worker.stdout.readline().split())
        times.follow("/proc", [worker.pid])
        told = times.read()
        worker.communicate("end\n")
    # Each is told in whole ticks of 10 ms.
    assert own > 0.55
    assert of_children > 0.25
    assert told.keys() == {worker.pid}
    assert told[worker.pid].cpu_seconds == pytest.approx(own, abs=0.1)
    times.close()


# Wants the CPU that a child of it wants too, once it is told to.
RIVALS = """
import os, sys, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
sys.stdin.readline()
child = os.fork()
if child == 0:
    while True:
        pass
while time.thread_time() < 0.4:
    pass
with open("/proc/thread-self/schedstat") as file:
    print(file.read(), flush=True)
sys.stdin.readline()
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_how_long_a_main_thread_was_ready_and_had_no_cpu_is_the_kernels() -> None:
    times = ProcessTimes()
    with subprocess.Popen(
        [sys.executable, "-c", RIVALS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        times.follow("/proc", [worker.pid])
        before = times.read()[worker.pid].main_thread
        worker.stdin.write("begin\n")
        worker.stdin.flush()
        running, waiting, _ = map(int, worker.stdout.readline().split())
        after = times.read()[worker.pid].main_thread
        worker.communicate("end\n")
    times.close()
    assert before is not None
    assert after is not None
    assert after[0] >= running / 1e9 > before[0]
    # Its rival had the CPU half of the time.
    assert after[1] >= waiting / 1e9 > 0.1


def test_a_process_that_ended_is_let_go_of_and_the_others_go_on() -> None:
    times = ProcessTimes()
    with sleeper() as first, sleeper() as second:
        times.follow("/proc", [first.pid, second.pid])
        assert times.read().keys() == {first.pid, second.pid}
        first.kill()
        first.wait()
        assert times.read().keys() == {second.pid}
        assert (open_files(first.pid), open_files(second.pid)) == (0, 1)
        times.follow("/proc", [first.pid, second.pid])
        assert times.read().keys() == {second.pid}
        assert open_files(second.pid) == 1
        times.close()
        assert open_files(second.pid) == 0
        assert times.read() == {}


def test_a_process_that_renames_itself_each_second_is_few_series(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(STAT.format(7, "runc:[2:INIT]", 100))
    times = ProcessTimes()
    times.follow(str(tmp_path), [7])
    names, spent = set(), []
    for second in range(100):
        text = STAT.format(7, "server" if second < 50 else f"name-{second}", 100 * (second + 2))
        (tmp_path / "7" / "stat").write_text(text)
        reading = times.read()[7]
        names.add((reading.command, reading.parent))
        spent.append(reading.cpu_seconds)
    assert len(names) <= 4
    assert ("server", reading.parent) in names
    assert spent == sorted(set(spent)), "its times go on"
    times.close()


@pytest.mark.parametrize("said", [("", "5 6 7"), ("7 nothing", "5 6 7"), (STAT, "")])
def test_files_that_say_nothing_are_those_of_a_process_that_ended(
    tmp_path: Path, said: tuple[str, str]
) -> None:
    (tmp_path / "7").mkdir()
    stat, main_thread = said
    (tmp_path / "7" / "stat").write_text(stat.format(7, "worker", 188))
    (tmp_path / "7" / "schedstat").write_text(main_thread)
    times = ProcessTimes()
    times.follow(str(tmp_path), [7])
    assert times.read() == {}
    assert open_files(7, str(tmp_path)) == 0


def test_of_too_many_processes_those_that_have_used_most_are_told(tmp_path: Path) -> None:
    """And of equal ones the first ones, whatever the order in which they are found."""
    idle, busy = range(1, 31), range(31, MOST_PROCESSES + 21)
    every = [*idle, *busy]
    for process in every:
        (tmp_path / str(process)).mkdir()
        text = STAT.format(process, "worker", process if process in busy else 0)
        (tmp_path / str(process) / "stat").write_text(text)
    room = MOST_PROCESSES - len(busy)
    for order in (every, reversed(every)):
        times = ProcessTimes()
        times.follow(str(tmp_path), order)
        assert times.read().keys() == {*busy, *idle[:room]}
        assert sum(open_files(one, str(tmp_path)) for one in every) == MOST_PROCESSES
        times.close()
    # One that was left out has worked since.
    times.follow(str(tmp_path), every)
    (tmp_path / "30" / "stat").write_text(STAT.format(30, "worker", 500))
    times.follow(str(tmp_path), every)
    assert times.read().keys() == {*busy, *idle[: room - 1], 30}
    times.close()


def test_the_pauses_between_searches_grow_and_begin_anew_with_something_new() -> None:
    pauses = Pauses()

    def searches(wanted: set[str], seconds: range) -> list[int]:
        return [now for now in seconds if pauses.end(frozenset(wanted), now)]

    assert searches(set(), range(1000, 1010)) == []
    assert searches({"a", "b"}, range(1010, 1260)) == [
        *(1010, 1011, 1013, 1017, 1025, 1041, 1073),
        *(1133, 1193, 1253),
    ]
    assert searches({"b"}, range(1260, 1320)) == [1313]
    assert searches({"b", "c"}, range(1320, 1330)) == [1320, 1321, 1323, 1327]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A machine with one pod that has a cgroup and no process yet."""
    shutil.copytree(FIXTURES / "v1", tmp_path / "cgroup")
    (tmp_path / "proc").mkdir()
    return tmp_path


def enter_pod(node: Path, process: int) -> None:
    """Let a real process be seen in the pod."""
    proc = node / "proc"
    add_process(proc, process, f"4:cpu,cpuacct:/kubepods/burstable/pod{UID}/4f\n")
    (proc / str(process) / "stat").symlink_to(f"/proc/{process}/stat")
    (proc / str(process) / "schedstat").symlink_to(f"/proc/{process}/schedstat")
    (proc / str(process) / "net").symlink_to(f"/proc/{process}/net")


def sampler_of(node: Path, component: str = "server", host_network: bool = False) -> Sampler:
    sampler = Sampler(Hierarchy(str(node / "cgroup")), Node(), str(node / "proc"))
    tell(sampler, {"server": "4f" * 32}, component, host_network)
    return sampler


def tell(
    sampler: Sampler,
    containers: dict[str, str],
    component: str = "server",
    host_network: bool = False,
) -> None:
    labels = {"component": component, "server": "axum"}
    pod = Pod(UID, UID, "default", "axum-1", labels, containers, host_network, False)
    sampler.tell("test", {UID: pod})


def told(sampler: Sampler) -> list[Sample]:
    text = Exposition(sampler, "n1", own_metrics(sampler)).render("r").decode()
    return [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "laptime_pod_process_cpu_seconds_total"
    ]


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The pods of each look at all processes."""
    made: list[set[str]] = []
    real: Callable[[str, set[str]], dict[str, list[int]]] = processes_of

    def scan(proc: str, uids: set[str]) -> dict[str, list[int]]:
        made.append(set(uids))
        return real(proc, uids)

    monkeypatch.setattr("laptime_agent.search.processes_of", scan)
    return made


def test_each_process_of_a_server_is_told_with_the_time_of_the_reading(node: Path) -> None:
    sampler = sampler_of(node)
    with sleeper() as first, sleeper() as second:
        enter_pod(node, first.pid)
        enter_pod(node, second.pid)
        sampler.tick(everything=True)
        assert told(sampler) == []
        sampler.tick(everything=True)
        samples = {one.labels.pop("process"): one for one in told(sampler)}
        reading = sampler.pods[0].newest
        assert reading is not None
        assert samples.keys() == {str(first.pid), str(second.pid)}
        for one in samples.values():
            assert one.labels == {
                "parent": str(os.getpid()),
                "namespace": "default",
                "pod": "axum-1",
                "node": "n1",
                "component": "server",
                "server": "axum",
                "command": "sleep",
            }
            assert 0 <= one.value < 1
            assert float(str(one.timestamp)) * 1000 == pytest.approx(reading.timestamp_ms, abs=1)


def test_one_look_at_all_processes_serves_the_network_too(
    node: Path, scans: list[set[str]]
) -> None:
    sampler = sampler_of(node)
    with sleeper() as process:
        enter_pod(node, process.pid)
        sampler.tick(everything=True)
        assert scans == [{UID}]
        (pod,) = sampler.pods
        assert not pod.wants_network
        assert pod.wants_processes
        sampler.tick(everything=True)
        assert pod.newest is not None
        assert pod.newest.network is not None
        assert pod.newest.processes.keys() == {process.pid}


def test_a_server_in_the_network_of_the_node_has_processes_too(node: Path) -> None:
    sampler = sampler_of(node, host_network=True)
    with sleeper() as process:
        enter_pod(node, process.pid)
        sampler.tick(everything=True)
        sampler.tick(everything=True)
        assert [one.labels["process"] for one in told(sampler)] == [str(process.pid)]


def test_a_pod_that_is_no_server_has_none(node: Path) -> None:
    sampler = sampler_of(node, component="load")
    with sleeper() as process:
        enter_pod(node, process.pid)
        sampler.tick(everything=True)
        sampler.tick(everything=True)
        assert sampler.pods[0].newest is not None
        assert sampler.pods[0].newest.network is not None
        assert told(sampler) == []
        assert open_files(process.pid) == 0


def test_later_processes_are_found_and_ended_pods_let_go_of(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime_agent.search._FIRST_PAUSE_SECONDS", 0.0)
    sampler = sampler_of(node)
    with sleeper() as first, sleeper() as second:
        enter_pod(node, first.pid)
        sampler.tick(everything=True)
        enter_pod(node, second.pid)
        sampler.tick(everything=True)
        sampler.tick(everything=True)
        assert len(told(sampler)) == 2
        sampler.tell("test", {})
        sampler.tick(everything=True)
        assert (open_files(first.pid), open_files(second.pid)) == (0, 0)


def test_a_container_that_is_started_later_is_searched_at_once(
    node: Path, scans: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime_agent.search._FIRST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr("laptime_agent.search._LONGEST_PAUSE_SECONDS", 3600.0)
    sampler = sampler_of(node, host_network=True)
    tell(sampler, {}, host_network=True)
    sampler.tick(everything=True)
    sampler.tick(everything=True)
    assert len(scans) == 1
    tell(sampler, {"server": "4f" * 32}, host_network=True)
    sampler.tick(everything=True)
    sampler.tick(everything=True)
    assert len(scans) == 2


def test_between_full_readings_no_process_is_read(node: Path) -> None:
    sampler = sampler_of(node)
    with sleeper() as process:
        enter_pod(node, process.pid)
        sampler.tick(everything=True)
        sampler.tick(everything=False)
        assert told(sampler) == []
