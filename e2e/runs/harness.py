"""Applying runs, waiting for what they come to, and looking at what they leave."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from laptime.report.archive import Archive, stored_in

KINDS = (
    "pods,jobs,deployments,replicasets,services,endpointslices,configmaps,secrets,networkpolicies"
)

# By plural: the kind and where it is served.
_SERVED = {
    "benchmarkruns": ("BenchmarkRun", "/apis/laptime.dev/v1alpha1"),
    "benchmarkscenarios": ("BenchmarkScenario", "/apis/laptime.dev/v1alpha1"),
    "configmaps": ("ConfigMap", "/api/v1"),
    "deployments": ("Deployment", "/apis/apps/v1"),
    "endpointslices": ("EndpointSlice", "/apis/discovery.k8s.io/v1"),
    "events": ("Event", "/api/v1"),
    "jobs": ("Job", "/apis/batch/v1"),
    "limitranges": ("LimitRange", "/api/v1"),
    "networkpolicies": ("NetworkPolicy", "/apis/networking.k8s.io/v1"),
    "pods": ("Pod", "/api/v1"),
    "replicasets": ("ReplicaSet", "/apis/apps/v1"),
    "resourcequotas": ("ResourceQuota", "/api/v1"),
    "secrets": ("Secret", "/api/v1"),
    "services": ("Service", "/api/v1"),
}
_PLURALS = {kind.lower(): plural for plural, (kind, _) in _SERVED.items()}
_WATCH_SECONDS = 10
_OPERATOR = "laptime-operator"
_OPERATOR_NAMESPACE = "laptime-system"


class _Followed:
    """A run whose status is known without asking for it again and again, by a watch in a thread."""

    def __init__(self, cluster: Cluster, run: str) -> None:
        self._cluster = cluster
        self._run = run
        self._changed = threading.Event()
        self._latest: dict[str, Any] | None = None
        """None: nobody watches, so that it has to be asked for."""
        self._left = False

    def status(self) -> dict[str, Any]:
        """Return the status as it is now."""
        known = self._latest
        if known is None:
            known = self._latest = self._cluster.get("benchmarkrun", self._run)
            version = known["metadata"]["resourceVersion"]
            threading.Thread(target=self._watch, args=(version,), daemon=True).start()
        found: dict[str, Any] = known.get("status") or {}
        return found

    def wait(self, seconds: float) -> None:
        """Wait until it changes, and not longer than so many seconds."""
        self._changed.wait(seconds)
        self._changed.clear()

    def leave(self) -> None:
        """Have the watch end, once it hears something."""
        self._left = True

    def _watch(self, version: str) -> None:
        path = self._cluster.path("benchmarkruns")
        try:
            for change in self._cluster.reader.changes(path, self._run, version, _WATCH_SECONDS):
                if self._left or change["type"] not in ("ADDED", "MODIFIED"):
                    break
                self._latest = change["object"]
                self._changed.set()
        except Exception as error:  # The API server may be away: it is asked again.
            print(f"watching {self._run}: {error}")
        self._latest = None
        self._changed.set()


class Cluster:
    """What the tests of runs do with a cluster, in one namespace."""

    def __init__(self, kubectl: Any, reader: Any, namespace: str) -> None:
        self.kubectl = kubectl
        self.reader = reader
        self.namespace = namespace

    def path(self, kinds: str, name: str = "") -> str:
        """Return where objects of a kind are, by its plural, or the one of a name."""
        folder = f"{_SERVED[kinds][1]}/namespaces/{self.namespace}/{kinds}"
        return f"{folder}/{name}" if name else folder

    def apply(self, manifest: dict[str, Any]) -> str:
        """Apply a manifest; return its name."""
        name: str = manifest["metadata"]["name"]
        self.reader.apply(self.path(_PLURALS[manifest["kind"].lower()], name), manifest)
        return name

    def create(self, manifest: dict[str, Any]) -> None:
        """Create what is not there yet."""
        self.reader.create(self.path(_PLURALS[manifest["kind"].lower()]), manifest)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object, by its kind in small letters."""
        found: dict[str, Any] = self.reader.get(self.path(_PLURALS[kind], name))
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an object, by its kind in small letters; None if there is none."""
        found: dict[str, Any] | None = self.reader.find(self.path(_PLURALS[kind], name))
        return found

    def wish(self, run: str, **fields: Any) -> None:
        """Change the spec of a run, as its author may."""
        self.reader.merge(self.path("benchmarkruns", run), {"spec": fields})

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, by its kind in small letters."""
        self.reader.delete(self.path(_PLURALS[kind], name))

    def kill_pods(self, selector: str) -> None:
        """Delete pods at once, as if their node had lost them."""
        self.reader.delete(self.path("pods"), labelSelector=selector, gracePeriodSeconds="0")

    def items(self, kinds: str, selector: str) -> list[dict[str, Any]]:
        """Return the objects of some kinds, with commas, that match a selector."""
        return [
            {"kind": _SERVED[one][0], **item}
            for one in kinds.split(",")
            for item in self.reader.get(self.path(one), labelSelector=selector)["items"]
        ]

    def names(self, kinds: str, selector: str) -> list[str]:
        """Return the names of the objects of a kind that match a selector."""
        found: list[str] = self.reader.names(self.path(kinds), labelSelector=selector)
        return found

    def status(self, run: str) -> dict[str, Any]:
        """Return the status of a run."""
        return self.get("benchmarkrun", run).get("status") or {}

    def wait(
        self, run: str, what: str, until: Callable[[dict[str, Any]], bool], seconds: float
    ) -> dict[str, Any]:
        """Wait until the status of a run is so; fail with everything known when it is not."""
        deadline = time.monotonic() + seconds
        followed = _Followed(self, run)
        while True:
            status = followed.status()
            if until(status):
                followed.leave()
                return status
            if time.monotonic() > deadline:
                seen = self.kubectl.run("get", "pods,jobs,events", "-n", self.namespace).stdout
                pytest.fail(
                    f"run {run}: {what} did not come within {seconds:g} s; its status is\n"
                    f"{json.dumps(status, indent=1)}\n{seen}"
                )
            # What is waited for may be something else than the status.
            followed.wait(0.3)

    def wait_end(self, run: str, seconds: float) -> dict[str, Any]:
        """Wait until a run is over."""
        return self.wait(run, "its end", over, seconds)

    def left_of(self, run: str) -> set[str]:
        """Return kind/name of every object of a run."""
        return {
            f"{item['kind']}/{item['metadata']['name']}"
            for item in self.items(KINDS, f"laptime.dev/run={run}")
        }

    def wait_folded(self, run: str) -> dict[str, Any]:
        """Wait until all that is left of a run that is over is its archive."""
        return self.wait(
            run, "its archive", lambda status: bool((status.get("storage") or {}).get("folded")), 30
        )

    def stored(self, run: str) -> Archive:
        """Return everything that a run has stored, wherever that is now."""
        return stored_in(self.items("configmaps", f"laptime.dev/run={run}"))

    def documents(self, run: str, key: str = "result.json") -> dict[str, dict[str, Any]]:
        """Return what each trial of a run has stored under a key, by the trial."""
        return {
            one["metadata"]["labels"]["laptime.dev/trial"]: json.loads(one["data"][key])
            for one in self.stored(run).objects
            if key in (one.get("data") or {})
        }


