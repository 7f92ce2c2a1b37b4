"""What the load generator asks the database of a run for, and what it says of one that is full."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator

import psycopg
from containers import free_port
from tiers import Database, Run

from laptime.measure.generator import GeneratorError, GeneratorResult, parse_generator_output
from laptime.measure.statements import statements_of_work

REQUESTS = 5
TEXTS = 72


@contextlib.contextmanager
def serving(answer: Callable[[], None]) -> Iterator[int]:
    """A server that does this for each request but those for its health; gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path != "/healthz":
                answer()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def measured(
    run: Run, database: Database, port: int, warmup: float = 0.0
) -> GeneratorResult | GeneratorError:
    """What the generator says of a trial of some requests, one after the other."""
    trial = {
        "trial": "demo-trial-001",
        "target": f"http://127.0.0.1:{port}",
        "waitSeconds": 10,
        "requests": [
            {"name": "list", "method": "GET", "path": "/", "headers": {}, "expectStatus": 200}
        ],
        "load": {"closed": {"connections": 1, "requests": REQUESTS, "keepAlive": True}},
        "warmupSeconds": warmup,
        "timeoutSeconds": 30,
        "resetStatements": ["SELECT pg_stat_statements_reset()"],
    }
    environment = {"LAPTIME_TRIAL": json.dumps(trial), "DATABASE_URL": database.url}
    arguments = ["run", "--quiet", "--summary-mode=disabled", "/opt/laptime/trial.js"]
    with run("k6", environment=environment, arguments=arguments) as generator:
        generator.wait(60)
        return parse_generator_output(generator.output)


def test_the_statements_of_the_work_are_counted_however_many_texts_they_have(
    run: Run, database: Database
) -> None:
    with psycopg.connect(database.url) as connection:

        def answer() -> None:
            for number in range(TEXTS):
                # Neither names nor constants make texts of their own.
                signs = " id ".join(f"{number:07b}".translate({48: "+", 49: "-"}))
                with connection.transaction():
                    connection.execute(f"SELECT id {signs} id FROM (VALUES (1)) AS t (id)")

        with serving(answer) as port:
            result = measured(run, database, port)
    assert isinstance(result, GeneratorResult), result
    assert result.statements is not None
    assert statements_of_work(result.statements) == REQUESTS * TEXTS


@contextlib.contextmanager
def taking_all(database: Database) -> Iterator[Callable[[], None]]:
    """Connections as many as Postgres takes, all open from the first call to the end."""
    with contextlib.ExitStack() as taken:

        def take() -> None:
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    taken.enter_context(psycopg.connect(database.url))

        yield take


def test_a_server_that_takes_all_connections_is_told_so(run: Run, database: Database) -> None:
    with taking_all(database) as take, serving(take) as port:
        result = measured(run, database, port, warmup=0.5)
    assert isinstance(result, GeneratorError), result
    assert result.reason == "TooManyConnections"
    assert "may have DATABASE_CONNECTIONS" in result.message
    assert "too many clients already (SQLSTATE 53300)" in result.message


def test_connections_of_a_server_that_is_about_to_end_are_waited_for(
    run: Run, database: Database
) -> None:
    with contextlib.ExitStack() as before, serving(lambda: None) as port:
        before.enter_context(taking_all(database))()
        ended = threading.Timer(3, before.close)
        ended.start()
        result = measured(run, database, port)
        ended.join()
    assert isinstance(result, GeneratorResult), result
