"""What is stored of attempts that are over: a trial's result, or an attempt that was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laptime.api import doubts
from laptime.api.attempts import MOST_ATTEMPTS, Fault, LostAttempt
from laptime.api.images import AND
from laptime.api.results import TrialResult
from laptime.manifests.result import result_config_map
from laptime.manifests.script_image import SCRIPT_CONTAINER
from laptime.manifests.sql_image import sql_place
from laptime.measure import SCRIPT, Judgement, doubted, failed_trial, judge_pods
from laptime.plan import Trial
from laptime.reconcile.actions import Create
from laptime.reconcile.diagnose import Part, Problem
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.stages.servers import server_pods
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.stages.tier_cpu import as_sized
from laptime.reconcile.stages.tiers import tier_names, tier_titles
from laptime.reconcile.stages.verdicts import schema_in, verdict_in
from laptime.reconcile.views import SENDS, PodView, format_time


def counted_result(situation: Situation, trial: Trial, result: TrialResult) -> TrialResult:
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


def lose_or_fail(
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
        without_partner(situation, trial, partner, problem)
        return
    fault = fault_of(situation, trial, problem)
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


def without_partner(
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


def fault_of(situation: Situation, trial: Trial, problem: Problem) -> Fault:
    """Return who answers for what befell a trial."""
    # An image of a script that was there once may be away for a while; a name that is none is not.
    once_well = problem.part is not Part.SCRIPT or any(
        one.load == trial.load and SCRIPT in one.images
        for one in situation.observed.results.values()
    )
    load = situation.spec.load(trial.load)
    return whose_fault(problem.reason, problem.part, load, once_well=once_well)


def _of_partner(server: str, problem: Problem) -> Problem:
    text = f"{server} was to be measured at the same time: {problem.reason}: "
    return Problem("PartnerFailed", text + problem.message)


def _store_failure(situation: Situation, trial: Trial, problem: Problem, fault: Fault) -> None:
    result = failed_trial(trial, problem.reason, problem.message, fault)
    counted = counted_result(situation, trial, result)
    situation.actions.append(Create(result_config_map(situation.context, counted, "")))


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
