"""The parts of the bench: the generator against a server whose truth is known.

The server (bench/truth/server) takes the time, has the capacity and stands still for the 1.4 s that
it is told to, and notes when each request arrived and when its answer left. The generator is the k6
of the image, run on 127.0.0.1 as a trial's Job runs it.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from laptime.measure import (
    GeneratorResult,
    Histogram,
    measured_phase,
    merge_results,
    parse_generator_output,
)

HERE = Path(__file__).resolve().parent
K6_MODULE = HERE.parents[1] / "images" / "k6"
QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
# Percentiles lie within a class, not between two of them.
MIXED = "0.7:2ms,0.25:10ms,0.047:50ms,0.003:200ms"
STALL_SECONDS = 1.4
CONNECT_SECONDS = 0.002
"""For each connection, as loads have it where a run does not say otherwise."""

GOAL_RELATIVE = 0.01
GOAL_SECONDS = 0.0001
GOAL_RATE = 0.005
GOAL_MERGED = 0.001
GOAL_SEARCH = 0.05
"""What a search leaves open."""
HIGH_RATES = (5_000, 8_000, 12_000, 18_000)
MOST_CPU = 0.8
"""Of a CPU, that generator or server may use at a high rate: else it is a test of the machine."""
ENDPOINTS = {"list": MIXED, "item": "0.985:5ms,0.015:50ms", "report": "0.87:20ms,0.13:100ms"}
SEARCHES_FROM = (100.0, 81.2, 57.4)
"""As the operator draws start rates: somewhere in an octave."""


@dataclass(frozen=True)
class Check:
    """One figure beside its goal; `error` and `goal` in the same unit."""

    what: str
    figure: str
    truth: str
    error: str
    goal: str
    met: bool


@dataclass
class Truth:
    """What the server saw of one trial; times are seconds of one clock."""

    arrived: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0
    """What the server used."""

    def raw(self, endpoint: str | None = None) -> list[float]:
        """Return the time from arriving to leaving of each request, or of an endpoint's, sorted."""
        return sorted(
            end - begin
            for begin, end, of in zip(self.arrived, self.left, self.endpoints, strict=True)
            if endpoint in {None, of}
        )

    def corrected(self, rate: float) -> list[float]:
        """Return the time from when each was due to leaving, sorted.

        The n-th to arrive is the n-th that was due. The schedule begins where no request came
        before it was due.
        """
        pairs = sorted(zip(self.arrived, self.left, strict=True))
        start = min(begin - n / rate for n, (begin, _) in enumerate(pairs))
        return sorted(end - (start + n / rate) for n, (_, end) in enumerate(pairs))

    def arrival_rate(self) -> float:
        """Return the requests per second between the first arrival and the last."""
        return (len(self.arrived) - 1) / (max(self.arrived) - min(self.arrived))


@dataclass(frozen=True)
class Programs:
    """What was built."""

    k6: Path
    server: Path


def build(folder: Path) -> Programs:
    """Build k6 and the server; Go's message and exit code 1 on failure."""
    programs = Programs(folder / "k6", folder / "server")
    for module, program in ((K6_MODULE, programs.k6), (HERE / "server", programs.server)):
        command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."]
        built = subprocess.run(command, cwd=module, env={**os.environ, "CGO_ENABLED": "0"})
        if built.returncode != 0:
            sys.exit(1)
    return programs


