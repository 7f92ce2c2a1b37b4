"""What controllers and kubelets do with the objects of a run, on the tests' own API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from .api_server import ApiServer, Object
from .generators import generator_log

LABEL = "laptime.dev/"
PATH = json.dumps(
    {
        "ok": True,
        "roundTripSeconds": 0.00025,
        "toServerBytesPerSecond": 1.2e9,
        "fromServerBytesPerSecond": 1.1e9,
    }
)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Nodes:
    """Starts a pod for each Deployment and Job, and lets it do its work at once."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.generators_started: list[str] = []
        self.failing: set[str] = set()
        """Servers whose generators give up."""
        self.bits: dict[str, str] = {}
        """What tags stand for; `sha256:1` where nothing else is said."""
        self.known_as: dict[str, str] = {}
        """By which names the nodes have images that were pulled by another one as well."""
        self.moved: dict[str, str] = {}
        """What tags stand for at their registry by now, for a node that asks it."""
        self.free: list[str] = ["node-1"]
        """The nodes that take pods, the one that the scheduler likes best first."""
        self.heeding = True
        """Whether the scheduler heeds where a pod must go."""
        self.path = PATH
        """What is found of the network between two nodes."""
        self.paths_measured: list[str] = []
        self.still = False
        """Whether nothing goes on."""
        self.admission: Callable[[Object], None] = lambda _: None
        """What webhooks and LimitRanges make of a pod before it is stored."""
        self._count = 0

    def step(self) -> None:
        for deployment in self.server.of("Deployment"):
            self._follow_deployment(deployment)
        for job in self.server.of("Job"):
            self._follow_job(job)

    def _pods_of(self, owner: Object) -> list[Object]:
        uid = owner["metadata"]["uid"]
        return [
            pod
            for pod in self.server.of("Pod")
            if any(one["uid"] == uid for one in pod["metadata"].get("ownerReferences") or [])
        ]

    def _follow_deployment(self, deployment: Object) -> None:
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        wanted = deployment["spec"]["replicas"] > 0
        fitting = []
        for pod in self._pods_of(deployment):
            if wanted and pod["metadata"]["labels"] == labels:
                fitting.append(pod)
            else:
                self.server.remove("Pod", "default", pod["metadata"]["name"])
        if wanted and not fitting:
            self._start(deployment, {"running": {"startedAt": _now()}})

    def _follow_job(self, job: Object) -> None:
        labels = job["spec"]["template"]["metadata"]["labels"]
        pods = self._pods_of(job)
        if labels[LABEL + "component"] == "verifier":
            if not pods:
                said = json.dumps({"ok": True})
                ended = {"exitCode": 0, "message": said, "finishedAt": _now()}
                self._start(job, {"terminated": ended}, "Succeeded")
        elif labels[LABEL + "component"] == "asker":
            if not pods:
                ended = {"exitCode": 0, "finishedAt": _now()}
                self._start(job, {"terminated": ended}, "Succeeded")
        elif labels[LABEL + "component"] == "path-server":
            if not pods:
                self._start(job, {"running": {"startedAt": _now()}})
        elif labels[LABEL + "component"] == "path-generator":
            if not pods:
                self.paths_measured.append(str(job["spec"]["template"]["spec"]["containers"]))
                ended = {"exitCode": 0, "message": self.path, "finishedAt": _now()}
                self._start(job, {"terminated": ended}, "Succeeded")
        elif not pods:
            self.generators_started.append(labels[LABEL + "trial"])
            self._start(job, {"running": {"startedAt": _now()}})
        elif pods[0]["metadata"]["name"] not in self.server.logs:
            name = pods[0]["metadata"]["name"]
            if labels[LABEL + "server"] in self.failing:
                self._give_up(pods[0])
                return
            self.server.logs[name] = generator_log(
                labels[LABEL + "trial"], at=datetime.now(UTC).timestamp()
            )
        elif self.server.breaking_off and pods[0]["status"]["phase"] == "Running":
            self.end(pods[0], "Succeeded", 0)

    def _give_up(self, pod: Object) -> None:
        said = json.dumps({"reason": "InvalidTrial", "message": "no such load"})
        self.server.logs[pod["metadata"]["name"]] = f"LAPTIME-ERROR {said}\n"
        self.end(pod, "Failed", 2)

    def end(self, pod: Object, phase: str, exit_code: int) -> None:
        ended = {"terminated": {"exitCode": exit_code, "finishedAt": _now()}}
        container = {**pod["status"]["containerStatuses"][0], "ready": False, "state": ended}
        status = {**pod["status"], "phase": phase, "containerStatuses": [container]}
        self.server.change("Pod", "default", pod["metadata"]["name"], status=status)

    def _start(self, owner: Object, state: Object, phase: str = "Running") -> None:
        self._count += 1
        template = deepcopy(owner["spec"]["template"])
        main = template["spec"]["containers"][0]
        if main["imagePullPolicy"] == "Always" and main["image"] in self.moved:
            self.bits[main["image"]] = self.moved[main["image"]]
        reference = {"kind": owner["kind"], "name": "owner", "uid": owner["metadata"]["uid"]}
        affinity = template["spec"].get("affinity") or {}
        # Whoever drives would rather be apart from what is driven.
        node = self._schedule(
            affinity, reversed(self.free) if "podAntiAffinity" in affinity else self.free
        )
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **template["metadata"],
                "name": f"{owner['metadata']['name']}-{self._count}",
                "namespace": owner["metadata"]["namespace"],
                "ownerReferences": [reference],
            },
            "spec": {**template["spec"], "nodeName": node},
            "status": {
                "phase": phase,
                "podIP": f"fd00::{self._count:x}",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    {
                        "name": main["name"],
                        "ready": True,
                        "state": state,
                        "imageID": self._image_id(main["image"]),
                    }
                ],
            },
        }
        self.admission(pod)
        self.server.add(pod)

    def _image_id(self, image: str) -> str:
        if "@" in image:
            return image
        return f"{self.known_as.get(image, image)}@{self.bits.get(image, 'sha256:1')}"

    def _schedule(self, affinity: Object, liked: Iterable[str]) -> str:
        """Return a node that a pod must go to, else of those that it likes best the first one."""
        rules = affinity.get("nodeAffinity") or {}
        rule = rules.get("requiredDuringSchedulingIgnoredDuringExecution")
        if not self.heeding:
            return self.free[0]
        if rule is None:
            wishes = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
            return max(liked, key=lambda node: sum(_worth(wish, node) for wish in wishes))
        fields = [term["matchFields"][0] for term in rule["nodeSelectorTerms"]]
        assert {one["key"] for one in fields} == {"metadata.name"}
        wanted = {name for one in fields for name in one["values"]}
        return next(node for node in self.free if node in wanted)


def _worth(wish: Object, node: str) -> int:
    """Return what a wish says of a node: its weight where all that it asks for is so."""
    weight: int = wish["weight"]
    fields = wish["preference"]["matchFields"]
    met = all((node in one["values"]) == (one["operator"] == "In") for one in fields)
    return weight if met else 0


@asynccontextmanager
async def working(server: ApiServer) -> AsyncIterator[Nodes]:
    """Have nodes work on what the server has, every few milliseconds."""
    nodes = Nodes(server)

    async def work() -> None:
        while True:
            if not nodes.still:
                nodes.step()
            await asyncio.sleep(0.02)

    task: asyncio.Task[Any] = asyncio.create_task(work())
    try:
        yield nodes
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
