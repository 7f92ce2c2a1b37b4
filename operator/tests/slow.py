"""Looks whether something ends in time which a test could not stop: `re` holds all threads up."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

import pytest

Result = TypeVar("Result")


def within(seconds: float, does: Callable[..., Result], *args: Any, **more: Any) -> Result:
    """Return what a function of a module returns, called in a process that may take so long.

    The time is generous: what this is about would take minutes or years.
    """
    context = multiprocessing.get_context("forkserver")
    # Else each process loads them anew, which takes longer than nearly all that is done in them.
    context.set_forkserver_preload(["laptime.catalog.problems", "laptime.measure", "pytest"])
    pool = ProcessPoolExecutor(1, mp_context=context)
    try:
        return pool.submit(does, *args, **more).result(timeout=seconds)
    except TimeoutError:
        pytest.fail(f"it does not end within {seconds} s")
    finally:
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown()
