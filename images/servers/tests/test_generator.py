"""What the load generator asks the database of a run for, and what it says of one that is full."""

from __future__ import annotations

import contextlib
import http.server
import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from containers import free_port
from tiers import Database, Run, start_bouncer, start_database

from laptime.manifests.generator import SCHEMA_URL
from laptime.manifests.schema_query import SCHEMA_QUERY
from laptime.measure.generator import GeneratorError, GeneratorResult, parse_generator_output
from laptime.measure.prepare import prepare_database
from laptime.measure.statements import statements_of_work
from laptime.verification.schema import database_schema

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
    run: Run,
    database: Database,
    port: int,
    warmup: float = 0.0,
    bouncer: Database | None = None,
    schema_query: str = SCHEMA_QUERY,
    reset: tuple[str, ...] = ("SELECT pg_stat_statements_reset()",),
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
        "resetStatements": reset,
        "schemaQuery": schema_query,
    }
    # Where nothing is reset a Job has another address, to ask for the schema and count nothing.
    address = "DATABASE_URL" if reset else SCHEMA_URL
    environment = {"LAPTIME_TRIAL": json.dumps(trial), address: database.url}
    if bouncer is not None:
        environment["PGBOUNCER_URL"] = bouncer.console
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


def test_nothing_is_left_to_autovacuum_in_the_databases_of_other_servers(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would see to what the trial before has written while this one is measured."""
    seed = "CREATE TABLE posts (id integer);"
    names = ["laptime_old", "laptime_new"]
    quiet = "autovacuum = off"
    with start_database(run, tmp_path, free_port(), seed, more=quiet, databases=names) as postgres:
        postgres.container.wait_until(postgres.ready, 120)
        old, new = (replace(postgres, name=name) for name in names)
        left = "SELECT n_mod_since_analyze FROM pg_stat_user_tables"
        file = tmp_path / "reset.json"
        file.write_text("[]")
        monkeypatch.setenv("DATABASE_URL", new.url)
        with serving(lambda: None) as port:
            for reset in (lambda: measured(run, new, port), lambda: prepare_database(file)):
                old.query("INSERT INTO posts SELECT generate_series(1, 1000)")
                postgres.container.wait_until(lambda: old.query(left) == "1000", 60)
                assert not isinstance(reset(), GeneratorError)
                assert old.query(left) == "0"
        # It forgets counts, and no rows.
        assert old.query("SELECT count(*) FROM posts") == "2000"


SHOP = """
CREATE TABLE posts (id integer PRIMARY KEY, title text NOT NULL);
CREATE TABLE tags (id serial PRIMARY KEY, post integer REFERENCES posts);
CREATE TABLE log (at integer, said text) PARTITION BY RANGE (at);
CREATE INDEX ON log (at);
CREATE TABLE log_0 PARTITION OF log FOR VALUES FROM (0) TO (10);
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 2 * n';
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER kept BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION keep();
CREATE VIEW titles AS SELECT title FROM posts;
"""
NOT_DEFINED = (
    "INSERT INTO posts SELECT n, 'x' FROM generate_series(1, 1000) n; ANALYZE",
    "INSERT INTO tags (post) SELECT id FROM posts; TRUNCATE tags RESTART IDENTITY",
    "DROP TABLE tags; CREATE TABLE tags (id serial PRIMARY KEY, post integer REFERENCES posts)",
    "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (10) TO (20)",
    "GRANT SELECT ON posts TO PUBLIC",
    "CREATE TEMPORARY TABLE mine AS SELECT * FROM posts",
    "REINDEX TABLE posts",
)
DEFINED = (
    "CREATE INDEX by_title ON posts (title)",
    "DROP INDEX by_title",
    "ALTER TABLE posts ADD COLUMN note text",
    "ALTER TABLE posts ALTER COLUMN note TYPE varchar(10)",
    "ALTER TABLE posts ALTER COLUMN note SET DEFAULT 'none'",
    "ALTER TABLE posts DROP COLUMN note",
    "ALTER TABLE posts ALTER COLUMN title DROP NOT NULL",
    "ALTER TABLE posts ADD CONSTRAINT short CHECK (length(title) < 1000)",
    "ALTER TABLE posts DISABLE TRIGGER kept",
    "DROP TRIGGER kept ON posts",
    "ALTER TABLE posts ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own ON posts USING (id < 100)",
    "ALTER TABLE posts SET (fillfactor = 70)",
    "ALTER TABLE tags SET UNLOGGED",
    "CREATE STATISTICS both_ends ON id, title FROM posts",
    "CREATE OR REPLACE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n + n'",
    "CREATE OR REPLACE VIEW titles AS SELECT upper(title) AS title FROM posts",
    "CREATE INDEX ON log (said)",
    "CREATE SCHEMA apart CREATE TABLE posts (id integer)",
    "CREATE TYPE mood AS ENUM ('good')",
    "ALTER TYPE mood ADD VALUE 'better'",
    "CREATE DOMAIN few AS integer CHECK (VALUE < 10)",
    "ALTER SEQUENCE tags_id_seq CACHE 50",
    "ALTER DATABASE laptime SET jit = off",
    "ALTER ROLE laptime SET enable_seqscan = off",
    "ALTER TABLE posts ALTER COLUMN title SET COMPRESSION pglz",
    "ALTER TABLE posts SET (toast.autovacuum_enabled = off)",
)


def test_the_schema_is_what_is_defined_and_nothing_else(run: Run, tmp_path: Path) -> None:
    with start_database(run, tmp_path, free_port(), SHOP) as postgres:
        postgres.container.wait_until(postgres.ready, 120)
        known = database_schema(postgres.url, SCHEMA_QUERY)
        assert known is not None
        for sql in NOT_DEFINED:
            postgres.query(sql)
            assert database_schema(postgres.url, SCHEMA_QUERY) == known, sql
        seen = [known]
        for sql in DEFINED:
            postgres.query(sql)
            now = database_schema(postgres.url, SCHEMA_QUERY)
            assert now is not None, sql
            assert now != seen[-1], sql
            seen.append(now)
        # What was taken back is as it was before.
        assert seen[2] == known
        assert len(set(seen)) == len(seen) - 2
        with serving(lambda: None) as port:
            # What only servers make tables in, nobody resets.
            result = measured(run, postgres, port, reset=())
            assert isinstance(result, GeneratorResult), result
            assert (result.database_schema, result.statements) == (seen[-1], None)
            for query, schema in ((SCHEMA_QUERY, seen[-1]), ("SELECT 1 / 0", None)):
                result = measured(run, postgres, port, schema_query=query)
                assert isinstance(result, GeneratorResult), result
                assert result.database_schema == schema
            # One that is held for a moment is waited for, as a migration has it; no other one is.
            for seconds, schema in ((1.5, seen[-1]), (60, None)):
                with locked(postgres, seconds):
                    assert database_schema(postgres.url, SCHEMA_QUERY) == schema
                with locked(postgres, seconds):
                    result = measured(run, postgres, port)
                assert isinstance(result, GeneratorResult), result
                assert result.database_schema == schema


@contextlib.contextmanager
def locked(database: Database, seconds: float) -> Iterator[None]:
    """A table that nobody can look at for a time, or until the end."""
    with psycopg.connect(database.url) as connection:
        connection.execute("LOCK TABLE posts")
        release = threading.Timer(seconds, connection.commit)
        release.start()
        try:
            yield
        finally:
            release.cancel()


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


POOL = 2
EARLIER = """
admin_users =
stats_users = laptime_admin
"""


def set_by_a_server(bouncer: Database) -> None:
    """Set something on the session of each connection of the pool, as a server before may have."""
    with contextlib.ExitStack() as held:
        for _ in range(POOL):
            client = held.enter_context(psycopg.connect(bouncer.url))
            # Its connection is another one's only when the transaction has ended.
            client.execute("SET synchronous_commit = off")
            client.execute("SELECT pg_advisory_lock_shared(7)")
    assert all(of_each_connection(bouncer, "SHOW synchronous_commit", "off"))


def of_each_connection(bouncer: Database, sql: str, value: str) -> list[bool]:
    """Whether this is what each connection of the pool answers."""
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(psycopg.connect(bouncer.url)) for _ in range(POOL)]
        return [client.execute(sql).fetchone() == (value,) for client in clients]


def test_what_a_server_set_on_its_session_is_not_in_force_in_the_next_trial(
    run: Run, database: Database, bouncer: Database
) -> None:
    set_by_a_server(bouncer)
    with serving(lambda: None) as port:
        result = measured(run, database, port, bouncer=bouncer)
    assert isinstance(result, GeneratorResult), result
    assert all(of_each_connection(bouncer, "SHOW synchronous_commit", "on"))
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    bouncer.container.wait_until(lambda: database.query(locks) == "0", math.inf)


@pytest.mark.parametrize("command", ["RECONNECT", "PAUSE", "SHUTDOWN", "SET pool_mode = session"])
def test_a_server_has_no_command_of_the_pgbouncer_that_others_need(
    bouncer: Database, command: str
) -> None:
    url = bouncer.console.replace("laptime_admin", "laptime")
    with psycopg.connect(url, autocommit=True) as console:
        # As the exporter does, which has the run's role too.
        assert console.execute("SHOW POOLS").fetchall()
        with pytest.raises(psycopg.Error, match="admin access needed"):
            console.execute(command)


def test_nor_in_that_of_a_script(
    database: Database, bouncer: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_by_a_server(bouncer)
    (tmp_path / "reset.json").write_text('["SELECT pg_stat_statements_reset()"]')
    monkeypatch.setenv("DATABASE_URL", database.url)
    monkeypatch.setenv("PGBOUNCER_URL", bouncer.console)
    assert prepare_database(tmp_path / "reset.json") is None
    assert all(of_each_connection(bouncer, "SHOW synchronous_commit", "on"))


def test_a_pgbouncer_that_an_earlier_version_deployed_is_taken_as_it_is(
    run: Run, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reset.json").write_text("[]")
    (tmp_path / "bouncer").mkdir()
    with (
        start_bouncer(run, database, tmp_path / "bouncer", EARLIER) as bouncer,
        serving(lambda: None) as port,
    ):
        monkeypatch.setenv("DATABASE_URL", database.url)
        monkeypatch.setenv("PGBOUNCER_URL", bouncer.console)
        assert prepare_database(tmp_path / "reset.json") is None
        result = measured(run, database, port, bouncer=bouncer)
    assert isinstance(result, GeneratorResult), result


def test_a_server_that_has_begun_loses_no_connection(
    database: Database, bouncer: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reset.json").write_text("[]")
    monkeypatch.setenv("DATABASE_URL", database.url)
    monkeypatch.setenv("PGBOUNCER_URL", bouncer.console)
    with contextlib.ExitStack() as held:
        pool = [held.enter_context(psycopg.connect(bouncer.url)) for _ in range(2 * POOL)]
        busy, idle = pool[0], pool[1:]
        for one in idle:
            one.execute("SELECT 1")
            one.commit()
        (before,) = busy.execute("SELECT pg_backend_pid()").fetchone() or (None,)
        assert prepare_database(tmp_path / "reset.json") is None
        # In the middle of its transaction it keeps its connection, and has another one after it.
        assert busy.execute("SELECT pg_backend_pid()").fetchone() == (before,)
        busy.commit()
        for one in pool:
            assert one.execute("SELECT pg_backend_pid()").fetchone() != (before,)
            one.commit()
