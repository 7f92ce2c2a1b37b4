"""What the Python servers share."""

from __future__ import annotations

import importlib.util
import os
import queue
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.server import HTTPServer
from pathlib import Path
from types import ModuleType
from urllib.error import HTTPError

import pytest

from serving import limits, profile, sqlite_file
from serving.settings import Settings
from serving.sqlite_connections import SqliteConnections


@pytest.mark.parametrize("soft", [256, limits.OPEN_FILES + 1])
def test_a_server_may_open_more_files_than_a_node_lets_it_at_first(soft: int) -> None:
    """In a process of its own, which has less than it may have, or more than it would take."""
    code = (
        "from resource import *\n"
        "from serving.limits import raise_open_files\n"
        "hard = getrlimit(RLIMIT_NOFILE)[1]\n"
        f"setrlimit(RLIMIT_NOFILE, (min({soft}, hard), hard))\n"
        "raise_open_files()\n"
        "print(*getrlimit(RLIMIT_NOFILE), hard)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(limits.__file__).parents[1],
    )
    now, still, hard = map(int, done.stdout.split())
    assert now == min(max(soft, limits.OPEN_FILES), hard)
    assert still == hard


def test_settings_without_an_environment() -> None:
    assert Settings.from_environment({}) == Settings()


def test_every_setting_is_read() -> None:
    settings = Settings.from_environment(
        {
            "PORT": "9000",
            "WORKERS": "4",
            "THREADS": "40",
            "ACCESS_LOG": "true",
            "DATABASE_URL": "postgresql://u:p@h:1/d",
            "DATABASE_CONNECTIONS": "7",
            "DATABASE_PREPARED_STATEMENTS": "False",
            "UPSTREAM_URL": "http://u/users",
            "PROFILE_PORT": "6060",
        }
    )
    assert settings == Settings(
        9000, 4, 40, True, "postgresql://u:p@h:1/d", 7, False, "http://u/users", 6060
    )
    assert settings.sqlite_file is None


@pytest.mark.parametrize("empty", ["DATABASE_URL", "UPSTREAM_URL", "PORT", "PROFILE_PORT"])
def test_an_empty_variable_is_none(empty: str) -> None:
    assert Settings.from_environment({empty: ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("WORKERS", "0"), ("PORT", "http"), ("THREADS", "-1"), ("DATABASE_CONNECTIONS", "1.5"),
     ("PROFILE_PORT", "x"),
     ("DATABASE_PREPARED_STATEMENTS", "yes")],
)  # fmt: skip
def test_a_wrong_value_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*'{value}'"):
        Settings.from_environment({name: value})


