"""The third stage: the trials, one after the other, each result stored before the next begins.

Two that are measured at the same time (`pairing: duet`) are prepared, followed, stored and lost
together: what one of them measured alone says nothing of the two.

What was lost by no fault of the server is tried again, as an attempt with a name of its own. The
attempts that were lost stand in the status until the trial's result is stored, which has them then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from laptime.analysis import wording
from laptime.api import doubts
from laptime.api.attempts import MOST_ATTEMPTS, Fault, LostAttempt, attempt_name, trial_of
from laptime.api.images import AND
from laptime.api.placement import Nodes
from laptime.api.resources import quantity
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.status import State
from laptime.manifests.generator import deadline_seconds, trial_job
from laptime.manifests.objects import Component
from laptime.manifests.result import result_config_map
from laptime.manifests.script_image import SCRIPT_CONTAINER
from laptime.manifests.sql_image import sql_place
from laptime.measure import (
    CUT_SHORT,
    SCRIPT,
    GeneratorError,
    GeneratorResult,
    Judgement,
    doubted,
    failed_trial,
    judge_pods,
    kept_payload,
    merge_results,
    parse_generator_output,
    trial_result,
)
from laptime.plan import Trial, profile_load, sent_sessions
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import (
    Part,
    Problem,
    diagnose,
    late,
    not_ready,
    taken_away,
    unexplained,
    without_pod,
)
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.stages.readings import store_readings
from laptime.reconcile.stages.servers import (
    never_prepared,
    others_alive,
    run_only,
    server_pods,
    server_problem,
    server_replaced,
    server_taken_away,
    with_pods,
)
from laptime.reconcile.stages.side_services import fresh_components, side_problem
from laptime.reconcile.stages.situation import GRACE_SECONDS, Situation
from laptime.reconcile.stages.tier_cpu import as_sized
from laptime.reconcile.stages.tiers import tier_names, tier_titles, tier_trouble
from laptime.reconcile.stages.verdicts import schema_in, verdict_in
from laptime.reconcile.views import (
    SENDS,
    STUCK,
    PodView,
    WorkloadView,
    format_time,
    parse_time,
)

_SOON_SECONDS = 1.0
_MEASURING_SECONDS = 5.0
# SIGKILL, SIGTERM, and what k6 makes of SIGTERM and SIGINT.
_KILLED_CODES = (137, 143, 105)
# So long after a generator's end its node may be late with the last lines of its log.
_LATE_LOG_SECONDS = 5.0
# How long a Job may have no pod before its controller must have lost it.
_POD_MISSING_SECONDS = 15.0
# How long the second and the third attempt wait, for what was wrong to pass.
_BACK_OFF_SECONDS = (5.0, 30.0)
# A kubelet needs some 0.3 s to end a pod, and up to 2.5 s for one that got ready just before.
_LATE_END_SECONDS = 4.0
# Times of Kubernetes have whole seconds.
_ROUNDING_SECONDS = 1.0
_TIMED_OUT = Problem(
    "GeneratorTimedOut",
    "the generator took longer than this load ever should: it was ended",
    part=Part.GENERATOR,
)
_MOST_LOST = 2
# Of servers that were never measured, where others are or may be.
_MOST_UNKNOWN_LOST = 3
_OVERLAPPED = "PodsOverlapped"
_INCOMPLETE = "GeneratorsIncomplete"


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
        problem = _without_partner(situation, trial, partner)
    elif begun:
        problem = _follow(situation, together)
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


def _without_partner(
    situation: Situation, trial: Trial, partner: TrialResult, lost: Problem | None = None
) -> Problem:
    """Give up a trial whose partner has a result, and that has none of the same time."""
    if partner.figures is None:
        failed = Problem(partner.reason or "Failed", partner.message or "")
        problem = _of_partner(partner.server, failed)
    else:
        text = f"{partner.server} has its result, and cannot be measured at the same time again"
        if lost is not None:
            text += f"; this one was lost: {lost.reason}: {lost.message}"
        problem = Problem("PartnerMissing", text)
    _store_failure(situation, trial, problem, Fault.PARTNER)
    return problem


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
        _lose_or_fail(situation, together, trial, around)
        return around
    first, problem = _most_telling(
        (one, server_problem(situation, one.server, purposes[one.server])) for one in together
    ) or (trial, None)
    problem = around or problem
    if problem is not None and not _fault(situation, first, problem).repeated:
        if problem.fatal:
            _lose_or_fail(situation, together, first, problem)
        return problem
    if problem is not None and _bound_in_vain(situation, attempts[0], problem):
        # Another attempt need not wait for these nodes.
        _lose_or_fail(situation, together, first, problem)
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
        _lose_or_fail(situation, together, first, problem or never, last=True)
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
    return any(one.reason == _OVERLAPPED for one in lost)


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


@dataclass(frozen=True)
class _Seen:
    """What has become of an attempt whose generators were started; nothing said: it goes on."""

    problem: Problem | None = None
    over: bool = False
    """Whether it measured nothing, and will not any more."""
    last: bool = False
    """Whether no other attempt would do better."""
    waited: bool = False
    """Whether its generators waited for others in vain, which says little of why."""
    measured: tuple[TrialResult, str] | None = None
    """The result with what is kept beside it."""


def _follow(situation: Situation, together: Sequence[Trial]) -> Problem | None:
    """Store the results once all are there, or why these attempts will have none."""
    seen = {trial: _look(situation, trial) for trial in together}
    over = [(trial, one, one.problem) for trial, one in seen.items() if one.over and one.problem]
    if over:
        # What one of them waited for in vain says less than what kept the other one.
        trial, one, problem = min(over, key=lambda each: each[1].waited)
        goes_on = any(not (other.over or other.measured) for other in seen.values())
        if not (one.waited and goes_on):
            _lose_or_fail(situation, together, trial, problem, last=one.last)
        return problem
    results = [(trial, one.measured) for trial, one in seen.items() if one.measured is not None]
    if len(results) == len(seen):
        partner = situation.observed.results.get(together[0].beside or "")
        if partner is not None and partner.figures is None:
            # It was given up for something of this one's that nobody sees any more.
            return _without_partner(situation, together[0], partner)
        for trial, (result, payload) in results:
            counted = _counted(situation, trial, result)
            situation.actions.append(Create(result_config_map(situation.context, counted, payload)))
        return None
    return next((one.problem for one in seen.values() if one.problem), None)


def _look(situation: Situation, trial: Trial) -> _Seen:
    """Return what has become of the attempt of a trial that is made now."""
    attempt = situation.attempt(trial)
    job = situation.observed.jobs[attempt.name]
    generators = situation.observed.pods_of("generator", trial=attempt.name)
    problem = _disturbance(situation, attempt, job, generators)
    servers = server_pods(situation, attempt.server, attempt.name)
    if problem is not None and problem.reason == "Crashed" and unexplained(servers, situation.now):
        # A crash is the server's, the end of its container runtime is not.
        return _Seen(Problem(problem.reason, "waiting for what the kubelet says"))
    if problem is not None:
        return _Seen(problem, over=True)
    outputs = situation.observed.outputs.get(attempt.name, {})
    parsed = [parse_generator_output(outputs[index]) for index in sorted(outputs)]
    errors = [one for one in parsed if isinstance(one, GeneratorError)]
    if errors:
        problem = server_problem(situation, trial.server, attempt.name)
        if problem is None:
            problem = _failure(situation, attempt, job, generators, errors)
        if problem is not None:
            # One that did not come ends the others of its Job before their time.
            reasons = {one.reason for one in errors} - set(CUT_SHORT)
            waited = reasons == {_INCOMPLETE}
            return _Seen(problem, over=True, waited=waited)
        return _Seen(Problem(errors[0].reason, "waiting for what the kubelet says"))
    results = [one for one in parsed if isinstance(one, GeneratorResult)]
    if len(results) < situation.spec.generator.parallelism:
        return _lost_or_late(situation, trial, attempt, job, generators)
    merged = merge_results(results)
    if isinstance(merged, GeneratorError):
        return _Seen(Problem(merged.reason, merged.message, part=Part.GENERATOR), over=True)
    load = situation.spec.load(trial.load)
    resources = situation.spec.generator.resources
    result = trial_result(
        attempt,
        merged,
        load,
        situation.context.scenario.requests,
        quantity(resources.cpu) if resources and resources.cpu else None,
        [] if load.script else sent_sessions(load, situation.context.scenario),
    )
    problem = _failed_or_replaced(situation, attempt, result)
    if problem is not None:
        return _Seen(problem, over=True)
    return _Seen(measured=(result, kept_payload(merged)))


def _counted(situation: Situation, trial: Trial, result: TrialResult) -> TrialResult:
    """Return the result of an attempt as that of its trial, with the attempts before it."""
    lost = situation.lost_attempts(trial.name)
    attempt = situation.attempt(trial)
    pods = _pods(situation, attempt)
    if result.figures is not None:
        result = doubted(result, _what_was_made_of_them(situation, attempt, pods))
        result = doubted(result, _of_its_tag(situation, attempt.server))
        result = doubted(result, _still_driven(situation, attempt))
    return result.model_copy(
        update={
            "trial": trial.name,
            "retry": situation.run.status.retries or 0,
            "attempt": len(lost) + 1,
            "lost_attempts": lost,
            "beside": attempt.beside,
            **_what_ran_where(situation, attempt, pods),
            "database_schema": result.database_schema or _schema_of_script(pods["generator"]),
        }
    )


def _schema_of_script(generators: Sequence[PodView]) -> str | None:
    """Return the schema that what waits for the server of a script has found; None: it says none.

    The script itself is given no database.
    """
    found = (schema_in(verdict_in([pod])) for pod in generators)
    return next((schema for schema in found if schema is not None), None)


def _pods(situation: Situation, attempt: Trial) -> dict[str, list[PodView]]:
    """Return the pods of an attempt, by part."""
    return {
        "server": server_pods(situation, attempt.server, attempt.name),
        "generator": situation.observed.pods_of("generator", trial=attempt.name),
        **{name: situation.observed.pods_of(name)[-1:] for name in tier_names(situation)},
    }


def _what_was_made_of_them(
    situation: Situation, attempt: Trial, pods: Mapping[str, Sequence[PodView]]
) -> Judgement:
    """Return the doubts that follow from what the cluster has changed of the run's own pods."""
    titles = {"generator": "the generator", **tier_titles(situation)}
    if situation.spec.server(attempt.server).deployed:
        titles["server"] = f"server {attempt.server}"
    return judge_pods(
        (titles[part], as_sized(situation, attempt.server, part, pod))
        for part, of in pods.items()
        if part in titles
        for pod in of
    )


