"""The one thin client module: what Laptime asks of a Kubernetes API server, and nothing else.

It speaks plain dicts. Everything above it stays free of the client library.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes.aio import client, config

from laptime.api import GROUP, KIND, PLURAL, VERSION

FIELD_MANAGER = "laptime"
Manifest = dict[str, Any]

_REQUEST_TIMEOUT_SECONDS = 30
# A watch that the server ends after this long, and that the client gives up a little later: a
# connection that froze silently cannot hold a watch for ever.
_WATCH_SECONDS = 240
_NOT_ASCII = re.compile(r"[\x7f-\uffff]")


@dataclass(frozen=True)
class Resource:
    """Where a kind lives in the API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None, sub: str | None = None) -> str:
        """Return the URL path of a collection, an object or a subresource of it."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [prefix]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, sub) if part is not None]
        return "/".join(parts)


RESOURCES = {
    resource.kind: resource
    for resource in (
        Resource("", "v1", "pods", "Pod"),
        Resource("", "v1", "services", "Service"),
        Resource("", "v1", "configmaps", "ConfigMap"),
        Resource("", "v1", "secrets", "Secret"),
        Resource("", "v1", "events", "Event"),
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("apps", "v1", "statefulsets", "StatefulSet"),
        Resource("batch", "v1", "jobs", "Job"),
        Resource(GROUP, VERSION, PLURAL, KIND),
    )
}


class KubeError(Exception):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{reason} ({status}): {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def forbidden(self) -> bool:
        """Whether rights are missing."""
        return self.status == 403

    @property
    def not_found(self) -> bool:
        """Whether the object or its namespace does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """Whether the object exists already or was changed by somebody else."""
        return self.status == 409

    @property
    def refused(self) -> bool:
        """Whether the same request will be refused again, until somebody changes something."""
        return self.status in (400, 403, 413, 422) and not self.terminating

    def about(self, kind: str, name: str) -> KubeError:
        """Return the same error, its message beginning with the object that it is about."""
        return KubeError(self.status, self.reason, f"{kind} {name}: {self.message}")

    @property
    def terminating(self) -> bool:
        """Whether the namespace is being deleted, so that nothing can be created in it."""
        return self.forbidden and "being terminated" in self.message


async def connect(said: Callable[[str, int], None] | None = None) -> Kube:
    """Return a client for the cluster that this process runs in, or that KUBECONFIG names.

    `said` is called with method and status code (0: not reached) of every request.
    """
    configuration = client.Configuration()
    try:
        config.load_incluster_config(configuration)
    except config.ConfigException:
        await config.load_kube_config(client_configuration=configuration)
    return Kube(client.ApiClient(configuration), said)


