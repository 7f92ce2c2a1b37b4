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
NO_ERRORS = "there were no errors"
MAY_BE_EMPTY = {
    "laptime-run: Errors A": NO_ERRORS,
    "laptime-run: Doubts A": "every row was measured and valid",
    "laptime-run: Pressure on the nodes A": PRESSURE,
    "laptime-tiers: Pressure on the nodes A": PRESSURE,
    "laptime-tiers: Generator: saturation A": PRESSURE,
    "laptime-tiers: Generator: errors A": NO_ERRORS,
    "laptime-tiers: Postgres: saturation A": "no connection waited at the moment of a scrape",
    "laptime-tiers: Postgres: saturation B": "no transaction was open at the moment of a scrape",
    "laptime-operator: Failed looks A": NO_ERRORS,
    "laptime-operator: Failed looks in 10 min A": NO_ERRORS,
    **{
        f"laptime-run: annotation Server {place}": "the run has two servers"
        for place in range(3, 7)
    },
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
                values[name] = chosen.get(name) or every
        return values

    def has_data(self, query: Query, values: dict[str, str]) -> bool:
        """Return whether a query brings a number at any moment of the run."""
        step = int(_filled(query.step or "5s", values).removesuffix("s"))
        expr = _filled(query.expr, {**values, "__rate_interval": f"{4 * step}s"})
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
    for panel in DASHBOARDS[uid]["panels"]:
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
                empty.append(f"{name}: {_filled(query.expr, {**values, '__rate_interval': 'W'})}")
    assert not empty, "no data:\n" + "\n".join(empty)


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
