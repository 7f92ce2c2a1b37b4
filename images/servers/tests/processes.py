"""Servers as plain processes instead of containers: while one writes a server, no image is built.

`LAPTIME_SERVER_BINARIES` names a folder; an executable in it, called as the image, is run instead
of the image. What only a container shows (user, read-only root) is then not tested.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from containers import Container

VARIABLE = "LAPTIME_SERVER_BINARIES"


def binary_of(image: str) -> Path | None:
    """The executable that is to stand for `image`, if there is one."""
    folder = os.environ.get(VARIABLE)
    file = Path(folder or "/nonexistent") / image
    return file if file.is_file() else None


class Process(Container):
    """One running process, to be handled like a container; made by `run_process`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path):
        self.name = name
        self._process = process
        self._log = log
        self.started = time.monotonic()

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside it."""
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)


@contextlib.contextmanager
def run_process(
    binary: Path,
    *,
    environment: Mapping[str, str] | None = None,
    writable: Mapping[str, Path] | None = None,
) -> Iterator[Container]:
    """Run `binary` and kill it at the end.

    Where the environment names a path in the container, it gets that of the folder itself.
    """
    variables = dict(environment or {})
    for target, source in (writable or {}).items():
        variables = {name: text.replace(target, str(source)) for name, text in variables.items()}
    with tempfile.TemporaryDirectory(prefix="laptime-process-") as folder:
        log = Path(folder) / "output"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [binary], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables
            )
        try:
            yield Process(binary.name, process, log)
        finally:
            process.kill()
            process.wait()
