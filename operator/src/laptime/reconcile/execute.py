"""Carrying out the actions of a decision."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from itertools import groupby

from laptime.kube import Kube, KubeError
from laptime.manifests.context import RunContext
from laptime.manifests.secret import database_secret
from laptime.reconcile.actions import (
    Action,
    Apply,
    Create,
    CreateDatabaseSecret,
    Delete,
    DeleteRun,
)
from laptime.reconcile.views import Run

_PASSWORD_BYTES = 24


async def execute(kube: Kube, run: Run, context: RunContext, actions: Sequence[Action]) -> None:
    """Carry out actions in their order; neighbours of one sort (verb and kind) at the same time.

    Raises:
        KubeError: the first action that failed. What came before it is done; the next reconcile
            sees it and goes on from there.
    """
    for _, group in groupby(actions, key=_sort):
        await asyncio.gather(*(_execute_one(kube, run, context, action) for action in group))


def _sort(action: Action) -> tuple[str, str]:
    match action:
        case Apply(manifest) | Create(manifest):
            return type(action).__name__, manifest["kind"]
        case Delete(kind, _):
            return "Delete", kind
    return type(action).__name__, ""


async def _execute_one(kube: Kube, run: Run, context: RunContext, action: Action) -> None:
    match action:
        case Apply(manifest) | Create(manifest):
            write = kube.apply if isinstance(action, Apply) else kube.create
            try:
                await write(manifest)
            except KubeError as error:
                raise error.about(manifest["kind"], manifest["metadata"]["name"]) from error
        case CreateDatabaseSecret():
            # token_hex: it stands in URLs and configuration files, where it needs no quoting.
            await kube.create(database_secret(context, secrets.token_hex(_PASSWORD_BYTES)))
        case Delete(kind, name):
            await kube.delete(kind, run.namespace, name)
        case DeleteRun():
            await kube.delete("BenchmarkRun", run.namespace, run.name)
