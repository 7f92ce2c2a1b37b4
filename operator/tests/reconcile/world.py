"""One run in a small world: decisions are carried out, and what follows is shown again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from random import Random
from typing import Any

from laptime.analysis.stopping import trials_so_far
from laptime.analysis.summary import Summary, summarise
from laptime.api.resources import quantity
from laptime.api.results import TrialOutcome, TrialReadings, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus, ServerState
from laptime.catalog import UNKNOWN, Scenario, ScenarioError, scenarios
from laptime.manifests.archive import archive_config_maps, joined
from laptime.manifests.context import ImageSet, Network, RunContext
from laptime.manifests.kept_scripts import kept_script_name, script_hash
from laptime.manifests.placement import Placement
from laptime.manifests.result import profile_problem, read_result, readings_name
from laptime.measure.readings import no_readings
from laptime.plan import Leads, Trial, order_of, plan_profiles, plan_trials, seed_of
from laptime.reconcile.actions import (
    Action,
    Apply,
    Create,
    CreateDatabaseSecret,
    CreateServicesSecret,
    Decision,
    Delete,
    Fold,
    Resize,
)
from laptime.reconcile.decide import decide
from laptime.reconcile.execute import _sort
from laptime.reconcile.fold import single_results
from laptime.reconcile.sightings import AtWork, Sightings
from laptime.reconcile.views import (
    LABEL,
    Hearing,
    Observed,
    PodView,
    Refusal,
    ResizeRefused,
    Run,
    TargetView,
)
from laptime.report.archive import Packer, unpack

from .simulated_cluster import START, SimulatedCluster

IMAGES = ImageSet(
    postgres="postgres",
    pgbouncer="pgbouncer",
    haproxy="haproxy",
    generator="k6",
    operator="operator",
    upstream="upstream",
    servers={"axum-sqlx": "axum", "fastapi-sync": "sync", "fastapi-async": "async"},
)


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


class World(SimulatedCluster):
    """One run, its operator, and the cluster that they are in."""

    def __init__(
        self,
        spec: BenchmarkRunSpec,
        random: Random,
        faults: float = 0.0,
        watched: bool = True,
        network: Network | None = None,
        rates: Callable[[str], float] | None = None,
        images: ImageSet = IMAGES,
        scenario: Scenario | None = None,
        placement: Placement | None = None,
    ) -> None:
        spec = spec.with_control()
        self.seed = seed_of(spec, "6f1c")
        self._possible = plan_trials("demo", spec, self.seed, spec.most_repetitions)
        super().__init__(
            random,
            faults,
            trials=frozenset(one.name for one in self._possible),
            profiles=frozenset(one.name for one in plan_profiles("demo", spec)),
            parallelism=spec.generator.parallelism,
            rates=rates,
        )
        self.kills = 0.0
        """How often the operator alone is killed, with nothing else going wrong."""
        self.watched = watched
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
            scenario=scenario or scenarios().get(spec.scenario, UNKNOWN),
            images=images,
            network=network,
            placement=placement,
        )
        self.files: dict[str, str] = {}
        """What was stored about the whole run."""
        self.shuffles = False
        """Whether objects of one kind are made in any order, as the operator makes them at once."""
        self.passes = 0
        self.refuses: set[str] = set()
        """Kinds of which the API server stores no object, and names that none may have."""
        self.refusal_passes: float | None = None
        """So many seconds a refusal is waited for; None: as long as one that is for good."""
        self.scripts: dict[str, frozenset[str] | None] = {}
        """Keys of the ConfigMaps of scripts; None: there is none of that name."""
        self.leads: dict[str, Leads] = {}
        """Where scripts lead to, by load."""
        self.strangers: set[tuple[str, str]] = set()
        """Kinds and names of somebody else's objects."""
        self.targets: dict[str, TargetView] = {}
        """Services of the namespace that are there already, by the names of servers."""
        self.refusal: Refusal | None = None
        self.resize_refused: ResizeRefused | None = None
        """Of which CPU the API server says what, whichever pod is to have it."""
        self._resize_refused: ResizeRefused | None = None
        self.full = False
        """Whether what is refused is so because a quota is reached."""
        self.others_clock = timedelta()
        """By so much the clocks of API server and nodes are before the operator's."""
        self.was_set = timedelta()
        """By so much the operator's time of day was set, or jumped while its machine slept."""
        self._sightings = Sightings()
        self._at_work = AtWork()
        self._summarised: tuple[object, Summary] | None = None
        self._results: dict[str, tuple[TrialResult, str]] = {}
        self._unpacked: tuple[dict[str, Any], list[dict[str, Any]]] | None = None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that the run needs as far as its results tell."""
        stored = [
            self._result(trial.name)[0]
            for trial in self._possible
            if trial.name in self.config_maps
        ]
        order = order_of(self.run.status)
        return trials_so_far("demo", self.run.spec, self.seed, order, stored, self._out())

    def _result(self, name: str) -> tuple[TrialResult, str]:
        # What is stored changes no more: it is read once, as the operator does.
        if name not in self._results:
            self._results[name] = read_result(self.config_maps[name])
        return self._results[name]

    def _out(self) -> frozenset[str]:
        servers = self.run.status.servers or []
        return frozenset(one.name for one in servers if one.state is ServerState.FAILED)

    def step(self) -> Decision:
        """Have one reconcile, which may be killed between any two of its steps."""
        self.passes += 1
        decision = decide(self.run, self.observe(), self.context, self.now)
        if self._killed():
            return decision
        self.run = replace(self.run, status=self._stored(decision.status))
        refusal: Refusal | None = None
        stopped = False
        for action in self._in_some_order(decision.actions):
            if self._killed():
                return decision
            # Once something is refused, only deletions go on.
            if not stopped and isinstance(action, Apply | Create | Fold):
                refusal = self._refused(action)
                stopped = refusal is not None
            if not stopped or isinstance(action, Delete):
                stopped |= not self._execute(action)
        self.refusal = refusal
        return decision

    def _in_some_order(self, actions: Sequence[Action]) -> list[Action]:
        if not self.shuffles:
            return list(actions)
        found: list[Action] = []
        for _, some in groupby(actions, key=_sort):
            alike = list(some)
            self.random.shuffle(alike)
            found += alike
        return found

    def _killed(self) -> bool:
        killed = self._fault() or self.random.random() < self.kills
        if killed:
            self.new_operator()
        return killed

    def new_operator(self) -> None:
        """Have another operator go on, which has seen nothing yet."""
        self._sightings = Sightings()
        self._at_work = AtWork()

    def set_clock(self, by: timedelta) -> None:
        """Have the time of day jump, as where a machine sleeps, and no other clock."""
        self.now += by
        self.was_set += by

    @property
    def _moment(self) -> float:
        """The time of a clock that nobody sets, in seconds."""
        return (self.now - self.was_set).timestamp()

    def _refused(self, action: Apply | Create | Fold) -> Refusal | None:
        kind, name = "ConfigMap", "demo-results"
        if not isinstance(action, Fold):
            kind, name = action.manifest["kind"], action.manifest["metadata"]["name"]
        if self.refuses & {kind, name}:
            since = self.refusal.since if self.refusal else self.now
            passes = self.refusal_passes
            what = kind if kind in self.refuses else f'{kind} "{name}"'
            return Refusal(f"{what}: not here", since, "ObjectRefused", passes, self.full)
        if (kind, name) in self.strangers:
            return Refusal(f"{kind} {name}", self.now, "NameTaken", 0.0)
        return None

    def _by_their_clock(self, pod: PodView) -> PodView:
        if not self.others_clock:
            return pod

        def there(moment: datetime | None) -> datetime | None:
            return moment and moment + self.others_clock

        return replace(
            pod,
            created=pod.created + self.others_clock,
            deleting_since=there(pod.deleting_since),
            last_started=there(pod.last_started),
            acknowledged=there(pod.acknowledged),
            containers=tuple(
                replace(one, ended_at=there(one.ended_at), running_since=there(one.running_since))
                for one in pod.containers
            ),
        )

    def observe(self) -> Observed:
        """Return what the API server would show."""
        results: dict[str, TrialResult] = {}
        readings: dict[str, TrialReadings] = {}
        unread: set[str] = set()
        payloads: dict[str, str] = {}
        for trial in self._possible:
            if trial.name in self.config_maps:
                results[trial.name], payloads[trial.name] = self._result(trial.name)
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
        pods, jobs = self._sightings.look(
            [self._by_their_clock(pod) for pod in self.pods.values()],
            [replace(job, created=job.created + self.others_clock) for job in self.jobs.values()],
            self.now,
            self._moment,
        )
        return Observed(
            deployments=dict(self.deployments),
            jobs={job.name: job for job in jobs},
            pods=pods,
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
            answers={
                pod.name: self.logs[pod.name, 0]
                for pod in self.pods.values()
                if (pod.name, 0) in self.logs and self.run.spec.verify_only
            },
            kubelets={
                pod.name: Hearing(silent=True) if "kubelet" in self.dead else Hearing(10.0)
                for pod in self.pods.values()
                if pod.live and not pod.ready
            },
            refusal=self.refusal,
            resize_refused=self._resize_refused,
            targets=dict(self.targets),
            scripts=dict(self.scripts),
            kept_scripts={
                name: script_hash(self.config_maps[copy])
                for name, copy in self._copies().items()
                if copy in self.config_maps
            },
            script_sources={
                name: {"data": dict.fromkeys(self.scripts.get(name) or (), "")}
                for name, copy in self._copies().items()
                if copy not in self.config_maps and self.scripts.get(name)
            },
            at_work_seconds=self._at_work.look(self._moment, self.now.timestamp()),
            scenario_problem=self._scenario_problem(),
            leads=dict(self.leads),
            summary=None
            if self.run.spec.verify_only
            else self._summary(results, payloads, failures),
        )

    def _copies(self) -> dict[str, str]:
        names = self.run.spec.script_config_maps
        return {name: kept_script_name("demo", name) for name in names}

    def _scenario_problem(self) -> ScenarioError | None:
        if self.context.scenario is not UNKNOWN:
            return None
        said = f"there is no BenchmarkScenario {self.run.spec.scenario}"
        return ScenarioError("ScenarioMissing", said, fatal=False)

    def _summary(
        self,
        results: dict[str, TrialResult],
        payloads: dict[str, str],
        failures: dict[str, tuple[str, str]],
    ) -> Summary:
        # What is stored changes no more, so the same results have the same summary.
        ended = self.run.given_up
        known = (frozenset(results), tuple(failures.items()), self.run.spec, ended)
        if self._summarised is None or self._summarised[0] != known:
            trials = self.trials
            found = [results[trial.name] for trial in trials if trial.name in results]
            published = self.context.scenario.published
            summary = summarise(self.run.spec, trials, found, payloads, published, failures, ended)
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
        text = status.model_dump_json(by_alias=True, exclude_none=True)
        return RunStatus.model_validate_json(text)

    def _execute(self, action: Action) -> bool:
        """Carry out an action; return whether it was not refused."""
        match action:
            case Apply(manifest):
                self.store(manifest)
            case Create(manifest):
                self.create(manifest)
            case CreateDatabaseSecret():
                assert "demo-postgres" in self.config_maps
                self.secret = True
            case CreateServicesSecret():
                assert "demo-services" in self.config_maps
            case Fold(files):
                self._fold(files)
            case Delete(kind, name):
                self.remove(kind, name)
            case Resize(name, _, cpu):
                said = self.resize_refused
                if said is None or said.cpu != cpu:
                    self.resize(name, cpu)
                    self._resize_refused = None
                else:
                    self.resizes.append((name, quantity(cpu)))
                    self._resize_refused = replace(said, pod=name)
                    return False
        return True

    def _single(self) -> list[dict[str, Any]]:
        return single_results("demo", list(self.config_maps.values()))

    def _archived(self) -> list[dict[str, Any]]:
        head = self.config_maps.get("demo-results")
        if head is None:
            return []
        if self._unpacked is None or self._unpacked[0] is not head:
            self._unpacked = head, unpack(joined(head, {})).objects
        return self._unpacked[1]

    def _fold(self, files: dict[str, str]) -> None:
        self.files = files
        packer = Packer(files)
        for one in self._single():
            packer.add({**one, "metadata": {**one["metadata"], "uid": one["metadata"]["name"]}})
        head, parts = archive_config_maps(self.context, packer.finish())
        assert not parts
        self.config_maps["demo-results"] = head
