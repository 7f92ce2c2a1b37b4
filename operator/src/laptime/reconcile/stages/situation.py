"""A run as the stages see it: what is observed, what they say, and the status made of both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from laptime.analysis import trials_so_far
from laptime.analysis.duet import with_partners
from laptime.analysis.stopping import gave_up, loads_given_up
from laptime.api.attempts import LostAttempt, attempt_name
from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.durations import format_duration
from laptime.api.images import by_digest
from laptime.api.node_path import NodePath
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import TrialResult
from laptime.api.status import (
    Condition,
    ConditionStatus,
    ConditionType,
    KeptScript,
    Progress,
    RunStatus,
    ServerState,
    ServerStatus,
    State,
)
from laptime.api.storage import Storage
from laptime.catalog import UNKNOWN
from laptime.manifests.context import RunContext
from laptime.manifests.verifier import verify_name
from laptime.plan import (
    OVERHEAD_SECONDS,
    NodeDesign,
    Places,
    Trial,
    order_of,
    plan_profiles,
    profiling_seconds,
    remaining_seconds,
    seed_of,
)
from laptime.reconcile.actions import Action, Decision
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.sightings import GAP_SECONDS
from laptime.reconcile.turns import without_resources
from laptime.reconcile.views import (
    STUCK_SECONDS,
    Observed,
    Run,
    format_time,
    parse_time,
    seconds_used,
)
from laptime.report.status import status_rows

GRACE_SECONDS = 60.0
"""So much longer than anything should take it may take, when the cluster is slow to say so."""

_REFUSED_SECONDS = 5.0
"""What the API server refuses is said after so long: most of it passes."""


class Situation:
    """One pass over one run. Holds what the stages have said so far in this pass."""

    def __init__(self, run: Run, observed: Observed, context: RunContext, now: datetime) -> None:
        self.run = run
        self.spec = run.spec
        self.observed = observed
        targets = {
            name: view.target for name, view in observed.targets.items() if view.target is not None
        }
        self.context = replace(context, targets=targets)
        self.now = now
        self.seed = seed_of(run.spec, run.uid)
        self._order = order_of(run.status)
        known = {server.name: server for server in run.status.servers or []}
        out = frozenset(
            name for name, server in known.items() if server.state is ServerState.FAILED
        )
        self.trials = trials_so_far(
            run.name, run.spec, self.seed, self._order, list(observed.results.values()), out
        )
        self.profiles = plan_profiles(run.name, run.spec)
        deployed = frozenset(server.name for server in run.spec.deployed)
        self._design = NodeDesign(run.spec.nodes or Nodes.FIXED, deployed)
        self.actions: list[Action] = []
        self.tiers_ready = False
        self.tiers_problem: Problem | None = None
        """What keeps a tier from standing, if anything is known."""
        self.tiers_lost: Problem | None = None
        """Why the tiers will not come back, although every trial was run."""
        self.images_problem: Problem | None = None
        """What keeps those from starting who ask what a tag stands for, if anything is known."""
        self._verdicts: list[Verdict] = []
        self.node_paths = list(run.status.node_paths or [])
        """What is known of the network between the run's nodes."""
        self._lost = [
            one for one in run.status.lost_attempts or [] if one.trial not in observed.results
        ]
        self._servers = {
            server.name: known.get(server.name)
            or ServerStatus(name=server.name, state=ServerState.PENDING)
            for server in run.spec.servers
        }
        self._know_images()

    # What is known ------------------------------------------------------------------------

    # What is observed stays as it is throughout a pass, and these are asked for many times in one.

    @cached_property
    def _results(self) -> list[TrialResult]:
        return list(self.observed.results.values())

    @cached_property
    def _gave_up(self) -> frozenset[str]:
        return frozenset(name for name in self._servers if gave_up(name, self._results))

    @cached_property
    def _loads_given_up(self) -> dict[tuple[str, str], tuple[str, str]]:
        return loads_given_up(self._results)

    @cached_property
    def without_resources(self) -> list[str]:
        """Return the parts of the run whose pods have no limits, since it says none."""
        return without_resources(self.spec, self.context.scenario.services)

    def server_state(self, name: str) -> ServerState:
        """Return what is known of a server's answers."""
        return self._servers[name].state

    def checked_once(self, name: str) -> bool:
        """Whether the first check of a server that is pending got no answer."""
        return self._servers[name].reason is not None

    def server_reason(self, name: str) -> str:
        """Return the CamelCase reason why a server is out."""
        return self._servers[name].reason or "Failed"

    def server_leads_to(self, name: str) -> str | None:
        """Return what stands for where a server's Service led at first; None: not known yet."""
        return self._servers[name].leads_to

    def image_known(self, name: str) -> bool:
        """Whether something is known of which bits a server's image is, or why nothing is."""
        return self.image_of(name) != (None, None)

    def image_of(self, name: str) -> tuple[str | None, str | None]:
        """Return what a server's image is known to be, and why its registry does not say so."""
        return self._servers[name].image_id, self._servers[name].tag_unknown

    def image_wanted(self, name: str) -> bool:
        """Whether it has to be found out first what the tag of a server stands for.

        One whose check goes on was begun with by an earlier version.
        """
        server = self.spec.server(name)
        current = self.observed.deployments.get(f"{self.run.name}-server-{name}")
        checks = [verify_name(self.context, server, again) for again in (False, True)]
        return (
            self.context.images.by_tag(server)
            and self._servers[name].state is ServerState.PENDING
            and not self.image_known(name)
            and (current is None or current.replicas == 0 or current.trial not in checks)
        )

    def server_message(self, name: str) -> str:
        """Return why a server is out, in words."""
        return self._servers[name].message or f"server {name} failed"

    def outcome(self) -> Verdict:
        """Return what is said of `Succeeded`: in this pass, or else in the status."""
        for verdict in reversed(self._verdicts):
            if verdict.type is ConditionType.SUCCEEDED:
                return verdict
        old = self.run.status.condition(ConditionType.SUCCEEDED)
        if old is None:
            return Verdict(ConditionType.SUCCEEDED, ConditionStatus.UNKNOWN, "NotFinished")
        return Verdict(ConditionType.SUCCEEDED, old.status, old.reason, old.message)

    def broken(self, name: str) -> bool:
        """Whether a server is out: its answers were wrong, or its trials failed repeatedly."""
        if self._servers[name].state is ServerState.FAILED:
            return True
        return name in self._gave_up

    def trials_left(self) -> list[Trial]:
        """Return the trials that still have to be run, in their order."""
        broken = {server.name for server in self.spec.servers if self.broken(server.name)}
        loads = self._loads_given_up
        left = [
            trial
            for trial in self.trials
            if trial.name not in self.observed.results
            and trial.server not in broken
            and (trial.server, trial.load) not in loads
        ]
        return with_partners(left, self._results)

    def measured_together(self, trial: Trial) -> tuple[Trial, ...]:
        """Return a trial that is left, with the one that is measured at the same time.

        The one that leads comes first. It is alone too where the other one has its result.
        """
        both = (trial, *(one for one in self.trials_left() if one.name == trial.beside))
        return tuple(sorted(both, key=lambda one: one.ordinal))

    def lost_attempts(self, trial: str) -> list[LostAttempt]:
        """Return the attempts of a trial that were lost so far."""
        return [one for one in self._lost if one.trial == trial]

    def attempt(self, trial: Trial) -> Trial:
        """Return the trial under the name of the attempt that is made now."""
        number = len(self.lost_attempts(trial.name)) + 1
        beside = trial.beside and attempt_name(trial.beside, number)
        retry = self.run.status.retries or 0
        return replace(trial, name=attempt_name(trial.name, number), beside=beside, retry=retry)

    def places_of_tiers(self, parts: Collection[str]) -> Places:
        """Return where these parts would rather be, which stay for all trials."""
        return self._design.of_tiers(self._results, parts)

    def places_of_trial(self, trial: Trial, parts: Collection[str]) -> Places:
        """Return where these parts belong in the attempt that is made now."""
        lost = len(self.lost_attempts(trial.name))
        results = self._results
        return self._design.of_trial(results, trial.repetition, lost, parts)

    def profiles_left(self) -> list[Trial]:
        """Return the profiles that still have to be taken; none of a server or load that is out."""
        loads = self._loads_given_up
        return [
            profile
            for profile in self.profiles
            if profile.name not in self.observed.profiles
            and not self.broken(profile.server)
            and (profile.server, profile.load) not in loads
        ]

    @property
    def rests_on_tiers(self) -> bool:
        """Whether something was checked or measured on the tiers of the run, or is just now."""
        states = (one.state for one in self._servers.values())
        checks = (verify_name(self.context, one) for one in self.spec.servers)
        return (
            self.run.status.state in (State.VERIFYING, State.RUNNING)
            or bool(self.observed.results)
            or any(state is not ServerState.PENDING for state in states)
            or any(name in self.observed.jobs for name in checks)
        )

    def measured(self) -> bool:
        """Whether every server was checked and no trial has to be run any more."""
        return not self._unchecked() and not self.trials_left()

    def under_way(self) -> bool:
        """Whether a trial or a profile is measured in this very moment."""
        trials = [self.attempt(trial) for trial in self.trials_left()[:1]]
        return any(one.name in self.observed.jobs for one in trials or self.profiles_left()[:1])

    def progress_so_far(self) -> str:
        """Return how many trials are over, of how many: `7/15`; without any, servers checked."""
        return "{}/{}".format(*self._over_and_all())

    def what_is_over(self) -> str:
        """Return the same in words: `7/15 trials are over`, or how many servers are checked."""
        what = "servers are checked" if self.spec.verify_only else "trials are over"
        return f"{self.progress_so_far()} {what}"

    def _over_and_all(self) -> tuple[int, int]:
        """Return how many trials are over, and how many there are; without any, servers checked."""
        if self.spec.verify_only:
            return len(self.spec.servers) - len(self._unchecked()), len(self.spec.servers)
        return len(self.trials) - len(self.trials_left()), len(self.trials)

    def _unchecked(self) -> list[str]:
        states = self._servers.items()
        return [name for name, one in states if one.state is ServerState.PENDING]

    def nothing_left(self) -> bool:
        """Whether nothing has to be measured or profiled any more."""
        return self.measured() and not self.profiles_left()

    @property
    def used_seconds(self) -> float:
        """For how long the run has had the lane, in all its turns together."""
        return seconds_used(self.run.status, self.now)

    @property
    def patience_seconds(self) -> float:
        """How long the cluster may take to get well again, in seconds.

        Longer than a pod on a lost node is waited for, and then something starts: services that
        are made fresh, then those that are reset, then the server.
        """
        services = self.context.scenario.services
        starts = 1 + any(one.fresh for one in services) + any(one.reset for one in services)
        return STUCK_SECONDS + starts * self.spec.startup_seconds + GRACE_SECONDS

    def step_seconds(self, state: State, current_trial: str | None = None) -> float:
        """Return since how many seconds the run has been at a step; 0 when it is not there.

        A step is a state with its trial, or with the server that is checked. Each one has an end.
        """
        old = self.run.status
        since = parse_time(old.step_started_at)
        known = (old.state, old.current_trial, [_step(one) for one in old.servers or []])
        if since is None or known != (state, current_trial, self._steps):
            # What was found out of a server in this very pass ends its step.
            return 0.0
        return self._seconds_since(since)

    @property
    def _steps(self) -> list[tuple[ServerState, str | None, bool]]:
        return [_step(self._servers[server.name]) for server in self.spec.servers]

    def condition_seconds(self, type_: ConditionType, status: ConditionStatus) -> float:
        """Return since how many seconds a condition has had a status; 0 when it has not."""
        condition = self.run.status.condition(type_)
        if condition is None or condition.status != status:
            return 0.0
        return self._seconds_since(parse_time(condition.last_transition_time))

    def _seconds_since(self, time: datetime | None) -> float:
        """Return for how long something has lasted that somebody has looked at all the time."""
        if time is None:
            return 0.0
        passed, at_work = (self.now - time).total_seconds(), self.observed.at_work_seconds
        # By a clock that was set back since it would not have begun yet.
        return at_work if passed < -GAP_SECONDS else min(passed, at_work)

    # What is said -------------------------------------------------------------------------

    def say(self, *verdicts: Verdict) -> None:
        """Set conditions; the last word on a type counts."""
        self._verdicts += verdicts

    def lose(self, attempt: LostAttempt) -> None:
        """Record an attempt that was lost: the next pass makes another one."""
        self._lost.append(attempt)

    def remember_path(self, path: NodePath) -> None:
        """Record what two nodes exchange, or why nobody knows."""
        self.node_paths.append(path)

    def go_to(self, places: Places, together: Sequence[str] = ()) -> None:
        """Have what is made from now on go to these nodes, and servers of these attempts to one."""
        several = tuple(together) if len(together) > 1 else ()
        self.context = replace(self.context, places=places, together=several)

    def set_server(
        self,
        name: str,
        state: ServerState,
        problem: Problem | None = None,
        image: str | None = None,
        schema: str | None = None,
    ) -> None:
        """Record what is known of a server's answers."""
        known = self._servers[name]
        self._servers[name] = ServerStatus(
            name=name,
            state=state,
            reason=problem.reason if problem else None,
            message=problem.message if problem else None,
            image=image or known.image,
            image_id=known.image_id,
            tag_unknown=known.tag_unknown,
            database_schema=schema or known.database_schema,
            leads_to=known.leads_to,
        )

    def remember_image(self, name: str, image_id: str | None, tag_unknown: str | None) -> None:
        """Record which bits a server's image is, once for the run, or why nobody knows."""
        said = {"image_id": image_id, "tag_unknown": tag_unknown}
        self._servers[name] = self._servers[name].model_copy(update=said)
        self._know_images()

    def _know_images(self) -> None:
        """Have the pods that are made from now on name the digests that are known."""
        found: dict[str, str] = {}
        for server in self.spec.servers:
            known = self._servers[server.name]
            if known.image_id and not known.tag_unknown and self.context.images.by_tag(server):
                image = by_digest(self.context.images.of(server), known.image_id)
                found |= {server.name: image} if image else {}
        self.context = replace(self.context, digests=found)

    def forget_first_checks(self) -> None:
        """Have no finding stand at a server that is not going to be checked once more now."""
        for name, server in self._servers.items():
            if server.state is ServerState.PENDING and server.reason is not None:
                self.set_server(name, ServerState.PENDING)

    def remember_target(self, name: str, fingerprint: str) -> None:
        """Record where the Service of a server leads to, once and for the whole run."""
        server = self._servers[name]
        if server.leads_to is None:
            self._servers[name] = server.model_copy(update={"leads_to": fingerprint})

    def progressing(self, reason: str, message: str, problem: Problem | None = None) -> None:
        """Say what goes on, or what keeps it from going on."""
        refusal = self.observed.refusal
        if refusal and (self.now - refusal.since).total_seconds() >= _REFUSED_SECONDS:
            problem = Problem(refusal.reason, refusal.message)
        self.say(
            Verdict(
                ConditionType.PROGRESSING, ConditionStatus.FALSE, problem.reason, problem.message
            )
            if problem
            else Verdict(ConditionType.PROGRESSING, ConditionStatus.TRUE, reason, message)
        )

    def explained(self, problem: Problem) -> Problem:
        """Return the problem that something is missing, with what the API server says to it."""
        refusal = self.observed.refusal
        if refusal is None:
            return problem
        return replace(problem, message=f"{problem.message}: {refusal.message}")

    def fail(self, problem: Problem) -> None:
        """Give the run up: it cleans up and ends with Succeeded=False."""
        self.say(
            Verdict(ConditionType.SUCCEEDED, ConditionStatus.FALSE, problem.reason, problem.message)
        )

    def decision(
        self,
        state: State,
        *,
        requeue_seconds: float | None,
        current_trial: str | None = None,
        current_beside: str | None = None,
        finished: bool = False,
        text: str | None = None,
    ) -> Decision:
        """Return the decision of this pass with the status that follows from it."""
        status = self._status(state, current_trial, finished, text)
        return Decision(
            status=status.model_copy(update={"current_beside": current_beside}),
            actions=tuple(self.actions),
            requeue_seconds=requeue_seconds,
            trials=self.trials,
        )

    def _status(
        self,
        state: State,
        current_trial: str | None,
        finished: bool,
        text: str | None,
    ) -> RunStatus:
        old, summary = self.run.status, self.observed.summary
        now = format_time(self.now)
        servers = [self._servers[server.name] for server in self.spec.servers]
        before = (old.state, old.current_trial, [_step(one) for one in old.servers or []])
        goes_on = before == (state, current_trial, self._steps)
        return RunStatus(
            observed_generation=self.run.generation,
            state=state,
            verdict=summary.verdict if summary else None,
            seed=self.seed,
            order=self._order,
            baseline=self.spec.baseline_name,
            started_at=old.started_at or (now if state.active else None),
            turn_started_at=(old.turn_started_at or now) if state.active else None,
            used_seconds=old.used_seconds
            if state.active
            else round(self.used_seconds, 1) or old.used_seconds,
            finished_at=(old.finished_at or now) if finished else None,
            retries=self.spec.retry if old.retries is None else old.retries,
            images=old.images or (self.context.images.pins(self.spec) if state.active else None),
            placement=self._placement(state),
            scenario_hash=old.scenario_hash or self._scenario_hash(state),
            scripts=old.scripts or self._scripts(state),
            progress=self._progress(state, text),
            current_trial=current_trial,
            step_started_at=None
            if state.terminal
            else ((old.step_started_at if goes_on else None) or now),
            lost_attempts=None if state.terminal else self._lost or None,
            fastest=summary.fastest if summary else None,
            fastest_factor=summary.fastest_factor if summary else None,
            servers=servers,
            results=status_rows(summary.rows) if summary else None,
            objectives=list(summary.objectives) if summary and summary.objectives else None,
            control=list(summary.control) if summary and summary.control else None,
            ties=list(summary.ties) if summary and summary.ties else None,
            trial_lengths=list(summary.trial_lengths) or None if summary else None,
            isolation=summary.isolation if summary else None,
            node_paths=self.node_paths or None,
            # A status that was restored from a backup names that of the run before.
            results_config_map=(self.observed.results_config_map if state.terminal else None)
            or old.results_config_map,
            storage=self._storage(state),
            conditions=self._conditions(now),
        )

    def _placement(self, state: State) -> RunPlacement | None:
        known = self.context.placement
        if self.run.begun or not state.active or known is None:
            return self.run.status.placement
        return known.pin

    def _scenario_hash(self, state: State) -> str | None:
        known = self.context.scenario
        if known is UNKNOWN or not state.active or not self.observed.scenario_kept:
            return None
        return known.hash

    def _scripts(self, state: State) -> list[KeptScript] | None:
        kept = self.observed.kept_scripts
        if not kept or not state.active or set(kept) < set(self.spec.script_config_maps):
            return None
        return [KeptScript(config_map=name, hash=its) for name, its in sorted(kept.items())]

    def _storage(self, state: State) -> Storage:
        folding = state.terminal and self.observed.results_config_map is not None
        return Storage(version=self.context.stored_version, folded=False if folding else None)

    def _conditions(self, now: str) -> list[Condition]:
        old = list(self.run.status.conditions or [])
        if self.run.status.condition(ConditionType.SUCCEEDED) is None:
            unknown = Verdict(
                ConditionType.SUCCEEDED, ConditionStatus.UNKNOWN, "NotFinished", "the run goes on"
            )
            self._verdicts.insert(0, unknown)
        latest = {verdict.type: verdict for verdict in self._verdicts}
        return merge_conditions(old, latest.values(), self.run.generation, now)

    def _progress(self, state: State, text: str | None) -> Progress:
        completed, total = self._over_and_all()
        if state.terminal:
            return Progress.ended(completed, total)
        seconds = self._seconds_left(self.trials_left())
        return Progress(
            completed=completed,
            total=total,
            percent=100 * completed // total,
            remaining_seconds=round(seconds),
            text=text or f"{completed}/{total}, {format_duration(seconds)} left",
        )

    def _seconds_left(self, left: list[Trial]) -> float:
        durations: dict[tuple[str, str], list[float]] = {}
        for result in self.observed.results.values():
            begin, end = parse_time(result.started_at), parse_time(result.finished_at)
            if begin is not None and end is not None:
                load = self.spec.load(result.load)
                whole = (end - begin).total_seconds() + load.warmup_seconds + OVERHEAD_SECONDS
                durations.setdefault((result.server, result.load), []).append(whole)
        scenario = self.context.scenario
        seconds = remaining_seconds(self.spec, left, durations, scenario)
        job = self.observed.jobs.get(self.attempt(left[0]).name) if left else None
        if job is not None:
            # The trial that runs now has used up some of its time.
            first = remaining_seconds(self.spec, left[:1], durations, scenario)
            seconds -= min(first, max(0.0, job.age(self.now)))
        profiling = profiling_seconds(self.spec, self.profiles_left())
        return seconds + OVERHEAD_SECONDS * len(self._unchecked()) + profiling


def _step(server: ServerStatus) -> tuple[ServerState, str | None, bool]:
    """Return what changes when a server is done with, and when one of its checks begins."""
    return server.state, server.reason, bool(server.image_id or server.tag_unknown)
