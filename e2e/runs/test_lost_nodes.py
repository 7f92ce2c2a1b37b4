"""Nodes frozen, drained, cut off and killed while they measure: no run stands, none is wrong.

Takes nodes of the cluster away, so it has one of its own, with four: `make lost-nodes`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, ROOT, Api, Tool
from laptime.api import doubts

from .harness import AXUM, POSTGRES_ALONE, TWIN, Cluster, run_manifest

pytestmark = pytest.mark.skipif(
    os.environ.get("LAPTIME_LOST_NODES_TESTS") != "1",
    reason="takes nodes of a cluster with four away; set LAPTIME_LOST_NODES_TESTS=1",
)

TOOLS = "laptime"
"""The node of operator and Prometheus, which pods of runs do not go to."""
RATE, SECONDS = 50, 6
REPETITIONS = 2
LONGEST_ANSWER_SECONDS = 2.0
"""What nothing that is this idle takes, however full the machine is that its nodes share."""
NOTICED_SECONDS = 70
"""From so long on an act is noticed: a node whose kubelet says nothing for 50 s is not ready."""
NOTHING_KNOWN = (doubts.NO_RIGHT_ANSWER, doubts.ALL_TOO_LATE, doubts.STILL_DRIVEN)
SAYS_SO = {
    "requests": (doubts.RATE_NOT_HELD, *NOTHING_KNOWN),
    "errors": (doubts.ERRORS, *NOTHING_KNOWN),
    # Where a network was away some are given up, and others answered when it is back.
    "longest": (doubts.STOOD_STILL, doubts.GENERATOR_LATE, doubts.ERRORS, *NOTHING_KNOWN),
}
"""The doubts that say what is wrong of a trial. Others, such as neighbours who took CPUs, are on
many trials of four nodes that share a machine, and explain none of it."""


@dataclass(frozen=True)
class Act:
    """What is done to the node of a part in mid-trial, and for how long."""

    what: str
    part: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.what} node of the {self.part}, {self.seconds:g} s"


# From a stumble that nobody takes notice of to longer than the node controller waits (50 s) and,
# once each, than pods tolerate it (300 s more): the same for all four, and fixed beforehand.
_TURNS = (("server", 8), ("generator", 25), ("postgres", 70), ("server", 110), ("server", 400))
_WAYS = {
    "frozen": ("freeze", "thaw"),
    "drained": ("drain", "uncordon"),
    "cut off": ("cut", "mend"),
    "killed": ("stop", "start"),
}
ACTS = tuple(Act(what, part, seconds) for part, seconds in _TURNS for what in _WAYS)


def cluster_does(*words: str) -> None:
    """Have the embedded cluster do something to a node."""
    command = ["python3", str(ROOT / "cluster" / "cluster.py"), *words]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)


@contextmanager
def happens(act: Act, node: str) -> Iterator[None]:
    """Take a node away; give it back whatever happens here."""
    there, back = _WAYS[act.what]
    try:
        cluster_does(there, node)
        yield
    finally:
        cluster_does(back, node)


@pytest.fixture(scope="module")
def runs_apart(
    kubectl: Tool, helm: Tool, release: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Operator and Prometheus on a node of their own, the other three for runs."""
    taint = {"key": "tools", "operator": "Exists", "effect": "NoSchedule"}
    place = {"nodeSelector": {"kubernetes.io/hostname": TOOLS}, "tolerations": [taint]}
    file = tmp_path_factory.mktemp("apart") / "values.yaml"
    file.write_text(yaml.safe_dump({"operator": place, "prometheus": place}))
    kubectl("taint", "node", TOOLS, "tools=laptime:NoSchedule", "--overwrite")
    try:
        helm(
            *("upgrade", release, str(CHART), "-n", OPERATOR_NAMESPACE),
            *("--reset-then-reuse-values", "--values", str(file), "--wait", "--timeout", "180s"),
            timeout=240,
        )
        yield
    finally:
        kubectl.run("taint", "node", TOOLS, "tools-")


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_away(node: dict[str, Any]) -> bool:
    return not is_ready(node) or bool(node["spec"].get("unschedulable"))


@pytest.fixture
def all_there(reader: Api, runs_apart: None) -> None:
    """Four nodes that are ready, with an agent on each."""
    agents = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/daemonsets/laptime-agent"
    deadline = time.monotonic() + 120
    while True:
        nodes = reader.get("/api/v1/nodes")["items"]
        assert len(nodes) == 4
        there = not any(map(is_away, nodes))
        if there and reader.get(agents)["status"].get("numberReady") == 4:
            return
        assert time.monotonic() < deadline, "nodes or agents are not back"
        time.sleep(0.5)


def node_of(cluster: Cluster, run: str, part: str) -> str | None:
    """Return the node of a part while a trial is measured; None while none is."""
    pods = {
        name: [
            one
            for one in cluster.items("pods", f"laptime.dev/run={run},laptime.dev/component={name}")
            if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"]
        ]
        for name in {"generator", "server", part}
    }
    # One that ends may still be there beside the next one.
    if any(len(found) != 1 for found in pods.values()):
        return None
    node: str = pods[part][0]["spec"]["nodeName"]
    return node


