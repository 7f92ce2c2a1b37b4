"""The services around the servers of a scenario: a Deployment and a Service each, and resets."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from laptime.api.resources import quantity
from laptime.api.side_services import Reset, ResetJob, ResetRequest, SideService, SideVariable
from laptime.catalog import Check
from laptime.manifests.context import RunContext
from laptime.manifests.objects import TRIAL_LABEL, Component, Manifest, content_hash
from laptime.manifests.pods import (
    config_map,
    container,
    deployment,
    helper_resources,
    literal,
    pod_spec,
    resources,
    ruled,
    secret_variable,
    service,
    startup_probe,
    variable,
    writable_folders,
)
from laptime.manifests.secret import owning, services_owner, services_secret_name
from laptime.manifests.undisturbed import pod_template

_REFERENCE = re.compile(r"[$][$][(]([A-Za-z0-9_]+)[)]")


def side_service_name(ctx: RunContext, one: SideService) -> str:
    """Return the name of the Deployment and the Service."""
    return ctx.object_name(one.component)


def side_service_objects(ctx: RunContext) -> list[Manifest]:
    """Return what the services of the scenario need; nothing where there are none."""
    found: list[Manifest] = []
    named = [one.name for one in ctx.scenario.services if one.password]
    if named:
        data = {"passwords": ", ".join(named)}
        found.append(owning(config_map(ctx, Component.SERVICES, services_owner(ctx), data)))
    for one in ctx.scenario.services:
        found += [side_service_deployment(ctx, one), side_service_service(ctx, one)]
    return found


def side_service_service(ctx: RunContext, one: SideService, trial: str | None = None) -> Manifest:
    """Return the Service of a service; with a trial it leads to the pod of that trial alone.

    It does so from the moment in which that pod has an address: a server is started when the pod is
    ready, and must not come before the nodes have heard of it. Apply it before the Deployment, so
    that nothing of the trial gets to the pod of the one before.
    """
    name = side_service_name(ctx, one)
    manifest = service(ctx, one.component, name, _ports(one))
    if trial is not None:
        manifest["spec"]["selector"][TRIAL_LABEL] = trial
        manifest["spec"]["publishNotReadyAddresses"] = True
    return manifest


def side_service_deployment(
    ctx: RunContext, one: SideService, trial: str | None = None
) -> Manifest:
    """Return the Deployment of a service; another trial means another pod.

    The pod of the trial before is told to end first, and nothing reaches it any more.
    """
    mounts, volumes = writable_folders(one.writable)
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "service",
                one.image,
                resources=resources(one.resources, cpu="50m", memory="64Mi"),
                command=one.command,
                args=one.args,
                env=_environment(ctx, one.env),
                ports=_ports(one),
                mounts=mounts,
                startup_probe=startup_probe(ctx, **_ready(one)),
                expand=expanded,
            )
        ],
        volumes=volumes,
        own_user=False,
        user=one.user,
        grace_seconds=2,
    )
    name = side_service_name(ctx, one)
    return deployment(ctx, one.component, name, pod, trial=trial, overlap=one.fresh)


def side_variables(ctx: RunContext) -> list[Manifest]:
    """Return the variables by which a container finds the services around the servers."""
    found: list[Manifest] = []
    for one in ctx.scenario.services:
        found += [
            variable(one.variable("HOST"), side_service_name(ctx, one)),
            variable(one.variable("PORT"), str(one.ports[0])),
        ]
        if one.password:
            name = one.variable("PASSWORD")
            found.append(secret_variable(name, services_secret_name(ctx), one.name))
    return found


def expanded(text: str, names: Collection[str] = ()) -> str:
    """Return a text in which the kubelet expands what stands for services and these names."""

    def written(found: re.Match[str]) -> str:
        expands = found[1].startswith("SERVICE_") or found[1] in names
        return f"$({found[1]})" if expands else found[0]

    return _REFERENCE.sub(written, literal(text))


def reset_name(ctx: RunContext, one: SideService, purpose: str) -> str:
    """Return the name of the Job that resets a service before a trial or a check."""
    return ctx.object_name("reset", content_hash([purpose, one.name])[:8])


def reset_job(ctx: RunContext, one: SideService, reset: Reset, purpose: str) -> Manifest:
    """Return the Job that resets a service; the operator gives it as long as a start-up may take.

    Raises:
        ValueError: the reset says neither a request nor a job.
    """
    if reset.job is not None:
        work = _program(ctx, one, reset.job)
    elif reset.request is not None:
        work = _asking(ctx, one, reset.request)
    else:
        raise ValueError(f"service {one.name}: its reset has neither request nor job")
    labels = ctx.labels(one.reset_component, trial=purpose)
    return ctx.manifest(
        "batch/v1",
        "Job",
        reset_name(ctx, one, purpose),
        labels,
        spec={
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            # No deadline: beside a proxy that goes on a Job never completes, and would fail by one
            # that passes while its servers are measured. The operator gives it up by itself.
            "template": pod_template(
                labels,
                ruled(
                    ctx,
                    one.reset_component,
                    pod_spec(
                        ctx,
                        [work],
                        restart_policy="Never",
                        own_user=reset.job is None,
                        user=reset.job.user if reset.job is not None else None,
                    ),
                ),
            ),
        },
    )


def _program(ctx: RunContext, one: SideService, job: ResetJob) -> Manifest:
    small = resources(None, cpu="50m", memory="64Mi")
    if one.resources is not None:
        # A program of the author's: it has no more than what it resets.
        limits = one.resources.to_wire()
        requests = small["requests"].items()
        small = {
            "requests": {
                key: min(limits.get(key, text), text, key=quantity) for key, text in requests
            },
            "limits": limits,
        }
    return container(
        ctx,
        "reset",
        job.image,
        resources=small,
        command=job.command,
        args=job.args,
        env=_environment(ctx, job.env),
        expand=expanded,
    )


def _asking(ctx: RunContext, one: SideService, request: ResetRequest) -> Manifest:
    """Return the container that sends a request; the operator itself reaches no pod of a run."""
    check = Check(
        name="reset",
        method=request.method,
        path=_as_it_is(request.path),
        headers={name: _as_it_is(value) for name, value in request.headers.items()},
        body=None if request.body is None else _as_it_is(request.body),
        expect_status=request.expect_status,
        times=1,
    )
    document = {
        "target": f"http://{side_service_name(ctx, one)}:{request.port or one.ports[0]}",
        "healthPath": None,
        "waitSeconds": ctx.spec.startup_seconds / 2,
        "checks": [check.model_dump(mode="json", by_alias=True, exclude_defaults=True)],
    }
    return container(
        ctx,
        "reset",
        ctx.images.operator,
        resources=helper_resources(),
        command=["laptime"],
        args=["verify"],
        env=[
            variable("HOME", "/tmp"),
            variable("LAPTIME_VERIFY", json.dumps(document, separators=(",", ":"))),
        ],
    )


def _as_it_is(text: str) -> str:
    """Return a template that stands for the text itself."""
    return text.replace("{{", "{{'{{'}}")


def _environment(ctx: RunContext, env: list[SideVariable]) -> list[Manifest]:
    # Those that others refer to come first.
    own = [{"name": one.name, "value": expanded(one.value)} for one in env]
    return [*side_variables(ctx), *own]


def _ports(one: SideService) -> dict[str, int]:
    # Never named by the author: one called `metrics` would be scraped by Prometheus.
    return {f"p{port}": port for port in one.ports}


def _ready(one: SideService) -> Manifest:
    if one.ready is not None and one.ready.path is not None:
        return {"httpGet": {"path": one.ready.path, "port": one.ready_port}}
    return {"tcpSocket": {"port": one.ready_port}}
