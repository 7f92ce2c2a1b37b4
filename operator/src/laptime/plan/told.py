"""What a server is told by variables, as far as its `env`, `command` and `args` name it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import threads_of

DATABASE_PARTS = ("DATABASE_HOST", "DATABASE_PORT", "DATABASE_USER", "DATABASE_NAME")
"""Of a Postgres; with DATABASE_PASSWORD they are all that its DATABASE_URL is made of."""
_GIVES_WAY = ({"POD_IP"}, set(DATABASE_PARTS))
"""What Laptime leaves out, all of a set, where `env` has a variable of one of its names.

A host of the run's with a name of somebody's would be another database, and nothing would say so.
"""


def given_way(server: Server) -> set[str]:
    """Return the variables that Laptime leaves out, since `env` of a server has its own."""
    own = {one.name for one in server.env}
    return set().union(*(names for names in _GIVES_WAY if names & own))


def nameable(spec: BenchmarkRunSpec, server: Server) -> dict[str, str | None]:
    """Return what $(NAME) stands for in texts of a server: None, or why there is no such one.

    Beside what it is `told`, what `env` has of Secrets: nobody could write that there himself.
    """
    in_secrets = [one.name for one in server.env if one.secret is not None]
    return {**told(spec, server), **dict.fromkeys(in_secrets)}


def told(spec: BenchmarkRunSpec, server: Server) -> dict[str, str | None]:
    """Return the variables of the contract: None, or why $(NAME) stands for no such one here."""
    topology = spec.topology
    no_postgres = no_database = None
    if topology.sqlite:
        no_postgres = "the run has no Postgres; of SQLite there is $(DATABASE_URL) alone"
    elif topology.postgres is None:
        no_postgres = no_database = "the run has no database"
    found: dict[str, str | None] = {
        "PORT": None,
        "WORKERS": None,
        "THREADS": None if threads_of(server) else "nothing says the threads of this server",
        "POD_IP": None,
        "DATABASE_URL": no_database,
        **dict.fromkeys((*DATABASE_PARTS, "DATABASE_PASSWORD"), no_postgres),
        "DATABASE_CONNECTIONS": None,
        "DATABASE_PREPARED_STATEMENTS": None,
        "UPSTREAM_URL": None if topology.upstream else "the run has no upstream",
        "PROFILE_PORT": "it is there in the trial of a profile alone",
    }
    left_out, own = given_way(server), {one.name for one in server.env}
    together = " and ".join(name for name in DATABASE_PARTS if name in own)
    return {
        **found,
        **dict.fromkeys(
            left_out,
            f"env sets {together}, and the four parts of a database give way together: give yours "
            "another name",
        ),
        **dict.fromkeys(left_out & own, "env sets it itself: write its value there"),
    }


def texts(server: Server) -> Iterator[tuple[str, str]]:
    """Yield each text of a server that may name them, after where it stands."""
    for one in server.env:
        yield f"env.{one.name}", one.value
    for what, words in (("command", server.command), ("args", server.args)):
        for number, word in enumerate(words):
            yield f"{what}[{number}]", word
