"""Real trials, but short ones: our k6 drives a server on 127.0.0.1, a fresh process each time."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from laptime.api.loads import Load
from laptime.measure import GeneratorResult, parse_generator_output, trial_result
from laptime.plan import Trial

HERE = Path(__file__).resolve().parent
K6_MODULE = HERE.parents[1] / "images" / "k6"
ROUNDS = 500_000
SLOWER = 1.03
CONNECTIONS = 2
LONGEST_TRIAL_SECONDS = 60


@dataclass(frozen=True)
class Programs:
    """What is built for the trials."""

    k6: Path
    server: Path


def build(folder: Path, k6: Path | None) -> Programs:
    """Build k6 (unless there is one) and the server; exits with Go's message on failure."""
    programs = Programs(k6 or folder / "k6", folder / "server")
    for module, program in ((K6_MODULE, programs.k6), (HERE / "server", programs.server)):
        if program.exists():
            continue
        subprocess.run(
            ["go", "build", "-p", "1", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."],
            cwd=module,
            env={**os.environ, "CGO_ENABLED": "0"},
            check=True,
        )
    return programs


def measure_blocks(
    programs: Programs, blocks: int, seconds: float, dice: random.Random
) -> dict[str, list[float]]:
    """Return the logarithms of requests/s of a server and a slower one, block by block."""
    servers = {"one": ROUNDS, "slower": round(ROUNDS * SLOWER)}
    found: dict[str, list[float]] = {name: [] for name in servers}
    for block in range(1, blocks + 1):
        order = list(servers)
        dice.shuffle(order)
        for name in order:
            found[name].append(_trial(programs, name, servers[name], seconds))
        if block % 10 == 0:
            print(f"  {block} of {blocks} blocks", flush=True)
    return found


def _trial(programs: Programs, name: str, rounds: int, seconds: float) -> float:
    server = subprocess.Popen(
        [str(programs.server), f"-rounds={rounds}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        return _drive(programs.k6, f"http://{server.stdout.readline().strip()}", name, seconds)
    finally:
        server.stdin.close()
        server.wait(timeout=10)


def _drive(k6: Path, target: str, name: str, seconds: float) -> float:
    shape = {"connections": CONNECTIONS, "durationSeconds": seconds, "keepAlive": True}
    document = {
        "trial": name,
        "target": target,
        "waitSeconds": 10,
        "requests": [{"name": "work", "method": "GET", "path": "/", "expectStatus": 200}],
        "load": {"closed": shape},
        "warmupSeconds": 0.2,
        "timeoutSeconds": 10,
    }
    command = [str(k6), "run", "--quiet", "--no-color", "--out", "laptime"]
    run = subprocess.run(
        [*command, "--summary-mode=disabled", str(K6_MODULE / "trial.js")],
        env={**os.environ, "LAPTIME_TRIAL": json.dumps(document)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=LONGEST_TRIAL_SECONDS,
    )
    parsed = parse_generator_output(run.stdout)
    if not isinstance(parsed, GeneratorResult):
        raise SystemExit(f"a trial failed: {parsed.message}")
    load = Load.model_validate(
        {"name": "closed", "closed": {"connections": CONNECTIONS, "duration": f"{seconds}s"}}
    )
    result = trial_result(Trial(name, 1, name, "closed", 1), parsed, load)
    if result.figures is None or result.figures.requests_per_second <= 0:
        raise SystemExit(f"a trial failed: {result.message or result.validity_reasons}")
    return math.log(result.figures.requests_per_second)
