"""How long Laptime keeps people waiting around the measuring itself, from a real run.

    PYTHONPATH=bench:proof python3 bench/overhead/run.py [--trials N]

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and kubectl. Deploys
Postgres, PgBouncer, HAProxy and one server, seeded, and prints six figures beside their goals:

- apply to first request: from the start of `kubectl apply` to the first request of the warm-up;
- between trials: from a trial's last response to the next one's first request, in which the
  server gets a new pod, the database is reset and the result is stored;
- last response to figures: until the status of the run shows the figures of all trials;
- watching, of the machine: what operator, agent and Prometheus use together while a trial is
  measured, by their own CPU counters, which Prometheus scrapes;
- three viewers, of the machine: what Prometheus uses more while three people look at the first
  screen of the run's dashboard, refreshed every 5 s, than before they came, in the same trial. It
  is the second of two, so that they look at results and at the seconds of the first one. What
  Grafana itself uses is not in it: that need not be on a node that is measured;
- the factor of two like servers, in a run that three viewers look at and in one without: both
  intervals have to contain 1, and the one to be as wide as the other, as far as chance lets it.

All times are of one clock (this machine's). They are longer on a machine that is not there for a
fifth of the time: where the hypervisor took more of the nodes' CPU time than LIMITS say, all of it
is printed and not judged. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from statistics import median
from threading import Timer
from typing import Any
from urllib.parse import urlencode

from cluster_access import kubectl, stored_of, watching
from going_on import OF_FIGURES, Taken
from laptime_proof.runner import NOT_JUDGED_CODE
from overhead.viewers import REFRESH_SECONDS, Viewers, first_screen

from laptime.manifests.result import PAYLOAD_KEY

NAME = "bench-overhead"
LIMITS = replace(OF_FIGURES, others=None)
"""What Laptime uses itself is others' work as well, and that is what is judged here."""
LONGEST_SECONDS = 300
GOALS = {
    "apply to first request": 12.0,
    "between trials": 3.0,
    "last response to figures": 2.0,
}
MOST_OF_THE_MACHINE = 0.03
VIEWERS = 3
MOST_FOR_VIEWERS = 0.005
LOOKED_AT_SECONDS = 75
"""Measured phase of the trial in whose second half they look."""
ALONE_SECONDS = 40.0
"""From the end of the trial before, pods and warm-up included, until they come."""
LEAST_WINDOW_SECONDS = 20.0
PAIR_REPETITIONS = 8
MOST_WIDER = 2.23
"""Of one interval to the other, in logarithms: two of 8 like repetitions each differ by more in 5 %
of cases (the root of the 97.5 % point of F with 7 and 7 degrees of freedom, 4.99)."""
SYSTEM_NAMESPACE = "laptime-system"
PROMETHEUS = "laptime-prometheus"
WATCHERS = ("laptime-agent", "laptime-operator", PROMETHEUS)
SERVICE = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/services/{PROMETHEUS}:9090/proxy"


def manifest(trials: int, measured: str = "2s", servers: int = 1) -> dict[str, Any]:
    """Return the run: all tiers, so many like servers, so many trials of such a length of each."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": NAME},
        "spec": {
            "scenario": "users",
            "servers": [
                {"name": name, "preset": "axum-sqlx"} for name in ("axum", "again")[:servers]
            ],
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
    query = urlencode({"query": promql, "time": f"{moment:.3f}"})
    answer = json.loads(kubectl("get", "--raw", f"{SERVICE}/api/v1/query?{query}"))
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


@contextmanager
def viewers_of_the_run(*, loads: bool = False) -> Iterator[Viewers]:
    """Give viewers of the run's dashboard who reach Prometheus through the API server's proxy.

    With `loads` they ask what a dashboard asks when it is opened, and not what a refresh does.
    """
    values = {"namespace": "default", "run": NAME, "server": ".*", "load": ".*", "step": "1s"}
    # There was no run of this name before.
    values["since"] = "0"
    with watching("proxy", "--port=0") as lines:
        port = re.search(r":(\d+)$", next(iter(lines), "").strip())
        if port is None:
            sys.exit("kubectl proxy did not begin")
        yield Viewers(VIEWERS, first_screen(values, loads=loads), int(port[1]), SERVICE)


def share_of_watching() -> tuple[dict[str, float], float, list[float]]:
    """Run two long trials, in the second half of the last of which viewers look at the dashboard.

    Returns the share of the machine that each watcher used before they came, how much more
    Prometheus used while they looked, and the seconds that each of their refreshes took.
    """
    with viewers_of_the_run() as viewers:
        run(2, f"{LOOKED_AT_SECONDS}s", after_first_trial=Timer(ALONE_SECONDS, viewers.begin))
        viewers.end()
    phase = phases()[-1]["measured"]
    begin, came, end = phase["firstRequestAt"], viewers.began_at, phase["lastResponseAt"]
    if min(came - begin, end - came) < LEAST_WINDOW_SECONDS:
        sys.exit(f"the viewers came {came - begin:.0f} s after the begin, of {end - begin:.0f} s")
    alone = {job: share_of_machine(job, begin, came) for job in WATCHERS}
    more = share_of_machine(PROMETHEUS, came, end) - alone[PROMETHEUS]
    return alone, more, viewers.paints


def factor_of_like_servers(looked_at: bool) -> tuple[float, float]:
    """Run two like servers, which viewers look at or do not; return the factor's interval."""
    begin_run(manifest(PAIR_REPETITIONS, "4s", servers=2))
    with viewers_of_the_run() as viewers:
        if looked_at:
            viewers.begin()
        for state, _, _ in followed():
            if state in ("Succeeded", "Failed"):
                break
        if looked_at:
            viewers.end()
    results = json.loads(kubectl("get", "br", NAME, "-o", "json"))["status"].get("results", [])
    (factor,) = [one.get("factor") for one in results if one["server"] == "again"]
    if factor is None or "low" not in factor:
        sys.exit(f"no interval of the factor: {results}")
    print(f"factor of like servers, {'looked at' if looked_at else 'alone'}: {factor}", flush=True)
    return factor["low"], factor["high"]


