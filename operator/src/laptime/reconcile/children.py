"""The objects of one run, known by the run's uid and never by a name alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from laptime.kube import Kube, Manifest
from laptime.manifests.objects import UID_LABEL, known_as
from laptime.reconcile.cache import Room, Store, Watch
from laptime.reconcile.held import MOST_BYTES, OF_KIND, ONLY_THERE, held

# What a watch that froze silently can hide is known after this.
_POD_SECONDS = 30.0
_OTHER_SECONDS = 60.0
_KINDS = ("Pod", "Job", "Deployment", "Service", "ConfigMap")


def kinds_of_run(*, policies: bool) -> tuple[str, ...]:
    """Return the kinds of objects that a run has; without policies nobody asks for them."""
    return (*_KINDS, "NetworkPolicy") if policies else _KINDS


@dataclass(frozen=True)
class Child:
    """What identifies an object of a run in the API server."""

    name: str
    uid: str


class Children:
    """All objects of a run that the operator can see; nothing else is ever changed or deleted."""

    def __init__(
        self,
        run_uid: str,
        changed: Callable[[], None] = lambda: None,
        kinds: Iterable[str] = _KINDS,
    ) -> None:
        """Hold nothing yet; `changed` is called for each change."""
        self.run_uid = run_uid
        self.selector = f"{UID_LABEL}={run_uid}"
        """The label selector of all of them."""
        self.secrets: set[str] = set()
        """The names of Secrets that this operator has created: it could not see them."""
        room = Room(f"run {run_uid}", MOST_BYTES)
        self.stores = {
            kind: Store(partial(self._keep, kind), lambda *_: changed(), room) for kind in kinds
        }

    def of(self, kind: str) -> list[Manifest]:
        """Return the objects of a kind, with what is looked at of them."""
        return list(self.stores.get(kind, ()))

    def _keep(self, kind: str, manifest: Manifest) -> Manifest | None:
        return held(manifest, OF_KIND.get(kind, ONLY_THERE)) if self.owns(kind, manifest) else None

    def owns(self, kind: str, manifest: Manifest) -> bool:
        """Whether an object is the run's own: by its label, and by its owner where it has one.

        Pods belong to Jobs and ReplicaSets, which are the run's in turn.
        """
        metadata = manifest["metadata"]
        labelled = (metadata.get("labels") or {}).get(UID_LABEL) == self.run_uid
        return labelled and (kind == "Pod" or self.run_uid in owners(metadata))

    def find(self, kind: str, name: str) -> Child | None:
        """Return the object that the run knows by this name, whatever it had to be called."""
        for one in self.of(kind):
            if known_as(one["metadata"]) == name:
                return Child(one["metadata"]["name"], one["metadata"]["uid"])
        return None


class Watches:
    """Watches of everything that a run has, for as long as it is measured."""

    def __init__(self, kube: Kube, namespace: str, children: Children) -> None:
        """Begin to watch."""
        self._watches = {
            kind: Watch(
                kube,
                children.stores[kind],
                kind,
                namespace,
                children.selector,
                seconds=_POD_SECONDS if kind == "Pod" else _OTHER_SECONDS,
                metadata_only=kind not in OF_KIND,
            )
            for kind in children.stores
        }
        self._tasks = [asyncio.create_task(watch.run()) for watch in self._watches.values()]

    async def first(self) -> None:
        """Wait until everything is known that there was when the watches began.

        Raises:
            KubeError: it cannot be known, or rights were taken away since.
        """
        await asyncio.gather(*(watch.first() for watch in self._watches.values()))
        for watch in self._watches.values():
            if watch.error is not None and watch.error.forbidden:
                raise watch.error

    async def refresh(self, *kinds: str) -> None:
        """List these kinds anew, or all: before something is believed that cannot be taken back.

        Raises:
            KubeError: it failed.
        """
        asked = kinds or self._watches
        await asyncio.gather(*(self._watches[kind].refresh() for kind in asked))

    def close(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()


def owners(metadata: Mapping[str, Any]) -> set[Any]:
    """Return the uids of what an object belongs to."""
    return {owner.get("uid") for owner in metadata.get("ownerReferences") or []}
