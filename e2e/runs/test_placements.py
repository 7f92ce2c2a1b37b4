"""Placements on three nodes: the commands of docs/real-cluster.md, and where pods then are.

Labels and taints all nodes of the cluster, so it has one of its own: `make placements`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import CHART, OPERATOR_NAMESPACE, ROOT, Api, Tool
from laptime.api.usage import TrialUsage
from laptime.measure.clocks import Clock, Clocks, read_clocks
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import TrialWindow
from laptime.measure.timeseries import Window

from .harness import AXUM, POSTGRES_ALONE, Cluster, condition, light, run_manifest

pytestmark = pytest.mark.skipif(
    os.environ.get("LAPTIME_PLACEMENTS_TESTS") != "1",
    reason="labels and taints the nodes of a cluster with three; set LAPTIME_PLACEMENTS_TESTS=1",
)

PAGE = ROOT / "docs" / "real-cluster.md"
NAMESPACE = "bench"
RUN = "isolated"
MOST_COMMANDS = 10
# All nodes are tainted, and a scheduler looks at taints before it looks at labels.
_TOLERATED = [{"key": "dedicated", "operator": "Exists"}]


def _all_on(label: str | None) -> dict[str, Any]:
    """Return a placement of everything on the nodes of a label, or on any."""
    rules: dict[str, Any] = {"tolerations": _TOLERATED}
    rules |= {"nodeSelector": {"laptime": label}} if label else {}
    return dict.fromkeys(("servers", "tiers", "generators"), rules)


# Beside the page's own: one with a lane on each of two nodes, one that may be anywhere, one for
# another namespace, and one whose nodes are not there.
MORE = {
    # The page asks for a fourth node, which is not there.
    **{name: {"tolerations": _TOLERATED} for name in ("operator", "prometheus", "grafana")},
    "placements": {
        "laned": {"lanes": {"east": _all_on("servers"), "west": _all_on("generators")}},
        "anywhere": _all_on(None),
        "others": {"namespaces": ["elsewhere"]},
        "nowhere": {
            "servers": {"nodeSelector": {"laptime": "nowhere"}, "tolerations": _TOLERATED},
            # The verifier has a node, so that what ends the run is that the server has none.
            "generators": {"tolerations": _TOLERATED},
        },
    },
}


class Page:
    """What the page says to do for a first isolated run."""

    def __init__(self) -> None:
        section = PAGE.read_text().split("\n## The first isolated run\n")[1].split("\n## ")[0]
        self.files: dict[str, str] = {}
        self.commands: list[list[str]] = []
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S):
            if language == "yaml":
                name = text.partition("\n")[0].removeprefix("# ")
                self.files[name] = text
            else:
                lines = text.replace("\\\n", " ").splitlines()
                self.commands += [shlex.split(line) for line in lines]


@pytest.fixture(scope="module")
def nodes(reader: Api) -> list[str]:
    """The names of the three nodes."""
    names = sorted(reader.names("/api/v1/nodes"))
    assert len(names) == 3
    return names


@pytest.fixture(scope="module")
def said(
    kubectl: Tool,
    helm: Tool,
    reader: Api,
    kubeconfig: str,
    release: str,
    nodes: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """What each command of the page says, done one after the other; all is taken back at the end.

    The images are those that the release has, and the nodes those of this cluster.
    """
    page, folder = Page(), tmp_path_factory.mktemp("page")
    assert len(page.commands) <= MOST_COMMANDS
    # Else Laptime's own pods could be on the nodes of runs, for good.
    order = [command[1] for command in page.commands if command[0] in ("kubectl", "helm")]
    assert order.index("taint") < order.index("install") < order.index("apply")
    for name, text in page.files.items():
        (folder / name).write_text(text)
    (folder / "more.yaml").write_text(yaml.safe_dump(MORE))
    laptime = Tool(str(Path(sys.executable).parent / "laptime"), kubeconfig)
    found: dict[str, str] = {}
    # Before anything is to be taken back: somebody's stays as it is, and nothing is done.
    assert reader.find(f"/api/v1/namespaces/{NAMESPACE}") is None, f"{NAMESPACE} is somebody's"
    assert not any(_marks(reader, node) for node in nodes), "nodes have labels or taints already"
    try:
        for command in page.commands:
            program, *words = (_here(word, nodes, folder) for word in command)
            if program == "helm":
                # Nothing is pulled here: the images are those that were loaded.
                registry = words.index("images.registry=registry.example")
                del words[registry - 1 : registry + 1]
                words[0:1] = ["upgrade", "--install", "--reset-then-reuse-values"]
                words += ["--values", str(folder / "more.yaml"), "--timeout", "180s"]
                found[shlex.join(command)] = helm(*words, timeout=240)
            elif words[0] == "laptime":
                found[shlex.join(command)] = laptime(*words[1:])
            else:
                found[shlex.join(command)] = kubectl(*words, timeout=1300)
        yield found
    finally:
        kubectl.run("taint", "node", *nodes, "dedicated-")
        kubectl.run("label", "node", *nodes, "laptime-")
        kubectl.run("delete", "namespace", NAMESPACE, timeout=180)


def _marks(reader: Api, node: str) -> list[str]:
    """Return what a node has that the page's commands would give it."""
    found = reader.get(f"/api/v1/nodes/{node}")
    taints = [one["key"] for one in found["spec"].get("taints") or []]
    keys = (*taints, *found["metadata"]["labels"])
    return [key for key in keys if key in ("dedicated", "laptime")]


