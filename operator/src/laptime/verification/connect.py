"""Connections of Laptime's own to the Postgres of a run."""

from __future__ import annotations

import time

import psycopg

_CONNECT_SECONDS = 10
_FULL_SECONDS = 10.0
_AGAIN_SECONDS = 0.1
# SQLSTATE 53300 in words: libpq has no code of a connection that was refused.
_FULL = ("too many clients", "connection slots are reserved", "too many connections for")


class TooManyConnections(Exception):
    """All connections of a Postgres are in use, also those that are there for Laptime."""


def connect(url: str) -> psycopg.Connection:
    """Return a connection that commits by itself.

    It asks again for ten seconds while Postgres is full, as the generator does: connections of a
    server before may be about to end.

    Raises:
        TooManyConnections: Postgres was full all the time.
        psycopg.Error: it cannot be reached, or refuses for another reason.
    """
    until = time.monotonic() + _FULL_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        except psycopg.OperationalError as error:
            # libpq leaves the password out of its errors.
            said = str(error)
            if not any(words in said for words in _FULL):
                raise
            if time.monotonic() >= until:
                raise TooManyConnections(
                    "the servers have all connections of Postgres open, Laptime's own too: each "
                    "process of a server may have DATABASE_CONNECTIONS, all together "
                    f"topology.postgres.maxConnections: {said}"
                ) from None
        time.sleep(_AGAIN_SECONDS)
