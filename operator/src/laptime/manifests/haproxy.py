"""HAProxy of a run, between the generator and the servers."""

from __future__ import annotations

import math

from laptime.api.loads import Load
from laptime.api.server import Server
from laptime.manifests.context import RunContext
from laptime.manifests.objects import Component, Manifest
from laptime.manifests.pods import (
    POD_ADDRESS,
    config_map,
    config_volume,
    container,
    deployment,
    pod_address_variable,
    pod_spec,
    resources,
    service,
    startup_probe,
)
from laptime.plan.tiers import haproxy_threads

FIRST_PORT = 8001
FIRST_HEALTH_PORT = 8101
METRICS_PORT = 8404

_CONFIG_KEY = "haproxy.cfg"
_CONNECT_SECONDS = 5
_LEAST_SECONDS = 120
"""As long as a check may take; a request of a script has 60 s where it says nothing else."""
_FILES = 60_000
"""For the connections of the largest load, 20,000; of a script nobody knows how many it opens. Each
connection of a client needs a second one to a server, and closed ones linger."""


def _bind(port: int) -> str:
    """Return where a frontend listens: where the network reaches it, and `kubectl port-forward`."""
    return f'bind "${{{POD_ADDRESS}}}:{port},127.0.0.1:{port}"'


def haproxy_name(ctx: RunContext) -> str:
    """Return the name of the Deployment, the Service and the ConfigMap."""
    return ctx.object_name("haproxy")


def haproxy_port(ctx: RunContext, server: Server, *, health: bool = False) -> int:
    """Return the port that leads to a server: each has one, in the order of spec.servers.

    With `health` the one that leads to its health port, where that is another one.
    """
    first = FIRST_HEALTH_PORT if health else FIRST_PORT
    return first + [one.name for one in ctx.spec.servers].index(server.name)


def haproxy_objects(ctx: RunContext) -> list[Manifest]:
    """Return ConfigMap, Deployment and Service; nothing when the run has no HAProxy."""
    tier = ctx.spec.topology.haproxy
    if tier is None:
        return []
    data = {_CONFIG_KEY: haproxy_config(ctx)}
    ports = {f"s{haproxy_port(ctx, one)}": haproxy_port(ctx, one) for one in ctx.spec.servers}
    for one in ctx.spec.servers:
        if one.own_health_port is not None:
            port = haproxy_port(ctx, one, health=True)
            ports[f"h{port}"] = port
    ports["metrics"] = METRICS_PORT
    pod = pod_spec(
        ctx,
        [
            container(
                ctx,
                "haproxy",
                ctx.images.haproxy,
                resources=resources(tier.resources, cpu="50m", memory="64Mi"),
                env=[pod_address_variable()],
                ports=ports,
                mounts={"/etc/laptime": "config"},
                startup_probe=startup_probe(
                    ctx, httpGet={"path": "/healthz", "port": METRICS_PORT}
                ),
            )
        ],
        volumes=[config_volume("config", haproxy_name(ctx), {_CONFIG_KEY: _CONFIG_KEY})],
        grace_seconds=2,
    )
    # The names of servers are fully qualified; asked for as they are, not below five domains first.
    pod["dnsConfig"] = {"options": [{"name": "ndots", "value": "1"}]}
    return [
        config_map(ctx, Component.HAPROXY, haproxy_name(ctx), data),
        deployment(ctx, Component.HAPROXY, haproxy_name(ctx), pod, config=data),
        service(ctx, Component.HAPROXY, haproxy_name(ctx), ports),
    ]


def haproxy_config(ctx: RunContext) -> str:
    """Return haproxy.cfg; only integers and checked names go into it."""
    sections = [_global(ctx), _defaults(ctx), _RESOLVERS, _METRICS]
    # A Service that is there already is driven where it is, and not through here.
    sections += [_server(ctx, server) for server in ctx.spec.deployed]
    return "\n".join(sections)


# A Service keeps its address, so a name that is known is asked for rarely and kept when the DNS
# is slow: under load it may be, and must not take a server away. A name that is not known yet is
# asked for often.
_RESOLVERS = """\
resolvers cluster
    parse-resolv-conf
    accepted_payload_size 8192
    resolve_retries 3
    timeout resolve 500ms
    timeout retry 500ms
    hold valid 5s
    hold nx 1s
    hold obsolete 1s
    hold refused 10m
    hold timeout 10m
    hold other 10m
"""