def _here(word: str, nodes: list[str], folder: Path) -> str:
    """Return a word of a command of the page as it is in this cluster and on this machine."""
    if word == "charts/laptime":
        return str(CHART)
    if word.endswith(".yaml"):
        return str(folder / word)
    for number, node in enumerate(nodes, 1):
        if word == f"bench-{number}":
            return node
    return word


@pytest.fixture
def bench(kubectl: Tool, reader: Api, said: dict[str, str]) -> Cluster:
    """The namespace of the page, after its commands."""
    return Cluster(kubectl, reader, NAMESPACE)


def test_the_commands_of_the_page_measure_a_run_and_report_it(
    said: dict[str, str], bench: Cluster
) -> None:
    report = list(said.values())[-1]
    assert "- Placement: isolated" in report
    status = bench.status(RUN)
    assert status["state"] == "Succeeded"
    assert status["placement"]["name"] == "isolated"


def test_each_part_of_each_trial_was_on_the_nodes_that_its_placement_has(
    bench: Cluster, nodes: list[str]
) -> None:
    servers, tiers, generators = nodes
    bench.wait_folded(RUN)
    trials = bench.documents(RUN)
    assert len(trials) == 10
    for one in trials.values():
        assert one["nodes"] == {
            "server": [servers], "postgres": [tiers], "generator": [generators],
        }  # fmt: skip
        # How long it takes between two nodes is the machine's: 5 µs where a quick one has both.
        assert 0 < one["network"]["roundTripSeconds"] < 0.02
        assert one["network"]["segmentsSent"] > 1000


def refused(bench: Cluster, name: str, placement: str) -> dict[str, Any]:
    """Apply a run with a placement; return why it is not accepted, once that is said."""
    manifest = run_manifest(name, [AXUM], placement=placement, topology=POSTGRES_ALONE)
    run = bench.apply(manifest)
    began = time.monotonic()
    status = bench.wait(run, "Accepted", lambda it: bool(condition(it, "Accepted")), 10)
    # A second, and what asking every 0.3 s takes.
    assert time.monotonic() - began < 1.5
    found = condition(status, "Accepted")
    assert found["status"] == "False"
    bench.delete("benchmarkrun", run)
    return found


def test_a_placement_that_is_not_there_or_not_its_own_is_refused(bench: Cluster) -> None:
    missing = refused(bench, "missing", "isolatd")
    assert missing["reason"] == "PlacementMissing"
    assert "anywhere, isolated, laned, nowhere" in missing["message"]
    assert "others" not in missing["message"]
    foreign = refused(bench, "foreign", "others")
    assert foreign["reason"] == "PlacementNotAllowed"
    assert "anywhere, isolated, laned, nowhere" in foreign["message"]


def test_a_placement_without_nodes_is_said_and_ends_the_run(bench: Cluster) -> None:
    server = {"name": "mine", "image": "registry.example/never-pulled:1"}
    manifest = run_manifest(
        "nowhere", [server], placement="nowhere", topology={}, loads=light(), scenario="hello"
    )
    run = bench.apply(manifest)
    status = bench.wait(
        run,
        "that there are no nodes",
        lambda it: condition(it, "Progressing").get("reason") == "PlacementWithoutNodes",
        30,
    )
    message = condition(status, "Progressing")["message"]
    assert "placement nowhere has no node for its servers" in message
    assert "placements.nowhere.servers of Laptime's chart" in message
    status = bench.wait_end(run, 400)
    assert condition(status, "Succeeded")["reason"] == "PlacementWithoutNodes"


