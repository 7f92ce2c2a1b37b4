"""What the node agent costs: 20 real pod cgroups and 100 of neighbours, scraped every second.

Run by `make bench-agent`, as root, on a machine with cgroups. Prints what the agent used of one
core and its memory beside the goals; exit code 1 where a goal is missed.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "agent" / "src"), str(ROOT / "agent" / "tests")]

from cgroup_maker import MOUNT, real_pod  # noqa: E402
from laptime_agent.exposition import Exposition  # noqa: E402
from laptime_agent.hierarchy import Hierarchy  # noqa: E402
from laptime_agent.main import is_fresh, own_metrics  # noqa: E402
from laptime_agent.node import Node  # noqa: E402
from laptime_agent.pods import Pod  # noqa: E402
from laptime_agent.sampler import Sampler  # noqa: E402
from laptime_agent.server import make_server  # noqa: E402

PODS = 20
NEIGHBOURS = 100
SETTLE_SECONDS = 8
MEASURED_SECONDS = 30
MOST_OF_A_CORE = 0.01
MOST_MEMORY_MIB = 64
RUN_UID = "7e2d8a70-4f0a-4f0b-9f2c-3b8f5c0f9a11"


def agent() -> None:
    """Be the agent, for the pods and the neighbours that stand on stdin."""
    made, others = json.loads(sys.stdin.readline())
    hierarchy = Hierarchy(str(MOUNT))
    hierarchy.settle(others[0])
    sampler = Sampler(hierarchy, Node(), "/proc")
    labels = {"run": "demo", "run_uid": RUN_UID, "component": "server"}
    labels |= {"server": "axum", "load": "", "trial": "t-1"}
    pods = {
        uid: Pod(uid, uid, "default", f"demo-{uid}", labels, {"server": container}, False, False)
        for uid, container in made
    }
    sampler.tell("bench", pods)
    neighbours = {uid: Pod(uid, uid, "default", uid, {}, {}, False, False) for uid in others}
    sampler.neighbours.tell("bench", neighbours)
    exposition = Exposition(sampler, "node-1", own_metrics(sampler))
    server = make_server(0, exposition.render, lambda: is_fresh(sampler))
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sampler.run_for_ever()


def bench() -> int:
    """Measure it; returns the exit code."""
    with ExitStack() as stack:
        pods = [stack.enter_context(real_pod()) for _ in range(PODS)]
        for pod in pods:
            sleeper = subprocess.Popen(["sleep", "600"], preexec_fn=pod.enter)
            stack.callback(sleeper.wait)
            stack.callback(sleeper.kill)
        others = [stack.enter_context(real_pod()).uid for _ in range(NEIGHBOURS)]
        watched = subprocess.Popen(
            [sys.executable, __file__, "--agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(watched.wait)
        stack.callback(watched.kill)
        assert watched.stdin is not None
        assert watched.stdout is not None
        made = [(pod.uid, pod.container) for pod in pods]
        print(json.dumps((made, others)), file=watched.stdin)
        watched.stdin.flush()
        connection = http.client.HTTPConnection("127.0.0.1", int(watched.stdout.readline()))
        body = _scrape_for(connection, SETTLE_SECONDS)
        before, began = _cpu_seconds(watched.pid), time.monotonic()
        body = _scrape_for(connection, MEASURED_SECONDS)
        share = (_cpu_seconds(watched.pid) - before) / (time.monotonic() - began)
        memory = _peak_memory_mib(watched.pid)
    lines = body.splitlines()
    series = sum(not line.startswith(b"#") for line in lines)
    complete = sum(line.startswith(b"laptime_pod_network_receive_bytes_total{") for line in lines)
    told = sum(line.startswith(b"laptime_neighbour_cpu_seconds_total{") for line in lines)
    if (complete, told) != (PODS, NEIGHBOURS):
        print(f"only {complete} of {PODS} pods were read, and {told} neighbours", file=sys.stderr)
        return 1
    print(f"{PODS} pods, {NEIGHBOURS} neighbours, {series} series")
    print(f"one scrape a second, {MEASURED_SECONDS} s")
    print(f"CPU: {share:.2%} of one core (goal: under {MOST_OF_A_CORE:.0%})")
    print(f"memory: {memory:.0f} MiB at most (goal: under {MOST_MEMORY_MIB} MiB)")
    return 0 if share < MOST_OF_A_CORE and memory < MOST_MEMORY_MIB else 1


def _scrape_for(connection: http.client.HTTPConnection, seconds: int) -> bytes:
    body = b""
    for _ in range(seconds):
        connection.request("GET", "/metrics")
        body = connection.getresponse().read()
        time.sleep(1.0)
    return body


def _cpu_seconds(process: int) -> float:
    # Nanoseconds, where /proc/PID/stat has hundredths of a second.
    schedule = [
        int(Path(task, "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{process}/task").iterdir()
    ]
    return sum(schedule) / 1e9


def _peak_memory_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("run as root: cgroups are made")
    if "--agent" in sys.argv:
        agent()
    else:
        sys.exit(bench())
