"""A Prometheus that has the series of several clusters: whose are read, and what is said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from laptime.api.results import TrialReadings
from laptime.api.usage import Source
from laptime.measure.each_second import PhaseSeconds, TrialSeconds, stored
from laptime.measure.prometheus_access import PrometheusAccess
from laptime.measure.prometheus_http import PrometheusClient
from laptime.measure.promql import QUERY_PATH, TrialWindow, narrowed
from laptime.measure.readings import trial_readings
from laptime.measure.timeseries import Window
from tests.measure.prometheus_answers import (
    LENGTH,
    START,
    UID,
    FakePrometheus,
    Matrix,
    node,
    one_series,
    pod,
)

WANTED = TrialWindow("default", "demo", UID, "demo-trial-001", Window(START, START + LENGTH))
TRIAL = {"server": "axum", "trial": "demo-trial-001"}
NODES = {"server": ["n1"], "postgres": ["n1"], "generator": ["n1"]}
HERE = {"node": "n1"}
ELSEWHERE = {"node": "west", "run_uid": "of-another-cluster"}
MATCHERS = {"cluster": "east", "tenant": 'a "b" \\ {c'}
URL = "https://thanos.example"
SAID = (
    "Prometheus has pods of a run of this name on west, where no part of this trial ran: series of "
    "another cluster answer too. They are left out; write what tells the clusters apart in "
    "prometheus.matchers of the chart (docs/watching.md)"
)


def clock(name: str = "n1") -> dict[str, Any]:
    return one_series("laptime_node_clock_seconds", lambda at: START + at, {"node": name})


def cluster(labels: Mapping[str, str], cores: float) -> Matrix:
    where = labels["node"]
    return [
        *pod(f"demo-server-axum-{where}", "server", cores=cores, labels={**TRIAL, **labels}),
        *pod(f"demo-postgres-{where}", "postgres", cores=cores / 2, labels=labels),
    ]


async def read(pods: Matrix, **more: Any) -> TrialReadings:
    answers = {
        "laptime_node_clock_seconds": [clock()],
        "laptime_pod_cpu_seconds_total|": pods,
        "laptime_node_cpus": list(node(all_pods=1.5)),
        **more,
    }
    return await trial_readings(FakePrometheus(answers), WANTED, "axum", "laptime", NODES)


async def test_pods_of_a_run_of_the_same_name_in_another_cluster_are_none_of_it() -> None:
    usage = (await read(cluster(HERE, 1.0))).usage
    other = (await read(cluster(HERE, 1.0) + cluster(ELSEWHERE, 3.0))).usage
    assert (usage.complete, usage.gaps) == (other.complete, other.gaps) == (True, [])
    assert other.components == usage.components
    assert [one.node for one in other.nodes] == ["n1"]


async def test_another_cluster_alone_is_nobody() -> None:
    usage = (await read(cluster(ELSEWHERE, 3.0))).usage
    assert (usage.source, usage.components) == (Source.NOBODY, [])
    (gap,) = usage.gaps
    assert "no pod of the run" in gap


async def test_what_is_measured_beside_a_trial_may_be_on_nodes_of_its_own() -> None:
    wanted = replace(WANTED, beside="demo-trial-002")
    labels = {"server": "flask", "trial": "demo-trial-002", "node": "n2"}
    beside = list(pod("demo-server-flask-1", "server", cores=1.0, labels=labels))
    answers = {
        "laptime_node_clock_seconds": [clock()],
        "laptime_pod_cpu_seconds_total|": cluster(HERE, 1.0) + beside,
        "laptime_node_cpus": list(node(all_pods=1.5)),
    }
    readings = await trial_readings(FakePrometheus(answers), wanted, "axum", "laptime", NODES)
    assert (readings.usage.complete, readings.usage.gaps) == (True, [])


async def test_the_kubelets_of_another_cluster_tell_of_other_pods() -> None:
    def kubelet(where: str, name: str, cores: float, end: float = LENGTH + 60.0) -> dict[str, Any]:
        labels = {"namespace": "default", "pod": f"demo-server-axum-{name}", "node": where}
        return one_series(
            "container_cpu_usage_seconds_total",
            lambda at: cores * (at + 100),
            labels,
            start=START - 60.0,
            end=START + end,
            step=10.0,
        )

    pods = [kubelet("n1", "5d86cdc77c-2gp5l", 1.0), kubelet("west", "5d86cdc77c-abcde", 3.0)]
    usage = (await read([], container_cpu_usage_seconds_total=pods)).usage
    assert usage.source is Source.KUBELET
    (axum,) = usage.components
    assert (axum.pods, axum.nodes) == (1, ["n1"])
    assert SAID in usage.gaps
    # One that was gone before the trial is not of it.
    pods[1] = kubelet("west", "5d86cdc77c-abcde", 3.0, end=-1.0)
    usage = (await read([], container_cpu_usage_seconds_total=pods)).usage
    assert SAID not in usage.gaps


async def test_tiers_of_another_cluster_say_nothing_of_this_one() -> None:
    def postgres(where: Mapping[str, str], rate: float) -> Matrix:
        labels = {"component": "postgres", "pod": f"demo-postgres-{where['node']}", **where}
        name = "laptime_postgres_statements_total"
        return [
            one_series("laptime_postgres_up", lambda _: 1.0, labels),
            one_series(name, lambda at: rate * (at + 100), labels),
            one_series("laptime_postgres_max_connections", lambda _: rate, labels),
        ]

    said = {"haproxy_backend": postgres(HERE, 100.0) + postgres(ELSEWHERE, 900.0)}
    readings = await read(cluster(HERE, 1.0), **said)
    assert readings.tiers is not None
    assert readings.tiers.database is not None
    assert readings.tiers.database.statements == pytest.approx(1000.0)
    assert readings.tiers.database.max_connections == 100
    assert readings.usage.gaps == []


async def test_everything_that_is_asked_for_has_the_matchers() -> None:
    """Whatever the operator asks goes by this client: what it forgot would be of all clusters."""
    asked: list[str] = []
    answers = FakePrometheus(
        {
            "laptime_node_clock_seconds": [clock()],
            "laptime_node_cpus": list(node(all_pods=1.5)),
            "laptime_neighbour_cpu": [],
        }
    )
    with_pods = [True]

    async def handler(request: httpx.Request) -> httpx.Response:
        (promql,) = parse_qs(request.content.decode())["query"]
        asked.append(promql)
        pods = with_pods[0] and "laptime_pod_cpu_cores_peak" in promql
        found = FakePrometheus({"": cluster(HERE, 1.0)}) if pods else answers
        return httpx.Response(200, json=await found(QUERY_PATH, {"query": promql}))

    access = PrometheusAccess.from_wire(URL, {"matchers": MATCHERS})
    phase = PhaseSeconds(((1000, 1),), {}, (), (), {})
    labels = {"namespace": "default", "run": "demo", "trial": "demo-trial-001"}
    async with aclosing(PrometheusClient(access, httpx.MockTransport(handler))) as client:
        for with_pods[0] in (True, False):
            await trial_readings(client.query, WANTED, "axum", "laptime", NODES)
        await stored(client.query, TrialSeconds(labels, {"measured": phase}))
    for metric in (
        "laptime_node_clock_seconds",
        "laptime_pod_cpu_seconds_total",
        "laptime_node_cpus",
        "laptime_neighbour_cpu_seconds_total",
        "container_cpu_usage_seconds_total",
        "laptime_postgres_up",
        "laptime_second_requests",
    ):
        assert any(metric in one for one in asked), metric
    for one in asked:
        without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "TEXT", one)
        selectors = re.findall(r"\{[^}]*", without_strings)
        assert selectors, one
        assert all(selector.startswith("{cluster=TEXT,tenant=TEXT,") for selector in selectors), one
        assert one.count('{cluster="east",tenant="a \\"b\\" \\\\ {c",') == len(selectors)


def test_a_query_without_a_selector_is_refused() -> None:
    assert narrowed("up", {}) == "up"
    with pytest.raises(ValueError, match="'up' has no selector"):
        narrowed("up", MATCHERS)


@pytest.mark.parametrize(
    ("matchers", "says"),
    [
        ({"a-b": "c"}, "prometheus.matchers: 'a-b' is not the name of a label"),
        ({"__name__": "up"}, "is not the name of a label"),
        ({"1a": "up"}, "is not the name of a label"),
        ({'a="",b': "c"}, "is not the name of a label"),
        ({"cluster": ""}, "prometheus.matchers: cluster has no value"),
    ],
)
def test_a_matcher_is_a_label_and_its_value(matchers: Mapping[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        PrometheusAccess.from_wire(URL, {"matchers": matchers})
