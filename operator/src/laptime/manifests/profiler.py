"""The Job of a profile: a server is put under load, and asked meanwhile what its CPU does."""

from __future__ import annotations

import json
from dataclasses import replace

from laptime.manifests.context import RunContext
from laptime.manifests.generator import load_job
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import container, helper_resources, variable
from laptime.manifests.server import profile_port, server_name
from laptime.plan import PROFILE_SECONDS, Trial, profile_load

PROFILE_CONTAINER = "profile"


def profile_job(ctx: RunContext, profile: Trial) -> Manifest:
    """Return the Job; the profile is in the log of its container `profile`.

    The load is that of a trial, from one generator and for as long as the profile takes. Its
    figures are not looked at.

    Raises:
        ValueError: the key of a user's script is not one that a ConfigMap can have.
    """
    generator = ctx.spec.generator.model_copy(update={"parallelism": 1})
    loads = [profile_load(load) for load in ctx.spec.loads]
    alone = replace(ctx, spec=ctx.spec.model_copy(update={"generator": generator, "loads": loads}))
    return load_job(alone, profile, Component.PROFILER, [_asker(ctx, profile)])


def _asker(ctx: RunContext, profile: Trial) -> Manifest:
    server, load = ctx.spec.server(profile.server), ctx.spec.load(profile.load)
    # Straight to the server: what stands before it leads to no port for profiles.
    host = f"http://{server_name(ctx, server)}"
    task = {
        "server": f"{host}:{server.own_health_port or server.listen_port}",
        "profiles": f"{host}:{profile_port(server)}",
        "waitSeconds": ctx.spec.startup_seconds,
        "warmupSeconds": load.warmup_seconds,
        "seconds": PROFILE_SECONDS,
    }
    if server.says_health:
        task["healthPath"] = server.health
    return container(
        ctx,
        PROFILE_CONTAINER,
        ctx.images.operator,
        resources=helper_resources(),
        command=["laptime"],
        args=["profile"],
        env=[
            variable("HOME", "/tmp"),
            variable("LAPTIME_PROFILE", json.dumps(task, separators=(",", ":"))),
        ],
    )
