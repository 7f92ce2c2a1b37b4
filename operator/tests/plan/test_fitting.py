"""What of a run does not fit its scenario where a server is a Service that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.scenario import Data
from laptime.api.side_services import SideService
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Scenario, scenarios
from laptime.plan import left_behind, load_problems, misfits

FLASK = {"name": "flask", "preset": "flask"}
SHOP: dict[str, Any] = {"name": "mine", "service": {"name": "shop", "port": 8080}}
CLOSED = {"name": "closed", "closed": {"connections": 1, "requests": 1000}}


def spec(scenario: str, *servers: dict[str, Any], **load: Any) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {"scenario": scenario, "servers": list(servers), "loads": [{**CLOSED, **load}]}
    )


def test_a_service_has_its_own_database_and_asks_its_own_upstream() -> None:
    for name in ("users", "upstream"):
        scenario = scenarios()[name]
        own = scenario.model_copy(update={"builtin": False})
        assert misfits(spec(name, SHOP), scenario) == []
        assert misfits(spec(name, SHOP), own) == []
        image = {"name": "image", "image": "mine:1"}
        assert misfits(spec(name, SHOP, image), own)


@pytest.mark.parametrize(
    ("topology", "what"),
    [
        ({"haproxy": {}}, "topology.haproxy"),
        ({"delay": {"servers": "5ms"}}, "topology.delay.servers"),
    ],
)
def test_what_stands_before_deployed_servers_stands_before_no_service(
    topology: dict[str, Any], what: str
) -> None:
    hello = scenarios()["hello"]
    (said,) = misfits(altered(spec("hello", SHOP), topology=topology), hello)
    assert said.startswith(f"{what} stands before servers that Laptime deploys, and server mine")
    assert misfits(altered(spec("hello", FLASK), topology=topology), hello) == []


def test_two_servers_at_the_same_time_share_no_service_of_the_scenario() -> None:
    hello = scenarios()["hello"]
    redis = SideService.model_validate({"name": "cache", "image": "redis:7", "ports": [6379]})
    with_service = hello.model_copy(update={"services": [redis]})
    both = spec("hello", FLASK, {**FLASK, "name": "other"})
    duet = altered(both, pairing="duet")
    assert misfits(duet, hello) == []
    assert misfits(both, with_service) == []
    (said,) = misfits(duet, with_service)
    assert "(cache)" in said
    assert said.endswith("leave pairing out")


def test_no_script_is_told_credentials() -> None:
    hello = scenarios()["hello"]
    script = [{"name": "own", "script": {"configMap": "mine"}}]
    known = {"name": "mine", "service": {**SHOP["service"], "credentials": "shop-client"}}
    (said,) = load_problems(altered(spec("hello", known), loads=script), hello)
    assert said.startswith("load own: no script is told the credentials of server mine: leave")
    assert load_problems(altered(spec("hello", SHOP), loads=script), hello) == []


TEN_MINUTES = [{"duration": "4m", "target": 5}, {"duration": "6m", "target": 9}]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            {"options": {"vus": 5, "duration": "10m"}},
            "load own: options.duration of its script take 600 s, and its duration allows 300 s "
            "(5m where it is left out): write script.duration: 600s or more, or shorter "
            "options.duration",
        ),
        ({"options": {"stages": TEN_MINUTES}}, "load own: options.stages of its script take 600 s"),
        ({"options": {"stages": TEN_MINUTES}, "duration": "10m"}, ""),
        ({"options": {"duration": "5m"}}, ""),
        # What is under way at the end has half a minute.
        ({"options": {"duration": "5m30s"}}, ""),
        # With iterations it is the longest time, and they may be done long before.
        ({"options": {"iterations": 10, "duration": "10m"}}, ""),
        ({"options": {"vus": 5}}, ""),
        (
            {"warmup": "5m"},
            "load own: script.warmup (5m) is part of the 300 s that its script takes at most, and "
            "nothing would be left to measure: write a shorter warmup, or let the script go on for "
            "longer",
        ),
        ({"warmup": "30s", "options": {"duration": "30s"}}, "part of the 30 s"),
        ({"warmup": "30s", "options": {"iterations": 9, "duration": "20s"}}, "part of the 20 s"),
        ({"warmup": "299s"}, ""),
    ],
)
def test_a_script_whose_options_outlast_its_duration_is_refused(
    script: dict[str, Any], says: str
) -> None:
    hello = scenarios()["hello"]
    loads = [{"name": "own", "script": {"configMap": "mine", **script}}]
    said = load_problems(altered(spec("hello", FLASK), loads=loads), hello)
    assert len(said) == bool(says)
    assert says in "".join(said)


PROFILED = {"name": "axum", "preset": "axum-diesel", "profile": True}


@pytest.mark.parametrize(
    ("load", "says"),
    [
        (
            {"closed": {"connections": 10, "requests": 10_000}},
            "server axum: a profile is taken under load closed, the first that is no search, for "
            "up to 70 s, and delete uses each of its 50000 rows once: write a load before it that "
            "names other endpoints, or leave profile out",
        ),
        ({"closed": None, "open": {"rate": 1000, "duration": "30s"}}, "for up to 70 s, and delete"),
        ({"closed": None, "open": {"rate": 700, "duration": "30s"}}, ""),
        ({"endpoints": ["read"]}, ""),
    ],
)
def test_a_load_that_uses_rows_up_is_not_profiled_under(load: dict[str, Any], says: str) -> None:
    tasks, delete = scenarios()["tasks"], {"endpoints": ["delete"], **load}
    run = spec("tasks", PROFILED, **delete)
    said = load_problems(run, tasks)
    assert said == [says] if says.startswith("server") else len(said) == bool(says)
    assert says in "".join(said)
    assert load_problems(spec("tasks", {**PROFILED, "profile": False}, **delete), tasks) == []
    assert load_problems(altered(run, verifyOnly=True), tasks) == []
    reading = {"name": "read", "endpoints": ["read"], "closed": {"connections": 1, "requests": 9}}
    before = altered(run, loads=[reading, *run.to_wire()["loads"]])
    assert load_problems(before, tasks) == []


def altered(run: BenchmarkRunSpec, **changes: Any) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate({**run.to_wire(), **changes})


def test_rows_that_nobody_brings_back_are_not_used_up() -> None:
    tasks = scenarios()["tasks"]
    (said,) = load_problems(spec("tasks", SHOP), tasks)
    assert said == (
        "load closed: delete uses each of its 50000 rows once, and nobody brings them back for "
        "server mine, which Laptime does not deploy: name other endpoints, or compare it in a run "
        "without this load"
    )
    assert load_problems(spec("tasks", SHOP, endpoints=["read"]), tasks) == []
    assert load_problems(spec("tasks", FLASK), tasks) == []


SERVICES = [
    {"name": "cache", "image": "redis:8", "ports": [6379], "password": True},
    {"name": "mock", "image": "mock:1", "ports": [80]},
]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"name": "URL", "value": "redis://:$(SERVICE_CACHE_PASSWORD)@$(SERVICE_CACHE_HOST)"}, ""),
        ({"name": "URL", "value": "$(PORT) $HOME $(SERVICES)"}, ""),
        ({"name": "SERVICE_NAME", "value": "mine"}, ""),
        (
            {"name": "URL", "value": "$(SERVICE_CACHE_URL)"},
            "server mine: env.URL: there is no $(SERVICE_CACHE_URL): there is "
            "$(SERVICE_CACHE_HOST), $(SERVICE_CACHE_PORT), $(SERVICE_CACHE_PASSWORD), "
            "$(SERVICE_MOCK_HOST), $(SERVICE_MOCK_PORT)",
        ),
        (
            {"name": "URL", "value": "$(SERVICE_MOCK_PASSWORD)"},
            "server mine: env.URL: service mock has no password: write password: true there, or "
            "leave $(SERVICE_MOCK_PASSWORD) out",
        ),
        (
            {"name": "SERVICE_CACHE_HOST", "value": "elsewhere"},
            "server mine: env.SERVICE_CACHE_HOST: Laptime sets it, since scenario hello has a "
            "service cache: leave it out, or give yours another name",
        ),
    ],
)
def test_variables_of_a_server_name_services_that_there_are(
    env: dict[str, str], expected: str
) -> None:
    hello = scenarios()["hello"]
    around = Scenario.model_validate({**hello.to_wire(), "services": SERVICES})
    server = {"name": "mine", "image": "mine:1", "env": [env]}
    assert misfits(spec("hello", server), around) == ([expected] if expected else [])


TOLD = (
    "$(PORT), $(WORKERS), $(POD_IP), $(DATABASE_URL), $(DATABASE_HOST), $(DATABASE_PORT), "
    "$(DATABASE_USER), $(DATABASE_NAME), $(DATABASE_PASSWORD), $(DATABASE_CONNECTIONS), "
    "$(DATABASE_PREPARED_STATEMENTS)"
)


@pytest.mark.parametrize(
    ("topology", "server", "expected"),
    [
        ({"postgres": {}}, {"env": [{"name": "A", "value": "$(DATABASE_HOST)$(PORT)"}]}, ""),
        ({"database": "sqlite"}, {"args": ["$(DATABASE_URL)"]}, ""),
        ({"upstream": {}}, {"threads": 2, "args": ["$(UPSTREAM_URL)$(THREADS)"]}, ""),
        (
            {"postgres": {}},
            {"env": [{"name": "A", "value": "$(DATABASE_HOSTNAME)"}]},
            f"env.A: there is no $(DATABASE_HOSTNAME): there is {TOLD}",
        ),
        (
            {},
            {"args": ["serve", "--db=$(DATABASE_HOST)"]},
            "args[1]: there is no $(DATABASE_HOST): the run has no database",
        ),
        (
            {"database": "sqlite"},
            {"command": ["/mine", "$(DATABASE_NAME)"]},
            "command[1]: there is no $(DATABASE_NAME): the run has no Postgres; of SQLite there is "
            "$(DATABASE_URL) alone",
        ),
        (
            {},
            {"args": ["$(UPSTREAM_URL)"]},
            "args[0]: there is no $(UPSTREAM_URL): the run has no upstream",
        ),
        (
            {},
            {"args": ["$(THREADS)"]},
            "args[0]: there is no $(THREADS): nothing says the threads of this server",
        ),
        (
            {"postgres": {}},
            {
                "env": [
                    {"name": "DATABASE_HOST", "value": "a"},
                    {"name": "B", "value": "$(DATABASE_HOST)"},
                ]
            },
            "env.B: there is no $(DATABASE_HOST): env sets it itself: write its value there",
        ),
        (
            {"postgres": {}},
            {"env": [{"name": "DATABASE_NAME", "value": "a"}], "args": ["$(DATABASE_HOST)"]},
            "args[0]: there is no $(DATABASE_HOST): env sets DATABASE_NAME, and the four parts of "
            "a database give way together: give yours another name",
        ),
        (
            {"postgres": {"databases": "perServer"}},
            {"env": [{"name": "DATABASE_NAME", "value": "laptime"}]},
            "env.DATABASE_NAME: each server has a database of its own, and this one's is "
            "laptime_mine: leave it out, or write shared at topology.postgres.databases",
        ),
        (
            {"postgres": {"databases": "perServer"}},
            {"env": [{"name": "DB_NAME", "value": "$(DATABASE_NAME)"}]},
            "",
        ),
        # What is in a Secret can be named, whatever it is called.
        (
            {"postgres": {}},
            {
                "env": [
                    {"name": "URL", "value": "$(SERVICE_TOKEN)$(DATABASE_TOKEN)$(licence)"},
                    {"name": "SERVICE_TOKEN", "secret": "vendor"},
                    {"name": "DATABASE_TOKEN", "secret": "vendor"},
                    {"name": "DATABASE_HOST", "secret": "vendor"},
                    {"name": "licence", "secret": "vendor"},
                ],
                "command": ["/mine", "$(SERVICE_TOKEN)"],
                "args": ["$(DATABASE_HOST)"],
            },
            "",
        ),
        (
            {"postgres": {}},
            {"env": [{"name": "DATABASE_HOST", "secret": "a"}], "args": ["$(DATABASE_PORT)"]},
            "args[0]: there is no $(DATABASE_PORT): env sets DATABASE_HOST, and the four parts of "
            "a database give way together: give yours another name",
        ),
        (
            {},
            {"args": ["$(SERVICE_CACHE_HOST)"]},
            "args[0]: there is no $(SERVICE_CACHE_HOST): the scenario has no services",
        ),
    ],
)
def test_a_server_names_only_what_it_is_told(
    topology: dict[str, Any], server: dict[str, Any], expected: str
) -> None:
    run = altered(spec("hello", {"name": "mine", "image": "mine:1", **server}), topology=topology)
    said = [one for one in misfits(run, scenarios()["hello"]) if one.startswith("server")]
    assert said == ([f"server mine: {expected}"] if expected else [])


def test_what_a_preset_is_judged_by_is_in_no_secret() -> None:
    def said_of(**variable: str) -> list[str]:
        env = [{"name": "DATABASE_ACCESS", **variable}]
        starlette = {"name": "mine", "preset": "starlette", "env": env}
        return misfits(spec("hello", starlette), scenarios()["hello"])

    assert said_of(value="sync") == []
    assert said_of(secret="vendor") == [
        "server mine: env.DATABASE_ACCESS: what limits preset starlette is judged by its value: "
        "write it at value, and no secret"
    ]


def test_where_a_scenario_has_no_services_that_is_said() -> None:
    env = [{"name": "URL", "value": "$(SERVICE_CACHE_HOST)"}]
    server = {"name": "mine", "image": "mine:1", "env": env}
    assert misfits(spec("hello", server), scenarios()["hello"]) == [
        "server mine: env.URL: there is no $(SERVICE_CACHE_HOST): the scenario has no services"
    ]


def test_a_preset_that_does_not_speak_http2_gets_no_load_over_it() -> None:
    hello = scenarios()["hello"]
    go = {"name": "go", "preset": "go-nethttp"}
    image = {"name": "image", "image": "mine:1"}
    (said,) = misfits(spec("hello", go, FLASK, SHOP, image, protocol="http2"), hello)
    assert said == (
        "server flask: preset flask does not speak HTTP/2: write protocol: http1 at load closed, "
        "or take go-nethttp, an image or a service"
    )
    # Also where the scenario is somebody's own.
    own = hello.model_copy(update={"builtin": False})
    assert misfits(spec("hello", FLASK, protocol="http2"), own) == [said]
    assert misfits(spec("hello", go, FLASK), hello) == []


def test_what_http2_has_no_header_for_is_said() -> None:
    hello = scenarios()["hello"]
    (request, *_) = hello.requests
    closing = request.model_copy(update={"headers": {"Connection": "close"}})
    scenario = hello.model_copy(update={"requests": [closing]})
    (said,) = load_problems(spec("hello", SHOP, protocol="http2"), scenario)
    assert said.startswith("load closed: HTTP/2 has no header Connection, which hi has: leave")
    assert load_problems(spec("hello", SHOP), scenario) == []
    # Its answers are checked over what a script says that it speaks.
    own: dict[str, Any] = {"name": "own", "script": {"configMap": "mine"}}
    (check,) = hello.checks
    asking = check.model_copy(update={"headers": {"Connection": "close"}})
    checked = hello.model_copy(update={"checks": [asking]})
    script = altered(spec("hello", SHOP), loads=[{**own, "protocol": "http2"}])
    (said,) = load_problems(script, checked)
    assert said.startswith("load own: HTTP/2 has no header Connection, which hi has: leave")
    assert load_problems(altered(script, loads=[own]), checked) == []
    # Requests are those of other loads.
    assert load_problems(script, scenario) == []


def test_users_of_streams_share_rows_too() -> None:
    tasks = scenarios()["tasks"]
    go = {"name": "go", "image": "mine:1"}
    closed = {"closed": {"connections": 10, "requests": 50_000}, "endpoints": ["delete"]}
    assert load_problems(spec("tasks", go, **closed, protocol="http2", streams=10), tasks) == []


CREATE = {"name": "create", "method": "POST", "path": "/orders", "expectStatus": 201}
SEARCH = {"name": "search", "method": "POST", "path": "/search", "statements": 0}
READ = {"name": "read", "path": "/orders/1"}
IMAGE = {"name": "mine", "image": "mine:1"}


def orders(reset: list[dict[str, str]] | None = None, **more: Any) -> Scenario:
    schema = [{"sql": "CREATE TABLE orders (id int);"}]
    return Scenario.model_validate(
        {
            "name": "orders",
            "data": {"postgres": {"schema": schema, "reset": reset or []}},
            "requests": [CREATE, SEARCH, READ],
            "checks": [{**CREATE, "times": 1}, SEARCH, READ],
            **more,
        }
    )


@pytest.mark.parametrize("data", [orders().data, None])
def test_what_loads_leave_in_postgres_is_said_with_what_to_write(data: Data | None) -> None:
    run = altered(spec("orders", IMAGE), topology={"postgres": {}})
    said = left_behind(run, orders().model_copy(update={"data": data}))
    assert said is not None
    assert said.startswith("what a trial changes in Postgres by create (POST) is there for all")
    assert said.endswith("or that is meant, reset: [{sql: SELECT 1;}]")
    # A warning, and no refusal.
    assert not [*misfits(run, orders()), *load_problems(run, orders())]


@pytest.mark.parametrize(
    ("change", "scenario"),
    [
        ({}, orders([{"sql": "SELECT 1;"}])),
        ({"loads": [{**CLOSED, "endpoints": ["read", "search"]}]}, orders()),
        ({"loads": [{"name": "own", "script": {"configMap": "mine"}}]}, orders()),
        ({"topology": {}}, orders()),
        ({"servers": [SHOP]}, orders()),
        ({"verifyOnly": True}, orders()),
        ({"loads": [{**CLOSED, "endpoints": ["nothing"]}]}, orders()),
    ],
    ids=["taken back", "only read", "a script", "no Postgres", "not ours", "no load", "refused"],
)
def test_nothing_is_said_of_rows_where_nobody_knows_that_they_stay(
    change: dict[str, Any], scenario: Scenario
) -> None:
    run = altered(spec("orders", IMAGE), **({"topology": {"postgres": {}}} | change))
    assert left_behind(run, scenario) is None


def test_no_scenario_that_comes_with_laptime_leaves_rows_behind() -> None:
    for name, scenario in scenarios().items():
        run = altered(spec(name, IMAGE), topology={"postgres": {}})
        assert left_behind(run, scenario) is None
