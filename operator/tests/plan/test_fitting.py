"""What of a run does not fit its scenario where a server is a Service that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.plan import load_problems, misfits

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


def test_no_script_is_told_credentials() -> None:
    hello = scenarios()["hello"]
    script = [{"name": "own", "script": {"configMap": "mine"}}]
    known = {"name": "mine", "service": {**SHOP["service"], "credentials": "shop-client"}}
    (said,) = load_problems(altered(spec("hello", known), loads=script), hello)
    assert said.startswith("load own: no script is told the credentials of server mine: leave")
    assert load_problems(altered(spec("hello", SHOP), loads=script), hello) == []


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