def test_two_runs_in_two_lanes_are_measured_at_once_each_on_its_node(
    bench: Cluster, nodes: list[str]
) -> None:
    where = {"east": nodes[0], "west": nodes[2]}
    runs = [
        bench.apply(
            run_manifest(
                name,
                [AXUM],
                placement="laned",
                topology=POSTGRES_ALONE,
                loads=[
                    {
                        "name": "short",
                        "closed": {"connections": 2, "duration": "3s"},
                        "warmup": "1s",
                    }
                ],
                repetitions=3,
            )
        )
        for name in ("laned-1", "laned-2")
    ]
    lanes, spans = [], []
    for run in runs:
        status = bench.wait_end(run, 400)
        assert status["state"] == "Succeeded", status
        lanes.append(status["placement"]["lane"])
        bench.wait_folded(run)
        trials = bench.documents(run).values()
        for one in trials:
            node = [where[lanes[-1]]]
            assert one["nodes"] == {"server": node, "postgres": node, "generator": node}
        spans.append([(one["startedAt"], one["finishedAt"]) for one in trials])
    assert sorted(lanes) == ["east", "west"]
    both = [(a, b) for a in spans[0] for b in spans[1] if a[0] < b[1] and b[0] < a[1]]
    print(f"trials of two lanes that were measured at once: {len(both)} pairs of {spans}")
    assert both


def test_where_nodes_rotate_each_repetition_is_on_another_node(
    bench: Cluster, nodes: list[str]
) -> None:
    servers = [{**AXUM, "name": "one"}, {**AXUM, "name": "two"}]
    manifest = run_manifest(
        "round",
        servers,
        placement="anywhere",
        nodes="rotate",
        topology=POSTGRES_ALONE,
        loads=light(),
        repetitions=4,
    )
    run = bench.apply(manifest)
    status = bench.wait_end(run, 600)
    assert status["state"] == "Succeeded", status
    bench.wait_folded(run)
    turns: dict[int, set[str]] = {}
    for one in bench.documents(run).values():
        turns.setdefault(one["repetition"], set()).update(one["nodes"]["server"])
        assert not any("may be the nodes" in said for said in one["validityReasons"]), one
    order = [turns[number] for number in sorted(turns)]
    print(f"nodes of the servers, by repetition: {order}")
    assert all(len(one) == 1 for one in order), order
    assert set.union(*order[:3]) == set(nodes), order
    assert order[3] <= set(nodes)


AHEAD_SECONDS = 0.3
MOST_OFF = 0.02
"""Of a CPU figure, by a clock that is wrong."""
PROMETHEUS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy"


@contextmanager
def ahead(node: str, seconds: float, kubectl: Tool) -> Iterator[None]:
    """Have the clock of the agent on a node be fast."""

    def set_clock(fast: float) -> None:
        command = ["python3", str(ROOT / "cluster" / "cluster.py"), "clock", node, f"{fast:g}"]
        subprocess.run(command, check=True, capture_output=True)
        kubectl("rollout", "status", "daemonset/laptime-agent", "-n", OPERATOR_NAMESPACE)

    set_clock(seconds)
    try:
        yield
    finally:
        set_clock(0.0)


async def read_again(
    reader: Api, trial: dict[str, Any], name: str, uid: str
) -> tuple[TrialUsage, TrialUsage, TrialUsage]:
    """Return what a trial used: as it is read, with the offset that is known, and with none."""

    async def query(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await asyncio.to_thread(
            reader.get, PROMETHEUS + path, **parameters
        )
        return found

    start = datetime.fromisoformat(trial["startedAt"]).timestamp()
    window = Window(start, start + trial["figures"]["windowSeconds"])
    wanted = TrialWindow(NAMESPACE, name, uid, trial["trial"], window)
    measured = await read_clocks(query, wanted, trial["nodes"])
    (server,) = trial["nodes"]["server"]
    right = {node: Clock(0.0, 0.0) for node in measured.asked} | {server: Clock(AHEAD_SECONDS, 0.0)}
    known = Clocks(measured.generators, right, measured.asked)
    return (
        await trial_usage(query, wanted, measured),
        await trial_usage(query, wanted, known),
        await trial_usage(query, wanted),
    )


SLOW_BITS = 16e6
"""What the link of a node lets through."""


@contextmanager
def slow_link(node: str, kubeconfig: str) -> Iterator[None]:
    """Have a node send no more than that to all others."""
    network = Path("/run") / Path(kubeconfig).parent.name / "namespaces" / node / "network"
    inside = ["nsenter", f"--net={network}", "tc", "qdisc"]
    shaped = ["root", "tbf", "rate", f"{SLOW_BITS:.0f}bit", "burst", "32kb", "latency", "50ms"]
    subprocess.run([*inside, "replace", "dev", "node0", *shaped], check=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "delete", "dev", "node0", "root"], check=True)


