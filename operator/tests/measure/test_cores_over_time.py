"""CPU over time: the same work as the figure of the whole window, laid out over its seconds."""

from __future__ import annotations

import asyncio
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.usage import ComponentUsage, CoresOverTime
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import TrialWindow
from laptime.measure.timeseries import Window, spans
from tests.measure.prometheus_answers import START, UID, FakePrometheus, node, one_series

PODS = "laptime_pod_cpu_seconds_total"
EXPORTERS = "laptime_container_cpu_seconds_total"
NODES = "laptime_node_cpus"
KUBELET = "container_cpu_usage_seconds_total"


def used(series: list[dict[str, Any]], window: Window) -> ComponentUsage:
    wanted = TrialWindow("default", "demo", UID, "demo-trial-001", window)
    prometheus = FakePrometheus({PODS: series, NODES: list(node())})
    usage = asyncio.run(trial_usage(prometheus, wanted))
    found = usage.component("postgres")
    assert found is not None
    return found


def counter(work: list[float], pod: str = "p", metric: str = PODS, **labels: str) -> dict[str, Any]:
    """Return a counter with a sample each second, from 5 s before START, that grows by `work`."""
    total = accumulate(work, initial=100.0)
    return {
        "metric": {
            **{"__name__": metric, "run_uid": UID, "pod": pod},
            **{"component": "postgres", **labels},
        },
        "values": [[START - 5.0 + n, repr(value)] for n, value in enumerate(total)],
    }


def area(found: CoresOverTime, window: Window) -> float:
    """Return the CPU time under the curve."""
    seconds, every = spans(window, found.span_seconds)
    assert seconds == found.span_seconds
    return sum(
        (cores or 0.0) * span.seconds for cores, span in zip(found.cores, every, strict=True)
    )


@settings(max_examples=60)
@given(data=st.data(), length=st.floats(0.5, 400.0), offset=st.floats(0.0, 0.99))
def test_the_area_under_the_curve_is_the_cpu_time_of_the_window(
    data: st.DataObject, length: float, offset: float
) -> None:
    window = Window(START + offset, START + offset + length)
    seconds = int(length) + 12
    # A few levels in turn, so that long windows cost no more to make up than short ones.
    levels = data.draw(st.lists(st.floats(0.0, 8.0), min_size=1, max_size=12))
    pods = [
        counter([levels[(n + shift) % len(levels)] for n in range(seconds)], pod)
        for shift, pod in enumerate(("p", "q"))
    ]
    exporter = [levels[n % len(levels)] / 3 for n in range(seconds)]
    pods.append(counter(exporter, "p", EXPORTERS, container="exporter"))
    found = used(pods, window)
    assert found.cpu_seconds is not None
    assert found.cores_over_time is not None
    assert len(found.cores_over_time.cores) <= 120
    assert None not in found.cores_over_time.cores
    # Of cores to a thousandth, and of CPU time to six digits.
    rounding = 0.0005 * length + 1e-5 * max(1.0, found.cpu_seconds)
    assert area(found.cores_over_time, window) == pytest.approx(found.cpu_seconds, abs=rounding)


def test_work_stands_in_the_second_in_which_it_was_done() -> None:
    found = used([counter([*[0.0] * 7, 1.5, 0.25, *[0.0] * 20])], Window(START, START + 10.0))
    assert found.cores_over_time == CoresOverTime(
        span_seconds=1, cores=[0, 0, 1.5, 0.25, 0, 0, 0, 0, 0, 0]
    )


def test_a_long_trial_has_spans_of_several_seconds() -> None:
    found = used([counter([0.5, 1.5] * 200)], Window(START, START + 360.0))
    assert found.cores_over_time == CoresOverTime(span_seconds=3, cores=[1.167, 0.833] * 60)


def test_spans_without_samples_have_no_figure() -> None:
    found = used([counter([1.0] * 13)], Window(START, START + 10.0))
    assert found.cpu_seconds == pytest.approx(10.0)
    assert found.cores_over_time is not None
    assert found.cores_over_time.cores == [*[1.0] * 8, None, None]


def test_what_the_window_cannot_tell_has_no_curve() -> None:
    assert used([counter([1.0] * 8)], Window(START, START + 10.0)).cores_over_time is None


async def test_the_curve_is_no_finer_than_the_samples() -> None:
    names = {"namespace": "default", "pod": "demo-postgres-1-x"}
    seconds = 60.0
    series = one_series(
        KUBELET, lambda t: 0.5 * t + 100, names, start=START - 60, end=START + 120, step=15.0
    )
    wanted = TrialWindow("default", "demo", UID, "demo-trial-001", Window(START, START + seconds))
    usage = await trial_usage(FakePrometheus({KUBELET: [series]}), wanted)
    found = usage.component("postgres")
    assert found is not None
    assert found.cores_over_time == CoresOverTime(span_seconds=15, cores=[0.5] * 4)


def test_each_second_has_the_figure_of_its_span() -> None:
    curve = CoresOverTime(span_seconds=2, cores=[0.5, None, 1.0])
    assert curve.by_second() == {0: 0.5, 1: 0.5, 4: 1.0, 5: 1.0}


def test_what_is_not_known_is_stored_as_such() -> None:
    curve = CoresOverTime(span_seconds=1, cores=[0.5, None])
    assert CoresOverTime.model_validate(curve.to_wire()) == curve
    text = curve.model_dump_json(by_alias=True, exclude_none=True)
    assert CoresOverTime.model_validate_json(text) == curve