def django_settings() -> ModuleType:
    path = Path(__file__).parents[1] / "servers" / "django-psycopg" / "app" / "settings.py"
    found = importlib.util.spec_from_file_location("django_settings", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("keep", "threads", "age", "prepared", "pooled"),
    [
        ("", "1", None, True, False),
        ("true", "1", None, True, False),
        ("false", "1", 0, False, False),
        ("true", "4", 0, True, True),
        ("false", "4", 0, True, True),
    ],
)
def test_django_connects_anew_for_each_request_where_it_is_told_so(
    keep: str,
    threads: str,
    age: int | None,
    prepared: bool,
    pooled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@h:1/d")
    monkeypatch.setenv("KEEP_CONNECTIONS", keep)
    monkeypatch.setenv("THREADS", threads)
    database = django_settings().DATABASES["default"]
    options = database["OPTIONS"]
    assert database["CONN_MAX_AGE"] == age
    assert options["server_side_binding"] is prepared
    assert options["prepare_threshold"] == (5 if prepared else None)
    assert ("pool" in options) is pooled


def test_django_knows_no_third_way_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@h:1/d")
    monkeypatch.setenv("KEEP_CONNECTIONS", "no")
    with pytest.raises(ValueError, match="KEEP_CONNECTIONS must be true or false, not 'no'"):
        django_settings()


def test_the_path_of_a_sqlite_url_is_absolute() -> None:
    settings = Settings.from_environment({"DATABASE_URL": "sqlite:///data/a%20b.db"})
    assert settings.sqlite_file == Path("/data/a b.db")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with an odd name, as a run prepares it."""
    file = tmp_path / "a b?.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE posts (id integer)")
    return file


def test_a_sqlite_connection_is_set_up(file: Path) -> None:
    with closing(sqlite_file.connect(file, prepared_statements=True)) as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT count(*) FROM posts").fetchone() == (0,)


def test_a_missing_sqlite_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite_file.connect(tmp_path / "missing.db", prepared_statements=True)
    assert list(tmp_path.iterdir()) == []


def test_a_pool_lends_no_more_than_it_has_and_the_last_one_first(file: Path) -> None:
    pool = SqliteConnections(file, 2, True, acquire_seconds=0.01)
    with closing(pool), pool.connection() as first:
        with pool.connection() as second, pytest.raises(queue.Empty), pool.connection():
            pass
        with pool.connection() as third:
            assert third is second
        assert first is not second
    with pytest.raises(sqlite3.ProgrammingError):
        first.execute("SELECT 1")


def test_a_pool_survives_a_failed_connection(tmp_path: Path) -> None:
    pool = SqliteConnections(tmp_path / "late.db", 1, True, acquire_seconds=0.01)
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError), pool.connection():
            pass
    sqlite3.connect(tmp_path / "late.db").close()
    with closing(pool), pool.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_goes_from_thread_to_thread(file: Path) -> None:
    pool = SqliteConnections(file, 1, True, acquire_seconds=5)
    seen = []

    def read() -> None:
        with pool.connection() as connection:
            seen.append(connection.execute("SELECT count(*) FROM posts").fetchone())

    for _ in range(2):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    pool.close()
    assert seen == [(0,), (0,)]


@pytest.fixture
def profiles() -> Iterator[str]:
    """Where a server in Python serves profiles."""
    with HTTPServer(("127.0.0.1", 0), profile._Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def be_py_spy(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a script stand for py-spy; `$OUTPUT` is the file that it shall write."""
    program = folder / "py-spy"
    program.write_text(
        f'#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done; OUTPUT=$2\n{script}'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_profile_does_not_tell_workers_apart(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = 'process 7:"python -m app"'
    worker = """process 8:"python -c "import x; x.run('a', fd=8)" --fork\""""
    lines = f"{root};{worker};main (app/main.py:3);b 7\n{root} 2\nmain (app/main.py:3) 1"
    be_py_spy(tmp_path, monkeypatch, f"cat >$OUTPUT <<'END'\n{lines}\nEND\n")
    with urllib.request.urlopen(f"{profiles}/profile?seconds=1") as response:
        assert response.read() == b"main (app/main.py:3);b 7\nmain (app/main.py:3) 1\n"


def test_a_profile_leaves_out_samples_that_were_torn(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "main (app/main.py);<lambda> (app/main.py) 4",
        "main (app/main.py);\ucb40\\\ufffd",
        "(\ucb40\\:32599);",
        "main (app/main.py);get\x01 (app/main.py) 2",
        "main (app/main.py);(x) 2",
        "main (app/main.py) 0",
        "main (app/main.py) \u0663",
        "main (<frozen runpy>);send (starlette/routing.py) 12",
    ]
    torn = tmp_path / "torn"
    torn.write_bytes("\n".join(lines).encode() + b"\nmain (app/\xff.py);a\xff 3\n")
    be_py_spy(tmp_path, monkeypatch, f"cat {torn} >$OUTPUT\n")
    with urllib.request.urlopen(f"{profiles}/profile?seconds=1") as response:
        assert response.read().decode().splitlines() == [lines[0], lines[-1]]


def test_a_profile_that_cannot_be_taken_says_why(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_py_spy(tmp_path, monkeypatch, "echo Permission denied >&2; exit 1\n")
    with pytest.raises(HTTPError, match="500") as refused:
        urllib.request.urlopen(f"{profiles}/profile?seconds=1")
    assert refused.value.read() == b"Permission denied"


def test_a_profile_that_finds_no_python_is_taken_again_and_at_last_with_the_server_stopped(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that goes on while its memory is read looks like none, seldom."""
    script = f"""
    echo "$*" >>{tmp_path}/tries
    case "$*" in
    *--nonblocking*) echo 'Error: No python processes found in process 1'; exit 1 ;;
    esac
    echo 'main (app/main.py) 4' >$OUTPUT
    """
    be_py_spy(tmp_path, monkeypatch, script)
    with urllib.request.urlopen(f"{profiles}/profile?seconds=1") as response:
        assert response.read() == b"main (app/main.py) 4\n"
    tries = (tmp_path / "tries").read_text().splitlines()
    assert ["--nonblocking" in one for one in tries] == [True, True, False]


def test_a_profile_is_taken_again_when_py_spy_stands_still(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for one of its own threads, seldom, and then for ever."""
    script = f"""
    echo 'main (app/main.py' >$OUTPUT
    mkdir {tmp_path}/first && exec sleep 3600
    echo 'main (app/main.py) 4' >$OUTPUT
    """
    monkeypatch.setattr(profile, "_PATIENCE_SECONDS", 1)
    be_py_spy(tmp_path, monkeypatch, script)
    with urllib.request.urlopen(f"{profiles}/profile?seconds=1") as response:
        assert response.read() == b"main (app/main.py) 4\n"


def test_a_profile_is_given_up_before_laptime_gives_up_the_server(
    profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "_PATIENCE_SECONDS", 1)
    monkeypatch.setattr(profile, "_WAITED_FOR_SECONDS", 2)
    be_py_spy(tmp_path, monkeypatch, f"echo one >>{tmp_path}/tries; exec sleep 3600\n")
    with pytest.raises(HTTPError, match="500") as refused:
        urllib.request.urlopen(f"{profiles}/profile?seconds=1")
    assert refused.value.read() == b"py-spy did not end within 2 s"
    assert (tmp_path / "tries").read_text() == "one\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/other", 404),
        ("/profile", 400),
        ("/profile?seconds=0", 400),
        ("/profile?seconds=601", 400),
    ],
)
def test_another_question_than_for_a_profile_is_refused(
    profiles: str, path: str, status: int
) -> None:
    with pytest.raises(HTTPError, match=str(status)):
        urllib.request.urlopen(profiles + path)
