"""From Prometheus' answers to what a trial used, and what is said when something is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from laptime.api.isolation import Quietness
from laptime.api.usage import NodeUsage, Source, TrialUsage
from laptime.measure.clocks import Clocks
from laptime.measure.isolation import trial_isolation
from laptime.measure.node_usage import neighbours_query, node_query
from laptime.measure.pod_series import agent_query, component_of_pod, kubelet_query, stalls_query
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import PrometheusError, TrialWindow, query_samples
from laptime.measure.timeseries import Window
from laptime.measure.validity import judge_usage
from tests.measure.prometheus_answers import (
    LENGTH,
    START,
    UID,
    WITHOUT_UID,
    FakePrometheus,
    answer,
    neighbour,
    node,
    one_series,
    pod,
    probes,
    process,
    tracking,
)

WINDOW = Window(START, START + LENGTH)
WANTED = TrialWindow("default", "demo", UID, "demo-trial-001", WINDOW)
TRIAL = {"server": "axum", "trial": "demo-trial-001"}
PODS = "laptime_pod_cpu_seconds_total"
NODES = "laptime_node_cpus"
STALLS = 'kind=~"|full"'
KUBELET = "container_cpu_usage_seconds_total"
CALM = list(node(steal=0.0, all_pods=1.5))
"""A node on which nobody but the server was."""


def server(**options: Any) -> list[dict[str, Any]]:
    return list(pod("demo-server-axum-1-a", "server", cores=1.5, labels=TRIAL, **options))


async def used(pods: list[dict[str, Any]], **more: Any) -> TrialUsage:
    return await trial_usage(FakePrometheus({PODS: pods, NODES: list(node()), **more}), WANTED)


async def test_a_whole_trial() -> None:
    pods = server() + list(pod("demo-postgres-1-b", "postgres", cores=0.25))
    usage = await used(pods, **{STALLS: server()})
    assert usage.source is Source.AGENT
    assert usage.complete
    assert usage.gaps == []
    assert usage.resolution_seconds == 1.0
    axum = usage.component("server")
    assert axum is not None
    assert (axum.server, axum.pods, axum.nodes) == ("axum", 1, ["n1"])
    assert axum.cpu_seconds == pytest.approx(15.0)
    assert axum.cores_mean == pytest.approx(1.5)
    assert axum.cores_peak == pytest.approx(1.5)
    assert axum.throttled_seconds == pytest.approx(2.0)
    assert axum.throttled_share == pytest.approx(0.5)
    assert axum.working_set_bytes == 100_000_000
    assert axum.memory_peak_bytes == 150_000_000
    assert axum.cpu_waiting_share == pytest.approx(0.25)
    assert axum.disk_waiting_share == pytest.approx(0.4)
    assert axum.memory_waiting_share == pytest.approx(0.15)
    assert axum.received_bytes == 10_000
    assert axum.transmitted_bytes == 20_000
    postgres = usage.component("postgres")
    assert postgres is not None
    assert postgres.server is None
    assert postgres.cpu_seconds == pytest.approx(2.5)
    assert usage.component("haproxy") is None


async def test_where_nobody_counts_pressure_no_waiting_is_known() -> None:
    without = [one for one in server() if "pressure" not in one["metric"]["__name__"]]
    usage = await used(without)
    axum = usage.component("server")
    assert axum is not None
    assert usage.complete
    assert (axum.disk_waiting_share, axum.memory_waiting_share) == (None, None)
    assert axum.disk_operations_per_second is None


async def test_where_the_question_for_stalls_alone_fails_nothing_but_them_is_lost() -> None:
    """As a gap, so that it is asked again for a time, and is said if it stays."""
    without = [one for one in server() if "pressure" not in one["metric"]["__name__"]]
    usage = await used(without, **{STALLS: {"status": "error", "error": "too many samples"}})
    axum = usage.component("server")
    assert axum is not None
    assert not usage.complete
    assert axum.cores_mean == pytest.approx(1.5)
    assert (axum.disk_waiting_share, axum.memory_waiting_share) == (None, None)
    (gap,) = usage.gaps
    assert "waited for memory or a disk" in gap
    assert "too many samples" in gap


def operations(device: str, each_second: float, **options: Any) -> dict[str, Any]:
    labels = {"namespace": "default", "pod": "demo-server-axum-1-a", "node": "n1", "run": "demo"}
    return one_series(
        "laptime_pod_disk_operations_total",
        lambda time: 5000.0 + each_second * time,
        {**labels, **TRIAL, "component": "server", "device": device},
        **options,
    )


async def test_one_operation_at_a_volume_and_at_its_disk_is_one() -> None:
    disks = [operations("253:0", 40.0), operations("259:0", 40.0), operations("8:0", 3.0)]
    axum = (await used(server(), **{STALLS: server() + disks})).component("server")
    assert axum is not None
    assert axum.disk_operations_per_second == pytest.approx(40.0)


async def test_of_operations_that_only_a_newer_agent_tells_no_more_counts_than_was_seen() -> None:
    """The agent was upgraded within the trial; where it was not, nothing is known."""
    late = operations("259:0", 40.0, start=START + LENGTH / 2, phase=0.0)
    axum = (await used(server(), **{STALLS: [*server(), late]})).component("server")
    assert axum is not None
    assert axum.disk_operations_per_second == pytest.approx(20.0)
    older = (await used(server(), **{STALLS: server()})).component("server")
    assert older is not None
    assert older.disk_operations_per_second is None


@pytest.mark.parametrize(
    ("pods", "times"),
    [([], 0), (list(pod("demo-postgres-1-b", "postgres", cores=0.2)), 0), (server(), 1)],
)
async def test_stalls_are_asked_for_once_and_where_there_is_a_server(
    pods: list[dict[str, Any]], times: int
) -> None:
    prometheus = FakePrometheus({STALLS: [], PODS: pods, NODES: list(node())})
    await trial_usage(prometheus, WANTED)
    assert sum(STALLS in parameters["query"] for _, parameters in prometheus.asked) == times


async def test_the_node() -> None:
    (one,) = (await used(server())).nodes
    assert (one.node, one.cpus) == ("n1", 2)
    assert (one.kernel, one.cpu_model) == ("6.18.44", "Xeon")
    assert one.busy_share == pytest.approx(0.45)
    assert one.stolen_share == pytest.approx(0.05)
    assert one.frequency_hertz == 2.5e9
    assert one.load1 == pytest.approx(101.0, abs=0.2)
    assert one.memory_available_bytes == pytest.approx(8e9 - 10.4e6, abs=1e6)


async def test_what_a_fixed_piece_of_work_took() -> None:
    async def took(*found: dict[str, Any]) -> tuple[float | None, str | None]:
        prometheus = FakePrometheus({PODS: server(), NODES: [*node(), *found]})
        usage = await trial_usage(prometheus, WANTED)
        (one,) = usage.nodes
        assert usage.complete
        assert one.busy_share == pytest.approx(0.45)
        return one.probe_seconds, one.probe_work

    seconds, work = await took(*probes(250e-6))
    assert seconds == pytest.approx(250e-6)
    assert work == "1"
    # An older agent, one that went and came back, one of another release in the middle of it.
    assert await took() == (None, None)
    middle = START + LENGTH / 2
    assert await took(*probes(250e-6, end=middle)) == (None, None)
    both = [*probes(250e-6, end=middle), *probes(1e-6, work="2", start=middle)]
    assert await took(*both) == (None, None)
    after = probes(1e-6, start=middle, job="new")
    assert await took(*probes(250e-6, end=middle), *after) == (None, None)
    # Two jobs of one's own Prometheus that scrape the same agent.
    seconds, work = await took(*probes(250e-6), *probes(250e-6, job="pods"))
    assert seconds == pytest.approx(250e-6)
    assert work == "1"
    # One that was gone before is none of its business.
    gone = probes(1e-6, work="0", start=START - 20.0, end=START - 5.0)
    seconds, work = await took(*gone, *probes(250e-6))
    assert seconds == pytest.approx(250e-6)
    assert work == "1"


async def test_what_others_used_is_what_the_nodes_pods_of_the_run_did_not() -> None:
    def axum(cores: float, **options: Any) -> list[dict[str, Any]]:
        return list(pod("demo-server-axum-1-a", "server", cores=cores, labels=TRIAL, **options))

    # 0.9 cores are busy.
    (one,) = (await used(axum(0.3))).nodes
    assert one.others_cores == pytest.approx(0.6)
    (one,) = (await used(axum(0.3) + list(pod("demo-postgres-1-b", "postgres", cores=0.4)))).nodes
    assert one.others_cores == pytest.approx(0.2)
    # Of the run, but on another node.
    far = list(pod("demo-postgres-1-b", "postgres", cores=0.4, labels={"node": "n2"}))
    (one, _) = (await used(axum(0.3) + far, **{NODES: [*node(), *node("n2")]})).nodes
    assert one.others_cores == pytest.approx(0.6)
    # More than was counted of the node: ticks are coarser than what pods are read by.
    (one,) = (await used(axum(1.5))).nodes
    assert one.others_cores == 0.0
    # A pod of which nobody knows how much it used may have used all of it.
    (one,) = (await used(axum(0.3, end=START + 4.4))).nodes
    assert one.others_cores is None


async def test_what_is_measured_beside_a_trial_is_none_of_its_use_and_no_neighbour() -> None:
    wanted = replace(WANTED, server="axum", beside="demo-trial-002")
    own = list(pod("demo-server-axum-1-a", "server", cores=0.3, labels=TRIAL))
    others = {"server": "sync", "trial": "demo-trial-002"}
    beside = list(pod("demo-server-sync-1-b", "server", cores=0.4, labels=others))
    prometheus = FakePrometheus({PODS: own + beside, NODES: list(node())})
    usage = await trial_usage(prometheus, wanted)
    assert [(one.component, one.server) for one in usage.components] == [("server", "axum")]
    (axum,) = usage.components
    assert axum.cores_mean == pytest.approx(0.3)
    # 0.9 cores are busy, 0.7 of them by the run.
    (one,) = usage.nodes
    assert one.others_cores == pytest.approx(0.2)
    assert 'trial=~"|demo-trial-001|demo-trial-002"' in agent_query(wanted)
    assert 'trial=~"|demo-trial-001"' in agent_query(WANTED)
    # Whose pod it is the kubelet does not say but by its name.
    assert component_of_pod("demo-server-sync-1-b", wanted) is None
    assert component_of_pod("demo-server-axum-1-a", wanted) == ("server", "axum")
    assert component_of_pod("demo-server-sync-1-b", WANTED) == ("server", "sync")


def exclusive(name: str, cpus: Callable[[float], float], **labels: str) -> dict[str, Any]:
    common = {"namespace": "default", "pod": name, "node": "n1", "run": "demo", **labels}
    return one_series("laptime_pod_cpus_exclusive", cpus, common)


async def test_cpus_that_no_other_pod_ran_on_are_the_fewest_of_the_window() -> None:
    def fewer(time: float) -> float:
        return 1.0 if 4 < time < 6 else 3.0

    def before(time: float) -> float:
        return 2.0 if time > -1.5 else 0.0

    name = "demo-server-axum-1-a"
    labels = {"component": "server", **TRIAL}
    for cpus, fewest in ((fewer, 1), (before, 2), (lambda _: 0.0, 0)):
        usage = await used([*server(), exclusive(name, cpus, **labels)])
        axum = usage.component("server")
        assert axum is not None
        assert axum.exclusive_cpus == fewest
    axum = (await used(server())).component("server")
    assert axum is not None
    assert axum.exclusive_cpus is None


NAME = "demo-server-axum-1-a"


async def test_each_process_of_a_server_is_told_of() -> None:
    workers = [
        process(NAME, 7, "pause", 0.0),
        process(NAME, 41, "gunicorn", 0.01, parent=7),
        process(NAME, 42, "gunicorn", 0.94, parent=41),
        process(NAME, 42, "gunicorn", 0.9, parent=41, main="running"),
        process(NAME, 42, "gunicorn", 0.05, parent=41, main="waiting"),
        process(NAME, 43, "gunicorn", 0.55, parent=41),
    ]
    axum = (await used([*server(), *workers])).component("server")
    assert axum is not None
    assert axum.processes is not None
    found = [(one.process, one.parent, one.command) for one in axum.processes]
    assert found == [
        (42, 41, "gunicorn"),
        (43, 41, "gunicorn"),
        (41, 7, "gunicorn"),
        (7, 1, "pause"),
    ]
    busiest, other, *_ = axum.processes
    assert (busiest.cores, busiest.cores_peak) == pytest.approx((0.94, 0.94))
    assert busiest.main_thread_cores == pytest.approx(0.9)
    assert busiest.main_thread_waiting_share == pytest.approx(0.05)
    assert other.cores == pytest.approx(0.55)
    assert (other.main_thread_cores, other.main_thread_waiting_share) == (None, None)


async def test_a_pod_that_is_gone_before_the_next_reading_has_its_processes_all_the_same() -> None:
    every = [*server(), process(NAME, 41, "axum", 1.5, end=START + 9.4)]
    axum = (await used(every)).component("server")
    assert axum is not None
    assert axum.processes is not None
    assert axum.processes[0].cores == pytest.approx(1.5)


async def test_a_process_that_gave_itself_another_name_is_one_process() -> None:
    before = process(NAME, 42, "python", 1.5, end=START + 3.9)
    renamed = process(NAME, 42, "gunicorn", 1.5, start=START + 3.0)
    axum = (await used([*server(), renamed, before])).component("server")
    assert axum is not None
    assert axum.processes is not None
    assert [(one.command, round(one.cores, 3)) for one in axum.processes] == [("gunicorn", 1.5)]


@pytest.mark.parametrize(
    "told",
    [
        [],
        # Nobody followed who used the rest of the pod's 1.5 cores.
        [process(NAME, 41, "axum", 1.2)],
        [process(NAME, 41, "axum", 1.5), process(NAME, 42, "axum", 0.3)],
        # It ended in the middle: what another one used since is not known.
        *(
            [process(NAME, 41, "axum", 0.7), process(NAME, 42, "axum", 0.8, end=START + end)]
            for end in (4.4, 6.4, 8.7)
        ),
        [process(NAME, 41, "axum", 0.7), process(NAME, 42, "axum", 0.8, start=START + 1.0)],
        # Its readings are too far apart for this window.
        [process(NAME, 41, "axum", 1.5, step=6.0)],
    ],
    ids=["nobody", "too little", "too much", "one ended", "later", "at the end", "new", "seldom"],
)
async def test_of_processes_that_are_not_all_known_nothing_is_said(
    told: list[dict[str, Any]],
) -> None:
    usage = await used([*server(), *told])
    axum = usage.component("server")
    assert axum is not None
    assert axum.processes is None
    assert axum.cores_mean == pytest.approx(1.5)


async def test_cpus_of_two_pods_add_up_where_both_are_known() -> None:
    two = [*server(), *pod("demo-server-axum-1-b", "server", cores=1.0, labels=TRIAL)]
    labels = {"component": "server", **TRIAL}
    first = exclusive("demo-server-axum-1-a", lambda _: 2.0, **labels)
    second = exclusive("demo-server-axum-1-b", lambda _: 1.0, **labels)
    for told, known in (([first, second], 3), ([first], None)):
        axum = (await used([*two, *told])).component("server")
        assert axum is not None
        assert axum.exclusive_cpus == known


def frozen(begin: float, end: float, last: float = LENGTH + 5.0, **labels: str) -> dict[str, Any]:
    """Return what the agent of a node tells that is frozen from and to these times since START."""
    samples = [(-4.63 + number, 700.0) for number in range(80)]
    told = [(time, value) for time, value in samples if time < begin]
    # The first reading afterwards is taken at once.
    told += [(end, 700.0 + end - begin)]
    told += [(time, 700.0 + end - begin) for time, _ in samples if time > end]
    return {
        "metric": {"__name__": "laptime_node_stood_still_seconds_total", "node": "n1", **labels},
        "values": [[START + time, repr(value)] for time, value in told if time <= last],
    }


@pytest.mark.parametrize(
    ("begin", "end", "until", "seconds"),
    [
        (2.0, 9.5, LENGTH, 7.5),
        # Across an end of what was measured: the part of it within, until the last answer.
        (-8.0, 2.0, LENGTH, 2.0),
        (7.5, 15.5, 15.6, 8.0),
        (4.0, 34.0, 34.5, 30.0),
        (9.6, 17.6, 17.7, 8.0),
        # Requests that were under way when the load was over wait as well.
        (LENGTH + 0.2, 18.0, 18.2, 7.8),
        (2.0, 9.5, 21.0, 7.5),
        # Before it, and after the last answer.
        (-7.0, -0.5, LENGTH, 0.0),
        (LENGTH + 1.0, LENGTH + 4.0, LENGTH + 0.5, 0.0),
    ],
)
async def test_how_long_the_node_stood_still_until_the_last_answer(
    begin: float, end: float, until: float, seconds: float
) -> None:
    wanted = replace(WANTED, until=START + until)
    told = frozen(begin, end, until + 5.0)
    prometheus = FakePrometheus({PODS: server(), NODES: [*node(), told]})
    usage = await trial_usage(prometheus, wanted)
    (one,) = usage.nodes
    assert one.stood_still_seconds == pytest.approx(seconds)
    assert usage.complete
    assert one.busy_share == pytest.approx(0.45)
    # So far as that is samples are asked for, and no further.
    ((_, asked),) = [one for one in prometheus.asked if "stood_still" in one[1]["query"]]
    assert float(asked["time"]) == pytest.approx(START + max(until, LENGTH) + 5.0)
    milliseconds = int(asked["query"].rpartition("[")[2].removesuffix("ms]"))
    assert milliseconds == pytest.approx(1000 * (max(until, LENGTH) + 10), abs=2)


async def test_a_node_that_nobody_has_heard_of_since_may_still_stand_still() -> None:
    told = frozen(7.5, 60.0, LENGTH + 5.0)
    usage = await used(server(), **{NODES: [*CALM, told]})
    assert usage.nodes[0].stood_still_seconds is None
    assert usage.gaps == ["it is not known whether node n1 stood still"]
    isolation = trial_isolation(usage, ["n1"])
    assert isolation.word is Quietness.NOT_KNOWN
    assert isolation.message == "node n1 was not watched all of the time"


async def test_a_node_that_was_watched_for_a_part_of_a_trial_is_no_quiet_one() -> None:
    usage = await used(server(), **{NODES: CALM})
    assert usage.complete
    assert trial_isolation(usage, ["n1"]).word is Quietness.QUIET
    part = [{**one, "values": one["values"][:11]} for one in CALM]
    usage = await used(server(), **{NODES: part})
    assert usage.gaps == ["node n1: no samples for 4.6 s of the 10.0 s"]
    (one,) = usage.nodes
    assert one.stolen_share == 0.0
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN
    # Others who were seen were there.
    busy = [*node(steal=0.0, all_pods=1.9)]
    busy = [{**one, "values": one["values"][:11]} for one in busy]
    usage = await used(list(pod("demo-server-axum-1-a", "server", cores=1.7)), **{NODES: busy})
    assert trial_isolation(usage, ["n1"]).word is Quietness.SHARED


@pytest.mark.parametrize("mode", ["user", "idle", "steal"])
async def test_a_counter_of_a_node_that_went_back_is_no_share_of_nothing(mode: str) -> None:
    found = [with_step(one, -2.0) if one["metric"].get("mode") == mode else one for one in CALM]
    usage = await used(server(), **{NODES: found})
    (one,) = usage.nodes
    assert (one.busy_share, one.stolen_share) == (None, None)
    assert usage.gaps == ["node n1: a counter of its CPU time went back"]
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN


async def test_waiting_for_a_disk_that_turns_out_to_be_idle_time_is_no_gap() -> None:
    """The kernel takes it from the one counter and adds it to the other."""
    labels = {"node": "n1", "mode": "iowait"}
    waits = one_series("laptime_node_cpu_seconds_total", lambda time: 50 + 0.2 * time, labels)
    for step in (0.0, 0.5):
        found = [
            with_step(one, step) if one["metric"].get("mode") == "idle" else one for one in CALM
        ]
        usage = await used(server(), **{NODES: [*found, with_step(waits, -step)]})
        assert usage.gaps == []
        assert usage.nodes[0].busy_share == pytest.approx((0.9 * 10) / (2.2 * 10))


def with_step(series: dict[str, Any], by: float) -> dict[str, Any]:
    """Return a series that from the middle of the window on is so much higher."""
    middle = START + LENGTH / 2
    values = [
        [time, repr(float(value) + (by if time > middle else 0.0))]
        for time, value in series["values"]
    ]
    return {**series, "values": values}


async def test_each_agent_of_a_node_counts_for_itself() -> None:
    # Another one that began when the first one ended, and two beside each other.
    old = frozen(2.0, 4.0, 6.0, instance="old")
    new = frozen(8.0, 9.2, instance="new")
    (one,) = (await used(server(), **{NODES: [*node(), old, new]})).nodes
    assert one.stood_still_seconds == pytest.approx(1.2)
    beside = frozen(2.0, 4.0, instance="old")
    (one,) = (await used(server(), **{NODES: [*node(), beside, new]})).nodes
    assert one.stood_still_seconds == pytest.approx(2.0)


async def test_an_agent_that_began_anew_within_what_was_measured_counts_from_nothing() -> None:
    series = one_series(
        "laptime_node_stood_still_seconds_total",
        lambda time: 1.5 if time > 6.5 else 702.0 if time > 4.5 else 700.0,
        {"node": "n1"},
    )
    (one,) = (await used(server(), **{NODES: [*node(), series]})).nodes
    assert one.stood_still_seconds == pytest.approx(1.0 + 1.0, abs=0.01)


async def test_an_agent_that_does_not_tell_leaves_unknown_whether_its_node_stood_still() -> None:
    (one,) = (await used(server())).nodes
    assert one.stood_still_seconds is None


async def test_connection_tracking_of_the_node_in_the_window() -> None:
    def entries(time: float) -> float:
        return 252_000.0 if 2.5 < time < 4.5 else 300.0 if 0 <= time <= LENGTH else 262_000.0

    series = tracking(entries, drop=120.3, insert_failed=0.2, early_drop=5.0)
    (one,) = (await used(server(), **{NODES: [*node(), *series]})).nodes
    found = one.connection_tracking
    assert found is not None
    assert (found.limit, found.dropped, found.not_added) == (262_144, 1203, 2)
    assert found.given_up_early == 50
    assert found.lost == 1203
    # The reading just after the window's end is that of its end.
    assert found.entries == 262_000
    assert one.cpus == 2
    assert one.busy_share == pytest.approx(0.45)


async def test_where_the_limit_of_entries_is_not_told_it_is_not_known() -> None:
    series = tracking(lambda _: 252_000.0, limit=None)
    (one,) = (await used(server(), **{NODES: [*node(), *series]})).nodes
    found = one.connection_tracking
    assert found is not None
    assert (found.entries, found.limit, found.full_share, found.lost) == (252_000, None, None, 0)


async def test_a_counter_that_went_back_says_nothing_of_what_was_dropped() -> None:
    series = list(tracking(lambda _: 7.0))
    drops = one_series(
        "laptime_node_nf_conntrack_events_total",
        lambda time: 5000.0 - time,
        {"node": "n1", "event": "drop"},
    )
    (one,) = (await used(server(), **{NODES: [*node(), *series[:2], drops]})).nodes
    assert one.connection_tracking is not None
    assert one.connection_tracking.dropped is None


async def test_an_agent_that_does_not_tell_leaves_connection_tracking_unknown() -> None:
    (one,) = (await used(server())).nodes
    assert one.connection_tracking is None


NAMES = "laptime_neighbour_cpu_seconds_total"


async def beside(
    all_pods: float, *others: dict[str, Any], own: float = 0.3
) -> tuple[NodeUsage, FakePrometheus]:
    pods = list(pod("demo-server-axum-1-a", "server", cores=own, labels=TRIAL))
    prometheus = FakePrometheus(
        {NAMES: list(others), PODS: pods, NODES: list(node(all_pods=all_pods))}
    )
    (found,) = (await trial_usage(prometheus, WANTED)).nodes
    return found, prometheus


async def test_other_pods_are_all_pods_of_the_node_without_those_of_the_run() -> None:
    one, _ = await beside(0.7)
    assert one.other_pods_cores == pytest.approx(0.4)
    # 0.9 cores are busy: the rest is daemons.
    assert one.others_cores == pytest.approx(0.6)
    assert one.neighbours == []
    assert one.cpu_waiting_share == pytest.approx(0.3)
    # The tree is read at other moments than the pods in it.
    one, _ = await beside(0.29)
    assert one.other_pods_cores == 0.0


async def test_others_used_no_less_than_other_pods() -> None:
    # By the node's modes nobody but the run did anything: interrupts ran in the time of its pods.
    one, _ = await beside(1.2, own=0.85)
    assert one.other_pods_cores == pytest.approx(0.35)
    assert one.others_cores == pytest.approx(0.35)


async def test_an_agent_of_the_version_before_leaves_other_pods_unknown() -> None:
    prometheus = FakePrometheus({PODS: server(), NODES: list(node())})
    (one,) = (await trial_usage(prometheus, WANTED)).nodes
    assert (one.other_pods_cores, one.neighbours, one.cpu_waiting_share) == (None, None, None)
    assert not any(NAMES in asked["query"] for _, asked in prometheus.asked)


async def test_the_largest_neighbours_have_names() -> None:
    many = [neighbour(f"small-{number:02}", 0.02) for number in range(12)]
    one, _ = await beside(1.0, neighbour("tiny", 0.009), *many, neighbour("web", 0.25))
    assert one.neighbours is not None
    assert one.neighbours[0].pod == "web"
    assert one.neighbours[0].cores == pytest.approx(0.25)
    assert [found.pod for found in one.neighbours[1:]] == [f"small-{n:02}" for n in range(9)]


async def test_names_of_other_namespaces_are_not_asked_for_and_never_taken() -> None:
    one, prometheus = await beside(1.0, neighbour("web", 0.3, "team"), neighbour("mine", 0.2))
    assert one.neighbours is not None
    assert [found.pod for found in one.neighbours] == ["mine"]
    (asked,) = (q["query"] for _, q in prometheus.asked if NAMES in q["query"])
    assert asked.startswith(neighbours_query(["n1"], WANTED))
    assert f'namespace="default",node=~"n1",run_uid!="{UID}"' in asked


async def test_a_neighbour_of_a_part_of_the_window_counts_by_what_was_seen_of_it() -> None:
    late = neighbour("job", 1.0, start=START + 7.63)
    elsewhere = neighbour("far", 1.0, node="n2")
    before = neighbour("gone", 1.0, end=START - 1.0)
    one, _ = await beside(1.0, late, elsewhere, before)
    assert one.neighbours is not None
    assert [found.pod for found in one.neighbours] == ["job"]
    assert one.neighbours[0].cores == pytest.approx(0.2)


async def test_a_pod_that_only_has_the_name_of_the_run_is_a_neighbour_and_no_part_of_it() -> None:
    """Whoever makes pods can write on one what a server of the run has, and any uid but its own."""
    own = list(pod(NAME, "server", cores=0.3, labels=TRIAL))
    other = list(pod("web", "server", cores=0.4, labels={**TRIAL, "run_uid": "another"}))
    cpu = [one for one in other if one["metric"]["__name__"] == PODS]
    calm = list(node(all_pods=0.8))
    usage = await trial_usage(FakePrometheus({NAMES: cpu, PODS: own + other, NODES: calm}), WANTED)
    assert usage.gaps == []
    (axum,) = usage.components
    assert axum.pods == 1
    assert axum.cores_mean == pytest.approx(0.3)
    (one,) = usage.nodes
    assert one.other_pods_cores == pytest.approx(0.5)
    assert one.neighbours is not None
    assert [(found.pod, round(found.cores, 3)) for found in one.neighbours] == [("web", 0.4)]


@pytest.mark.parametrize("phase", [0.0, 0.25, 0.5, 0.999])
async def test_work_before_and_after_the_window_is_not_counted(phase: float) -> None:
    def busy_outside(time: float) -> float:
        return 2 * min(time, 0.0) + min(max(time, 0.0), LENGTH) + 2 * max(time - LENGTH, 0.0)

    labels = {"pod": "p", "component": "server", **TRIAL}
    series = one_series(PODS, lambda t: 100 + busy_outside(t), labels, phase=phase)
    axum = (await used([series])).component("server")
    assert axum is not None
    # A sample is at most a second from each end: there both rates share a second.
    assert axum.cpu_seconds == pytest.approx(LENGTH, abs=0.51)
    if phase == 0.0:
        assert axum.cpu_seconds == pytest.approx(LENGTH)


async def test_a_short_burst_is_the_peak() -> None:
    labels = {"pod": "p", "component": "server", **TRIAL}
    counter = one_series(PODS, lambda t: min(max(t - 4.37, 0.0), 1.0), labels)
    axum = (await used([counter])).component("server")
    assert axum is not None
    assert axum.cores_peak == pytest.approx(1.0, abs=0.13)
    assert axum.cores_mean == pytest.approx(0.1)


async def test_the_agents_finer_readings_show_what_the_counter_smears() -> None:
    labels = {"pod": "p", "component": "server", **TRIAL}
    counter = one_series(PODS, lambda t: min(max(t - 3.87, 0.0), 1.0), labels)
    peaks = one_series(
        "laptime_pod_cpu_cores_peak", lambda t: 0.99 if 4.5 < t < 5.5 else 0.0, labels
    )
    before = one_series("laptime_pod_cpu_cores_peak", lambda t: 9.0 if t < 1.5 else 0.0, labels)
    axum = (await used([counter, peaks])).component("server")
    assert axum is not None
    assert axum.cores_peak == pytest.approx(0.99)
    # What was used before the window is not its peak.
    axum = (await used([counter, before])).component("server")
    assert axum is not None
    assert axum.cores_peak == pytest.approx(0.62, abs=0.13)


async def test_a_peak_since_a_scrape_before_the_window_is_none_of_it() -> None:
    """Scrapes may be far apart, or fail: a peak is that since the one before."""
    labels = {"pod": "p", "component": "server", **TRIAL}
    counter = one_series(PODS, lambda t: 100 + 0.97 * t, labels)
    name = "laptime_pod_cpu_cores_peak"
    for without in ((-0.6, 3.0), (-6.0, 3.0)):
        peaks = one_series(name, lambda t: 1.8 if t < 4.0 else 0.98, labels, without=without)
        axum = (await used([counter, peaks])).component("server")
        assert axum is not None
        assert axum.cores_peak == pytest.approx(0.98)


async def test_the_exporter_beside_a_tier_does_not_count() -> None:
    pods = list(pod("demo-postgres-1-b", "postgres", cores=0.25))
    labels = {"pod": "demo-postgres-1-b", "component": "postgres", "container": "exporter"}
    pods.append(one_series("laptime_container_cpu_seconds_total", lambda t: 0.05 * t, labels))
    pods.append(one_series("laptime_container_memory_working_set_bytes", lambda _: 1e7, labels))
    # All the time in which the pod was held back it was the exporter, by its own limit.
    throttled = "laptime_container_cpu_throttled_periods_total"
    pods.append(one_series(throttled, lambda t: 5.0 * t, labels))
    postgres = (await used(pods)).component("postgres")
    assert postgres is not None
    assert postgres.cpu_seconds == pytest.approx(2.0)
    assert postgres.working_set_bytes == 90_000_000
    assert postgres.throttled_share == 0.0


async def test_several_generators_are_one_component() -> None:
    pods = [
        series
        for number in (1, 2)
        for series in pod(f"demo-trial-001-{number}-x", "generator", cores=0.5, labels=TRIAL)
    ]
    generator = (await used(pods)).component("generator")
    assert generator is not None
    assert generator.pods == 2
    assert generator.cpu_seconds == pytest.approx(10.0)
    assert generator.cores_peak == pytest.approx(1.0)
    assert generator.throttled_share == pytest.approx(0.5)
    assert generator.memory_peak_bytes == 300_000_000


# What is missing


async def test_an_agent_that_was_killed_leaves_a_gap_that_is_told() -> None:
    usage = await used(server(without=(3.0, 7.0)))
    assert not usage.complete
    assert usage.gaps == ["demo-server-axum-1-a: 5.0 s without a sample"]
    axum = usage.component("server")
    assert axum is not None
    # The counter went on: the sum is right all the same.
    assert axum.cpu_seconds == pytest.approx(15.0)


async def test_a_new_agent_goes_on_with_the_same_counter() -> None:
    def of_agent(instance: str, **options: Any) -> list[dict[str, Any]]:
        found = server(**options)
        for one in found:
            one["metric"]["instance"] = instance
        return found

    usage = await used(
        of_agent("10.0.0.1:9464", end=START + 4.4) + of_agent("10.0.0.2:9464", start=START + 5.2)
    )
    # So short a time hides no burst of a second.
    assert usage.complete
    axum = usage.component("server")
    assert axum is not None
    assert axum.cpu_seconds == pytest.approx(15.0)


async def test_memory_that_nobody_read_is_told_though_the_cpu_time_is_known() -> None:
    series = server()
    for one in series:
        if one["metric"]["__name__"] == "laptime_pod_memory_working_set_bytes":
            one["values"] = [sample for sample in one["values"] if float(sample[0]) > START + 5.0]
    usage = await used(series)
    assert not usage.complete
    (gap,) = usage.gaps
    assert gap.startswith("demo-server-axum-1-a: 5.")
    assert gap.endswith(" s without a sample of its memory")


async def test_a_missing_end_is_told() -> None:
    usage = await used(server(end=START + 8.4))
    assert not usage.complete
    assert usage.gaps == ["demo-server-axum-1-a: no samples for 1.6 s of the 10.0 s"]
    axum = usage.component("server")
    assert axum is not None
    assert axum.cpu_seconds == pytest.approx(15.0)


async def test_half_a_trial_gives_no_figure() -> None:
    usage = await used(server(end=START + 4.4))
    assert not usage.complete
    axum = usage.component("server")
    assert axum is not None
    assert (axum.cpu_seconds, axum.cores_mean) == (None, None)


async def test_a_counter_that_went_back_gives_no_figure() -> None:
    labels = {"pod": "p", "component": "server", **TRIAL}
    usage = await used([one_series(PODS, lambda t: 100 + t if t < 5 else t, labels)])
    assert usage.gaps == ["p: its CPU counter went back"]
    axum = usage.component("server")
    assert axum is not None
    assert axum.cpu_seconds is None


async def test_pods_of_before_are_left_out() -> None:
    old = list(pod("demo-postgres-0-a", "postgres", cores=1.0, end=START - 1.0))
    usage = await used(server() + old)
    assert usage.complete
    assert usage.component("postgres") is None


async def test_a_node_without_samples_is_told() -> None:
    usage = await trial_usage(FakePrometheus({PODS: server()}), WANTED)
    assert not usage.complete
    assert usage.gaps == ["no samples of node n1"]


async def test_without_the_agent_the_kubelet_is_asked_and_it_is_said() -> None:
    def cadvisor(pod_name: str, cores: float) -> dict[str, Any]:
        return one_series(
            KUBELET,
            lambda t: cores * (t + 100),
            {"namespace": "default", "pod": pod_name},
            start=START - 60.0,
            end=START + LENGTH + 60.0,
            step=10.0,
        )

    prometheus = FakePrometheus(
        {
            KUBELET: [
                cadvisor("demo-server-axum-5d86cdc77c-2gp5l", 1.5),
                cadvisor("demo-trial-001-xyz12", 0.5),
                cadvisor("demo-trial-002-xyz12", 0.5),
            ]
        }
    )
    usage = await trial_usage(prometheus, WANTED)
    assert usage.source is Source.KUBELET
    assert not usage.complete
    assert usage.gaps == ["only the kubelet's figures"]
    assert usage.resolution_seconds == 10.0
    assert [(one.component, one.server) for one in usage.components] == [
        ("generator", None),
        ("server", "axum"),
    ]
    axum = usage.component("server")
    assert axum is not None
    assert axum.cpu_seconds == pytest.approx(15.0)


POD_CGROUP = "/kubepods.slice/kubepods-pod0f.slice"
SANDBOX = {
    "id": f"{POD_CGROUP}/cri-containerd-4c.scope",
    "name": "4c",
    "image": "registry.k8s.io/pause:3.10",
}


@pytest.mark.parametrize("dropped", [(), ("image",), ("image", "name")])
@pytest.mark.parametrize("seconds", [0.0, 0.4])
async def test_the_sandbox_of_a_pod_is_not_the_pod(dropped: Sequence[str], seconds: float) -> None:
    """With containerd the kubelet has two series without a container: pod and pause container."""

    def cadvisor(rate: float, at_start: float, apart: float, **of_cgroup: str) -> dict[str, Any]:
        labels = {"namespace": "default", "pod": "demo-server-axum-5d86cdc77c-2gp5l"}
        labels |= {key: value for key, value in of_cgroup.items() if key not in dropped}
        return one_series(
            KUBELET,
            lambda t: at_start + rate * t,
            labels,
            start=START - 60.0 + apart,
            end=START + LENGTH + 60.0,
            step=10.0,
        )

    prometheus = FakePrometheus(
        {
            KUBELET: [
                cadvisor(0.9, 120.0, seconds, id=POD_CGROUP, name="", image=""),
                cadvisor(0.0, 0.03, 0.0, **SANDBOX),
            ]
        }
    )
    usage = await trial_usage(prometheus, WANTED)
    axum = usage.component("server")
    assert axum is not None
    assert usage.gaps == ["only the kubelet's figures"]
    assert axum.cores_mean == pytest.approx(0.9)
    assert axum.cores_peak == pytest.approx(0.9)


ON_N1 = Clocks(["n1"], {}, ["n1"])
"""What is known where a trial ran, and of nothing else."""


async def test_a_node_is_judged_where_agents_do_not_watch_the_pods_of_a_namespace() -> None:
    series = [*node(steal=0.1, all_pods=1.5), *tracking(lambda _: 262_000.0), frozen(2.0, 4.0)]
    usage = await trial_usage(FakePrometheus({NODES: series}), WANTED, ON_N1)
    assert (usage.source, usage.complete, usage.components) == (Source.NOBODY, False, [])
    assert usage.gaps == [
        "the agents tell of the nodes and of no pod of the run: see whether watching.namespaces of "
        "the chart names namespace default (docs/watching.md)"
    ]
    (one,) = usage.nodes
    assert (one.node, one.cpus) == ("n1", 2)
    assert one.stood_still_seconds == pytest.approx(2.0)
    # What the run itself used there nobody saw: it is not taken for that of others.
    assert (one.others_cores, one.other_pods_cores, one.neighbours) == (None, None, None)
    assert list(judge_usage(usage).reasons) == [
        "the hypervisor took 5.0% of the CPU time of node n1",
        "node n1 stood still for 2.0 s: nothing was seen to run there",
        "connection tracking of node n1 was 100% full, 0 packets dropped",
    ]


async def test_of_a_calm_node_whose_pods_are_not_watched_nobody_says_that_it_was_quiet() -> None:
    usage = await trial_usage(FakePrometheus({NODES: CALM}), WANTED, ON_N1)
    assert judge_usage(usage).reasons == ()
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN


WITHOUT = {**TRIAL, "run_uid": ""}
"""What an agent of the version before tells of a pod: not of which run it is."""


async def test_of_an_agent_that_does_not_tell_of_which_run_pods_are_nothing_is_taken() -> None:
    pods = list(pod(NAME, "server", cores=0.3, labels=WITHOUT))
    usage = await trial_usage(FakePrometheus({PODS: pods, NODES: CALM}), WANTED, ON_N1)
    assert (usage.source, usage.complete, usage.components) == (Source.NOBODY, False, [])
    assert usage.gaps == [WITHOUT_UID]
    (one,) = usage.nodes
    assert one.stolen_share == 0.0
    assert (one.others_cores, one.other_pods_cores, one.neighbours) == (None, None, None)
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN


async def test_where_no_nodes_are_known_it_is_not_said_that_nobody_has_a_sample() -> None:
    pods = list(pod(NAME, "server", cores=0.3, labels=WITHOUT))
    assert (await trial_usage(FakePrometheus({PODS: pods}), WANTED)).gaps == [WITHOUT_UID]


async def upgraded(end: float, start: float, *more: dict[str, Any]) -> TrialUsage:
    """Return what is read where an agent told of a server until `end`, and one with uids since."""
    before = list(pod(NAME, "server", cores=0.3, labels=WITHOUT, end=START + end))
    after = list(pod(NAME, "server", cores=0.3, labels=TRIAL, start=START + start))
    cpu = [one for one in (*before, *more) if one["metric"]["__name__"] == PODS]
    calm = list(node(all_pods=0.3))
    answers = {NAMES: cpu, PODS: [*before, *after, *more], NODES: calm}
    return await trial_usage(FakePrometheus(answers), WANTED, ON_N1)


@pytest.mark.parametrize(
    ("end", "start", "gaps"),
    [
        (3.4, 3.0, []),
        (3.4, 7.0, [f"{NAME}: 4.0 s without a sample"]),
        # The new one comes when the trial is over.
        (8.4, 12.0, [f"{NAME}: 4.0 s without a sample"]),
    ],
)
async def test_where_agents_are_upgraded_in_a_trial_a_pod_of_the_run_is_one_and_no_neighbour(
    end: float, start: float, gaps: list[str]
) -> None:
    usage = await upgraded(end, start)
    assert (usage.source, usage.gaps, usage.complete) == (Source.AGENT, gaps, not gaps)
    (axum,) = usage.components
    assert axum.pods == 1
    assert axum.cores_mean == pytest.approx(0.3)
    (one,) = usage.nodes
    assert one.other_pods_cores == pytest.approx(0.0)
    assert one.neighbours == []


@pytest.mark.parametrize("labels", [{"pod": "web"}, {"node": "n2"}])
async def test_no_other_pod_is_one_of_the_run_because_agents_are_upgraded(
    labels: dict[str, str],
) -> None:
    same = {**WITHOUT, "namespace": "default", "run": "demo", "pod": NAME, "node": "n1"}
    other = one_series(PODS, lambda t: 100 + t, {**same, **labels})
    usage = await upgraded(3.4, 3.0, other)
    assert usage.gaps == [WITHOUT_UID]
    (axum,) = usage.components
    assert (axum.component, axum.pods) == ("server", 1)
    assert axum.cores_mean == pytest.approx(0.3)


async def test_where_a_pod_is_not_known_to_be_of_the_run_nobody_knows_what_others_used() -> None:
    """It may be the server, which was gone before the new agent came."""
    tier = [
        one
        for labels, when in (({"run_uid": ""}, {"end": START + 8.4}), ({}, {"start": START + 8.0}))
        for one in pod("demo-postgres-1-b", "postgres", cores=0.1, labels=labels, **when)
    ]
    gone = list(pod(NAME, "server", cores=0.5, labels=WITHOUT, end=START + 10.4))
    calm = list(node(steal=0.0, all_pods=0.6))
    usage = await trial_usage(FakePrometheus({PODS: tier + gone, NODES: calm}), WANTED, ON_N1)
    assert usage.gaps == [WITHOUT_UID]
    assert [one.component for one in usage.components] == ["postgres"]
    (one,) = usage.nodes
    assert (one.others_cores, one.other_pods_cores, one.neighbours) == (None, None, None)
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN


async def test_who_is_told_of_only_after_a_trial_was_seen_by_nobody_in_it() -> None:
    """As where agents begin to watch the namespace."""
    pods = server(start=START + LENGTH + 1.0)
    usage = await trial_usage(FakePrometheus({PODS: pods, NODES: CALM}), WANTED, ON_N1)
    assert (usage.source, usage.components) == (Source.NOBODY, [])
    (gap,) = usage.gaps
    assert gap.startswith("the agents tell of pods of the run, and of none of them in this window")
    (one,) = usage.nodes
    assert (one.others_cores, one.other_pods_cores, one.neighbours) == (None, None, None)
    # The kubelet may have been watching all the time.
    labels = {"namespace": "default", "pod": "demo-server-axum-5d86cdc77c-2gp5l"}
    begin, end = START - 60.0, START + LENGTH + 60.0
    told = [one_series(KUBELET, lambda t: 1.5 * (t + 100), labels, start=begin, end=end)]
    answers = FakePrometheus({PODS: pods, NODES: CALM, KUBELET: told})
    assert (await trial_usage(answers, WANTED, ON_N1)).source is Source.KUBELET


async def test_who_is_told_of_from_later_on_may_have_used_before_what_others_seem_to() -> None:
    usage = await trial_usage(
        FakePrometheus({PODS: server(start=START + 3.0), NODES: CALM}), WANTED, ON_N1
    )
    assert usage.gaps == ["demo-server-axum-1-a: no samples for 3.4 s of the 10.0 s"]
    (one,) = usage.nodes
    assert (one.others_cores, one.other_pods_cores, one.neighbours) == (None, None, None)
    assert trial_isolation(usage, ["n1"]).word is Quietness.NOT_KNOWN


async def test_who_is_told_of_every_few_seconds_is_told_of_from_the_start() -> None:
    """A Prometheus of one's own may scrape seldom: then the first sample is as late."""
    pods = server(start=START + 1.5, step=3.0)
    usage = await trial_usage(FakePrometheus({PODS: pods, NODES: CALM}), WANTED, ON_N1)
    (one,) = usage.nodes
    assert one.others_cores is not None