def share_of_machine(job: str, begin: float, end: float) -> float:
    """Return the share of all CPUs that a watcher used between two Unix times."""
    (cpus,) = series("laptime_node_cpus[10s]", end)
    (one,) = series(f'process_cpu_seconds_total{{job="{job}"}}[{int(end - begin)}s]', end)
    (first, before), (last, after) = one["values"][0], one["values"][-1]
    share: float = (float(after) - float(before)) / (last - first) / float(cpus["values"][0][1])
    return share


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


def begin_run(wanted: dict[str, Any]) -> float:
    """Apply a run once the one before is gone with all that it had; return when, in Unix time."""
    kubectl("delete", "benchmarkrun", NAME, "--ignore-not-found", "--wait=true")
    while kubectl("get", "pods,configmaps", "-l", f"laptime.dev/run={NAME}", "-o", "name"):
        time.sleep(0.5)
    applied = time.time()
    kubectl("apply", "-f", "-", stdin=json.dumps(wanted))
    return applied


def run(
    trials: int, measured: str = "2s", after_first_trial: Timer | None = None
) -> dict[str, list[float]]:
    """Run the benchmark; return the seconds of each kind of waiting.

    `after_first_trial` is started when the figures of the first trial are shown.
    """
    applied = begin_run(manifest(trials, measured))
    for state, shown, told_at in followed():
        print(f"[{told_at - applied:5.1f} s] {state} {shown}", flush=True)
        if shown == "1" and after_first_trial is not None:
            after_first_trial.start()
            after_first_trial = None
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
    """Print the figures beside their goals; return 1 when one is missed, and NOT_JUDGED_CODE when
    the hypervisor took too much for that.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=6)
    arguments = parser.parse_args()
    begin = time.time()
    shares, more, refreshes = share_of_watching()
    seconds = run(arguments.trials)
    alone, looked_at = [factor_of_like_servers(looked_at) for looked_at in (False, True)]
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
    good = more <= MOST_FOR_VIEWERS
    missed += not good
    looks = f"{len(refreshes)} refreshes of {median(refreshes):.2f} s, every {REFRESH_SECONDS:g} s"
    print(
        f"{f'{VIEWERS} viewers, of the machine':26} {more:8.2%} {'':8} {MOST_FOR_VIEWERS:8.1%}  "
        f"{'met' if good else 'MISSED'} ({looks})"
    )
    widths = [math.log(high / low) for low, high in (alone, looked_at)]
    wider = max(widths) / min(widths)
    good = all(low <= 1.0 <= high for low, high in (alone, looked_at)) and wider <= MOST_WIDER
    missed += not good
    intervals = [f"{low:.3f} to {high:.3f}" for low, high in (looked_at, alone)]
    print(
        f"{'like servers, looked at':26} {intervals[0]}, alone {intervals[1]}: one {wider:.2f}x as "
        f"wide, goal {MOST_WIDER}x  {'met' if good else 'MISSED'}"
    )
    if beyond := LIMITS.beyond(Taken(taken)):
        print(f"not judged: {beyond}")
        return NOT_JUDGED_CODE
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