def _of_its_tag(situation: Situation, server: str) -> Judgement:
    """Return the doubt that a server may be an older image of its name than its registry has."""
    _, unknown = situation.image_of(server)
    image = situation.context.images.of(situation.spec.server(server)) if unknown else None
    return Judgement.of([doubts.TAG_UNKNOWN.says(image=image)] if image else [])


def _still_driven(situation: Situation, attempt: Trial) -> Judgement:
    """Return the doubt that a generator of an earlier trial may have sent requests as well."""
    sends = situation.observed.jobs[attempt.name].begun_beside(SENDS)
    nodes = sorted({pod.node or "?" for pod in situation.observed.pods if pod.name in sends})
    return Judgement.of([doubts.STILL_DRIVEN.says(node=" and ".join(nodes))] if nodes else [])


def _what_ran_where(
    situation: Situation, attempt: Trial, pods: Mapping[str, Sequence[PodView]]
) -> dict[str, object]:
    """Return images and nodes of an attempt, by part; several pods of one may differ."""
    said = {part: {pod.image_id for pod in of if pod.image_id} for part, of in pods.items()}
    if not situation.spec.server(attempt.server).deployed:
        # Which of its containers serves nobody knows.
        behind = (one for pod in pods["server"] for one in pod.containers)
        said["server"] = {one.image_id for one in behind if one.image_id}
    said[SCRIPT] = {
        one.image_id
        for pod in pods["generator"]
        for one in pod.containers
        if one.name == SCRIPT_CONTAINER and one.image_id
    }
    for one in (one for pod in pods.get("postgres", []) for one in pod.containers):
        if one.image_id and (place := sql_place(one.name)):
            said[place] = {one.image_id}
    nodes = {part: sorted({pod.node for pod in of if pod.node}) for part, of in pods.items()}
    # Two here and one there is not one here and two there. The first one's clock tells the window.
    latest = {pod.index: pod.node for pod in pods["generator"]}
    nodes["generator"] = [node for _, node in sorted(latest.items()) if node]
    return {
        "images": {part: AND.join(sorted(images)) for part, images in said.items() if images},
        "nodes": {part: names for part, names in nodes.items() if names},
    }