async def test_beside_the_kubelets_figures_of_pods_stand_the_agents_of_their_nodes() -> None:
    labels = {"namespace": "default", "pod": "demo-server-axum-5d86cdc77c-2gp5l"}
    begin, end = START - 60.0, START + LENGTH + 60.0
    pods = [one_series(KUBELET, lambda t: 1.5 * (t + 100), labels, start=begin, end=end, step=10.0)]
    usage = await trial_usage(FakePrometheus({KUBELET: pods, NODES: list(node())}), WANTED, ON_N1)
    assert usage.source is Source.KUBELET
    assert usage.gaps == ["only the kubelet's figures"]
    (one,) = usage.nodes
    assert one.stolen_share == pytest.approx(0.05)
    assert one.others_cores is None
    # Where no agent tells of a node, nobody misses it.
    usage = await trial_usage(FakePrometheus({KUBELET: pods}), WANTED, ON_N1)
    assert (usage.gaps, usage.nodes) == (["only the kubelet's figures"], [])


async def test_nobody_knows_anything() -> None:
    usage = await trial_usage(FakePrometheus({}), WANTED, ON_N1)
    assert usage.source is Source.NOBODY
    assert usage.gaps == ["neither the agent nor the kubelet has a sample of this window"]
    assert not usage.complete
    assert usage.components == []


