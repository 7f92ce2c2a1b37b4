"""The images of the tiers in front of and behind the servers."""

from __future__ import annotations

import http.server
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from containers import MANY_FILES, answers, free_port, get, writable_folder
from tiers import PASSWORD, Database, Run, start_bouncer, start_database

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.manifests.context import ImageSet, RunContext
from laptime.manifests.haproxy import FIRST_PORT, haproxy_config

HAPROXY_CFG = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend in
    bind 127.0.0.1:{port}
    default_backend out
backend out
    server one 127.0.0.1:{backend}
"""


READY = 120
"""Seconds that a new database may take on a full machine with a slow disk."""
ENDS = 30
"""Seconds: what must not be waited for is there for longer, or for ever."""
STAND_IN = "DO $$ BEGIN RAISE EXCEPTION 'it was not taken'; END $$;"


def test_the_database_is_ready_and_seeded_within_seconds(database: Database) -> None:
    assert database.query('SELECT count(*) FROM "user"') == "2000"


def test_the_run_settings_win_and_statistics_start_empty(database: Database) -> None:
    assert database.query("SHOW max_connections") == "50"
    seeding = "SELECT count(*) FROM pg_stat_statements WHERE query ILIKE '%generate_series%user%'"
    assert database.query(seeding) == "0"
    assert database.query("SHOW fsync") == "on"


def test_tcp_wants_the_password(database: Database) -> None:
    connection = f"host=127.0.0.1 port={database.port} user=laptime dbname=laptime password="
    # psql reads a quoted value; PASSWORD holds a quote and a space on purpose.
    right = database.container.execute(
        "psql", "-X", "-c", "SELECT 1", connection + "'" + PASSWORD.replace("'", "\\'") + "'"
    )
    wrong = database.container.execute("psql", "-X", "-c", "SELECT 1", connection + "wrong")
    assert right.returncode == 0, right.stderr
    assert "authentication failed" in wrong.stderr


def test_data_survives_a_killed_container(run: Run, tmp_path: Path) -> None:
    port = free_port()
    with start_database(run, tmp_path, port) as first:
        first.container.wait_until(first.ready, READY)
        first.query("CREATE TABLE kept AS SELECT 1 AS n")
        first.container.signal(signal.SIGKILL)
        first.container.wait(ENDS)
    with start_database(run, tmp_path, port) as second:
        second.container.wait_until(second.ready, READY)
        assert second.query("SELECT n FROM kept") == "1"
        assert "running /etc/laptime/init.d" not in second.container.output
        second.container.signal(signal.SIGINT)
        assert second.container.wait(ENDS) == 0


def test_the_lock_that_a_killed_container_left_is_in_nobodys_way(run: Run, tmp_path: Path) -> None:
    scratch = writable_folder(tmp_path / "tmp")
    # Empty as between its making and its filling; one whose process number lives again stops
    # Postgres likewise.
    (scratch / ".s.PGSQL.5432.lock").touch()
    with start_database(run, tmp_path, free_port(), scratch=scratch) as database:
        database.container.wait_until(database.ready, READY)


def test_broken_init_sql_never_opens_the_port(run: Run, tmp_path: Path) -> None:
    with start_database(run, tmp_path, free_port(), "CREATE TABLE half (n int); oops;") as broken:
        assert broken.container.wait(READY) != 0
        assert 'syntax error at or near "oops"' in broken.container.output
    assert not (tmp_path / "data" / "pgdata").exists()


def test_sql_out_of_an_image_runs_where_it_stands_among_the_others(
    run: Run, tmp_path: Path
) -> None:
    init, copied = tmp_path / "etc" / "init.d", tmp_path / "copied"
    for folder in (init, copied):
        folder.mkdir(parents=True)
    (init / "01-schema.sql").write_text("CREATE TABLE posts (id integer, title text);")
    (init / "02-seed.sql").write_text(STAND_IN)
    (init / "03-seed.sql").write_text("INSERT INTO posts SELECT max(id) + 1, 'last' FROM posts;")
    rows = "".join(f"{n}\tpost {n}\n" for n in range(1, 100_001))
    (copied / "02-seed.sql").write_text(f"COPY posts FROM stdin;\n{rows}\\.\nANALYZE posts;\n")
    # What has no place in the scenario is nobody's.
    (copied / "04-seed.sql").write_text("SELECT 1 / 0;")
    writable_folder(tmp_path / "data")
    with start_database(run, tmp_path, free_port(), copied=copied) as database:
        database.container.wait_until(database.ready, READY)
        assert database.query("SELECT count(*), max(id) FROM posts") == "100001|100001"
        assert "laptime: running /laptime-files/02-seed.sql" in database.container.output


@pytest.mark.parametrize("sql", ["\\! id\n", "COPY (SELECT 1) TO PROGRAM 'id';", "link"])
def test_sql_out_of_an_image_may_do_no_more_than_any_other(
    run: Run, tmp_path: Path, sql: str
) -> None:
    init, copied = tmp_path / "etc" / "init.d", tmp_path / "copied"
    for folder in (init, copied):
        folder.mkdir(parents=True)
    (init / "01-schema.sql").write_text(STAND_IN)
    if sql == "link":
        (copied / "01-schema.sql").symlink_to("/proc/self/environ")
        words = "it was not taken"
    else:
        (copied / "01-schema.sql").write_text(sql)
        words = "restricted" if sql.startswith("\\") else "permission denied"
    writable_folder(tmp_path / "data")
    with start_database(run, tmp_path, free_port(), copied=copied) as broken:
        assert broken.container.wait(READY) != 0
        assert words in broken.container.output
        assert PASSWORD not in broken.container.output


def test_each_server_has_the_database_as_the_scenario_made_it(run: Run, tmp_path: Path) -> None:
    seed = """
        CREATE TABLE posts (id serial PRIMARY KEY, title text);
        INSERT INTO posts (title) SELECT 'post' FROM generate_series(1, 5000);
        ALTER DATABASE laptime SET search_path = 'mine', 'public';
        ALTER ROLE laptime IN DATABASE laptime SET work_mem = '7MB';
    """
    names = ["laptime_old", "laptime_old_control", "laptime_new"]
    with start_database(run, tmp_path, free_port(), seed, databases=names) as database:
        database.container.wait_until(database.ready, READY)
        copies = [replace(database, name=name) for name in names]
        for copy in copies:
            # Autovacuum has no counters of it, and would never see to it.
            known = "SELECT reltuples, relallvisible > 0 FROM pg_class WHERE relname = 'posts'"
            assert copy.query(f"SELECT count(*) FROM posts; {known}") == "5000|t"
            assert copy.query("SELECT current_setting('search_path')") == "mine, public"
            assert copy.query("SHOW work_mem") == "7MB"
            # What is asked before each trial is allowed there too, and what is counted is its own.
            reset = "SELECT pg_stat_reset(); SELECT pg_stat_statements_reset(); CHECKPOINT"
            assert copy.query(f"{reset}; INSERT INTO posts (title) VALUES ('x') RETURNING id") == (
                "5001"
            )
            counted = """SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE 'INSERT%' AND
                dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"""
            assert copy.query(counted) == "1"
        # A migration of one is nobody else's.
        copies[2].query("ALTER TABLE posts DROP COLUMN title")
        assert copies[0].query("SELECT title FROM posts WHERE id = 1") == "post"
        # A container that is started again has them all, with what was written.
        database.container.signal(signal.SIGINT)
        assert database.container.wait(ENDS) == 0
    with start_database(run, tmp_path, free_port()) as again:
        again.container.wait_until(again.ready, READY)
        assert replace(again, name="laptime_new").query("SELECT count(*) FROM posts") == "5001"


# As pg_dump writes it since August 2025, with --no-owner.
DUMP = """--
-- PostgreSQL database dump
--

