"""What a request costs the load generator: the built-in loop against plain k6, wrk and ab.

    python3 bench/generator/run.py [--rounds N] [--seconds S] [--connections N]

All sides drive the same small server on 127.0.0.1 in the same run, in rounds of shuffled order,
with keep-alive on and off. With keep-alive there are TLS and HTTP/2, too, and the loop sends
sessions of three steps, whose values come from 10,000 rows and from the answers before. A script
with checks, groups, metrics of its own and thresholds runs in k6 as its users run it and as Laptime
does, as many iterations each, in pairs of which now the one and now the other is first: what is
looked for there is less than what one run differs from the next. The figure is requests per
CPU-second of the generator's process, its start included, as the kernel counts them (wait4). The
output's cost is that of one request in a Go benchmark as a share of what plain k6 spends on a
request. Needs Go; wrk and ab are Debian's `wrk` and `apache2-utils`, installed when missing and the
user is root.

Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from laptime.analysis.statistics import interval_of_logs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
K6_MODULE = ROOT / "images" / "k6"
PACKAGES = {"wrk": "wrk", "ab": "apache2-utils"}
GOAL_RATIO = {True: 5.0, False: 2.5}
GOAL_OUTPUT_SHARE = 0.03
GOAL_SESSION_RATE = 10_000
GOAL_SESSION_COST = 0.75
GOAL_SCRIPT_COST = 1.05
SESSION = "built-in loop, sessions"
SECURED = "built-in loop, TLS"
PLAIN_SECURED = "plain k6, TLS"
SECOND = "built-in loop, HTTP/2"
STREAMS = "built-in loop, HTTP/2, 10 streams"
SECOND_SECURED = "built-in loop, HTTP/2, TLS"
PLAIN_SECOND = "plain k6, HTTP/2, TLS"
SECOND_WHOLE = "built-in loop, HTTP/2, TLS, answers in one segment"
PLAIN_WHOLE = "plain k6, HTTP/2, TLS, answers in one segment"
SCRIPT = "script, output laptime"
PLAIN_SCRIPT = "script, plain k6"
ITERATIONS = 20_000
SCRIPT_PAIRS = 12
ROWS = 10_000
LONGEST_RUN_SECONDS = 120


@dataclass
class Cost:
    """Requests answered and CPU time used, summed over rounds."""

    requests: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def per_cpu_second(self) -> float:
        """Requests per CPU-second."""
        return self.requests / self.cpu_seconds


@dataclass(frozen=True)
class Side:
    """One generator: its command, environment, and how its output tells the requests."""

    name: str
    command: list[str]
    environment: dict[str, str]
    count: Callable[[str], int]
    timed: bool = True
    """Whether it runs for the seconds that it is told; otherwise until it has done its work."""


def build(folder: Path) -> tuple[Path, Path]:
    """Build k6 and the server; returns their paths. Exits with Go's message on failure."""
    k6, server = folder / "k6", folder / "server"
    for module, program in ((K6_MODULE, k6), (HERE / "server", server)):
        subprocess.run(
            ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."],
            cwd=module,
            env={**os.environ, "CGO_ENABLED": "0"},
            check=True,
        )
    return k6, server


def require_tools() -> None:
    """Install wrk and ab where they are missing; exits saying what to install if it cannot."""
    missing = [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]
    if not missing:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"missing: {' '.join(missing)}. Run: sudo {' '.join(command)}")
    for step in (["apt-get", "update", "-qq"], command):
        if subprocess.run(step, stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"{' '.join(step)} failed")


