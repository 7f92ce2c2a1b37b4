"""Every query of every panel has data in the Prometheus of a real run, or it is said why not."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conftest import CHART, OPERATOR_NAMESPACE, Api

from .harness import AXUM, SYNC, Cluster, run_manifest

SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/laptime-prometheus:9090/proxy"
DASHBOARDS = {
    file.stem: json.loads(file.read_text())
    for file in sorted((CHART / "files" / "dashboards").glob("*.json"))
}
SCRAPES_OF_OPERATOR_SECONDS = 12.0

PRESSURE = "the node's kernel may count no pressure (PSI)"
GOES_ON = "it is there while a run goes on alone"
NO_REASON = "no reconcile has failed"
MAY_BE_EMPTY = {
    "laptime-run: State B": GOES_ON,
    "laptime-run: Time left A": GOES_ON,
    "laptime-run: Requests of each second B": GOES_ON,
    "laptime-run: Pressure on the nodes A": PRESSURE,
    "laptime-tiers: Pressure on the nodes A": PRESSURE,
    "laptime-tiers: Generator: saturation A": PRESSURE,
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
                found = self._label_values(variable["query"]["query"], values)
                assert found, f"{dashboard['title']}: {name} has no value"
                assert name not in chosen or chosen[name] in found
                every = f"({'|'.join(re.escape(one) for one in found)})".replace("\\", "\\\\")
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

    def _label_values(self, text: str, values: dict[str, str]) -> list[str]:
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
                "closed": {"connections": 4, "duration": "8s", "keepAlive": True},
                "warmup": "4s",
            }
        ],
    )
    run = cluster.apply(manifest)
    status = cluster.wait_end(run, 300)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    time.sleep(SCRAPES_OF_OPERATOR_SECONDS)
    reader = Reader(cluster.reader, _seconds(status["startedAt"]), time.time())
    chosen = {"namespace": cluster.namespace, "run": run}
    empty: list[str] = []
    for uid, dashboard in DASHBOARDS.items():
        values = reader.variables(dashboard, chosen)
        for name, query in queries(uid).items():
            if name not in MAY_BE_EMPTY and not reader.has_data(query, values):
                empty.append(f"{name}: {query.expr} with {values}")
    assert not empty, "no data:\n" + "\n".join(empty)


def test_no_panel_says_a_thing_that_is_not_so(cluster: Cluster) -> None:
    """Of a run that goes on, was cancelled, has failed or has no such tier."""
    going_on = cluster.apply(
        run_manifest("goes-on", [AXUM], topology={"postgres": {}}, repetitions=50)
    )
    cluster.wait(
        going_on,
        "two trials",
        lambda status: (status.get("progress") or {}).get("completed", 0) >= 2,
        120,
    )
    time.sleep(SCRAPES_OF_OPERATOR_SECONDS)
    begin = _seconds(cluster.status(going_on)["startedAt"])
    found = _what_is_there(cluster, going_on, begin)
    assert {"State A", "State B", "Progress A", "Time left A", "Factor against the baseline A"} <= (
        found
    )
    assert {"Requests of each second A", "Results A"} <= found
    assert "Verdict A" not in found
    assert not {"HAProxy: queue A", "PgBouncer: pool A"} & found
    assert "Postgres: connections B" in found
    patch = {"spec": {"cancel": True}}
    cluster.kubectl(
        *("patch", "br", going_on, "-n", cluster.namespace, "--type=merge"),
        *("-p", json.dumps(patch)),
    )
    assert cluster.wait_end(going_on, 60)["state"] == "Cancelled"
    time.sleep(SCRAPES_OF_OPERATOR_SECONDS)
    found = _what_is_there(cluster, going_on, time.time() - 5)
    assert {"State A", "Progress A", "Requests of each second A"} - found == {
        "Requests of each second A"
    }, "at the end there is no load any more"
    assert not {"State B", "Time left A"} & found


def _what_is_there(cluster: Cluster, run: str, begin: float) -> set[str]:
    """Return the queries of the run's dashboard that have data now."""
    reader = Reader(cluster.reader, begin, time.time())
    uid = "laptime-run"
    values = reader.variables(DASHBOARDS[uid], {"namespace": cluster.namespace, "run": run})
    return {
        name.removeprefix(f"{uid}: ")
        for name, query in queries(uid).items()
        if reader.has_data(query, values)
    }


def test_grafana_would_find_each_dashboard_in_the_cluster(kubectl: Any, operator: str) -> None:
    for uid, dashboard in DASHBOARDS.items():
        config_map = kubectl.json(
            *("get", "configmap", f"{uid}-dashboard", "-n", OPERATOR_NAMESPACE, "-o", "json")
        )
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(config_map["data"][f"{uid}.json"]) == dashboard


def test_nothing_is_said_of_a_deleted_run(cluster: Cluster) -> None:
    run = cluster.apply(run_manifest("deleted", [AXUM], repetitions=1))
    cluster.wait(run, "its state", lambda status: "state" in status, 30)
    query = f'laptime_run_info{{namespace="{cluster.namespace}", run="{run}"}}'
    assert _soon(cluster, query, there=True)
    cluster.kubectl("delete", "br", run, "-n", cluster.namespace)
    assert _soon(cluster, query, there=False)


def _soon(cluster: Cluster, query: str, *, there: bool) -> bool:
    """Return whether a query comes to have data, or none, within some scrapes."""
    deadline = time.monotonic() + 4 * SCRAPES_OF_OPERATOR_SECONDS
    while time.monotonic() < deadline:
        found = bool(cluster.reader.get(f"{SERVICE}/api/v1/query", query=query)["data"]["result"])
        if found is there:
            return True
        time.sleep(1)
    return False
