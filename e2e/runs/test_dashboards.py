"""What each panel would say of real runs is what is true of them, whatever comes of a run."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from conftest import CHART, OPERATOR_NAMESPACE, Api
from laptime.measure.generator import GeneratorResult, parse_payload

from .harness import (
    AXUM,
    POSTGRES_ALONE,
    SYNC,
    Cluster,
    light,
    operator_pids,
    run_manifest,
)
from .truths.facts import Facts, moment
from .truths.grafana import Answers, Series
from .truths.panels import OF_ALL_RUNS, PANELS

SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy"
DASHBOARDS = {
    file.stem: json.loads(file.read_text())
    for file in sorted((CHART / "files" / "dashboards").glob("*.json"))
}
SCRAPE_OF_OPERATOR_SECONDS = 5.0


def panels_of(uid: str) -> dict[str, dict[str, Any]]:
    """Return the panels of a dashboard by its name and theirs."""
    every = [p for panel in DASHBOARDS[uid]["panels"] for p in (panel, *panel.get("panels", ()))]
    return {f"{uid}: {one['title']}": one for one in every if one["type"] != "row"}


SHOWN = {name: panel for uid in DASHBOARDS for name, panel in panels_of(uid).items()}


class Reader:
    """Asks what Grafana would ask, with the variables of a dashboard and the time of a run."""

    def __init__(self, api: Api, begin: float, end: float) -> None:
        self._api = api
        self._begin = begin
        self._end = end
        self.asked: list[tuple[str, dict[str, str]]] = []
        """All that was asked: where, and with which parameters."""
        self.increase = functools.cache(self._increase)

    def variables(self, dashboard: dict[str, Any], chosen: dict[str, str]) -> dict[str, str]:
        """Return the value of each variable: the chosen ones, and all there are of the others."""
        values: dict[str, str] = {}
        for variable in dashboard["templating"]["list"]:
            name = variable["name"]
            if variable["type"] == "custom":
                values[name] = variable["current"]["value"]
            elif variable["type"] == "query":
                found = self._values_of(variable["query"]["query"], values)
                # A run that came to no trial has no load; Grafana puts in nothing then.
                assert found or variable.get("multi"), f"{dashboard['title']}: {name} has no value"
                assert name not in chosen or chosen[name] in found
                every = f"({'|'.join(re.escape(one) for one in found)})".replace("\\", "\\\\")
                every = variable.get("allValue") or every
                # One that cannot have several values has the first of them.
                values[name] = chosen.get(name) or (every if variable.get("multi") else found[0])
        return values

    def answer(self, target: dict[str, Any], values: dict[str, str]) -> list[Series]:
        """Return what a query brings: at the end of the time, or at each step of it."""
        step = int(_filled(target.get("interval") or "5s", values).removesuffix("s"))
        intervals = {"__rate_interval": f"{4 * step}s", "__interval": f"{step}s"}
        expr = _filled(target["expr"], {**values, **intervals})
        if target.get("instant"):
            data = self._ask("query", {"query": expr, "time": f"{self._end:.3f}"})
        else:
            window = {"start": f"{self._begin:.3f}", "end": f"{self._end:.3f}", "step": f"{step}s"}
            data = self._ask("query_range", {"query": expr, **window})
        found = [
            Series(
                one["metric"],
                [
                    (float(at), float(value))
                    for at, value in one.get("values") or [one["value"]]
                    if not math.isnan(float(value))
                ],
            )
            for one in data["result"]
        ]
        return [one for one in found if one.samples]

    def _increase(self, selector: str) -> float:
        """Return by how much counters grew in the time, and in the longest window before it."""
        seconds = math.ceil(self._end - self._begin) + 20
        expr = f"sum(increase({selector}[{seconds}s]))"
        data = self._ask("query", {"query": expr, "time": f"{self._end:.3f}"})
        return sum(float(one["value"][1]) for one in data["result"])

    def _values_of(self, text: str, values: dict[str, str]) -> list[str]:
        asked = re.fullmatch(r"query_result\((scalar\(.*\))\)", text)
        if asked is not None:
            expr = _filled(asked[1], values)
            end = f"{self._end:.3f}"
            return [self._ask("query", {"query": expr, "time": end})["result"][1]]
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", text)
        assert found is not None, text
        window = {"start": f"{self._begin:.3f}", "end": f"{self._end:.3f}"}
        parameters = {"match[]": _filled(found[1], values), **window}
        answer = self._ask(f"label/{found[2]}/values", parameters)
        assert isinstance(answer, list)
        return answer

    def _ask(self, path: str, parameters: dict[str, str]) -> Any:
        self.asked.append((path, parameters))
        answer = self._api.get(f"{SERVICE}/api/v1/{path}", **parameters)
        assert answer["status"] == "success", answer
        return answer["data"]


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda one: values[one[1]], text)


class Said:
    """What all panels say of a run at one moment, in the time since it got its turn."""

    def __init__(self, cluster: Cluster, run: str) -> None:
        self._cluster, self._run = cluster, run
        found = cluster.get("benchmarkrun", run)
        status = found["status"]
        begin = moment(status.get("startedAt") or status["finishedAt"])
        assert begin is not None
        self._begin, self._at = begin, time.time()
        self.reader = Reader(cluster.reader, begin, self._at)
        chosen = {
            "namespace": cluster.namespace,
            "run": run,
            # Prometheus may know runs of other scenarios from before.
            "scenario": found["spec"]["scenario"],
        }
        self._answers: dict[str, Answers] = {}
        scraped = self._scraped()
        for uid, dashboard in DASHBOARDS.items():
            values = self.reader.variables(dashboard, chosen)
            for name, panel in panels_of(uid).items():
                self._answers[name] = {
                    target["refId"]: self.reader.answer(target, values)
                    for target in panel["targets"]
                }
        self.scraped = scraped if self._scraped() == scraped else None
        """When the operator said it, in Unix seconds; None: in no scrape, or in two of them."""

    def _scraped(self) -> float | None:
        info = f'laptime_run_info{{namespace="{self._cluster.namespace}",run="{self._run}"}}'
        query = {"expr": f"max(timestamp({info}))", "instant": True}
        return next((one.samples[0][1] for one in self.reader.answer(query, {})), None)

    def has(self, panel: str) -> bool:
        """Return whether a panel has any data."""
        return any(self._answers[panel].values())

    def facts(self, *, told: int | None = None, kept: bool = True) -> Facts:
        """Return what is true of the run now.

        `told` are the trials of which the operator tells, None: all; without `kept` Prometheus has
        begun anew since the run.
        """
        archive = self._cluster.stored(self._run)
        stored = [
            (
                (one["metadata"].get("labels") or {}).get("laptime.dev/trial", ""),
                one.get("data") or {},
            )
            for one in archive.objects
        ]
        trials, readings = (
            [json.loads(data[key]) for _, data in stored if key in data]
            for key in ("result.json", "readings.json")
        )
        ends = {one["trial"]: moment(one.get("finishedAt")) or 0.0 for one in trials}
        counted = {
            str(trial): parse_payload(data["generator.b64"])
            for trial, data in stored
            if "generator.b64" in data
        }
        document = json.loads(archive.files.get("results.json", "{}"))
        nodes = self._cluster.reader.get("/api/v1/nodes")["items"]
        runs = self._cluster.reader.get("/apis/laptime.dev/v1alpha1/benchmarkruns")["items"]
        return Facts(
            run=self._cluster.get("benchmarkrun", self._run),
            trials=sorted(trials, key=lambda one: int(one["ordinal"])),
            readings=[one for one in readings if ends[one["trial"]] < self._at],
            judged={one["trial"]: one["validity"] for one in document.get("trials", ())},
            phases={
                trial: found.phases["measured"]
                for trial, found in counted.items()
                if isinstance(found, GeneratorResult)
            },
            begin=self._begin,
            at=self._at,
            nodes={one["metadata"]["name"]: one["status"]["capacity"] for one in nodes},
            states=Counter((one.get("status") or {}).get("state", "Queued") for one in runs),
            increase=self.reader.increase,
            told=told,
            kept=kept,
        )

    def wrong(self, facts: Facts, only: Iterable[str] = SHOWN) -> list[str]:
        """Return what these panels say and is not so, or do not say though it is."""
        return [
            f"{name}: {one}"
            for name in only
            for one in PANELS[name](facts, SHOWN[name], self._answers[name])
        ]


def check(cluster: Cluster, run: str, *, kept: bool = True, trials: bool = True) -> Said:
    """Compare all that all panels say of a run, which stands still, with what is true of it.

    What is not so has to be said by nobody: a panel that has no data for it says that it has none.
    With `kept` Prometheus has all that it was told while the run went on, and with `trials` the
    operator still tells of them.
    """
    # Counted, not timed: on a full machine a look alone may take half a minute.
    for left in reversed(range(8)):
        said = Said(cluster, run)
        wrong = said.wrong(said.facts(told=None if trials else 0, kept=kept))
        # The runs of a test before may be gone since the last scrape, and a scrape may be late.
        passing = said.scraped is None or all(one.startswith(OF_ALL_RUNS) for one in wrong)
        if not wrong or not passing or not left:
            break
        time.sleep(4)
    assert not wrong, "\n".join(wrong)
    return said


def check_while_it_goes_on(cluster: Cluster, run: str) -> Said:
    """Compare the same with what was true of a run at some moment of the last seconds.

    One scrape brings all that the operator says, and the run goes on meanwhile.
    """
    for _ in range(4):
        began = time.time()
        now = cluster.get("benchmarkrun", run)
        changes = cluster.reader.changes(
            cluster.path("benchmarkruns"),
            run,
            now["metadata"]["resourceVersion"],
            math.ceil(2 * SCRAPE_OF_OPERATOR_SECONDS),
        )
        seen = [now, *(change["object"] for change in changes if change["type"] == "MODIFIED")]
        said = Said(cluster, run)
        if said.scraped is not None and said.scraped > began + 1:
            break
    else:
        # On a full machine scrapes are late. All is compared when the run stands still.
        print("no scrape was whole and of a moment that is known")
        return said
    done = seen[-1]["status"]["progress"]["completed"]
    cluster.wait(
        run,
        "the results of all that is drawn",
        lambda status: status["progress"]["completed"] >= done + 2,
        120,
    )
    facts = said.facts()
    panels = [name for name in SHOWN if not name.startswith(OF_ALL_RUNS)]
    wrong = [
        # A result is stored before the status says so.
        said.wrong(
            replace(facts, run=one, told=one["status"]["progress"]["completed"] + more), panels
        )
        for one in seen
        for more in (0, 1)
    ]
    assert [] in wrong, "\n".join(sorted(wrong, key=len)[0])
    return said


def test_of_each_panel_something_is_known_to_be_true() -> None:
    assert PANELS.keys() == SHOWN.keys()


def test_every_panel_says_what_is_true_of_a_real_run(cluster: Cluster) -> None:
    # Limits, so that their panels have data; together they fit on a node of two CPUs.
    half_a_core = {"resources": {"cpu": "500m", "memory": "256Mi"}}
    manifest = run_manifest(
        "dashboards",
        [{**SYNC, **half_a_core}, {**AXUM, **half_a_core}],
        topology={"postgres": {"resources": {"cpu": "500m"}}, "pgbouncer": {}, "haproxy": {}},
        loads=[
            {
                "name": "closed",
                "closed": {"connections": 4, "duration": "6s", "keepAlive": True},
                "warmup": "3s",
            }
        ],
        objectives=[{"server": "axum", "load": "closed", "metric": "p99", "atMost": "10s"}],
    )
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 300)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    wait_for_scrapes(cluster, run)
    check(cluster, run)


def test_no_panel_says_a_thing_that_is_not_so(cluster: Cluster) -> None:
    """Of a run that goes on, is suspended and then cancelled, without HAProxy and PgBouncer."""
    going_on = cluster.apply(
        run_manifest("goes-on", [AXUM], topology=POSTGRES_ALONE, repetitions=100)
    )
    cluster.wait(
        going_on,
        "two trials",
        lambda status: (status.get("progress") or {}).get("completed", 0) >= 2,
        120,
    )
    said = check_while_it_goes_on(cluster, going_on)
    for shown in ("State", "Time left", "Throughput", "Requests of each second", "Results"):
        assert said.has(f"laptime-run: {shown}")
    assert not said.has("laptime-run: Verdict")
    for patch, reached in (
        ({"suspend": True}, lambda status: status["state"] == "Suspended"),
        ({"suspend": False, "cancel": True}, lambda status: status["state"] == "Cancelled"),
    ):
        cluster.wish(going_on, **patch)
        cluster.wait(going_on, f"what follows from {patch}", reached, 60)
        wait_for_scrapes(cluster, going_on)
        check(cluster, going_on)


def test_of_runs_that_failed_and_while_prometheus_is_away(cluster: Cluster) -> None:
    """A run that has some figures and no tiers, one that has none; then while Prometheus is away,
    and after.

    The figures of runs that are over outlive all that Prometheus had stored, and the operator.
    """
    server = {"name": "go", "preset": "go-nethttp"}
    broken = {"name": "broken", "image": "docker.io/laptime/there-is-no-such-image:1"}
    parts = {"topology": {}, "loads": light(), "repetitions": 1, "startupTimeout": "16s"}
    half = cluster.apply(
        run_manifest("half", [server, broken], scenario="hello", **parts, baseline="go")
    )
    none = cluster.apply(run_manifest("none", [server], scenario="nowhere", **parts))
    for run in (half, none):
        assert cluster.wait_end(run, 120)["state"] == "Failed"
    for run in (half, none):
        wait_for_scrapes(cluster, run)
    figures = ("Throughput", "Response times", "Requests of each second")
    said = check(cluster, half)
    assert all(said.has(f"laptime-run: {shown}") for shown in figures)
    of_none = check(cluster, none)
    assert of_none.has("laptime-run: Verdict")
    # Its rows say that they have no figures, and nothing draws one.
    assert not any(of_none.has(f"laptime-run: {shown}") for shown in figures)
    deployment = ("deployment/laptime-prometheus", "-n", OPERATOR_NAMESPACE)
    pods = ("-l", "app.kubernetes.io/component=prometheus", "-n", OPERATOR_NAMESPACE)
    cluster.kubectl("scale", *deployment, "--replicas=0")
    try:
        cluster.kubectl("wait", "--for=delete", "pod", *pods, "--timeout=60s")
        # An answer without data would be drawn as a finding; Grafana marks a panel with an error.
        for path, parameters in said.reader.asked:
            answer = cluster.reader.ask("GET", f"{SERVICE}/api/v1/{path}", **parameters)
            assert answer[0] >= 400, (path, parameters)
        killed = operator_pids()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
    finally:
        cluster.kubectl("scale", *deployment, "--replicas=1")
        cluster.kubectl("rollout", "status", *deployment, "--timeout=90s")
    info = f'laptime_result_state{{namespace="{cluster.namespace}",run="{half}"}}'
    assert _soon(cluster, info, there=True)
    said = check(cluster, half, kept=False, trials=not killed)
    assert said.has("laptime-run: Throughput")


def test_grafana_would_find_each_dashboard_in_the_cluster(reader: Api, operator: str) -> None:
    config_maps = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"
    for uid, dashboard in DASHBOARDS.items():
        config_map = reader.get(f"{config_maps}/{uid}-dashboard")
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(config_map["data"][f"{uid}.json"]) == dashboard


def test_nothing_is_said_of_a_deleted_run(cluster: Cluster) -> None:
    run = cluster.apply(run_manifest("deleted", [AXUM], repetitions=1))
    cluster.wait(run, "its state", lambda status: "state" in status, 30)
    query = f'laptime_run_info{{namespace="{cluster.namespace}", run="{run}"}}'
    assert _soon(cluster, query, there=True)
    cluster.delete("benchmarkrun", run)
    assert _soon(cluster, query, there=False)


def _soon(cluster: Cluster, query: str, *, there: bool) -> bool:
    """Return whether a query comes to have data, or none, within some scrapes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # Of a Prometheus that comes back the API server's proxy may not know yet.
        status, data = cluster.reader.ask("GET", f"{SERVICE}/api/v1/query", query=query)
        if status == 200 and bool(json.loads(data)["data"]["result"]) is there:
            return True
        time.sleep(1)
    return False


def wait_for_scrapes(cluster: Cluster, run: str) -> None:
    """Wait until Prometheus has scraped twice what the operator says of a run as it is now."""
    since = time.time() + SCRAPE_OF_OPERATOR_SECONDS
    info = f'laptime_run_info{{namespace="{cluster.namespace}", run="{run}"}}'
    assert _soon(cluster, f"timestamp({info}) > {since:.3f}", there=True), run
