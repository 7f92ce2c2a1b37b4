"""A run as it might have been: four loads, four servers, one of which answers wrongly."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

from laptime.analysis import summarise
from laptime.api.causes import Cause, LimitedBy
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import (
    ComponentUsage,
    CoresOverTime,
    Neighbour,
    NodeUsage,
    Source,
    TrialUsage,
)
from laptime.catalog import scenarios
from laptime.measure import GeneratorResult, parse_generator_output, trial_result
from laptime.measure.isolation import trial_isolation
from laptime.plan import Trial, plan_trials
from laptime.report import Report
from tests.measure.samples import document, histogram, line, phase

SPEC = BenchmarkRunSpec.model_validate(
    {
        "scenario": "users",
        "servers": [
            {"name": "fastapi", "preset": "fastapi-sync"},
            {"name": "fastapi-async", "preset": "fastapi-async"},
            {"name": "axum", "preset": "axum-sqlx"},
            {"name": "axum-again", "preset": "axum-sqlx"},
            {"name": "mine", "image": "registry.example/mine:1"},
        ],
        "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
        "loads": [
            {
                "name": "closed",
                "closed": {"connections": 10, "duration": "10s", "keepAlive": False},
            },
            {"name": "open", "open": {"rate": 1000, "duration": "10s"}},
            {"name": "ramp", "ramp": {"from": 100, "to": 1000, "duration": "10s"}},
            {"name": "limit", "saturation": {"p99": "50ms", "step": "10s"}},
        ],
        "repetitions": 5,
        "objectives": [
            {"server": "axum", "load": "closed", "metric": "p99", "atMost": "5ms"},
            {"server": "fastapi", "load": "open", "metric": "errorRate", "atMost": "0.001"},
        ],
    }
)
SEED = 42
SECONDS = 10
WRONG = 'GET /: $[0].email: expected "a|b", got "<script>alert(1)</script>"\n# not a heading'
FAILURES = {"mine": ("WrongAnswer", WRONG)}
ENVIRONMENT = {"CPU": "Example 9000, 8 cores", "kernel": "6.12.0", "Kubernetes": "v1.34.1"}

_RATES = {"fastapi": 612.0, "fastapi-async": 2267.0, "axum": 15_100.0, "axum-again": 15_130.0}
_MEDIANS = {"fastapi": 15_400, "fastapi-async": 4_400, "axum": 640, "axum-again": 640}
_LIMITS = {
    "fastapi": (Cause.SERVER_CPU, "the server used 0.98 of its 1 core"),
    "fastapi-async": (Cause.SERVER_CPU, "the server used 0.97 of its 1 core"),
    "axum": (Cause.POSTGRES_CPU, "Postgres had 7.8 statements on a CPU and 8 cores"),
    "axum-again": (Cause.POSTGRES_CPU, "Postgres had 7.7 statements on a CPU and 8 cores"),
}


def _phase_of(trial: Trial, chance: random.Random) -> dict[str, Any]:
    rate, median = _RATES[trial.server], _MEDIANS[trial.server]
    waiting = trial.load in ("open", "ramp") and trial.server == "fastapi"
    offered = {"open": [1000.0] * SECONDS, "ramp": [145.0 + 90.0 * t for t in range(SECONDS)]}
    wobble = math.exp(chance.gauss(0, 0.008))
    counts = [
        round(min(rate, due) * wobble * (0.9 if t == 0 else 1) * math.exp(chance.gauss(0, 0.02)))
        for t, due in enumerate(offered.get(trial.load, [rate] * SECONDS))
    ]
    errors = 30 if (trial.server, trial.load) == ("fastapi", "open") else 0
    times = [round(median * math.exp(abs(chance.gauss(0, 0.35)) - 0.1)) for _ in range(1200)]
    times += [times[0] * 12] * (4 if trial.repetition == 3 else 1)
    content = phase(
        [time * 60 for time in times] if waiting else times,
        errors=errors,
        window=float(SECONDS),
        firstRequestAt=1_790_000_000.0 + 15 * trial.ordinal,
        lastResponseAt=1_790_000_000.0 + 15 * trial.ordinal + SECONDS,
        requests=sum(counts) + errors,
        completedInWindow=sum(counts),
        seconds=[
            {"t": t, "requests": count + (errors if t == 5 else 0), "errors": errors * (t == 5)}
            for t, count in enumerate(counts)
        ],
    )
    if trial.load != "closed":
        # Sent as soon as there was a connection: what a request waited for one is not in it.
        content["endpoints"]["list"]["uncorrectedLatency"] = histogram(times)
        content["lateness"] = histogram([time * 59 if waiting else 60 for time in times])
    return content


def _found(trial: Trial) -> dict[str, object]:
    if trial.load != "limit":
        return {}
    low = _RATES[trial.server] * (0.9 + trial.repetition / 100)
    rates = {"low": low, "high": low * 1.05, "breaking": low * 2, "p99Seconds": 0.05}
    return {"saturation": {**rates, "errorRate": 0.001}}


def _watched(result: TrialResult, chance: random.Random) -> TrialResult:
    cause, evidence = _LIMITS[result.server]
    of_server, of_postgres = (0.97, 0.4) if cause is Cause.SERVER_CPU else (1.62, 7.6)
    usage = TrialUsage(
        source=Source.AGENT,
        resolution_seconds=1,
        complete=True,
        components=[
            ComponentUsage(
                component=component,
                pods=1,
                cores_mean=cores,
                cores_peak=cores * 1.05,
                cores_over_time=CoresOverTime(
                    span_seconds=1,
                    cores=[round(cores * (1 - chance.random() / 20), 3) for _ in range(SECONDS)],
                ),
                throttled_share=0.0,
                working_set_bytes=mebibytes * 2**20,
                nodes=nodes,
            )
            for component, cores, mebibytes, nodes in (
                ("server", of_server, 78, ["node-1"]),
                ("postgres", of_postgres, 210, [f"node-{2 + result.repetition % 2}"]),
            )
        ],
        nodes=[_node(result.ordinal)],
    )
    limited = LimitedBy(cause=cause, evidence=evidence, also=[Cause.NODE])
    isolation = trial_isolation(usage, ["node-1"])
    found = {"usage": usage, "limited_by": limited, "isolation": isolation}
    return result.model_copy(update=found)


def _node(ordinal: int) -> NodeUsage:
    """Return the node as it was in a trial: others, of which one has a name, use more and more."""
    return NodeUsage(
        node="node-1",
        cpus=8,
        stolen_share=0.001,
        others_cores=0.2 + ordinal / 100,
        other_pods_cores=0.1 + ordinal / 100,
        neighbours=[Neighbour(pod="web-<1>", cores=ordinal / 100)],
        stood_still_seconds=0.0,
        cpu_waiting_share=0.05,
        frequency_hertz=2.5e9,
        probe_seconds=200e-6 + ordinal * 0.1e-6,
        probe_work="1",
        clock_ahead_seconds=0.012,
    )


@cache
def recorded(watched: bool = True, *, small: bool = False) -> tuple[Report, dict[str, str]]:
    """Return the report of the run, and the generator's results by trial.

    A small one has the first load alone: drawing a page of all four takes seconds.
    """
    spec = SPEC.model_copy(update={"loads": SPEC.loads[:1], "objectives": []}) if small else SPEC
    results: list[TrialResult] = []
    payloads: dict[str, str] = {}
    trials = plan_trials("demo", spec, SEED)
    for trial in trials:
        if trial.server in FAILURES:
            continue
        chance = random.Random(trial.name)
        content = document(_phase_of(trial, chance), busiestThread=0.4)
        parsed = parse_generator_output(line({**content, **_found(trial), "trial": trial.name}))
        assert isinstance(parsed, GeneratorResult)
        result = trial_result(trial, parsed)
        results.append(_watched(result, chance) if watched else result)
        payloads[trial.name] = parsed.payload
    published = scenarios()[spec.scenario].published
    summary = summarise(spec, trials, results, payloads, published, FAILURES)
    report = Report("demo", "team", spec, SEED, summary, results, ENVIRONMENT, published=published)
    return report, payloads
