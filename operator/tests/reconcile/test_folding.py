"""What a run leaves is folded, and at no moment is anything of it lost or there twice."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from aiohttp import web

from laptime.api.storage import STORED_VERSION, USUAL_VERSION
from laptime.manifests.archive import is_archive
from laptime.manifests.objects import COMPONENT_LABEL, NAME_ANNOTATION, UID_LABEL
from laptime.manifests.result import PAYLOAD_KEY, RESULTS
from laptime.measure.kept import archived
from laptime.reconcile import folding
from laptime.reconcile.history import HistoryLimits
from laptime.report.archive import Archive, stored_in
from tests import version_1

from .api_server import ApiServer, Object
from .nodes import working
from .test_controller import folded, operating, reason, run_manifest, state, until
from .test_decide import spec_of

RUN = "demo"
TRIALS = {"demo-trial-001", "demo-trial-002", "demo-trial-003", "demo-trial-004"}
KEPT = TRIALS | {"demo-scenario"}


def manifest() -> dict[str, Any]:
    return {**run_manifest(RUN), "spec": spec_of(2, 1, 2).to_wire()}


def config_maps(server: ApiServer, run: str = RUN) -> list[Object]:
    uid = (server.get("BenchmarkRun", "default", run) or {})["metadata"]["uid"]
    found = []
    for one in server.of("ConfigMap"):
        labels = one["metadata"].get("labels") or {}
        if labels.get(UID_LABEL) == uid and labels[COMPONENT_LABEL] in RESULTS:
            found.append(one)
    return found


def single(server: ApiServer, run: str = RUN) -> list[Object]:
    return [
        one
        for one in config_maps(server, run)
        if not is_archive(one) and "results.json" not in one["data"]
    ]


def stored(server: ApiServer, run: str = RUN) -> Archive:
    """Return what is stored of the run, as whoever reads it sees it."""
    return stored_in(config_maps(server, run))


def said(archive: Archive) -> list[str]:
    """Return everything that is stored and that archives keep, each as text to compare."""
    texts = []
    for one in archive.objects:
        data = dict(one["data"])
        if PAYLOAD_KEY in data:
            plain = gzip.decompress(base64.b64decode(data[PAYLOAD_KEY]))
            data[PAYLOAD_KEY] = json.dumps(_decoded(archived(json.loads(plain))))
        metadata = {key: one["metadata"][key] for key in ("name", "uid", "labels", "annotations")}
        texts.append(json.dumps([metadata, data], sort_keys=True))
    return sorted(texts)


def _decoded(node: Any) -> Any:
    from laptime.measure import Histogram, HistogramError

    if isinstance(node, dict):
        return {key: _decoded(one) for key, one in node.items()}
    if isinstance(node, list):
        return [_decoded(one) for one in node]
    with suppress(HistogramError):
        return sorted(Histogram.decode(node).counts.items()) if isinstance(node, str) else node
    return node


def copy_of(server: ApiServer) -> ApiServer:
    return ApiServer(objects=deepcopy(server.objects), version=server.version)


class Killed:
    """Answers nothing any more once so many writes were carried out, as a killed operator sees."""

    def __init__(self, server: ApiServer, writes: int) -> None:
        self.happened = asyncio.Event()
        self.writes: list[str] = []
        self._server, self._last = server, writes
        server.fault = self._fault

    async def _fault(self, request: web.Request) -> web.StreamResponse | None:
        if request.method == "GET" and not self.happened.is_set():
            return None
        if len(self.writes) < self._last:
            self.writes.append(f"{request.method} {request.path.rsplit('/v1', 1)[1]}")
            answer = await self._server.answer(request)
            if len(self.writes) < self._last:
                return answer
        self.happened.set()
        await asyncio.sleep(60)
        return None


async def until_finishing() -> ApiServer:
    """Return an API server with a run that was measured and has nothing else done."""
    server = ApiServer()
    reached = asyncio.Event()

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if reached.is_set():
            await asyncio.sleep(60)
        if request.path.endswith("/status") and '"Finishing"' in await request.text():
            await server.answer(request)
            reached.set()
            await asyncio.sleep(60)
        return None

    server.fault = fault
    async with working(server), operating(server):
        server.add(manifest())
        await until(reached.is_set, 60)
    server.fault = None
    assert state(server, RUN) == "Finishing"
    assert {one["metadata"]["name"] for one in single(server)} == KEPT
    return copy_of(server)


async def test_a_run_that_is_over_leaves_one_config_map() -> None:
    server = ApiServer()
    async with working(server), operating(server):
        server.add(manifest())
        await until(lambda: folded(server, RUN), 60)
    assert state(server, RUN) == "Succeeded"
    (head,) = server.of("ConfigMap")
    assert head["metadata"]["name"] == "demo-results"
    status = (server.get("BenchmarkRun", "default", RUN) or {})["status"]
    assert status["resultsConfigMap"] == "demo-results"
    size = len(base64.b64decode(head["binaryData"]["archive.xz"]))
    assert status["storage"]["version"] == USUAL_VERSION
    assert abs(status["storage"]["bytes"] - size) < 3
    read = stored(server)
    assert {one["metadata"]["name"] for one in read.objects} == KEPT
    assert len(json.loads(read.files["results.json"])["trials"]) == 4


async def test_a_run_that_only_verifies_leaves_one_config_map_too() -> None:
    server = ApiServer()
    async with working(server), operating(server):
        server.add({**manifest(), "spec": {**manifest()["spec"], "verifyOnly": True}})
        await until(lambda: folded(server, RUN), 60)
    assert reason(server, RUN, "Succeeded") == "OnlyVerified"
    (head,) = server.of("ConfigMap")
    assert head["metadata"]["name"] == "demo-results"
    names = [one["name"] for one in manifest()["spec"]["servers"]]
    kept = {*(f"demo-answer-{name}" for name in names), "demo-scenario"}
    assert {one["metadata"]["name"] for one in stored(server).objects} == kept


async def test_a_list_that_is_too_old_to_have_the_last_trial_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folding, "_AGAIN_SECONDS", (0.05,))
    server = ApiServer()
    last, left_out = "demo-trial-004", Counter[str]()

    async def old_lists(request: web.Request) -> web.StreamResponse | None:
        lists = request.method == "GET" and request.path.endswith("/configmaps")
        there = server.get("ConfigMap", "default", last)
        # When the run is over, the first list that is asked for is as old still.
        if not lists or "watch" in request.query or there is None or left_out["Succeeded"]:
            return None
        left_out[state(server, RUN) or ""] += 1
        whole = await server.answer(request)
        assert isinstance(whole, web.Response)
        answer = json.loads(whole.text or "")
        kept = [one for one in answer["items"] if one["metadata"]["name"] != last]
        then = str(int(there["metadata"]["resourceVersion"]) - 1)
        return web.json_response({**answer, "metadata": {"resourceVersion": then}, "items": kept})

    server.fault = old_lists
    async with working(server), operating(server):
        server.add(manifest())
        await until(lambda: folded(server, RUN), 60)
    assert left_out["Finishing"]
    assert left_out["Succeeded"]
    assert single(server) == []
    assert {one["metadata"]["name"] for one in stored(server).objects} == KEPT


async def test_what_a_forged_archive_names_of_others_outlives_the_run() -> None:
    """Whoever may write ConfigMaps can make the archive of a run before the run does."""
    server = ApiServer()
    theirs = [
        server.add({"kind": "ConfigMap", "metadata": {"name": "theirs"}}),
        server.add(
            {"kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"}}
        ),
        server.add(
            {
                **run_manifest("their-run"),
                "metadata": {"name": "their-run", "namespace": "other"},
                "status": {"state": "Succeeded"},
            }
        ),
    ]
    paths = (
        "theirs",
        "../../kube-system/configmaps/coredns",
        "../../../../../apis/laptime.dev/v1alpha1/namespaces/other/benchmarkruns/their-run",
    )
    uids = [one["metadata"]["uid"] for one in theirs]
    doomed = [(path, uid) for path, its in zip(paths, uids, strict=True) for uid in (its, None)]
    entries = [
        {"metadata": {"name": path, "uid": uid, "labels": {COMPONENT_LABEL: "profile"},
                      "annotations": {NAME_ANNOTATION: f"{path}-{uid}"}}}
        for path, uid in doomed
    ]  # fmt: skip
    run = server.add(manifest())
    owner = {"kind": "BenchmarkRun", "name": RUN, "uid": run["metadata"]["uid"]}
    labels = {UID_LABEL: owner["uid"], COMPONENT_LABEL: "result"}
    metadata = {"name": "demo-results", "labels": labels, "ownerReferences": [owner]}
    forged = server.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    _put(server, forged, entries)
    async with working(server), operating(server):
        await until(lambda: folded(server, RUN), 60)
    for one in theirs:
        where = one["metadata"]
        assert server.get(one["kind"], where["namespace"], where["name"]) == one
    # What the run itself has stored is in the archive, and nowhere else.
    assert {one["metadata"]["name"] for one in stored(server).objects} >= KEPT
    assert single(server) == []


async def test_at_no_write_is_anything_lost_or_doubled() -> None:
    base = await until_finishing()
    expected = said(stored(base))
    assert len(expected) == len(KEPT)
    whole = Killed(server := copy_of(base), 10**9)
    async with operating(server):
        await until(lambda: folded(server, RUN), 60)
    writes = whole.writes
    # The archive, what is cleaned up, the status and its events, the single results, the status.
    kinds = Counter(write.split("/")[-2] for write in writes)
    assert writes.count("POST /namespaces/default/configmaps") == 1
    assert len([one for one in writes if "demo-trial-" in one and "DELETE" in one]) >= 4
    assert kinds[RUN] >= 2
    files = stored(server).files

    async def kill(after: int) -> None:
        server = copy_of(base)
        killed = Killed(server, after)
        async with operating(server):
            await until(lambda: killed.happened.is_set() or folded(server, RUN), 60)
        assert said(stored(server)) == expected, writes[:after]
        if state(server, RUN) == "Finishing":
            # An older version would go on with it, and does not know archives.
            assert {one["metadata"]["name"] for one in single(server)} == KEPT
        server.fault = None
        async with operating(server):
            await until(lambda: folded(server, RUN), 60)
        assert state(server, RUN) == "Succeeded"
        assert said(stored(server)) == expected
        assert single(server) == []
        assert stored(server).files == files
        assert len(server.of("ConfigMap")) == 1

    gate = asyncio.Semaphore(8)

    async def one(after: int) -> None:
        async with gate:
            await kill(after)

    # Killed before a write is killed after the one before it.
    await asyncio.gather(*map(one, range(len(writes) + 1)))


async def test_folding_again_changes_nothing() -> None:
    server = await until_finishing()
    async with operating(server):
        await until(lambda: folded(server, RUN), 60)
    before = stored(server)
    uid = (server.get("BenchmarkRun", "default", RUN) or {})["metadata"]["uid"]
    head = deepcopy(server.get("ConfigMap", "default", "demo-results"))
    # A run that is asked to go on has nothing left to measure: all of it is in the archive.
    status = {"state": "Running", "servers": _servers(server)}
    server.change("BenchmarkRun", "default", RUN, status=status)
    async with working(server) as nodes, operating(server):
        await until(lambda: folded(server, RUN), 60)
    assert nodes.generators_started == []
    assert said(stored(server)) == said(before)
    assert server.get("ConfigMap", "default", "demo-results") == head
    assert (server.get("BenchmarkRun", "default", RUN) or {})["metadata"]["uid"] == uid


def _servers(server: ApiServer) -> Any:
    return (server.get("BenchmarkRun", "default", RUN) or {})["status"]["servers"]


async def test_what_is_measured_after_the_archive_goes_into_it_too() -> None:
    server = await until_finishing()
    async with operating(server):
        await until(lambda: folded(server, RUN), 60)
    (last,) = (one for one in stored(server).objects if one["metadata"]["name"] == "demo-trial-004")
    everything = said(stored(server))
    # As if the last trial had not been run by then.
    head = server.get("ConfigMap", "default", "demo-results") or {}
    rest = [one for one in stored(server).objects if one is not last]
    _put(server, head, [one for one in rest if one["metadata"]["name"] != "demo-trial-004"])
    status = {"state": "Running", "servers": _servers(server)}
    server.change("BenchmarkRun", "default", RUN, status=status)
    async with working(server) as nodes, operating(server):
        await until(lambda: folded(server, RUN), 60)
    assert nodes.generators_started == ["demo-trial-004"]
    assert {one["metadata"]["name"] for one in stored(server).objects} == KEPT
    assert len(set(said(stored(server))) & set(everything)) == len(KEPT) - 1
    assert len(json.loads(stored(server).files["results.json"])["trials"]) == 4
    assert len(server.of("ConfigMap")) == 1


def _put(server: ApiServer, head: Object, objects: list[Object]) -> None:
    from laptime.report.archive import pack

    packed = base64.b64encode(pack({}, objects)).decode()
    name = head["metadata"]["name"]
    server.change("ConfigMap", "default", name, binaryData={"archive.xz": packed})


async def test_nothing_is_deleted_that_is_not_in_the_archive() -> None:
    server = await until_finishing()
    uid = (server.get("BenchmarkRun", "default", RUN) or {})["metadata"]["uid"]
    owner = {"kind": "BenchmarkRun", "name": RUN, "uid": uid}
    labels = {UID_LABEL: uid, COMPONENT_LABEL: "result"}
    async with operating(server):
        await until(lambda: state(server, RUN) == "Succeeded", 60)
        await until(lambda: folded(server, RUN), 60)
    # Whatever this is, and whoever made it: it is not in the archive.
    metadata = {"name": "demo-trial-009", "labels": labels, "ownerReferences": [owner]}
    server.add({"kind": "ConfigMap", "metadata": metadata, "data": {}})
    stranger = {"name": "demo-trial-001", "namespace": "default", "labels": labels}
    server.add({"kind": "ConfigMap", "metadata": stranger, "data": {"theirs": "yes"}})
    status = (server.get("BenchmarkRun", "default", RUN) or {})["status"]
    again = {**status, "storage": {"version": STORED_VERSION, "folded": False}}
    server.change("BenchmarkRun", "default", RUN, status=again)
    async with operating(server):
        await until(lambda: folded(server, RUN), 60)
    names = {one["metadata"]["name"] for one in server.of("ConfigMap")}
    assert names == {"demo-results", "demo-trial-009", "demo-trial-001"}


async def test_an_archive_that_is_not_whole_deletes_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(folding, "_AGAIN_SECONDS", (0.05,))
    base = await until_finishing()
    server = copy_of(base)
    broken = asyncio.Event()

    async def fault(request: web.Request) -> web.StreamResponse | None:
        text = await request.text()
        if request.method == "PATCH" and json.loads(text)["status"]["state"] == "Succeeded":
            head = server.get("ConfigMap", "default", "demo-results") or {}
            whole = head["binaryData"]["archive.xz"]
            cut = {"archive.xz": whole[: len(whole) // 8 * 4]}
            server.change("ConfigMap", "default", "demo-results", binaryData=cut)
            broken.set()
        return None

    server.fault = fault
    async with operating(server):
        await until(broken.is_set, 60)
        await asyncio.sleep(0.3)
    assert {one["metadata"]["name"] for one in single(server)} == KEPT
    assert not folded(server, RUN)
    assert state(server, RUN) == "Succeeded"


async def test_a_quota_that_leaves_no_room_for_the_archive_loses_nothing() -> None:
    server = await until_finishing()

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.method == "POST" and request.path.endswith("/configmaps"):
            refusal = {"reason": "Forbidden", "message": "exceeded quota: few"}
            return web.json_response(refusal, status=403)
        return None

    server.fault = fault
    async with operating(server):
        await asyncio.sleep(1.0)
    assert {one["metadata"]["name"] for one in single(server)} == KEPT
    server.fault = None
    async with operating(server):
        await until(lambda: folded(server, RUN), 60)


class TestOtherVersions:
    """What version 1 wrote is read; what a newer version wrote is left alone."""

    def left_by_version_1(self, server: ApiServer, trials: int = 6) -> str:
        """Store the recorded run with so many of its trials; return its uid."""
        run = version_1.run()
        added = server.add(run)
        uid: str = added["metadata"]["uid"]
        for one in (*version_1.single(), version_1.files()):
            metadata = one["metadata"]
            metadata["labels"][UID_LABEL] = uid
            metadata["ownerReferences"][0]["uid"] = uid
            number = metadata["name"].removeprefix("first-trial-")[:3]
            if (int(number) if number.isdecimal() else 7) <= trials + (trials == 6):
                server.add(one)
        return uid

    async def test_a_run_that_version_1_has_ended_is_not_touched(self) -> None:
        server = ApiServer()
        self.left_by_version_1(server)
        before = deepcopy(server.objects)
        async with operating(server) as controller:
            await until(lambda: len(controller.metrics._figures.shown) == 1)
            await asyncio.sleep(0.3)
        assert server.objects == before
        assert {verb for verb, _ in server.requests} == {"list", "watch"}
        read = stored(server, "first")
        assert len(read.objects) == 12
        assert read.files == version_1.files()["data"]

    async def test_a_run_of_version_1_is_gone_on_with_in_its_middle(self) -> None:
        server = ApiServer()
        self.left_by_version_1(server, trials=4)
        run = server.get("BenchmarkRun", "default", "first") or {}
        servers = run["status"]["servers"]
        server.change("BenchmarkRun", "default", "first", status={
            "state": "Running", "seed": run["status"]["seed"], "servers": servers,
        })  # fmt: skip
        # What another uid says of the order of trials is of no matter: the seed is in the spec.
        spec = {**run["spec"], "seed": run["status"]["seed"]}
        server.change("BenchmarkRun", "default", "first", spec=spec)
        before = {one["metadata"]["name"]: one for one in single(server, "first")}
        async with working(server) as nodes, operating(server):
            await until(lambda: folded(server, "first"), 60)
        assert nodes.generators_started == ["first-trial-005", "first-trial-006"]
        after = {one["metadata"]["name"]: one for one in stored(server, "first").objects}
        # Its ten results, and the scenario that it keeps from now on.
        assert len(after) == 11
        for name, one in before.items():
            assert said(Archive({}, [after[name]])) == said(Archive({}, [one]))
        document = json.loads(stored(server, "first").files["results.json"])
        # In the order that version 1 drew, and went on with where it was not replaced.
        drawn = json.loads(version_1.files()["data"]["results.json"])["trials"]
        ours, theirs = (
            [(one["trial"], one["server"], one["repetition"]) for one in trials]
            for trials in (document["trials"], drawn)
        )
        assert ours == theirs
        assert [name for name, _, _ in ours] == [f"first-trial-{n:03d}" for n in range(1, 7)]
        status = (server.get("BenchmarkRun", "default", "first") or {})["status"]
        assert status["order"] == "Drawn"

    async def test_a_run_of_a_newer_version_is_left_as_it_is(self) -> None:
        server = ApiServer()
        newer = {"version": STORED_VERSION + 1, "howeverItIsStored": True}
        status = {"state": "Running", "storage": newer, "conditions": []}
        server.add({**run_manifest("theirs"), "status": status})
        server.add(run_manifest("ours"))
        async with operating(server):
            await until(lambda: state(server, "ours") == "Deploying")
            await until(lambda: server.of("Event"))
        found = server.get("BenchmarkRun", "default", "theirs") or {}
        assert found["status"] == status
        reasons = [one["reason"] for one in server.of("Event")]
        assert reasons.count("StoredByNewerVersion") == 1
        assert reason(server, "theirs", "Accepted") is None

    async def test_a_run_that_a_newer_version_has_ended_is_left_as_it_is(self) -> None:
        server = ApiServer()
        status = {
            "state": "Succeeded",
            "finishedAt": "2026-01-01T00:00:00Z",
            "resultsConfigMap": "theirs-results",
            "storage": {"version": STORED_VERSION + 1, "folded": False, "howeverItIsStored": True},
            "whateverItSays": True,
        }
        spec = {**run_manifest("theirs")["spec"], "ttlSecondsAfterFinished": 60}
        server.add({**run_manifest("theirs"), "spec": spec, "status": status})
        ours = {"state": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"}
        server.add({**run_manifest("ours"), "status": ours})
        before = deepcopy(server.objects["BenchmarkRun", "default", "theirs"])
        async with operating(server, history=HistoryLimits(successful=0)):
            await until(lambda: server.get("BenchmarkRun", "default", "ours") is None)
            await asyncio.sleep(0.3)
        assert server.get("BenchmarkRun", "default", "theirs") == before


async def test_of_a_result_that_somebody_has_deleted_the_one_measured_again_is_shown() -> None:
    server = ApiServer()
    server.add(manifest())
    name = "demo-trial-001"

    def said() -> dict[str, Any]:
        one = server.get("ConfigMap", "default", name) or {"data": {}}
        found: dict[str, Any] = json.loads(one["data"].get("result.json", "{}"))
        return found

    async with operating(server), working(server) as nodes:
        # What its generator has written is gone by then.
        await until(lambda: len(nodes.generators_started) == 3, 20)
        before = said()
        server.remove("ConfigMap", "default", name)

        def over() -> bool:
            # The one that was under way ends as well, on a kubelet that says so.
            for pod in server.of("Pod"):
                running = pod["status"]["phase"] == "Running"
                if running and pod["metadata"]["name"] in server.logs:
                    nodes.end(pod, "Succeeded", 0)
            return state(server, RUN) == "Succeeded" and folded(server, RUN)

        await until(over, 30)
    archive = stored(server)
    results = [
        json.loads(one["data"]["result.json"])
        for one in archive.objects
        if "result.json" in one["data"]
    ]
    (again,) = (one for one in results if one["trial"] == before["trial"])
    shown = json.loads(archive.files["results.json"])["trials"]
    (figures,) = (one for one in shown if one["trial"] == before["trial"])
    for key in ("startedAt", "figures", "nodes"):
        assert figures[key] == again[key]
    assert figures["startedAt"] != before["startedAt"]