\\restrict OD4zUQbeXo7wGRoWkHBhSHVqVsrwaWQU6cVwqz0pHOAVqPq4pWTPIkXXXm9kQzq

-- Dumped from database version 17.6 (Debian 17.6-1)

SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);

CREATE TABLE public.note (
    text text NOT NULL
);

COPY public.note (text) FROM stdin;
\\\\restrict A1b2
an ordinary one
\\.

--
-- PostgreSQL database dump complete
--

\\unrestrict OD4zUQbeXo7wGRoWkHBhSHVqVsrwaWQU6cVwqz0pHOAVqPq4pWTPIkXXXm9kQzq

"""


def test_a_dump_of_a_newer_pg_dump_is_loaded(run: Run, tmp_path: Path) -> None:
    with start_database(run, tmp_path, free_port(), DUMP) as database:
        database.container.wait_until(database.ready, READY)
        found = database.query("SELECT text FROM note ORDER BY text")
        assert found == "\\restrict A1b2\nan ordinary one"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (DUMP + "\\! id\n", "10-seed.sql:27: error: backslash commands are restricted"),
        (DUMP.replace("\n\\unrestrict", "\n\\! id\n\\unrestrict"), "restricted"),
        (DUMP.partition("\\unrestrict")[0], "the dump is cut off"),
    ],
)
def test_a_dump_may_do_no_more_than_any_other_sql(
    run: Run, tmp_path: Path, sql: str, words: str
) -> None:
    with start_database(run, tmp_path, free_port(), sql) as broken:
        assert broken.container.wait(READY) != 0
        assert words in broken.container.output
    assert not (tmp_path / "data" / "pgdata").exists()


def test_a_password_that_cannot_be_set_is_not_in_the_log(run: Run, tmp_path: Path) -> None:
    more = "default_transaction_read_only = on"
    with start_database(run, tmp_path, free_port(), more=more) as broken:
        assert broken.container.wait(READY) != 0
        assert "cannot execute ALTER ROLE in a read-only transaction" in broken.container.output
        # Of which the quote is doubled in SQL.
        assert PASSWORD.partition("'")[2] not in broken.container.output


def test_a_missing_password_is_named(run: Run, tmp_path: Path) -> None:
    data = writable_folder(tmp_path / "data")
    with run("postgres", writable={"/var/lib/postgresql/data": data}) as container:
        assert container.wait(ENDS) != 0
        assert "POSTGRES_PASSWORD" in container.output


def test_pgbouncer_stops_while_a_client_is_connected(
    run: Run, database: Database, tmp_path: Path
) -> None:
    with start_bouncer(run, database, tmp_path) as bouncer:
        # psql stays connected while its shell command sleeps.
        client = threading.Thread(
            target=database.container.execute,
            args=("psql", "-X", "-c", "SELECT 'a client'", "-c", r"\! sleep 20", bouncer.url),
        )
        client.start()
        counting = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT ''a client'''"
        bouncer.container.wait_until(lambda: database.query(counting) == "1", READY)
        bouncer.container.signal(signal.SIGINT)
        assert bouncer.container.wait(15) == 0, "it waits for the client"
        client.join()


def test_pgbouncer_takes_more_clients_than_a_node_lets_it_open_files_at_first(
    run: Run, database: Database, tmp_path: Path
) -> None:
    with start_bouncer(run, database, tmp_path) as bouncer:
        limits = bouncer.container.execute("cat", "/proc/1/limits").stdout
        (files,) = re.findall(r"^Max open files +(\d+) +(\d+)", limits, re.MULTILINE)
        assert files == (str(min(65536, MANY_FILES)), str(MANY_FILES))
        assert "pgbouncer" in bouncer.container.execute("cat", "/proc/1/comm").stdout


@pytest.fixture
def backend() -> Iterator[http.server.HTTPServer]:
    """A web server that answers every request with its path."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.path.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def test_haproxy_passes_requests_on_and_stops_gracefully(
    run: Run, backend: http.server.HTTPServer, tmp_path: Path
) -> None:
    port = free_port()
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(HAPROXY_CFG.format(port=port, backend=backend.server_port))
    with run("haproxy", files={"/etc/laptime/haproxy.cfg": settings}) as haproxy:
        haproxy.wait_until(lambda: answers(port), READY)
        assert get(port, "/here") == (200, b"/here")
        haproxy.signal(signal.SIGUSR1)
        assert haproxy.wait(ENDS) == 0


