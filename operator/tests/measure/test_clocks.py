"""Clocks of nodes that are apart, and figures that do not hang on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from laptime.api.results import TrialReadings
from laptime.measure.clocks import clock_query, node_clocks
from laptime.measure.promql import TrialWindow
from laptime.measure.readings import trial_readings
from laptime.measure.timeseries import Series, Window
from tests.measure.prometheus_answers import LENGTH, START, UID, FakePrometheus, node, one_series

WANTED = TrialWindow("default", "demo", UID, "demo-trial-001", Window(START, START + LENGTH))
APART = {"server": ["n2"], "generator": ["n1"]}
PODS = "laptime_pod_cpu_seconds_total"
CLOCKS = "laptime_node_clock_seconds"
BOOTS = "laptime_node_boot_time_seconds"
QUEUE = "haproxy_backend_current_queue"
SET = "the clock of node {} was set by 0.90 s meanwhile: more than 5% of the time"


def said(name: str, ahead: Callable[[float], float], **options: Any) -> dict[str, Any]:
    """Return what the agent of a node says of its time, now 2 ms late and now 30 ms."""

    def time(since: float) -> float:
        late = 0.03 if round(since) % 3 else 0.002
        return START + since + ahead(since) + late

    return one_series(CLOCKS, time, {"node": name}, **options)


def busy(name: str, of: str, ahead: float, cores: float = 1.0) -> dict[str, Any]:
    """Return a pod that uses its cores from the window's start to its end, read by a clock."""
    labels = {"namespace": "default", "pod": f"demo-{of}", "node": name, "run": "demo"}
    labels |= {"component": of, "server": "axum", "trial": "demo-trial-001"}

    def used(read_at: float) -> float:
        return cores * min(max(read_at - ahead, 0.0), LENGTH)

    return one_series(PODS, used, labels, step=0.02, end=START + LENGTH + 4.9)


async def read(
    clocks: list[dict[str, Any]],
    ahead: dict[str, float],
    nodes: dict[str, list[str]] | None = None,
    **more: Any,
) -> TrialReadings:
    pods = [busy("n2", "server", ahead["n2"]), busy("n1", "generator", ahead["n1"], 0.5)]
    answers = {
        CLOCKS: clocks,
        PODS: pods,
        "laptime_node_cpus": [*node("n1"), *node("n2")],
        **more,
    }
    return await trial_readings(FakePrometheus(answers), WANTED, "axum", "laptime", nodes or APART)


async def test_a_clock_that_is_ahead_changes_no_figure() -> None:
    clocks = [said("n1", lambda _: 0.0), said("n2", lambda _: 0.3)]
    usage = (await read(clocks, {"n1": 0.0, "n2": 0.3})).usage
    server = usage.component("server")
    assert server is not None
    assert server.cpu_seconds == pytest.approx(LENGTH, rel=0.002)
    assert (usage.complete, usage.gaps) == (True, [])
    assert [one.clock_ahead_seconds for one in usage.nodes] == [0.0, pytest.approx(0.3)]


async def test_without_what_agents_say_of_their_clocks_it_does_and_that_is_said() -> None:
    usage = (await read([], {"n1": 0.0, "n2": 0.3})).usage
    server = usage.component("server")
    assert server is not None
    assert server.cpu_seconds == pytest.approx(LENGTH - 0.3, abs=0.02)
    assert usage.complete is False
    assert usage.gaps == ["it is not known how far the clocks of nodes n1 and n2 are apart"]
    assert [one.clock_ahead_seconds for one in usage.nodes] == [0.0, None]


async def test_on_one_node_nothing_has_to_be_known_of_its_clock() -> None:
    pods = [busy("n2", "server", 0.0), busy("n2", "generator", 0.0, 0.5)]
    together = {PODS: pods, "laptime_node_cpus": list(node("n2"))}
    nodes = {"generator": ["n2"], "server": ["n2"]}
    usage = (await read([], {"n1": 0.0, "n2": 0.0}, nodes, **together)).usage
    assert (usage.complete, usage.gaps) == (True, [])


def moved(by: float, when: float = 0.5) -> Callable[[float], float]:
    """Return by how much a clock is ahead that is set once, after a share of the window."""
    return lambda since: by if since > when * LENGTH else 0.0


def booted(name: str, at: Callable[[float], float]) -> dict[str, Any]:
    """Return what the agent of a node says of when it booted, by a clock that may be set."""
    return one_series(BOOTS, lambda since: START - 1000.0 + at(since), {"node": name})


async def gaps_on_one_node(*clocks: dict[str, Any]) -> tuple[bool | None, list[str]]:
    pods = [busy("n2", "server", 0.0), busy("n2", "generator", 0.0, 0.5)]
    together = {PODS: pods, "laptime_node_cpus": list(node("n2"))}
    nodes = {"generator": ["n2"], "server": ["n2"]}
    usage = (await read([*clocks], {"n1": 0.0, "n2": 0.0}, nodes, **together)).usage
    return usage.complete, usage.gaps


