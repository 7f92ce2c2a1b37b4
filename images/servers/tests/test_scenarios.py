"""Every server answers its scenarios rightly, as Laptime judges it before a run."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlite
from containers import free_port
from counters import counted, reset
from tiers import Database, Run

from laptime.catalog import Scenario
from laptime.verification.verify import Task, verify
from servers import Kind, Server, kinds, start


def made_of_others(kind: Kind, scenario: Scenario) -> bool:
    """Whether the other scenarios of the server ask everything that this one asks."""
    asked = [one.requests for one in kind.scenarios if len(one.requests) < len(scenario.requests)]
    return all(any(request in some for some in asked) for request in scenario.requests)


PAIRS = [
    (kind, scenario)
    for kind in kinds()
    for scenario in kind.scenarios
    if not made_of_others(kind, scenario)
]
PAIR = ("kind", "scenario")


def pairs(wanted: Callable[[Kind, Scenario], bool]) -> list[object]:
    """Parameters: the kinds of server with each of their scenarios, if they are wanted."""
    return [
        pytest.param(kind, scenario, id=f"{kind}-{scenario.name}")
        for kind, scenario in PAIRS
        if wanted(kind, scenario)
    ]


@dataclass(frozen=True)
class Upstream:
    """A stub that answers `/users`."""

    url: str
    answer: list[object]
    statuses: list[int]
    connections: list[object]
    """The address of the other end of each that was ever made."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """The upstream of the scenario `upstream`; it answers the last of `statuses`."""
    users = [
        {"id": n, "name": f"Zoë {n}", "username": f"zoe{n}", "email": f"zoe{n}@example.com",
         "address": {"city": "Łódź"}, "phone": "1", "website": "z.example", "company": None}
        for n in range(10)
    ]  # fmt: skip
    statuses = [200]
    connections: list[object] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            connections.append(self.client_address)
            super().setup()

        def do_GET(self) -> None:
            body = json.dumps(users, ensure_ascii=False).encode()
            self.send_response(statuses[-1])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    stub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    yield Upstream(f"http://127.0.0.1:{stub.server_port}/users", users, statuses, connections)
    stub.shutdown()


def assert_right(server: Server, scenario: Scenario, upstream: Upstream | None = None) -> None:
    """The verdict of Laptime's own check, and silence in the log."""
    task = Task(
        target=f"http://127.0.0.1:{server.port}",
        checks=scenario.checks,
        upstream_url=upstream.url if upstream else None,
    )
    verdict = verify(task)
    assert verdict.ok, verdict.message
    assert server.container.output == "", "a request must not write to the log"


def assert_right_under_load(server: Server, scenario: Scenario) -> None:
    """Often enough for every connection to prepare its statements and to use them again."""
    for request in scenario.requests:
        with ThreadPoolExecutor(8) as clients:
            results = clients.map(lambda n, r=request: server.send(r, n), range(100))
            assert set(results) == {request.expect_status}, request.name
    assert server.container.output == "", "a request must not write to the log"


ONLY_UPSTREAM = pairs(lambda _, scenario: scenario.needs_upstream and not scenario.needs_database)


# Without prepared statements a direct connection can do nothing that one through PgBouncer cannot.
@pytest.mark.parametrize(
    ("through", "prepared"),
    [("database", "true"), ("bouncer", "true"), ("forgetful_bouncer", "false")],
)
@pytest.mark.parametrize(PAIR, pairs(lambda _, scenario: scenario.needs_database))
def test_with_postgres(
    run: Run,
    kind: Kind,
    scenario: Scenario,
    through: str,
    prepared: str,
    fresh: Callable[[Scenario], None],
    upstream: Upstream,
    request: pytest.FixtureRequest,
) -> None:
    target: Database = request.getfixturevalue(through)
    environment = {"DATABASE_URL": target.url, "DATABASE_PREPARED_STATEMENTS": prepared}
    fresh(scenario)
    with start(run, kind, UPSTREAM_URL=upstream.url, **environment) as server:
        assert_right(server, scenario, upstream)
        assert_right_under_load(server, scenario)


@pytest.mark.parametrize(PAIR, pairs(lambda _, scenario: bool(scenario.sqlite_sql)))
def test_with_sqlite(
    run: Run, kind: Kind, scenario: Scenario, upstream: Upstream, tmp_path: Path
) -> None:
    data = sqlite.prepare(tmp_path / "data", scenario)
    environment = {
        "DATABASE_URL": sqlite.URL,
        "UPSTREAM_URL": upstream.url,
        # Because writers of two processes wait for each other in another way.
        "WORKERS": "2",
    }
    with start(run, kind, data=data, **environment) as server:
        assert_right(server, scenario, upstream)
        assert_right_under_load(server, scenario)


@pytest.mark.parametrize(
    PAIR, pairs(lambda _, scenario: not scenario.needs_database and not scenario.needs_upstream)
)
def test_without_a_database(run: Run, kind: Kind, scenario: Scenario) -> None:
    with start(run, kind) as server:
        assert_right(server, scenario)


@pytest.mark.parametrize(PAIR, ONLY_UPSTREAM)
def test_with_an_upstream(run: Run, kind: Kind, scenario: Scenario, upstream: Upstream) -> None:
    with start(run, kind, UPSTREAM_URL=upstream.url) as server:
        assert_right(server, scenario, upstream)
        assert_right_under_load(server, scenario)
        upstream.statuses.append(500)
        assert server.send(scenario.requests[0]) == 502
        upstream.statuses.append(200)
        assert server.send(scenario.requests[0]) == 200


@pytest.mark.parametrize(PAIR, ONLY_UPSTREAM)
def test_keeps_its_connections_to_the_upstream(
    run: Run, kind: Kind, scenario: Scenario, upstream: Upstream
) -> None:
    clients = 8
    with start(run, kind, UPSTREAM_URL=upstream.url) as server, ThreadPoolExecutor(clients) as pool:
        results = pool.map(lambda _: server.send(scenario.requests[0]), range(100))
        assert set(results) == {200}
    assert len(upstream.connections) <= 2 * clients


@pytest.mark.parametrize(PAIR, ONLY_UPSTREAM)
def test_says_that_its_upstream_is_not_there(run: Run, kind: Kind, scenario: Scenario) -> None:
    with start(run, kind, UPSTREAM_URL=f"http://127.0.0.1:{free_port()}/users") as server:
        assert server.send(scenario.requests[0]) == 502
    with start(run, kind) as server:
        assert server.send(scenario.requests[0]) == 503


# PgBouncer sets what a connection lacks, which is no part of a request: nothing, as in a run.
@pytest.mark.parametrize("through", ["database", "bouncer"])
@pytest.mark.parametrize(PAIR, pairs(lambda _, scenario: scenario.needs_database))
def test_runs_the_statements_of_the_scenario_and_no_more(
    run: Run,
    kind: Kind,
    scenario: Scenario,
    through: str,
    database: Database,
    fresh: Callable[[Scenario], None],
    upstream: Upstream,
    request: pytest.FixtureRequest,
) -> None:
    target: Database = request.getfixturevalue(through)
    fresh(scenario)
    with start(run, kind, DATABASE_URL=target.url, UPSTREAM_URL=upstream.url) as server:
        for one in scenario.requests:
            # What a connection does once, when it is new, is no part of a request.
            assert server.send(one, 10) == one.expect_status
            reset(database)
            assert {server.send(one, n) for n in range(10)} == {one.expect_status}
            if one.statements is not None:
                expected = 10 * one.statements
                assert counted(database) == (expected, expected), one.name
