"""How long Laptime keeps people waiting around the measuring itself, from a real run.

    PYTHONPATH=bench python3 bench/overhead/run.py [--trials N]

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and kubectl. Deploys
Postgres, PgBouncer, HAProxy and one server, seeded, and prints four figures beside their goals:

- apply to first request: from the start of `kubectl apply` to the first request of the warm-up;
- between trials: from a trial's last response to the next one's first request, in which the
  server gets a new pod, the database is reset and the result is stored;
- last response to figures: until the status of the run shows the figures of all trials;
- watching, of the machine: what operator, agent and Prometheus use together while a trial of 30 s
  is measured, by their own CPU counters, which Prometheus scrapes.

All times are of one clock (this machine's). What the hypervisor took of the nodes' CPU time while
the waiting was measured is printed with them: they are longer on a machine that is not there for a
fifth of the time. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any
from urllib.parse import urlencode

from cluster_access import kubectl, stored_of, watching

from laptime.manifests.result import PAYLOAD_KEY

NAME = "bench-overhead"
LONGEST_SECONDS = 300
GOALS = {
    "apply to first request": 12.0,
    "between trials": 3.0,
    "last response to figures": 2.0,
}
MOST_OF_THE_MACHINE = 0.03
SYSTEM_NAMESPACE = "laptime-system"
WATCHERS = ("laptime-agent", "laptime-operator", "laptime-prometheus")


def manifest(trials: int, measured: str = "2s") -> dict[str, Any]:
    """Return the run: all tiers, one server, so many trials of such a length."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": NAME},
        "spec": {
            "scenario": "users",
            "servers": [{"name": "axum", "preset": "axum-sqlx"}],
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": measured},
                    "warmup": "1s",
                }
            ],
            "repetitions": trials,
        },
    }


def phases() -> list[dict[str, Any]]:
    """Return the phases of each trial, in their order."""
    stored = sorted(stored_of(NAME).objects, key=lambda one: str(one["metadata"]["name"]))
    payloads = [one["data"][PAYLOAD_KEY] for one in stored if PAYLOAD_KEY in one["data"]]
    return [json.loads(gzip.decompress(base64.b64decode(one)))["phases"] for one in payloads]


def series(promql: str, moment: float) -> list[dict[str, Any]]:
    """Return what Prometheus answers to a range selector at a Unix time."""
    service = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/services/laptime-prometheus:9090"
    query = urlencode({"query": promql, "time": f"{moment:.3f}"})
    answer = json.loads(kubectl("get", "--raw", f"{service}/proxy/api/v1/query?{query}"))
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def share_of_watching() -> dict[str, float]:
    """Run one trial of 30 s; return the share of the machine that each watcher used in it."""
    run(1, "30s")
    phase = phases()[0]["measured"]
    begin, end = phase["firstRequestAt"], phase["lastResponseAt"]
    (cpus,) = series("laptime_node_cpus[10s]", end)
    shares = {}
    for job in WATCHERS:
        selector = f'process_cpu_seconds_total{{job="{job}"}}[{int(end - begin)}s]'
        (one,) = series(selector, end)
        (first, before), (last, after) = one["values"][0], one["values"][-1]
        shares[job] = (float(after) - float(before)) / (last - first) / float(cpus["values"][0][1])
    return shares


def taken_by_hypervisor(begin: float, end: float) -> float:
    """Return the share of the nodes' CPU time that their hypervisor gave to others.

    `begin` and `end` are Unix times with at least two of the agent's samples between them.
    """
    modes = series(f"laptime_node_cpu_seconds_total[{math.ceil(end - begin)}s]", end)
    seconds = [float(one["values"][-1][1]) - float(one["values"][0][1]) for one in modes]
    pairs = zip(modes, seconds, strict=True)
    return sum(more for one, more in pairs if one["metric"]["mode"] == "steal") / sum(seconds)


def followed() -> Iterator[tuple[str, str, float]]:
    """Give the run's state and how many trials its figures have, each time that they change.

    With the Unix time of each, for as long as a run may take. One watch: a kubectl for each look
    is work that counts against Laptime in every figure here.
    """
    columns = 'jsonpath={.status.state}|{.status.results[0].trials}{"\\n"}'
    last = None
    limit = f"--request-timeout={LONGEST_SECONDS}s"
    with watching("get", "br", NAME, "--watch", limit, "-o", columns) as lines:
        for line in lines:
            told = line.strip().partition("|")
            if told != last:
                last = told
                yield told[0], told[2], time.time()


def run(trials: int, measured: str = "2s") -> dict[str, list[float]]:
    """Run the benchmark; return the seconds of each kind of waiting."""
    kubectl("delete", "benchmarkrun", NAME, "--ignore-not-found", "--wait=true")
    while kubectl("get", "pods,configmaps", "-l", f"laptime.dev/run={NAME}", "-o", "name"):
        time.sleep(0.5)
    applied = time.time()
    kubectl("apply", "-f", "-", stdin=json.dumps(manifest(trials, measured)))
    for state, shown, told_at in followed():
        print(f"[{told_at - applied:5.1f} s] {state} {shown}", flush=True)
        if state == "Failed":
            conditions = kubectl("get", "br", NAME, "-o", "jsonpath={.status.conditions}")
            sys.exit(f"the run failed: {conditions}")
        if shown == str(trials):
            break
    else:
        sys.exit(f"the run did not end: {kubectl('get', 'br', NAME, '-o', 'yaml')}")
    measured_phases = phases()
    return {
        "apply to first request": [measured_phases[0]["warmup"]["firstRequestAt"] - applied],
        "between trials": [
            after["warmup"]["firstRequestAt"] - before["measured"]["lastResponseAt"]
            for before, after in pairwise(measured_phases)
        ],
        "last response to figures": [told_at - measured_phases[-1]["measured"]["lastResponseAt"]],
    }


def main() -> int:
    """Print the figures beside their goals; return 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=6)
    arguments = parser.parse_args()
    shares = share_of_watching()
    begin = time.time()
    seconds = run(arguments.trials)
    taken = taken_by_hypervisor(begin, time.time())
    kubectl("delete", "benchmarkrun", NAME, "--wait=false")
    missed = 0
    print(f"{'':26} {'median':>8} {'worst':>8} {'goal':>8}")
    for name, goal in GOALS.items():
        middle = median(seconds[name])
        good = middle <= goal
        missed += not good
        print(
            f"{name:26} {middle:7.2f}s {max(seconds[name]):7.2f}s {goal:7.1f}s  "
            f"{'met' if good else 'MISSED'}"
        )
    print(f"the hypervisor took {taken:.1%} of the nodes' CPU time meanwhile")
    together = sum(shares.values())
    good = together < MOST_OF_THE_MACHINE
    missed += not good
    parts = ", ".join(f"{name.removeprefix('laptime-')} {one:.2%}" for name, one in shares.items())
    print(
        f"{'watching, of the machine':26} {together:8.2%} {'':8} {MOST_OF_THE_MACHINE:8.0%}  "
        f"{'met' if good else 'MISSED'} ({parts})"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
