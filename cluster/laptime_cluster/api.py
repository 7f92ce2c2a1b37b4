"""The few calls this program makes to the API server itself, as the administrator."""

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any

from laptime_cluster.certificates import certificate_path, key_path
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import API_ADDRESS, API_PORT

FIELD_MANAGER = "laptime-cluster"


def request(
    method: str,
    path: str,
    body: object | None = None,
    content_type: str = "application/json",
    timeout_seconds: float = 10.0,
) -> tuple[int, str]:
    """Send one request and return status code and body.

    Raises OSError when nobody listens, the certificates are missing, or the time is up.
    """
    connection = _connection(timeout_seconds)
    try:
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"Content-Type": content_type})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"the API server broke off: {error!r}") from error
    finally:
        connection.close()


def lines(path: str, timeout_seconds: float) -> Iterator[str]:
    """The lines of an answer as they come, such as those of a watch.

    Raises OSError as `request` does, and when nothing comes for that long.
    """
    connection = _connection(timeout_seconds)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        if response.status != 200:
            raise ClusterError(f"the API server answered {response.status} to GET {path}")
        while line := response.readline():
            yield line.decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"the API server broke off: {error!r}") from error
    finally:
        connection.close()


def _connection(timeout_seconds: float) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(certificate_path("ca")))
    context.load_cert_chain(certificate_path("admin"), key_path("admin"))
    return http.client.HTTPSConnection(
        API_ADDRESS, API_PORT, context=context, timeout=timeout_seconds
    )


def get(path: str) -> dict[str, Any] | None:
    """The object at that path, or None when it does not exist (yet)."""
    status, text = request("GET", path)
    if status == 404:
        return None
    if status != 200:
        raise ClusterError(f"the API server answered {status} to GET {path}: {text[:500]}")
    content: dict[str, Any] = json.loads(text)
    return content


def apply(path: str, content: object) -> None:
    """Create or change the object at that path by server-side apply."""
    status, text = request(
        "PATCH",
        f"{path}?fieldManager={FIELD_MANAGER}&force=true",
        content,
        "application/apply-patch+yaml",
    )
    if status not in (200, 201):
        raise ClusterError(f"the API server answered {status} to PATCH {path}: {text[:500]}")


def is_ready() -> bool:
    """Whether the API server says it is ready."""
    try:
        return request("GET", "/readyz", timeout_seconds=3.0)[0] == 200
    except OSError:
        return False
