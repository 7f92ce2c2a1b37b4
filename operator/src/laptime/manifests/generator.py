"""The Job of one trial: the database is brought to its initial state, then k6 sends the load."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from laptime.api.durations import parse_duration
from laptime.api.loads import Arrivals, Load, Protocol
from laptime.api.script_load import ScriptLoad
from laptime.api.server import Server
from laptime.catalog import Request, Use, values_of
from laptime.manifests.context import RunContext
from laptime.manifests.feeders import FOLDER, feeder_path, feeder_volumes
from laptime.manifests.meeting import MEETING_PORT, meeting_address
from laptime.manifests.objects import LEADS_LABEL, Component, Manifest
from laptime.manifests.pods import (
    container,
    helper_resources,
    placed,
    pod_spec,
    resources,
    variable,
)
from laptime.manifests.postgres import PORT, postgres_name
from laptime.manifests.reset import RESET_FILE, RESET_MOUNTS, reset_variables, reset_volume
from laptime.manifests.schema_query import SCHEMA_QUERY
from laptime.manifests.script_image import script_image_containers, script_volumes
from laptime.manifests.secret import database_variables
from laptime.manifests.target import client_mounts, client_variables, client_volumes
from laptime.manifests.tiers import health_url, target_url
from laptime.manifests.undisturbed import pod_template
from laptime.manifests.verifier import wait_container
from laptime.plan import (
    MOST_STEPS,
    REQUESTS_BOUND_SECONDS,
    SentSession,
    Trial,
    feeder_seed,
    longest_rest_seconds,
    seed_of,
    sent_requests,
    sent_sessions,
    start_rate,
    thinking_seconds,
)
from laptime.plan.pools import database_name

TRIAL_SCRIPT = "/opt/laptime/trial.js"
SCHEMA_URL = "SCHEMA_DATABASE_URL"
"""Where a generator that resets nothing asks for the schema."""

METRICS_PORT = 9465
"""Where a trial shows its figures while it runs, for Prometheus."""

WARMUP_VARIABLE = "LAPTIME_WARMUP_SECONDS"
"""How long a script warms up: it tells nothing of it, the output cuts it off."""

TARGET, TARGET_HOST = "$(TARGET)", "$(TARGET_HOST)"
"""In a variable of a script: where the target's address goes, or only its host and port."""

PREPARE_CONTAINER = "prepare"
"""Brings the database to its state before a script."""
_K6 = ("k6", "run", "--quiet", "--no-color", "--out", "laptime")
# Scheduling, pulling images and the reset of the database, before k6 runs.
_START_SECONDS = 120
# A script's image may be large, and no node has it before the first trial.
_PULL_SECONDS = 300
_KEY = re.compile(r"[-._a-zA-Z0-9]+(/[-._a-zA-Z0-9]+)*")


def trial_job(ctx: RunContext, trial: Trial) -> Manifest:
    """Return the Job of a trial; it is never started a second time, whatever happens to it.

    Raises:
        ValueError: the key of a user's script is not one that a ConfigMap can have.
    """
    return load_job(ctx, trial, Component.GENERATOR)


def load_job(
    ctx: RunContext, trial: Trial, component: Component, beside: Sequence[Manifest] = ()
) -> Manifest:
    """Return a Job that puts a server under load, with more containers `beside` the generator.

    Raises:
        ValueError: the key of a user's script is not one that a ConfigMap can have.
    """
    server, load = ctx.spec.server(trial.server), ctx.spec.load(trial.load)
    parallelism = ctx.spec.generator.parallelism
    labels = ctx.labels(component, server=trial.server, load=trial.load, trial=trial.name)
    if ctx.spec.duet and (trial.leads or trial.beside is None):
        labels[LEADS_LABEL] = "true"
    volumes = client_volumes(server)
    helper = helper_resources(ctx.spec.generator.resources)
    # What is wrong with an image shows before anything is made ready for it.
    init = script_image_containers(ctx, load.script, helper) if load.script is not None else []
    if load.script is not None and _has_reset(ctx, server):
        # The built-in trial does it itself while the server starts, which is a second quicker.
        init.append(_prepare(ctx, server, helper))
        volumes.append(reset_volume(ctx))
    if load.script is not None:
        # The built-in trial waits for the server itself, a user's script cannot be relied on.
        init.append(wait_container(ctx, server, helper))
        volumes += script_volumes(ctx, load.script)
    else:
        volumes += feeder_volumes(ctx)
    return ctx.manifest(
        "batch/v1",
        "Job",
        trial.name,
        labels,
        spec={
            "backoffLimit": 0,
            "completions": parallelism,
            "parallelism": parallelism,
            # Each pod learns its index, and so its segment of the load.
            **({"completionMode": "Indexed"} if parallelism > 1 else {}),
            "activeDeadlineSeconds": deadline_seconds(ctx, load),
            "template": pod_template(
                labels,
                placed(
                    ctx,
                    component,
                    pod_spec(
                        ctx,
                        [_k6(ctx, trial, server, load), *beside],
                        init_containers=init,
                        volumes=volumes,
                        restart_policy="Never",
                    ),
                    [] if server.deployed else [ctx.targets[server.name].selector],
                    of_trial=True,
                ),
            ),
        },
    )


