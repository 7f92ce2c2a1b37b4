"""What was read of a trial's pods and servers, and what is said where nobody could read it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import OPERATOR_NAMESPACE, Tool
from laptime.analysis import wording
from laptime.api import doubts
from laptime.api.isolation import Isolation, Quietness
from laptime.report import read_results

from .harness import (
    AXUM,
    SYNC,
    Cluster,
    condition,
    light,
    namespace_for_runs,
    run_manifest,
    under_load,
)

LOADS = [
    {
        "name": "closed",
        "closed": {"connections": 4, "duration": "5s", "keepAlive": True},
        # The agent has seen the pods before the measured phase begins.
        "warmup": "3s",
    }
]


FUNCTIONS = {"sync": "list_users", "axum": "axum_sqlx::"}
"""What each server's own code is called in its stacks."""


def components(readings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["component"]: one for one in readings["usage"]["components"]}


@dataclass(frozen=True)
class Seen:
    """What a run came to whose servers are asked for profiles as well."""

    cluster: Cluster
    run: str
    status: dict[str, Any]


@pytest.fixture(scope="module")
def seen(kubectl: Any, reader: Any, operator: str) -> Iterator[Seen]:
    """Measure it once: profiles are made after the trials and in none of them."""
    with namespace_for_runs(reader) as name:
        cluster = Cluster(kubectl, reader, name)
        own = {
            "pgbouncer": {"poolSize": 12, "poolMode": "session"},
            "haproxy": {"maxConnections": 2},
        }
        servers = [{**SYNC, "profile": True}, {**AXUM, "profile": True, "topology": own}]
        run = cluster.apply(run_manifest("watched", servers, loads=LOADS, repetitions=1))
        status = cluster.wait_end(run, 240)
        assert status["state"] == "Succeeded", json.dumps(status, indent=1)
        cluster.wait_folded(run)
        yield Seen(cluster, run, status)


def test_profiles_name_the_functions_of_the_servers(seen: Seen) -> None:
    assert condition(seen.status, "Profiled")["status"] == "True", condition(
        seen.status, "Profiled"
    )
    # The load of a profile is counted nowhere.
    rows = {row["server"]: row["trials"] for row in seen.status["results"]}
    assert rows == {"sync": 1, "axum": 1}
    stored = seen.cluster.stored(seen.run).objects
    profiles = {one["metadata"]["name"]: one["data"] for one in stored}
    for server, function in FUNCTIONS.items():
        data = profiles[f"{seen.run}-flame-{server}"]
        assert function in data["stacks.folded"], data["stacks.folded"][:2000]
        picture = ElementTree.fromstring(data["flamegraph.svg"])
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"


def test_each_trial_says_what_its_pods_used_and_what_its_tiers_did(seen: Seen) -> None:
    results = seen.cluster.documents(seen.run)
    for trial, readings in seen.cluster.documents(seen.run, "readings.json").items():
        usage, parts = readings["usage"], components(readings)
        assert usage["source"] == "agent"
        assert usage["complete"], usage["gaps"]
        assert set(parts) == {"server", "generator", "postgres", "pgbouncer", "haproxy"}
        result = results[trial]
        server = parts["server"]
        assert server["server"] == result["server"]
        # One Python process has one core; a server that answers thousands of requests needs CPU.
        assert 0.1 < server["coresMean"] < (1.2 if result["server"] == "sync" else 2.0)
        assert server["coresPeak"] >= server["coresMean"] * 0.95
        assert server["workingSetBytes"] > 1_000_000
        processes = server["processes"]
        assert sum(one["cores"] for one in processes) == pytest.approx(
            server["coresMean"], rel=0.1
        ), server
        # One does the work, and the pause that every pod has does none.
        assert processes[0]["cores"] > 0.9 * server["coresMean"]
        main = processes[0]["mainThreadCores"]
        assert main <= 1.05 * processes[0]["cores"]
        # Rust computes on the threads of its workers alone.
        assert main > 0 if result["server"] == "sync" else main < 0.1 * processes[0]["cores"]
        (pause,) = (one for one in processes if one["command"] == "pause")
        assert (pause["cores"], pause["parent"] > 0) == (0.0, True)
        assert readings["tiers"]["database"]["statements"] >= result["figures"]["requests"] * 0.9
        pool, proxy = readings["tiers"]["pool"], readings["tiers"]["proxy"]
        assert pool["queries"] >= result["figures"]["requests"] * 0.9
        # Each in its own pool, and behind its own cap, of the same PgBouncer and HAProxy.
        assert pool["poolSize"] == {"sync": 25, "axum": 12}[result["server"]]
        assert 0 <= proxy["sessionsMean"] <= {"sync": 4, "axum": 2.2}[result["server"]]