@pytest.mark.parametrize("act", ACTS, ids=str)
def test_a_node_that_goes_in_mid_trial_costs_time_and_no_figure(
    act: Act, all_there: None, cluster: Cluster
) -> None:
    number = ACTS.index(act)
    load = {"name": "light", "open": {"rate": RATE, "duration": f"{SECONDS}s"}, "warmup": "1s"}
    run = cluster.apply(
        run_manifest(
            f"lost-{number:02}",
            [TWIN, AXUM],
            loads=[load],
            topology=POSTGRES_ALONE,
            repetitions=REPETITIONS,
            startupTimeout="45s",
        )
    )
    after = number % 3
    cluster.wait(run, "its trial", lambda it: _completed(it) >= after, 200)
    node: str | None = None

    def placed(_: dict[str, Any]) -> bool:
        nonlocal node
        node = node_of(cluster, run, act.part)
        return node is not None

    cluster.wait(run, "a trial that is measured", placed, 120)
    time.sleep(2.0)
    assert node is not None
    assert node != TOOLS
    began, away = time.monotonic(), False
    with happens(act, node):
        # A run that goes on elsewhere is over sooner.
        while time.monotonic() < began + act.seconds:
            away = away or is_away(cluster.reader.get(f"/api/v1/nodes/{node}"))
            time.sleep(1)
    status = cluster.wait_end(run, 600)
    took = time.monotonic() - began
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    rows = [(row["trials"], row["failedTrials"]) for row in status["results"]]
    assert rows == [(REPETITIONS, 0)] * 2, json.dumps(status, indent=1)
    cluster.wait_folded(run)
    # As everybody reads them: with what was read of the nodes afterwards.
    trials = json.loads(cluster.stored(run).files["results.json"])["trials"]
    lost = [one for trial in trials for one in trial.get("lostAttempts") or []]
    for trial in trials:
        print(told(trial))
    print(
        f"{act}: {node}; over after {took:.0f} s, lost: "
        + (", ".join(f"{one['reason']} ({one['fault']})" for one in lost) or "nothing")
    )
    if act.seconds >= NOTICED_SECONDS:
        assert away or lost, f"{node} was never away, and no attempt was lost"
    assert all(one["fault"] != "server" for one in lost), lost
    wrong = [one for one in trials if is_wrong(one)]
    assert not wrong, wrong


def _completed(status: dict[str, Any]) -> int:
    found: int = (status.get("progress") or {}).get("completed", 0)
    return found


def is_wrong(trial: dict[str, Any]) -> bool:
    """Whether a trial says without a doubt what was not so: all requests were answered soon."""
    figures = trial["figures"]
    right = {
        "requests": figures["requests"] == RATE * SECONDS,
        "errors": figures["errors"] == 0,
        "longest": longest_answer(figures) < LONGEST_ANSWER_SECONDS,
    }
    said = {doubts.doubt(reason) for reason in trial["validityReasons"]}
    return any(not right[what] and said.isdisjoint(by) for what, by in SAYS_SO.items())


def longest_answer(figures: dict[str, Any]) -> float:
    """Return how many seconds the slowest right answer took; 0 without one."""
    seconds: float = (figures.get("latency") or {"maxSeconds": 0.0})["maxSeconds"]
    return seconds


@pytest.mark.parametrize(
    ("figures", "reasons", "wrong"),
    [
        ((300, 0, 0.01), [], False),
        ((300, 0, 8.3), [], True),
        ((300, 0, 8.3), ["node n stood still for 8.1 s: nothing was seen to run there"], False),
        ((300, 0, 8.3), ["others used at least 0.59 of the 1 CPUs of node n meanwhile"], True),
        ((280, 0, 0.01), ["the hypervisor took 3.0% of the CPU time of node n"], True),
        (
            (280, 0, 0.01),
            ["the rate was not held: 46.7 requests/s were due instead of 50"],
            False,
        ),
        ((300, 242, 26.7), ["80.67% of the requests had no right answer"], False),
        ((300, 242, 0.01), ["others used at least 0.59 of the 1 CPUs of node n meanwhile"], True),
        ((300, 300, None), ["no right answer, mostly timeout (300 of 300 requests)"], False),
    ],
)
def test_a_doubt_excuses_only_what_it_says(
    figures: tuple[int, int, float | None], reasons: list[str], wrong: bool
) -> None:
    requests, errors, longest = figures
    latency = None if longest is None else {"maxSeconds": longest}
    found = {"requests": requests, "errors": errors, "latency": latency}
    assert is_wrong({"figures": found, "validityReasons": reasons}) is wrong


def told(trial: dict[str, Any]) -> str:
    """Return a line about a trial."""
    figures = trial["figures"]
    reasons = trial["validityReasons"]
    gaps = (trial.get("usage") or {}).get("gaps")
    return (
        f"  {trial['trial']} attempt {trial['attempt']} on {trial['nodes']}: "
        f"{figures['requests']} requests, {figures['errors']} errors, longest "
        f"{longest_answer(figures):.3f} s; {reasons or 'no doubt'}; gaps {gaps}"
    )