def trial_document(ctx: RunContext, trial: Trial) -> dict[str, Any]:
    """Return what LAPTIME_TRIAL says to the generator: the requests, the load, the target."""
    server, load = ctx.spec.server(trial.server), ctx.spec.load(trial.load)
    sessions = sent_sessions(load, ctx.scenario)
    requests = sent_requests(sessions)
    feeders = _feeders(ctx, requests)
    seed = seed_of(ctx.spec, ctx.uid)
    document = {
        "trial": trial.name,
        "target": target_url(ctx, server),
        "waitSeconds": ctx.spec.startup_seconds,
        **_work(ctx, load, sessions, requests),
        **({"feeders": feeders} if feeders else {}),
        "load": _shape(load, start_rate(load.saturation, seed, trial) if load.saturation else 0.0),
        **_generators(ctx),
        **_together(ctx, trial),
        "warmupSeconds": load.warmup_seconds,
        "timeoutSeconds": load.timeout_seconds,
    }
    if server.says_health:
        # A generator of an earlier version, of a run that was begun with it, does not know it.
        document["healthPath"] = server.health
    if (health := health_url(ctx, server)) is not None:
        document["healthTarget"] = health
    by_chance = load.arriving is not None and load.arriving.arrivals is Arrivals.POISSON
    drawn = any(feeder.get("use") == Use.RANDOM for feeder in feeders)
    if by_chance or (drawn and server.deployed):
        # The same for all servers of a repetition, and another one in each of them.
        document["seed"] = seed + trial.repetition
    if drawn and not server.deployed:
        # Where nothing else is drawn, as a generator of an earlier version takes it: of a run that
        # was begun with one.
        document["feederSeed" if by_chance else "seed"] = feeder_seed(ctx.uid, trial)
    if _has_reset(ctx, server):
        document["resetStatements"] = ctx.scenario.reset_statements
    if _has_database(ctx, server):
        # A generator of an earlier version takes no notice.
        document["schemaQuery"] = SCHEMA_QUERY
    return document


def _generators(ctx: RunContext) -> dict[str, Any]:
    count = ctx.spec.generator.parallelism
    if count == 1:
        return {}
    return {"generators": {"count": count, "meet": meeting_address(ctx)}}


def _together(ctx: RunContext, trial: Trial) -> dict[str, Any]:
    """Return at what the generators of two trials at the same time find each other."""
    if trial.beside is None:
        return {}
    count = ctx.spec.generator.parallelism
    return {
        "together": {
            "name": trial.meeting,
            "first": 0 if trial.leads else count,
            "count": 2 * count,
            "meet": meeting_address(ctx),
        }
    }


def _has_database(ctx: RunContext, server: Server) -> bool:
    return ctx.spec.topology_of(server).postgres is not None


def _has_reset(ctx: RunContext, server: Server) -> bool:
    return _has_database(ctx, server) and bool(ctx.scenario.reset_statements)


def deadline_seconds(ctx: RunContext, load: Load) -> int:
    """Return after how many seconds a trial's Job is ended, however far it is."""
    measured, tail = load.measured_seconds, _tail_seconds(ctx, load)
    if load.saturation is not None:
        measured = MOST_STEPS * (
            load.saturation.step_seconds
            + load.timeout_seconds
            + load.connect_seconds
            + tail
            + longest_rest_seconds(load)
        )
    elif measured is None:
        # It lasts as long as the slowest server needs, which does not answer for what users think.
        thinking = thinking_seconds(load, sent_sessions(load, ctx.scenario))
        # That of a run which an earlier version has begun was not bounded yet.
        measured = REQUESTS_BOUND_SECONDS + min(thinking, REQUESTS_BOUND_SECONDS)
    # First they wait for the server, then for each other.
    waits = 2 if ctx.spec.generator.parallelism > 1 or ctx.spec.duet else 1
    # The last requests of warm-up and of the measured part may each take their whole time-out.
    return math.ceil(
        _START_SECONDS
        + (_PULL_SECONDS if load.script is not None and load.script.image is not None else 0)
        + waits * ctx.spec.startup_seconds
        + load.warmup_seconds
        + 2 * load.connect_seconds
        + measured
        + 2 * (load.timeout_seconds + tail)
    )