def _disturbance(
    situation: Situation, attempt: Trial, job: WorkloadView, generators: Sequence[PodView]
) -> Problem | None:
    """Return what makes the figures of an attempt worthless: what it rests on went down.

    The tiers come first: what a server does without its database is not its own doing.
    """
    trouble = (
        tier_trouble(situation, job)
        or server_taken_away(situation, attempt.server, attempt.name)
        or server_replaced(situation, attempt.server, attempt.name, job)
    )
    if trouble is None and not job.deleting:
        trouble = _of_generator(taken_away("the generator", generators))
    if trouble is not None:
        return trouble
    problem = server_problem(situation, attempt.server, attempt.name)
    # What is not the server's may still be well before the generator gives up.
    own = problem is not None and not _fault(situation, attempt, problem).repeated
    if problem is not None and problem.fatal and own:
        return problem
    pods = server_pods(situation, attempt.server, attempt.name)
    # Those of a Service had a life before the run: what changed since is known already.
    if situation.spec.server(attempt.server).deployed and any(pod.restarts for pod in pods):
        return problem or Problem(
            "ServerRestarted",
            f"server {attempt.server} was started again while it was measured",
        )
    return _overlap(situation, attempt, generators)


def _overlap(situation: Situation, attempt: Trial, generators: Sequence[PodView]) -> Problem | None:
    """Return which pods of earlier trials still run although the measured phase may have begun."""
    pods = [*server_pods(situation, attempt.server, attempt.name), *generators]
    # By the clock that says so earlier, the node's or ours: no overlap may be missed.
    begun = [
        pod.running_since and min(pod.running_since, pod.known_running_since or pod.running_since)
        for pod in pods
    ]
    known = [time for time in begun if time is not None]
    if len(known) < len(begun) or len(generators) < situation.spec.generator.parallelism:
        return None
    warmup = situation.spec.load(attempt.load).warmup_seconds + _ROUNDING_SECONDS
    if situation.now < max(known) + timedelta(seconds=warmup):
        return None
    return _overlapped(situation, attempt)


