"""What the operator says of itself."""

from __future__ import annotations

import json
from random import Random

import pytest

from laptime.api.status import State
from laptime.kube.errors import KubeError, kube_error
from laptime.reconcile.metrics import Metrics
from tests.reconcile.test_decide import spec_of
from tests.reconcile.world import World


def said(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_every_state_has_a_figure() -> None:
    metrics = Metrics()
    metrics.count({State.QUEUED: 1, State.RUNNING: 2})
    found = said(metrics)
    assert found['laptime_runs{state="Queued"}'] == 1
    assert found['laptime_runs{state="Running"}'] == 2
    assert found['laptime_runs{state="Failed"}'] == 0


def test_each_trial_of_a_run_is_counted_once_and_readings_are_no_trials() -> None:
    world, metrics = World(spec_of(2, 1, 2), Random(0)), Metrics()
    while not (world.run.status.state and world.run.status.state.terminal):
        metrics.carried_out(world.step().actions)
        world.advance()
    assert world.readings_written
    found = said(metrics)
    assert found['laptime_trials_total{outcome="Measured"}'] == 4
    assert found['laptime_trials_total{outcome="Failed"}'] == 0
    assert found["laptime_trial_seconds_count"] == 4
    assert found["laptime_trial_seconds_sum"] == 8.0


def test_the_age_of_the_last_event_grows_until_there_is_another() -> None:
    now = [100.0]
    metrics = Metrics(lambda: now[0])
    now[0] = 107.0
    assert said(metrics)["laptime_last_event_age_seconds"] == 7
    metrics.event()
    now[0] = 109.0
    assert said(metrics)["laptime_last_event_age_seconds"] == 2


def test_a_reason_in_words_is_no_label() -> None:
    """Webhooks write sentences as their reason, and whoever names an object writes a part."""
    metrics = Metrics()
    for n in range(100):
        text = json.dumps({"reason": f"image of pod {n} is not signed", "message": "no"})
        metrics.error(kube_error(403, text).label)
        metrics.error(kube_error(403, json.dumps({"reason": f"Denied{n}"})).label)
    metrics.error(kube_error(409, json.dumps({"reason": "Conflict"})).label)
    metrics.error(KubeError(0, "Unreachable", "").label)
    found = {name: n for name, n in said(metrics).items() if "reason=" in name}
    total = "laptime_reconcile_errors_total"
    assert {name: n for name, n in found.items() if name.startswith(total)} == {
        f'{total}{{reason="Status403"}}': 200,
        f'{total}{{reason="Conflict"}}': 1,
        f'{total}{{reason="Unreachable"}}': 1,
    }


def test_requests_and_errors_are_counted_by_what_they_came_to() -> None:
    metrics = Metrics()
    metrics.request("GET", 200)
    metrics.request("GET", 200)
    metrics.request("PATCH", 0)
    metrics.error("Unreachable")
    with metrics.reconcile():
        pass
    with pytest.raises(ValueError, match="refused"), metrics.reconcile():
        raise ValueError("refused")
    waiting = [3]
    metrics.queue(lambda: waiting[0])
    found = said(metrics)
    assert found['laptime_api_requests_total{code="200",method="GET"}'] == 2
    assert found['laptime_api_requests_total{code="0",method="PATCH"}'] == 1
    assert found['laptime_reconcile_errors_total{reason="Unreachable"}'] == 1
    # The four golden signals, under the names that operators have for them.
    name = 'controller="benchmarkrun"'
    assert found[f'controller_runtime_reconcile_total{{{name},result="success"}}'] == 1
    assert found[f'controller_runtime_reconcile_total{{{name},result="error"}}'] == 1
    assert found[f"controller_runtime_reconcile_errors_total{{{name}}}"] == 1
    assert found[f"controller_runtime_reconcile_time_seconds_count{{{name}}}"] == 2
    assert found['workqueue_depth{name="benchmarkrun"}'] == 3
    waiting[0] = 0
    assert said(metrics)['workqueue_depth{name="benchmarkrun"}'] == 0
