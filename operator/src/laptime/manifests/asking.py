"""The Jobs that find out what the tag of a server's image stands for: on a node, at its registry.

Nothing of the image runs: a program of Laptime's does, beside its files. What is looked for is what
the kubelet says of the container.
"""

from __future__ import annotations

from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.image_files import (
    FILES_FOLDER,
    Copying,
    copying_containers,
    copying_volumes,
)
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import helper_resources, pod_spec, ruled
from laptime.manifests.undisturbed import pod_template

ASKED_CONTAINER = "asked"
"""The container that has the image."""

_FILES = "files"
# Whoever looks gives it up before.
_LONGEST_SECONDS = 3600


def asking_name(ctx: RunContext, server: Server, *, registry: bool) -> str:
    """Return the name of the Job that asks the registry, or what a node has already."""
    return ctx.object_name("asks" if registry else "held", server.name)


def asking_job(ctx: RunContext, server: Server, *, registry: bool) -> Manifest:
    """Return that Job. A node that has an image of that name pulls none unless it is to ask."""
    labels = ctx.labels(Component.ASKER, server=server.name)
    words = ("--self", f"{FILES_FOLDER}/carry")
    copying = Copying(ASKED_CONTAINER, ctx.images.of(server), words)
    carrier, asked = copying_containers(ctx, [copying], _FILES, helper_resources())
    if registry:
        asked = {**asked, "imagePullPolicy": "Always"}
    pod = pod_spec(
        ctx,
        [asked],
        init_containers=[carrier],
        volumes=copying_volumes(_FILES),
        restart_policy="Never",
        grace_seconds=1,
    )
    return ctx.manifest(
        "batch/v1",
        "Job",
        asking_name(ctx, server, registry=registry),
        labels,
        spec={
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": _LONGEST_SECONDS,
            "template": pod_template(labels, ruled(ctx, Component.ASKER, pod)),
        },
    )
