"""The way to a Prometheus: its HTTP API, with time-outs and one clear error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from laptime.measure.promql import PrometheusError, Query

TIMEOUT_SECONDS = 10.0
_LARGEST_ANSWER_BYTES = 64 * 2**20


def http_query(client: httpx.AsyncClient, url: str) -> Query:
    """Return the query that asks the Prometheus at an address, such as http://prometheus:9090.

    It raises PrometheusError when Prometheus cannot be reached, says nothing in time or says
    something else than JSON. What Prometheus itself refuses is an answer of its own.
    """

    async def query(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            # POST: a query with many names is longer than some proxies let a URL be.
            async with client.stream(
                "POST", url.rstrip("/") + path, data=dict(parameters), timeout=TIMEOUT_SECONDS
            ) as response:
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > _LARGEST_ANSWER_BYTES:
                        raise PrometheusError(
                            f"{url} answered with more than {_LARGEST_ANSWER_BYTES} bytes"
                        )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = str(error) or type(error).__name__
            raise PrometheusError(f"{url} cannot be reached: {what}") from error
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise PrometheusError(f"{url} answered with status {response.status_code} and no JSON")
        return answer

    return query
