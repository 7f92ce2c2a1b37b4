"""The third stage: the trials, one after the other, each result stored before the next begins.

Two that are measured at the same time (`pairing: duet`) are prepared, followed, stored and lost
together: what one of them measured alone says nothing of the two.

What was lost by no fault of the server is tried again, as an attempt with a name of its own. The
attempts that were lost stand in the status until the trial's result is stored, which has them then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence

from laptime.analysis import wording
from laptime.api.attempts import MOST_ATTEMPTS, Fault, attempt_name, trial_of
from laptime.api.placement import Nodes
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.status import State
from laptime.manifests.generator import deadline_seconds, trial_job
from laptime.manifests.objects import Component
from laptime.plan import Trial, profile_load
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.attempts import OVERLAPPED, follow_attempts
from laptime.reconcile.stages.outcomes import fault_of, lose_or_fail, without_partner
from laptime.reconcile.stages.readings import store_readings
from laptime.reconcile.stages.servers import (
    never_prepared,
    others_alive,
    run_only,
    server_pods,
    server_problem,
    with_pods,
)
from laptime.reconcile.stages.side_services import fresh_components, side_problem
from laptime.reconcile.stages.situation import GRACE_SECONDS, Situation
from laptime.reconcile.views import SENDS, STUCK, PodView, parse_time

_SOON_SECONDS = 1.0
_MEASURING_SECONDS = 5.0
# How long the second and the third attempt wait, for what was wrong to pass.
_BACK_OFF_SECONDS = (5.0, 30.0)
# A kubelet needs some 0.3 s to end a pod, and up to 2.5 s for one that got ready just before.
_LATE_END_SECONDS = 4.0
_MOST_LOST = 2
# Of servers that were never measured, where others are or may be.
_MOST_UNKNOWN_LOST = 3


def run_trials(situation: Situation) -> Decision | None:
    """Run the next trial that has no result; None when there is none left."""
    _drop_finished_jobs(situation)
    store_readings(situation)
    if situation.observed.failed_before:
        # They are in the archive too, and their names are needed.
        names = sorted(situation.observed.failed_before)
        situation.actions += [Delete("ConfigMap", name) for name in names]
    left = situation.trials_left()
    if not left:
        return None
    trial, *beside = together = situation.measured_together(left[0])
    hopeless = _all_is_lost(situation, left)
    if hopeless is not None:
        situation.progressing("", "", hopeless)
        situation.fail(hopeless)
        return situation.decision(State.RUNNING, requeue_seconds=_SOON_SECONDS)
    attempt = situation.attempt(trial)
    lost = situation.lost_attempts(trial.name)
    parts = ("server", "generator", *fresh_components(situation))
    names = [situation.attempt(one).name for one in together]
    situation.go_to(situation.places_of_trial(trial, parts), names)
    begun = all(name in situation.observed.jobs for name in names)
    partner = situation.observed.results.get(trial.beside or "")
    servers = " and ".join(one.server for one in together)
    where = f"{servers} under {trial.load}, repetition {trial.repetition}"
    if lost:
        where += f" (attempt {len(lost) + 1} of {MOST_ATTEMPTS}: {wording.lost_attempt(lost[-1])})"
    problem: Problem | None
    if partner is not None and (not begun or _failed_itself(partner)):
        # Its figures would be about something else.
        problem = without_partner(situation, trial, partner)
    elif begun:
        problem = follow_attempts(situation, together)
    else:
        problem = _prepare(situation, together)
    reason, doing = ("Measuring", "measuring") if begun else ("Preparing", "setting up")
    situation.progressing(reason, f"{doing} {where}", problem)
    started = any(pod.ready for pod in situation.observed.pods_of("generator", trial=attempt.name))
    return situation.decision(
        State.RUNNING,
        requeue_seconds=_MEASURING_SECONDS if started and not problem else _SOON_SECONDS,
        current_trial=attempt.name,
        current_beside=names[1] if beside else None,
    )


def _all_is_lost(situation: Situation, left: Sequence[Trial]) -> Problem | None:
    """Return why a run is given up: its last trials, of different servers, were lost for good.

    Two servers that were never measured may ask for more than there is beside a generator: then the
    next one tells whether it is them.
    """
    # Of two at the same time only one was lost to something of its own.
    results = [one for one in situation.observed.results.values() if one.fault is not Fault.PARTNER]
    results.sort(key=lambda one: one.ordinal, reverse=True)
    lost: dict[str, TrialResult] = {}
    for one in itertools.takewhile(lambda one: one.lost, results):
        lost.setdefault(one.server, one)
    measured = {one.server for one in results if one.figures is not None}
    others = measured | {one.server for one in left} - lost.keys()
    most = _MOST_LOST if lost.keys() & measured or not others else _MOST_UNKNOWN_LOST
    if len(lost) < most:
        return None
    last, *before = lost.values()
    names = " and ".join(one.trial for one in (*reversed(before), last))
    return Problem(
        "InfrastructureFailed",
        f"trials {names} were lost in all their attempts by no fault of their servers, the last "
        f"one to the {last.fault}: {last.message}",
    )


def _drop_finished_jobs(situation: Situation) -> None:
    """Delete Jobs whose result is stored; a failed generator that ended stays to be looked at."""
    for result in situation.observed.results.values():
        job = situation.observed.jobs.get(result.attempt_name)
        if job is None or job.deleting:
            continue
        pods = situation.observed.pods_of("generator", trial=result.attempt_name)
        if result.outcome is TrialOutcome.MEASURED or any(pod.live for pod in pods):
            situation.actions.append(Delete("Job", result.attempt_name))
    for lost in situation.run.status.lost_attempts or []:
        name = attempt_name(lost.trial, lost.attempt)
        job = situation.observed.jobs.get(name)
        if job is not None and not job.deleting:
            situation.actions.append(Delete("Job", name))


def _failed_itself(partner: TrialResult) -> bool:
    """Return whether it came to nothing, and not because of the trial that was beside it."""
    return partner.figures is None and partner.fault is not Fault.PARTNER


def _prepare(situation: Situation, together: Sequence[Trial]) -> Problem | None:
    """Bring up a fresh pod of each server; start the generators when nothing else is alive."""
    trial = together[0]
    attempts = [situation.attempt(one) for one in together]
    purposes = {one.server: one.name for one in attempts}
    if _repels_servers(situation, purposes.values()):
        return None
    settled = run_only(situation, purposes)
    in_the_way = generators_alive(situation, purposes.values())
    lost = situation.lost_attempts(trial.name)
    short = situation.spec.load(trial.load).warmup_seconds < _LATE_END_SECONDS
    if lost or short or rows_come_back(situation) or _overlapped_before(situation):
        # Elsewhere pods end while others start and warm up, and nobody waits for them.
        others = others_alive(situation, purposes.values())
        in_the_way = in_the_way or not all(pod.stuck(situation.now) for pod in others)
    if lost:
        begins = parse_time(lost[-1].lost_at) or situation.now
        waited = (situation.now - begins).total_seconds()
        # By a clock that was set back since it would not be over for long.
        waited = max(waited, situation.step_seconds(State.RUNNING, attempts[0].name))
        settled = settled and waited >= _BACK_OFF_SECONDS[len(lost) - 1]
    if settled and situation.tiers_ready and not in_the_way:
        for attempt in attempts:
            if attempt.name not in situation.observed.jobs:
                job = trial_job(situation.context, attempt)
                beside = _beside(situation, purposes.values())
                job = with_pods(situation, attempt.server, attempt.name, job, beside)
                situation.actions.append(Create(job))
        return None
    around = side_problem(situation, attempts[0].name)
    if around is not None and around.fatal:
        # The next attempt has fresh pods of services, and resets of its own.
        lose_or_fail(situation, together, trial, around)
        return around
    first, problem = _most_telling(
        (one, server_problem(situation, one.server, purposes[one.server])) for one in together
    ) or (trial, None)
    problem = around or problem
    if problem is not None and not fault_of(situation, first, problem).repeated:
        if problem.fatal:
            lose_or_fail(situation, together, first, problem)
        return problem
    if problem is not None and _bound_in_vain(situation, attempts[0], problem):
        # Another attempt need not wait for these nodes.
        lose_or_fail(situation, together, first, problem)
        return problem
    if problem is None:
        # Rather the one that has no pod: the time that they have is the same.
        without = (
            one for one in together if not server_pods(situation, one.server, purposes[one.server])
        )
        first = next(without, trial)
    never = never_prepared(situation, situation.attempt(first))
    if never is not None:
        # What the cluster did not do in all this time, it will not do for another attempt.
        lose_or_fail(situation, together, first, problem or never, last=True)
    return problem or never


def _most_telling(
    found: Iterable[tuple[Trial, Problem | None]],
) -> tuple[Trial, Problem] | None:
    """Return the problem of trials at the same time that says most: one that is fatal, if any."""
    said = [(trial, problem) for trial, problem in found if problem is not None]
    return min(said, key=lambda one: not one[1].fatal, default=None)


def _repels_servers(situation: Situation, purposes: Collection[str]) -> bool:
    """Return whether a generator that has not ended yet would keep a server from its next node.

    The scheduler reads its wish to be apart both ways, and weighs it like that of a server whose
    nodes rotate: the node of the generator would hardly ever get its turn.
    """
    if situation.spec.nodes is not Nodes.ROTATE or "server" in situation.context.places.nodes:
        return False
    return any(
        pod.trial not in purposes and not pod.ended and not pod.stuck(situation.now)
        for pod in situation.observed.pods_of("generator")
    )


def _bound_in_vain(situation: Situation, attempt: Trial, problem: Problem) -> bool:
    """Return whether a server's pod fits on none of the nodes that it has to go to."""
    places = situation.context.places
    waited = situation.step_seconds(State.RUNNING, attempt.name)
    return (
        problem.reason == "Unschedulable"
        and places.firm
        and "server" in places.nodes
        and waited >= situation.spec.startup_seconds
    )


