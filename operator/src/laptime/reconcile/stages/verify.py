"""The second stage: a server takes part only after its answers matched the contract."""

from __future__ import annotations

import json

from laptime.api.conditions import Verdict
from laptime.api.status import ConditionStatus, ConditionType, ServerState, State
from laptime.api.text import plain, plain_tree
from laptime.manifests.verifier import verify_job
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import Problem, diagnose
from laptime.reconcile.stages.servers import (
    never_checked,
    run_only,
    server_pods,
    server_problem,
)
from laptime.reconcile.stages.situation import Situation

_SOON_SECONDS = 1.0
_CRASH_SEEN_SECONDS = 5.0
# Through HAProxy a broken connection is a 502 or a 503.
_CRASH_REASONS = ("ConnectionLost", "NotReachable", "TimedOut", "WrongStatus")


def verify(situation: Situation) -> Decision | None:
    """Verify one server after the other; None when each one is verified or out."""
    for server in situation.spec.servers:
        if situation.server_state(server.name) is not ServerState.PENDING:
            continue
        problem = _verify_one(situation, server.name)
        if situation.server_state(server.name) is not ServerState.PENDING:
            continue
        _say_verified(situation)
        situation.progressing("Verifying", f"checking the answers of {server.name}", problem)
        return situation.decision(State.VERIFYING, requeue_seconds=_SOON_SECONDS)
    _say_verified(situation)
    return None


def _verify_one(situation: Situation, server: str) -> Problem | None:
    """Take one server a step further; return what is wrong with it so far."""
    job_name = f"{situation.run.name}-verify-{server}"
    verdict, verifier_problem = _read_verdict(situation, job_name, server)
    problem = server_problem(situation, server, job_name) or never_checked(situation, server)
    if verdict is not None and verdict.get("ok"):
        pods = server_pods(situation, server, job_name)
        situation.set_server(server, ServerState.VERIFIED, image=pods[-1].image if pods else None)
        return None
    if problem is not None and problem.fatal:
        return _refuse(situation, server, job_name, problem)
    if verdict is not None and problem is None and _may_have_crashed(situation, server, verdict):
        return None
    if verdict is not None:
        # A server that crashes gives no answers: its own problem says more than that.
        wrong = Problem(
            str(verdict.get("reason") or "WrongAnswer"),
            f"server {server}: {verdict.get('message') or 'its answers are not right'}",
        )
        return _refuse(situation, server, job_name, problem or wrong)
    if verifier_problem is not None and verifier_problem.fatal:
        return _refuse(situation, server, job_name, problem or verifier_problem)
    settled = run_only(situation, server, job_name)
    if settled and situation.tiers_ready and job_name not in situation.observed.jobs:
        situation.actions.append(
            Create(verify_job(situation.context, situation.spec.server(server)))
        )
    return problem or verifier_problem


def _may_have_crashed(situation: Situation, server: str, verdict: dict[str, object]) -> bool:
    """Whether a server that stopped answering may be about to say why.

    The kubelet reports the end of a container up to some seconds after the connection broke.
    """
    if verdict.get("reason") not in _CRASH_REASONS:
        return False
    ends = [
        container.ended_at
        for pod in situation.observed.pods_of("verifier", server=server)
        for container in pod.containers
        if container.ended_at is not None
    ]
    return bool(ends) and (situation.now - max(ends)).total_seconds() < _CRASH_SEEN_SECONDS


def _refuse(situation: Situation, server: str, job_name: str, problem: Problem) -> Problem:
    situation.set_server(server, ServerState.FAILED, problem)
    if job_name in situation.observed.jobs:
        situation.actions.append(Delete("Job", job_name))
    return problem


def _read_verdict(
    situation: Situation, job_name: str, server: str
) -> tuple[dict[str, object] | None, Problem | None]:
    """Return what the verifier said, or what is wrong with the verifier itself."""
    job = situation.observed.jobs.get(job_name)
    if job is None:
        return None, None
    what = f"the verifier of {server}"
    pods = situation.observed.pods_of("verifier", server=server)
    for pod in pods:
        for container in pod.containers:
            if container.exit_code == 0 and container.exit_message:
                verdict = _parse(container.exit_message)
                if verdict is not None:
                    return verdict, None
    problem = diagnose(what, pods, situation.now)
    age = (situation.now - job.created).total_seconds()
    if job.failed_reason is not None:
        said = problem.message if problem else f"{job.failed_reason}: {job.failed_message}"
        ended = [c for pod in pods for c in pod.containers if c.exit_code]
        words = (
            f"; it said: {plain(ended[-1].exit_message.strip()[-300:])}"
            if (ended and ended[-1].exit_message)
            else ""
        )
        return None, Problem("VerifierFailed", f"{what} failed: {said}{words}", fatal=True)
    # Its pod has as long to start as a server has; once it runs, it ends by itself.
    started = any(container.running for pod in pods for container in pod.containers)
    if age >= situation.spec.startup_seconds and not started:
        said = problem.message if problem else "its pod did not start"
        return None, Problem("VerifierFailed", f"{what} failed: {said}", fatal=True)
    return None, problem


def _parse(text: str) -> dict[str, object] | None:
    try:
        parsed = plain_tree(json.loads(text.strip().split("\n")[-1]))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) and "ok" in parsed else None


def _say_verified(situation: Situation) -> None:
    states = {s.name: situation.server_state(s.name) for s in situation.spec.servers}
    failed = [name for name, state in states.items() if state is ServerState.FAILED]
    pending = [name for name, state in states.items() if state is ServerState.PENDING]
    if failed:
        status, reason = ConditionStatus.FALSE, situation.server_reason(failed[0])
        message = "; ".join(situation.server_message(name) for name in failed)
    elif pending:
        status, reason = ConditionStatus.UNKNOWN, "Verifying"
        message = f"not checked yet: {', '.join(pending)}"
    else:
        status, reason = ConditionStatus.TRUE, "AnswersMatch"
        message = "every server gave the answers of the scenario's contract"
    situation.say(Verdict(ConditionType.SERVERS_VERIFIED, status, reason, message))
