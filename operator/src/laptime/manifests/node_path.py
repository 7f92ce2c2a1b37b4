"""The two Jobs that measure what a generator's node and a server's exchange."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import container, helper_resources, on_node, pod_spec
from laptime.manifests.undisturbed import pod_template

PATH_PORT = 7118
PATH_SECONDS = 60
"""How long a path may take, with the start of both pods; then it is not known."""

_COMMAND = "/usr/local/bin/bandwidth"
_ANSWER_SECONDS = 10


def path_names(ctx: RunContext, number: int) -> tuple[str, str]:
    """Return the names of the Jobs of a run's path, from 1: of who serves, and of who asks."""
    return (
        ctx.object_name("path", str(number), "server"),
        ctx.object_name("path", str(number), "generator"),
    )


def path_server_job(ctx: RunContext, number: int, node: str) -> Manifest:
    """Return the Job that stands for a server on a node: it takes and sends what it is asked to."""
    return _job(
        ctx,
        path_names(ctx, number)[0],
        Component.PATH_SERVER,
        node,
        ["serve", f":{PATH_PORT}"],
    )


def path_generator_job(ctx: RunContext, number: int, node: str, address: str) -> Manifest:
    """Return the Job that measures, from a node, the way to who serves at an address of a pod.

    What it found is in the termination message of its pod.
    """
    host = f"[{address}]" if ":" in address else address
    return _job(
        ctx,
        path_names(ctx, number)[1],
        Component.PATH_GENERATOR,
        node,
        ["ask", f"{host}:{PATH_PORT}", str(_ANSWER_SECONDS)],
    )


def _job(
    ctx: RunContext, name: str, component: Component, node: str, args: Sequence[str]
) -> Manifest:
    labels = ctx.labels(component)
    program = container(
        ctx,
        "bandwidth",
        ctx.images.generator,
        resources=helper_resources(),
        command=[_COMMAND],
        args=args,
    )
    pod = pod_spec(ctx, [program], restart_policy="Never", grace_seconds=1)
    return ctx.manifest(
        "batch/v1",
        "Job",
        name,
        labels,
        spec={
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": PATH_SECONDS,
            "template": pod_template(labels, on_node(ctx, component, pod, node)),
        },
    )
