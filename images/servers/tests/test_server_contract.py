"""Every server image keeps the contract of docs/servers.md that all scenarios share."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest
from containers import MANY_FILES, answers, free_port, get
from tiers import Database, Run

from laptime.catalog import Request, scenarios
from servers import Kind, Query, Server, kinds, path_of, start

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
RELEASE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE 'BEGIN; LOCK TABLE%' AND pid <> pg_backend_pid()
"""
CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
# What the first process has started are its workers, and with uvicorn one that tidies up for them.
# It stands still before, so that whoever has asked it for a sign of life waits for it.
KILL_A_WORKER = """
import os, pathlib, signal, time
for process in pathlib.Path("/proc").glob("[0-9]*"):
    parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
    if parent == "1" and "resource_tracker" not in (process / "cmdline").read_text():
        os.kill(int(process.name), signal.SIGSTOP)
        time.sleep(2)
        os.kill(int(process.name), signal.SIGKILL)
        break
else:
    raise SystemExit("there is no worker")
"""
ENDS = 30.0
"""Seconds: servers end after six at most, and a full machine needs longer to say so. What they must
not wait for lasts an hour, or for ever."""
# Of who waits for the lock: on a full machine all of them take a while to come to it.
PATIENT = 60
# Where nothing was seen yet: one that never names its own code never does.
MOST_PROFILES = 20
every_kind = pytest.mark.parametrize("kind", kinds(), ids=str)
with_database = pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if kind.needs_database], ids=str
)


@with_database
def test_says_what_it_answers(run: Run, kind: Kind, database: Database) -> None:
    request = kind.query.request
    with start(run, kind, DATABASE_URL=database.url) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", path_of(request), headers=request.sent_headers)
        response = connection.getresponse()
        assert response.status == 200
        assert response.headers.get_content_type() == "application/json"
        assert response.getheader("Content-Length") == str(len(response.read()))


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind.language == "Python"], ids=str)
def test_keeps_connections_however_many_threads_it_has(run: Run, kind: Kind) -> None:
    with start(run, kind, THREADS="1000") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for _ in range(2):
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            assert response.read()
            assert response.status == 200
            assert response.getheader("Connection") != "close"


@with_database
def test_opens_no_more_connections_than_told(run: Run, kind: Kind, database: Database) -> None:
    environment = {"DATABASE_URL": database.url, "DATABASE_CONNECTIONS": "3", "THREADS": "8"}
    connections = "1" if kind.blocks_its_event_loop else "3"
    with start(run, kind, **environment) as server:
        with ThreadPoolExecutor(20) as clients, locked(database, kind.query):
            pending = [
                clients.submit(server.send, kind.query.request, seconds=PATIENT) for _ in range(20)
            ]
            wait_for_queries(server, database, connections, pending[0])
        assert {future.result() for future in pending} == {200}


@with_database
def test_answers_again_after_its_connections_were_cut(
    run: Run, kind: Kind, database: Database
) -> None:
    connections = 3
    environment = {"DATABASE_URL": database.url, "DATABASE_CONNECTIONS": str(connections)}
    request = kind.query.request
    # A statement that no connection has prepared yet may fail in another way than one that it has.
    for before in [request, *kind.others]:
        with start(run, kind, **environment) as server, ThreadPoolExecutor(8) as clients:
            assert set(clients.map(server.send, [before] * 24)) == {before.expect_status}
            cut = int(database.query(CUT))
            assert cut > 0 or not kind.keeps_connections
            # Each connection may fail one request before its pool knows of it.
            statuses = [server.send(request) for _ in range(connections + 10)]
        assert set(statuses[connections:]) == {200}, (before.name, statuses)


@every_kind
def test_is_healthy_without_a_database(run: Run, kind: Kind) -> None:
    with start(run, kind) as server:
        if kind.needs_database:
            assert server.send(kind.query.request) == 503


