"""Beside the start of the tiers: which image the tag of each server's own image stands for.

A node that has an image of a name asks nobody whether the tag has moved since, and one that has
none pulls what the tag stands for by then. So the registry is asked once for the whole run, and all
pods of the server name the digest (docs/decisions/0082-what-a-tag-stands-for.md). What was loaded
into a node by hand no registry need have: it is left as it is, and nobody is asked.
"""

from __future__ import annotations

import re

from laptime.api.images import brought_by_hand, by_digest
from laptime.api.server import Server
from laptime.api.text import shown
from laptime.manifests.asking import ASKED_CONTAINER, asking_job, asking_name
from laptime.manifests.objects import Component
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.diagnose import diagnose, may_be_pulled_yet, without_pod
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import IMAGE_REASONS, ContainerView, PodView, WorkloadView

_SHOWN = 300
# A kubelet that cannot pull asks again after 10 s, and after 20 s more.
_THREE_TIMES_SECONDS = 35.0
_NO_NAME = "InvalidImageName"
_NOT_PULLED = (_NO_NAME, *IMAGE_REASONS)
# What a server waits for, since there may be none without: this is worth no such wait.
_AWAY = re.compile("no such host|unreachable|connection refused", re.IGNORECASE)


def ask_for_images(situation: Situation) -> Decision | None:
    """Find out what tags stand for, one after the other; nothing but the checks wait for it.

    So it needs no room that a check does not need, neither on a node nor of a quota for pods.
    """
    deployed, asking = situation.spec.deployed, False
    at_it = {one.name for one in deployed if _jobs_left(situation, one)}
    for server in deployed:
        if not situation.image_wanted(server.name):
            _end(situation, server)
            continue
        # What two servers have the same name for is the same: one of them is enough.
        first = next(
            one
            for one in deployed
            if one.image == server.image
            and (situation.image_wanted(one.name) or situation.image_known(one.name))
        )
        if first.name != server.name:
            if situation.image_known(first.name):
                situation.remember_image(server.name, *situation.image_of(first.name))
        elif not asking and (server.name in at_it or not at_it):
            _ask(situation, server)
            asking = situation.image_wanted(server.name)
    return None


def _ask(situation: Situation, server: Server) -> None:
    """Take it a step further: what a node has, and where that was pulled, what the registry has."""
    held: str | None = None
    of_node, of_registry = _names(situation, server)
    if of_registry in situation.observed.jobs:
        # What the first one was there for is known.
        if of_node in _jobs_left(situation, server):
            situation.actions.append(Delete("Job", of_node))
    elif situation.context.images.pull_policy != "Always":
        held, why = _answer(situation, server, registry=False)
        if why is not None or (held is not None and brought_by_hand(held)):
            situation.remember_image(server.name, held, why)
        if held is None or brought_by_hand(held):
            return
    has, why = _answer(situation, server, registry=True)
    if why is not None:
        situation.remember_image(server.name, held, why)
    elif has is not None:
        image = by_digest(situation.context.images.of(server), has)
        situation.remember_image(server.name, image or has, None)


def _answer(
    situation: Situation, server: Server, *, registry: bool
) -> tuple[str | None, str | None]:
    """Return what the kubelet says of the image, or why it will say nothing; neither: not yet."""
    name = asking_name(situation.context, server, registry=registry)
    job = situation.observed.jobs.get(name)
    if job is None:
        why = _refused(situation, name)
        if why is None:
            job_of_it = asking_job(situation.context, server, registry=registry)
            situation.actions.append(Create(job_of_it))
        return None, why
    pods = job.own(situation.observed.pods_of(Component.ASKER, server=server.name))
    # What one says that ends is of a time before.
    for pod in pods[-1:] if not job.deleting else ():
        for one in pod.containers:
            done = one.running or one.exit_code is not None
            if one.name == ASKED_CONTAINER and one.image_id is not None and done:
                return one.image_id, None
            # A registry may be away for a moment, also that of the program beside it.
            if one.waiting_reason in _NOT_PULLED and (
                _for_good(pod, one) or pod.age(situation.now) >= _THREE_TIMES_SECONDS
            ):
                return None, shown(one.waiting_message or one.waiting_reason, _SHOWN)
    return None, _given_up(situation, job, pods)


def _refused(situation: Situation, name: str) -> str | None:
    """Return why the API server takes no Job of this name, where that is not about to pass."""
    refusal = situation.observed.refusal
    if refusal is None or f'"{name}"' not in refusal.message:
        return None
    waited = (situation.now - refusal.since).total_seconds()
    passes = refusal.room and waited < _THREE_TIMES_SECONDS
    return None if passes else shown(refusal.message, _SHOWN)


def _for_good(pod: PodView, container: ContainerView) -> bool:
    """Whether asking once more would come to the same."""
    return (
        container.waiting_reason == _NO_NAME
        or not may_be_pulled_yet(pod, container)
        or _AWAY.search(container.waiting_message or "") is not None
    )


def _given_up(situation: Situation, job: WorkloadView, pods: list[PodView]) -> str | None:
    """Return why a Job is not waited for any longer; until then the run says what it lacks."""
    what = f"Job {job.name}"
    if job.failed_reason is not None:
        return f"{what} failed: {job.failed_reason}: {job.failed_message or ''}"
    problem = diagnose(what, pods, situation.now) or without_pod(what, job, (), situation.now)
    situation.images_problem = problem
    # What keeps it from starting keeps the check too, which then says so. A pull takes its time.
    starts = problem is None or problem.passes
    limit = situation.patience_seconds if starts else situation.spec.startup_seconds
    if job.age(situation.now) < limit:
        return None
    why = f": {shown(problem.message, _SHOWN)}" if problem else ""
    return f"{what} has not said it within {limit:g} s{why}"


def _names(situation: Situation, server: Server) -> tuple[str, str]:
    """Return the names of both Jobs of a server: what asks its node, and what asks the registry."""
    ctx = situation.context
    return asking_name(ctx, server, registry=False), asking_name(ctx, server, registry=True)


def _jobs_left(situation: Situation, server: Server) -> list[str]:
    """Return the Jobs of a server that nobody has ended yet."""
    jobs = situation.observed.jobs
    names = _names(situation, server)
    return [name for name in names if name in jobs and not jobs[name].deleting]


def _end(situation: Situation, server: Server) -> None:
    situation.actions += [Delete("Job", name) for name in _jobs_left(situation, server)]
