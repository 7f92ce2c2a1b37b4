"""The one thin client module: what Laptime asks of a Kubernetes API server, and nothing else.

It speaks plain dicts. Everything above it stays free of the client library.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes.aio import client, config

from laptime.api import GROUP, KIND, PLURAL, VERSION
from laptime.api.text import shown
from laptime.list_stream import ListStream
from laptime.measure.generator import CUT_LINE

FIELD_MANAGER = "laptime"
Manifest = dict[str, Any]

_REQUEST_TIMEOUT_SECONDS = 30
_KUBELET_SECONDS = 3
"""A kubelet that has not answered by then stands still, or its node is gone."""
_FROZEN_SECONDS = 5
"""So much later than the API server should end a watch, the client gives it up."""
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
"""Objects per answer of a list."""
_LONGEST_MESSAGE = 2000
LOG_BYTES = 2 * 2**20
"""So much of a log is read: twice as much as the longest result that can be stored."""
# A node keeps a line in parts of at most 16 KiB: so many of them are never longer than LOG_BYTES.
_TAIL_LINES = (20_000, LOG_BYTES // 2**14)
_LONGEST_LINE_BYTES = 16 * 2**20
"""Longest line of a log or a watch: no container can fill the memory with one that never ends."""
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
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        Resource("coordination.k8s.io", "v1", "leases", "Lease"),
        Resource(GROUP, VERSION, PLURAL, KIND),
    )
}


@dataclass(frozen=True)
class Page:
    """Some of the objects of a list, and the resource version that the list is of."""

    items: list[Manifest]
    resource_version: str


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
        """Whether the object exists already, was changed, or is another one than was meant."""
        return self.status == 409

    @property
    def expired(self) -> bool:
        """Whether the resource version that a watch should begin at is unknown or forgotten."""
        return self.status in (410, 504)

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
        self,
        api: client.ApiClient,
        said: Callable[[str, int], None] | None = None,
        may_write: Callable[[], float] | None = None,
    ) -> None:
        self._api = api
        self._said = said
        self._may_write = may_write

    def gated(self, may_write: Callable[[], float]) -> Kube:
        """Return a client over the same connections whose every write passes a gate.

        `may_write` says for how many seconds writing is still allowed. It is asked before each
        request that changes anything, which is given up when they are over; when they are over
        already, it is not sent.
        """
        return Kube(self._api, self._said, may_write)

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

    async def pages(
        self,
        kind: str,
        namespace: str | None,
        selector: str = "",
        *,
        metadata_only: bool = False,
        limit: int = _PAGE,
    ) -> AsyncIterator[Page]:
        """Yield the objects of a kind that match a label selector, page by page.

        All pages are of the same moment. With `metadata_only` the API server sends only their
        metadata.
        """
        accept = _METADATA_LIST if metadata_only else "application/json"
        query = {"labelSelector": selector, "limit": str(limit)}
        while True:
            page = await self._json(
                "GET", RESOURCES[kind].path(namespace), query=query, accept=accept
            )
            metadata = page.get("metadata") or {}
            yield Page(page.get("items") or [], metadata.get("resourceVersion", ""))
            token = metadata.get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    async def cached(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[Page]:
        """Yield the objects of a kind that match a label selector as the API server's cache has
        them, some at a time; the last page alone says of which version they are.

        They are all of one moment, which may be before this call. Page by page some API servers
        read each object from etcd again, which takes them many times as long.
        """
        stream = ListStream()
        response = await self._open(
            "GET",
            RESOURCES[kind].path(namespace),
            query={"labelSelector": selector, "resourceVersion": "0"},
            accept="application/json",
            limits=aiohttp.ClientTimeout(
                total=None,
                sock_connect=_REQUEST_TIMEOUT_SECONDS,
                sock_read=_REQUEST_TIMEOUT_SECONDS,
            ),
        )
        async with response:
            while not stream.done:
                with _reached():
                    chunk = await response.content.readany()
                    if not chunk:
                        raise ValueError("a list that breaks off")
                    items = list(stream.feed(chunk))
                said: Manifest = (stream.rest.get("metadata") or {}) if stream.done else {}
                yield Page(items, said.get("resourceVersion", ""))

    async def apply(self, manifest: Manifest) -> Manifest:
        """Make the object so by server-side apply; what others own in it stays theirs.

        With a `uid` in its metadata only the object that has it is changed, and none is created.
        """
        return await self._apply(manifest, None)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Make the status subresource so by server-side apply.

        With a `resourceVersion` in its metadata it is refused (409) when the object is another one
        or was changed since. A `uid` alone is not looked at for a status.
        """
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

    async def create(self, manifest: Manifest) -> Manifest | None:
        """Create the object and return it; None when one of that name exists already."""
        metadata = manifest["metadata"]
        try:
            return await self._json(
                "POST",
                RESOURCES[manifest["kind"]].path(metadata.get("namespace")),
                query={"fieldManager": FIELD_MANAGER},
                body=manifest,
            )
        except KubeError as error:
            if error.conflict and error.reason == "AlreadyExists":
                return None
            raise

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> Manifest | None:
        """Delete the object that has this uid and, in the background, what it owns.

        Returns the object while it is still ending, None when it is gone. Another one of that name
        is left alone.
        """
        try:
            answer = await self._json(
                "DELETE",
                RESOURCES[kind].path(namespace, name),
                body={"propagationPolicy": "Background", "preconditions": {"uid": uid}},
            )
        except KubeError as error:
            if error.not_found or error.conflict:
                return None
            raise
        return answer if "deletionTimestamp" in (answer.get("metadata") or {}) else None

    async def log(self, namespace: str, pod: str, container: str) -> str:
        """Return what a container has written to its log so far; of a long log the end.

        Of one that is longer than `LOG_BYTES` the first line is `CUT_LINE`.
        """
        for lines in _TAIL_LINES:
            read = await self._tail(namespace, pod, container, lines)
            # The API server counts the bytes from the first line that was asked for: where they
            # do not reach to the end, fewer lines do.
            if len(read) < LOG_BYTES:
                break
        cut = lines != _TAIL_LINES[0] or read.count(b"\n") >= lines
        return (f"{CUT_LINE}\n" if cut else "") + read.decode(errors="replace")

    async def _tail(self, namespace: str, pod: str, container: str, lines: int) -> bytes:
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={
                "container": container,
                "tailLines": str(lines),
                "limitBytes": str(LOG_BYTES),
            },
            limits=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_SECONDS),
        )
        read = bytearray()
        async with response:
            while len(read) < LOG_BYTES:
                with _reached():
                    chunk = await response.content.readany()
                if not chunk:
                    break
                read += chunk
        return bytes(read[:LOG_BYTES])

    async def kubelet_answers(self, namespace: str, pod: str, container: str) -> bool:
        """Return whether the kubelet of a pod that has a node answers at all.

        The API server hands a question for a log on to the kubelet. Whatever that says, such as
        that there is no log yet, it is there.
        """
        try:
            response = await self._open(
                "GET",
                RESOURCES["Pod"].path(namespace, pod, "log"),
                query={"container": container, "tailLines": "1", "limitBytes": "1"},
                limits=aiohttp.ClientTimeout(total=_KUBELET_SECONDS),
            )
        except KubeError as error:
            return error.status in (400, 404)
        response.close()
        return True

    async def follow_log(self, namespace: str, pod: str, container: str) -> AsyncIterator[str]:
        """Yield the lines of a container's log as they are written, until it ends."""
        response = await self._open(
            "GET",
            RESOURCES["Pod"].path(namespace, pod, "log"),
            query={"container": container, "follow": "true"},
            limits=aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_TIMEOUT_SECONDS),
        )
        async for line in _lines(response):
            yield line.decode(errors="replace")

    async def watch(
        self,
        kind: str,
        namespace: str | None,
        selector: str = "",
        *,
        since: str,
        seconds: float,
        metadata_only: bool = False,
    ) -> AsyncIterator[tuple[str, Manifest]]:
        """Yield (type, object) for each change since a resource version.

        The API server ends it after so many seconds, and the client a little later: a connection
        that froze silently cannot hold it for ever. Bookmarks are asked for.

        Raises:
            KubeError: refused, broken off, or an ERROR event (410: the version is too old).
        """
        response = await self._open(
            "GET",
            RESOURCES[kind].path(namespace),
            query={
                "watch": "true",
                "labelSelector": selector,
                "resourceVersion": since,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(round(seconds)),
            },
            accept=_METADATA if metadata_only else "application/json",
            limits=aiohttp.ClientTimeout(
                total=seconds + _FROZEN_SECONDS, sock_connect=_REQUEST_TIMEOUT_SECONDS
            ),
        )
        async for line in _lines(response):
            with _reached():
                event = json.loads(line)
                type_, changed = str(event["type"]), dict(event["object"])
            if type_ == "ERROR":
                raise _kube_error(int(changed.get("code") or 0), json.dumps(changed))
            yield type_, changed

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
        with _reached():
            parsed = json.loads(await response.read())
            if not isinstance(parsed, dict):
                raise ValueError(f"an object was expected, not {type(parsed).__name__}")
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
        try:
            with _reached():
                request = await self._api.param_serialize(
                    method=method,
                    resource_path=path,
                    query_params=[(key, value) for key, value in (query or {}).items() if value],
                    header_params={"Accept": accept, "Content-Type": content_type},
                    body=body,
                    auth_settings=["BearerToken"],
                )
                wrapped = await self._api.call_api(
                    *request, _request_timeout=self._within(method, limits)
                )
                response: aiohttp.ClientResponse = wrapped.response
                if response.status < 400:
                    return response
                text = (await response.read()).decode(errors="replace")
        except client.ApiException as error:
            raise _kube_error(error.status or 0, str(error.body or error.reason or "")) from error
        raise _kube_error(response.status, text)

    def _within(self, method: str, limits: aiohttp.ClientTimeout) -> aiohttp.ClientTimeout:
        """Return the limits of a request, made closer by the gate if it writes."""
        if self._may_write is None or method == "GET":
            return limits
        left = self._may_write()
        if left <= 0:
            raise KubeError(0, "NotLeading", "another operator may be at work: nothing is written")
        return aiohttp.ClientTimeout(total=min(limits.total or left, left))


@contextmanager
def _reached() -> Iterator[None]:
    """Turn whatever a connection throws, or an answer that is none, into a KubeError of status 0.

    An answer can break off in its middle, or be garbage under a good status.
    """
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, OSError, EOFError) as error:
        raise KubeError(
            0, "Unreachable", shown(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise KubeError(
            0, "Garbled", shown(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)
        ) from error


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of an answer as they come, however long they are within reason."""
    rest = bytearray()
    async with response:
        while True:
            with _reached():
                chunk = await response.content.readany()
            if not chunk:
                break
            *whole, last = chunk.split(b"\n")
            for line in whole:
                yield bytes(rest + line)
                rest.clear()
            rest += last
            if len(rest) > _LONGEST_LINE_BYTES:
                raise KubeError(0, "Garbled", f"a line of more than {_LONGEST_LINE_BYTES} bytes")
    if rest:
        yield bytes(rest)


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
    # Quotas, webhooks and names of objects are other people's words.
    said = shown(str(message or text), _LONGEST_MESSAGE)
    return KubeError(status, shown(str(reason or "Error")), said)
