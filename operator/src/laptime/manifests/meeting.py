"""The Service by which the generators of a trial find each other."""

from __future__ import annotations

from laptime.manifests.context import RunContext
from laptime.manifests.objects import LEADS_LABEL, Component, Manifest
from laptime.manifests.pods import service

MEETING_PORT = 7117
"""Where generator 0 tells the others when to start."""

# Set by the controller of Indexed Jobs.
_COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


def meeting_objects(ctx: RunContext) -> list[Manifest]:
    """Return the Service that leads to generator 0; none where there is only one generator.

    Of two trials at the same time to that of the one which leads.

    It leads to the one that is alive: those of earlier trials have ended. Its name is known to the
    DNS from the first, while the name of a pod would be denied until the pod is there, and the
    denial kept for seconds.
    """
    selected = {}
    if ctx.spec.generator.parallelism > 1:
        selected[_COMPLETION_INDEX_LABEL] = "0"
    if ctx.spec.duet:
        selected[LEADS_LABEL] = "true"
    if not selected:
        return []
    return [
        service(
            ctx,
            Component.GENERATOR,
            _name(ctx),
            {"meet": MEETING_PORT},
            also_selected=selected,
        )
    ]


def meeting_address(ctx: RunContext) -> str:
    """Return host:port of generator 0."""
    return f"{_name(ctx)}:{MEETING_PORT}"


def _name(ctx: RunContext) -> str:
    return ctx.object_name("generator")
