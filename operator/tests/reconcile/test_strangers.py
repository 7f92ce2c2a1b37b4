"""Nothing that is not the run's own is ever changed or deleted, whatever its name is."""

from __future__ import annotations

import base64
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from laptime.api.attempts import attempt_name
from laptime.api.profile import Profile
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.server import Server
from laptime.catalog import scenarios
from laptime.kube import KubeError
from laptime.manifests import archive
from laptime.manifests.archive import archive_config_maps, joined
from laptime.manifests.context import Network, RunContext, Target
from laptime.manifests.generator import trial_job
from laptime.manifests.network import network_policy
from laptime.manifests.objects import COMPONENT_LABEL, UID_LABEL, Component
from laptime.manifests.pods import config_map
from laptime.manifests.profiler import profile_job
from laptime.manifests.result import (
    answers_config_map,
    profile_config_map,
    readings_config_map,
    result_config_map,
)
from laptime.manifests.scenario import scenario_config_map
from laptime.manifests.secret import owning, secret_name
from laptime.manifests.server import server_deployment, server_service
from laptime.manifests.target import reach_policy
from laptime.manifests.verifier import verify_job
from laptime.measure.readings import no_readings
from laptime.plan import Trial, plan_profiles, plan_trials
from laptime.reconcile.actions import (
    Action,
    Apply,
    Create,
    CreateDatabaseSecret,
    Delete,
    Fold,
    Resize,
)
from laptime.reconcile.children import Children, kinds_of_run
from laptime.reconcile.execute import NameTaken, NotResized, execute
from laptime.reconcile.fold import delete_folded, read_archive
from laptime.reconcile.views import Run, run_view
from laptime.report.archive import pack, unpack

from .api_server import ApiServer, serving
from .test_decide import spec_of
from .world import IMAGES


def run_of(server: ApiServer, name: str = "shop") -> Run:
    return run_view(
        server.add(
            {
                "apiVersion": "laptime.dev/v1alpha1",
                "kind": "BenchmarkRun",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec_of(1, 1, 1).to_wire(),
            }
        )
    )


def context_of(run: Run) -> RunContext:
    return RunContext(
        run.name, run.namespace, run.uid, run.spec, scenarios()[run.spec.scenario], IMAGES
    )


def objects_of(context: RunContext) -> dict[str, dict[str, Any]]:
    server = context.spec.servers[0]
    return {
        "Service": server_service(context, server),
        "Deployment": server_deployment(context, server, None),
        "ConfigMap": config_map(context, Component.POSTGRES, "shop-postgres", {"a": "b"}),
        "Job": verify_job(context, server),
    }