_METRICS = f"""\
frontend metrics
    {_bind(METRICS_PORT)}
    monitor-uri /healthz
    http-request use-service prometheus-exporter if {{ path /metrics }}
    http-request return status 404
"""


def _global(ctx: RunContext) -> str:
    # Not maxconn: HAProxy refuses to start when the node allows fewer files than that; from this
    # upper bound it goes down to what the node allows.
    lines = ["global", f"    fd-hard-limit {_FILES}", "    hard-stop-after 1s"]
    threads = haproxy_threads(ctx.spec)
    if threads is not None:
        lines.append(f"    nbthread {threads}")
    return "\n".join(lines) + "\n"


def _defaults(ctx: RunContext) -> str:
    # Who asks gives up by a time-out of its own, and not by one of HAProxy's.
    longest = max(_LEAST_SECONDS, *(math.ceil(load.timeout_seconds) for load in ctx.spec.loads))
    # Without retries a server that is not there gives a 503 at once, and no failed attempt hides
    # behind a later good one. The queue's time-out would be that of connect. On a WebSocket nobody
    # has to speak. What waits for as long as clients do leaves the queue: its own has hung up, and
    # it would get the place of one that still waits, or of the next trial. Not abortonclose: where
    # a client has hung up that also gives away the place of a request which the server works on,
    # so that it would have more at once than its cap.
    return f"""\
defaults
    mode http
    timeout connect {_CONNECT_SECONDS}s
    timeout client {longest}s
    timeout server {longest}s
    timeout queue {math.ceil(max(map(_patience_seconds, ctx.spec.loads)))}s
    timeout tunnel 1h
    retries 0
    http-reuse safe
"""


def _patience_seconds(load: Load) -> float:
    """Return for how long a client of a load waits for an answer."""
    if load.script is not None:
        # It has time-outs of its own.
        return max(_LEAST_SECONDS, load.timeout_seconds)
    # As in images/k6/internal/generator/saturate.go.
    search = load.saturation
    longest = math.inf if search is None else max(1.0, 10.0 * search.p99_seconds)
    return min(load.timeout_seconds, longest)


def _asks_alone(ctx: RunContext, server: Server) -> bool:
    """Return whether nobody asks a server for the path of its health but who waits for it.

    What the load asks for is to be queued, capped and counted as all of it.
    """
    scripted = any(load.script is not None for load in ctx.spec.loads)
    paths = [request.path.partition("?")[0] for request in ctx.scenario.requests]
    return not scripted and not any(_may_become(path, server.health) for path in paths)


def _may_become(path: str, asked: str) -> bool:
    """Return whether a request's path may be another one, by what its placeholders stand for."""
    fixed, placeholder, _ = path.partition("{")
    return asked.startswith(fixed) if placeholder else path == asked


def _server(ctx: RunContext, server: Server) -> str:
    tier = ctx.spec.topology_of(server).haproxy
    host = ctx.service_host("server", server.name)

    def line(port: int) -> str:
        return f"server {server.name} {host}:{port} resolvers cluster init-addr libc,none"

    cap = tier.max_connections if tier is not None else None
    limit = "" if cap is None else f" maxconn {cap}"
    # While a Service has no pod, connections to it are refused by ICMP, and the kernel sends that
    # only once a second to each pod. Whoever asks whether it is there every 50 ms would hang in the
    # others until TCP tries again, a second later or three, when the server has long been there.
    rule, health, own = "", "", server.own_health_port
    if own is not None or _asks_alone(ctx, server):
        to = line(own or server.listen_port)
        health = f"backend health-{server.name}\n    timeout connect 150ms\n    {to}\n\n"
    if own is not None:
        # Through here too: that a server is there for others says nothing of the way from here.
        bind = _bind(haproxy_port(ctx, server, health=True))
        backend = f"default_backend health-{server.name}"
        health = f"frontend health-of-{server.name}\n    {bind}\n    {backend}\n\n{health}"
    elif health:
        rule = f"    use_backend health-{server.name} if {{ path {server.health} }}\n"
    return f"""\
frontend to-{server.name}
    {_bind(haproxy_port(ctx, server))}
{rule}    default_backend server-{server.name}

{health}backend server-{server.name}
    {line(server.listen_port)}{limit}
"""