@with_database
def test_is_healthy_before_its_database_and_answers_once_it_is_there(run: Run, kind: Kind) -> None:
    nowhere = f"postgresql://laptime:secret@127.0.0.1:{free_port()}/laptime"
    with start(run, kind, DATABASE_URL=nowhere, DATABASE_CONNECTIONS="1") as server:
        # Some pools keep trying to connect for their acquire time-out of 30 s.
        with contextlib.suppress(TimeoutError):
            assert server.send(kind.query.request, seconds=2) == 500
        assert get(server.port, "/healthz", 60)[0] == 200


@pytest.mark.parametrize(
    "kind", {one.image: one for one in kinds()}.values(), ids=lambda kind: kind.image
)
def test_listens_on_ipv6_where_the_pod_has_such_an_address(run: Run, kind: Kind) -> None:
    port, profiles = free_port(), free_port()
    environment = {
        "PORT": str(port),
        "PROFILE_PORT": str(profiles),
        "POD_IP": "::1",
        "DATABASE_URL": f"postgresql://laptime:secret@[::1]:{free_port()}/laptime",
        **kind.environment,
    }
    with run(kind.image, environment=environment) as container:
        container.wait_until(lambda: answers(port, host="::1"), 60)
        socket.create_connection(("::1", profiles), timeout=10).close()


@pytest.mark.parametrize("workers", ["1", "2"])
@with_database
def test_finishes_the_query_in_flight_and_ends_with_0(
    run: Run, kind: Kind, database: Database, workers: str
) -> None:
    with start(run, kind, DATABASE_URL=database.url, WORKERS=workers) as server:
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        idle.request("GET", "/healthz")
        assert idle.getresponse().read()
        with ThreadPoolExecutor(1) as client:
            with locked(database, kind.query):
                pending = client.submit(server.send, kind.query.request, seconds=PATIENT)
                wait_for_queries(server, database, "1", pending)
                # Servers give a query up some seconds after the signal: on a full machine to send
                # it takes one of them.
                signalled = time.monotonic()
                server.container.signal(signal.SIGTERM)
                time.sleep(max(0.0, signalled + 1 - time.monotonic()))
                assert not pending.done(), "it gave its query up at once"
            assert pending.result() == 200
        assert server.container.wait(ENDS) == 0
        assert not answers(server.port)
        # It took more than a second: under more than they can do, all do.
        assert "slow" not in server.container.output


@with_database
def test_ends_although_a_query_never_does(run: Run, kind: Kind, database: Database) -> None:
    with (
        start(run, kind, DATABASE_URL=database.url) as server,
        ThreadPoolExecutor(1) as client,
        locked(database, kind.query),
    ):
        pending = client.submit(server.send, kind.query.request, seconds=PATIENT)
        wait_for_queries(server, database, "1", pending)
        server.container.signal(signal.SIGTERM)
        assert server.container.wait(ENDS) == 0
        with contextlib.suppress(OSError, http.client.HTTPException):
            pending.result()


@pytest.mark.parametrize(
    "kind",
    # The runtime of Go raises it by itself, and in such an image is nothing that could be asked.
    {one.image: one for one in kinds() if one.language != "Go"}.values(),
    ids=lambda kind: kind.image,
)
def test_may_open_more_files_than_a_node_lets_it_at_first(run: Run, kind: Kind) -> None:
    with start(run, kind) as server:
        limits = server.container.execute("cat", "/proc/1/limits").stdout
        (files,) = re.findall(r"^Max open files +(\d+) ", limits, re.MULTILINE)
        assert int(files) == min(65536, MANY_FILES)


@pytest.mark.parametrize(
    "kind",
    {one.image: one for one in kinds() if one.language == "Python"}.values(),
    ids=lambda kind: kind.image,
)
def test_ends_when_a_worker_does(run: Run, kind: Kind) -> None:
    """One in its place would be cold, and nobody would know of either."""
    with start(run, kind, WORKERS="2") as server:
        killed = server.container.execute("python3", "-c", KILL_A_WORKER)
        # With the server's first process the kernel ends whatever runs in its container, and so the
        # program that killed the worker, where that has not ended yet.
        assert killed.returncode in (0, 128 + signal.SIGKILL), killed.stderr
        assert server.container.wait(ENDS) == 1
        assert "ended" in server.container.output


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind.language == "Rust"], ids=str)
def test_computes_on_its_workers_and_on_no_other_thread(run: Run, kind: Kind) -> None:
    """The first thread would be one more, which takes the connections."""
    with start(run, kind, WORKERS="1") as server:
        before = cpu_seconds(server)
        for _ in range(1000):
            assert get(server.port, "/healthz", 60)[0] == 200
        used = {
            thread: spent - before.get(thread, 0) for thread, spent in cpu_seconds(server).items()
        }
    assert used["1"] < 0.05 * sum(used.values()), used