def stranger(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return somebody else's object of the same kind and name, even with some of the labels."""
    theirs = deepcopy(manifest)
    theirs["metadata"] = {
        "name": manifest["metadata"]["name"],
        "namespace": "default",
        "labels": {"app": "shop", "laptime.dev/run": "shop"},
    }
    return theirs


@pytest.mark.parametrize("kind", ["Service", "Deployment", "ConfigMap"])
@pytest.mark.parametrize("verb", [Apply, Create])
async def test_a_name_that_somebody_else_has_is_said_and_the_object_left_alone(
    kind: str, verb: type[Apply | Create]
) -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    manifest = objects_of(context)[kind]
    theirs = deepcopy(server.add(stranger(manifest)))
    children = Children(run.uid)
    async with serving(server) as kube:
        with pytest.raises(NameTaken, match=f"{kind} {manifest['metadata']['name']} is there"):
            await execute(kube, run, context, [verb(manifest)], children)
        await execute(kube, run, context, [Delete(kind, manifest["metadata"]["name"])], children)
    assert server.get(kind, "default", manifest["metadata"]["name"]) == theirs


@pytest.mark.parametrize("forged", [{}, {"ownerReferences": [{"uid": "another"}]}])
async def test_a_label_alone_makes_an_object_nobodys_own(forged: dict[str, Any]) -> None:
    server = ApiServer(collects=False)
    run = run_of(server)
    context = context_of(run)
    manifest = objects_of(context)["Service"]
    theirs = stranger(manifest)
    theirs["metadata"] |= {"labels": manifest["metadata"]["labels"], **forged}
    kept = deepcopy(server.add(theirs))
    children = Children(run.uid)
    children.stores["Service"].put(kept)
    name = manifest["metadata"]["name"]
    async with serving(server) as kube:
        with pytest.raises(NameTaken):
            await execute(kube, run, context, [Apply(manifest)], children)
        await execute(kube, run, context, [Delete("Service", name)], children)
    assert server.get("Service", "default", name) == kept


def freely_named(run: Run) -> dict[str, dict[str, Any]]:
    """Return every kind of object of a run that nothing finds by its name."""
    there = Server.model_validate({"name": "there", "service": {"name": "web", "port": 80}})
    own = [one.model_copy(update={"profile": True}) for one in run.spec.servers]
    spec = run.spec.model_copy(update={"servers": [*own, there]})
    context = replace(
        context_of(run),
        spec=spec,
        network=Network(),
        targets={"there": Target(80, 8080, {"app": "web"})},
    )
    server, (trial, *_) = own[0], plan_trials(run.name, spec, 1, 1)
    flame, *_ = plan_profiles(run.name, spec)
    result = failed(trial)
    manifests = [
        verify_job(context, server),
        trial_job(context, trial),
        trial_job(context, replace(trial, name=attempt_name(trial.name, 2))),
        profile_job(context, flame),
        profile_config_map(
            context, flame.name, Profile(server=server.name, load=flame.load, problem="none")
        ),
        result_config_map(context, result, ""),
        readings_config_map(context, result, no_readings(trial.name, "nobody is here")),
        answers_config_map(context, server.name, ""),
        scenario_config_map(context),
        archive_config_maps(context, b"a")[0],
        network_policy(context),
        reach_policy(context, there),
    ]
    return {f"{one['kind']} {one['metadata']['name']}": one for one in manifests}


def failed(trial: Trial) -> TrialResult:
    return TrialResult(
        trial=trial.name,
        ordinal=trial.ordinal,
        server=trial.server,
        load=trial.load,
        repetition=trial.repetition,
        outcome=TrialOutcome.FAILED,
    )


FREELY_NAMED = list(freely_named(run_of(ApiServer())))


@pytest.mark.parametrize("which", FREELY_NAMED)
async def test_what_nothing_finds_by_its_name_gets_another_one(which: str) -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    manifest = freely_named(run)[which]
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    theirs = deepcopy(server.add(stranger(manifest)))
    children = Children(run.uid, kinds=kinds_of_run(policies=True))
    async with serving(server) as kube:
        await execute(kube, run, context, [Create(manifest)], children)
        ours = children.find(kind, name)
        assert ours is not None
        assert ours.name != name
        # The same again, by an operator that has forgotten everything: nothing is doubled.
        again = Children(run.uid, kinds=kinds_of_run(policies=True))
        await execute(kube, run, context, [Create(manifest)], again)
        assert len(server.of(kind)) == 2
        await execute(kube, run, context, [Delete(kind, name)], children)
    assert server.of(kind) == [theirs]


@pytest.mark.parametrize("which", FREELY_NAMED)
async def test_an_object_that_somebody_makes_under_the_name_in_mid_run_is_left_alone(
    which: str,
) -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    manifest = freely_named(run)[which]
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    children = Children(run.uid, kinds=kinds_of_run(policies=True))
    async with serving(server) as kube:
        await execute(kube, run, context, [Create(manifest)], children)
        assert server.get(kind, "default", name) is not None
        # The run's own is gone, and nobody has heard of it yet.
        server.remove(kind, "default", name)
        theirs = deepcopy(server.add(stranger(manifest)))
        await execute(kube, run, context, [Delete(kind, name)], children)
        assert server.of(kind) == [theirs]
        # The run makes its own anew, under another name.
        fresh = Children(run.uid, kinds=kinds_of_run(policies=True))
        await execute(kube, run, context, [Create(manifest)], fresh)
    assert len(server.of(kind)) == 2
    assert server.get(kind, "default", name) == theirs


async def test_an_archive_that_is_called_otherwise_is_written_again_under_that_name() -> None:
    """As when failed trials are asked for again."""
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    theirs = deepcopy(server.add(stranger(archive_config_maps(context, b"a")[0])))
    async with serving(server) as kube:
        # Each time by an operator that knows only what the API server has.
        for text in ("first", "second", "third"):
            children = Children(run.uid)
            for one in server.of("ConfigMap"):
                children.stores["ConfigMap"].put(one)
            await execute(kube, run, context, [Fold({"results.json": text})], children)
            (ours,) = (one for one in server.of("ConfigMap") if children.owns("ConfigMap", one))
            assert ours["metadata"]["name"] != "shop-results"
            assert unpack(joined(ours, {})).files == {"results.json": text}
    assert server.get("ConfigMap", "default", "shop-results") == theirs


FILES = {"results.json": "".join(f"{number * 7919 % 10007}" for number in range(2000))}


@pytest.mark.parametrize("same", [False, True], ids=["other content", "the same content"])
async def test_a_part_of_an_archive_under_a_name_of_somebody_else(
    same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_PART_BYTES", 2000)
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    _, (part, *_) = archive_config_maps(context, pack(FILES, []))
    name = part["metadata"]["name"]
    theirs = stranger(part)
    if not same:
        theirs["binaryData"] = {"archive.xz": "dGhlaXJz"}
    theirs = deepcopy(server.add(theirs))
    children = Children(run.uid)
    async with serving(server) as kube:
        if same:
            await execute(kube, run, context, [Fold(FILES)], children)
            by_name = {one["metadata"]["name"]: one for one in server.of("ConfigMap")}
            assert unpack(joined(by_name["shop-results"], by_name)).files == FILES
            assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
        else:
            with pytest.raises(NameTaken, match=f"ConfigMap {name} is there"):
                await execute(kube, run, context, [Fold(FILES)], children)
            # An archive that is not whole is none.
            assert server.get("ConfigMap", "default", "shop-results") is None
    assert server.get("ConfigMap", "default", name) == theirs


@pytest.mark.parametrize("forged", [{}, {"ownerReferences": [{"uid": "another"}]}])
async def test_what_only_has_the_labels_of_a_part_of_an_archive_is_not_deleted_with_it(
    forged: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a backup, which has labels and no owner."""
    monkeypatch.setattr(archive, "MAX_PART_BYTES", 2000)
    server = ApiServer(collects=False)
    run = run_of(server)
    _, (part, *_) = archive_config_maps(context_of(run), pack(FILES, []))
    labels = part["metadata"]["labels"]
    assert labels[archive.ARCHIVE_LABEL] == run.uid
    metadata = {"name": "backup", "namespace": "default", "labels": labels, **forged}
    theirs = deepcopy(server.add({**part, "metadata": metadata}))
    async with serving(server) as kube:
        await execute(kube, run, context_of(run), [Fold(FILES)], Children(run.uid))
        assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert server.get("ConfigMap", "default", "backup") == theirs


@pytest.mark.parametrize("meanwhile", ["nothing", "the run goes on", "it was written again"])
async def test_parts_that_no_archive_names_go_unless_one_is_being_written(
    meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_PART_BYTES", 2000)
    server = ApiServer(collects=False)
    run = run_of(server)
    server.change("BenchmarkRun", "default", "shop", status={"state": "Failed"})
    _, (later, *_) = archive_config_maps(context_of(run), pack({**FILES, "more": "1"}, []))

    async def fault(request: web.Request) -> None:
        if not request.query.get("labelSelector", "").startswith(archive.ARCHIVE_LABEL):
            return
        if meanwhile == "the run goes on":
            server.change("BenchmarkRun", "default", "shop", status={"state": "Finishing"})
        elif meanwhile == "it was written again":
            head = server.get("ConfigMap", "default", "shop-results") or {}
            server.change("ConfigMap", "default", "shop-results", data=head.get("data"))

    async with serving(server) as kube:
        await execute(kube, run, context_of(run), [Fold(FILES)], Children(run.uid))
        before = len(server.of("ConfigMap"))
        server.add(later)
        server.fault = fault
        if meanwhile == "nothing":
            assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
        else:
            with pytest.raises(KubeError, match="shop-results is being written again"):
                await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    left = len(server.of("ConfigMap")) - before
    assert left == (meanwhile != "nothing")


def of_the_run(run: Run, name: str, **changes: Any) -> dict[str, Any]:
    """Return a ConfigMap that is the run's own, but for what is changed in its metadata."""
    labels = {UID_LABEL: run.uid, COMPONENT_LABEL: "result"}
    owners = [{"kind": "BenchmarkRun", "name": run.name, "uid": run.uid}]
    metadata = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": owners}
    return {"kind": "ConfigMap", "metadata": {**metadata, **changes}, "data": {"a": "b"}}


def forged_archive(run: Run, doomed: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the archive of a run as anybody may write it who writes ConfigMaps there."""
    entries = [{"metadata": {"labels": {COMPONENT_LABEL: "result"}, **one}} for one in doomed]
    packed = base64.b64encode(pack(FILES, entries)).decode()
    return {**of_the_run(run, f"{run.name}-results"), "binaryData": {"archive.xz": packed}}


PATHS = {
    "ConfigMap": "../../kube-system/configmaps/coredns",
    "Deployment": "../../../../../apis/apps/v1/namespaces/kube-system/deployments/coredns",
    "BenchmarkRun": "../../../../../apis/laptime.dev/v1alpha1/namespaces/other/benchmarkruns/their",
}


@pytest.mark.parametrize("says_uid", [True, False])
@pytest.mark.parametrize("kind", PATHS)
async def test_a_forged_archive_reaches_into_no_other_kind_or_namespace(
    kind: str, says_uid: bool
) -> None:
    server = ApiServer()
    run = run_of(server)
    *_, namespace, _, name = PATHS[kind].split("/")
    theirs = server.add({"kind": kind, "metadata": {"name": name, "namespace": namespace}})
    uid = theirs["metadata"]["uid"] if says_uid else None
    server.add(forged_archive(run, [{"name": PATHS[kind], "uid": uid}]))
    async with serving(server) as kube:
        assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert server.get(kind, namespace, name) == theirs
    assert {path.split("/")[-2] for _, path in server.requests} <= {"default", "configmaps"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"labels": {"app": "shop"}, "ownerReferences": []}, id="nothing of the run"),
        pytest.param({"ownerReferences": []}, id="its labels alone"),
        pytest.param({"ownerReferences": [{"uid": "another"}]}, id="the owner is another"),
        pytest.param({"labels": {UID_LABEL: "another"}}, id="the label is another's"),
    ],
)
async def test_an_archive_that_names_an_object_of_somebody_else_deletes_and_reads_it_not(
    changes: dict[str, Any],
) -> None:
    """Its uid is in the archive, and is its own: that alone says nothing."""
    server = ApiServer(collects=False)
    run = run_of(server)
    theirs = server.add(of_the_run(run, "theirs", **changes))
    ours = server.add(of_the_run(run, "shop-trial-001"))
    # Under the name of another one, too: what counts is which object it is.
    named = [("theirs", theirs), ("shop-trial-002", theirs), ("shop-trial-003", ours)]
    doomed = [{"name": name, "uid": one["metadata"]["uid"]} for name, one in named]
    server.add(forged_archive(run, doomed))
    async with serving(server) as kube:
        assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert server.get("ConfigMap", "default", "theirs") == theirs
    assert server.get("ConfigMap", "default", "shop-trial-001") is None
    named_there = [path for verb, path in server.requests if verb in ("get", "delete")]
    assert [path.rsplit("/", 1)[1] for path in named_there] == ["shop-results", "shop-trial-001"]


async def test_a_result_under_the_name_of_the_archive_is_not_deleted_with_it() -> None:
    server = ApiServer()
    run = run_of(server)
    uid = server.add(forged_archive(run, []))["metadata"]["uid"]
    forged = forged_archive(run, [{"name": "shop-results", "uid": uid}])
    server.change("ConfigMap", "default", "shop-results", binaryData=forged["binaryData"])
    async with serving(server) as kube:
        assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert server.get("ConfigMap", "default", "shop-results") is not None


@pytest.mark.parametrize(
    "part", ["theirs", "shop-results-", "other-results-0123456789abcdef", "../pods/one", "shop-0"]
)
async def test_what_is_called_like_no_part_of_the_archive_is_not_read_as_one(part: str) -> None:
    server = ApiServer()
    run = run_of(server)
    forged = forged_archive(run, [])
    forged["metadata"]["annotations"] = {archive.PARTS_ANNOTATION: part}
    server.add(forged)
    async with serving(server) as kube:
        with pytest.raises(archive.ArchiveError, match="is no name of a part"):
            await read_archive(kube, "default", "shop-results")
        with pytest.raises(archive.ArchiveError, match="is no name of a part"):
            await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert {path.rsplit("/", 1)[1] for _, path in server.requests} == {"shop-results"}


async def test_a_run_is_not_looked_up_by_what_an_owner_reference_calls_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "MAX_PART_BYTES", 2000)
    server = ApiServer(collects=False)
    run = run_of(server)
    server.change("BenchmarkRun", "default", "shop", status={"state": "Failed"})
    forged = forged_archive(run, [])
    forged["metadata"]["ownerReferences"][0]["name"] = "theirs"
    server.add(forged)
    _, (part, *_) = archive_config_maps(context_of(run), pack({**FILES, "more": "1"}, []))
    server.add(part)
    async with serving(server) as kube:
        assert await delete_folded(kube, "default", "shop", run.uid, "shop-results")
    assert server.get("ConfigMap", "default", part["metadata"]["name"]) is None
    assert not [path for _, path in server.requests if "theirs" in path]


async def test_what_was_replaced_by_somebody_in_this_moment_is_left_alone() -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    manifest = objects_of(context)["Service"]
    name = manifest["metadata"]["name"]
    children = Children(run.uid)
    async with serving(server) as kube:
        await execute(kube, run, context, [Apply(manifest)], children)
        server.remove("Service", "default", name)
        theirs = deepcopy(server.add(stranger(manifest)))
        with pytest.raises(Exception, match="uid"):
            await execute(kube, run, context, [Apply(manifest)], children)
        await execute(kube, run, context, [Delete("Service", name)], children)
    assert server.get("Service", "default", name) == theirs


async def test_a_secret_is_made_once_and_goes_with_its_config_map() -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    theirs = deepcopy(
        server.add(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "shop-database", "namespace": "default"},
                "data": {"password": "theirs"},
            }
        )
    )
    children = Children(run.uid)
    owner = owning(objects_of(context)["ConfigMap"])
    async with serving(server) as kube:
        await execute(kube, run, context, [Apply(owner)], children)
        (child,) = children.of("ConfigMap")
        uid = child["metadata"]["uid"]
        actions: list[Action] = [CreateDatabaseSecret(uid)]
        context = replace(context, secret_owners={"shop-postgres": uid})
        await execute(kube, run, context, actions, children)
        made = deepcopy(server.get("Secret", "default", secret_name(context)))
        assert made is not None
        await execute(kube, run, context, actions, children)
        assert server.get("Secret", "default", secret_name(context)) == made
        await execute(kube, run, context, [Delete("ConfigMap", "shop-postgres")], children)
    assert server.of("Secret") == [theirs]
    assert not [path for verb, path in server.requests if verb != "create" and "secrets" in path]


async def test_a_secret_that_somebody_made_first_is_left_alone_and_another_one_is_used() -> None:
    server = ApiServer()
    run = run_of(server)
    context, children = context_of(run), Children(run.uid)
    owner = owning(objects_of(context)["ConfigMap"])
    uids = []
    async with serving(server) as kube:
        for first in (True, False):
            await execute(kube, run, context, [Apply(owner)], children)
            (child,) = children.of("ConfigMap")
            uids.append(child["metadata"]["uid"])
            name = secret_name(replace(context, secret_owners={"shop-postgres": uids[-1]}))
            if first:
                metadata = {"name": name, "namespace": "default"}
                stranger_s = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
                theirs = deepcopy(server.add({**stranger_s, "data": {"password": "theirs"}}))
                with pytest.raises(KubeError, match="there is a Secret shop-database-"):
                    await execute(kube, run, context, [CreateDatabaseSecret(uids[-1])], children)
                assert not children.of("ConfigMap")
            else:
                await execute(kube, run, context, [CreateDatabaseSecret(uids[-1])], children)
                assert server.get("Secret", "default", name) is not None
    assert uids[0] != uids[1]
    assert server.get("Secret", "default", theirs["metadata"]["name"]) == theirs
    assert not [path for verb, path in server.requests if verb != "create" and "secrets" in path]


async def test_an_object_of_the_run_before_is_waited_for() -> None:
    server = ApiServer(collects=False)
    before = run_of(server)
    children = Children(before.uid)
    manifest = objects_of(context_of(before))["Service"]
    async with serving(server) as kube:
        await execute(kube, before, context_of(before), [Apply(manifest)], children)
        server.remove("BenchmarkRun", "default", "shop")
        after = run_of(server)
        again = objects_of(context_of(after))["Service"]
        with pytest.raises(NameTaken) as taken:
            await execute(kube, after, context_of(after), [Apply(again)], Children(after.uid))
        assert taken.value.passing
        server.collect(before.uid)
        await execute(kube, after, context_of(after), [Apply(again)], Children(after.uid))
    (made,) = server.of("Service")
    assert made["metadata"]["labels"]["laptime.dev/run-uid"] == after.uid


async def test_the_pods_of_a_run_before_are_selected_by_nothing() -> None:
    server = ApiServer()
    run = run_of(server)
    before = replace(context_of(run), uid="before")
    pod = server_deployment(before, before.spec.servers[0], "t")["spec"]["template"]["metadata"]
    for manifest in objects_of(context_of(run)).values():
        selector = manifest.get("spec", {}).get("selector") or {"nobody": ""}
        selector = selector.get("matchLabels", selector)
        assert not selector.items() <= pod["labels"].items()


def postgres_pod(uid_of_run: str) -> dict[str, Any]:
    """Return a pod of Postgres with the label of a run, beside a container of somebody else."""
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    containers = [{"name": "postgres", "resources": resources}, {"name": "mesh", "resources": {}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shop-postgres-1", "labels": {UID_LABEL: uid_of_run}},
        "spec": {"containers": containers},
    }


async def test_a_pod_is_resized_under_its_uid_and_in_the_one_container() -> None:
    server = ApiServer()
    run = run_of(server)
    pod = server.add(postgres_pod(run.uid))
    children = Children(run.uid)
    children.stores["Pod"].put(pod)
    resize = Resize("shop-postgres-1", "postgres", "2")
    async with serving(server) as kube:
        await execute(kube, run, context_of(run), [resize], children)
    (now,) = server.of("Pod")
    two = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    assert [one["resources"] for one in now["spec"]["containers"]] == [two, {}]
    assert children.of("Pod")[0]["spec"] == now["spec"]


async def test_a_pod_that_took_the_place_of_another_is_not_resized() -> None:
    server = ApiServer()
    run = run_of(server)
    children = Children(run.uid)
    children.stores["Pod"].put(server.add(postgres_pod(run.uid)))
    server.remove("Pod", "default", "shop-postgres-1")
    theirs = deepcopy(server.add(postgres_pod("another run")))
    async with serving(server) as kube:
        resize = Resize("shop-postgres-1", "postgres", "2")
        with pytest.raises(KubeError, match=r"metadata\.uid"):
            await execute(kube, run, context_of(run), [resize], children)
    assert server.of("Pod") == [theirs]


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("Pod", Resize("shop-postgres-1", "postgres", "2")),
        ("Job", Delete("Job", "shop-postgres-1")),
    ],
)
async def test_an_object_of_which_the_watch_has_said_that_it_is_gone_does_not_come_back(
    kind: str, action: Action
) -> None:
    """What has ended is deleted at once, so that the answer and the watch overtake."""
    server = ApiServer()
    run = run_of(server)
    one = server.add({**postgres_pod(run.uid), "kind": kind})
    children = Children(run.uid)
    children.stores[kind].put(one)

    async def fault(request: web.Request) -> web.StreamResponse | None:
        server.remove(kind, "default", "shop-postgres-1")
        children.stores[kind].remove(one["metadata"]["uid"])
        went = {"resourceVersion": "1000", "deletionTimestamp": "2026-01-01T00:00:00Z"}
        return web.json_response({**one, "metadata": {**one["metadata"], **went}})

    server.fault = fault
    async with serving(server) as kube:
        await execute(kube, run, context_of(run), [action], children)
    assert children.of(kind) == []


async def test_a_cluster_that_cannot_resize_pods_is_told_from_a_pod_that_is_gone() -> None:
    server = ApiServer(resizes=False)
    run = run_of(server)
    children = Children(run.uid)
    children.stores["Pod"].put(server.add(postgres_pod(run.uid)))
    async with serving(server) as kube:
        resize = Resize("shop-postgres-1", "postgres", "2")
        with pytest.raises(NotResized, match=r"from Kubernetes 1\.33 on") as refused:
            await execute(kube, run, context_of(run), [resize], children)
        assert (refused.value.refused.pod, refused.value.refused.cpu) == ("shop-postgres-1", "2")
        server.resizes = True
        server.remove("Pod", "default", "shop-postgres-1")
        with pytest.raises(KubeError) as gone:
            await execute(kube, run, context_of(run), [resize], children)
    assert "1.33" not in str(gone.value)