def rows_come_back(situation: Situation) -> bool:
    """Return whether rows are brought back first, which a server that still ends may change again.

    A generator does it as soon as it runs, and until it ends a server goes on with what it was
    asked for. That of SQLite is a file of each pod's own.
    """
    data = situation.context.scenario.data
    postgres = data.postgres if data and situation.spec.topology.postgres else None
    return postgres is not None and bool(postgres.reset)


def _overlapped_before(situation: Situation) -> bool:
    """Return whether pods of this run have ended too late once: then they may do so again."""
    counted = (
        one for result in situation.observed.results.values() for one in result.lost_attempts
    )
    lost = itertools.chain(situation.run.status.lost_attempts or [], counted)
    return any(one.reason == OVERLAPPED for one in lost)


def generators_alive(situation: Situation, purposes: Collection[str]) -> bool:
    """Return whether a generator of another trial than these may still send requests.

    One whose result was stored as measured has printed it: it has nothing left to send. One whose
    node was lost may be shown as running for as long as the node does not come back: it is waited
    for only where it will soon be done, whatever has become of its node.
    """
    measured = _measured(situation)
    return any(
        pod.trial not in purposes
        and not pod.ended
        and pod.trial not in measured
        and not (pod.stuck(situation.now) and not 0 < _sends_for(situation, pod) <= GRACE_SECONDS)
        for pod in situation.observed.pods_of("generator")
    )


