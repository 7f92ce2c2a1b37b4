"""Postgres and PgBouncer for tests, run from their images."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from containers import Container, free_port, writable_folder

from laptime.manifests.postgres import copying_sql

PASSWORD = "it's a secret"
PGBOUNCER_INI = """
[databases]
laptime = host=127.0.0.1 port={database_port} dbname=laptime
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = scram-sha-256
auth_file = /etc/laptime/userlist.txt
admin_users = laptime_admin
stats_users = laptime
pool_mode = transaction
default_pool_size = 2
max_prepared_statements = 100
unix_socket_dir =
ignore_startup_parameters = extra_float_digits
"""
# Postgres drops a connection's unnamed statement when a query comes as text, as this one does after
# each transaction. Between two messages of one client it may be another client's transaction that
# does so, or a new connection that never had the statement: rarely, where this is certain.
FORGETFUL = """
server_reset_query = SELECT 'forget'
server_reset_query_always = 1
"""


@dataclass(frozen=True)
class Database:
    """Somewhere that speaks Postgres' protocol."""

    container: Container
    port: int
    name: str = "laptime"

    @property
    def url(self) -> str:
        """For DATABASE_URL; the password percent-encoded."""
        return self._url("laptime", self.name)

    @property
    def console(self) -> str:
        """For PGBOUNCER_URL, where it is one."""
        return self._url("laptime_admin", "pgbouncer")

    def _url(self, user: str, database: str) -> str:
        secret = PASSWORD.replace("'", "%27").replace(" ", "%20")
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{database}"

    def query(self, sql: str) -> str:
        """What the last statement of `sql` answers: a row a line, values parted by `|`.

        Over a connection of its own and not by psql in the container, which tests ask again and
        again while they wait: that is two processes each time. Raises psycopg.Error.
        """
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql)
            while cursor.nextset():
                pass
            result = cursor.pgresult
        assert result is not None
        rows = (
            [result.get_value(row, column) or b"" for column in range(result.nfields)]
            for row in range(result.ntuples)
        )
        return "\n".join(b"|".join(values).decode() for values in rows)

    def ready(self) -> bool:
        """The readiness probe of the run's database."""
        probe = ("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-U", "laptime")
        return self.container.execute(*probe, "-d", "laptime").returncode == 0


Run = Callable[..., AbstractContextManager[Container]]


@contextlib.contextmanager
def start_database(
    run: Run,
    folder: Path,
    port: int,
    init_sql: str = "",
    scratch: Path | None = None,
    copied: Path | None = None,
    more: str = "",
    databases: Sequence[str] = (),
) -> Iterator[Database]:
    """Postgres on `port`, its data and configuration in `folder`, which may have been used.

    `scratch` is its /tmp where that has been used too, `copied` what came out of images. `more` is
    added to its configuration. `databases` are those of servers that have one of their own.
    """
    settings = folder / "etc"
    if not settings.exists():
        writable_folder(folder / "data")
        (settings / "init.d").mkdir(parents=True)
        (settings / "init.d" / "10-seed.sql").write_text(init_sql)
        if databases:
            (settings / "databases.sql").write_text(copying_sql(databases))
    lines = [f"port = {port}", "max_connections = 50", "timezone = 'UTC'"]
    (settings / "postgresql.conf").write_text("\n".join([*lines, more]) + "\n")
    with run(
        "postgres",
        environment={"POSTGRES_PASSWORD": PASSWORD},
        files={"/etc/laptime": settings} | ({"/laptime-files": copied} if copied else {}),
        writable={"/var/lib/postgresql/data": folder / "data"}
        | ({"/tmp": scratch} if scratch else {}),
    ) as container:
        yield Database(container, port)


@contextlib.contextmanager
def start_bouncer(
    run: Run, database: Database, settings: Path, more: str = ""
) -> Iterator[Database]:
    """PgBouncer in transaction mode with two connections to `database`, set up in `settings`.

    `more` is added to its configuration.
    """
    port = free_port()
    settings.chmod(0o755)
    (settings / "userlist.txt").write_text(
        "".join(f'"{user}" "{PASSWORD}"\n' for user in ("laptime", "laptime_admin"))
    )
    (settings / "pgbouncer.ini").write_text(
        PGBOUNCER_INI.format(database_port=database.port, port=port) + more
    )
    with run("pgbouncer", files={"/etc/laptime": settings}) as container:
        # Without a name it would look its own user up, who has no entry.
        probe = ("pg_isready", "-h", "127.0.0.1", "-p", str(port), "-U", "laptime")
        container.wait_until(lambda: database.container.execute(*probe).returncode == 0, 60)
        yield Database(container, port)
