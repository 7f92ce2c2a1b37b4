"""Objects under a run's label fill no memory, however large and many somebody makes them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from aiohttp import web

from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.service import Service
from laptime.kube import KubeError
from laptime.list_stream import MOST_BYTES
from laptime.manifests.objects import HASH_ANNOTATION, NAME_ANNOTATION, PODS_ANNOTATION, UID_LABEL
from laptime.manifests.result import (
    MAX_VALUES,
    PAYLOAD_KEY,
    READINGS_KEY,
    RESULT_KEY,
    read_readings,
    read_result,
    result_config_map,
)
from laptime.manifests.undisturbed import ASKED_ANNOTATION
from laptime.reconcile import children as module
from laptime.reconcile import result_cache
from laptime.reconcile.cache import Room, Watch
from laptime.reconcile.children import Children, kinds_of_run
from laptime.reconcile.held import OF_KIND, ONLY_THERE, TARGET, held
from laptime.reconcile.result_cache import ResultCache
from laptime.reconcile.service_view import service_view
from laptime.reconcile.views import deployment_view, job_view, pod_view
from tests.large_trials import traced
from tests.manifests.runs import context

from .api_server import ApiServer, serving
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_decide import spec_of

KIB = 2**10
MIB = 2**20
LARGE = "x" * (255 * KIB) + "\U0001f600"
"""As much as Kubernetes takes in annotations; in the memory each character has four bytes."""
RESULT = TrialResult(
    trial="t",
    ordinal=1,
    server="axum",
    load="closed",
    repetition=1,
    outcome=TrialOutcome.MEASURED,
)


def config_map(number: int, run_uid: str, owner: str | None, **more: Any) -> dict[str, Any]:
    metadata = {
        "name": f"c{number}",
        "uid": f"uid-{number}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {UID_LABEL: run_uid, "laptime.dev/component": "result", "a": "b"},
        "annotations": {"a": LARGE, HASH_ANNOTATION: "1234567890abcdef"},
        "managedFields": [{"manager": LARGE}],
    }
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": "BenchmarkRun", "name": "r", "uid": owner}]
    return {"kind": "ConfigMap", "metadata": {**metadata, **more}}


def test_of_large_objects_under_a_runs_label_next_to_nothing_is_held() -> None:
    children = Children("u")
    with traced() as memory:
        for number in range(120):
            # Each a document of its own, as it is read.
            children.stores["ConfigMap"].put(json.loads(json.dumps(config_map(number, "u", "u"))))
            pod = {**config_map(number, "u", "u"), "kind": "Pod", "spec": {"containers": []}}
            pod["spec"] = {"containers": [{"name": "a", "env": [{"name": "A", "value": LARGE}]}]}
            children.stores["Pod"].put(json.loads(json.dumps(pod)))
        now, _ = memory()
    assert len(children.of("ConfigMap")) == len(children.of("Pod")) == 120
    assert now < MIB


@pytest.mark.parametrize("owner", [None, "another"])
def test_what_is_not_the_runs_own_is_not_held(owner: str | None) -> None:
    changes: list[None] = []
    children = Children("u", lambda: changes.append(None))
    store = children.stores["ConfigMap"]
    for number in range(5):
        store.put(config_map(number, "u", owner))
        store.put(config_map(number, "another", "u"))
    assert (len(store), children.of("ConfigMap"), changes) == (0, [], [])
    # What was its own and is not any more is gone, whatever older news still say.
    store.put(config_map(1, "u", "u", resourceVersion="10"))
    assert len(store) == 1
    store.put(config_map(1, "u", owner, resourceVersion="12"))
    store.put(config_map(1, "u", "u", resourceVersion="11"))
    assert (len(store), children.find("ConfigMap", "c1"), len(changes)) == (0, None, 2)
    store.put(config_map(1, "u", "u", resourceVersion="13"))
    assert len(store) == 1


def test_more_than_a_run_can_have_is_left_out_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 64 * KIB)
    children = Children("u", kinds=kinds_of_run(policies=True))
    for number in range(200):
        named = {"annotations": {NAME_ANNOTATION: f"{number}" + "x" * 5000}}
        kind = ("ConfigMap", "Service", "Job", "NetworkPolicy")[number % 4]
        children.stores[kind].put(config_map(number, "u", "u", **named))
    held_now = sum(len(store) for store in children.stores.values())
    assert 5 < held_now < 13
    (said,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert "run u: its objects take more than" in said
    # What goes makes room.
    for number in range(200):
        children.stores["ConfigMap"].remove(f"uid-{number}")
        children.stores["Service"].bury(f"uid-{number}")
    children.stores["Pod"].put({**config_map(900, "u", "u", annotations={}), "kind": "Pod"})
    assert len(children.of("Pod")) == 1


def test_one_of_two_thousand_trials_has_room_for_all_that_it_stores(
    caplog: pytest.LogCaptureFixture,
) -> None:
    children = Children("u")
    for number in range(6000):
        name = f"a-run-of-the-longest-name-there-is-trial-{number}-readings"
        labels = {
            UID_LABEL: "u",
            **{f"laptime.dev/{one}": "of-twenty-characters" for one in ("server", "load", "run")},
            "laptime.dev/component": "result",
            "laptime.dev/trial": name,
        }
        children.stores["ConfigMap"].put(
            config_map(number, "u", "u", name=name, uid=f"{number:036d}", labels=labels)
        )
    assert len(children.of("ConfigMap")) == 6000
    assert not caplog.records


def test_what_generators_printed_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(result_cache, "MOST_PAYLOAD_BYTES", 4 * MIB)
    cache, ctx = ResultCache("u"), context()

    def add(trial: str) -> None:
        manifest = result_config_map(ctx, RESULT.model_copy(update={"trial": trial}), "")
        manifest["data"][PAYLOAD_KEY] = LARGE
        cache.add(trial, json.loads(json.dumps(manifest)), ctx)

    with traced() as memory:
        for number in range(40):
            add(f"t-{number}")
        now, _ = memory()
    kept = {trial for trial, payload in cache.payloads.items() if payload}
    assert len(cache.known()) == 40
    assert len(kept) == 4
    assert now < 5 * MIB
    (said,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    # They are the run's own: nobody else has to be looked for.
    assert said == (
        f"results of run u: what its generators printed takes more than {4 * MIB} bytes, and not "
        "all of it is kept: the rows say whose response times are missing"
    )
    # What goes makes room, and what never had any makes none.
    cache.forget(cache.known() - kept)
    add("without-room")
    assert not cache.payloads["without-room"]
    cache.forget(kept)
    add("with-room")
    assert cache.payloads["with-room"] == LARGE


async def test_what_generators_printed_fills_no_etcd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is not kept nothing is stored either: there is room for two of four."""
    monkeypatch.setattr(result_cache, "MOST_PAYLOAD_BYTES", 1000)
    server = ApiServer()
    server.add({**run_manifest("demo"), "spec": spec_of(2, 1, 2).to_wire()})
    stored: dict[str, bool] = {}

    async def look(request: web.Request) -> web.StreamResponse | None:
        if request.method == "POST" and request.path.endswith("/configmaps"):
            made = await request.json()
            if RESULT_KEY in made.get("data", {}):
                left_out = "laptime.dev/payload-omitted" in made["metadata"]["annotations"]
                assert left_out != (PAYLOAD_KEY in made["data"])
                stored[made["metadata"]["name"]] = not left_out
        return None

    server.fault = look
    async with operating(server), working(server):
        await until(lambda: state(server, "demo") == "Succeeded", 60)
    assert list(stored.values()) == [True, True, False, False]