class Kube:
    """A client. Every method raises KubeError when the API server says no."""

    def __init__(
        self, api: client.ApiClient, said: Callable[[str, int], None] | None = None
    ) -> None:
        self._api = api
        self._said = said

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """Return the object, or None when there is none."""
        try:
            return await self._json("GET", RESOURCES[kind].path(namespace, name))
        except KubeError as error:
            if error.not_found:
                return None
            raise

    async def list(
        self,
        kind: str,
        namespace: str | None,
        selector: str = "",
        *,
        metadata_only: bool = False,
    ) -> list[Manifest]:
        """Return the objects of a kind that match a label selector.

        With `metadata_only` the API server sends only their metadata.
        """
        accept = (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            if metadata_only
            else "application/json"
        )
        items: list[Manifest] = []
        query = {"labelSelector": selector, "limit": "500"}
        while True:
            page = await self._json(
                "GET", RESOURCES[kind].path(namespace), query=query, accept=accept
            )
            items += page.get("items") or []
            token = page.get("metadata", {}).get("continue")
            if not token:
                return items
            query = {**query, "continue": token}

    async def apply(self, manifest: Manifest) -> Manifest:
        """Make the object so by server-side apply; what others own in it stays theirs."""
        return await self._apply(manifest, None)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Make the status subresource so by server-side apply."""
        return await self._apply(manifest, "status")

    async def _apply(self, manifest: Manifest, sub: str | None) -> Manifest:
        metadata = manifest["metadata"]
        path = RESOURCES[manifest["kind"]].path(metadata.get("namespace"), metadata["name"], sub)
        return await self._json(
            "PATCH",
            path,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            # The client would write JSON itself if its name of the content were without more.
            body=_json_that_is_yaml(manifest),
            content_type="application/apply-patch+yaml; charset=utf-8",
        )

    async def create(self, manifest: Manifest) -> bool:
        """Create the object; return False when one of that name exists already."""
        metadata = manifest["metadata"]
        try:
            await self._json(
                "POST",
                RESOURCES[manifest["kind"]].path(metadata.get("namespace")),
                query={"fieldManager": FIELD_MANAGER},
                body=manifest,
            )
        except KubeError as error:
            if error.conflict and error.reason == "AlreadyExists":
                return False
            raise
        return True

    async def delete(self, kind: str, namespace: str | None, name: str) -> bool:
        """Delete the object and, in the background, what it owns; False when there is none."""
        try:
            await self._json(
                "DELETE",
                RESOURCES[kind].path(namespace, name),
                body={"propagationPolicy": "Background"},
            )
        except KubeError as error:
            if error.not_found:
                return False
            raise
        return True

    async def log(self, namespace: str, pod: str, container: str) -> str:
        """Return what a container has written to its log so far."""
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={"container": container},
            limits=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_SECONDS),
        )
        return (await response.read()).decode(errors="replace")

    async def follow_log(self, namespace: str, pod: str, container: str) -> AsyncIterator[str]:
        """Yield the lines of a container's log as they are written, until it ends."""
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={"container": container, "follow": "true"},
            limits=aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_TIMEOUT_SECONDS),
        )
        async with response:
            while line := await response.content.readline():
                yield line.decode(errors="replace").rstrip("\n")

    async def watch(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Manifest]]:
        """Yield (type, object) for each change from now on; ends after some minutes.

        The first events are the objects that exist, as ADDED.
        """
        response = await self._open(
            "GET",
            RESOURCES[kind].path(namespace),
            query={
                "watch": "true",
                "labelSelector": selector,
                "timeoutSeconds": str(_WATCH_SECONDS),
            },
            limits=aiohttp.ClientTimeout(
                total=_WATCH_SECONDS + 30, sock_connect=_REQUEST_TIMEOUT_SECONDS
            ),
        )
        async with response:
            while line := await response.content.readline():
                event = json.loads(line)
                yield event["type"], event["object"]

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Manifest | str | None = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Manifest:
        response = await self._open(
            method,
            path,
            query=query,
            body=body,
            accept=accept,
            content_type=content_type,
            limits=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_SECONDS),
        )
        parsed = json.loads(await response.read())
        assert isinstance(parsed, dict)
        return parsed

    async def _open(
        self,
        method: str,
        path: str,
        *,
        limits: aiohttp.ClientTimeout,
        query: dict[str, str] | None = None,
        body: Manifest | str | None = None,
        accept: str = "*/*",
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        """Send a request and return the open response of a success."""
        try:
            response = await self._send(method, path, limits, query, body, accept, content_type)
        except KubeError as error:
            if self._said is not None:
                self._said(method, error.status)
            raise
        if self._said is not None:
            self._said(method, response.status)
        return response

    async def _send(
        self,
        method: str,
        path: str,
        limits: aiohttp.ClientTimeout,
        query: dict[str, str] | None,
        body: Manifest | str | None,
        accept: str,
        content_type: str,
    ) -> aiohttp.ClientResponse:
        request = await self._api.param_serialize(
            method=method,
            resource_path=path,
            query_params=[(key, value) for key, value in (query or {}).items() if value],
            header_params={"Accept": accept, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            wrapped = await self._api.call_api(*request, _request_timeout=limits)
            response: aiohttp.ClientResponse = wrapped.response
            if response.status < 400:
                return response
            text = await response.text()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise KubeError(0, "Unreachable", f"{type(error).__name__}: {error}") from error
        except client.ApiException as error:
            raise _kube_error(error.status or 0, str(error.body or error.reason or "")) from error
        raise _kube_error(response.status, text)


def _json_that_is_yaml(manifest: Manifest) -> str:
    """Return JSON that a YAML parser reads as the same.

    YAML knows no pairs of surrogates, as which JSON may write what is beyond U+FFFF; what is below
    is escaped, since YAML takes some of it for line breaks.
    """
    text = json.dumps(manifest, ensure_ascii=False)
    return _NOT_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _kube_error(status: int, text: str) -> KubeError:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = {}
    reason = parsed.get("reason") if isinstance(parsed, dict) else None
    message = parsed.get("message") if isinstance(parsed, dict) else None
    return KubeError(status, reason or "Error", message or text[:500])
