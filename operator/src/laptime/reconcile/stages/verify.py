"""The second stage: a server takes part only after its answers matched the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from laptime.api.conditions import Verdict
from laptime.api.images import AND, bits, comparable
from laptime.api.status import ConditionStatus, ConditionType, ServerState, State
from laptime.api.text import plain
from laptime.manifests.result import answers_config_map, answers_name
from laptime.manifests.verifier import verify_job, verify_name
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import (
    Part,
    Problem,
    diagnose,
    late,
    not_ready,
    taken_away,
    without_pod,
    words_lost,
)
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.stages.servers import (
    never_checked,
    run_only,
    server_pods,
    server_problem,
    server_replaced,
    server_taken_away,
    with_pods,
)
from laptime.reconcile.stages.side_services import reset_again, side_problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.tiers import tier_trouble
from laptime.reconcile.stages.verdicts import schema_in, verdict_in
from laptime.reconcile.views import PodView, WorkloadView

_SOON_SECONDS = 1.0
_CRASH_SEEN_SECONDS = 5.0
# No answer came. So it is of a server that hangs, and of a node that has just come back.
_NO_ANSWER = ("ConnectionLost", "NotReachable", "TimedOut")
# Through HAProxy a broken connection is a 502 or a 503.
_CRASH_REASONS = (*_NO_ANSWER, "WrongStatus")
_RESET_FAILED = "ResetFailed"
_SECRET_MISSING = "SecretMissing"


def verify(situation: Situation) -> Decision | None:
    """Verify one server after the other; None when each one is verified or out."""
    wanted = [one.name for one in situation.spec.servers if situation.image_wanted(one.name)]
    if wanted:
        _say_verified(situation)
        asking = f"asking which image {wanted[0]} is"
        situation.progressing("Verifying", asking, situation.images_problem)
        return situation.decision(State.VERIFYING, requeue_seconds=_SOON_SECONDS)
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
    again = situation.checked_once(server)
    checked = situation.spec.server(server)
    job_name = verify_name(situation.context, checked, again)
    first = situation.observed.jobs.get(verify_name(situation.context, checked))
    if again and first is not None and not first.deleting:
        situation.actions.append(Delete("Job", first.name))
    job = situation.observed.jobs.get(job_name)
    verdict, verifier_problem = _read_verdict(situation, job, server)
    if verdict is not None and verdict.get("ok"):
        if not _answers_kept(situation, server, job):
            return None
        pods = server_pods(situation, server, job_name)
        images = sorted({pod.image for pod in pods if pod.image})
        situation.set_server(
            server, ServerState.VERIFIED, image=AND.join(images) or None, schema=schema_in(verdict)
        )
        if checked.image is not None:
            _know_which(situation, server, pods)
        if job is not None and any(one.live for one in _verifiers(situation, job, server)):
            # What the cluster has put beside it would go on, and count against a quota.
            situation.actions.append(Delete("Job", job_name))
        return None
    problem = (
        side_problem(situation, job_name)
        or server_problem(situation, server, job_name)
        or never_checked(situation, server, job_name)
    )
    if problem is not None and problem.fatal and not _excused(problem):
        if problem.part is Part.TIER:
            # What stands around all servers is no server's own.
            situation.fail(problem)
            return problem
        return _refuse(situation, server, job_name, problem)
    disturbed = _disturbance(situation, server, job) if job is not None else None
    if disturbed is None and verdict is not None:
        said = Problem(*_reason_and_words(verdict, server), part=Part.GENERATOR)
        disturbed = said if _excused(said) else None
        own_databases = situation.spec.topology.own_databases
        if said.reason == _RESET_FAILED and own_databases:
            # What this one has made of its own schema is in no other server's way.
            return _refuse(situation, server, job_name, said)
        if said.reason == _RESET_FAILED:
            # All servers and all trials rest on it.
            situation.fail(said)
            return said
        if disturbed and situation.step_seconds(State.VERIFYING) >= situation.patience_seconds / 2:
            # Earlier than that it is noticed that nothing comes of all these checks.
            situation.fail(disturbed)
            return disturbed
    if situation.step_seconds(State.VERIFYING) >= situation.patience_seconds:
        # Nobody can say whether its answers are right, and that is not its fault.
        hopeless = disturbed or (problem if problem and _excused(problem) else None)
        if hopeless is not None and not hopeless.passes:
            situation.fail(hopeless)
            return hopeless
    if job is not None and disturbed is not None:
        if disturbed.reason == "LogMissing" or verdict is not None or job.failed_reason is not None:
            # It is checked again, by a Job of the same name.
            situation.actions.append(Delete("Job", job_name))
            reset_again(situation, job_name)
        return disturbed
    if verdict is not None and problem is None and _may_have_crashed(situation, server, verdict):
        return None
    if verdict is not None:
        wrong = Problem(*_reason_and_words(verdict, server))
        if wrong.reason == "WrongStatus":
            wrong = replace(wrong, message=wrong.message + _rows_before(situation, server, again))
        if again:
            first_reason = situation.server_reason(server)
            wrong = Problem(wrong.reason, f"{wrong.message} (its first check: {first_reason})")
        elif problem is None and _no_answer(situation, wrong.reason):
            # By a Job of another name, which has a fresh pod of the server, and its own time.
            more = Problem(wrong.reason, f"{wrong.message}; it is checked once more")
            situation.set_server(server, ServerState.PENDING, more)
            return more
        if not _answers_kept(situation, server, job):
            return None
        # A server that crashes gives no answers: its own problem says more than that.
        return _refuse(situation, server, job_name, problem or wrong)
    if verifier_problem is not None and verifier_problem.fatal:
        return _refuse(situation, server, job_name, problem or verifier_problem)
    settled = run_only(situation, {server: job_name})
    if settled and situation.tiers_ready and job is None:
        stale = answers_name(situation.run.name, server)
        if stale in situation.observed.config_maps:
            # Of a check that is made again.
            situation.actions.append(Delete("ConfigMap", stale))
            return problem
        job_of_it = verify_job(situation.context, checked, again)
        situation.actions.append(Create(with_pods(situation, server, job_name, job_of_it)))
    return problem or verifier_problem


def _know_which(situation: Situation, server: str, pods: Sequence[PodView]) -> None:
    """Record which image was checked, and whether it is another one than was found before."""
    known, unknown = situation.image_of(server)
    ran = AND.join(sorted({pod.image_id for pod in pods if pod.image_id})) or known
    if known and ran and comparable(known, ran) and bits(known) != bits(ran):
        unknown = f"the node on which it was checked has {ran}, and another node has {known}"
    situation.remember_image(server, ran, unknown)


def _no_answer(situation: Situation, reason: str) -> bool:
    behind_proxy = situation.spec.topology.haproxy is not None
    return reason in (_CRASH_REASONS if behind_proxy else _NO_ANSWER)


def _answers_kept(situation: Situation, server: str, job: WorkloadView | None) -> bool:
    """Whether what a server answered is stored, where the run asks for that; else have it stored.

    Before the verdict is: after it nobody asks for the answers any more.
    """
    if not situation.spec.verify_only or job is None:
        return True
    if answers_name(situation.run.name, server) in situation.observed.config_maps:
        return True
    printed = [
        situation.observed.answers[pod.name]
        for pod in _verifiers(situation, job, server)
        if pod.name in situation.observed.answers
    ]
    stored = answers_config_map(situation.context, server, printed[-1] if printed else "")
    situation.actions.append(Create(stored))
    return False


def _reason_and_words(verdict: dict[str, object], server: str) -> tuple[str, str]:
    words = verdict.get("message") or "its answers are not right"
    return str(verdict.get("reason") or "WrongAnswer"), f"server {server}: {words}"


def _rows_before(situation: Situation, server: str, again: bool) -> str:
    """Return that checks before may have made what is in the way of this one; empty: none did."""
    scenario = situation.context.scenario
    writing = ", ".join(one.name for one in scenario.checks if one.writes)
    before = [
        one.name
        for one in situation.spec.deployed
        if one.name != server
        and not situation.spec.topology.own_databases
        and situation.server_state(one.name) is ServerState.VERIFIED
    ]
    asked = ", ".join([*before, server] if again else before)
    postgres = situation.spec.topology_of(situation.spec.server(server)).postgres
    if scenario.takes_back or postgres is None or not (writing and asked):
        return ""
    return (
        f"; {writing} had been asked of {asked} before, and what it made is still in Postgres, "
        "since there is no data.postgres.reset: if that is what is in the way, write there what "
        "takes it back"
    )


def _excused(problem: Problem) -> bool:
    return whose_fault(problem.reason, problem.part, once_well=False).repeated


def _disturbance(situation: Situation, server: str, job: WorkloadView) -> Problem | None:
    """Return why a check says nothing of its server: what it rests on went down meanwhile."""
    trouble = (
        tier_trouble(situation, job)
        or server_taken_away(situation, server, job.name)
        or server_replaced(situation, server, job.name, job)
    )
    if trouble is not None or job.deleting:
        return trouble
    what, pods = f"the verifier of {server}", _verifiers(situation, job, server)
    limit = situation.spec.startup_seconds
    age = job.age(situation.now)
    if not pods and job.failed_reason is None and age >= limit:
        missing = without_pod(what, job, (), situation.now)
        return replace(missing, fatal=True) if missing else not_ready(what, pods, limit)
    trouble = taken_away(what, pods) or words_lost(what, pods)
    if trouble is None and not any(one.ended for one in pods):
        trouble = late(what, pods, situation.observed.kubelets, limit, situation.now)
    if trouble is not None:
        return trouble.of(Part.GENERATOR) if _excused(trouble.of(Part.GENERATOR)) else None
    problem = server_problem(situation, server, job.name)
    passes = problem is not None and problem.passes
    return problem if problem and (passes or _excused(problem)) else None


def _verifiers(situation: Situation, job: WorkloadView, server: str) -> list[PodView]:
    """Return the pods of a check, without those of an earlier one of the same name."""
    return job.own(situation.observed.pods_of("verifier", server=server))


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
    situation: Situation, job: WorkloadView | None, server: str
) -> tuple[dict[str, object] | None, Problem | None]:
    """Return what the verifier said, or what is wrong with the verifier itself."""
    if job is None or job.deleting:
        return None, None
    what, pods = f"the verifier of {server}", _verifiers(situation, job, server)
    verdict = verdict_in(pods)
    if verdict is not None:
        return verdict, None
    problem = diagnose(what, pods, situation.now)
    if not pods:
        problem = without_pod(what, job, (), situation.now)
    age = (pods[-1] if pods else job).age(situation.now)
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
    passes = problem is not None and problem.passes
    limit = situation.patience_seconds if passes else situation.spec.startup_seconds
    if age >= limit and not started:
        said = problem.message if problem else "its pod did not start"
        # Of the run's own credentials, and of nothing that a verifier has of Laptime.
        missing = problem is not None and problem.reason == _SECRET_MISSING
        reason = _SECRET_MISSING if missing else "VerifierFailed"
        return None, Problem(reason, f"{what} failed: {said}", fatal=True)
    return None, problem


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
        for name in states:
            if (why := situation.image_of(name)[1]) is not None:
                message += f"; whether the tag of {name} has moved is not known: {why}"
    situation.say(Verdict(ConditionType.SERVERS_VERIFIED, status, reason, message))
