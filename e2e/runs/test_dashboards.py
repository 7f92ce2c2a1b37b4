"""Every query of every panel has data in the Prometheus of a real run, or it is said why not."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conftest import CHART, OPERATOR_NAMESPACE, Api

from .harness import (
    AXUM,
    POSTGRES_ALONE,
    SYNC,
    Cluster,
    condition,
    light,
    operator_pids,
    over,
    run_manifest,
)

SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy"
DASHBOARDS = {
    file.stem: json.loads(file.read_text())
    for file in sorted((CHART / "files" / "dashboards").glob("*.json"))
}
SCRAPE_OF_OPERATOR_SECONDS = 5.0

PRESSURE = "the node's kernel may count no pressure (PSI)"
GOES_ON = "it is there while a run goes on alone"
NO_REASON = "no reconcile has failed"
NO_SCRIPT = "no load of the run is a script"
MAY_BE_EMPTY = {
    "laptime-run: Objectives and thresholds A": "the run has no objectives",
    "laptime-run: Ties A": "its servers are told apart",
    "laptime-run: Factor against the baseline D": "no two of its servers share a rank",
    **{
        f"laptime-run: {panel} {query}": NO_SCRIPT
        for panel, queries in (
            ("Checks of scripts", "ABC"),
            ("Iterations of scripts", "ABCDEFGH"),
            ("Metrics of scripts", "ABCDEF"),
        )
        for query in queries
    },
    "laptime-run: State B": GOES_ON,
    "laptime-run: Requests of each second B": GOES_ON,
    "laptime-run: Pressure on the nodes A": PRESSURE,
    "laptime-run: Connection tracking of the nodes A": "the kernel tracks no connections",
    "laptime-run: Other pods on the nodes B": "no other pod is where the agent may see it",
    "laptime-tiers: Pressure on the nodes A": PRESSURE,
    "laptime-tiers: Generator: saturation A": PRESSURE,
    "laptime-tiers: Generator: saturation B": PRESSURE,
    "laptime-tiers: Postgres: saturation A": "no connection waited at the moment of a scrape",
    "laptime-tiers: Postgres: saturation B": "no transaction was open at the moment of a scrape",
    "laptime-operator: Reconcile errors by reason A": NO_REASON,
    "laptime-runs: All runs D": GOES_ON,
}


@dataclass(frozen=True)
class Query:
    """A query of a panel or an annotation, as the dashboard has it."""

    expr: str
    step: str
    instant: bool


class Reader:
    """Asks what Grafana would ask, with the variables of a dashboard and the time of a run."""

    def __init__(self, api: Api, begin: float, end: float) -> None:
        self._api = api
        self._begin = begin
        self._end = end

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

    def has_data(self, query: Query, values: dict[str, str]) -> bool:
        """Return whether a query brings a number at any moment of the run."""
        step = int(_filled(query.step or "5s", values).removesuffix("s"))
        intervals = {"__rate_interval": f"{4 * step}s", "__interval": f"{step}s"}
        expr = _filled(query.expr, {**values, **intervals})
        if query.instant:
            # What is there only while a run goes on counts as well.
            moments = (self._end, (self._begin + self._end) / 2)
            return any(
                _numbers(self._ask("query", {"query": expr, "time": f"{moment:.3f}"}))
                for moment in moments
            )
        window = {"start": f"{self._begin:.3f}", "end": f"{self._end:.3f}", "step": f"{step}s"}
        return _numbers(self._ask("query_range", {"query": expr, **window}))

    def said_now(self, query: Query, values: dict[str, str]) -> list[tuple[dict[str, str], float]]:
        """Return what an instant query says at the end of the time: labels and values."""
        expr = _filled(query.expr, values)
        data = self._ask("query", {"query": expr, "time": f"{self._end:.3f}"})
        return [(one["metric"], float(one["value"][1])) for one in data["result"]]

    def _values_of(self, text: str, values: dict[str, str]) -> list[str]:
        asked = re.fullmatch(r"query_result\((scalar\(.*\))\)", text)
        if asked is not None:
            expr = _filled(asked[1], values)
            moment = f"{self._end:.3f}"
            return [self._ask("query", {"query": expr, "time": moment})["result"][1]]
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", text)
        assert found is not None, text
        window = {"start": f"{self._begin:.3f}", "end": f"{self._end:.3f}"}
        parameters = {"match[]": _filled(found[1], values), **window}
        answer = self._ask(f"label/{found[2]}/values", parameters)
        assert isinstance(answer, list)
        return answer

    def _ask(self, path: str, parameters: dict[str, str]) -> Any:
        answer = self._api.get(f"{SERVICE}/api/v1/{path}", **parameters)
        assert answer["status"] == "success", answer
        return answer["data"]


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda one: values[one[1]], text)


def _numbers(data: dict[str, Any]) -> bool:
    return any(
        not math.isnan(float(value))
        for series in data["result"]
        for _, value in series.get("values") or [series["value"]]
    )


def queries(uid: str) -> dict[str, Query]:
    """Return all queries of a dashboard by a name that says where they stand."""
    found: dict[str, Query] = {}
    every = [p for panel in DASHBOARDS[uid]["panels"] for p in (panel, *panel.get("panels", ()))]
    for panel in every:
        for target in panel.get("targets") or []:
            found[f"{uid}: {panel['title']} {target['refId']}"] = _query(target)
    for annotation in (DASHBOARDS[uid].get("annotations") or {}).get("list") or []:
        found[f"{uid}: annotation {annotation['name']}"] = _query(annotation["target"])
    return found


def _query(target: dict[str, Any]) -> Query:
    return Query(target["expr"], target.get("interval", ""), bool(target.get("instant")))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_every_reason_belongs_to_a_query() -> None:
    every = {name for uid in DASHBOARDS for name in queries(uid)}
    assert set(MAY_BE_EMPTY) <= every


RUN_UID = "laptime-run"
LIMITS = "What limited each server (suspected), and what is doubtful"
_TIERS_QUERIES = {
    "haproxy": {"HAProxy: queue A", "HAProxy: queue B"},
    "pgbouncer": {"PgBouncer: pool A", "PgBouncer: pool B", "PgBouncer: pool C"},
}


class Said:
    """What the dashboard of a run says of it now."""

    def __init__(self, cluster: Cluster, run: str, begin: float) -> None:
        self._reader = Reader(cluster.reader, begin, time.time())
        dashboard = DASHBOARDS[RUN_UID]
        chosen = {"namespace": cluster.namespace, "run": run}
        self._values = self._reader.variables(dashboard, chosen)
        self._queries = {
            name.removeprefix(f"{RUN_UID}: "): query for name, query in queries(RUN_UID).items()
        }
        self.there = {
            name
            for name, query in self._queries.items()
            if (self.rows(name) if query.instant else self._reader.has_data(query, self._values))
        }
        """The queries that have data: of figures and tables now, of lines in the time since."""

    def rows(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return what an instant query of a panel says: labels and values."""
        return self._reader.said_now(self._queries[name], self._values)

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the values of an instant query by the values of some labels."""
        rows = self.rows(name)
        found = {tuple(one.get(label, "") for label in labels): value for one, value in rows}
        assert len(found) == len(rows), rows
        return found


def check(cluster: Cluster, run: str, *, kept: bool = True, trials: bool = True) -> Said:
    """Compare all that the first screen and the tables say of a run with its status.

    What is not so has to be said by nobody: a panel that has no data for it says that it has none.
    With `kept` Prometheus has all that it was told while the run went on, and with `trials` the
    operator still tells of them.
    """
    status = cluster.status(run)
    said = Said(cluster, run, _seconds(status.get("startedAt") or status["finishedAt"]))
    results = status.get("results") or []
    progress = status.get("progress") or {"completed": 0, "total": 0}
    assert said.by("State A", "state") == {(status["state"],): 1}
    _check_end(status, said)
    assert said.by("Progress A") == {(): progress["completed"] / (progress["total"] or 1)}
    assert said.by("Time left A") == {(): progress.get("remainingSeconds", 0)}
    assert ("State B" in said.there) is ("currentTrial" in status)
    measured = [row for row in results if row.get("requestsPerSecond")]
    for name, key in (
        ("Throughput A", "requestsPerSecond"),
        ("Factor against the baseline A", "factor"),
    ):
        assert said.by(name, "server", "load", "bound") == _intervals(measured, key)
    names = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p999": "0.999"}
    assert said.by("Response times A", "server", "load", "quantile") == {
        (row["server"], row["load"], quantile): 1000
        * row["latencyFigures"][key]["seconds"]["value"]
        for row in measured
        for key, quantile in names.items()
        if (row["latencyFigures"].get(key) or {}).get("seconds") is not None
    }
    for name, end in (("Results G", "low"), ("Results H", "high")):
        p99s = {(row["server"], row["load"]): row["latencyFigures"].get("p99") for row in measured}
        assert said.by(name, "server", "load") == {
            row: figure["seconds"][end]
            for row, figure in p99s.items()
            if end in ((figure or {}).get("seconds") or {})
        }
    assert said.by("Isolation A", "isolation").keys() == (
        {(status["isolation"]["word"],)} if "isolation" in status else set()
    )
    assert said.by(f"{LIMITS} A", "server", "load", "cause").keys() == {
        (row["server"], row["load"], row["limitedBy"]["cause"])
        for row in results
        if row.get("limitedBy")
    }
    assert said.by(f"{LIMITS} B", "server", "load", "validity").keys() == {
        (row["server"], row["load"], row.get("validity", "")) for row in results
    }
    assert said.by("Ties A", "load", "servers").keys() == {
        (tie["load"], " and ".join(tie["servers"])) for tie in status.get("ties") or []
    }
    outcomes = [one["outcome"] for one, _ in said.rows("Trials A")]
    assert len(outcomes) == (len(cluster.documents(run)) if trials else 0)
    assert ("Requests of each second A" in said.there) is (kept and "Measured" in outcomes)
    topology = cluster.get("benchmarkrun", run)["spec"].get("topology") or {}
    for tier, of_tier in _TIERS_QUERIES.items():
        assert tier in topology or not of_tier & said.there
    return said


def _check_end(status: dict[str, Any], said: Said) -> None:
    """The verdict is there when the run is over, and says why where there is nothing to judge."""
    if not over(status):
        assert "Verdict A" not in said.there
        return
    ((labels, _),) = said.rows("Verdict A")
    assert labels["verdict"] == (status.get("verdict") or condition(status, "Succeeded")["message"])
    found = {row["validity"] for row in status.get("results") or [] if "validity" in row}
    worst = [one for one in ("invalid", "doubtful", "valid") if one in found][:1]
    assert labels.get("validity", "") == "".join(worst)


def _intervals(rows: list[dict[str, Any]], key: str) -> dict[tuple[str, ...], float]:
    bounds = {"estimate": "value", "low": "low", "high": "high"}
    return {
        (row["server"], row["load"], bound): row[key][end]
        for row in rows
        for bound, end in bounds.items()
        if (row.get(key) or {}).get(end) is not None
    }


def test_every_panel_has_data_of_a_real_run(cluster: Cluster) -> None:
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
    )
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 300)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    wait_for_scrapes(cluster, run)
    reader = Reader(cluster.reader, _seconds(status["startedAt"]), time.time())
    # Prometheus may know runs of other scenarios from before.
    scenario = manifest["spec"]["scenario"]
    chosen = {"namespace": cluster.namespace, "run": run, "scenario": scenario}
    empty: list[str] = []
    for uid, dashboard in DASHBOARDS.items():
        values = reader.variables(dashboard, chosen)
        for name, query in queries(uid).items():
            if name not in MAY_BE_EMPTY and not reader.has_data(query, values):
                empty.append(f"{name}: {query.expr} with {values}")
    assert not empty, "no data:\n" + "\n".join(empty)
    check(cluster, run)


def test_no_panel_says_a_thing_that_is_not_so(cluster: Cluster) -> None:
    """Of a run that goes on, is suspended and then cancelled, without HAProxy and PgBouncer."""
    going_on = cluster.apply(
        run_manifest("goes-on", [AXUM], topology=POSTGRES_ALONE, repetitions=50)
    )
    cluster.wait(
        going_on,
        "two trials",
        lambda status: (status.get("progress") or {}).get("completed", 0) >= 2,
        120,
    )
    begin = _seconds(cluster.status(going_on)["startedAt"])
    wait_for_scrapes(cluster, going_on)
    said = Said(cluster, going_on, begin)
    # What changes with each trial is looked at when the run stands still.
    assert {"State A", "State B", "Progress A", "Time left A"} <= said.there
    assert {"Factor against the baseline A", "Throughput A", "Response times A"} <= said.there
    assert {"Requests of each second A", "Results A", "Postgres: connections B"} <= said.there
    assert "Verdict A" not in said.there
    for patch, reached in (
        ({"suspend": True}, lambda status: status["state"] == "Suspended"),
        ({"suspend": False, "cancel": True}, lambda status: status["state"] == "Cancelled"),
    ):
        cluster.wish(going_on, **patch)
        cluster.wait(going_on, f"what follows from {patch}", reached, 60)
        wait_for_scrapes(cluster, going_on)
        check(cluster, going_on)


def test_of_runs_that_failed_and_while_prometheus_is_away(cluster: Cluster) -> None:
    """A run that has some figures, one that has none; then while Prometheus is away, and after.

    The figures of runs that are over outlive all that Prometheus had stored, and the operator.
    """
    broken = {"name": "broken", "image": "docker.io/laptime/there-is-no-such-image:1"}
    parts = {
        "topology": POSTGRES_ALONE,
        "loads": light(),
        "repetitions": 1,
        "startupTimeout": "16s",
    }
    half = cluster.apply(run_manifest("half", [AXUM, broken], **parts, baseline=AXUM["name"]))
    none = cluster.apply(run_manifest("none", [AXUM], scenario="nowhere", **parts))
    for run in (half, none):
        assert cluster.wait_end(run, 120)["state"] == "Failed"
    for run in (half, none):
        wait_for_scrapes(cluster, run)
    assert "Throughput A" in check(cluster, half).there
    said = check(cluster, none).there
    assert said >= {"State A", "Verdict A", "Progress A", "Time left A"}
    # Its rows say that they have no figures, and nothing draws one.
    assert not said & {
        *("Throughput A", "Factor against the baseline A", "Response times A"),
        *("Requests of each second A", f"{LIMITS} A"),
    }
    deployment = ("deployment/laptime-prometheus", "-n", OPERATOR_NAMESPACE)
    pods = ("-l", "app.kubernetes.io/component=prometheus", "-n", OPERATOR_NAMESPACE)
    cluster.kubectl("scale", *deployment, "--replicas=0")
    try:
        cluster.kubectl("wait", "--for=delete", "pod", *pods, "--timeout=60s")
        # An answer without data would be drawn as a finding; Grafana marks a panel with an error.
        for path in ("query", "query_range", "label/run/values"):
            assert cluster.reader.ask("GET", f"{SERVICE}/api/v1/{path}", query="up")[0] >= 400
        killed = operator_pids()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
    finally:
        cluster.kubectl("scale", *deployment, "--replicas=1")
        cluster.kubectl("rollout", "status", *deployment, "--timeout=90s")
    info = f'laptime_result_state{{namespace="{cluster.namespace}",run="{half}"}}'
    assert _soon(cluster, info, there=True)
    assert "Throughput A" in check(cluster, half, kept=False, trials=not killed).there


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