@contextmanager
def serving(program: Path) -> Iterator[list[str]]:
    """Run the server; yields its URLs: without TLS and with, the same over HTTP/2, and with TLS
    over HTTP/2 with each answer in one segment.
    """
    server = subprocess.Popen(
        [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        schemes = ("http", "https", "http", "https", "https")
        addresses = [server.stdout.readline().strip() for _ in schemes]
        yield [f"{how}://{where}" for how, where in zip(schemes, addresses, strict=True)]
    finally:
        server.stdin.close()
        server.wait(timeout=10)


def requests_of_result(output: str) -> int:
    """Return the measured requests of a LAPTIME-RESULT line; exits when one failed."""
    line = next(line for line in output.splitlines() if line.startswith("LAPTIME-RESULT "))
    result = json.loads(gzip.decompress(base64.b64decode(line.split()[1])))
    measured = result["phases"]["measured"]
    if measured["requests"] != measured["responses"]:
        sys.exit(f"requests failed: {measured['errors']}")
    return int(measured["responses"])


def first_number(pattern: str) -> Callable[[str], int]:
    """Return a reader of the number that `pattern` finds."""

    def read(output: str) -> int:
        found = re.search(pattern, output)
        if found is None:
            sys.exit(f"unexpected output:\n{output}")
        return int(found[1])

    return read


def session(folder: Path) -> dict[str, Any]:
    """Return what a trial says of sessions: log in as the next user, create, read back."""
    users = folder / "users.csv"
    rows = (f"user-{n:05},correct horse battery {n}\n" for n in range(ROWS))
    users.write_text("name,password\n" + "".join(rows))
    bearer = {"Authorization": "Bearer {{token}}"}
    keeps = {"name": "token", "json": "/user_id"}
    json_body = {"Content-Type": "application/json"}
    return {
        "feeders": [{"name": "users", "csv": {"file": str(users)}}],
        "requests": [
            {
                "name": "login",
                "method": "POST",
                "path": "/login",
                "headers": json_body,
                "body": '{"name":"{{users.name}}","password":"{{users.password}}"}',
                "captures": [keeps],
            },
            {
                "name": "create",
                "method": "POST",
                "path": "/items",
                "headers": {**json_body, **bearer},
                "body": '{"owner":"{{users.name}}"}',
                "captures": [{"name": "item", "json": "/username"}],
            },
            {"name": "read", "path": "/items/{{item}}", "headers": bearer},
        ],
        "sessions": [{"name": "shop", "steps": ["login", "create", "read"]}],
    }


def sides(
    k6: Path,
    folder: Path,
    targets: list[str],
    keep_alive: bool,
    seconds: int,
    connections: int,
) -> list[Side]:
    """Return all generators for one setting."""
    target, secured, second, second_secured, second_whole = targets
    quiet = ["--quiet", "--no-color"]
    with_output = ["--out", "laptime", "--summary-mode=disabled"]
    trial: dict[str, Any] = {
        "trial": "bench",
        "target": target,
        "waitSeconds": 5,
        "requests": [{"name": "list", "path": "/"}],
        "load": {
            "closed": {
                "connections": connections,
                "durationSeconds": seconds,
                "keepAlive": keep_alive,
            }
        },
        "warmupSeconds": 0,
        "timeoutSeconds": 10,
    }
    loop = [str(k6), "run", *quiet, *with_output, str(K6_MODULE / "trial.js")]
    with_sessions = {"LAPTIME_TRIAL": json.dumps({**trial, **session(folder)})}
    plain = {
        "TARGET": target,
        "KEEP_ALIVE": str(keep_alive).lower(),
        "SECONDS": str(seconds),
        "CONNECTIONS": str(connections),
        "K6_NO_USAGE_REPORT": "true",
    }
    run_plain = [str(k6), "run", *quiet]
    script = str(HERE / "plain.js")
    wrk = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}"]
    wrk += [] if keep_alive else ["-H", "Connection: close"]
    ab = ["ab", "-q", f"-c{connections}", f"-t{seconds}", "-n100000000"]  # -t resets -n
    ab += ["-k"] if keep_alive else []
    with_tls = json.dumps({**trial, "target": secured, "tls": {"insecure": True}})
    over_http2 = {**trial["load"], "protocol": "http2"}
    with_http2 = {**trial, "target": second, "load": over_http2}
    with_streams = {**with_http2, "load": {**over_http2, "streams": 10}}
    with_both = {**with_http2, "target": second_secured, "tls": {"insecure": True}}
    whole = {**with_both, "target": second_whole}
    trusting, by_alpn, by_alpn_whole = (
        {**plain, "TARGET": one, "K6_INSECURE_SKIP_TLS_VERIFY": "true"}
        for one in (secured, second_secured, second_whole)
    )
    counted = first_number(r"http_reqs\.*: (\d+)")
    kept = [
        Side(SESSION, loop, with_sessions, requests_of_result),
        Side(SECURED, loop, {"LAPTIME_TRIAL": with_tls}, requests_of_result),
        Side(PLAIN_SECURED, [*run_plain, script], trusting, counted),
        *(
            Side(name, loop, {"LAPTIME_TRIAL": json.dumps(asked)}, requests_of_result)
            for name, asked in (
                (SECOND, with_http2),
                (STREAMS, with_streams),
                (SECOND_SECURED, with_both),
                (SECOND_WHOLE, whole),
            )
        ),
        Side(PLAIN_SECOND, [*run_plain, script], by_alpn, counted),
        Side(PLAIN_WHOLE, [*run_plain, script], by_alpn_whole, counted),
        Side("wrk, TLS", [*wrk, f"{secured}/"], {}, first_number(r"(\d+) requests in")),
    ]
    return [
        Side("built-in loop", loop, {"LAPTIME_TRIAL": json.dumps(trial)}, requests_of_result),
        *(kept if keep_alive else []),
        Side("plain k6", [*run_plain, script], plain, counted),
        Side(
            "plain k6, output laptime",
            [*run_plain, *with_output, script],
            plain,
            requests_of_result,
        ),
        Side("wrk", [*wrk, f"{target}/"], {}, first_number(r"(\d+) requests in")),
        Side("ab", [*ab, f"{target}/"], {}, first_number(r"Complete requests: *(\d+)")),
    ]


def script_sides(k6: Path, target: str, connections: int) -> tuple[Side, Side]:
    """Return a script in k6 as its users run it, and as Laptime does."""
    environment = {
        "TARGET": target,
        "CONNECTIONS": str(connections),
        "ITERATIONS": str(ITERATIONS),
        "LAPTIME_WARMUP_SECONDS": "0",
        "K6_NO_USAGE_REPORT": "true",
    }

    def side(name: str, *flags: str) -> Side:
        command = [str(k6), "run", "--quiet", "--no-color", *flags, str(HERE / "script.js")]
        return Side(name, command, environment, lambda _: ITERATIONS, timed=False)

    return side(PLAIN_SCRIPT), side(SCRIPT, "--out", "laptime")


def script_costs(plain: Side, with_output: Side) -> list[float]:
    """Return how many times the CPU of plain k6 a script needs, of each pair."""
    ratios = []
    for number in range(SCRIPT_PAIRS):
        print(f"script, pair {number + 1} of {SCRIPT_PAIRS}", flush=True)
        used = {side.name: Cost() for side in (plain, with_output)}
        for side in (plain, with_output) if number % 2 else (with_output, plain):
            measure(side, used[side.name], 0)
        ratios.append(used[with_output.name].cpu_seconds / used[plain.name].cpu_seconds)
    return ratios


def measure(side: Side, cost: Cost, seconds: int) -> None:
    """Run one side once and add what it did to `cost`; exits when it fails."""
    began = time.monotonic()
    with subprocess.Popen(
        ["timeout", str(seconds + LONGEST_RUN_SECONDS), *side.command],
        env={**os.environ, **side.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{side.name} failed ({process.returncode}):\n{output[-2000:]}")
    cost.requests += side.count(output)
    cost.cpu_seconds += used.ru_utime + used.ru_stime
    cost.wall_seconds += seconds if side.timed else time.monotonic() - began


def nanoseconds_per_sample(package: str, benchmark: str) -> float:
    """Return what a Go benchmark of the k6 module needs per operation: the least of three runs."""
    output = subprocess.run(
        ["go", "test", package, "-run", "^$", "-bench", f"^{benchmark}$", "-count", "3"],
        cwd=K6_MODULE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return min(float(figure) for figure in re.findall(r"([\d.]+) ns/op", output))


def main() -> None:
    """Measure and print; exits with 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--connections", type=int, default=10)
    options = parser.parse_args()
    require_tools()
    cache = Path(os.environ.get("LAPTIME_CACHE", Path.home() / ".cache" / "laptime"))
    folder = cache / "bin" / "bench-generator"
    folder.mkdir(parents=True, exist_ok=True)
    k6, server = build(folder)

    costs: dict[bool, dict[str, Cost]] = {}
    with serving(server) as targets:
        scripts = script_costs(*script_sides(k6, targets[0], options.connections))
        for keep_alive in (True, False):
            costs[keep_alive] = defaultdict(Cost)
            for number in range(1, options.rounds + 1):
                print(f"keep-alive {keep_alive}, round {number} of {options.rounds}", flush=True)
                order = sides(k6, folder, targets, keep_alive, options.seconds, options.connections)
                random.shuffle(order)
                for side in order:
                    measure(side, costs[keep_alive][side.name], options.seconds)
    output_ns = nanoseconds_per_sample("./internal/output", "BenchmarkAddMetricSamples")
    record_ns = nanoseconds_per_sample("./internal/result", "BenchmarkRecord")
    sys.exit(report(costs, scripts, output_ns, record_ns))


def report(
    costs: dict[bool, dict[str, Cost]], scripts: list[float], output_ns: float, record_ns: float
) -> int:
    """Print figures beside goals; returns 1 when a goal is missed, else 0."""
    missed = 0
    for keep_alive, by_name in costs.items():
        native = by_name["built-in loop"].per_cpu_second
        print(f"\nkeep-alive {'on' if keep_alive else 'off'}")
        print(f"  {'':<52}{'requests/CPU-s':>15}{'requests/s':>13}{'built-in loop is':>18}")
        for name, cost in sorted(by_name.items(), key=lambda item: -item[1].per_cpu_second):
            rate = cost.requests / cost.wall_seconds
            times = f"{native / cost.per_cpu_second:.2f}x"
            print(f"  {name:<52}{cost.per_cpu_second:>15,.0f}{rate:>13,.0f}{times:>18}")
    print()

    def line(what: str, figure: str, goal: str, met: bool) -> None:
        nonlocal missed
        missed += not met
        print(f"{what:<52}{figure:>10}   goal {goal:<10}{'met' if met else 'MISSED'}")

    for keep_alive, by_name in costs.items():
        native = by_name["built-in loop"].per_cpu_second
        ratio = native / by_name["plain k6"].per_cpu_second
        least = GOAL_RATIO[keep_alive]
        what = f"built-in loop / plain k6, keep-alive {'on' if keep_alive else 'off'}"
        line(what, f"{ratio:.2f}x", f">= {least}x", ratio >= least)
        against_wrk = native / by_name["wrk"].per_cpu_second
        state = "reached" if against_wrk >= 1 else "not reached"
        print(f"{'  and against wrk':<52}{against_wrk:>9.2f}x   beyond >= 1x  {state}")
    sessions = costs[True][SESSION]
    rate = sessions.requests / sessions.wall_seconds
    line("sessions of three steps", f"{rate:,.0f}/s", ">= 10,000/s", rate >= GOAL_SESSION_RATE)
    share = sessions.per_cpu_second / costs[True]["built-in loop"].per_cpu_second
    goal = f">= {GOAL_SESSION_COST}x"
    line(
        "  requests per CPU-second, of plain ones",
        f"{share:.2f}x",
        goal,
        share >= GOAL_SESSION_COST,
    )
    by_name = costs[True]
    ratio = by_name[SECURED].per_cpu_second / by_name[PLAIN_SECURED].per_cpu_second
    least = GOAL_RATIO[True]
    line("built-in loop / plain k6, TLS", f"{ratio:.2f}x", f">= {least}x", ratio >= least)
    ratio = by_name[SECOND_SECURED].per_cpu_second / by_name[PLAIN_SECOND].per_cpu_second
    line(
        "built-in loop / plain k6, HTTP/2 and TLS", f"{ratio:.2f}x", f">= {least}x", ratio >= least
    )
    # Of a server that writes head and body apart, as Go's does, each answer wakes a client twice.
    ratio = by_name[SECOND_WHOLE].per_cpu_second / by_name[PLAIN_WHOLE].per_cpu_second
    print(f"{'  the same, answers in one segment':<52}{ratio:>9.2f}x   no goal")
    for name in (SECOND, STREAMS, SECOND_SECURED):
        share = by_name[name].per_cpu_second / by_name["built-in loop"].per_cpu_second
        print(f"{f'  {name}, of HTTP/1.1':<52}{share:>9.2f}x")
    more, goal = median(scripts), f"<= {GOAL_SCRIPT_COST}x"
    line("CPU of a script, of plain k6's", f"{more:.3f}x", goal, more <= GOAL_SCRIPT_COST)
    around = interval_of_logs([math.log(one) for one in scripts])
    print(
        f"  in {len(scripts)} pairs {min(scripts):.3f} to {max(scripts):.3f}, "
        f"95 % interval {around.low:.3f} to {around.high:.3f}"
    )
    plain_ns = 1e9 / costs[True]["plain k6"].per_cpu_second
    native_ns = 1e9 / costs[True]["built-in loop"].per_cpu_second
    for what, share in (
        (f"output's share of plain k6's CPU ({output_ns:.0f} ns)", output_ns / plain_ns),
        (f"recording's share of the loop's CPU ({record_ns:.0f} ns)", record_ns / native_ns),
    ):
        met = share < GOAL_OUTPUT_SHARE
        line(what, f"{share:.2%}", f"< {GOAL_OUTPUT_SHARE:.0%}", met)
    return 1 if missed else 0


if __name__ == "__main__":
    main()
