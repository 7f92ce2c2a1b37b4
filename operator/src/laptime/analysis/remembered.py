"""What was computed of the trials of a run, so that one trial more is not all that work again.

It is as large as the trials themselves, so it is forgotten when a run ends: an operator that works
for weeks would else keep the last thousand trials of runs that nobody has any more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_FORGET: list[Callable[[], None]] = []


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps the last results of a pure function, until `forget`.

    `most` is how many.
    """

    def of(function: Callable[P, T]) -> Callable[P, T]:
        cached: Any = lru_cache(maxsize=most)(function)
        _FORGET.append(cached.cache_clear)
        kept: Callable[P, T] = cached
        return kept

    return of


def forgotten_by(clear: Callable[[], None]) -> None:
    """Have `forget` call this too, for what is kept otherwise."""
    _FORGET.append(clear)


def forget() -> None:
    """Keep nothing of what was computed: whoever still needs something computes it once more."""
    for clear in _FORGET:
        clear()
