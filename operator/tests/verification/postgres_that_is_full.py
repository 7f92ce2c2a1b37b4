"""A Postgres without a connection left, as far as a client sees it that asks for one."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

IN_USE = "sorry, too many clients already"
RESERVED = "remaining connection slots are reserved for roles with the SUPERUSER attribute"
_LET_IN = b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I"


@contextmanager
def full_postgres(words: str = IN_USE, refusals: int | None = None) -> Iterator[str]:
    """Yield the URL of one that refuses so often, as PostgreSQL 15 does, and then lets in.

    None: always. No Postgres is at hand where these tests run.
    """
    fields = b"".join(
        one.encode() + b"\0" for one in ("SFATAL", "VFATAL", "C53300", f"M{words}", "Fproc.c")
    )
    refused = b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0"
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        asked = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                asked += 1
                let_in = refusals is not None and asked > refusals
                connection.sendall(_LET_IN if let_in else refused)
                # Until the client has gone.
                connection.recv(4096)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        port = listener.getsockname()[1]
        options = "sslmode=disable&gssencmode=disable"
        yield f"postgresql://laptime:secret@127.0.0.1:{port}/laptime?{options}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