def _overlapped(situation: Situation, attempt: Trial) -> Problem | None:
    # On a lost node nobody knows; a generator whose result was printed sends nothing any more.
    components = ("server", *fresh_components(situation))
    beside = situation.observed.jobs[attempt.name].begun_beside(SENDS, STUCK)
    others = others_alive(situation, (attempt.name, attempt.beside or attempt.name))
    pods = [
        pod.name
        for pod in others
        if pod.component in components and pod.name not in beside and not pod.stuck(situation.now)
    ]
    if pods:
        return Problem(
            _OVERLAPPED,
            f"{', '.join(pods)} of an earlier trial still ran while {attempt.server} was measured",
        )
    # What had no load was no load to others.
    back = situation.observed.jobs[attempt.name].begun_beside(SENDS) - {pod.name for pod in others}
    if not back:
        return None
    return Problem(
        _OVERLAPPED,
        f"{', '.join(sorted(back))} of an earlier trial was gone only while {attempt.server} "
        "was measured: its node had not answered before, and until then it may have sent requests",
    )


def _failed_or_replaced(
    situation: Situation, attempt: Trial, result: TrialResult
) -> Problem | None:
    """Return why figures that came do not count: there are none, or not of one pod's work alone.

    A pod that was deleted by force is gone at once, and its Deployment may be late with another.
    """
    if result.outcome is TrialOutcome.FAILED:
        return Problem(result.reason or "ResultMissing", result.message or "", part=Part.GENERATOR)
    if server_pods(situation, attempt.server, attempt.name):
        return _overlapped(situation, attempt)
    text = f"the pod of server {attempt.server} was replaced while it was measured"
    return Problem("PodDeleted", text)