@contextmanager
def serving(program: Path, record: Path, *flags: str) -> Iterator[tuple[str, Truth]]:
    """Run the server; yields its URL and what will be known when it has ended."""
    server = subprocess.Popen(
        [str(program), "-record", str(record), *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    truth = Truth()
    try:
        scheme = "https" if "-tls" in flags else "http"
        yield f"{scheme}://{server.stdout.readline().strip()}", truth
    finally:
        before = cpu_of_children()
        server.stdin.close()
        server.wait(timeout=30)
    truth.cpu_seconds = cpu_of_children() - before
    for line in record.read_text().splitlines():
        arrived, left, endpoint = line.split()
        truth.arrived.append(int(arrived) / 1e9)
        truth.left.append(int(left) / 1e9)
        truth.endpoints.append(endpoint)


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Measured:
    """What the generators of a trial said together, and the latencies behind it in seconds."""

    result: GeneratorResult
    latencies: list[float]
    cpu_seconds: float
    """What the generators used, from their start on."""

    def histogram(self, name: str = "latency", endpoint: str = "list") -> Histogram:
        """Return a histogram of an endpoint."""
        phase = measured_phase(self.result)
        assert phase is not None
        return Histogram.decode(getattr(phase.endpoints[endpoint], name))

    def rate(self) -> float:
        """Return the throughput in right answers per second."""
        phase = measured_phase(self.result)
        assert phase is not None
        assert phase.completed_in_window is not None
        assert phase.window_seconds is not None
        return phase.completed_in_window / phase.window_seconds


def drive(
    k6: Path,
    folder: Path,
    target: str,
    load: dict[str, Any],
    count: int = 1,
    timeout: float = 30,
    endpoints: Sequence[str] = (),
) -> Measured:
    """Run the generators of one trial; exits with what one said if it failed."""
    trial: dict[str, Any] = {
        "trial": "truth",
        "target": target,
        "waitSeconds": 10,
        "requests": [{"name": name, "path": f"/{name}"} for name in endpoints]
        or [{"name": "list", "path": "/"}],
        "load": load,
        "timeoutSeconds": timeout,
    }
    if target.startswith("https:"):
        trial["tls"] = {"insecure": True}
    if count > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            trial["generators"] = {"count": count, "meet": f"127.0.0.1:{free.getsockname()[1]}"}
    command = [str(k6), "run", "--quiet", "--no-color", "--out", "laptime"]
    command += ["--summary-mode=disabled", str(K6_MODULE / "trial.js")]
    before = cpu_of_children()
    processes = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "LAPTIME_TRIAL": json.dumps(trial),
                "JOB_COMPLETION_INDEX": str(index),
                "LAPTIME_LATENCIES": str(folder / f"latencies-{index}"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for index in range(count)
    ]
    results, latencies = [], []
    for index, process in enumerate(processes):
        output, _ = process.communicate()
        result = parse_generator_output(output)
        if not isinstance(result, GeneratorResult):
            sys.exit(f"generator {index}: {result.reason}: {result.message}")
        results.append(result)
        lines = (folder / f"latencies-{index}").read_text().split()
        latencies += [int(line) / 1e9 for line in lines]
    merged = merge_results(results)
    if not isinstance(merged, GeneratorResult):
        sys.exit(f"merging: {merged.message}")
    return Measured(merged, latencies, cpu_of_children() - before)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the value at or below which the share q of all lies, as HdrHistogram ranks them."""
    return ordered[max(1, ceil(q * len(ordered) - 1e-9)) - 1]


def percentiles(what: str, histogram: Histogram, truth: list[float]) -> Iterator[Check]:
    """Compare percentiles with the server's: within 1 % or 0.1 ms."""
    for name, q in QUANTILES.items():
        figure, exact = histogram.quantile_seconds(q), quantile(truth, q)
        error, goal = abs(figure - exact), max(GOAL_RELATIVE * exact, GOAL_SECONDS)
        yield Check(
            f"{what}: {name}",
            f"{figure * 1e3:.3f} ms",
            f"{exact * 1e3:.3f} ms",
            f"{error * 1e3:.3f} ms",
            f"{goal * 1e3:.3f} ms",
            error <= goal,
        )


def rates(what: str, figure: float, truth: float) -> Check:
    """Compare requests per second: within 0.5 %."""
    error = abs(figure / truth - 1)
    return Check(
        what,
        f"{figure:.2f}/s",
        f"{truth:.2f}/s",
        f"{error:.3%}",
        f"{GOAL_RATE:.1%}",
        error <= GOAL_RATE,
    )


def closed(
    connections: int, seconds: float, keep_alive: bool = True, connect_seconds: float = 0
) -> dict[str, Any]:
    """Return a closed load as LAPTIME_TRIAL has it."""
    shape = {"connections": connections, "durationSeconds": seconds, "keepAlive": keep_alive}
    return {"closed": {**shape, "connectSeconds": connect_seconds}}


def opened(rate: float, connections: int, seconds: float) -> dict[str, Any]:
    """Return an open load as LAPTIME_TRIAL has it."""
    shape = {"rate": rate, "maxConnections": connections, "durationSeconds": seconds}
    return {"open": {**shape, "keepAlive": True}}


def search_from(start: float) -> dict[str, Any]:
    """Return a search as LAPTIME_TRIAL has it.

    Steps of 4 s, so that what the rate is above the capacity by is seen in a p99 of 50 ms from 1 %
    on.
    """
    shape = {"p99Seconds": 0.05, "errorRate": 0.001, "startRate": start, "maxRate": 20_000}
    return {"saturation": {**shape, "stepSeconds": 4, "maxConnections": 400, "keepAlive": True}}


def known_times(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """Closed loads on a server with known service times."""
    for keep_alive in (True, False):
        with serving(programs.server, folder / "record", "-services", MIXED) as (target, truth):
            got = drive(programs.k6, folder, target, closed(8, seconds, keep_alive))
        what = f"closed, keep-alive {'on' if keep_alive else 'off'}"
        yield from percentiles(what, got.histogram(), truth.raw())


def open_rate(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """Open loads hold their rate, and both latencies are right."""
    for rate in (100, 500, 1000):
        with serving(programs.server, folder / "record", "-services", MIXED) as (target, truth):
            got = drive(programs.k6, folder, target, opened(rate, 200, seconds))
        yield rates(f"open at {rate}/s: rate of arrivals", truth.arrival_rate(), rate)
    what = "open at 1000/s"
    yield from percentiles(f"{what}, corrected", got.histogram(), truth.corrected(1000))
    yield from percentiles(f"{what}, raw", got.histogram("uncorrected_latency"), truth.raw())


def at_high_rates(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """Open loads from 5,000/s up, while generator and server each keep 20 % of a CPU free."""
    for rate in HIGH_RATES:
        with serving(programs.server, folder / "record", "-services", MIXED) as (target, truth):
            got = drive(programs.k6, folder, target, opened(rate, 400, seconds))
        used = {"generator": got.cpu_seconds, "server": truth.cpu_seconds}
        shares = ", ".join(f"{name} {used[name] / seconds:.2f}" for name in used)
        print(f"  {rate}/s: CPUs used: {shares}", flush=True)
        if max(used.values()) > MOST_CPU * seconds:
            return
        what = f"open at {rate}/s"
        yield rates(f"{what}: rate of arrivals", truth.arrival_rate(), rate)
        yield from percentiles(f"{what}, corrected", got.histogram(), truth.corrected(rate))
        yield from percentiles(f"{what}, raw", got.histogram("uncorrected_latency"), truth.raw())


def several_endpoints(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """Each endpoint has its own percentiles, and as many answers as the server gave."""
    flags = [word for name, of in ENDPOINTS.items() for word in ("-endpoint", f"{name}={of}")]
    with serving(programs.server, folder / "record", *flags) as (target, truth):
        got = drive(programs.k6, folder, target, closed(8, seconds), endpoints=list(ENDPOINTS))
    for name in ENDPOINTS:
        histogram, exact = got.histogram(endpoint=name), truth.raw(name)
        yield from percentiles(f"endpoint {name} of {len(ENDPOINTS)}", histogram, exact)
        yield Check(
            f"endpoint {name} of {len(ENDPOINTS)}: answers",
            f"{histogram.total}",
            f"{len(exact)}",
            f"{abs(histogram.total - len(exact))}",
            "0",
            histogram.total == len(exact),
        )


def chunked(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """An answer of four chunks, evenly over its time, ends with the last of them."""
    flags = ("-services", MIXED, "-pieces", "4")
    with serving(programs.server, folder / "record", *flags) as (target, truth):
        got = drive(programs.k6, folder, target, closed(8, seconds))
    yield from percentiles("closed, four chunks", got.histogram(), truth.raw())


def other_wires(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """TLS and HTTP/2 are as true: closed and open loads, and the capacity of a server."""
    over_http2 = {"protocol": "http2", "streams": 4}
    for wire, flags, how in (
        ("TLS", ("-tls",), {}),
        ("HTTP/2", ("-http2",), over_http2),
        ("HTTP/2 and TLS", ("-http2", "-tls"), over_http2),
    ):
        mixed = (*flags, "-services", MIXED)
        loads = {
            "closed": closed(8 if wire == "TLS" else 2, seconds),
            "open at 1000/s": opened(1000, 200 if wire == "TLS" else 50, seconds),
        }
        for what, load in loads.items():
            with serving(programs.server, folder / "record", *mixed) as (target, truth):
                got = drive(programs.k6, folder, target, {**load, **how})
            exact = truth.raw() if what == "closed" else truth.corrected(1000)
            yield from percentiles(f"{wire}, {what}", got.histogram(), exact)
        limited = (*flags, "-services", "1:4ms", "-workers", "8")
        with serving(programs.server, folder / "record", *limited) as (target, _):
            # Connections are there when a trial's load begins: 64 handshakes on one CPU are half a
            # percent of 12 s, and no part of what the server can do.
            count = 64 if wire == "TLS" else 16
            load = closed(count, seconds, connect_seconds=CONNECT_SECONDS * count)
            got = drive(programs.k6, folder, target, {**load, **how}, timeout=1)
        yield rates(f"{wire}, at capacity: throughput", got.rate(), 2000)


def stalled(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """A stall hides in the raw figures of few connections, and shows in the corrected ones."""
    flags = ("-stall-after", f"{seconds / 3}s", "-stall", f"{STALL_SECONDS}s")
    for rate, connections in ((500, 8), (100, 200)):
        with serving(programs.server, folder / "record", *flags) as (target, truth):
            got = drive(programs.k6, folder, target, opened(rate, connections, seconds))
        what = f"stall of 1.4 s, {connections} connections"
        yield from percentiles(f"{what}, corrected", got.histogram(), truth.corrected(rate))
        yield from percentiles(f"{what}, raw", got.histogram("uncorrected_latency"), truth.raw())


def capacity(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """A server with 8 workers of 4 ms each has a capacity of 2000/s, whatever it is asked for."""
    flags = ("-services", "1:4ms", "-workers", "8")
    loads = {
        "closed, 64 connections": closed(64, seconds),
        "open at 2500/s": opened(2500, 128, seconds),
    }
    for what, load in loads.items():
        with serving(programs.server, folder / "record", *flags) as (target, _):
            got = drive(programs.k6, folder, target, load, timeout=1)
        yield rates(f"at capacity, {what}: throughput", got.rate(), 2000)


def searched(programs: Programs, folder: Path, _: float) -> Iterator[Check]:
    """A search finds a capacity of 2000/s that varies by 10 %, in spite of a stall on its way."""
    flags = ("-services", "1:4ms", "-workers", "8", "-vary", "0.1")
    for number, start in enumerate(SEARCHES_FROM):
        stall = ("-stall-after", f"{6 + 12 * number}s", "-stall", "0.5s")
        with serving(programs.server, folder / "record", *flags, *stall) as (target, _truth):
            got = drive(programs.k6, folder, target, search_from(start))
        found = got.result.search
        assert found is not None
        error = abs((found.low * found.high) ** 0.5 / 2000 - 1)
        yield Check(
            f"search from {start:g}/s with a stall: capacity",
            f"{(found.low * found.high) ** 0.5:.0f}/s",
            "2000/s",
            f"{error:.2%}",
            f"{GOAL_SEARCH:.0%}",
            error <= GOAL_SEARCH,
        )


def several(programs: Programs, folder: Path, seconds: float) -> Iterator[Check]:
    """Merged percentiles agree with those of all latencies together: within 0.1 %."""
    for count in (1, 2, 4):
        with serving(programs.server, folder / "record", "-services", MIXED) as (target, truth):
            got = drive(programs.k6, folder, target, opened(1000, 200, seconds), count)
        histogram, exact = got.histogram(), sorted(got.latencies)
        if not len(exact) == histogram.total == len(truth.arrived):
            sys.exit(
                f"{len(exact)} latencies, {histogram.total} counted, {len(truth.arrived)} sent"
            )
        for name, q in QUANTILES.items():
            figure, true = histogram.quantile_seconds(q), quantile(exact, q)
            error = abs(figure / true - 1)
            yield Check(
                f"{count} generator{'s' if count > 1 else ''} merged: {name}",
                f"{figure * 1e3:.3f} ms",
                f"{true * 1e3:.4f} ms",
                f"{error:.3%}",
                f"{GOAL_MERGED:.1%}",
                error <= GOAL_MERGED,
            )
        yield rates(
            f"{count} generator{'s' if count > 1 else ''}: rate of arrivals",
            truth.arrival_rate(),
            1000,
        )


PARTS = (
    known_times,
    open_rate,
    at_high_rates,
    several_endpoints,
    chunked,
    other_wires,
    stalled,
    capacity,
    searched,
    several,
)
