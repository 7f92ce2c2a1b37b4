"""What /metrics says, read by Prometheus' own parser."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from laptime_agent.exposition import Exposition, escaped
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.main import is_fresh, own_metrics
from laptime_agent.network import ProcessNetwork
from laptime_agent.node import Node
from laptime_agent.pods import Pod
from laptime_agent.sampler import Sampler
from laptime_agent.server import make_server
from laptime_agent.speed import WORK
from laptime_agent.visitors import MOST_VISITORS

UID = "0a1b2c3d-1111-2222-3333-444455556666"
CONTAINER = "4f" * 32
FIXTURES = Path(__file__).parent / "fixtures"
RUN_UID = "7e2d8a70-4f0a-4f0b-9f2c-3b8f5c0f9a11"
LABELS = {
    "run": "demo",
    "run_uid": RUN_UID,
    "component": "server",
    "server": "axum",
    "load": "",
    "trial": "t-001",
}
EXPECTED = {
    "namespace": "default",
    "pod": "demo-server-axum-1",
    "node": "n1",
    "run": "demo",
    "run_uid": RUN_UID,
    "component": "server",
    "server": "axum",
    "trial": "t-001",
}


def make_pod(**changes: object) -> Pod:
    fields = {
        "uid": UID,
        "cgroup_uid": UID,
        "namespace": "default",
        "name": "demo-server-axum-1",
        "labels": LABELS,
        "containers": {"server": CONTAINER},
        "host_network": False,
        "over": False,
        **changes,
    }
    return Pod(**fields)  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "v1", tmp_path / "cgroup")
    return tmp_path / "cgroup"


@pytest.fixture
def sampler(tree: Path) -> Sampler:
    sampler = Sampler(Hierarchy(str(tree)), Node(), None)
    sampler.tell("test", {UID: make_pod()})
    return sampler


def set_cpu(tree: Path, nanoseconds: int) -> None:
    for file in tree.rglob("cpuacct.usage"):
        file.write_text(f"{nanoseconds}\n")


def samples(exposition: Exposition, reader: str = "r") -> dict[str, list[Sample]]:
    text = exposition.render(reader).decode()
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type in ("counter", "gauge", "summary")
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_a_pod_is_written_with_its_labels_and_the_time_of_its_reading(sampler: Sampler) -> None:
    before = time.time()
    sampler.tick(everything=True)
    after = time.time()
    time.sleep(0.05)
    found = samples(Exposition(sampler, "n1", own_metrics(sampler)))
    (cpu,) = found["laptime_pod_cpu_seconds_total"]
    assert cpu.labels == EXPECTED
    assert cpu.value == 0.661014928
    assert before - 0.001 <= float(str(cpu.timestamp)) <= after + 0.001
    assert found["laptime_pod_cpu_throttled_seconds_total"][0].value == 0.493109621
    assert found["laptime_pod_cpu_throttled_periods_total"][0].value == 23
    assert found["laptime_pod_memory_working_set_bytes"][0].value == 71012352 - 31457280
    assert found["laptime_pod_memory_peak_bytes"][0].value == 102608896
    (container,) = found["laptime_container_cpu_seconds_total"]
    assert container.labels == {**EXPECTED, "container": "server"}
    (periods,) = found["laptime_container_cpu_throttled_periods_total"]
    assert (periods.labels, periods.value) == ({**EXPECTED, "container": "server"}, 23)
    pressure = {
        (one.labels["resource"], one.labels["kind"]): one.value
        for one in found["laptime_pod_pressure_seconds_total"]
    }
    assert pressure["cpu", "some"] == 2.650452
    assert len(pressure) == 6
    assert "laptime_pod_network_receive_bytes_total" not in found


def test_a_scrape_reads_nothing_anew(sampler: Sampler, tree: Path) -> None:
    sampler.tick(everything=True)
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    first = samples(exposition)["laptime_pod_cpu_seconds_total"]
    set_cpu(tree, 999_999_999_999)
    assert samples(exposition)["laptime_pod_cpu_seconds_total"] == first
    time.sleep(0.002)
    sampler.tick(everything=True)
    assert samples(exposition)["laptime_pod_cpu_seconds_total"][0].value == 999.999999999


def test_a_scrape_has_every_reading_since_the_one_before(sampler: Sampler, tree: Path) -> None:
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    sampler.tick(everything=False)
    # The first reading of a pod is one of everything, and not only of its CPU counter.
    assert "laptime_pod_memory_working_set_bytes" in samples(exposition, "early")
    for second in (1, 2, 3):
        time.sleep(0.002)
        set_cpu(tree, second * 10**9)
        sampler.tick(everything=False)
    first, *later = samples(exposition, "late")["laptime_pod_cpu_seconds_total"]
    assert [one.value for one in later] == [1.0, 2.0, 3.0]
    times = [float(str(one.timestamp)) for one in (first, *later)]
    assert times == sorted(set(times))
    assert samples(exposition, "early")["laptime_pod_cpu_seconds_total"] == later


def test_the_node_is_written(sampler: Sampler) -> None:
    sampler.tick(everything=True)
    found = samples(Exposition(sampler, "n1", own_metrics(sampler)))
    modes = {one.labels["mode"]: one for one in found["laptime_node_cpu_seconds_total"]}
    assert {"user", "system", "idle", "steal"} <= set(modes)
    assert modes["idle"].labels["node"] == "n1"
    assert found["laptime_node_cpus"][0].value >= 1
    assert "laptime_node_stood_still_seconds_total" not in found
    assert sampler.node is not None
    sampler.node = replace(sampler.node, stood_still_seconds=2.5)
    found = samples(Exposition(sampler, "n1", own_metrics(sampler)))
    assert found["laptime_node_stood_still_seconds_total"][0].value == 2.5
    # What is read is what was done before it.
    for name in ("count", "sum"):
        (probe,) = found[f"laptime_node_probe_cpu_seconds_{name}"]
        assert probe.labels == {"node": "n1", "work": WORK}
        assert probe.value == 0
    sampler.tick(everything=False)
    sampler.tick(everything=True)
    found = samples(Exposition(sampler, "n1", own_metrics(sampler)))
    assert found["laptime_node_probe_cpu_seconds_count"][0].value == 2
    assert 1e-5 < found["laptime_node_probe_cpu_seconds_sum"][0].value < 1
    assert found["laptime_node_info"][0].labels["kernel"] == os.uname().release
    total = found["laptime_node_memory_total_bytes"][0].value
    assert 0 < found["laptime_node_memory_available_bytes"][0].value < total
    assert found["laptime_agent_pods"][0].value == 1
    assert found["process_cpu_seconds_total"][0].value > 0
    assert 10e6 < found["process_resident_memory_bytes"][0].value < 1e9


def test_the_nodes_time_has_that_of_the_reader(sampler: Sampler) -> None:
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    before = time.time()
    (clock,) = samples(exposition)["laptime_node_clock_seconds"]
    assert before <= clock.value <= time.time()
    assert clock.timestamp is None
    assert clock.labels == {"node": "n1"}


def test_whoever_sets_the_nodes_clock_moves_when_it_booted(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    now = time.time
    (before,) = samples(exposition)["laptime_node_boot_time_seconds"]
    assert before.value == pytest.approx(now() - time.clock_gettime(time.CLOCK_BOOTTIME), abs=0.1)
    assert before.timestamp is None
    assert before.labels == {"node": "n1"}
    monkeypatch.setattr(time, "time", lambda: now() + 0.9)
    (after,) = samples(exposition)["laptime_node_boot_time_seconds"]
    assert after.value - before.value == pytest.approx(0.9, abs=0.1)


def test_an_agent_that_is_taken_off_the_cpu_moves_no_boot(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    now, late = time.time, iter([0.3, 0.0, 0.3])

    def slow() -> float:
        time.sleep(next(late, 0.0))
        return now()

    monkeypatch.setattr(time, "time", slow)
    (one,) = samples(exposition)["laptime_node_boot_time_seconds"]
    booted = now() - time.clock_gettime(time.CLOCK_BOOTTIME)
    assert one.value == pytest.approx(booted, abs=0.05)


def test_a_peak_has_no_time_of_its_own(sampler: Sampler) -> None:
    sampler.tick(everything=True)
    time.sleep(1.0)
    sampler.tick(everything=False)
    (peak,) = samples(Exposition(sampler, "n1", own_metrics(sampler)))["laptime_pod_cpu_cores_peak"]
    assert peak.timestamp is None
    assert peak.value == 0.0


def test_a_pod_that_the_api_server_took_back_is_told_of_once_more_and_then_gone(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler.tick(everything=True)
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    last = samples(exposition)["laptime_pod_cpu_seconds_total"]
    sampler.tell("test", {})
    sampler.tick(everything=True)
    found = samples(exposition)
    assert found["laptime_pod_cpu_seconds_total"] == last
    assert found["laptime_agent_pods"][0].value == 0
    monkeypatch.setattr("laptime_agent.tracking.LINGER_SECONDS", 0.0)
    assert "laptime_pod_cpu_seconds_total" not in samples(exposition)
    sampler.tick(everything=True)
    assert sampler.pods == ()


def test_two_sources_do_not_take_pods_from_each_other(sampler: Sampler) -> None:
    sampler.tell("another namespace", {})
    sampler.tick(everything=True)
    assert len(sampler.pods) == 1


def test_a_pod_that_is_over_before_it_was_seen_is_not_looked_for(sampler: Sampler) -> None:
    sampler.tell("test", {UID: make_pod(over=True)})
    sampler.tick(everything=True)
    assert sampler.pods == ()


def test_a_pod_that_ends_is_read_to_its_end(sampler: Sampler) -> None:
    sampler.tick(everything=True)
    sampler.tell("test", {UID: make_pod(over=True)})
    sampler.tick(everything=True)
    assert sampler.pods[0].newest is not None


def test_what_a_container_was_throttled_stays_after_its_restart(
    sampler: Sampler, tree: Path
) -> None:
    sampler.tick(everything=True)
    new = "5a" * 32
    for controller in ("cpu", "cpuacct", "memory", "unified"):
        pod = tree / controller / "kubepods" / "burstable" / f"pod{UID}"
        shutil.copytree(pod / CONTAINER, pod / new)
    sampler.tell("test", {UID: make_pod(containers={"server": new})})
    sampler.tick(everything=True)
    reading = sampler.pods[0].newest
    assert reading is not None
    assert reading.throttled_nanoseconds == 2 * 493109621
    assert reading.throttled_periods == 46


def test_the_network_of_a_pod_is_written(sampler: Sampler) -> None:
    sampler.tick(everything=True)
    assert sampler.pods[0].wants_network
    sampler.pods[0].follow(ProcessNetwork("/proc", 1))
    sampler.tick(everything=True)
    found = samples(Exposition(sampler, "n1", own_metrics(sampler)))
    assert found["laptime_pod_network_receive_bytes_total"][0].labels == EXPECTED
    assert found["laptime_pod_network_transmit_bytes_total"][0].value >= 0


def test_what_a_pod_does_at_each_disk_is_written_where_the_kernel_tells(
    sampler: Sampler, tree: Path
) -> None:
    sampler.tick(everything=True)
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    assert "laptime_pod_disk_operations_total" not in samples(exposition)
    file = tree / "unified" / "kubepods" / "burstable" / f"pod{UID}" / "io.stat"
    file.write_text(
        "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
        "253:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"
    )
    again = Sampler(Hierarchy(str(tree)), Node(), None)
    again.tell("test", {UID: make_pod()})
    again.tick(everything=True)
    found = samples(Exposition(again, "n1", own_metrics(again)))
    first, second = found["laptime_pod_disk_operations_total"]
    assert (first.labels, first.value) == ({**EXPECTED, "device": "8:0"}, 3)
    assert (second.labels, second.value) == ({**EXPECTED, "device": "253:0"}, 1)
    assert first.timestamp == found["laptime_pod_pressure_seconds_total"][0].timestamp


def test_labels_are_escaped() -> None:
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'


def test_the_endpoint_is_on_ipv6_where_the_pod_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_IP", "2001:db8::7")
    server = make_server(0, str.encode, lambda: True)
    Thread(target=server.serve_forever, daemon=True).start()
    asked = urllib.request.urlopen(f"http://[::1]:{server.server_port}/metrics").read()
    server.shutdown()
    assert asked == b"::1"


@pytest.fixture
def address(sampler: Sampler) -> Iterator[str]:
    exposition = Exposition(sampler, "n1", own_metrics(sampler))
    server = make_server(0, exposition.render, lambda: is_fresh(sampler))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_endpoint(sampler: Sampler, address: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"{address}/healthz")
    sampler.tick(everything=True)
    assert urllib.request.urlopen(f"{address}/healthz").read() == b"ok\n"
    answer = urllib.request.urlopen(f"{address}/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"laptime_pod_cpu_seconds_total{" in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}/")


def test_whoever_holds_connections_keeps_neither_prometheus_nor_the_kubelet_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever has to leave does so at once; how soon that is says something of the machine.
    monkeypatch.setattr("laptime_agent.visitors._SOON_SECONDS", 60.0)
    server = make_server(0, str.encode, lambda: True)
    Thread(target=server.serve_forever, daemon=True).start()
    before = threading.active_count()
    prometheus = HTTPConnection(
        "127.0.0.1", server.server_port, timeout=30, source_address=("127.0.0.2", 0)
    )
    strangers = []
    for _ in range(20):
        for _ in range(MOST_VISITORS):
            where = ("127.0.0.1", server.server_port)
            strangers.append(socket.create_connection(where, source_address=("127.0.0.9", 0)))
        # Over the one connection that it keeps.
        prometheus.request("GET", "/metrics")
        assert prometheus.getresponse().read() == b"127.0.0.2"
        used = prometheus.sock
        assert urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/healthz").read()
        assert prometheus.sock is used
        assert threading.active_count() - before <= MOST_VISITORS
    prometheus.close()
    for one in strangers:
        one.close()
    server.shutdown()
    server.server_close()