def test_the_run_and_each_trial_say_whether_their_nodes_were_quiet(
    seen: Seen, kubeconfig: str
) -> None:
    document, report = read_results(seen.cluster.stored(seen.run).files["results.json"])
    isolation = Isolation.model_validate(seen.status["isolation"])
    assert document.isolation == isolation
    judged = {trial.trial: trial for trial in report.trials}
    assert len(judged) == len(FUNCTIONS)
    for trial in judged.values():
        assert trial.isolation is not None
        assert trial.isolation.word is not Quietness.NOT_KNOWN, trial.isolation
        assert trial.usage is not None
        for node in trial.usage.nodes:
            # The pods of the tests' own cluster, if nothing else.
            assert node.other_pods_cores is not None
            assert node.others_cores is not None
            assert 0.0 <= node.other_pods_cores <= node.others_cores <= node.cpus
            assert node.neighbours is not None
            assert node.probe_seconds is not None
            assert 1e-5 < node.probe_seconds < 1e-2
            assert node.probe_work
        doubtful = any(
            one.said(reason)
            for one in (doubts.NEIGHBOURS, doubts.STOLEN_TIME, doubts.STOOD_STILL)
            for reason in trial.validity_reasons
        )
        assert doubtful is (trial.isolation.word is Quietness.DISTURBED)
    # The run's is that of its worst trial, figure by figure.
    assert isolation.trial is not None
    worst = judged[isolation.trial].isolation
    assert worst is not None
    assert isolation == worst.model_copy(update={"trial": isolation.trial})
    order = list(Quietness)
    assert isolation.word is max(
        (one.isolation.word for one in judged.values() if one.isolation), key=order.index
    )
    laptime = Tool(str(Path(sys.executable).with_name("laptime")), kubeconfig)
    table = laptime("watch", seen.run, "-n", seen.cluster.namespace)
    said = f"Nodes: {wording.isolation(isolation)}"
    assert said in " ".join(table.split())


@contextmanager
def gone(cluster: Cluster, kind: str, name: str) -> Iterator[None]:
    """Take a part of what watches away, until its pods are gone, and bring it back."""

    def on(node: str | None) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"nodeSelector": {"laptime.dev/nowhere": node}}}}}

    scale = ("scale", f"{kind}/{name}", "-n", OPERATOR_NAMESPACE)
    patch = ("patch", f"{kind}/{name}", "-n", OPERATOR_NAMESPACE, "--type=merge", "-p")
    if kind == "deployment":
        cluster.kubectl(*scale, "--replicas=0")
    else:
        cluster.kubectl(*patch, json.dumps(on("x")))
    component = f"app.kubernetes.io/component={name.removeprefix('laptime-')}"
    try:
        cluster.kubectl(
            *("wait", "--for=delete", "pods", "-n", OPERATOR_NAMESPACE, "-l", component),
            "--timeout=60s",
        )
        yield
    finally:
        if kind == "deployment":
            cluster.kubectl(*scale, "--replicas=1")
        else:
            cluster.kubectl(*patch, json.dumps(on(None)))
        cluster.kubectl(
            "rollout", "status", f"{kind}/{name}", "-n", OPERATOR_NAMESPACE, "--timeout=90s"
        )


@pytest.mark.parametrize(
    ("kind", "name"), [("daemonset", "laptime-agent"), ("deployment", "laptime-prometheus")]
)
def test_a_watcher_that_goes_in_mid_trial_leaves_a_figure_that_says_so(
    cluster: Cluster, kind: str, name: str
) -> None:
    loads = light("15s", warmup="3s")
    run = cluster.apply(run_manifest(f"un{kind}", [AXUM], loads=loads, repetitions=1))
    trial = f"{run}-trial-001"
    cluster.wait(run, "its first trial", lambda _: bool(under_load(cluster, run, trial)), 90)
    time.sleep(4)
    with gone(cluster, kind, name):
        assert under_load(cluster, run, trial), "the trial was over before nobody watched it"
        status = cluster.wait_end(run, 120)
    # What the generator measured is as good as ever; what was read of the pods is marked.
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    (readings,) = cluster.documents(run, "readings.json").values()
    assert not readings["usage"]["complete"]
    assert readings["usage"]["gaps"]
