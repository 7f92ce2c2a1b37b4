"""Whether the Secrets are there with which pods pull that cannot.

The operator can read no Secret, and a kubelet says only in an event that there is none. A dry run
of creating one of that name tells, with no right more, and stores nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from laptime.kube import Kube
from laptime.reconcile.views import PodView

_AGAIN_SECONDS = 5.0
"""A kubelet tries less often than that."""


class PullSecrets:
    """What is known of the Secrets of one run: none is asked for while all pods get on."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[str, tuple[float, bool]] = {}

    async def look(self, kube: Kube, namespace: str, pods: Iterable[PodView]) -> list[PodView]:
        """Return pods with the names of Secrets that they lack, where they cannot pull."""
        return [
            replace(pod, missing_secrets=await self._missing(kube, namespace, pod.pull_secrets))
            if pod.cannot_pull
            else pod
            for pod in pods
        ]

    async def _missing(self, kube: Kube, namespace: str, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            asked, _ = self._known.get(name, (-_AGAIN_SECONDS, False))
            if time.monotonic() - asked >= _AGAIN_SECONDS:
                secret = {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": namespace},
                }
                missing = await kube.could_create(secret)
                self._known[name] = (time.monotonic(), missing)
        return tuple(name for name in names if self._known[name][1])
