"""Standard output and error, so that whatever reads them changes no exit code."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO


class _Pipe(io.FileIO):
    """A pipe or file; what its reader (head, grep -q) has no more use for is dropped."""

    def write(self, data: Any, /) -> int:
        """Write bytes, and return how many; all of them where nobody reads any more."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Let neither a letter nor a reader that is gone end a command.

    A letter that the encoding of a terminal or a pipe lacks is printed as `?`.
    """
    sys.stdout, sys.stderr = (_patient(one) for one in (sys.stdout, sys.stderr))


def _patient(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        # Closed from the beginning, or somebody else's.
        return stream
    stream.reconfigure(errors="replace")
    if stream.isatty():
        return stream
    pipe = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=True)