async def test_an_error_is_no_figure() -> None:
    refused = {"status": "error", "errorType": "bad_data", "error": "too many samples"}
    with pytest.raises(PrometheusError, match="bad_data: too many samples"):
        await trial_usage(FakePrometheus({PODS: refused}), WANTED)
    scalar = {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}
    with pytest.raises(PrometheusError, match="expected a matrix"):
        await trial_usage(FakePrometheus({PODS: scalar}), WANTED)


# The queries


async def test_what_is_asked_for_covers_the_window_on_both_sides() -> None:
    prometheus = FakePrometheus({PODS: server(), NODES: list(node())})
    await trial_usage(prometheus, WANTED)
    for path, parameters in prometheus.asked:
        assert path == "/api/v1/query"
        assert float(parameters["time"]) == START + LENGTH + 5.0
        assert parameters["query"].endswith("[20001ms]")


async def test_samples_of_hours_are_asked_for_in_pieces_and_are_one_series() -> None:
    """All at once, four hours of a server of sixteen processes took the operator's whole memory."""
    asked = []

    async def query(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        end, seconds = float(parameters["time"]), int(parameters["query"][8:-3]) / 1000
        asked.append(seconds)
        # As Prometheus does: from the begin of the range, which is no part of it, to its end.
        times = range(math.floor(end - seconds) + 1, math.floor(end) + 1)
        values = [[time, str(time - START)] for time in times]
        metric = {"__name__": "a", "pod": "early" if end < START + 3600 else "late"}
        return answer([{"metric": metric, "values": values}])

    found = await query_samples(query, '{a="b"}', Window(START, START + 3 * 3600.0))
    assert max(asked) <= 600.1
    assert [labels["pod"] for labels, _ in found] == ["early", "late"]
    early, late = (series for _, series in found)
    both = early.followed_by(late)
    assert list(both.times) == [START + second for second in range(-5, 3 * 3600 + 6)]
    assert list(both.values) == [time - START for time in both.times]
    assert late.times[0] == early.times[-1] + 1.0


def test_queries_name_the_run_and_the_trial() -> None:
    asked = agent_query(WANTED)
    assert 'namespace="default",run="demo",trial=~"|demo-trial-001"' in asked
    assert stalls_query(WANTED).startswith(
        '{__name__=~"laptime_pod_pressure_seconds_total|laptime_pod_disk_operations_total",'
    )
    assert 'component="server",resource=~"|io|memory",kind=~"|full"' in stalls_query(WANTED)
    assert 'pod=~"demo-.+",container="",image=""' in kubelet_query(WANTED)
    assert 'node=~"a\\\\.example|b"' in node_query(["b", "a.example"])


@pytest.mark.parametrize("name", ["", 'x"', "x}", "Demo", "a|b", "a.*", "-a", "a\n"])
def test_no_name_can_change_a_query(name: str) -> None:
    for names in (
        (name, "demo", UID, "t"),
        ("default", name, UID, "t"),
        ("default", "demo", name, "t"),
        ("default", "demo", UID, name),
    ):
        with pytest.raises(ValueError, match="is not the name of an object"):
            TrialWindow(*names, WINDOW)


@pytest.mark.parametrize(
    ("pod_name", "expected"),
    [
        ("demo-postgres-7f46f94844-gqjm5", ("postgres", None)),
        ("demo-haproxy-59b8bf7b7b-nrkvr", ("haproxy", None)),
        ("demo-server-my-app-5d86cdc77c-2gp5l", ("server", "my-app")),
        ("demo-service-pay-mock-5d86cdc77c-2gp5l", ("service-pay-mock", None)),
        ("demo-trial-001-abcde", ("generator", None)),
        ("demo-trial-002-abcde", None),
        ("demo-verify-axum-abcde", None),
        ("other-postgres-7f46f94844-gqjm5", None),
    ],
)
def test_a_pods_part_is_in_its_name(pod_name: str, expected: tuple[str, str | None] | None) -> None:
    assert component_of_pod(pod_name, WANTED) == expected
