"""How much of a CPU's changing speed the agent's fixed piece of work tells, beside real requests.

    PYTHONPATH=bench:proof python3 bench/speed/run.py [--windows N]

On one CPU the small server of bench/generator is driven by the built-in loop, window after window,
while the agent's work is done five times a second. What is compared is
requests per second of CPU time of server and loop, not per second: whatever else runs takes time,
and that is known already. A straight line through the logarithms says how much of the variance of
the one the other explains; where the work tells all, its slope is -1.

Exits with 1 when a goal is missed, and with 75 (not judged) when the CPU was always as fast: then
there is nothing to tell. The busier the host of a virtual machine, the better.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean, stdev

from generator.run import K6_MODULE, build, requests_of_result, serving
from laptime_proof.runner import NOT_JUDGED_CODE

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = 60
FEWEST = 3
SECONDS = 5
LEAST_VARIED = 0.05
"""Standard deviation of the requests per CPU-second; less is hardly more than chance."""
GOAL_EXPLAINED = 0.5
GOAL_SLOPE = (-1.5, -0.67)
PROBE = """
import time
from laptime_agent.speed import Speed
speed = Speed()
while True:
    speed.measure()
    print(time.time(), speed.count, speed.seconds, flush=True)
    time.sleep(0.2)
"""


def line_through(xs: list[float], ys: list[float]) -> tuple[float, float]:
    """Return slope and explained share of the variance of the least squares line."""
    x, y = mean(xs), mean(ys)
    both = math.fsum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    of_x = math.fsum((a - x) ** 2 for a in xs)
    of_y = math.fsum((b - y) ** 2 for b in ys)
    return both / of_x, both**2 / (of_x * of_y)


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_named(name: str) -> list[int]:
    """Return the numbers of this process's children that run a program of this name."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-x", name], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def took(probes: Path, begin: float, end: float) -> float:
    """Return what the work took in a window of Unix times, in seconds of CPU time."""
    lines = [line.split() for line in probes.read_text().splitlines()]
    within = [(int(n), float(s)) for at, n, s in lines if begin <= float(at) <= end]
    (first, since), (last, until) = within[0], within[-1]
    return (until - since) / (last - first)


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=WINDOWS)
    windows = parser.parse_args().windows
    if windows < FEWEST:
        parser.error(f"--windows: at least {FEWEST}, for a line through them")
    cache = Path(os.environ.get("LAPTIME_CACHE") or Path.home() / ".cache" / "laptime")
    folder = cache / "bin" / "bench-generator"
    folder.mkdir(parents=True, exist_ok=True)
    k6, program = build(folder)
    # All that is started from here on is on the one CPU.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    loop = [str(k6), "run", "--quiet", "--no-color", "--out", "laptime"]
    loop += ["--summary-mode=disabled", str(K6_MODULE / "trial.js")]
    work: list[float] = []
    rates: list[float] = []
    probes = folder / "probes"
    with serving(program) as targets, probes.open("w") as file:
        (server,) = children_named(program.name)
        load = {"closed": {"connections": 4, "durationSeconds": SECONDS, "keepAlive": True}}
        trial = {
            "trial": "bench",
            "target": targets[0],
            "waitSeconds": 5,
            "requests": [{"name": "list", "path": "/"}],
            "load": load,
            "warmupSeconds": 0,
            "timeoutSeconds": 10,
        }
        environment = {**os.environ, "GOMAXPROCS": "1", "LAPTIME_TRIAL": json.dumps(trial)}
        probe = subprocess.Popen(
            [sys.executable, "-c", PROBE],
            stdout=file,
            env={**os.environ, "PYTHONPATH": str(ROOT / "agent" / "src")},
        )
        try:
            for number in range(1, windows + 1):
                before, used = time.time(), cpu_seconds(server)
                done = subprocess.Popen(loop, env=environment, stdout=subprocess.PIPE, text=True)
                assert done.stdout is not None
                output = done.stdout.read()
                _, status, usage = os.wait4(done.pid, 0)
                done.returncode = os.waitstatus_to_exitcode(status)
                if done.returncode:
                    sys.exit(f"the generator ended with {done.returncode}:\n{output}")
                spent = cpu_seconds(server) - used + usage.ru_utime + usage.ru_stime
                rates.append(math.log(requests_of_result(output) / spent))
                work.append(math.log(took(probes, before + 0.5, time.time())))
                each = f"{math.exp(rates[-1]):,.0f} requests per CPU-second"
                print(f"[{number}/{windows}] {each}, {math.exp(work[-1]) * 1e6:.0f} µs", flush=True)
        finally:
            probe.kill()
            probe.wait()
    slope, explained = line_through(work, rates)
    varied, left = stdev(rates), stdev(rates) * math.sqrt(1 - explained)
    print(f"requests per CPU-second varied by {varied:.1%} in {windows} windows of {SECONDS} s")
    said = f"the work tells {explained:.0%} of the variance (slope {slope:.2f}); left: {left:.1%}"
    if varied < LEAST_VARIED:
        print(f"{said}; not judged: the CPU was always as fast")
        return NOT_JUDGED_CODE
    met = explained >= GOAL_EXPLAINED and GOAL_SLOPE[0] <= slope <= GOAL_SLOPE[1]
    goal = f"at least {GOAL_EXPLAINED:.0%}, slope {GOAL_SLOPE[0]} to {GOAL_SLOPE[1]}"
    print(f"{said}; goal: {goal}: {'met' if met else 'MISSED'}")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
