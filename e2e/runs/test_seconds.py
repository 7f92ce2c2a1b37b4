"""Each second of each trial is in the real Prometheus, exactly as the generators counted it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conftest import OPERATOR_NAMESPACE
from laptime.api.attempts import attempt_name
from laptime.measure.each_second import DROPPED, QUANTILE, QUANTILES
from laptime.measure.generator import (
    GeneratorPhase,
    GeneratorResult,
    GeneratorSecond,
    parse_payload,
)

from .harness import AXUM, SYNC, Cluster, operator_pids, run_manifest

SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy"
LONGEST = 0.01
"""How far a percentile may be off, as a share of the exact one."""


def _load(name: str, connections: int, seconds: int) -> dict[str, Any]:
    closed = {"connections": connections, "duration": f"{seconds}s", "keepAlive": True}
    return {"name": name, "closed": closed, "warmup": "1s"}


# Over one connection: what waits for longer than the time-out is given up unsent.
OVERLOAD = {
    "name": "overload",
    "open": {"rate": 20_000, "duration": "3s", "maxConnections": 1},
    "timeout": "500ms",
    "warmup": "1s",
}


@contextmanager
def full_node() -> Iterator[None]:
    """Have as many programs that never rest as there are CPUs."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def _query(cluster: Cluster, promql: str, at: float) -> list[dict[str, Any]]:
    answer = cluster.reader.get(f"{SERVICE}/api/v1/query", query=promql, time=f"{at:.3f}")
    assert answer["status"] == "success", answer
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def _samples(cluster: Cluster, metric: str, labels: str, at: float) -> dict[str, dict[int, float]]:
    """Return the raw samples of a metric by time in milliseconds, and by what tells series apart.

    That is the kind of error, or whether seconds are whole; "" where nothing does.
    """
    found: dict[str, dict[int, float]] = {}
    for series in _query(cluster, f"{metric}{{{labels}}}[1h]", at):
        samples = {round(1000 * moment): float(value) for moment, value in series["values"]}
        kind = series["metric"].get("kind", series["metric"].get("whole", ""))
        assert kind not in found, "the series of a trial is there twice"
        assert len(samples) == len(series["values"])
        found[kind] = samples
    return found


def _phase(payload: str, name: str) -> GeneratorPhase:
    parsed = parse_payload(payload)
    assert isinstance(parsed, GeneratorResult)
    return parsed.phases[name]


def _in_milliseconds(phase: GeneratorPhase, t: int) -> int:
    return round(1000 * ((phase.started_at or phase.first_request_at) + t + 1))