CAP = 2
CLIENTS = 80
PATIENCE = 3
"""Seconds, in which the server answers 30 of them."""


class Slow(http.server.ThreadingHTTPServer):
    """A server that works for a fifth of a second, and notices nothing of its clients meanwhile."""

    request_queue_size = 2 * CLIENTS
    daemon_threads = True

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at_once = self.most = 0
        counting = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                slow: Slow = self.server  # type: ignore[assignment]
                with counting:
                    slow.seen.append(self.path)
                    slow.at_once += 1
                    slow.most = max(slow.most, slow.at_once)
                time.sleep(0.2)
                with counting:
                    slow.at_once -= 1
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that have gone."""


def config_of_a_run(port: int, server: Slow) -> str:
    """Return what the operator writes for a server with a cap, on this machine's loopback."""
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "sleep",
            "topology": {"haproxy": {"maxConnections": CAP}},
            "servers": [{"name": "slow", "image": "slow:1", "port": server.server_port}],
            "loads": [
                {
                    "name": "all",
                    "closed": {"connections": 1, "requests": 1},
                    "timeout": f"{PATIENCE}s",
                }
            ],
        }
    )
    ctx = RunContext(
        name="demo",
        namespace="default",
        uid="7e2d8a70-4f0a-4f0b-9f2c-3b8f5c0f9a11",
        spec=spec,
        scenario=scenarios()["sleep"],
        images=ImageSet("p", "b", "h", "g", "o", {}),
    )
    text = haproxy_config(ctx)
    here = {FIRST_PORT: port}
    text = re.sub(
        r'bind .*:(\d+)"\n',
        lambda one: f"bind 127.0.0.1:{here.get(int(one[1])) or free_port()}\n",
        text,
    )
    host = ctx.service_host("server", "slow")
    return text.replace(host, "127.0.0.1").replace(" resolvers cluster init-addr libc,none", "")


def test_haproxy_keeps_its_cap_and_no_place_for_clients_that_have_hung_up(
    run: Run, tmp_path: Path
) -> None:
    server, port = Slow(), free_port()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(config_of_a_run(port, server))
    with run("haproxy", files={"/etc/laptime/haproxy.cfg": settings}) as haproxy:
        haproxy.wait_until(lambda: answers(port, "/ready"), READY)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS)]
        for one in clients:
            one.sendall(b"GET /old HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(PATIENCE)
        for one in clients:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
        # They come in turn: what was before this one and is not there now will not come.
        assert get(port, "/new", READY)[0] == 200
        assert 0 < server.seen.count("/old") < CLIENTS
        assert server.most == CAP
    server.shutdown()
