"""Runs for the tests of the builders: one per shape that a run can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from laptime.api.profile import Profile
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Request, Scenario, scenarios
from laptime.manifests.archive import ARCHIVE_KEY, MAX_PART_BYTES, archive_config_maps
from laptime.manifests.asking import asking_job
from laptime.manifests.context import ImageSet, Network, RunContext, Target
from laptime.manifests.generator import trial_job
from laptime.manifests.network import network_policy
from laptime.manifests.node_path import path_generator_job, path_server_job
from laptime.manifests.objects import Manifest
from laptime.manifests.pgbouncer import console_address
from laptime.manifests.placement import Placement
from laptime.manifests.profiler import profile_job
from laptime.manifests.result import profile_config_map, result_config_map
from laptime.manifests.secret import database_secret, services_secret
from laptime.manifests.server import server_deployment
from laptime.manifests.side_services import (
    reset_job,
    side_service_deployment,
    side_service_service,
)
from laptime.manifests.target import reach_policy
from laptime.manifests.tiers import tier_objects
from laptime.manifests.verifier import verify_job
from laptime.plan import plan_profiles, plan_trials

PASSWORD = "correct-horse_battery"
OF_ADMIN = "staple-of_an_administrator"
UID = "7e2d8a70-4f0a-4f0b-9f2c-3b8f5c0f9a11"

IMAGES = ImageSet(
    postgres="docker.io/laptime/postgres:1",
    pgbouncer="docker.io/laptime/pgbouncer:1",
    haproxy="docker.io/laptime/haproxy:1",
    generator="docker.io/laptime/k6:1",
    operator="docker.io/laptime/operator:1",
    upstream="docker.io/laptime/upstream:1",
    delay="docker.io/laptime/delay:1",
    servers={
        "fastapi-sync": "docker.io/laptime/server-fastapi-sync:1",
        "axum-sqlx": "docker.io/laptime/server-axum-sqlx:1",
    },
)

SCENARIO = Scenario.model_validate(
    {
        "name": "tiny",
        "title": "Tiny",
        "description": "One request.",
        "data": {
            "postgres": {
                "schema": [{"sql": "CREATE TABLE t (id int);\n"}],
                "seed": [{"sql": "SELECT 1;\n"}],
            },
            "sqlite": {"schema": [{"sql": "CREATE TABLE t (id integer);\n"}]},
        },
        "requests": [{"name": "list", "path": "/"}],
        "checks": [{"name": "list", "path": "/", "contentType": "application/json"}],
    }
)

CRUD_SCENARIO = SCENARIO.model_copy(
    update={
        "requests": [
            *SCENARIO.requests,
            Request.model_validate(
                {
                    "name": "delete",
                    "method": "DELETE",
                    "path": "/t/{id}",
                    "expectStatus": 204,
                    "ids": {"first": 1, "last": 9000, "use": "once"},
                }
            ),
        ]
    }
)

MARKET = Scenario.model_validate(
    {
        "name": "market",
        "data": {"postgres": {"schema": [{"sql": "CREATE TABLE item (id int);\n"}]}},
        "feeders": [
            {
                "name": "users",
                "csv": {"text": 'name,password\r\nada,"pa,ss"\r\nbob,x\r\n'},
            },
            {"name": "colour", "values": ["red", "$(DATABASE_PASSWORD)"], "use": "random"},
            {"name": "n", "range": {"first": 1, "last": 5000}, "use": "once", "per": "request"},
        ],
        "requests": [
            {
                "name": "login",
                "method": "POST",
                "path": "/login",
                "headers": {"content-type": "application/json"},
                "body": '{"name": "{{users.name}}", "password": "{{users.password}}"}',
                "captures": [{"name": "token", "json": "/token"}],
                "thinkTime": {"min": "500ms", "max": "2s"},
            },
            {
                "name": "create",
                "method": "POST",
                "path": "/items?colour={{colour}}&n={{n}}",
                "headers": {"authorization": "Bearer {{token}}"},
                "cookies": {"name": "{{users.name|url}}"},
                "expectStatus": 201,
                "captures": [{"name": "item", "header": "location", "regex": "/items/(.+)"}],
            },
            {"name": "read", "path": "/items/{{item}}"},
            {"name": "front", "path": "/", "weight": 9},
        ],
        "sessions": [{"name": "shop", "steps": ["login", "create", "read"]}],
        "checks": [
            {
                "name": "login",
                "method": "POST",
                "path": "/login",
                "headers": {"content-type": "application/json"},
                "body": '{"name": "{{users.name}}", "password": "{{users.password}}"}',
                "times": 1,
                "captures": [{"name": "token", "json": "/token"}],
            },
            {
                "name": "create",
                "method": "POST",
                "path": "/items?colour={{colour}}&n={{n}}",
                "headers": {"authorization": "Bearer {{token}}"},
                "expectStatus": 201,
                "times": 1,
                "captures": [{"name": "item", "header": "location", "regex": "/items/(.+)"}],
            },
            {"name": "read", "path": "/items/{{item}}", "expectedPart": {"id": "{{item}}"}},
            {"name": "front", "path": "/"},
        ],
    }
)
AROUND = Scenario.model_validate(
    {
        "name": "around",
        "services": [
            {
                "name": "cache",
                "image": "registry.example/redis:8",
                "args": ["--requirepass", "$(SERVICE_CACHE_PASSWORD)", "--dir", "/data", "$(HOME)"],
                "ports": [6379],
                "password": True,
                "threads": 1,
                "user": 999,
                "writable": ["/data"],
                "resources": {"cpu": "1", "memory": "256Mi"},
            },
            {
                "name": "pay-mock",
                "image": "registry.example/mock:2",
                "command": ["/mock"],
                "env": [
                    {"name": "CACHE", "value": "$(SERVICE_CACHE_HOST):$(SERVICE_CACHE_PORT)"},
                    {"name": "PRICE", "value": "$5 or $$(SERVICE_NONE_HOST)"},
                ],
                "ports": [8080, 8081],
                "ready": {"path": "/healthz", "port": 8081},
                "reset": {
                    "request": {
                        "path": "/__admin/reset?all",
                        "port": 8081,
                        "headers": {"content-type": "application/json"},
                        "body": '{"all": "{{$x}}"}',
                        "expectStatus": 204,
                    }
                },
            },
            {
                "name": "db",
                "image": "registry.example/mysql:9",
                "ports": [3306],
                "password": True,
                "reset": {
                    "job": {
                        "image": "registry.example/reset:1",
                        "args": ["$(SERVICE_DB_HOST)"],
                        "env": [{"name": "MYSQL_PWD", "value": "$(SERVICE_DB_PASSWORD)"}],
                        "user": 1000,
                    }
                },
            },
            {"name": "fonts", "image": "registry.example/fonts:1", "ports": [80],
             "stateless": True},
        ],
        "requests": [{"name": "list", "path": "/"}],
        "checks": [{"name": "list", "path": "/"}],
    }
)  # fmt: skip
ROWS = {"image": "registry.example/rows:3", "file": "/data/rows.sql"}
LARGE = SCENARIO.model_validate(
    {
        **SCENARIO.model_dump(by_alias=True, exclude_defaults=True),
        "name": "large",
        "data": {
            "postgres": {
                "schema": [
                    {"sql": "CREATE TABLE t (id int);\n"},
                    {"image": "registry.example/schema:1", "file": "/views.sql"},
                ],
                "seed": [ROWS, {"sql": "SELECT 1;\n"}, {**ROWS, "file": "/data/more.sql"}],
            }
        },
    }
)
SCENARIOS = {one.name: one for one in (SCENARIO, MARKET, AROUND, LARGE)}

CLOSED = {"name": "closed", "closed": {"connections": 10, "requests": 50000, "keepAlive": False}}
TIMED = {"name": "timed", "closed": {"connections": 2, "duration": "10s"}, "warmup": "0s"}
OPEN = {"name": "open", "open": {"rate": 1000, "duration": "30s"}, "timeout": "45s"}
RAMP = {"name": "ramp", "ramp": {"from": 10, "to": 2000, "duration": "1m"}}
STAIRS = {
    "name": "stairs",
    "stairs": {
        "steps": [{"rate": 100, "duration": "10s"}, {"rate": 400, "duration": "1m"}],
        "maxConnections": 50,
        "arrivals": "poisson",
        "connectOver": "1500ms",
    },
}
MIXED = {
    "name": "mixed",
    "closed": {"connections": 8, "duration": "10s", "connectOver": "0s"},
    "mix": [{"name": "list", "weight": 9}],
    "thinkTime": {"min": "500ms", "max": "2s"},
}
SEARCH = {"name": "search", "saturation": {"p99": "50ms"}}
SCRIPT = {"name": "own", "script": {"configMap": "my-script", "key": "script.js"}}
PACKED = {
    "name": "packed",
    "script": {"image": "registry.example/load:1.2", "folder": "/load", "key": "shop/main.js"},
}
SYNC = {"name": "sync", "preset": "fastapi-sync", "workers": 4, "profile": True}
AXUM = {"name": "axum", "preset": "axum-sqlx", "resources": {"cpu": "2", "memory": "256Mi"}}
OWN = {
    "name": "own",
    "image": "registry.example/own:1.2",
    "port": 9000,
    "healthPath": "/actuator/health",
    "env": [{"name": "MODE", "value": "fast"}],
}
LICENSED = {
    **OWN,
    "env": [{"name": "MODE", "value": "fast"}, {"name": "LICENCE", "secret": "shop-licence"}],
}

SHOP = {
    "name": "shop",
    "service": {
        "name": "shop",
        "portName": "web",
        "healthPath": "/ready",
        "tls": {"configMap": "shop-ca"},
        "credentials": "shop-client",
    },
}
CART = {"name": "cart", "service": {"name": "cart", "port": 80}}
TARGETS = {
    "shop": Target(8443, "https", {"app": "shop"}),
    "cart": Target(80, 3000, {"app": "cart", "tier": "web"}),
}

NETWORK = Network(
    dns=({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},),
    watchers=("laptime-system", "monitoring"),
)

ISOLATED = Placement.from_wire(
    "isolated",
    {
        "description": "Nodes of their own.",
        "servers": {
            "nodeSelector": {"laptime": "servers"},
            "tolerations": [{"key": "laptime", "operator": "Exists"}],
            "priorityClassName": "benchmarks",
        },
        "tiers": {"nodeSelector": {"laptime": "tiers"}},
        "generators": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "laptime", "operator": "In", "values": ["generators"]}
                                ]
                            }
                        ]
                    }
                }
            }
        },
    },
)

SPECS: dict[str, dict[str, Any]] = {
    "full": {
        "scenario": "tiny",
        "servers": [SYNC, AXUM, LICENSED],
        "topology": {
            "postgres": {"maxConnections": 1000, "resources": {"cpu": "1", "memory": "1Gi"}},
            "pgbouncer": {"poolMode": "transaction", "poolSize": 25},
            "haproxy": {"maxConnections": 25, "resources": {"cpu": "1500m"}},
        },
        "loads": [CLOSED, TIMED, OPEN, SCRIPT],
        "egress": [
            {"cidr": "203.0.113.7/32", "ports": [443, 8443]},
            {"namespace": "payments"},
        ],
        "repetitions": 1,
    },
    "direct": {
        "scenario": "tiny",
        "servers": [AXUM],
        "topology": {"postgres": {}},
        "loads": [CLOSED],
        "repetitions": 1,
    },
    "several": {
        "scenario": "tiny",
        "servers": [AXUM],
        "topology": {"postgres": {}},
        "loads": [CLOSED, OPEN, RAMP, STAIRS, MIXED],
        "generator": {"parallelism": 2},
        "repetitions": 1,
    },
    "apart": {
        "scenario": "tiny",
        "servers": [{**AXUM, "topology": {"pgbouncer": {"poolSize": 40}}}, OWN],
        "topology": {"postgres": {"databases": "perServer"}, "pgbouncer": {}},
        "loads": [CLOSED, SCRIPT],
        "repetitions": 1,
    },
    "bare": {
        "scenario": "tiny",
        "servers": [OWN],
        "loads": [TIMED, SEARCH, SCRIPT, PACKED],
        "repetitions": 1,
    },
    "embedded": {
        "scenario": "tiny",
        "servers": [{**AXUM, "threads": 8}, {**OWN, "threads": 2}],
        "topology": {
            "database": "sqlite",
            "upstream": {"latency": "20ms", "bytes": 1000},
            "delay": {"servers": "22ms"},
        },
        "loads": [{**CLOSED, "endpoints": ["list"]}],
        "repetitions": 1,
    },
    "distant": {
        "scenario": "tiny",
        "servers": [AXUM, OWN],
        "topology": {
            "postgres": {},
            "haproxy": {},
            "delay": {
                "servers": "22ms",
                "database": "2ms",
                "resources": {"cpu": "1", "memory": "64Mi"},
            },
        },
        "loads": [CLOSED],
        "repetitions": 1,
    },
    "sessions": {
        "scenario": "market",
        "servers": [OWN],
        "topology": {"postgres": {}},
        "loads": [
            {"name": "all", "closed": {"connections": 8, "requests": 900}},
            {
                "name": "shop",
                "open": {"rate": 100, "duration": "10s"},
                "mix": [{"name": "shop", "weight": 1}, {"name": "login", "weight": 2}],
            },
            {
                "name": "alone",
                "closed": {"connections": 1, "duration": "5s"},
                "endpoints": ["login", "front"],
                "thinkTime": {"min": "1s"},
            },
        ],
        "repetitions": 1,
        "seed": 3,
    },
    "around": {
        "scenario": "around",
        "servers": [
            {"name": "plain", "image": "registry.example/own:1.2"},
            {
                "name": "cached",
                "image": "registry.example/own:1.2",
                "env": [
                    {
                        "name": "CACHE_URL",
                        "value": "redis://:$(SERVICE_CACHE_PASSWORD)@$(SERVICE_CACHE_HOST):"
                        "$(SERVICE_CACHE_PORT)/0",
                    },
                    {"name": "COST", "value": "$(HOME) $5"},
                ],
                "command": ["/own"],
                "args": ["--listen=:$(PORT)", "--cache=$(SERVICE_CACHE_HOST)", "$(HOME)"],
                "user": 1000,
                "writable": ["/app/cache"],
            },
        ],
        "loads": [TIMED],
        "repetitions": 1,
    },
    "large": {
        "scenario": "large",
        "servers": [AXUM],
        "topology": {"postgres": {"resources": {"cpu": "2", "memory": "1Gi"}}},
        "loads": [TIMED],
        "repetitions": 1,
    },
    "there": {
        "scenario": "tiny",
        "servers": [SHOP, CART, AXUM],
        "topology": {"postgres": {}, "upstream": {}},
        "loads": [CLOSED],
        "repetitions": 1,
    },
    "scripted": {
        "scenario": "tiny",
        "servers": [CART],
        "loads": [SCRIPT],
        "repetitions": 1,
    },
    "proxied": {
        "scenario": "tiny",
        "servers": [OWN, AXUM],
        "topology": {"haproxy": {}},
        "loads": [OPEN],
        "repetitions": 1,
    },
}


def context(spec: str | dict[str, Any] = "full", **changes: Any) -> RunContext:
    """Return the context of one of SPECS, or of a spec."""
    asked = BenchmarkRunSpec.model_validate(SPECS[spec] if isinstance(spec, str) else spec)
    arguments: dict[str, Any] = {
        "name": "demo",
        "namespace": "bench",
        "uid": UID,
        "spec": asked,
        "scenario": SCENARIOS.get(asked.scenario, SCENARIO),
        "images": IMAGES,
        "network": NETWORK,
        "targets": TARGETS,
    } | changes
    return RunContext(**arguments)


def users_context() -> RunContext:
    """Return a run of the scenario that the catalogue really has."""
    return context("full", scenario=scenarios()["users"])


def archive_objects(ctx: RunContext) -> list[Manifest]:
    """Return an archive that needs a second object."""
    head, parts = archive_config_maps(ctx, b"\xfd" * 2 + bytes(MAX_PART_BYTES))
    for one in (head, *parts):
        text = one["binaryData"][ARCHIVE_KEY]
        one["binaryData"] = {ARCHIVE_KEY: f"{text[:8]}... ({len(text)})"}
    return [head, *parts]


def objects(ctx: RunContext) -> list[Manifest]:
    """Return every object that a run can ever have."""
    trials = plan_trials(ctx.name, ctx.spec, 1)
    results = [
        TrialResult(
            trial=trial.name,
            ordinal=trial.ordinal,
            server=trial.server,
            load=trial.load,
            repetition=trial.repetition,
            outcome=TrialOutcome.MEASURED,
        )
        for trial in trials
    ]
    return [
        database_secret(ctx, PASSWORD, OF_ADMIN, console_address(ctx), "demo-postgres", "c0f1"),
        network_policy(ctx),
        *(reach_policy(ctx, server) for server in ctx.spec.servers if not server.deployed),
        *tier_objects(ctx),
        *(server_deployment(ctx, server, None) for server in ctx.spec.deployed),
        *(server_deployment(ctx, server, trials[0].name) for server in ctx.spec.deployed),
        *(verify_job(ctx, server) for server in ctx.spec.servers),
        *side_objects(ctx, trials[0].name),
        *(
            asking_job(ctx, server, registry=registry)
            for server in ctx.spec.deployed
            if ctx.images.by_tag(server)
            for registry in (False, True)
        ),
        path_server_job(ctx, 1, "bench-1"),
        path_generator_job(ctx, 1, "bench-2", "10.0.0.7"),
        *(trial_job(ctx, trial) for trial in trials),
        *(result_config_map(ctx, result, "H4sIAAAA") for result in results),
        *archive_objects(ctx),
        *(profile_job(ctx, one) for one in plan_profiles(ctx.name, ctx.spec)),
        *(
            server_deployment(ctx, ctx.spec.server(one.server), one.name)
            for one in plan_profiles(ctx.name, ctx.spec)
        ),
        *(
            profile_config_map(ctx, one.name, Profile(one.server, one.load, "main 1\n"), "<svg/>")
            for one in plan_profiles(ctx.name, ctx.spec)
        ),
    ]


def side_objects(ctx: RunContext, trial: str) -> list[Manifest]:
    """Return what is made of the services of a scenario for one trial, and their passwords."""
    services = ctx.scenario.services
    if not services:
        return []
    passwords = {one.name: PASSWORD for one in services if one.password}
    return [
        services_secret(ctx, passwords, "demo-services", "c0f1"),
        *(side_service_service(ctx, one, trial) for one in services if one.fresh),
        *(side_service_deployment(ctx, one, trial) for one in services if one.fresh),
        *(reset_job(ctx, one, one.reset, trial) for one in services if one.reset is not None),
    ]


def pod_specs(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest, Manifest]]:
    """Yield (kind and name, pod template, pod spec) of everything that starts pods."""
    for manifest in manifests:
        template = manifest.get("spec", {}).get("template")
        if template is not None:
            name = f"{manifest['kind']} {manifest['metadata']['name']}"
            yield name, template, template["spec"]


def containers(pod: Manifest) -> list[Manifest]:
    """Return all containers of a pod, those that run before the others too."""
    found: list[Manifest] = [*pod.get("initContainers", []), *pod["containers"]]
    return found


def environment(container: Manifest) -> dict[str, str]:
    """Return the environment as the container sees it, expanded as the kubelet does it.

    A variable from a Secret has the value `<secret>/<key>`, one of the pod the path of its field.
    """
    seen: dict[str, str] = {}
    for variable in container.get("env", []):
        if "fieldRef" in variable.get("valueFrom", ()):
            seen[variable["name"]] = variable["valueFrom"]["fieldRef"]["fieldPath"]
        elif "valueFrom" in variable:
            reference = variable["valueFrom"]["secretKeyRef"]
            seen[variable["name"]] = f"{reference['name']}/{reference['key']}"
        else:
            seen[variable["name"]] = expand(variable["value"], seen)
    return seen


def expand(text: str, variables: dict[str, str]) -> str:
    """Expand `$(NAME)` by the rules of the kubelet (third_party/forked/golang/expansion)."""
    result, rest = "", text
    while rest:
        if rest.startswith("$$"):
            result, rest = result + "$", rest[2:]
        elif rest.startswith("$(") and ")" in rest:
            name, after = rest[2:].split(")", 1)
            result, rest = result + variables.get(name, f"$({name})"), after
        else:
            result, rest = result + rest[0], rest[1:]
    return result
