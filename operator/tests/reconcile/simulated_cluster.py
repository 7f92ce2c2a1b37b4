"""What Kubernetes does with the objects of one run, in short: the rules that decisions rely on.

`Create` never overwrites, a Deployment has one pod of its newest template, a Job starts its pod
once, deleting takes time. Everything else is chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from laptime.api.answers import CheckedAnswer
from laptime.api.resources import quantity
from laptime.manifests.objects import PODS_ANNOTATION
from laptime.measure.profile_output import ProfileProblem, profile_output
from laptime.reconcile.views import LABEL, ContainerView, PodView, WorkloadView, deployment_view

from .generators import generator_log

START = datetime(2026, 1, 1, tzinfo=UTC)


class SimulatedCluster:
    """The objects of one run, and what becomes of them as time passes."""

    def __init__(
        self,
        random: Random,
        faults: float,
        trials: frozenset[str],
        profiles: frozenset[str],
        parallelism: int,
        rates: Callable[[str], float] | None,
    ) -> None:
        self.random = random
        self.faults = faults
        self.now = START
        self._trial_names = trials
        self._profiles = profiles
        self._parallelism = parallelism
        self.profile: str | ProfileProblem = "main;list 7\nmain;read 3\n"
        """What every server that is asked for a profile answers."""
        self.rates = rates or (lambda _: 1000.0)
        self.verdicts: dict[str, dict[str, Any]] = {}
        """What is said of a server's answers, by its name; else they are right."""
        self.node_has = ContainerView("asked", exit_code=0, image_id="sha256:1")
        """What becomes of a container with the image that a node has for a tag."""
        self.registry_has = self.node_has
        """What becomes of one whose kubelet is to ask the registry."""
        self.script: dict[str, Any] | None = None
        """What a script of one's own says in every trial."""
        self.schema: str | None = None
        """What generators find defined in the database."""
        self.deployments: dict[str, WorkloadView] = {}
        self.jobs: dict[str, WorkloadView] = {}
        self.services: dict[str, str | None] = {}
        self.policies: dict[str, str | None] = {}
        self.config_maps: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, PodView] = {}
        self.logs: dict[tuple[str, int], str] = {}
        self._began: dict[str, datetime] = {}
        self._with_pod: set[str] = set()
        self._components: dict[str, str] = {}
        self.reset_verdicts: list[dict[str, Any]] = []
        """What the next requests that reset a service come to; afterwards all is well."""
        self._count = 0
        self.secret = False
        self.jobs_started: list[str] = []
        self.results_written: list[str] = []
        self.readings_written: list[str] = []
        self.profiles_written: list[str] = []
        self.dead: set[str] = set()
        """What of the cluster stands still: Deployment, Job, pods, deletion, kubelet."""
        self.stubborn: set[str] = set()
        """Pods that go on although they should end."""
        self.doubled: set[str] = set()
        """Components of which the cluster keeps two pods, whatever the Deployment asked for."""
        self.drained = False
        """Whether the node takes no pods any more: they go to another one, or nowhere."""
        self.silent: set[str] = set()
        """Nodes that nobody hears of: what is there goes on, and is shown as it was."""
        self._bound: set[str] = set()
        self.cores = 64.0
        """What the node has: a pod that is to have more of it keeps what it has."""
        self.stubborn_cores: float | None = None
        """What somebody else makes of each change of a pod's cores."""
        self.rounds_in_force = False
        """Whether kubelets round cores up to hundredths, as systemd does."""
        self.rounds_cores = False
        """Whether the API server rounds cores up to thousandths, as the real one does."""
        self.tells_cores = True
        """Whether kubelets say how many cores a container has."""
        self.resizes: list[tuple[str, float]] = []
        """Which pods were to have how many cores."""
        self.no_room: set[str] = set()
        """Of which Jobs, also those of later attempts, the pods fit nowhere."""
        self._deployed_cores: dict[str, float | None] = {}

    # What is asked of it --------------------------------------------------------------------

    def store(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        match manifest["kind"]:
            case "Deployment":
                self._bind(manifest)
                stamped = json.loads(json.dumps(manifest))
                stamped["metadata"]["creationTimestamp"] = self.now.isoformat()
                main = manifest["spec"]["template"]["spec"]["containers"][0]
                cpu = main["resources"].get("limits", {}).get("cpu")
                self._deployed_cores[name] = quantity(cpu) if cpu is not None else None
                self.deployments[name] = deployment_view(stamped)
            case "Service":
                self.services[name] = manifest["metadata"]["annotations"][LABEL + "manifest-hash"]
            case "ConfigMap":
                self.config_maps[name] = manifest
            case kind:
                raise AssertionError(f"nobody applies a {kind}")

    def create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Job":
            if name not in self.jobs:
                self._bind(manifest)
                metadata = manifest["metadata"]
                self.jobs[name] = WorkloadView(
                    name,
                    self.now,
                    f"job-{len(self.jobs_started)}",
                    trial=metadata["labels"].get(LABEL + "trial"),
                    pods=frozenset(metadata["annotations"].get(PODS_ANNOTATION, "").split(",")),
                )
                self._components[name] = metadata["labels"][LABEL + "component"]
                self.jobs_started.append(name)
        elif manifest["kind"] == "NetworkPolicy":
            self.policies.setdefault(name, None)
        elif name not in self.config_maps:
            self.config_maps[name] = manifest
            if manifest["metadata"]["labels"][LABEL + "component"] == "readings":
                self.readings_written.append(name)
            elif name in self._trial_names:
                self.results_written.append(name)
            elif name in self._profiles:
                self.profiles_written.append(name)

    def remove(self, kind: str, name: str) -> None:
        match kind:
            case "Deployment":
                self.deployments.pop(name, None)
            case "Job":
                self.jobs.pop(name, None)
                self._with_pod.discard(name)
            case "Service":
                self.services.pop(name, None)
            case "NetworkPolicy":
                # It goes after the last pod.
                assert all(pod.stuck(self.now) for pod in self.pods.values())
                self.policies.pop(name, None)
            case "ConfigMap":
                self.config_maps.pop(name, None)
                if name == "demo-postgres":
                    # The garbage collector: it belongs to it.
                    self.secret = False
            case _:
                raise AssertionError(f"nobody deletes a {kind}")

    def resize(self, name: str, cpu: str) -> None:
        """Have a pod get so much CPU: the kubelet does it a little later."""
        pod = self.pods.get(name)
        if pod is not None:
            self.resizes.append((name, quantity(cpu)))
            cores, generation = quantity(cpu), pod.generation + 1
            if self.stubborn_cores is not None:
                cores = self.stubborn_cores
            if self.rounds_cores:
                cores = math.ceil(1000 * cores) / 1000
            self.pods[name] = replace(pod, cpu=cores, cpu_request=cores, generation=generation)

    # What happens by itself ------------------------------------------------------------------

    def advance(self) -> None:
        """Let some time pass, in which controllers and pods do some of their work."""
        self.now += timedelta(seconds=self.random.uniform(0.1, 3.0))
        if not self.dead & {"deletion", "kubelet"}:
            self._end_deleted_pods()
        for name, deployment in self.deployments.items():
            if "Deployment" not in self.dead:
                self._follow_deployment(name, deployment)
        for name, job in list(self.jobs.items()):
            if "Job" not in self.dead:
                self._follow_job(name, job)
        for pod in list(self.pods.values()):
            if (
                not self.dead & {"pods", "kubelet"}
                and pod.node not in self.silent
                and pod.phase != "Failed"
                and not pod.deleting
                and self.random.random() < 0.7
            ):
                self._run_pod(pod)

    def _fault(self) -> bool:
        return self.random.random() < self.faults

    def _end_deleted_pods(self) -> None:
        for name, pod in list(self.pods.items()):
            if (name in self.stubborn or pod.node in self.silent) and pod.deleting:
                continue
            if pod.deleting and self.random.random() < 0.6:
                del self.pods[name]
            elif pod.deleting:
                # Its containers end soon; that it is gone for good takes a while longer.
                ended = tuple(replace(c, running=False, exit_code=0) for c in pod.containers)
                self.pods[name] = replace(pod, ready=False, containers=ended)
            elif not pod.deleting and pod.owner not in (*self.deployments, *self.jobs):
                self.pods[name] = replace(pod, deleting_since=self.now)

    def _follow_deployment(self, name: str, deployment: WorkloadView) -> None:
        component = "server" if "-server-" in name else name.removeprefix("demo-")
        mine = [pod for pod in self.pods.values() if pod.owner == name]
        for pod in mine:
            outdated = pod.trial != deployment.trial or deployment.replicas == 0
            if outdated and not pod.deleting:
                self.pods[pod.name] = replace(pod, deleting_since=self.now)
        # A new pod of a trial comes when the old one is being deleted, a tier's when it is gone.
        in_the_way = [pod for pod in mine if deployment.trial is None or not pod.deleting]
        wanted = 2 if component in self.doubled else 1
        for _ in range(len(in_the_way), wanted if deployment.replicas else 0):
            server = name.removeprefix("demo-server-") if component == "server" else None
            self._add_pod(component, name, server, deployment.trial)

    def _follow_job(self, name: str, job: WorkloadView) -> None:
        mine = job.own(self.pods.values())
        component = self._components[name]
        count = self._parallelism if component == "generator" else 1
        if name not in self._with_pod:
            self._with_pod.add(name)
            server = name.split("-", 2)[2] if component in ("verifier", "asker") else None
            for index in range(count):
                self._add_pod(component, name, server, job.trial, index)
            self.jobs[name] = replace(job, made=count)
        elif component.startswith("reset-") and any(pod.phase == "Succeeded" for pod in mine):
            self.jobs[name] = replace(job, complete=True)
        elif any(pod.phase == "Failed" for pod in mine) and component.startswith("reset-"):
            self.jobs[name] = replace(
                job, failed_reason="BackoffLimitExceeded", failed_message="its pod failed"
            )
        elif len(mine) < count:
            self.jobs[name] = replace(
                job, failed_reason="BackoffLimitExceeded", failed_message="its pod was deleted"
            )

    def _bind(self, manifest: dict[str, Any]) -> None:
        affinity = manifest["spec"]["template"]["spec"].get("affinity", {})
        rule = "requiredDuringSchedulingIgnoredDuringExecution"
        if rule in affinity.get("nodeAffinity", {}):
            self._bound.add(manifest["metadata"]["name"])
        else:
            self._bound.discard(manifest["metadata"]["name"])

    def _add_pod(
        self,
        component: str,
        owner: str,
        server: str | None,
        trial: str | None,
        index: int = 0,
    ) -> None:
        self._count += 1
        name = f"{owner}-{self._count}"
        job = self.jobs.get(owner)
        nowhere = self.drained and owner in self._bound
        nowhere |= bool(self.no_room) and owner.startswith(tuple(self.no_room))
        self.pods[name] = PodView(
            name,
            component,
            self.now,
            server=server,
            trial=trial,
            owner=owner,
            owner_uid=job.uid if job else None,
            index=index,
            node=None if nowhere else "other" if self.drained else "node",
            acknowledged=None if nowhere else self.now,
            unschedulable_message="0/2 nodes are available" if nowhere else None,
            cpu=self._deployed_cores.get(owner),
            cpu_request=self._deployed_cores.get(owner),
        )

    def _run_pod(self, pod: PodView) -> None:
        if pod.node is None:
            return
        if pod.component == "verifier":
            verdict = json.dumps(self.verdicts.get(pod.server or "", {"ok": True}))
            answer = CheckedAnswer(
                check="one", request="GET /", expected="200", answered="200", right=True
            )
            self.logs[pod.name, 0] = f"{answer.to_line()}\n{verdict}\n"
            ended = ContainerView("verify", exit_code=0, exit_message=verdict)
            self.pods[pod.name] = replace(pod, phase="Succeeded", containers=(ended,))
        elif pod.component == "asker":
            of_registry = (pod.owner or "").startswith("demo-asks-")
            found = self.registry_has if of_registry else self.node_has
            phase = "Pending" if found.exit_code is None else "Succeeded"
            self.pods[pod.name] = replace(pod, phase=phase, containers=(found,))
        elif pod.component.startswith("reset-"):
            self._run_reset(pod)
        elif pod.component == "generator":
            self._run_generator(pod)
        elif pod.component == "profiler":
            self._run_profiler(pod)
        elif self._fault():
            self._break(pod)
        else:
            running = ContainerView(
                "main", ready=True, running=True, running_since=pod.last_started or self.now
            )
            self.pods[pod.name] = replace(
                pod,
                phase="Running",
                ready=True,
                last_started=pod.last_started or self.now,
                containers=(running,),
                **self._size(pod),
            )

    def _size(self, pod: PodView) -> dict[str, Any]:
        if not self.tells_cores:
            return {}
        if pod.cpu is not None and pod.cpu > self.cores:
            said = f"Node didn't have enough capacity: cpu, requested: {pod.cpu:g}"
            return {
                "resize_pending": ("Infeasible", said),
                "observed_generation": pod.generation,
            }
        others = (one for one in self.pods.values() if one.name != pod.name and one.live)
        taken = sum(one.cpu_in_force or 0.0 for one in others)
        if pod.cpu is not None and pod.cpu + taken > self.cores:
            said = "Node didn't have enough resource: cpu"
            return {"resize_pending": ("Deferred", said), "observed_generation": pod.generation}
        in_force = pod.cpu
        if in_force is not None and self.rounds_in_force:
            in_force = math.ceil(round(100 * in_force, 6)) / 100
        return {
            "cpu_in_force": in_force,
            "resize_pending": None,
            "observed_generation": pod.generation,
        }

    def _run_reset(self, pod: PodView) -> None:
        if pod.phase != "Pending":
            return
        if self._fault():
            self.pods[pod.name] = replace(pod, deleting_since=self.now)
            return
        said = self.reset_verdicts.pop(0) if self.reset_verdicts else {"ok": True}
        code = said.pop("exit", 0)
        ended = ContainerView(
            "reset", exit_code=code, exit_message=json.dumps(said, ensure_ascii=False)
        )
        phase = "Failed" if code else "Succeeded"
        self.pods[pod.name] = replace(pod, phase=phase, containers=(ended,))

    def _run_generator(self, pod: PodView) -> None:
        assert pod.trial is not None
        if self._fault():
            if self.random.random() < 0.5:
                self.pods[pod.name] = replace(pod, deleting_since=self.now)
            else:
                self.logs[pod.trial, pod.index] = "killed\n"
                ended = ContainerView("k6", exit_code=137, exit_reason="OOMKilled")
                self.pods[pod.name] = replace(pod, phase="Failed", containers=(ended,))
        elif pod.phase == "Pending":
            running = ContainerView("k6", ready=True, running=True, running_since=self.now)
            self.pods[pod.name] = replace(pod, phase="Running", ready=True, containers=(running,))
        elif pod.phase == "Running":
            count = self._parallelism
            segment = (pod.index, count) if count > 1 else None
            self.logs[pod.trial, pod.index] = generator_log(
                pod.trial,
                self.rates(pod.trial),
                segment=segment,
                script=self.script,
                schema=self.schema,
                at=self._began.setdefault(pod.trial, self.now).timestamp(),
            )
            ended = ContainerView("k6", exit_code=0)
            self.pods[pod.name] = replace(pod, phase="Succeeded", containers=(ended,))

    def _run_profiler(self, pod: PodView) -> None:
        assert pod.trial is not None
        if self._fault():
            self.pods[pod.name] = replace(pod, deleting_since=self.now)
        elif pod.phase == "Pending":
            running = ContainerView("profile", ready=True, running=True)
            self.pods[pod.name] = replace(pod, phase="Running", ready=True, containers=(running,))
        else:
            # The generator beside it goes on.
            self.logs[pod.trial, 0] = profile_output(self.profile) + "\n"
            ended = ContainerView("profile", exit_code=0)
            self.pods[pod.name] = replace(pod, containers=(ended,))

    def _break(self, pod: PodView) -> None:
        kind = self.random.choice(["crash", "oom", "deleted"])
        if kind == "deleted":
            self.pods[pod.name] = replace(pod, deleting_since=self.now)
            return
        restarts = pod.restarts + 1
        broken = ContainerView(
            "main",
            restarts=restarts,
            exit_code=137 if kind == "oom" else 1,
            exit_reason="OOMKilled" if kind == "oom" else "Error",
        )
        self.pods[pod.name] = replace(pod, ready=False, last_started=self.now, containers=(broken,))