@pytest.mark.parametrize("along", [True, False])
@pytest.mark.parametrize("when", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("by", [0.9, -0.9])
async def test_on_one_node_a_clock_that_is_moved_meanwhile_is_said(
    when: float, by: float, along: bool
) -> None:
    """`along`: it takes that of Prometheus along."""
    beside = said("n2", (lambda _: 0.0) if along else moved(by, when))
    complete, gaps = await gaps_on_one_node(beside, booted("n2", moved(by, when)))
    assert complete is False
    assert gaps == [SET.format("n2")]


async def test_on_one_node_answers_that_are_late_are_no_doubt() -> None:
    clocks = [said("n2", moved(0.9)), booted("n2", lambda _: 0.0)]
    assert await gaps_on_one_node(*clocks) == (True, [])


async def test_a_clock_that_nobody_sets_by_much_is_no_doubt() -> None:
    clocks = [said("n2", lambda _: 0.0), booted("n2", moved(0.4))]
    assert await gaps_on_one_node(*clocks) == (True, [])


async def test_a_node_of_that_name_in_another_cluster_has_not_set_the_clock() -> None:
    elsewhere = booted("n2", lambda _: -86_400.0)
    elsewhere["metric"]["cluster"] = "west"
    clocks = [said("n2", lambda _: 0.0), booted("n2", lambda _: 0.0), elsewhere]
    assert await gaps_on_one_node(*clocks) == (True, [])


async def test_nodes_of_one_machine_whose_clock_is_set_are_said() -> None:
    clocks = [said(name, lambda _: 0.0) for name in ("n1", "n2")]
    clocks += [booted(name, moved(0.9)) for name in ("n1", "n2")]
    usage = (await read(clocks, {"n1": 0.0, "n2": 0.0})).usage
    assert usage.complete is False
    assert usage.gaps == [SET.format("n1")]


async def test_results_of_older_versions_have_no_nodes_and_are_read_as_before() -> None:
    usage = (await read([], {"n1": 0.0, "n2": 0.0}, {"postgres": ["n1"]})).usage
    assert (usage.complete, usage.gaps) == (True, [])


async def test_the_windows_clock_may_be_the_one_that_is_wrong() -> None:
    # The generator's node is 0.5 s slow, and so are the times of the window: all others are fast.
    clocks = [said("n1", lambda _: -0.5), said("n2", lambda _: 0.0)]
    queue = [
        one_series(name, lambda since: 8.0 if since >= 0.5 else 0.0, {"proxy": "server-axum"})
        for name in (QUEUE, "haproxy_backend_current_sessions")
    ]
    found = await read(clocks, {"n1": 0.0, "n2": 0.5}, haproxy=queue)
    server = found.usage.component("server")
    assert server is not None
    assert server.cpu_seconds == pytest.approx(LENGTH, rel=0.002)
    assert found.usage.nodes[1].clock_ahead_seconds == pytest.approx(0.5)
    # What has no time of its own has that of Prometheus.
    assert found.tiers.proxy is not None
    assert found.tiers.proxy.queue_mean == 8.0


@pytest.mark.parametrize("when", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("by", [0.9, -0.9])
async def test_a_clock_that_is_moved_meanwhile_makes_figures_doubtful(
    when: float, by: float
) -> None:
    clocks = [said("n1", lambda _: 0.0), said("n2", moved(by, when))]
    usage = (await read(clocks, {"n1": 0.0, "n2": 0.0})).usage
    assert usage.complete is False
    (gap,) = usage.gaps
    said_so = r"the clocks of nodes n1 and n2 are 0\.[09]0 s apart, give or take 0\.9\d s: .*"
    assert re.fullmatch(said_so, gap), gap


async def test_a_clock_that_is_minutes_ahead_is_named() -> None:
    clocks = [said("n1", lambda _: 0.0), said("n2", lambda _: 120.0)]
    usage = (await read(clocks, {"n1": 0.0, "n2": 120.0})).usage
    assert usage.complete is False
    assert (
        "the clocks of nodes n1 and n2 are 120.00 s apart, more than can be taken off: "
        "set them by NTP" in usage.gaps
    )


async def test_a_node_that_nobody_watched_is_told_though_none_of_its_pods_has_a_sample() -> None:
    clocks = [said(name, lambda _: 0.0) for name in ("n1", "n2")]
    nodes = {**APART, "postgres": ["n3"]}
    usage = (await read(clocks, {"n1": 0.0, "n2": 0.0}, nodes)).usage
    assert usage.complete is False
    assert "no samples of node n3" in usage.gaps


async def test_what_pods_without_a_sample_used_is_not_taken_for_that_of_others() -> None:
    clocks = [said(name, lambda _: 0.0) for name in ("n1", "n2", "n3")]
    more = {"laptime_node_cpus": [*node("n1"), *node("n2"), *node("n3")]}
    nodes = {**APART, "postgres": ["n3"]}
    usage = (await read(clocks, {"n1": 0.0, "n2": 0.0}, nodes, **more)).usage
    assert usage.complete is False
    assert usage.gaps == ["no samples of any pod on node n3"]
    assert [one.node for one in usage.nodes if one.others_cores is not None] == ["n1", "n2"]
    # What that node did is known all the same.
    assert usage.nodes[2].stolen_share == pytest.approx(0.05)


def test_the_quickest_answer_tells_the_time() -> None:
    late = (0.2, 0.004, 0.3, 0.05, 0.006, 0.4, 0.1, 0.3, 0.2)
    times = tuple(100.0 + number for number in range(len(late)))
    series = Series.of((at, at + 1.5 + by) for at, by in zip(times, late, strict=True))
    (clock,) = node_clocks([({"node": "n1"}, series)]).values()
    assert clock.ahead_seconds == pytest.approx(1.504)
    assert clock.left_seconds == pytest.approx(0.002)


def test_a_few_samples_say_nothing() -> None:
    assert node_clocks([({"node": "n1"}, Series.of([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]))]) == {}


def test_both_clocks_of_a_node_are_asked_for() -> None:
    assert f'__name__=~"{BOOTS}|{CLOCKS}"' in clock_query(["a"])


def test_no_name_of_a_node_is_a_pattern() -> None:
    assert 'node=~"a\\\\.b|c"' in clock_query(["c", "a.b"])
