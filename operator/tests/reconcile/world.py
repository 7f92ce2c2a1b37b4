"""A small world that does what Kubernetes would: it carries out actions and shows what follows.

It keeps the rules that decisions rely on: `Create` never overwrites, a Deployment has one pod of
its newest template, a Job starts its pod once, deleting takes time. Everything else is chance.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hdrh.histogram import HdrHistogram

from laptime.analysis.stopping import trials_so_far
from laptime.analysis.summary import Summary, summarise
from laptime.api.results import TrialOutcome, TrialReadings, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus, ServerState
from laptime.catalog import scenarios
from laptime.manifests.archive import archive_config_maps, joined
from laptime.manifests.context import TIERS_ANNOTATION, ImageSet, Network, RunContext
from laptime.manifests.result import profile_problem, read_result, readings_name
from laptime.measure.profile_output import ProfileProblem, profile_output
from laptime.measure.readings import no_readings
from laptime.plan import Trial, plan_profiles, plan_trials, seed_of
from laptime.reconcile.actions import (
    Action,
    Apply,
    Create,
    CreateDatabaseSecret,
    Decision,
    Delete,
    Fold,
)
from laptime.reconcile.decide import decide
from laptime.reconcile.fold import single_results
from laptime.reconcile.views import (
    LABEL,
    ContainerView,
    Hearing,
    Observed,
    PodView,
    Refusal,
    Run,
    WorkloadView,
    deployment_view,
)
from laptime.report.archive import Packer, unpack

START = datetime(2026, 1, 1, tzinfo=UTC)
IMAGES = ImageSet(
    postgres="postgres",
    pgbouncer="pgbouncer",
    haproxy="haproxy",
    generator="k6",
    operator="operator",
    upstream="upstream",
    servers={"axum-sqlx": "axum", "fastapi-sync": "sync", "fastapi-async": "async"},
)


def generator_log(
    trial: str,
    requests_per_second: float = 1000.0,
    requests: int = 2000,
    segment: tuple[int, int] | None = None,
    script: dict[str, Any] | None = None,
    at: float = 1_767_225_600.0,
) -> str:
    """Return the log of a generator that measured so many right answers of about 5 ms.

    `segment` is its index among so many, `script` what a script of one's own says, `at` when it
    began.
    """
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    histogram.record_value(5000, requests)
    encoded = histogram.encode().decode()
    seconds = requests / requests_per_second
    phase = {
        "firstRequestAt": at,
        "lastResponseAt": at + seconds,
        "requests": requests,
        "responses": requests,
        "windowSeconds": seconds,
        "completedInWindow": requests,
        "errors": {},
        "bytesReceived": 1,
        "endpoints": {
            "list": {
                "requests": requests,
                "errors": 0,
                "latency": encoded,
                "serverTime": encoded,
                "connect": encoded,
            }
        },
    }
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "trial": trial,
        "phases": {"measured": phase},
        "generator": {"cpuSeconds": 0.1, "wallSeconds": seconds, "maxProcs": 2},
    }
    if segment is not None:
        document["segment"] = {"index": segment[0], "count": segment[1]}
    if script is not None:
        document["script"] = script
    packed = base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
    return f"LAPTIME-READY\nLAPTIME-RESULT {packed}\n"


def manifest_of(run: Run) -> dict[str, Any]:
    """Return a run as the API server has it."""
    return {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
            "generation": run.generation,
            "creationTimestamp": run.created.isoformat(),
        },
        "spec": run.spec.to_wire(),
        "status": run.status.to_wire(),
    }


class World:
    """One run in a cluster."""

    def __init__(
        self,
        spec: BenchmarkRunSpec,
        random: Random,
        faults: float = 0.0,
        watched: bool = True,
        network: Network | None = None,
        rates: Callable[[str], float] | None = None,
    ) -> None:
        spec = spec.with_control()
        self.random = random
        self.faults = faults
        self.kills = 0.0
        """How often the operator alone is killed, with nothing else going wrong."""
        self.watched = watched
        self.now = START
        self.run = Run(
            name="demo",
            namespace="default",
            uid="6f1c",
            generation=1,
            created=START,
            spec=spec,
            status=RunStatus(),
        )
        self.context = RunContext(
            name="demo",
            namespace="default",
            uid="6f1c",
            spec=spec,
            scenario=scenarios()[spec.scenario],
            images=IMAGES,
            network=network,
        )
        self.seed = seed_of(spec, "6f1c")
        self._possible = plan_trials("demo", spec, self.seed, spec.most_repetitions)
        self._profiles = {one.name for one in plan_profiles("demo", spec)}
        self.profile: str | ProfileProblem = "main;list 7\nmain;read 3\n"
        """What every server that is asked for a profile answers."""
        self.rates = rates or (lambda _: 1000.0)
        self.script: dict[str, Any] | None = None
        """What a script of one's own says in every trial."""
        self.deployments: dict[str, WorkloadView] = {}
        self.jobs: dict[str, WorkloadView] = {}
        self.services: dict[str, str | None] = {}
        self.policies: dict[str, str | None] = {}
        self.config_maps: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, PodView] = {}
        self.logs: dict[tuple[str, int], str] = {}
        self._began: dict[str, datetime] = {}
        self.secret = False
        self.jobs_started: list[str] = []
        self.results_written: list[str] = []
        self.readings_written: list[str] = []
        self.profiles_written: list[str] = []
        self.files: dict[str, str] = {}
        """What was stored about the whole run."""
        self.passes = 0
        self.refuses: set[str] = set()
        """Kinds of which the API server stores no object."""
        self.dead: set[str] = set()
        """What of the cluster stands still: Deployment, Job, pods, deletion, kubelet."""
        self.stubborn: set[str] = set()
        """Pods that go on although they should end."""
        self.strangers: set[tuple[str, str]] = set()
        """Kinds and names of somebody else's objects."""
        self.refusal: Refusal | None = None
        self._count = 0
        self._summarised: tuple[object, Summary] | None = None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that the run needs as far as its results tell."""
        stored = [
            read_result(self.config_maps[trial.name])[0]
            for trial in self._possible
            if trial.name in self.config_maps
        ]
        return trials_so_far("demo", self.run.spec, self.seed, stored, self._out())

    def _out(self) -> frozenset[str]:
        servers = self.run.status.servers or []
        return frozenset(one.name for one in servers if one.state is ServerState.FAILED)

    # What the operator does -----------------------------------------------------------------

    def step(self) -> Decision:
        """Have one reconcile, which may be killed between any two of its steps."""
        self.passes += 1
        decision = decide(self.run, self.observe(), self.context, self.now)
        if self._killed():
            return decision
        self.run = replace(self.run, status=self._stored(decision.status))
        refusal: Refusal | None = None
        for action in decision.actions:
            if self._killed():
                return decision
            # Once something is refused, only deletions go on.
            if refusal is None and isinstance(action, Apply | Create | Fold):
                refusal = self._refused(action)
            if refusal is None or isinstance(action, Delete):
                self._execute(action)
        self.refusal = refusal
        return decision

    def _refused(self, action: Apply | Create | Fold) -> Refusal | None:
        kind, name = "ConfigMap", "demo-results"
        if not isinstance(action, Fold):
            kind, name = action.manifest["kind"], action.manifest["metadata"]["name"]
        if kind in self.refuses:
            since = self.refusal.since if self.refusal else self.now
            return Refusal(f"{kind}: not here", since)
        if (kind, name) in self.strangers:
            return Refusal(f"{kind} {name}", self.now, "NameTaken", 0.0)
        return None

    def observe(self) -> Observed:
        """Return what the API server would show."""
        results: dict[str, TrialResult] = {}
        readings: dict[str, TrialReadings] = {}
        unread: set[str] = set()
        payloads: dict[str, str] = {}
        for trial in self._possible:
            if trial.name in self.config_maps:
                results[trial.name], payloads[trial.name] = read_result(
                    self.config_maps[trial.name]
                )
                measured = results[trial.name].outcome is TrialOutcome.MEASURED
                stored = readings_name(trial.name) in self.config_maps
                if not self.watched or stored or not measured:
                    continue
                # What the asking comes to: an answer some time later, which a kill loses.
                if self.random.random() < 0.3:
                    readings[trial.name] = no_readings(trial.name, "nobody is here")
                else:
                    unread.add(trial.name)
        failures = {
            server.name: (server.reason or "", server.message or "")
            for server in self.run.status.servers or []
            if server.state is ServerState.FAILED
        }
        return Observed(
            deployments=dict(self.deployments),
            jobs=dict(self.jobs),
            pods=tuple(self.pods.values()),
            services=dict(self.services),
            network_policies=dict(self.policies),
            config_maps={
                name: manifest["metadata"].get("annotations", {}).get(LABEL + "manifest-hash")
                for name, manifest in self.config_maps.items()
            },
            results_config_map="demo-results" if "demo-results" in self.config_maps else None,
            single=frozenset(one["metadata"]["name"] for one in self._single()),
            archived=frozenset(one["metadata"]["uid"] for one in self._archived()),
            results=results,
            readings=readings,
            unread=frozenset(unread),
            profiles={
                name: profile_problem(self.config_maps[name]["metadata"])
                for name in self._profiles & set(self.config_maps)
            },
            profile_outputs={
                pod.trial: self.logs[pod.trial, 0]
                for pod in self.pods.values()
                if pod.component == "profiler" and pod.trial and (pod.trial, 0) in self.logs
            },
            outputs=self._outputs(results),
            kubelets={
                pod.name: Hearing(silent=True) if "kubelet" in self.dead else Hearing(10.0)
                for pod in self.pods.values()
                if pod.live and not pod.ready
            },
            refusal=self.refusal,
            summary=self._summary(results, payloads, failures),
        )

    def _summary(
        self,
        results: dict[str, TrialResult],
        payloads: dict[str, str],
        failures: dict[str, tuple[str, str]],
    ) -> Summary:
        # What is stored changes no more, so the same results have the same summary.
        known = (frozenset(results), tuple(failures.items()), self.run.spec)
        if self._summarised is None or self._summarised[0] != known:
            trials = self.trials
            found = [results[trial.name] for trial in trials if trial.name in results]
            published = self.context.scenario.published
            summary = summarise(self.run.spec, trials, found, payloads, published, failures)
            self._summarised = known, summary
        return self._summarised[1]

    def _outputs(self, results: dict[str, TrialResult]) -> dict[str, dict[int, str]]:
        outputs: dict[str, dict[int, str]] = {}
        over = {result.attempt_name for result in results.values()}
        for (trial, index), log in self.logs.items():
            if trial not in over and any(
                (pod.trial, pod.index) == (trial, index) for pod in self.pods.values()
            ):
                outputs.setdefault(trial, {})[index] = log
        return outputs

    @staticmethod
    def _stored(status: RunStatus) -> RunStatus:
        # Through JSON, as the API server keeps it.
        return RunStatus.model_validate(json.loads(json.dumps(status.to_wire())))

    def _execute(self, action: Action) -> None:
        match action:
            case Apply(manifest):
                self._apply(manifest)
            case Create(manifest):
                self._create(manifest)
            case CreateDatabaseSecret():
                assert "demo-postgres" in self.config_maps
                self.secret = True
            case Fold(files):
                self._fold(files)
            case Delete(kind, name):
                self._delete(kind, name)

    def _single(self) -> list[dict[str, Any]]:
        return single_results("demo", list(self.config_maps.values()))

    def _archived(self) -> list[dict[str, Any]]:
        head = self.config_maps.get("demo-results")
        return unpack(joined(head, {})).objects if head is not None else []

    def _fold(self, files: dict[str, str]) -> None:
        self.files = files
        packer = Packer(files)
        for one in self._single():
            packer.add({**one, "metadata": {**one["metadata"], "uid": one["metadata"]["name"]}})
        head, parts = archive_config_maps(self.context, packer.finish())
        assert not parts
        self.config_maps["demo-results"] = head

    def _apply(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        match manifest["kind"]:
            case "Deployment":
                stamped = json.loads(json.dumps(manifest))
                stamped["metadata"]["creationTimestamp"] = self.now.isoformat()
                self.deployments[name] = deployment_view(stamped)
            case "Service":
                self.services[name] = manifest["metadata"]["annotations"][LABEL + "manifest-hash"]
            case "ConfigMap":
                self.config_maps[name] = manifest
            case kind:
                raise AssertionError(f"nobody applies a {kind}")

    def _create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Job":
            if name not in self.jobs:
                metadata = manifest["metadata"]
                self.jobs[name] = WorkloadView(
                    name,
                    self.now,
                    trial=metadata["labels"].get(LABEL + "trial"),
                    tiers=frozenset(metadata["annotations"].get(TIERS_ANNOTATION, "").split(",")),
                )
                self.jobs_started.append(name)
        elif manifest["kind"] == "NetworkPolicy":
            self.policies.setdefault(name, None)
        elif name not in self.config_maps:
            self.config_maps[name] = manifest
            if manifest["metadata"]["labels"][LABEL + "component"] == "readings":
                self.readings_written.append(name)
            elif any(trial.name == name for trial in self._possible):
                self.results_written.append(name)
            elif name in self._profiles:
                self.profiles_written.append(name)

    def _delete(self, kind: str, name: str) -> None:
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

    # What the cluster does ------------------------------------------------------------------

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
                and not pod.deleting
                and self.random.random() < 0.7
            ):
                self._run_pod(pod)

    def _killed(self) -> bool:
        return self._fault() or self.random.random() < self.kills

    def _fault(self) -> bool:
        return self.random.random() < self.faults

    def _end_deleted_pods(self) -> None:
        for name, pod in list(self.pods.items()):
            if name in self.stubborn and pod.deleting:
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
        # A server's new pod comes when the old one is being deleted, a tier's when it is gone.
        in_the_way = [pod for pod in mine if component != "server" or not pod.deleting]
        if deployment.replicas and not in_the_way:
            server = name.removeprefix("demo-server-") if component == "server" else None
            self._add_pod(component, name, server, deployment.trial)

    def _follow_job(self, name: str, job: WorkloadView) -> None:
        since = job.created
        mine = [p for p in self.pods.values() if p.owner == name and p.created >= since]
        verifier = "-verify-" in name
        profiler = name in self._profiles
        count = 1 if verifier or profiler else self.run.spec.generator.parallelism
        if name not in self._with_pod:
            self._with_pod.add(name)
            server = name.removeprefix("demo-verify-") if verifier else None
            component = "verifier" if verifier else "profiler" if profiler else "generator"
            for index in range(count):
                self._add_pod(component, name, server, job.trial, index)
        elif len(mine) < count:
            self.jobs[name] = replace(
                job, failed_reason="BackoffLimitExceeded", failed_message="its pod was deleted"
            )

    @property
    def _with_pod(self) -> set[str]:
        if not hasattr(self, "_with_pod_set"):
            self._with_pod_set: set[str] = set()
        return self._with_pod_set

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
        self.pods[name] = PodView(
            name,
            component,
            self.now,
            server=server,
            trial=trial,
            owner=owner,
            index=index,
            node="node",
            acknowledged=self.now,
        )

    def _run_pod(self, pod: PodView) -> None:
        if pod.component == "verifier":
            verdict = json.dumps({"ok": True})
            ended = ContainerView("verify", exit_code=0, exit_message=verdict)
            self.pods[pod.name] = replace(pod, phase="Succeeded", containers=(ended,))
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
            )

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
            count = self.run.spec.generator.parallelism
            segment = (pod.index, count) if count > 1 else None
            self.logs[pod.trial, pod.index] = generator_log(
                pod.trial,
                self.rates(pod.trial),
                segment=segment,
                script=self.script,
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
