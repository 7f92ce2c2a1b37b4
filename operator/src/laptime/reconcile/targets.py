"""The Services that a run drives and does not deploy: looked at, and never changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from laptime.kube import Kube, Manifest
from laptime.reconcile.cache import Room, Store, Watch
from laptime.reconcile.held import MOST_BYTES, OF_KIND, TARGET, held
from laptime.reconcile.service_view import selector_of, service_view
from laptime.reconcile.views import Run, TargetView

# What a watch that froze silently can hide is known after this.
_SECONDS = 30.0


class TargetDesk:
    """Watches them and the pods that their selectors match, for as long as a run is measured.

    A run without any costs nothing. The Services of a namespace are watched together: a watch of
    one of them would need a second sort of selector, and there are few.
    """

    def __init__(self, kube: Kube, namespace: str, wake: Callable[[], None]) -> None:
        """Watch nothing yet; `wake` is called for each change."""
        self._kube = kube
        self._namespace = namespace
        self._wake = wake
        self._room = Room(f"what runs of {namespace} drive", MOST_BYTES)
        self._services: _Watched | None = None
        self._pods: dict[str, _Watched] = {}

    async def look(self, run: Run) -> dict[str, TargetView]:
        """Return the Services of a run's servers, by the names of the servers.

        Raises:
            KubeError: the API server cannot be asked, or rights are missing.
        """
        wanted = {one.name: one.service for one in run.spec.servers if one.service is not None}
        if not wanted:
            return {}
        if self._services is None:
            names = {one.name for one in wanted.values()}
            self._services = self._watch("Service", "", partial(_service, names))
        known = {one["metadata"]["name"]: one for one in await self._services.all()}
        selectors = {name: selector_of(known.get(service.name)) for name, service in wanted.items()}
        for gone in set(self._pods) - set(selectors.values()):
            self._pods.pop(gone).close()
        views = {}
        for name, service in wanted.items():
            pods: list[Manifest] = []
            if (selector := selectors[name]) is not None:
                if selector not in self._pods:
                    self._pods[selector] = self._watch("Pod", selector, _pod)
                pods = await self._pods[selector].all()
            views[name] = service_view(service, self._namespace, known.get(service.name), pods)
        return views

    async def refresh(self) -> None:
        """List all anew: before something is believed that cannot be taken back.

        Raises:
            KubeError: it failed.
        """
        watched = [*self._pods.values(), *([self._services] if self._services else [])]
        await asyncio.gather(*(one.watch.refresh() for one in watched))

    def close(self) -> None:
        """End all watches."""
        for one in [*self._pods.values(), *([self._services] if self._services else [])]:
            one.close()

    def _watch(
        self, kind: str, selector: str, keep: Callable[[Manifest], Manifest | None]
    ) -> _Watched:
        store = Store(keep, lambda *_: self._wake(), self._room)
        return _Watched(self._kube, store, kind, self._namespace, selector)


def _service(names: set[str], manifest: Manifest) -> Manifest | None:
    return held(manifest, TARGET) if manifest["metadata"]["name"] in names else None


def _pod(manifest: Manifest) -> Manifest:
    return held(manifest, OF_KIND["Pod"])


class _Watched:
    """The objects of a kind that match a selector."""

    def __init__(
        self, kube: Kube, store: Store[Manifest], kind: str, namespace: str, selector: str
    ) -> None:
        self._store = store
        self.watch = Watch(kube, store, kind, namespace, selector, seconds=_SECONDS)
        self._task = asyncio.create_task(self.watch.run())

    async def all(self) -> list[Manifest]:
        """Return what there is.

        Raises:
            KubeError: it cannot be known, or rights were taken away since.
        """
        await self.watch.first()
        if self.watch.error is not None and self.watch.error.forbidden:
            raise self.watch.error
        return list(self._store)

    def close(self) -> None:
        self._task.cancel()
