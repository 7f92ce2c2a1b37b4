"""What is told of a network namespace, that of a pod or of the node, through a process in it."""

from __future__ import annotations

import os

from laptime_agent.readings import NetworkReading

_LARGEST_BYTES = 65536


class ProcessNetwork:
    """The counters of the network namespace that a process is in.

    The folder of the process is kept open and not the file in it: an open `net/dev` would keep the
    namespace of a deleted pod alive, and a number alone may soon be that of another process.

    Raises:
        OSError: there is no such process.
    """

    __slots__ = ("_folder",)

    def __init__(self, proc: str, process: int) -> None:
        self._folder = os.open(f"{proc}/{process}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def read(self) -> NetworkReading:
        """Return the counters; OSError when the process has ended."""
        return parse_devices(self._text("net/dev"))

    def tracking(self) -> bytes:
        """Return what connection tracking counts for each CPU.

        OSError when the process has ended, or where this kernel tracks no connections.
        """
        return self._text("net/stat/nf_conntrack")

    def _text(self, path: str) -> bytes:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            # The kernel gives a page of such a file at a time, which ends with a whole line.
            parts = iter(lambda: os.read(file, _LARGEST_BYTES), b"")
            return b"".join(parts)
        finally:
            os.close(file)

    def close(self) -> None:
        """Let go of the process."""
        folder, self._folder = self._folder, -1
        if folder >= 0:
            os.close(folder)


def parse_devices(text: bytes) -> NetworkReading:
    """Return the sum over the interfaces to the outside of a file /proc/PID/net/dev.

    That is all but `lo` and what Kata Containers has between another one and the virtual machine
    (`tap0_kata`): each packet goes through both, the other way round.
    """
    received = transmitted = 0
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        name = name.strip()
        if name != b"lo" and not name.endswith(b"_kata"):
            numbers = rest.split()
            received += int(numbers[0])
            transmitted += int(numbers[8])
    return NetworkReading(received, transmitted)
