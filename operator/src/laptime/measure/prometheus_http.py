"""The way to a Prometheus: its HTTP API, with time-outs and one clear error."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from laptime.api.text import shown
from laptime.measure.prometheus_access import Identity, PrometheusAccess
from laptime.measure.promql import PrometheusError, narrowed

TIMEOUT_SECONDS = 10.0
_LARGEST_ANSWER_BYTES = 64 * 2**20
_LONGEST_EXCERPT = 120
_READ_FOR_EXCERPT = 2**16


class PrometheusClient:
    """Asks the Prometheus at an address; `query` is a Query."""

    def __init__(
        self, access: PrometheusAccess, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """Ask as `access` says; `transport` stands in for the network where there is none."""
        self._access = access
        self._transport = transport
        # By the certificates that are trusted. They are replaced once in months, and a question
        # that is still open goes to its end with those that it began with.
        self._clients: dict[bytes | None, httpx.AsyncClient] = {}

    async def query(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """Ask a path with parameters and return the answer's JSON.

        Of the series that a query names, those alone that have the labels of `access.matchers`.

        Raises:
            PrometheusError: Prometheus cannot be reached or trusted, does not let the operator in,
                says nothing in time or something else than JSON. What it refuses by itself, such
                as a wrong query, is an answer of its own.
        """
        access = self._access
        url = access.url.rstrip("/")
        data = dict(parameters)
        if "query" in data:
            data["query"] = narrowed(data["query"], access.matchers)
        try:
            identity, client = access.identity(), self._client()
        except PrometheusError as error:
            raise PrometheusError(f"{url} cannot be asked: {error}") from None
        try:
            # POST: a query with many names is longer than some proxies let a URL be.
            async with client.stream(
                "POST",
                url + path,
                data=data,
                headers=identity.headers,
                timeout=TIMEOUT_SECONDS,
            ) as response:
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > _LARGEST_ANSWER_BYTES:
                        raise PrometheusError(
                            f"{url} answered with more than {_LARGEST_ANSWER_BYTES} bytes"
                        )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise PrometheusError(f"{url} cannot be reached: {self._why(error)}") from error
        status = response.status_code
        if status in (401, 403):
            said = _excerpt(content, identity)
            raise PrometheusError(f"{url} answers {status}: {access.refused(status)}{said}")
        if response.has_redirect_location:
            raise PrometheusError(
                f"{url} sends on to {_origin(response)}, which is not followed: write the address "
                "that answers itself in prometheus.url"
            )
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            said = _excerpt(content, identity)
            raise PrometheusError(f"{url} answered with status {status} and no JSON{said}")
        if "error" in answer:
            answer["error"] = identity.mask(str(answer["error"]))
        return answer

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        trusted = self._access.certificates()
        if trusted not in self._clients:
            # Credentials are for this address alone: where it sends on to is not asked.
            self._clients[trusted] = httpx.AsyncClient(
                verify=self._access.trusts(), transport=self._transport, follow_redirects=False
            )
        return self._clients[trusted]

    def _why(self, error: BaseException) -> str:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return self._access.distrusted(cause)
            cause = cause.__cause__ or cause.__context__
        return str(error) or type(error).__name__


def _excerpt(content: bytes | bytearray, identity: Identity) -> str:
    """Return the beginning of an answer, as what follows a message; nothing of a page of HTML."""
    text = identity.mask(content[:_READ_FOR_EXCERPT].decode("utf-8", "replace")).strip()
    if not text or text.startswith("<"):
        return ""
    return f'; it says "{shown(text, _LONGEST_EXCERPT)}"'


def _origin(response: httpx.Response) -> str:
    """Return where an answer sends on to, without what may be secret in it."""
    try:
        there = urlsplit(str(response.url.join(response.headers["location"])))
        return shown(f"{there.scheme}://{there.netloc.rpartition('@')[2]}")
    except (ValueError, httpx.InvalidURL):
        return "somewhere else"