@contextmanager
def namespace_for_runs(reader: Any, level: str = "restricted") -> Iterator[str]:
    """Give a namespace at a Pod Security level in which runs are allowed; it is deleted then."""
    name = f"runs-{secrets.token_hex(4)}"
    rbac = "rbac.authorization.k8s.io"
    labels = {"pod-security.kubernetes.io/enforce": level}
    binding = {
        "metadata": {"name": "laptime"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "laptime-runs"},
        "subjects": [
            {"kind": "ServiceAccount", "name": _OPERATOR, "namespace": _OPERATOR_NAMESPACE}
        ],
    }
    reader.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    try:
        reader.create(f"/apis/{rbac}/v1/namespaces/{name}/rolebindings", binding)
        deadline = time.monotonic() + 30
        while not may_run(reader, name):
            assert time.monotonic() < deadline, "the operator may do nothing in a new namespace"
            time.sleep(0.05)
        yield name
    finally:
        reader.delete(f"/api/v1/namespaces/{name}", missing_ok=True)


def may_run(reader: Any, namespace: str) -> bool:
    """Return whether the API server knows that the operator may start Jobs in a namespace."""
    asked = {"namespace": namespace, "verb": "create", "group": "batch", "resource": "jobs"}
    user = f"system:serviceaccount:{_OPERATOR_NAMESPACE}:{_OPERATOR}"
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    answer = reader.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def operator_pids() -> list[int]:
    """Return the operator's processes in the embedded cluster under test.

    None where it is another cluster, whose processes are not on this machine. A second cluster
    may be beside this one: the control group tells them apart.
    """
    name = os.environ.get("LAPTIME_CLUSTER_NAME") or "laptime-cluster"
    found: list[int] = []
    if name not in Path(os.environ.get("KUBECONFIG") or f"/var/lib/{name}").parts:
        return found
    for process in Path("/proc").iterdir():
        try:
            if (
                process.name.isdigit()
                and b"laptime\0operator" in (process / "cmdline").read_bytes()
                and re.search(rf"/{name}/[^/]+/kubepods/", (process / "cgroup").read_text())
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def under_load(cluster: Cluster, run: str, *trials: str) -> set[str]:
    """Return the names of the generators that run for trials, whichever attempt it is."""
    pods = cluster.items("pods", f"laptime.dev/run={run},laptime.dev/component=generator")
    return {
        pod["metadata"]["name"]
        for pod in pods
        if pod["metadata"]["labels"]["laptime.dev/trial"].partition("-attempt-")[0] in trials
        and pod["status"]["phase"] == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


def over(status: dict[str, Any]) -> bool:
    """Whether a run is over."""
    return status.get("state") in ("Succeeded", "Failed", "Cancelled")


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    """Return a condition; an empty one if it is not there."""
    for one in status.get("conditions") or []:
        if one["type"] == type_:
            found: dict[str, Any] = one
            return found
    return {}


def run_manifest(name: str, servers: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a small BenchmarkRun with all tiers."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "scenario": "users",
            "servers": servers,
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [
                {
                    "name": "closed",
                    "closed": {"connections": 4, "duration": "1s", "keepAlive": False},
                    "warmup": "500ms",
                }
            ],
            "repetitions": 2,
            **spec,
        },
    }


# For tests that look at what happens and not at figures: what takes the machine from those beside
# them, such as a load as fast as it goes and tiers that nobody looks at, is left out.
POSTGRES_ALONE: dict[str, Any] = {"postgres": {}}


def light(duration: str = "1s", warmup: str = "500ms") -> list[dict[str, Any]]:
    """Return the loads of a run that uses little of the machine: 50 requests a second."""
    return [{"name": "light", "open": {"rate": 50, "duration": duration}, "warmup": warmup}]


SYNC = {"name": "sync", "preset": "fastapi-sync"}
ASYNC = {"name": "async", "preset": "fastapi-async"}
AXUM = {"name": "axum", "preset": "axum-sqlx"}
# A second server where it is no matter which: a start of Python costs more than all of its trial.
TWIN = {"name": "twin", "preset": "axum-sqlx"}
