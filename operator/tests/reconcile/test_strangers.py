"""Nothing that is not the run's own is ever changed or deleted, whatever its name is."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from laptime.catalog import scenarios
from laptime.kube import KubeError
from laptime.manifests.archive import archive_config_maps
from laptime.manifests.context import Component, RunContext
from laptime.manifests.pods import config_map
from laptime.manifests.secret import owning, secret_name
from laptime.manifests.server import server_deployment, server_service
from laptime.manifests.verifier import verify_job
from laptime.reconcile.actions import Action, Apply, Create, CreateDatabaseSecret, Delete
from laptime.reconcile.children import Children
from laptime.reconcile.execute import NameTaken, execute
from laptime.reconcile.views import Run, run_view

from .api_server import ApiServer, serving
from .test_decide import spec_of
from .world import IMAGES

THEIRS = {"Service", "Deployment", "ConfigMap", "Job"}


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


@pytest.mark.parametrize("kind", ["Job", "ConfigMap"])
async def test_what_nothing_finds_by_its_name_gets_another_one(kind: str) -> None:
    server = ApiServer()
    run = run_of(server)
    context = context_of(run)
    manifest = (
        objects_of(context)["Job"] if kind == "Job" else archive_config_maps(context, b"a")[0]
    )
    name = manifest["metadata"]["name"]
    theirs = deepcopy(server.add(stranger(manifest)))
    children = Children(run.uid)
    async with serving(server) as kube:
        await execute(kube, run, context, [Create(manifest)], children)
        ours = children.find(kind, name)
        assert ours is not None
        assert ours.name != name
        # The same again, by an operator that has forgotten everything: nothing is doubled.
        await execute(kube, run, context, [Create(manifest)], Children(run.uid))
        assert len(server.of(kind)) == 2
        await execute(kube, run, context, [Delete(kind, name)], children)
    assert server.of(kind) == [theirs]


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