def test_of_the_results_of_two_thousand_trials_all_are_known() -> None:
    """What is parsed of them has no bound but their number."""
    cache, ctx = ResultCache("u"), context()
    for number in range(2000):
        result = RESULT.model_copy(update={"trial": f"t-{number}", "message": "x" * 13_000})
        cache.add(result.trial, json.loads(json.dumps(result_config_map(ctx, result, ""))), ctx)
    assert len(cache.known()) == 2000


@pytest.mark.parametrize("key", [RESULT_KEY, READINGS_KEY])
def test_a_result_of_more_values_than_any_trial_has_is_refused_as_one_that_nobody_can_read(
    key: str,
) -> None:
    """Of 300,000 empty objects even the mistakes have hundreds of MB."""
    manifest = result_config_map(context(), RESULT, "")
    manifest["data"] = {key: json.dumps({"lostAttempts": [{}] * 300_000})}
    read = read_result if key == RESULT_KEY else read_readings
    with traced() as memory:
        with pytest.raises(ValueError, match=f"more than {MAX_VALUES} values"):
            read(manifest)
        assert memory()[1] < 40 * MIB


def test_an_endless_room_has_room() -> None:
    room = Room()
    assert room.size([LARGE]) == 0
    assert room.take(2**60)
    assert room.take(2**60)


POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "demo-postgres-1",
        "namespace": "default",
        "uid": "p",
        "resourceVersion": "8",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:09:00Z",
        "labels": {
            UID_LABEL: "u",
            **{f"laptime.dev/{one}": one for one in ("component", "server", "trial", "placement")},
            "batch.kubernetes.io/job-completion-index": "2",
        },
        "annotations": {
            ASKED_ANNOTATION: json.dumps(
                {
                    "main": "postgres",
                    "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}},
                    "images": {"postgres": "postgres:18", "prepare": "laptime:1"},
                }
            )
        },
        "ownerReferences": [{"kind": "ReplicaSet", "name": "demo-postgres-x", "uid": "rs"}],
    },
    "spec": {
        "nodeName": "node-1",
        "hostNetwork": True,
        "imagePullSecrets": [{"name": "pull"}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "values": ["node-1"]}]}
                    ]
                }
            }
        },
        "initContainers": [
            {"name": "prepare", "image": "laptime:2"},
            {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"},
        ],
        "containers": [
            {
                "name": "postgres",
                "image": "postgres:17",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            }
        ],
        "ephemeralContainers": [{"name": "shell", "image": "busybox"}],
    },
    "status": {
        "phase": "Running",
        "reason": "Why",
        "message": "because",
        "podIP": "10.0.0.1",
        "startTime": "2026-01-01T00:00:01Z",
        "observedGeneration": 2,
        "conditions": [
            {"type": "Ready", "status": "True"},
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no node",
            },
            {"type": "DisruptionTarget", "status": "True", "reason": "Evicted", "message": "away"},
            {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no"},
            {"type": "PodResizeInProgress", "status": "True"},
        ],
        "initContainerStatuses": [
            {
                "name": "prepare",
                "state": {
                    "terminated": {
                        "exitCode": 1,
                        "reason": "Error",
                        "message": "{}",
                        "finishedAt": "2026-01-01T00:00:02Z",
                    }
                },
            }
        ],
        "containerStatuses": [
            {
                "name": "postgres",
                "ready": True,
                "restartCount": 4,
                "image": "postgres:17",
                "imageID": "postgres@sha256:1",
                "resources": {"limits": {"cpu": "1500m"}},
                "state": {"running": {"startedAt": "2026-01-01T00:00:03Z"}},
                "lastState": {
                    "terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "gone"}
                },
            },
            {
                "name": "mesh",
                "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
            },
        ],
    },
}


def noisy(value: Any) -> Any:
    """Return an object with more in each of its parts, as strangers and later versions write it."""
    if isinstance(value, dict):
        return {**{key: noisy(one) for key, one in value.items()}, "noise": {"more": [LARGE]}}
    return [noisy(one) for one in value] if isinstance(value, list) else value


def test_a_pod_is_seen_as_before_by_what_is_held_of_it() -> None:
    view = pod_view(POD)
    # What is compared is there.
    assert view.altered.added
    assert view.altered.images
    assert view.resize_pending
    assert view.bound == ("node-1",)
    assert view.gates == ("kueue.x-k8s.io/admission",)
    kept = held(noisy(POD), OF_KIND["Pod"])
    assert pod_view(kept) == view
    assert "noise" not in json.dumps(kept)