def _tail_seconds(ctx: RunContext, load: Load) -> float:
    """Return how long a session that began with the last request of a load may go on."""
    if load.script is not None:
        return 0.0
    tails = (
        sum(load.timeout_seconds + _think_seconds(step, load)[1] for step in one.steps[:-1])
        for one in sent_sessions(load, ctx.scenario)
    )
    return max(tails, default=0.0)


def _think_seconds(request: Request, load: Load) -> tuple[float, float]:
    think_time = load.think_time or request.think_time
    return (0.0, 0.0) if think_time is None else think_time.seconds


def _k6(ctx: RunContext, trial: Trial, server: Server, load: Load) -> Manifest:
    ports = {"metrics": METRICS_PORT}
    live = variable("LAPTIME_METRICS_ADDRESS", f":{METRICS_PORT}")
    mounts: dict[str, str] = {}
    if load.script is not None:
        mounts["/scripts"] = "scripts"
        target = target_url(ctx, server)
        args = [*_K6[1:], *_script_flags(load.script, target), _script_path(load.script)]
        env = [
            variable("TARGET", target),
            variable("LAPTIME_TRIAL_NAME", trial.name),
            variable("LAPTIME_DURATION_SECONDS", f"{parse_duration(load.script.duration):g}"),
            live,
        ]
        if ctx.spec.generator.parallelism > 1:
            env += [
                variable("LAPTIME_GENERATORS", str(ctx.spec.generator.parallelism)),
                variable("LAPTIME_MEET", meeting_address(ctx)),
                variable("LAPTIME_WAIT_SECONDS", f"{ctx.spec.startup_seconds:g}"),
            ]
        if load.script.warmup is not None:
            env.append(variable(WARMUP_VARIABLE, f"{parse_duration(load.script.warmup):g}"))
    else:
        args = [*_K6[1:], "--summary-mode=disabled", TRIAL_SCRIPT]
        document = json.dumps(trial_document(ctx, trial), separators=(",", ":"))
        env = [variable("LAPTIME_TRIAL", document), live]
        if feeder_volumes(ctx):
            mounts[FOLDER] = "feeders"
        if _has_reset(ctx, server):
            env += reset_variables(ctx, server)
        elif _has_database(ctx, server):
            # Servers make tables there that no scenario knows: it is asked for its schema alone. A
            # generator of an earlier version would count statements by the other name, and end
            # a trial without it.
            database = database_name(ctx.spec, server)
            env += database_variables(ctx, postgres_name(ctx), PORT, database, SCHEMA_URL)
    if ctx.spec.generator.parallelism > 1 or trial.beside is not None:
        ports["meet"] = MEETING_PORT
    return container(
        ctx,
        "k6",
        ctx.images.generator,
        # No limit of our own: a generator that is throttled measures itself.
        resources=resources(ctx.spec.generator.resources, cpu="100m", memory="128Mi"),
        command=_K6[:1],
        args=args,
        env=[variable("HOME", "/tmp"), *env, *client_variables(server)],
        ports=ports,
        mounts={**mounts, **client_mounts(server)},
    )


def _prepare(ctx: RunContext, server: Server, resources: Manifest) -> Manifest:
    """Return the container that runs the scenario's reset, from a file and without a shell."""
    return container(
        ctx,
        PREPARE_CONTAINER,
        ctx.images.operator,
        resources=resources,
        command=["laptime"],
        args=["prepare", RESET_FILE],
        env=[variable("HOME", "/tmp"), *reset_variables(ctx, server)],
        mounts=RESET_MOUNTS,
    )


def _script_flags(script: ScriptLoad, target: str) -> list[str]:
    """Return what k6 is told beside the script: one word for each flag and its value.

    Variables are handed to the script alone: in the environment of the container they would be
    settings of k6 and of Go as well.
    """
    host = urlsplit(target).netloc
    values = {
        one.name: one.value.replace(TARGET, target).replace(TARGET_HOST, host) for one in script.env
    }
    flags = [f"--env={name}={value}" for name, value in values.items()]
    flags += [f"--tag={one.name}={one.value}" for one in script.tags]
    options = script.options
    if options is None:
        return flags
    named = {
        "vus": options.vus,
        "duration": options.duration,
        "iterations": options.iterations,
        "rps": options.rate,
    }
    flags += [f"--{name}={value}" for name, value in named.items() if value is not None]
    flags += [f"--stage={one.duration}:{one.target}" for one in options.stages or []]
    return flags


