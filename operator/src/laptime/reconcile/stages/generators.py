"""Generators that have no result: why, as far as anybody says."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.measure import CUT_SHORT, GeneratorError
from laptime.plan import Trial
from laptime.reconcile.diagnose import Part, Problem, diagnose, late
from laptime.reconcile.stages.servers import server_pods
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView, WorkloadView

# SIGKILL, SIGTERM, and what k6 makes of SIGTERM and SIGINT.
_KILLED_CODES = (137, 143, 105)
# So long after a generator's end its node may be late with the last lines of its log.
_LATE_LOG_SECONDS = 5.0
TIMED_OUT = Problem(
    "GeneratorTimedOut",
    "the generator took longer than this load ever should: it was ended",
    part=Part.GENERATOR,
)
INCOMPLETE = "GeneratorsIncomplete"


def generator_failure(
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
    said.sort(key=lambda one: one.reason == INCOMPLETE)
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
        generator_problem(situation, generators)
        or (_reported(said[0]) if said else None)
        or _killed(generators)
        or _log_lost(generators, errors)
        or _reported(errors[0])
    )


def generator_problem(situation: Situation, generators: list[PodView]) -> Problem | None:
    """Return what is wrong with the first generator that anything is wrong with."""
    problems = (diagnose("the generator", [pod], situation.now) for pod in generators)
    return of_generator(next((problem for problem in problems if problem is not None), None))


def never_started(situation: Situation, generators: list[PodView]) -> Problem | None:
    """Return why generators did not come up in time; None where nobody says."""
    limit = situation.spec.startup_seconds
    return of_generator(
        late("the generator", generators, situation.observed.kubelets, limit, situation.now)
    )


def of_generator(problem: Problem | None) -> Problem | None:
    """Return a problem as one of the generator, unless it is one of the image of its script."""
    return problem if problem is None or problem.part is Part.SCRIPT else problem.of(Part.GENERATOR)


def job_failure(job: WorkloadView, overdue: bool) -> Problem:
    """Return why a Job was ended; `overdue`: by our own clock it had all the time it may have."""
    # Jobs are ended by the time of day, which is set, and jumps where machines slept.
    if job.failed_reason == "DeadlineExceeded" and overdue:
        return TIMED_OUT
    return generator_lost(
        f"the generator's pod was killed or lost before it had a result ({job.failed_reason}: "
        f"{job.failed_message})"
    )


def generator_lost(message: str) -> Problem:
    """Return the problem of a generator that was lost by no fault of its own."""
    return Problem("GeneratorLost", message, part=Part.GENERATOR)


def _reported(error: GeneratorError) -> Problem:
    if error.reason == INCOMPLETE:
        return generator_lost(f"a generator was lost: {error.message}")
    text = f"the generator failed: {error.message}"
    return Problem(error.reason, text, part=Part.GENERATOR)


def _killed(generators: list[PodView]) -> Problem | None:
    """Return the problem of a generator that somebody ended before it had a result."""
    codes = [one.exit_code for pod in generators for one in pod.own]
    if any(pod.deleting for pod in generators) or any(code in _KILLED_CODES for code in codes):
        return generator_lost("the generator's pod was deleted or killed before it had a result")
    return None


def _log_lost(generators: Sequence[PodView], errors: Sequence[GeneratorError]) -> Problem | None:
    """Return the problem of a generator that ended well and whose result is not in its log.

    It prints that before it ends; a container runtime that is killed takes the last lines along.
    """
    ends = [one.exit_code for pod in generators for one in pod.own]
    if errors[0].reason not in CUT_SHORT or set(ends) != {0}:
        return None
    text = f"the log of the generator is not whole, although it ended well: {errors[0].message}"
    return Problem("LogMissing", text, part=Part.GENERATOR)
