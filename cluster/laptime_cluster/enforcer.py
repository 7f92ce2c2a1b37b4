"""The daemon that keeps the rules of nftables as the NetworkPolicies of the cluster are."""

import json
import subprocess
import sys
import threading
import time
from typing import Any

from laptime_cluster import api, policies
from laptime_cluster.commands import ClusterError

_PATHS = {
    "pods": "/api/v1/pods",
    "namespaces": "/api/v1/namespaces",
    "policies": "/apis/networking.k8s.io/v1/networkpolicies",
}
_WATCH_SECONDS = 300
_AGAIN_SECONDS = 0.5
# Several objects change at once.
_DEBOUNCE_SECONDS = 0.02


class _Kind:
    """All objects of a kind, kept by a list and a watch in a thread of its own."""

    def __init__(self, path: str, changed: threading.Event) -> None:
        self._path = path
        self._changed = changed
        self._objects: dict[str, dict[str, Any]] = {}
        self.complete = False
        threading.Thread(target=self._run, daemon=True).start()

    def all(self) -> list[dict[str, Any]]:
        """All objects as they are known now."""
        return list(self._objects.values())

    def _run(self) -> None:
        while True:
            try:
                self._follow(self._list())
            except (OSError, ClusterError, ValueError, KeyError) as error:
                print(f"{self._path}: {error!r}; again", file=sys.stderr, flush=True)
                time.sleep(_AGAIN_SECONDS)

    def _list(self) -> str:
        found = api.get(self._path) or {}
        self._objects = {one["metadata"]["uid"]: one for one in found["items"]}
        self.complete = True
        self._changed.set()
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        path = f"{self._path}?watch=true&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}"
        for line in api.lines(path, _WATCH_SECONDS + 10.0):
            event = json.loads(line)
            one = event["object"]
            if event["type"] == "ERROR":
                return
            changed = dict(self._objects)
            if event["type"] == "DELETED":
                changed.pop(one["metadata"]["uid"], None)
            else:
                changed[one["metadata"]["uid"]] = one
            # Replaced and not changed: another thread may be reading it.
            self._objects = changed
            self._changed.set()


def enforce(node: str) -> None:
    """Follow the cluster for ever; a change is a rule of a node's kernel some 50 ms later."""
    changed = threading.Event()
    kinds = {name: _Kind(path, changed) for name, path in _PATHS.items()}
    written = ""
    while True:
        changed.wait()
        time.sleep(_DEBOUNCE_SECONDS)
        changed.clear()
        if not all(kind.complete for kind in kinds.values()):
            continue
        wanted = policies.ruleset(*(kinds[name].all() for name in _PATHS), node=node)
        if wanted != written:
            # All at once: no packet sees half of the rules.
            done = subprocess.run(
                ["nft", "-f", "-"], input=wanted, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                print(f"nft: {done.stderr}\n{wanted}", file=sys.stderr, flush=True)
            written = wanted
