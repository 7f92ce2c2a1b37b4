"""Asking a Prometheus over HTTP: what is sent, and what a failure says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from urllib.parse import parse_qs

import httpx
import pytest

from laptime.measure.prometheus_access import PrometheusAccess
from laptime.measure.prometheus_http import PrometheusClient
from laptime.measure.promql import PrometheusError

Handler = Callable[[httpx.Request], httpx.Response]


async def ask(handler: Handler) -> object:
    access = PrometheusAccess("http://prometheus.example:9090/", headers={"X-Scope-OrgID": "bench"})
    async with aclosing(PrometheusClient(access, httpx.MockTransport(handler))) as client:
        return await client.query("/api/v1/query", {"query": "up", "time": "1.5"})


async def test_a_query_is_posted_and_its_answer_returned() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert request.method == "POST"
        assert str(request.url) == "http://prometheus.example:9090/api/v1/query"
        assert request.headers["x-scope-orgid"] == "bench"
        assert "authorization" not in request.headers
        assert parse_qs(request.content.decode()) == {"query": ["up"], "time": ["1.5"]}
        return httpx.Response(200, json={"status": "success"})

    assert await ask(handler) == {"status": "success"}


async def test_what_prometheus_refuses_is_an_answer() -> None:
    refused = {"status": "error", "errorType": "bad_data", "error": "parse error"}
    assert await ask(lambda _: httpx.Response(400, json=refused)) == refused


@pytest.mark.parametrize(
    "response", [httpx.Response(502, text="<html>bad gateway</html>"), httpx.Response(200, json=[])]
)
async def test_something_else_than_an_answer(response: httpx.Response) -> None:
    with pytest.raises(PrometheusError, match=f"status {response.status_code} and no JSON"):
        await ask(lambda _: response)


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("connection refused"), httpx.ReadTimeout("timed out")]
)
async def test_nobody_there(error: httpx.HTTPError) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(PrometheusError, match=f"cannot be reached: {error}"):
        await ask(handler)


async def test_an_answer_without_an_end_is_not_kept() -> None:
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 2**20
            yield b"x" * 2**20

    with pytest.raises(PrometheusError, match="answered with more than 67108864 bytes"):
        await ask(lambda _: httpx.Response(200, content=endless()))
    assert given < 70 * 2**20
