"""Carrying out the actions of a decision, on objects of the run and on no others.

An object is created by POST, which never touches one that is there, and changed or deleted only
under the uid of an object that is known to be the run's own.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from laptime.api import KIND
from laptime.kube import Kube, KubeError, Manifest
from laptime.manifests.archive import is_part
from laptime.manifests.context import RunContext
from laptime.manifests.objects import COMPONENT_LABEL, Component, otherwise_named
from laptime.manifests.pgbouncer import console_address
from laptime.manifests.result import RESULTS
from laptime.manifests.secret import (
    database_secret,
    postgres_owner,
    services_owner,
    services_secret,
)
from laptime.reconcile.actions import (
    Action,
    Apply,
    Create,
    CreateDatabaseSecret,
    CreateServicesSecret,
    Delete,
    Fold,
    Resize,
)
from laptime.reconcile.children import Child, Children
from laptime.reconcile.fold import archive_objects
from laptime.reconcile.views import ResizeRefused, Run

_PASSWORD_BYTES = 24
# Nothing finds these by their name: they can have another one.
_FREELY_NAMED = RESULTS | {Component.NETWORK}


class NameTaken(Exception):
    """An object cannot be created: somebody else's has its name.

    `passing` says that it will go by itself: it is being deleted, or belongs to a run.
    """

    def __init__(self, kind: str, name: str, passing: bool) -> None:
        super().__init__(
            f"{kind} {name} is there already and is not this run's own, so it is left as it is: "
            "delete or rename it, or give the run another name"
        )
        self.passing = passing


class NotResized(Exception):
    """A pod cannot have so much CPU, and will not when it is asked again."""

    def __init__(self, refused: ResizeRefused) -> None:
        super().__init__(refused.message)
        self.refused = refused


async def execute(
    kube: Kube, run: Run, context: RunContext, actions: Sequence[Action], children: Children
) -> list[Manifest]:
    """Carry out actions in their order; neighbours of one sort (verb and kind) at the same time.

    What the API server answers goes into `children`. Returns the objects that were created.

    Raises:
        NameTaken: an object that others find by its name cannot be created.
        NotResized: a pod cannot have the CPU that it should.
        KubeError: the first action that failed. What came before it is done, of what comes after it
            the deletions; the next reconcile sees it and goes on from there.
    """
    failures: list[BaseException] = []
    created: list[Manifest] = []
    for (verb, _), group in groupby(actions, key=_sort):
        if failures and verb != "Delete":
            continue
        done = await asyncio.gather(
            *(_execute_one(kube, run, context, action, children) for action in group),
            return_exceptions=True,
        )
        failures += [one for one in done if isinstance(one, BaseException)]
        created += [one for one in done if isinstance(one, dict)]
    if failures:
        raise failures[0]
    return created


def _sort(action: Action) -> tuple[str, str]:
    match action:
        case Apply(manifest) | Create(manifest):
            return type(action).__name__, manifest["kind"]
        case Delete(kind, _):
            return "Delete", kind
    return type(action).__name__, ""


async def _execute_one(
    kube: Kube, run: Run, context: RunContext, action: Action, children: Children
) -> Manifest | None:
    match action:
        case Apply(manifest):
            return await _apply(kube, manifest, children)
        case Create(manifest):
            return await _create(kube, manifest, children)
        case CreateDatabaseSecret(uid):
            owner = _owner(children, postgres_owner(context), uid)
            of_it = replace(context, secret_owners={postgres_owner(context): uid} if uid else {})
            console = console_address(context)
            secret = database_secret(
                of_it, _password(), _password(), console, owner.name, owner.uid
            )
            await _create_secret(kube, secret, owner, children)
        case CreateServicesSecret(uid):
            owner = _owner(children, services_owner(context), uid)
            of_it = replace(context, secret_owners={services_owner(context): uid} if uid else {})
            made = {one.name: _password() for one in context.scenario.services if one.password}
            secret = services_secret(of_it, made, owner.name, owner.uid)
            await _create_secret(kube, secret, owner, children)
        case Fold(files):
            await _fold(kube, run, context, files, children)
        case Resize(name, container, cpu):
            pod = children.find("Pod", name)
            if pod is not None:
                resized = await _resize(kube, run.namespace, pod, container, cpu)
                children.stores["Pod"].renew(resized)
        case Delete(kind, name):
            child = children.find(kind, name)
            if child is not None:
                left = await kube.delete(kind, run.namespace, child.name, child.uid)
                if left is None:
                    children.stores[kind].bury(child.uid)
                else:
                    # A pod that has no node, or has ended, is gone when this answer comes.
                    children.stores[kind].renew(left)
    return None


async def _resize(kube: Kube, namespace: str, pod: Child, container: str, cpu: str) -> Manifest:
    try:
        return await kube.resize(namespace, pod.name, pod.uid, container, cpu)
    except KubeError as error:
        # So says an API server of a path that it does not know; of a pod it says its name.
        unknown = error.not_found and "requested resource" in error.message
        # Of a pod that took its place in this moment nothing is refused for good.
        another = "metadata.uid" in error.message
        if another or not (unknown or error.refused):
            raise error.about("Pod", pod.name) from error
        needs = "the CPU of a pod can be changed while it runs from Kubernetes 1.33 on"
        said = f"{needs} ({error.message})" if unknown else error.message
        raise NotResized(ResizeRefused(pod.name, cpu, said, error.out_of_room)) from error


def _owner(children: Children, name: str, uid: str) -> Child:
    owner = children.find("ConfigMap", name)
    if owner is None or uid not in ("", owner.uid):
        raise KubeError(0, "OwnerGone", f"ConfigMap {name} was replaced in this moment")
    return owner


async def _create_secret(kube: Kube, secret: Manifest, owner: Child, children: Children) -> None:
    """Create a Secret; where there is one of its name already, have it called otherwise.

    Nobody may read whose that is. It may be this run's, of an operator that was ended just after.
    With its owner that one goes as well, and the next owner has another uid.
    """
    metadata = secret["metadata"]
    if await kube.create(secret) is not None:
        children.secrets.add(metadata["name"])
    elif metadata["name"] not in children.secrets:
        await kube.delete("ConfigMap", metadata["namespace"], owner.name, owner.uid)
        children.stores["ConfigMap"].bury(owner.uid)
        raise KubeError(0, "NameTaken", f"there is a Secret {metadata['name']} already")


def _password() -> str:
    # token_hex: it stands in URLs and configuration files, where it needs no quoting.
    return secrets.token_hex(_PASSWORD_BYTES)


async def _apply(kube: Kube, manifest: Manifest, children: Children) -> Manifest | None:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    child = children.find(kind, name)
    if child is None:
        return await _create(kube, manifest, children)
    if child.name != name:
        # Somebody else's has the planned name.
        manifest = otherwise_named(manifest)
    # With the uid: an object that took its place in this moment is left as it is.
    metadata = {**manifest["metadata"], "name": child.name, "uid": child.uid}
    meant = {**manifest, "metadata": metadata}
    try:
        children.stores[kind].renew(await kube.apply(meant))
    except KubeError as error:
        raise error.about(kind, name) from error
    return None


async def _fold(
    kube: Kube, run: Run, context: RunContext, files: dict[str, str], children: Children
) -> None:
    head, parts = await archive_objects(kube, run, context, files, children)
    for part in parts:
        name = part["metadata"]["name"]
        # Its name says its content, so that it can be there already.
        if await kube.create(part) is None:
            found = await kube.get("ConfigMap", run.namespace, name)
            if found is None or not is_part(name, found):
                raise NameTaken("ConfigMap", name, passing=found is None)
    # At last: what it does not name is in no archive.
    await _apply(kube, head, children)


async def _create(kube: Kube, manifest: Manifest, children: Children) -> Manifest | None:
    """Create an object and return it; None when it is there already."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    if children.find(kind, name) is not None:
        return None
    candidates = [manifest]
    if kind == "Job" or manifest["metadata"]["labels"][COMPONENT_LABEL] in _FREELY_NAMED:
        candidates.append(otherwise_named(manifest))
    passing = False
    for candidate in candidates:
        metadata = candidate["metadata"]
        try:
            made = await kube.create(candidate)
            found = made or await kube.get(kind, metadata["namespace"], metadata["name"])
        except KubeError as error:
            raise error.about(kind, name) from error
        if found is not None and children.owns(kind, found):
            children.stores[kind].put(found)
            return made
        # None: it was deleted between the two questions.
        passing = found is None or _passing(found)
    raise NameTaken(kind, name, passing)


def _passing(holder: Manifest) -> bool:
    metadata = holder["metadata"]
    owners = metadata.get("ownerReferences") or []
    return "deletionTimestamp" in metadata or any(one.get("kind") == KIND for one in owners)