def _script_path(script: ScriptLoad) -> str:
    if not _KEY.fullmatch(script.key) or {".", ".."} & set(script.key.split("/")):
        raise ValueError(f"{script.key!r} cannot be a key of a ConfigMap")
    return f"/scripts/{script.key}"


def _work(
    ctx: RunContext, load: Load, sessions: Sequence[SentSession], requests: Sequence[Request]
) -> dict[str, Any]:
    """Return what users do: requests by their weights, or sessions of them."""
    written = {request.name: _request(request, load, ctx, requests) for request in requests}
    if len(sessions) > len(requests) or any(len(one.steps) > 1 for one in sessions):
        return {
            "requests": list(written.values()),
            "sessions": [
                {"name": one.name, "weight": one.weight, "steps": [step.name for step in one.steps]}
                for one in sessions
            ],
        }
    if len({one.weight for one in sessions}) > 1 or load.mix is not None:
        for one in sessions:
            written[one.steps[0].name]["weight"] = one.weight
    return {"requests": list(written.values())}


def _request(
    request: Request, load: Load, ctx: RunContext, sent: Sequence[Request]
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": request.name,
        "method": request.method,
        "path": request.path,
        "headers": dict(request.headers),
        "body": request.body,
        "expectStatus": request.expect_status,
    }
    if request.cookies:
        document["cookies"] = dict(request.cookies)
    check = ctx.scenario.body_check(request, sent)
    if check is not None:
        document["check"] = check
    if request.ids is not None:
        document["ids"] = request.ids.to_wire()
    if request.captures:
        document["captures"] = [one.to_wire() for one in request.captures]
    shortest, longest = _think_seconds(request, load)
    if longest > 0:
        document["thinkSeconds"] = {"min": shortest, "max": longest}
    return document


def _feeders(ctx: RunContext, requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return the feeders that requests take values from: tables are in files."""
    used = {name.partition(".")[0] for request in requests for name in values_of(request)}
    return [
        {
            **feeder.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            **({"csv": {"file": feeder_path(feeder)}} if feeder.csv is not None else {}),
        }
        for feeder in ctx.scenario.feeders
        if feeder.name in used
    ]


def _shape(load: Load, first_rate: float = 0.0) -> dict[str, Any]:
    """Return how the load is sent; `first_rate` is that of a search, in requests per second."""
    name, shape = _measure(load)
    if load.saturation is not None:
        shape["startRate"] = first_rate
    if load.connect_seconds:
        shape["connectSeconds"] = load.connect_seconds
    if load.arriving is not None:
        shape["maxConnections"] = load.arriving.max_connections
        shape["keepAlive"] = load.arriving.keep_alive
        if load.arriving.arrivals is Arrivals.POISSON:
            shape["arrivals"] = "poisson"
    if load.protocol is Protocol.HTTP1:
        return {name: shape}
    return {name: shape, "protocol": str(load.protocol), "streams": load.streams}


def _measure(load: Load) -> tuple[str, dict[str, Any]]:
    if load.closed is not None:
        return "closed", {
            "connections": load.closed.connections,
            "requests": load.closed.requests,
            "durationSeconds": load.measured_seconds,
            "keepAlive": load.closed.keep_alive,
        }
    if load.open is not None:
        return "open", {"rate": load.open.rate, "durationSeconds": load.measured_seconds}
    if load.ramp is not None:
        return "ramp", {
            "from": load.ramp.from_,
            "to": load.ramp.to,
            "durationSeconds": load.measured_seconds,
        }
    if load.stairs is not None:
        steps = [
            {"rate": step.rate, "durationSeconds": parse_duration(step.duration)}
            for step in load.stairs.steps
        ]
        return "stairs", {"steps": steps}
    if load.saturation is not None:
        return "saturation", {
            "p99Seconds": load.saturation.p99_seconds,
            "errorRate": load.saturation.error_rate,
            "maxRate": load.saturation.max_rate,
            "stepSeconds": load.saturation.step_seconds,
        }
    raise ValueError(f"load {load.name} is a script: its shape is in the script")
