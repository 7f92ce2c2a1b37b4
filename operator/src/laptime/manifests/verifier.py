"""The Job that checks a server's answers against the scenario's contract."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from laptime.api.loads import Protocol
from laptime.api.server import Server
from laptime.catalog import Check, Value, check_templates, names_in
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import container, helper_resources, pod_spec, ruled, variable
from laptime.manifests.postgres import PORT, postgres_name
from laptime.manifests.reset import RESET_FILE, RESET_MOUNTS, reset_variables, reset_volume
from laptime.manifests.schema_query import SCHEMA_QUERY
from laptime.manifests.secret import database_variables
from laptime.manifests.target import client_mounts, client_variables, client_volumes
from laptime.manifests.tiers import health_url, target_url
from laptime.manifests.undisturbed import pod_template
from laptime.manifests.upstream import upstream_url
from laptime.plan.pools import database_name

VERIFY_CONTAINER = "verify"
# Scheduling and pulling an image.
_START_SECONDS = 120
# What resets and warms the database, which in a trial has the measured time as well.
_PREPARE_SECONDS = 300
# A verifier that never ends has to be ended some time, however long answers may take.
_SLOW_SECONDS = 1800


def verify_name(ctx: RunContext, server: Server, again: bool = False) -> str:
    """Return the name of the Job; `again`: of the one that checks a server a second time."""
    return ctx.object_name("again" if again else "verify", server.name)


def verify_job(ctx: RunContext, server: Server, again: bool = False) -> Manifest:
    """Return the Job; its verdict is in the termination message of its pod."""
    labels = ctx.labels(Component.VERIFIER, server=server.name)
    checks = ctx.scenario.counting_checks
    volumes = client_volumes(server)
    if _resets(ctx, server):
        volumes.append(reset_volume(ctx))
    return ctx.manifest(
        "batch/v1",
        "Job",
        verify_name(ctx, server, again),
        labels,
        spec={
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": check_seconds(ctx),
            "template": pod_template(
                labels,
                ruled(
                    ctx,
                    Component.VERIFIER,
                    pod_spec(
                        ctx,
                        [
                            _verifier(
                                ctx,
                                VERIFY_CONTAINER,
                                server,
                                checks,
                                resources=helper_resources(),
                                counting=server.deployed,
                            )
                        ],
                        volumes=volumes,
                        restart_policy="Never",
                    ),
                ),
            ),
        },
    )


def check_seconds(ctx: RunContext) -> int:
    """Return after how many seconds the check of a server is ended, however far it is.

    A server may take its whole time for each right answer; one that takes longer has failed.
    """
    checks = ctx.scenario.counting_checks
    least = sum(check.times * check.min_seconds for check in checks)
    most = sum(check.times * check.timeout_seconds for check in checks)
    answers = max(least, min(most, _SLOW_SECONDS))
    prepared = _PREPARE_SECONDS if ctx.scenario.prepares else 0
    around = _START_SECONDS + prepared + ctx.spec.startup_seconds
    return math.ceil(around + len(_protocols(ctx)) * answers)


def wait_container(ctx: RunContext, server: Server, resources: Manifest) -> Manifest:
    """Return a container that ends when a server answers, or when it has had its time."""
    # What is asked at another port is no check of this one: that it is waited for is all.
    apart = server.own_health_port is not None
    checks = [] if apart else [Check(name="healthz", path=server.health)]
    return _verifier(ctx, "wait", server, checks, resources=resources)


def verify_document(ctx: RunContext, server: Server, checks: Sequence[Check]) -> dict[str, Any]:
    """Return what LAPTIME_VERIFY says: the target, how long to wait for it, and the checks."""
    document: dict[str, Any] = {
        "target": target_url(ctx, server),
        "waitSeconds": ctx.spec.startup_seconds,
        "checks": [
            check.model_dump(mode="json", by_alias=True, exclude_defaults=True) for check in checks
        ],
    }
    if (protocols := _protocols(ctx)) != [Protocol.HTTP1]:
        document["protocols"] = [str(one) for one in protocols]
    if ctx.spec.verify_only:
        document["showAnswers"] = True
    if values := _values(ctx, checks):
        document["values"] = values
    names = {check.name for check in checks}
    if bodies := [name for name in ctx.scenario.bodies_asked_for if name in names]:
        document["bodies"] = bodies
    if server.says_health:
        document["healthPath"] = server.health
    if (health := health_url(ctx, server)) is not None:
        document["healthTarget"] = health
    if server.deployed and (url := upstream_url(ctx, server)) is not None:
        document["upstreamUrl"] = url
    return document


def _protocols(ctx: RunContext) -> list[Protocol]:
    """Return over which protocols answers are checked: those of the loads."""
    return sorted({load.protocol for load in ctx.spec.loads})


def _values(ctx: RunContext, checks: Sequence[Check]) -> dict[str, Value]:
    """Return the values of feeders that checks name: those of the first row."""
    named = {
        name
        for check in checks
        for _, _, template in check_templates(check)
        for name in names_in(template)
    }
    return {name: value for name, value in ctx.scenario.check_values.items() if name in named}


def _resets(ctx: RunContext, server: Server) -> bool:
    """Whether a server is checked on what the scenario makes of the database before a trial.

    Others may have made rows, and what only warms may define something too.
    """
    postgres = ctx.spec.topology_of(server).postgres
    return postgres is not None and ctx.scenario.prepares


def _verifier(
    ctx: RunContext,
    name: str,
    server: Server,
    checks: Sequence[Check],
    *,
    resources: Manifest,
    counting: bool = False,
) -> Manifest:
    said, mounts = verify_document(ctx, server, checks), client_mounts(server)
    database: list[Manifest] = []
    if counting and _resets(ctx, server):
        # A verifier of an earlier version, of a run that was begun with it, takes no notice.
        said["reset"] = RESET_FILE
        mounts |= RESET_MOUNTS
        database = reset_variables(ctx, server)
    elif server.deployed and ctx.spec.topology_of(server).postgres is not None:
        # Straight to Postgres, also where the servers go through PgBouncer.
        database = database_variables(
            ctx, postgres_name(ctx), PORT, database_name(ctx.spec, server)
        )
    if database:
        said["schemaQuery"] = SCHEMA_QUERY
    if database and not counting:
        said["counts"] = False
    document = json.dumps(said, separators=(",", ":"))
    return container(
        ctx,
        name,
        ctx.images.operator,
        resources=resources,
        command=["laptime"],
        args=["verify"],
        env=[
            variable("HOME", "/tmp"),
            variable("LAPTIME_VERIFY", document),
            *database,
            *client_variables(server),
        ],
        mounts=mounts,
    )