def _lost_or_late(
    situation: Situation,
    trial: Trial,
    attempt: Trial,
    job: WorkloadView,
    generators: list[PodView],
) -> _Seen:
    missing = _of_generator(
        without_pod("the generator", job, situation.without_resources, situation.now)
    )
    problem = _diagnosis(situation, generators) or missing
    wanted, startup = situation.spec.generator.parallelism, situation.spec.startup_seconds
    age = job.age(situation.now)
    deadline = deadline_seconds(situation.context, situation.spec.load(trial.load))
    if job.failed_reason is not None:
        return _Seen(problem or _job_failure(job, age >= deadline - GRACE_SECONDS), over=True)
    if age >= deadline + GRACE_SECONDS:
        # The controller of Jobs should have ended it, or no pod of it ever came up.
        begun = any(one.running or one.exit_code for pod in generators for one in pod.containers)
        problem = problem or _never_started(situation, generators) or _TIMED_OUT
        return _Seen(problem, over=True, last=not begun)
    if len({pod.index for pod in generators}) < wanted and age >= (
        # One that was made is gone; one that was not, a quota or a policy may keep back.
        _POD_MISSING_SECONDS if job.made >= wanted else startup
    ):
        problem = (
            _lost("the generator's pod is gone: it was deleted or killed")
            if job.made >= wanted
            else missing or not_ready("the generator", [], startup).of(Part.GENERATOR)
        )
        return _Seen(problem, over=True)
    if problem is not None and (problem.fatal or age >= startup):
        return _Seen(problem, over=True)
    return _Seen(problem or server_problem(situation, trial.server, attempt.name))


def _diagnosis(situation: Situation, generators: list[PodView]) -> Problem | None:
    """Return what is wrong with the first generator that anything is wrong with."""
    problems = (diagnose("the generator", [pod], situation.now) for pod in generators)
    return _of_generator(next((problem for problem in problems if problem is not None), None))


def _never_started(situation: Situation, generators: list[PodView]) -> Problem | None:
    limit = situation.spec.startup_seconds
    return _of_generator(
        late("the generator", generators, situation.observed.kubelets, limit, situation.now)
    )


def _of_generator(problem: Problem | None) -> Problem | None:
    return problem if problem is None or problem.part is Part.SCRIPT else problem.of(Part.GENERATOR)


def _failure(
    situation: Situation,
    attempt: Trial,
    job: WorkloadView,
    generators: list[PodView],
    errors: list[GeneratorError],
) -> Problem | None:
    """Return why generators failed; None while it is not known yet whose fault it was.

    When one of several fails, its Job ends the others, so what one said of itself comes first.
    """
    said = [one for one in errors if one.reason not in CUT_SHORT]
    # Those who waited for another one say less than that one.
    said.sort(key=lambda one: one.reason == _INCOMPLETE)
    ended = [c.ended_at for pod in generators for c in pod.containers if c.ended_at is not None]
    waited = (situation.now - max(ended, default=job.created)).total_seconds()
    if any(one.reason == "TargetNotReachable" for one in said):
        pods = server_pods(situation, attempt.server, attempt.name)
        if pods and not pods[-1].ready and waited < situation.patience_seconds:
            # Its kubelet will say so in a moment, or be found to stand still.
            return None
    if not said and waited < _LATE_LOG_SECONDS and _log_lost(generators, errors):
        return None
    return (
        _diagnosis(situation, generators)
        or (_reported(said[0]) if said else None)
        or _killed(generators)
        or _log_lost(generators, errors)
        or _reported(errors[0])
    )


