"""Two operators, one at work: killed, frozen or cut off in mid-trial, the other one goes on."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubernetes import client

from conftest import CHART, OPERATOR_NAMESPACE, Api, Tool

from .harness import AXUM, POSTGRES_ALONE, TWIN, Cluster, light, operator_pids, over, run_manifest
from .test_operator_killed import CoreApi, Generators, follow_generators, started_once

LONGEST_TAKEOVER_SECONDS = 15.0
TIMES_EACH = int(os.environ.get("LAPTIME_TAKEOVERS") or 1)
"""How often each of the three happens."""
API_PORTS = "{ 443, 6443 }"


@pytest.fixture(scope="module")
def two_operators(helm: Tool, kubectl: Tool, operator: str) -> Iterator[None]:
    """The release with two operators; with one again afterwards."""
    if not operator_pids():
        pytest.skip("the operator's process is not on this machine")
    for replicas in (2, 1):
        helm(
            *("upgrade", operator, str(CHART), "-n", OPERATOR_NAMESPACE),
            *("--reset-then-reuse-values", "--set", f"operator.replicas={replicas}"),
            *("--wait", "--timeout", "120s"),
        )
        if replicas == 2:
            yield


def leader(reader: Api) -> str:
    """Return the name of the pod that has the lease; empty while none has."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases"
    lease = reader.find(f"{leases}/laptime-operator") or {"spec": {}}
    return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]


def process_of(pod: str) -> int:
    """Return the operator's process in a pod."""
    for pid in operator_pids():
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if f"HOSTNAME={pod}".encode() in environment:
            return pid
    pytest.fail(f"no process of {pod} is on this machine")


def leads(reader: Api, pod: str) -> str:
    """Return what a pod's metrics say of its being at work; empty when they cannot be had."""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{pod}:8081/proxy/metrics"
    found = re.search(r"^laptime_leader (\S+)$", reader.text(path), re.M)
    return found[1] if found else ""


def freeze(pod: str, pid: int, core: CoreApi) -> Callable[[], None]:
    """Stop a process; return what lets it go on."""
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def kill(pod: str, pid: int, core: CoreApi) -> Callable[[], None]:
    """Kill a process and its pod; a new one comes by itself."""
    os.kill(pid, signal.SIGKILL)
    # Not a restart of the container, for which the kubelet waits longer each time.
    core.delete_namespaced_pod(pod, OPERATOR_NAMESPACE, grace_period_seconds=0)
    return lambda: None


def cut_off(pod: str, pid: int, core: CoreApi) -> Callable[[], None]:
    """Let nothing of a pod reach the API server; return what lets it again."""
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "nft"]
    rules = f"""
        table inet cut {{
            chain out {{
                type filter hook output priority 0;
                tcp dport {API_PORTS} drop
            }}
        }}"""
    subprocess.run([*inside, "-f", "-"], input=rules, text=True, check=True)

    def connect_again() -> None:
        subprocess.run([*inside, "delete", "table", "inet", "cut"], check=True)

    return connect_again


def test_a_standby_is_ready(two_operators: None, kubectl: Tool, reader: Api) -> None:
    pods = kubectl.json(
        *("get", "pods", "-n", OPERATOR_NAMESPACE, "-o", "json"),
        *("-l", "app.kubernetes.io/component=operator"),
    )["items"]
    ready = [
        condition["status"]
        for pod in pods
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert ready == ["True", "True"]
    deadline = time.monotonic() + LONGEST_TAKEOVER_SECONDS
    while _take_part(reader) != ["0.0", "1.0"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    # A drain may take the one or the other, never both.
    wanted = ("get", "pdb", "laptime-operator", "-n", OPERATOR_NAMESPACE, "-o", "json")
    deadline = time.monotonic() + LONGEST_TAKEOVER_SECONDS
    while kubectl.json(*wanted)["status"].get("disruptionsAllowed") != 1:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_in_mid_trial_the_other_operator_takes_over_and_nothing_is_lost(
    two_operators: None, cluster: Cluster, api: client.ApiClient
) -> None:
    core: CoreApi = client.CoreV1Api(api)
    acts = [act for _ in range(TIMES_EACH) for act in (kill, freeze, cut_off)]
    servers = [TWIN, AXUM]
    repetitions = math.ceil(len(acts) / len(servers)) + 1
    generators = Generators(core, cluster.namespace, lambda: None)
    run = cluster.apply(
        run_manifest(
            "handed-on",
            servers,
            loads=light("4s", warmup="1s"),
            topology=POSTGRES_ALONE,
            repetitions=repetitions,
        )
    )
    selector = f"laptime.dev/run={run}"
    uids: dict[str, str] = {}
    took: list[tuple[str, float]] = []
    acted_upon: set[str] = set()
    deadline = time.monotonic() + 200 + 30 * len(acts)
    while not over(status := cluster.status(run)):
        assert time.monotonic() < deadline, json.dumps(status, indent=1)
        started_once(cluster, selector, uids)
        follow_generators(cluster, selector, generators)
        new = set(generators.ready) - generators.done - acted_upon
        # Another one has to be there that can take over: it says that it stands by.
        if new and len(took) < len(acts) and _take_part(cluster.reader) == ["0.0", "1.0"]:
            acted_upon |= new
            took.append(_take_away(acts[len(took)], cluster.reader, core))
        time.sleep(0.1)
    print(", ".join(f"{what} {seconds:.1f} s" for what, seconds in took))
    assert len(took) == len(acts), took
    assert max(seconds for _, seconds in took) <= LONGEST_TAKEOVER_SECONDS, took
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    rows = [(row["trials"], row["failedTrials"]) for row in status["results"]]
    assert rows == [(repetitions, 0)] * len(servers)


def _take_part(reader: Api) -> list[str]:
    """Return what the operators' metrics say of their being at work, of those that say it."""
    pods = reader.names(
        f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods",
        labelSelector="app.kubernetes.io/component=operator",
    )
    return sorted(said for pod in pods if (said := leads(reader, pod)))


def _take_away(
    act: Callable[[str, int, CoreApi], Callable[[], None]], reader: Api, core: CoreApi
) -> tuple[str, float]:
    """Take the leader away; return what was done, and after how many seconds another one leads."""
    before = leader(reader)
    began = time.monotonic()
    undo = act(before, process_of(before), core)
    try:
        while leader(reader) in ("", before):
            assert time.monotonic() - began < 3 * LONGEST_TAKEOVER_SECONDS, act.__name__
            time.sleep(0.1)
        seconds = time.monotonic() - began
        # It has the lease before it can say so.
        while leads(reader, leader(reader)) != "1.0":
            assert time.monotonic() - began < 3 * LONGEST_TAKEOVER_SECONDS, act.__name__
            time.sleep(0.1)
    finally:
        undo()
    if act is not kill:
        # It stands by, as its metrics say, and the other one keeps the lease.
        after = leader(reader)
        deadline = time.monotonic() + LONGEST_TAKEOVER_SECONDS
        while leads(reader, before) != "0.0":
            assert time.monotonic() < deadline, f"{before} does not stand by after {act.__name__}"
            time.sleep(0.2)
        assert leader(reader) == after
    return act.__name__, seconds