def cpu_seconds(server: Server) -> dict[str, float]:
    """CPU time of each thread of a server's first process, by the thread's number in it."""
    said = server.container.execute("sh", "-c", "cd /proc/1/task && grep . */schedstat")
    assert said.returncode == 0, said.stderr
    lines = (line.partition("/schedstat:") for line in said.stdout.splitlines())
    return {thread: int(spent.split()[0]) / 1e9 for thread, _, spent in lines}


@every_kind
def test_a_profile_under_load_names_a_function_of_the_server(
    run: Run, kind: Kind, database: Database
) -> None:
    port = free_port()
    environment = {"DATABASE_URL": database.url, "PROFILE_PORT": str(port), "WORKERS": "2"}
    # Without a database a server does nothing itself, or waits: its libraries do all the work.
    request = kind.query.request if kind.needs_database else Request(name="hi", path="/healthz")
    expected = kind.own_code if kind.needs_database else ""
    stacks: list[str] = []
    with start(run, kind, **environment) as server, ThreadPoolExecutor(5) as clients:
        # A profile samples by CPU time: on a full machine it has few samples, all of libraries.
        for _ in range(MOST_PROFILES):
            profile = clients.submit(get, port, "/profile?seconds=3", 60)
            while not profile.done():
                list(clients.map(server.send, [request] * 20))
            status, body = profile.result()
            assert status == 200, body
            stacks += body.decode().splitlines()
            if any(expected in stack for stack in stacks):
                break
    assert any(expected in stack for stack in stacks), stacks
    for stack in stacks:
        assert int(stack.rpartition(" ")[2]) > 0


@pytest.mark.parametrize("name", ["sync-1s", "async-1s"])
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if scenarios()["sleep"] in kind.scenarios], ids=str
)
def test_finishes_the_wait_in_flight_and_ends_with_0(
    run: Run, kind: Kind, workers: str, name: str
) -> None:
    # The request is a second on its way, and nothing tells from outside that it has arrived: on a
    # busy machine it may not have, once.
    finished: list[bool] = []
    while finished in ([], [False], [False, True]):
        with start(run, kind, WORKERS=workers) as server, ThreadPoolExecutor(1) as client:
            pending = client.submit(server.send, scenarios()["sleep"].request(name))
            time.sleep(0.5)
            server.container.signal(signal.SIGTERM)
            assert server.container.wait(ENDS) == 0
            finished.append(pending.exception() is None and pending.result() == 200)
    assert finished in ([True], [False, True, True])


def wait_for_queries(server: Server, database: Database, number: str, request: Future[int]) -> None:
    """Wait until so many queries wait for the lock; raises AssertionError if `request` ends."""
    server.container.wait_until(
        lambda: request.done() or database.query(WAITING) == number, float("inf")
    )
    assert not request.done(), f"it ended without waiting for the lock: {request}"


@contextlib.contextmanager
def locked(database: Database, query: Query) -> Iterator[None]:
    """Make the query wait until the end of the block."""
    # Not for a time: on a full machine a request may take longer to arrive than any.
    sql = f"BEGIN; LOCK TABLE {query.table}; SELECT pg_sleep(3600); COMMIT"

    def hold() -> None:
        with contextlib.suppress(psycopg.OperationalError):  # it is ended below
            database.query(sql)

    holder = threading.Thread(target=hold)
    holder.start()
    locked = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted"
    database.container.wait_until(lambda: database.query(locked) != "0", float("inf"))
    try:
        yield
    finally:
        database.query(RELEASE)
        holder.join()
