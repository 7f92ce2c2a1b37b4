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
from laptime.manifests.context import Component
from laptime.reconcile.actions import Create, Decision, Delete
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import IMAGE_REASONS, PodView, WorkloadView

_SHOWN = 300
# A kubelet that cannot pull asks again after 10 s, and after 20 s more.
_THREE_TIMES_SECONDS = 35.0
_NEVER = ("InvalidImageName", *IMAGE_REASONS)
# What says that asking once more would come to the same. All else may pass: a registry that has too
# much to do, that is started anew, or is far away.
_FOR_GOOD = re.compile(
    r"not found|manifest unknown|denied|unauthorized|authori[sz]ation|forbidden|no such host"
    r"|invalid reference|unreachable|connection refused",
    re.IGNORECASE,
)


def ask_for_images(situation: Situation) -> Decision | None:
    """Find out what tags stand for, one after the other; nothing but the checks wait for it.

    So it needs no room that a check does not need: neither that of a quota nor of a node.
    """
    deployed, asking = situation.spec.deployed, False
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
        if first.name == server.name and not asking:
            _ask(situation, server)
            asking = situation.image_wanted(server.name)
        elif situation.image_known(first.name):
            situation.remember_image(server.name, *situation.image_of(first.name))
    return None


def _ask(situation: Situation, server: Server) -> None:
    """Take it a step further: what a node has, and where that was pulled, what the registry has."""
    held: str | None = None
    if situation.context.images.pull_policy != "Always":
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
        job_of_it = asking_job(situation.context, server, registry=registry)
        situation.actions.append(Create(job_of_it))
    if job is None or job.deleting:
        return None, None
    pods = job.own(situation.observed.pods_of(Component.ASKER, server=server.name))
    for container in (one for pod in pods[-1:] for one in pod.containers):
        if container.name != ASKED_CONTAINER:
            continue
        if container.image_id is not None and (
            container.running or container.exit_code is not None
        ):
            return container.image_id, None
        if container.waiting_reason in _NEVER:
            said = container.waiting_message or container.waiting_reason
            may_pass = registry and _FOR_GOOD.search(said) is None
            if not may_pass or pods[-1].age(situation.now) >= _THREE_TIMES_SECONDS:
                return None, shown(said, _SHOWN)
    return None, _given_up(situation, job, pods)


def _given_up(situation: Situation, job: WorkloadView, pods: list[PodView]) -> str | None:
    if job.failed_reason is not None:
        return f"Job {job.name} failed: {job.failed_reason}: {job.failed_message or ''}"
    if job.age(situation.now) < situation.patience_seconds:
        return None
    nowhere = next((one.unschedulable_message for one in pods if one.unschedulable_message), None)
    why = f": {shown(nowhere, _SHOWN)}" if nowhere else ""
    return f"Job {job.name} has not said it within {situation.patience_seconds:g} s{why}"


def _end(situation: Situation, server: Server) -> None:
    for registry in (False, True):
        name = asking_name(situation.context, server, registry=registry)
        job = situation.observed.jobs.get(name)
        if job is not None and not job.deleting:
            situation.actions.append(Delete("Job", name))
