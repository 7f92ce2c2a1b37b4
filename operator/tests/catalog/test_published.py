"""Published figures stand beside servers and loads that are set up the same, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from laptime.api.loads import Load
from laptime.api.published import PublishedLoad, PublishedMeasurement
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import (
    OrderClaim,
    Published,
    Scenario,
    document_of,
    document_spec,
    presets,
    scenario_of,
    scenarios,
    stored_text,
)

NEWER: list[list[str | int]] = [
    [],
    ["measurements", 0],
    ["measurements", 0, "load"],
    ["measurements", 0, "load", "closed"],
    ["measurements", 0, "servers", 0],
]


def published(scenario: str) -> Published:
    found = scenarios()[scenario].published
    assert found is not None
    return found


KEPT = {"sleep", "tasks", "recipes"}
"""Whose published loads keep connections; ab, which sent the others, keeps none unless told to."""


def spec(
    scenario: str, servers: list[dict[str, Any]], endpoints: list[str] | None, connections: int
) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": scenario,
            "servers": servers,
            "loads": [
                {
                    "name": "closed",
                    "endpoints": endpoints,
                    "closed": {
                        "connections": connections,
                        "requests": 1000,
                        "keepAlive": scenario in KEPT,
                    },
                }
            ],
        }
    )


SLEEPERS: list[dict[str, Any]] = [
    {"name": f"w{workers}-t{threads}", "preset": "fastapi-sleep", "workers": workers}
    | ({"threads": threads} if threads > 1 else {})
    for workers in (1, 4)
    for threads in (1, 4)
]
APIS: list[dict[str, Any]] = [
    {"name": "flask", "preset": "flask", "databaseConnections": 1},
    {"name": "starlette", "preset": "starlette", "databaseConnections": 50},
    {
        "name": "starlette-sync",
        "preset": "starlette",
        "databaseConnections": 1,
        "env": [{"name": "DATABASE_ACCESS", "value": "sync"}],
    },
    {"name": "go", "preset": "go-nethttp", "workers": 2, "databaseConnections": 50},
]
TASK_SERVERS: list[dict[str, Any]] = [
    {"name": "fastapi", "preset": "fastapi-tasks", "workers": 2, "databaseConnections": 2},
    {"name": "rocket", "preset": "rocket-diesel", "workers": 2, "databaseConnections": 2},
    {"name": "axum", "preset": "axum-diesel", "workers": 2, "databaseConnections": 2},
]


@pytest.mark.parametrize("endpoint", ["sync", "sync-1s"])
def test_four_sleeping_workers_answer_two_and_a_half_times_as_many(endpoint: str) -> None:
    one = spec("sleep", SLEEPERS, [endpoint], 100)
    factors = [published("sleep").factor(one, name["name"], "closed") for name in SLEEPERS]
    assert factors == pytest.approx([1, 1, 8.33 / 3.33, 8.33 / 3.33])


def test_what_does_not_block_is_the_same_with_every_set_up() -> None:
    one = spec("sleep", SLEEPERS, ["async"], 100)
    assert {published("sleep").factor(one, s["name"], "closed") for s in SLEEPERS} == {1.0}


def test_nothing_is_published_about_a_mix_of_both_or_other_workers() -> None:
    assert published("sleep").factor(spec("sleep", SLEEPERS, None, 100), "w4-t1", "closed") is None
    mixed = spec("sleep", SLEEPERS, ["sync", "async"], 100)
    assert published("sleep").factor(mixed, "w4-t1", "closed") is None
    other = [*SLEEPERS, {"name": "w2", "preset": "fastapi-sleep", "workers": 2}]
    assert published("sleep").factor(spec("sleep", other, ["sync"], 100), "w2", "closed") is None


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ("closed", {"thinkTime": {"min": "1s"}}),
        ("closed", {"mix": [{"name": "create", "weight": 3}, {"name": "read", "weight": 1}]}),
        ("closed", {"endpoints": ["read"]}),
        ("open", {"endpoints": ["read"]}),
        ("open", {"mix": [{"name": "create", "weight": 3}, {"name": "read", "weight": 1}]}),
        ("open", {"open": {"rate": 100, "duration": "10s", "arrivals": "poisson"}}),
    ],
)
def test_nothing_is_published_about_another_load_at_as_many_connections_or_that_rate(
    shape: str, other: dict[str, Any]
) -> None:
    whole = {
        "closed": {"connections": 10, "duration": "10s"},
        "open": {"rate": 100, "duration": "10s"},
    }
    source = {"closed": {"connections": 10, "keepAlive": True}, "open": {"rate": 100}}
    load = {"name": "one", shape: whole[shape]}
    published_load = PublishedLoad.model_validate({shape: source[shape]})
    assert published_load.is_like(Load.model_validate(load))
    assert not published_load.is_like(Load.model_validate(load | other))


@pytest.mark.parametrize(
    ("endpoint", "order"),
    [
        ("hi", ["go", "starlette", "starlette-sync", "flask"]),
        ("users", ["go", "starlette", "starlette-sync", "flask"]),
        ("posts", ["go", "starlette-sync", "starlette", "flask"]),
    ],
)
def test_each_endpoint_has_its_own_order(endpoint: str, order: list[str]) -> None:
    one = spec("apibench", APIS, [endpoint], 50)
    assert published("apibench").order(one, "closed") == order


def test_settings_tell_servers_of_one_preset_apart() -> None:
    one = spec("posts", APIS, None, 50)
    assert published("posts").factor(one, "starlette-sync", "closed") == pytest.approx(1388 / 690)
    assert published("posts").factor(one, "starlette", "closed") == pytest.approx(712 / 690)


@pytest.mark.parametrize("connections", [1, 10])
def test_an_order_can_be_published_without_figures(connections: int) -> None:
    one = spec("tasks", TASK_SERVERS, ["create"], connections)
    assert published("tasks").order(one, "closed") == ["axum", "rocket", "fastapi"]
    assert published("tasks").factor(one, "rocket", "closed") is None
    factor = published("tasks").factor(one, "axum", "closed")
    assert factor == (2.5 if connections == 1 else None)


def test_an_order_says_of_each_two_servers_which_is_faster() -> None:
    one = spec("tasks", TASK_SERVERS, ["create"], 1)
    assert published("tasks").claims(one, "closed") == [
        OrderClaim("axum", "rocket"),
        OrderClaim("axum", "fastapi"),
        OrderClaim("rocket", "fastapi"),
    ]


def test_the_first_can_be_known_without_an_order_of_the_others() -> None:
    one = spec("tasks", TASK_SERVERS, ["hello"], 1)
    assert published("tasks").claims(one, "closed") == [
        OrderClaim("axum", "fastapi"),
        OrderClaim("axum", "rocket"),
    ]


def test_nothing_is_said_of_two_servers_that_the_source_has_one_row_for() -> None:
    twice = [*TASK_SERVERS[:1], {**TASK_SERVERS[0], "name": "again"}]
    assert published("tasks").claims(spec("tasks", twice, ["create"], 1), "closed") == []
    # /hi needs no database, so how it is asked is not in the source.
    one = spec("apibench", APIS[1:3], ["hi"], 50)
    assert published("apibench").claims(one, "closed") == []


def test_servers_with_the_same_figure_are_alike() -> None:
    one = spec("sleep", SLEEPERS[1:3], ["async"], 100)
    assert published("sleep").claims(one, "closed") == [OrderClaim("w1-t4", "w4-t1", alike=True)]
    one = spec("sleep", SLEEPERS[1:3], ["sync"], 100)
    assert published("sleep").claims(one, "closed") == [OrderClaim("w4-t1", "w1-t4")]


def test_nothing_is_claimed_under_a_load_that_was_not_published() -> None:
    one = spec("posts", APIS, None, 7)
    assert published("posts").claims(one, "closed") == []
    assert published("posts").about(one, "go", "closed") is None


@pytest.mark.parametrize("scenario", ["hello", "upstream", "posts"])
def test_ab_kept_no_connections(scenario: str) -> None:
    one = spec(scenario, APIS, None, 50)
    closed = one.loads[0].closed
    assert closed is not None
    kept = one.loads[0].model_copy(
        update={"closed": closed.model_copy(update={"keep_alive": True})}
    )
    assert published(scenario).order(one, "closed") != []
    assert published(scenario).order(one.model_copy(update={"loads": [kept]}), "closed") == []


def test_the_figures_of_one_server_under_one_load() -> None:
    one = spec("apibench", APIS, ["users"], 50)
    found = published("apibench").about(one, "go", "closed")
    assert found is not None
    assert found.requests_per_second == 924


# What the libraries of the source's Django and Axum do unless told otherwise.
RECIPE_SETTINGS: dict[str, list[dict[str, str]]] = {
    "django-psycopg": [{"name": "KEEP_CONNECTIONS", "value": "false"}],
    "starlette-asyncpg": [],
    "axum-bb8": [{"name": "STATEMENT_CACHE", "value": "false"}],
}


RECIPE_CONNECTIONS = {"django-psycopg": 5, "starlette-asyncpg": 10, "axum-bb8": 20}


def recipe_servers(settings: dict[str, list[dict[str, str]]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "preset": name,
            "workers": presets()[name].workers,
            "databaseConnections": RECIPE_CONNECTIONS[name],
            "env": env,
        }
        for name, env in settings.items()
    ]


def test_the_servers_of_recipes_are_compared_with_the_workers_of_the_source() -> None:
    servers = recipe_servers(RECIPE_SETTINGS)
    one = spec("recipes", servers, None, 50)
    assert published("recipes").order(one, "closed") == [
        "starlette-asyncpg",
        "axum-bb8",
        "django-psycopg",
    ]
    assert published("recipes").factor(one, "axum-bb8", "closed") == pytest.approx(267 / 58)


def test_what_the_source_left_to_its_libraries_is_not_compared_with_what_is_tuned() -> None:
    tuned = spec("recipes", recipe_servers({name: [] for name in RECIPE_SETTINGS}), None, 50)
    assert published("recipes").order(tuned, "closed") == ["starlette-asyncpg"]
    for server in ("django-psycopg", "axum-bb8"):
        assert published("recipes").about(tuned, server, "closed") is None


@pytest.mark.parametrize(
    ("server", "other"),
    [
        ("django-psycopg", {"threads": 4}),
        ("starlette-asyncpg", {"databaseConnections": 20}),
        ("axum-bb8", {"databaseConnections": 10}),
    ],
)
def test_other_threads_or_another_pool_than_the_source_had_stand_beside_nothing(
    server: str, other: dict[str, Any]
) -> None:
    as_published = recipe_servers(RECIPE_SETTINGS)
    servers = [one | other if one["name"] == server else one for one in as_published]
    one = spec("recipes", servers, None, 50)
    assert published("recipes").about(one, server, "closed") is None
    assert server not in published("recipes").order(one, "closed")
    assert len(published("recipes").order(one, "closed")) == 2


@pytest.mark.parametrize("endpoint", ["create", "hello"])
def test_a_pool_of_another_size_has_no_place_where_the_database_is_asked(endpoint: str) -> None:
    larger = [{**one, "databaseConnections": 4} for one in TASK_SERVERS[1:]]
    one = spec("tasks", [TASK_SERVERS[0], *larger], [endpoint], 1)
    asked = endpoint == "create"
    assert published("tasks").factor(one, "axum", "closed") is None
    assert published("tasks").order(one, "closed") == (["fastapi"] if asked else ["axum"])
    assert (published("tasks").claims(one, "closed") == []) is asked


@pytest.mark.parametrize("endpoint", ["posts", "hi"])
@pytest.mark.parametrize("server", ["flask", "starlette", "starlette-sync", "go"])
def test_each_server_of_one_preset_has_its_own_pool_in_a_source(server: str, endpoint: str) -> None:
    # Neither five nor the pool of the other Starlette.
    for connections in {5, 1, 50} - {
        one["databaseConnections"] for one in APIS if one["name"] == server
    }:
        servers = [
            {**one, "databaseConnections": connections} if one["name"] == server else one
            for one in APIS
        ]
        one = spec("apibench", servers, [endpoint], 50)
        assert (published("apibench").about(one, server, "closed") is None) is (endpoint == "posts")
        assert (server in published("apibench").order(one, "closed")) is (endpoint == "hi")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (
            {"databaseConnections": 4},
            "published with 2 database connections in each process (here 4)",
        ),
        ({"preset": "axum-sqlx"}, "nothing is published of axum-sqlx under such a load"),
        (
            {"preset": None, "image": "registry.example/mine:1"},
            "figures are published of presets, and this is none",
        ),
    ],
)
def test_why_a_server_has_no_published_factor_where_others_have_one_is_said(
    server: dict[str, Any], why: str
) -> None:
    other = {**TASK_SERVERS[2], **server}
    one = spec("tasks", [TASK_SERVERS[0], other], ["create"], 1)
    found = published("tasks")
    assert found.factor(one, "axum", "closed") is None
    assert found.missing(one, "axum", "closed") == why
    assert found.missing(one, "fastapi", "closed") is None


def test_settings_and_threads_of_the_source_are_said_by_the_row_that_is_nearest() -> None:
    servers = recipe_servers({**RECIPE_SETTINGS, "axum-bb8": []})
    servers[0]["threads"] = 4
    servers[2]["databaseConnections"] = 3
    one = spec("recipes", servers, None, 50)
    run = one.model_copy(update={"baseline": "starlette-asyncpg"})
    said = {s["name"]: published("recipes").missing(run, s["name"], "closed") for s in servers}
    assert said == {
        "django-psycopg": "published with 1 thread (here 4)",
        "starlette-asyncpg": None,
        "axum-bb8": "published with STATEMENT_CACHE=false (not here), 20 database connections in "
        "each process (here 3)",
    }
    workers = {"name": "w3", "preset": "fastapi-sleep", "workers": 3}
    one = spec("sleep", [SLEEPERS[0], workers], ["sync"], 100)
    why = "published with 1 worker (here 3)"
    assert published("sleep").missing(one, "w3", "closed") == why


def test_what_has_a_place_in_an_order_alone_has_no_throughput() -> None:
    ranked = spec("tasks", TASK_SERVERS, ["create"], 10)
    # Nobody has a factor there, so there is no column to explain.
    assert published("tasks").missing(ranked, "axum", "closed") is None
    one = spec("tasks", TASK_SERVERS, ["create"], 1)
    why = "its place is published, and no figure"
    assert published("tasks").missing(one, "rocket", "closed") == why


@pytest.mark.parametrize("first", ["flask", None])
def test_nothing_is_missing_where_nobody_has_a_published_factor(first: str | None) -> None:
    servers = [{"name": "a", "preset": first} if first else {"name": "a", "image": "r.x/a:1"}]
    one = spec("posts", [*servers, *APIS[1:]], None, 50 if first is None else 7)
    names = [server.name for server in one.servers]
    assert {published("posts").missing(one, name, "closed") for name in names} == {None}


def test_the_parts_and_the_whole_of_apibench_say_the_same() -> None:
    whole = {
        (measurement.load.endpoints or [""])[0]: measurement
        for measurement in published("apibench").measurements
    }
    for scenario in ("hello", "upstream", "posts"):
        (measurement,) = published(scenario).measurements
        same = whole[scenarios()[scenario].requests[0].name]
        assert same.servers == measurement.servers
        assert same.database_connections == measurement.database_connections
        assert same.load.closed == measurement.load.closed


@pytest.mark.parametrize("place", NEWER, ids=str)
def test_what_a_newer_version_keeps_of_a_source_is_kept_and_means_nothing(
    place: list[str | int],
) -> None:
    users = scenarios()["users"]
    newer = json.loads(stored_text(users))
    node = newer["published"]
    for part in place:
        node = node[part]
    node["ofNewer"] = {"a": 1}
    read = Scenario.model_validate_json(json.dumps(newer))
    assert json.loads(stored_text(read)) == newer
    assert read.hash == users.hash
    assert read.published is not None
    assert read.published.factors == published("users").factors


@pytest.mark.parametrize("place", NEWER, ids=str)
def test_a_field_that_nobody_knows_is_refused_where_somebody_writes_it(
    place: list[str | int],
) -> None:
    document = document_of(scenarios()["users"], "default")
    node = document["spec"]["published"]
    for part in place:
        node = node[part]
    node["ofNewer"] = {"a": 1}
    for read in (scenario_of, document_spec):
        with pytest.raises(ValidationError, match="ofNewer\n  Extra inputs are not permitted"):
            read(document)


def test_the_source_says_nothing_about_the_control() -> None:
    found = published("apibench")
    plain = spec("apibench", APIS, ["hi"], 50)
    with_control = plain.model_copy(update={"control": True}).with_control()
    assert len(with_control.servers) == len(plain.servers) + 1
    assert found.order(with_control, "closed") == found.order(plain, "closed")
    assert found.claims(with_control, "closed") == found.claims(plain, "closed") != []


def test_the_pool_of_one_server_of_a_preset_is_what_is_missing_of_it() -> None:
    servers = [{**one, "databaseConnections": 5} for one in APIS if one["name"] == "starlette"]
    others = [one for one in APIS if one["name"] != "starlette"]
    run = spec("apibench", [*others, *servers], ["posts"], 50)
    said = published("apibench").missing(run, "starlette", "closed")
    assert said == "published with 50 database connections in each process (here 5)"


def with_pool(connections: int) -> Server:
    flask = next(one for one in APIS if one["name"] == "flask")
    servers = [{**flask, "databaseConnections": connections}, APIS[-1]]
    return spec("apibench", servers, ["posts"], 50).servers[0]


def test_of_rows_that_differ_by_pool_alone_the_one_with_the_pool_of_a_server_stands() -> None:
    measurement = PublishedMeasurement.model_validate(
        {
            "load": {"closed": {"connections": 50, "keepAlive": False}},
            "servers": [
                {"preset": "flask", "databaseConnections": 5, "requestsPerSecond": 10},
                {"preset": "flask", "databaseConnections": 50, "requestsPerSecond": 20},
            ],
        }
    )
    found = measurement.of(with_pool(50))
    assert found is not None
    assert found.requests_per_second == 20
    assert measurement.of(with_pool(6)) is None
    assert measurement.missing(with_pool(6)).startswith("published with 5 database connections")


def test_a_row_for_a_special_server_of_another_pool_leaves_it_to_no_plain_one() -> None:
    measurement = PublishedMeasurement.model_validate(
        {
            "load": {"closed": {"connections": 50, "keepAlive": False}},
            "servers": [
                {"preset": "flask", "threads": 1, "databaseConnections": 1, "factor": 1},
                {"preset": "flask", "factor": 2},
            ],
        }
    )
    assert measurement.of(with_pool(5)) is None
