"""The operator may be killed at any instant: the run goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kubernetes import client

from laptime.api.attempts import trial_of

from .harness import AXUM, TWIN, Cluster, light, operator_pids, over, run_manifest

# The client's models have every field optional; what the API server always sets is not asked for.
CoreApi = Any

WARMUP_SECONDS = 2
STAGES = (
    "deploying",
    "verifying",
    "warming-up",
    "measuring",
    "collecting",
    "between-trials",
    "finishing",
)


def kill_operator(core: CoreApi) -> bool:
    """Kill the operator's process with SIGKILL, then its pod, so that a new one starts at once.

    Returns whether there was one: one that was killed before may just have gone.
    """
    killed = False
    for pid in operator_pids():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    if not killed:
        return False
    core.delete_collection_namespaced_pod(
        "laptime-system",
        label_selector="app.kubernetes.io/component=operator",
        grace_period_seconds=0,
    )
    return True


class Generators:
    """Follows the logs of all generators of a run: when each got ready, when each was done."""

    def __init__(self, core: CoreApi, namespace: str, on_result: Callable[[], None]) -> None:
        self._core = core
        self._namespace = namespace
        self._on_result = on_result
        self._followed: set[str] = set()
        self.ready: dict[str, float] = {}
        self.done: set[str] = set()

    def follow(self, pod: dict[str, Any]) -> None:
        """Follow a pod's log from its first line, once."""
        name = pod["metadata"]["name"]
        statuses = pod["status"].get("containerStatuses") or []
        if name not in self._followed and any("running" in one["state"] for one in statuses):
            self._followed.add(name)
            threading.Thread(target=self._read, args=(name,), daemon=True).start()

    def _read(self, name: str) -> None:
        stream = self._core.read_namespaced_pod_log(
            name, self._namespace, container="k6", follow=True, _preload_content=False
        )
        rest = b""
        for chunk in stream.stream(1024):
            rest += chunk
            if b"LAPTIME-READY" in rest and name not in self.ready:
                self.ready[name] = time.monotonic()
            if b"LAPTIME-RESULT" in rest:
                self.done.add(name)
                self._on_result()
                return

    def seconds_under_load(self) -> list[float]:
        """Return for how long each generator that is at work has sent requests."""
        now = time.monotonic()
        return [now - at for name, at in self.ready.items() if name not in self.done]


def test_a_run_survives_a_kill_at_each_stage(cluster: Cluster, api: client.ApiClient) -> None:
    if not operator_pids():
        pytest.skip("the operator's process is not on this machine")
    core: CoreApi = client.CoreV1Api(api)
    loads = light("4s", warmup=f"{WARMUP_SECONDS}s")
    killed: list[str] = []

    def kill_once(stage: str) -> None:
        if stage not in killed:
            # Before it is done: a log is followed by another thread.
            killed.append(stage)
            if not kill_operator(core):
                killed.remove(stage)

    def on_result() -> None:
        # In this very moment the operator reads the result and stores it. Not in the first trial:
        # the stages before come first.
        if "measuring" in killed:
            kill_once("collecting")

    generators = Generators(core, cluster.namespace, on_result)
    run = cluster.apply(run_manifest("killed", [TWIN, AXUM], loads=loads, repetitions=3))
    selector = f"laptime.dev/run={run}"
    uids: dict[str, str] = {}
    deadline = time.monotonic() + 400
    while not over(status := cluster.status(run)):
        assert time.monotonic() < deadline, json.dumps(status, indent=1)
        started_once(cluster, selector, uids)
        pods = follow_generators(cluster, selector, generators)
        for stage in _stages_now(cluster, selector, pods, generators):
            if stage == "measuring" and "warming-up" not in killed:
                continue
            kill_once(stage)
            break
        time.sleep(0.1)
    assert sorted(killed) == sorted(STAGES), f"only {killed} were reached"
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [3, 3]
    trials = {f"{run}-trial-{n:03d}" for n in range(1, 7)}
    cluster.wait_folded(run)
    assert cluster.left_of(run) == {f"ConfigMap/{run}-results"}
    assert set(cluster.documents(run)) == set(cluster.documents(run, "readings.json")) == trials
    # A pod that ends late on a full machine has its trial repeated.
    assert {trial_of(name) for name in uids if "-trial-" in name} == trials


def started_once(cluster: Cluster, selector: str, uids: dict[str, str]) -> None:
    """Note the uid of each Job by its name; fail when one was there under another uid."""
    for job in cluster.items("jobs", selector):
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        assert uids.setdefault(name, uid) == uid, f"{name} was started twice"


def follow_generators(
    cluster: Cluster, selector: str, generators: Generators
) -> list[dict[str, Any]]:
    """Return the pods of a run, after the logs of its generators are followed."""
    pods = cluster.items("pods", selector)
    for pod in pods:
        if pod["metadata"]["labels"]["laptime.dev/component"] == "generator":
            generators.follow(pod)
    return pods


def _stages_now(
    cluster: Cluster, selector: str, pods: list[dict[str, Any]], generators: Generators
) -> list[str]:
    """Return the stages that the run is in, judged by its objects and logs, not by its status."""
    of: dict[str, list[dict[str, Any]]] = {}
    for pod in pods:
        of.setdefault(pod["metadata"]["labels"]["laptime.dev/component"], []).append(pod)
    stored = [
        name
        for name in cluster.names("configmaps", selector)
        if "-trial-" in name and not name.endswith("-readings")
    ]
    stages = []
    if "postgres" in of and "verifier" not in of and not stored:
        stages.append("deploying")
    if "verifier" in of and "generator" not in of and not stored:
        stages.append("verifying")
    for seconds in generators.seconds_under_load():
        stages.append("warming-up" if seconds < WARMUP_SECONDS else "measuring")
    waiting = [
        pod
        for pod in of.get("generator", [])
        if pod["metadata"]["labels"]["laptime.dev/trial"] not in stored
    ]
    if stored and not waiting and len(stored) < 6:
        stages.append("between-trials")
    if len(stored) == 6:
        stages.append("finishing")
    return stages
