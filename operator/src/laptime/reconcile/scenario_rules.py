"""The rules of scenarios, looked at in a process of its own that may take only so much.

Whoever writes a scenario writes patterns and references of a JSON Schema that may take for ever,
and while Python looks for a pattern no other thread of its process does anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from asyncio.subprocess import PIPE
from functools import lru_cache

from pydantic import ValidationError

from laptime.catalog import Scenario, stored_text
from laptime.catalog.problems import scenario_problems

CPU_SECONDS = 60
"""Most take half a second, nearly all of it to load libraries. The slowest honest one that is known
takes 30: 6,000 objects in 80 kB that must be unique."""
MEMORY_BYTES = 192 * 2**20
"""A scenario of 1 MB takes 45 MiB. The operator, in whose limit of 512 MiB this is, needs 150."""
_TIMEOUT_SECONDS = 600.0
"""Nothing of a scenario takes so long, as its CPU is bounded: the node has none left for it."""
_TOO_MUCH = 3
_OVER_LIMIT = (_TOO_MUCH, -signal.SIGXCPU, -signal.SIGABRT, -signal.SIGSEGV)
"""How a process ends that has reached a limit: libraries abort where they get no memory."""


async def problems_apart(scenario: Scenario) -> list[str]:
    """Return what `scenario_problems` says, or that it takes too much to know.

    Raises:
        RuntimeError, OSError, TimeoutError: the process could not do it, whatever it was given.
    """
    async with _turn(asyncio.get_running_loop()):
        code, said, errors = await _asked(stored_text(scenario).encode())
    if code in _OVER_LIMIT:
        return [
            f"to check it takes more than {CPU_SECONDS} s or {MEMORY_BYTES // 2**20} MiB: make it "
            "smaller; in a jsonSchema write no repetition of a repetition, such as (a+)+, and no "
            "$ref that leads to itself or to ever more others"
        ]
    if code != 0:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise RuntimeError(f"the rules of scenarios: exit code {code}: {last}")
    problems: list[str] = json.loads(said)
    return problems


@lru_cache(maxsize=1)
def _turn(_loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    """Return what lets one process at a time run: the memory is enough for one."""
    return asyncio.Lock()


async def _asked(text: bytes) -> tuple[int, bytes, bytes]:
    """Return exit code, output and errors of the process that reads a scenario."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, str(CPU_SECONDS), str(MEMORY_BYTES)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        # Nothing else of the environment: it has credentials.
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            said, errors = await process.communicate(text)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, said, errors


def main() -> int:
    """Read a scenario from standard input and write its problems; return the exit code."""
    cpu_seconds, memory_bytes = map(int, sys.argv[1:])
    # What measures and leads the runs comes first.
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    try:
        scenario = Scenario.model_validate_json(sys.stdin.buffer.read())
        print(json.dumps(scenario_problems(scenario)))
    except (MemoryError, RecursionError, ValidationError):
        # It was valid before: only nested deeper than a run can read it again.
        return _TOO_MUCH
    return 0


if __name__ == "__main__":
    sys.exit(main())