def _reported(error: GeneratorError) -> Problem:
    if error.reason == _INCOMPLETE:
        return _lost(f"a generator was lost: {error.message}")
    text = f"the generator failed: {error.message}"
    return Problem(error.reason, text, part=Part.GENERATOR)


def _killed(generators: list[PodView]) -> Problem | None:
    """Return the problem of a generator that somebody ended before it had a result."""
    codes = [one.exit_code for pod in generators for one in pod.containers]
    if any(pod.deleting for pod in generators) or any(code in _KILLED_CODES for code in codes):
        return _lost("the generator's pod was deleted or killed before it had a result")
    return None


def _log_lost(generators: Sequence[PodView], errors: Sequence[GeneratorError]) -> Problem | None:
    """Return the problem of a generator that ended well and whose result is not in its log.

    It prints that before it ends; a container runtime that is killed takes the last lines along.
    """
    ends = [one.exit_code for pod in generators for one in pod.containers]
    if errors[0].reason not in CUT_SHORT or set(ends) != {0}:
        return None
    text = f"the log of the generator is not whole, although it ended well: {errors[0].message}"
    return Problem("LogMissing", text, part=Part.GENERATOR)


def _job_failure(job: WorkloadView, overdue: bool) -> Problem:
    # Jobs are ended by the time of day, which is set, and jumps where machines slept.
    if job.failed_reason == "DeadlineExceeded" and overdue:
        return _TIMED_OUT
    return _lost(
        f"the generator's pod was killed or lost before it had a result ({job.failed_reason}: "
        f"{job.failed_message})"
    )


def _lost(message: str) -> Problem:
    return Problem("GeneratorLost", message, part=Part.GENERATOR)


def _fault(situation: Situation, trial: Trial, problem: Problem) -> Fault:
    # An image of a script that was there once may be away for a while; a name that is none is not.
    once_well = problem.part is not Part.SCRIPT or any(
        one.load == trial.load and SCRIPT in one.images
        for one in situation.observed.results.values()
    )
    load = situation.spec.load(trial.load)
    return whose_fault(problem.reason, problem.part, load, once_well=once_well)


def _lose_or_fail(
    situation: Situation,
    together: Sequence[Trial],
    trial: Trial,
    problem: Problem,
    *,
    last: bool = False,
) -> None:
    """Give the attempts of trials at the same time up, since one of them came to nothing.

    They are made again, unless the server of that `trial` or the run answers for it. Nor is the
    `last` one, after which no other one would do better; nor what cannot be made together again.
    """
    partner = situation.observed.results.get(trial.beside or "")
    if partner is not None and partner.figures is not None:
        # Both were measured, and what became of this one since is not what was measured.
        _without_partner(situation, trial, partner, problem)
        return
    fault = _fault(situation, trial, problem)
    lost = situation.lost_attempts(trial.name)
    alone = trial.beside is not None and len(together) == 1
    again = fault.repeated and len(lost) + 1 < MOST_ATTEMPTS and not last and not alone
    for one in together:
        said = problem if one is trial else _of_partner(trial.server, problem)
        if not again:
            _store_failure(situation, one, said, fault if one is trial else Fault.PARTNER)
            continue
        situation.lose(
            LostAttempt(
                trial=one.name,
                attempt=len(lost) + 1,
                fault=fault if one is trial else Fault.PARTNER,
                reason=said.reason,
                message=said.message[:300],
                lost_at=format_time(situation.now),
            )
        )


def _of_partner(server: str, problem: Problem) -> Problem:
    text = f"{server} was to be measured at the same time: {problem.reason}: "
    return Problem("PartnerFailed", text + problem.message)


def _store_failure(situation: Situation, trial: Trial, problem: Problem, fault: Fault) -> None:
    result = failed_trial(trial, problem.reason, problem.message, fault)
    counted = _counted(situation, trial, result)
    situation.actions.append(Create(result_config_map(situation.context, counted, "")))
