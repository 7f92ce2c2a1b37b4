"""Requests to an API server whose answers stay the documents that they are.

The client's class for each kind of object loads hundreds of models before its first request, which
takes most of a second of a command, and the operator's image has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from kubernetes import client

TIMEOUT_SECONDS = (5, 30)
"""To connect, and then to answer."""
_JSON = "application/json"
_ANSWERS = {"2XX": "object"}
"""What is read of an answer: also of 201, by which an apply says that it has created something."""


def path_of(*parts: str) -> str:
    """Return a path of an API server, whatever characters its parts have."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


class Documents:
    """An API server that is asked for documents."""

    def __init__(self, api: client.ApiClient) -> None:
        """Take the client that has the credentials."""
        self._api = api

    @property
    def configuration(self) -> Any:
        """The client's: where the API server is, and who asks."""
        return self._api.configuration

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        accept: str = _JSON,
        content_type: str = _JSON,
        timeout: float | tuple[float, float] = TIMEOUT_SECONDS,
    ) -> Any:
        """Send a request and return its answer: a document, or the text of what is no JSON.

        What is None in the `query` is left out. `timeout`: in seconds.

        Raises:
            ApiException: the answer is no success, or is neither JSON nor text.
            urllib3.exceptions.HTTPError: there is none.
        """
        request = self._api.param_serialize(
            method=method,
            resource_path=path,
            query_params=[(key, one) for key, one in (query or {}).items() if one is not None],
            header_params={"Accept": accept, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        response = self._api.call_api(*request, _request_timeout=timeout)
        response.read()
        return self._api.response_deserialize(response, _ANSWERS).data
