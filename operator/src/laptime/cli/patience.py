"""Asking again while a cluster is out of reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from laptime.cli.mistakes import Unreachable

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 1.0

_Answer = TypeVar("_Answer")


def patiently(
    ask: Callable[[], _Answer],
    tell: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    *,
    longest: float = PATIENCE_SECONDS,
) -> _Answer:
    """Return what is asked of a cluster, which is asked again while that is out of reach.

    What is asked must be such that it can be asked again. `tell` is given what keeps it, once
    (default: standard error is).

    Raises:
        Unreachable: the cluster was out of reach for `longest` seconds.
    """
    began: float | None = None
    told: set[str] = set()
    while True:
        try:
            return ask()
        except Unreachable as error:
            # What is asked may have taken its time before the cluster went out of reach.
            began = clock() if began is None else began
            if clock() - began >= longest:
                raise
            text = f"{error}; trying again"
            if text not in told:
                told.add(text)
                (tell or _tell)(text)
        sleep(PAUSE_SECONDS)


def _tell(text: str) -> None:
    from laptime.cli.printing import say

    say(text, err=True)