def _measured(situation: Situation) -> set[str]:
    """Return the names of the attempts whose results are stored, with figures."""
    return {
        result.attempt_name
        for result in situation.observed.results.values()
        if result.outcome is TrialOutcome.MEASURED
    }


def _sends_for(situation: Situation, pod: PodView) -> float:
    """Return for how many seconds a pod may still send requests if nobody ends it; 0: for none.

    No load goes on for longer than its Job may.
    """
    drives = pod.component in (Component.GENERATOR, Component.PROFILER)
    if not drives or pod.trial in _measured(situation):
        return 0.0
    spec = situation.spec
    loads = {one.name: spec.load(one.load) for one in situation.trials}
    loads |= {one.name: profile_load(spec.load(one.load)) for one in situation.profiles}
    load = loads.get(trial_of(pod.trial or ""))
    if load is None:
        return math.inf
    return max(0.0, deadline_seconds(situation.context, load) - pod.age(situation.now))


def _beside(situation: Situation, purposes: Collection[str]) -> list[str]:
    """Return the pods of earlier trials beside which a Job is made, in words.

    Their nodes do not answer, so nobody knows what goes on there. An operator that was started anew
    does not even know that they are stuck.
    """
    stuck = (one for one in others_alive(situation, purposes) if one.stuck(situation.now))
    return [f"{SENDS if _sends_for(situation, pod) else STUCK}{pod.name}" for pod in stuck]
