"""People who look at the dashboard of a run while it is measured: what they make Prometheus do."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

DASHBOARD = Path(__file__).parents[2] / "charts/laptime/files/dashboards/laptime-run.json"
REFRESH_SECONDS = 5.0
"""The most often that the dashboards offer."""
_WITH_THE_TIME_RANGE = 2
"""How Grafana calls it that a variable is asked for again with each refresh."""
_IN_SIGHT = 22
"""Rows of the grid down to the first pictures of each second: Grafana asks for a panel when it
comes into sight, and who looks at a run that goes on looks at these as well."""


@dataclass(frozen=True)
class Question:
    """One query as Grafana sends it for a panel or a variable: where, and with what."""

    path: str
    parameters: Mapping[str, str]
    range_seconds: float
    """What the dashboard shows at first."""

    def at(self, now: float) -> str:
        """Return the path with the parameters and the time range that ends at a Unix time."""
        times = {"start": f"{now - self.range_seconds:.0f}", "end": f"{now:.0f}"}
        if self.path == "/api/v1/query":
            times = {"time": f"{now:.0f}"}
        return f"{self.path}?{urlencode({**self.parameters, **times})}"


def first_screen(
    values: Mapping[str, str], dashboard: Path = DASHBOARD, *, loads: bool = False
) -> tuple[Question, ...]:
    """Return what a refresh of the first screen of a dashboard asks, the variables included.

    `values` has the values of the dashboard's variables. Of these, those that are asked for when a
    dashboard is loaded are no part of a refresh, and are there with `loads`. Steps are those of
    panels on a screen of 1366 px, where each second of ten minutes would have a pixel.
    """
    document = json.loads(dashboard.read_text())
    begin = re.fullmatch(r"now-(\d+)m", document["time"]["from"])
    assert begin is not None, document["time"]
    shown = 60.0 * int(begin[1])
    filled = {"__interval": "1s", "__rate_interval": "4s", **values}

    def fill(text: str) -> str:
        return re.sub(r"\$\{?(\w+)\}?", lambda one: filled[one[1]], text)

    found: list[Question] = []
    for variable in document["templating"]["list"]:
        again = variable.get("refresh") == _WITH_THE_TIME_RANGE
        if variable["type"] == "query" and (again or loads):
            text = variable["query"]["query"]
            result = re.fullmatch(r"query_result\((.*)\)", text)
            if result is not None:
                found.append(Question("/api/v1/query", {"query": fill(result[1])}, shown))
                continue
            told = re.fullmatch(r"label_values\((.*), (\w+)\)", text)
            assert told is not None, variable
            found.append(
                Question(f"/api/v1/label/{told[2]}/values", {"match[]": fill(told[1])}, shown),
            )
    for panel in document["panels"]:
        for target in panel.get("targets") or [] if panel["gridPos"]["y"] <= _IN_SIGHT else []:
            asked = {"query": fill(target["expr"])}
            if target.get("instant"):
                found.append(Question("/api/v1/query", asked, shown))
            else:
                least = float(fill(target.get("interval") or "1s").removesuffix("s"))
                step = f"{least * (target.get('intervalFactor') or 1):g}"
                found.append(Question("/api/v1/query_range", {**asked, "step": step}, shown))
    return tuple(found)


@dataclass(frozen=True)
class Look:
    """One look at the first screen."""

    seconds: float
    """How long all of its queries took, one after the other: a browser asks several at once."""
    answered: int
    """How many of them brought data."""


class Viewers:
    """So many people whose browsers ask all of it again and again, each over its own connection."""

    def __init__(self, count: int, questions: tuple[Question, ...], port: int, prefix: str) -> None:
        """`port` of this machine and `prefix` of the path are where Prometheus answers."""
        self._questions = questions
        self._port = port
        self._prefix = prefix
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._look, daemon=True) for _ in range(count)]
        self._problem: Exception | None = None
        self.paints: list[float] = []
        """Seconds that each refresh took, all of its queries one after the other."""
        self.began_at = self.ended_at = 0.0

    def begin(self) -> None:
        """Have them look from now on."""
        self.began_at = time.time()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Have them go.

        Raises:
            OSError: Prometheus did not answer one of them.
        """
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.ended_at = time.time()
        if self._problem is not None:
            raise OSError("a viewer got no answer") from self._problem

    def _look(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            while not self._over.is_set():
                look = self._look_once(connection)
                self.paints.append(look.seconds)
                self._over.wait(max(0.0, REFRESH_SECONDS - look.seconds))
        except (OSError, ValueError) as error:
            self._problem = error
        finally:
            connection.close()

    def open(self) -> Look:
        """Have one come who opens the dashboard, and goes.

        Raises:
            OSError: Prometheus cannot be reached.
            ValueError: it gave no answer.
        """
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            return self._look_once(connection)
        finally:
            connection.close()

    def _look_once(self, connection: HTTPConnection) -> Look:
        began = time.monotonic()
        answers = [self._ask(connection, question).get("data") for question in self._questions]
        seconds = time.monotonic() - began
        # A list of values, or a vector or matrix.
        there = (one.get("result") if isinstance(one, dict) else one for one in answers)
        return Look(seconds, sum(bool(one) for one in there))

    def _ask(self, connection: HTTPConnection, question: Question) -> Any:
        # As the chart's Grafana does; for one without it Prometheus packs each answer.
        asked = {"Accept-Encoding": "identity"}
        connection.request("GET", self._prefix + question.at(time.time()), headers=asked)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ValueError(f"{question.parameters}: {answer.status} {body[:200]!r}")
        return json.loads(body)
