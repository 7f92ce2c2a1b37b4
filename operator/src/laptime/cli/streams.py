"""Standard output and error, so that whatever reads them changes no exit code."""

from __future__ import annotations

import errno
import io
import sys
from typing import Any, TextIO


class _Stream(io.FileIO):
    """What is written to; what its reader has no more use for is dropped."""

    def __init__(self, descriptor: int, gone: tuple[int, ...]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._gone = gone

    def write(self, data: Any, /) -> int:
        """Write bytes, and return how many; all of them where nobody reads any more."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._gone:
                raise
            return memoryview(data).nbytes


def open_streams() -> None:
    """Let neither a letter nor a reader that is gone end a command.

    A reader is another program (head, grep -q) or a terminal, which may be closed. A letter that
    the encoding of a terminal or a pipe lacks is printed as `?`.
    """
    sys.stdout, sys.stderr = (_patient(one) for one in (sys.stdout, sys.stderr))


def _patient(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        # Closed from the beginning, or somebody else's.
        return stream
    stream.reconfigure(errors="replace")
    # Of a file EIO is a disk that fails.
    gone = (errno.EPIPE, errno.EIO) if stream.isatty() else (errno.EPIPE,)
    writer = io.BufferedWriter(_Stream(stream.fileno(), gone))
    return io.TextIOWrapper(writer, stream.encoding, stream.errors, line_buffering=True)
