"""Attempts whose generators were started: what has become of them, and whether it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from laptime.api.resources import quantity
from laptime.api.results import TrialOutcome, TrialResult
from laptime.manifests.generator import deadline_seconds
from laptime.manifests.result import result_config_map
from laptime.measure import (
    CUT_SHORT,
    GeneratorError,
    GeneratorResult,
    kept_payload,
    merge_results,
    parse_generator_output,
    trial_result,
)
from laptime.plan import Trial, sent_sessions
from laptime.reconcile.actions import Create
from laptime.reconcile.diagnose import (
    Part,
    Problem,
    not_ready,
    taken_away,
    unexplained,
    without_pod,
)
from laptime.reconcile.stages.generators import (
    INCOMPLETE,
    TIMED_OUT,
    generator_failure,
    generator_lost,
    generator_problem,
    job_failure,
    never_started,
    of_generator,
)
from laptime.reconcile.stages.outcomes import (
    counted_result,
    fault_of,
    lose_or_fail,
    without_partner,
)
from laptime.reconcile.stages.servers import (
    others_alive,
    server_pods,
    server_problem,
    server_replaced,
    server_taken_away,
)
from laptime.reconcile.stages.side_services import fresh_components
from laptime.reconcile.stages.situation import GRACE_SECONDS, Situation
from laptime.reconcile.stages.tiers import tier_trouble
from laptime.reconcile.views import SENDS, STUCK, PodView, WorkloadView

# How long a Job may have no pod before its controller must have lost it.
_POD_MISSING_SECONDS = 15.0
# Times of Kubernetes have whole seconds.
_ROUNDING_SECONDS = 1.0
OVERLAPPED = "PodsOverlapped"


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


def follow_attempts(situation: Situation, together: Sequence[Trial]) -> Problem | None:
    """Store the results once all are there, or why these attempts will have none."""
    seen = {trial: _look(situation, trial) for trial in together}
    over = [(trial, one, one.problem) for trial, one in seen.items() if one.over and one.problem]
    if over:
        # What one of them waited for in vain says less than what kept the other one.
        trial, one, problem = min(over, key=lambda each: each[1].waited)
        goes_on = any(not (other.over or other.measured) for other in seen.values())
        if not (one.waited and goes_on):
            lose_or_fail(situation, together, trial, problem, last=one.last)
        return problem
    results = [(trial, one.measured) for trial, one in seen.items() if one.measured is not None]
    if len(results) == len(seen):
        partner = situation.observed.results.get(together[0].beside or "")
        if partner is not None and partner.figures is None:
            # It was given up for something of this one's that nobody sees any more.
            return without_partner(situation, together[0], partner)
        room = situation.observed.payload_room
        for trial, (result, payload) in results:
            counted = counted_result(situation, trial, result)
            stored = result_config_map(situation.context, counted, payload, room)
            situation.actions.append(Create(stored))
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
            problem = generator_failure(situation, attempt, job, generators, errors)
        if problem is not None:
            # One that did not come ends the others of its Job before their time.
            reasons = {one.reason for one in errors} - set(CUT_SHORT)
            waited = reasons == {INCOMPLETE}
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


def _lost_or_late(
    situation: Situation,
    trial: Trial,
    attempt: Trial,
    job: WorkloadView,
    generators: list[PodView],
) -> _Seen:
    missing = of_generator(
        without_pod("the generator", job, situation.without_resources, situation.now)
    )
    problem = generator_problem(situation, generators) or missing
    wanted, startup = situation.spec.generator.parallelism, situation.spec.startup_seconds
    age = job.age(situation.now)
    deadline = deadline_seconds(situation.context, situation.spec.load(trial.load))
    if job.failed_reason is not None:
        return _Seen(problem or job_failure(job, age >= deadline - GRACE_SECONDS), over=True)
    if age >= deadline + GRACE_SECONDS:
        # The controller of Jobs should have ended it, or no pod of it ever came up.
        begun = any(one.running or one.exit_code for pod in generators for one in pod.containers)
        problem = problem or never_started(situation, generators) or TIMED_OUT
        return _Seen(problem, over=True, last=not begun)
    if len({pod.index for pod in generators}) < wanted and age >= (
        # One that was made is gone; one that was not, a quota or a policy may keep back.
        _POD_MISSING_SECONDS if job.made >= wanted else startup
    ):
        problem = (
            generator_lost("the generator's pod is gone: it was deleted or killed")
            if job.made >= wanted
            else missing or not_ready("the generator", [], startup).of(Part.GENERATOR)
        )
        return _Seen(problem, over=True)
    if problem is not None and (problem.fatal or age >= startup):
        return _Seen(problem, over=True)
    return _Seen(problem or server_problem(situation, trial.server, attempt.name))


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
        trouble = of_generator(taken_away("the generator", generators))
    if trouble is not None:
        return trouble
    problem = server_problem(situation, attempt.server, attempt.name)
    # What is not the server's may still be well before the generator gives up.
    own = problem is not None and not fault_of(situation, attempt, problem).repeated
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
            OVERLAPPED,
            f"{', '.join(pods)} of an earlier trial still ran while {attempt.server} was measured",
        )
    # What had no load was no load to others.
    back = situation.observed.jobs[attempt.name].begun_beside(SENDS) - {pod.name for pod in others}
    if not back:
        return None
    return Problem(
        OVERLAPPED,
        f"{', '.join(sorted(back))} of an earlier trial was gone only while {attempt.server} "
        "was measured: its node had not answered before, and until then it may have sent requests",
    )
