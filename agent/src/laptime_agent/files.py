"""Small files of the kernel: kept open and read whole, which costs a third of opening them anew."""

from __future__ import annotations

import os

# No file that the agent reads comes near it, but those that have a line for each CPU; the kernel
# makes each of them in one piece.
_LARGEST_BYTES = 16384


class KernelFile:
    """A file below /proc or /sys that is read again and again, to so many bytes at most.

    Raises:
        OSError: it cannot be opened; on `read`, what it described is gone (ENODEV).
    """

    __slots__ = ("_descriptor", "_largest_bytes")

    def __init__(self, path: str, largest_bytes: int = _LARGEST_BYTES) -> None:
        self._largest_bytes = largest_bytes
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Return what the file says now."""
        return os.pread(self._descriptor, self._largest_bytes, 0)

    def read_integer(self) -> int:
        """Return the one number in the file; ValueError when there is something else."""
        return int(os.pread(self._descriptor, 64, 0))

    def close(self) -> None:
        """Close it; once is enough, more is no mistake."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def open_if_there(path: str) -> KernelFile | None:
    """Return the file, or None where this kernel has none or lets nobody read it."""
    try:
        return KernelFile(path)
    except OSError:
        return None


def field(text: bytes, name: bytes) -> int | None:
    """Return the number of the line `name NUMBER`, None when there is no such line."""
    if text.startswith(name + b" "):
        start = len(name) + 1
    else:
        start = text.find(b"\n" + name + b" ")
        if start < 0:
            return None
        start += len(name) + 2
    end = text.find(b"\n", start)
    return int(text[start : end if end >= 0 else None])