def test_what_two_nodes_exchange_is_what_their_link_lets_through_and_limits_a_trial(
    bench: Cluster, kubeconfig: str, nodes: list[str]
) -> None:
    server, _, generator = nodes
    manifest = run_manifest(
        "link",
        [AXUM],
        placement="isolated",
        topology=POSTGRES_ALONE,
        loads=[{"name": "full", "closed": {"connections": 32, "duration": "5s"}, "warmup": "2s"}],
        repetitions=2,
    )
    with slow_link(server, kubeconfig):
        run = bench.apply(manifest)
        status = bench.wait_end(run, 300)
    assert status["state"] == "Succeeded", status
    (path,) = status["nodePaths"]
    assert (path["generatorNode"], path["serverNode"]) == (generator, server), path
    sent, answered = (8 * path[f"{way}BytesPerSecond"] for way in ("toServer", "fromServer"))
    print(
        f"{generator} to {server} {sent / 1e6:,.0f} Mbit/s, back {answered / 1e6:,.2f} of "
        f"{SLOW_BITS / 1e6:.0f} Mbit/s, round trip {1e6 * path['roundTripSeconds']:,.0f} us"
    )
    # Of each packet of 1,514 bytes 66 are headers, and a bucket of 32 KiB is full at the start.
    assert 0.9 * SLOW_BITS < answered < 1.03 * SLOW_BITS
    assert not path["fromServerAtLeast"]
    # The other way nothing holds it up but acknowledgements.
    assert sent > 4 * SLOW_BITS
    bench.wait_folded(run)
    document = json.loads(bench.stored(run).files["results.json"])
    assert document["run"]["nodePaths"] == [path]
    first, second = sorted(document["trials"], key=lambda one: one["ordinal"])
    for one in (first, second):
        assert one["attempt"] == 1, one
        # The trial before it was measured, too.
        print(one["limitedBy"]["evidence"])
        assert one["limitedBy"]["cause"] == "network", one["limitedBy"]
    (row,) = document["rows"]
    assert row["limitedBy"]["cause"] == "network", row["limitedBy"]


def test_a_clock_that_is_ahead_changes_no_cpu_figure(
    bench: Cluster, kubectl: Tool, reader: Api, nodes: list[str]
) -> None:
    # A few seconds with nothing before and after: what a wrong clock reads there is missing.
    short = {"connections": 4, "duration": "3s", "keepAlive": True}
    loads = [{"name": "short", "closed": short, "warmup": "0s"}]
    manifest = run_manifest(
        "clock", [AXUM], placement="isolated", topology=POSTGRES_ALONE, loads=loads, repetitions=3
    )
    with ahead(nodes[0], AHEAD_SECONDS, kubectl):
        run = bench.apply(manifest)
        status = bench.wait_end(run, 300)
        assert status["state"] == "Succeeded", status
        bench.wait_folded(run)
    trials = bench.documents(run)
    stored = bench.documents(run, "readings.json")
    assert len(trials) == 3
    without = []
    uid = bench.get("benchmarkrun", run)["metadata"]["uid"]
    for name, trial in trials.items():
        assert trial["nodes"]["server"] == [nodes[0]]
        measured, known, uncorrected = asyncio.run(read_again(reader, trial, run, uid))
        assert measured.complete, measured.gaps
        (found,) = (one for one in measured.nodes if one.node == nodes[0])
        fast = found.clock_ahead_seconds or 0.0
        assert fast == pytest.approx(AHEAD_SECONDS, abs=0.03)
        kept = TrialUsage.model_validate(stored[name]["usage"])
        for part in ("server", "postgres", "generator"):
            true = cpu_seconds(known, part)
            assert cpu_seconds(measured, part) == pytest.approx(true, rel=MOST_OFF), part
            assert cpu_seconds(kept, part) == pytest.approx(true, rel=MOST_OFF), part
        true, less = cpu_seconds(known, "server"), cpu_seconds(uncorrected, "server")
        without.append(1 - less / true)
        print(
            f"{name}: server {true:.3f} CPU-s; as stored {cpu_seconds(kept, 'server'):.3f} "
            f"(clock {1e3 * fast:.0f} ms ahead), without correction {less:.3f}"
        )
    # Else the test would say nothing.
    assert min(without) > 2 * MOST_OFF, without


def cpu_seconds(usage: TrialUsage, part: str) -> float:
    """Return the CPU time of a part."""
    found = usage.component(part)
    assert found is not None, usage
    assert found.cpu_seconds, usage
    return found.cpu_seconds
