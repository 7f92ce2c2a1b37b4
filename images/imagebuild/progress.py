"""One line of progress per image, alive on a terminal and quiet in a log."""

from __future__ import annotations

import re
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

STEP = re.compile(r"^(?:\[\d+/\d+\] )?(?:STEP \d+/\d+: |#\d+ \[[^\]]*\] )(.*)")


class Progress:
    """Shows a title, the step a log file has come to, and the seconds since it was entered."""

    def __init__(self, title: str, log: Path) -> None:
        self.title = title
        self.log = log
        self.result = "failed"
        self.started = time.monotonic()
        self._live = sys.stdout.isatty()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._print(self.result, final=True)

    def _show(self) -> None:
        # A log gets a line now and then, so that a slow build is not taken for a hung one.
        while not self._done.wait(0.5 if self._live else 20.0):
            self._print(self._step(), final=False)

    def _print(self, text: str, final: bool) -> None:
        line = f"{self.title:<28} {time.monotonic() - self.started:6.1f} s  {text}"
        if self._live:
            print(f"\r\033[K{line[:110]}", end="\n" if final else "", flush=True)
        else:
            print(line[:160], flush=True)

    def _step(self) -> str:
        """The instruction that the build works on, from the end of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 20_000))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        steps = [match[1] for line in lines if (match := STEP.match(line))]
        return re.sub(r"--mount=\S+ +", "", steps[-1]) if steps else "working"
