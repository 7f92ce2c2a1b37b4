"""The stage after the trials: the profiles that the run asks for, one after the other.

What goes wrong here fails no run, and nothing is tried twice: a profile that could not be taken is
stored as such, with the reason.
"""

from __future__ import annotations

from laptime.api.conditions import Verdict
from laptime.api.profile import Profile
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.generator import deadline_seconds
from laptime.manifests.profiler import profile_job
from laptime.manifests.result import profile_config_map
from laptime.measure import ProfileProblem, parse_profile_output
from laptime.plan import Trial, profile_load
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import Problem, diagnose
from laptime.reconcile.stages.servers import (
    never_prepared,
    others_alive,
    run_only,
    server_problem,
)
from laptime.reconcile.stages.side_services import side_problem
from laptime.reconcile.stages.situation import GRACE_SECONDS, Situation
from laptime.reconcile.stages.trials import generators_alive, rows_come_back
from laptime.reconcile.views import WorkloadView
from laptime.report.flamegraph import profile_picture

_SOON_SECONDS = 1.0
# How long a Job may have no pod before its controller must have lost it.
_POD_MISSING_SECONDS = 15.0


def run_profiles(situation: Situation) -> Decision | None:
    """Take the next profile that is not stored; None when there is none left."""
    for name in situation.observed.profiles:
        job = situation.observed.jobs.get(name)
        if job is not None and not job.deleting:
            # The load goes on until then, but nobody needs it any more.
            situation.actions.append(Delete("Job", name))
    left = situation.profiles_left()
    if not left:
        return None
    profile = left[0]
    job = situation.observed.jobs.get(profile.name)
    problem = _prepare(situation, profile) if job is None else _follow(situation, profile, job)
    where = f"{profile.server} under {profile.load}"
    situation.progressing("Profiling", f"sampling the CPU of {where}", problem)
    return situation.decision(
        State.RUNNING, requeue_seconds=_SOON_SECONDS, current_trial=profile.name
    )


def _prepare(situation: Situation, profile: Trial) -> Problem | None:
    """Bring up a fresh pod of the server; put it under load when nothing else is alive."""
    settled = run_only(situation, {profile.server: profile.name})
    if (
        settled
        and situation.tiers_ready
        and not generators_alive(situation, [profile.name])
        and not _others_alive(situation, profile)
    ):
        situation.actions.append(Create(profile_job(situation.context, profile)))
        return None
    late = never_prepared(situation, profile)
    problem = (
        situation.tiers_lost
        or side_problem(situation, profile.name)
        or server_problem(situation, profile.server, profile.name)
        or late
    )
    if problem is not None and (problem.fatal or situation.tiers_lost or late):
        _store(situation, profile, problem)
    return problem


def _others_alive(situation: Situation, profile: Trial) -> bool:
    """Return whether an earlier profile's generator may still send requests.

    Or, where rows are brought back first, whether anything may still change them after that.
    """
    others = [
        pod
        for pod in situation.observed.pods_of("profiler")
        if pod.trial != profile.name and pod.phase not in ("Succeeded", "Failed")
    ]
    if rows_come_back(situation):
        others += others_alive(situation, [profile.name])
    return not all(pod.stuck(situation.now) for pod in others)


def _follow(situation: Situation, profile: Trial, job: WorkloadView) -> Problem | None:
    """Store the profile once it is there, or why it will not come."""
    output = situation.observed.profile_outputs.get(profile.name)
    if output is not None:
        taken = parse_profile_output(output)
        if isinstance(taken, ProfileProblem):
            _store(situation, profile, Problem(taken.reason, taken.message))
            return None
        _store_taken(situation, profile, taken)
        return None
    problem = server_problem(situation, profile.server, profile.name)
    if problem is not None and problem.fatal:
        _store(situation, profile, problem)
        return problem
    pods = situation.observed.pods_of("profiler", trial=profile.name)
    problem = diagnose("the profiler", pods, situation.now)
    age = job.age(situation.now)
    load = profile_load(situation.spec.load(profile.load))
    longest = deadline_seconds(situation.context, load) + GRACE_SECONDS
    lost = (
        job.failed_reason is not None
        or (not pods and age >= _POD_MISSING_SECONDS)
        or age >= longest
    )
    late = age >= situation.spec.startup_seconds
    if lost or (problem is not None and (problem.fatal or late)):
        gone = f"its Job ended without a profile ({job.failed_reason or 'its pod is gone'})"
        _store(situation, profile, problem or Problem("ProfilerLost", gone))
    return problem


def _store_taken(situation: Situation, profile: Trial, folded: str) -> None:
    stored = Profile(profile.server, profile.load, folded)
    try:
        picture = profile_picture(stored)
    except ValueError as error:
        _store(situation, profile, Problem("ProfileNotUnderstood", str(error)))
        return
    manifest = profile_config_map(situation.context, profile.name, stored, picture)
    situation.actions.append(Create(manifest))


def _store(situation: Situation, profile: Trial, problem: Problem) -> None:
    text = f"{problem.reason}: {problem.message}"
    stored = Profile(profile.server, profile.load, problem=text)
    manifest = profile_config_map(situation.context, profile.name, stored)
    situation.actions.append(Create(manifest))


def say_profiled(situation: Situation) -> None:
    """Say in `Profiled` whether each profile was taken, where the run asks for any."""
    if not situation.profiles:
        return
    stored = situation.observed.profiles
    missing = {
        profile.server: stored.get(profile.name, "it was not taken: the server or the run failed")
        for profile in situation.profiles
        if stored.get(profile.name) != ""
    }
    if missing:
        verdict = Verdict(
            ConditionType.PROFILED,
            ConditionStatus.FALSE,
            "ProfilesMissing",
            "; ".join(f"no profile of {server}: {why}" for server, why in missing.items()),
        )
    else:
        verdict = Verdict(
            ConditionType.PROFILED,
            ConditionStatus.TRUE,
            "Profiled",
            f"flame graphs: kubectl laptime report {situation.run.name} --profiles .",
        )
    situation.say(verdict)