def test_deployments_and_jobs_are_seen_as_before_by_what_is_held_of_them() -> None:
    metadata = deepcopy(POD["metadata"])
    metadata["annotations"] = {
        HASH_ANNOTATION: "abc",
        NAME_ANNOTATION: "known",
        PODS_ANNOTATION: "a/1",
    }
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "Quota", "message": "exceeded"}
    template = {"metadata": {"labels": {"laptime.dev/trial": "t"}}, "spec": POD["spec"]}
    deployment = {
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 0, "template": template},
        "status": {"conditions": [failed]},
    }
    kept = held(noisy(deployment), OF_KIND["Deployment"])
    assert deployment_view(kept) == deployment_view(deployment)
    assert deployment_view(kept).refused_message
    job = {
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template},
        "status": {
            "active": 1,
            "succeeded": 2,
            "failed": 3,
            "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b", "c"]},
            "conditions": [
                {"type": "Failed", "status": "True", "reason": "Backoff", "message": "m"},
                {"type": "Complete", "status": "True"},
            ],
        },
    }
    kept = held(noisy(job), OF_KIND["Job"])
    assert job_view(kept) == job_view(job)
    assert job_view(kept).made == 9
    assert job_view(kept).pods == frozenset({"a/1"})
    for one in (deployment, job):
        assert "noise" not in json.dumps(held(noisy(one), OF_KIND[one["kind"]]))
        assert held(noisy(one), ONLY_THERE).keys() == {"metadata"}


def test_a_service_that_is_driven_leads_where_it_did() -> None:
    service = {
        "metadata": {"name": "shop", "namespace": "default", "uid": "s", "resourceVersion": "1"},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.7",
            "selector": {"app": "shop"},
            "ports": [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    }
    kept = held({**service, "status": {"loadBalancer": {}}, "data": LARGE}, TARGET)
    assert kept == service
    wanted = Service(name="shop", port=80)
    assert service_view(wanted, "default", kept) == service_view(wanted, "default", service)
    assert service_view(wanted, "default", kept).target is not None


async def _streamed(request: web.Request, items: Iterator[bytes]) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b'{"metadata":{"resourceVersion":"9"},"items":[')
    first = True
    for item in items:
        await response.write(item if first else b"," + item)
        first = False
    await response.write(b"]}")
    return response


@pytest.mark.parametrize("cached", [False, True])
async def test_a_list_of_large_objects_is_never_in_the_memory_as_a_whole(cached: bool) -> None:
    items = 200

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if "watch" in request.query:
            return None
        whole = (json.dumps(config_map(n, "u", "u")).encode() for n in range(items))
        return await _streamed(request, whole)

    children = Children("u")
    server = ApiServer(fault=fault)
    async with serving(server) as kube:
        store = children.stores["ConfigMap"]
        with traced() as memory:
            watch = Watch(kube, store, "ConfigMap", None, seconds=5.0, from_cache=cached)
            task = asyncio.create_task(watch.run())
            await watch.first()
            now, most = memory()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(store) == items
    # The answer has 100 MiB, and as objects 400.
    assert most < 12 * MIB
    assert now < 3 * MIB


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_given_up(status: int) -> None:
    async def fault(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for _ in range(3 * MOST_BYTES // MIB):
            await response.write(b" " * MIB)
        return response

    async with serving(ApiServer(fault=fault)) as kube:
        with traced() as memory:
            with pytest.raises(KubeError, match="more than"):
                await kube.get("ConfigMap", "default", "one")
            _, most = memory()
    assert most < 3 * MOST_BYTES


async def test_a_run_that_somebody_fills_with_objects_is_measured_as_if_they_were_not_there() -> (
    None
):
    server = ApiServer()
    run = server.add(run_manifest("demo"))
    uid = run["metadata"]["uid"]
    for number in range(60):
        labels = {UID_LABEL: uid, "laptime.dev/component": "result"}
        metadata = {"name": f"theirs-{number}", "labels": labels, "annotations": {"a": LARGE}}
        server.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    async with operating(server), working(server):
        await until(lambda: state(server, "demo") == "Succeeded", 60)
    assert len([one for one in server.of("ConfigMap") if "theirs" in one["metadata"]["name"]]) == 60
