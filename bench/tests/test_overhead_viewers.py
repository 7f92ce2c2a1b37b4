"""Viewers ask what Grafana would ask for the first screen of a run, again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from overhead.viewers import Viewers, first_screen

VALUES = {
    "namespace": "default",
    "run": "r",
    "since": "0",
    "server": "a",
    "load": "l",
    "step": "1s",
}


class Prometheus(ThreadingHTTPServer):
    """Answers as it is told and keeps what it was asked."""

    status = 200
    data: object = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.encodings: set[str | None] = set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Prometheus

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.encodings.add(self.headers["Accept-Encoding"])
        body = json.dumps({"status": "success", "data": self.server.data}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    with Prometheus() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_screen_asks_little_and_leaves_no_variable_open() -> None:
    questions = first_screen(VALUES)
    # What the dashboard promises (dashboards/tests/test_panels.py).
    assert 10 <= len(questions) <= 25
    asked = [one.at(1000.0) for one in questions]
    assert not [one for one in asked if "$" in one or "%24" in one]
    assert {urlsplit(one).path for one in asked} == {
        "/api/v1/query",
        "/api/v1/query_range",
        "/api/v1/label/namespace/values",
        "/api/v1/label/run/values",
    }
    for one in asked:
        parameters = parse_qs(urlsplit(one).query)
        assert parameters.get("time", parameters.get("end")) == ["1000"]
    # The range that the dashboard begins with; of the trial of the moment every fourth second.
    ranges = [parse_qs(urlsplit(one).query) for one in asked if "query_range" in one]
    assert {one["start"][0] for one in ranges} == {"700"}
    assert [one["step"][0] for one in ranges] == ["1", "4", "1"]


def test_who_opens_a_dashboard_asks_for_what_a_refresh_does_not(prometheus: Prometheus) -> None:
    opening = first_screen(VALUES, loads=True)
    # What the dashboard promises (dashboards/tests/test_panels.py).
    assert len(opening) <= 25
    refreshed = {one.at(1000.0) for one in first_screen(VALUES)}
    asked = {one.at(1000.0) for one in opening}
    assert refreshed < asked
    more = {urlsplit(one).path.split("/")[-2] for one in asked - refreshed}
    assert more == {"scenario", "server", "load"}
    viewers = Viewers(3, opening, prometheus.server_port, "/proxy")
    assert viewers.open().answered == 0
    assert len(prometheus.asked) == len(opening)
    for data in (["a", "b"], {"resultType": "vector", "result": [{"value": [0, "1"]}]}):
        prometheus.data = data
        assert viewers.open().answered == len(opening)
    prometheus.data = {"resultType": "vector", "result": []}
    assert viewers.open().answered == 0
    prometheus.status = 503
    with pytest.raises(ValueError, match="503"):
        viewers.open()


def test_each_viewer_asks_all_of_it_at_once_and_goes_when_told(prometheus: Prometheus) -> None:
    questions = first_screen(VALUES)
    viewers = Viewers(3, questions, prometheus.server_port, "/proxy")
    viewers.begin()
    deadline = time.monotonic() + 20
    while len(viewers.paints) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    viewers.end()
    assert len(prometheus.asked) == 3 * len(questions)
    assert all(one.startswith("/proxy/api/v1/") for one in prometheus.asked)
    assert prometheus.encodings == {"identity"}
    assert viewers.ended_at >= viewers.began_at > 0


def test_a_viewer_without_an_answer_is_no_measurement(prometheus: Prometheus) -> None:
    prometheus.status = 503
    viewers = Viewers(1, first_screen(VALUES), prometheus.server_port, "")
    viewers.begin()
    deadline = time.monotonic() + 20
    while not prometheus.asked and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(OSError, match="a viewer got no answer"):
        viewers.end()