def trials_of(cluster: Cluster, run: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the result of each measured trial, and what its generators printed together."""
    payloads = {
        one["metadata"]["labels"]["laptime.dev/trial"]: one["data"]["generator.b64"]
        for one in cluster.stored(run).objects
        if "generator.b64" in (one.get("data") or {})
    }
    for trial, result in cluster.documents(run).items():
        assert result["outcome"] == "Measured", result
        yield result, payloads[trial]


def _histogram_share(share: float, count: int) -> float:
    """Return the share by which Prometheus finds the nearest rank of so many values.

    It reckons from the top for a half and more, and so takes the upper one of the two in the middle
    of an even number of values, which can be far from the lower one: half a rank less is within the
    same value from either end.
    """
    return (max(1, math.ceil(share * count - 1e-9)) - 0.5) / count


def _check_quantiles(
    cluster: Cluster, labels: str, rows: dict[int, GeneratorSecond], now: float
) -> None:
    """Compare those of each second with the histogram of it, which an archive leaves out."""
    elapsed = _samples(cluster, "laptime_second_elapsed_seconds", labels, now)[""]
    answered = {at for at in elapsed if rows[at].requests > rows[at].errors}
    for label, share in QUANTILES.items():
        drawn = _samples(cluster, QUANTILE, f'{labels},quantile="{label}"', now).get("", {})
        assert drawn.keys() == answered, labels
        for at, seconds in drawn.items():
            rank = _histogram_share(share, rows[at].requests - rows[at].errors)
            of_second = f"histogram_quantile({rank}, laptime_second_latency_seconds{{{labels}}})"
            (found,) = _query(cluster, of_second, at / 1000)
            assert seconds == pytest.approx(float(found["value"][1]), rel=LONGEST), (labels, at)


def check(cluster: Cluster, run: str) -> int:
    """Compare what Prometheus has of each trial with its result; return how many there were."""
    now, count = time.time(), 0
    for result, payload in trials_of(cluster, run):
        trial = attempt_name(result["trial"], result.get("attempt", 1))
        count += 1
        for phase in ("warmup", "measured"):
            labels = f'namespace="{cluster.namespace}",run="{run}",trial="{trial}",phase="{phase}"'
            said = _phase(payload, phase)
            rows = {_in_milliseconds(said, row.t): row for row in said.seconds}
            by_whole = _samples(cluster, "laptime_second_requests", labels, now)
            requests = {at: count for one in by_whole.values() for at, count in one.items()}
            assert requests == {at: row.requests for at, row in rows.items()}, (trial, phase)
            elapsed = _samples(cluster, "laptime_second_elapsed_seconds", labels, now)[""]
            assert by_whole["true"].keys() == elapsed.keys()
            errors = _samples(cluster, "laptime_second_errors", labels, now)
            assert sum(requests.values()) == said.requests
            wrong = {**said.errors, DROPPED: said.dropped_iterations}
            for kind, samples in errors.items():
                assert samples.keys() == rows.keys(), (trial, phase, kind)
                assert sum(samples.values()) == wrong.get(kind, 0)
            _check_quantiles(cluster, labels, rows, now)
            assert sum(map(sum, (one.values() for one in errors.values()))) == sum(wrong.values())
        figures = result["figures"]
        dropped = sum(errors.get(DROPPED, {}).values())
        assert sum(requests.values()) + dropped == figures["requests"]
        whole = f"sum_over_time(laptime_second_latency_seconds{{{labels}}}[1h])"
        (right,) = _query(cluster, f"histogram_count({whole})", now)
        assert int(float(right["value"][1])) == figures["requests"] - figures["errors"]
        if figures["errors"]:
            continue
        for share, name in ((0.5, "p50Seconds"), (0.99, "p99Seconds"), (0.999, "p999Seconds")):
            rank = _histogram_share(share, figures["requests"])
            (found,) = _query(cluster, f"histogram_quantile({rank}, {whole})", now)
            exact = figures["latency"][name]
            assert float(found["value"][1]) == pytest.approx(exact, rel=LONGEST), (trial, name)
    return count


def test_every_second_of_every_trial_is_in_prometheus(cluster: Cluster) -> None:
    manifest = run_manifest(
        "seconds",
        [SYNC, AXUM],
        loads=[_load("two", 4, 2), _load("six", 4, 6), OVERLOAD],
        repetitions=1,
    )
    run = cluster.apply(manifest)
    assert cluster.wait_end(run, 300)["state"] == "Succeeded"
    assert check(cluster, run) == 6
    for result, _ in trials_of(cluster, run):
        dropped = result["figures"]["errorsByKind"].get(DROPPED, 0)
        assert (dropped > 0) == (result["load"] == OVERLOAD["name"]), result["figures"]


def test_also_of_several_generators_on_a_full_node_with_an_operator_that_is_killed(
    cluster: Cluster,
) -> None:
    manifest = run_manifest(
        "full",
        [AXUM],
        # Of 30 s are those of the hundred.
        loads=[_load("two", 6, 2), _load("long", 6, 12)],
        generator={"parallelism": 3},
        repetitions=1,
    )
    with full_node():
        run = cluster.apply(manifest)
        cluster.wait(
            run,
            "its first trial's end",
            lambda status: (status.get("progress") or {}).get("completed", 0) >= 1,
            240,
        )
        killed = operator_pids()
        assert killed, "no process of the operator was found on this machine: none was killed"
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert cluster.wait_end(run, 300)["state"] == "Succeeded"
    assert check(cluster, run) == 2


def test_of_a_hundred_trials_none_is_off(cluster: Cluster) -> None:
    """Trials of 2, 6 and 30 s, of one generator on a quiet node, of three on a full one.

    It takes a quarter of an hour: `make seconds`.
    """
    loads = [_load("two", 6, 2), _load("six", 6, 6)]
    quiet = cluster.apply(run_manifest("quiet", [SYNC, AXUM], loads=loads, repetitions=20))
    assert cluster.wait_end(quiet, 1800)["state"] == "Succeeded"
    count = check(cluster, quiet)
    three = {"generator": {"parallelism": 3}}
    with full_node():
        for name, load, repetitions in (("full", loads, 10), ("long", [_load("long", 6, 30)], 3)):
            manifest = run_manifest(name, [AXUM], loads=load, repetitions=repetitions, **three)
            run = cluster.apply(manifest)
            assert cluster.wait_end(run, 1200)["state"] == "Succeeded"
            count += check(cluster, run)
    print(f"0 of {count} trials are off")
    assert count >= 100
