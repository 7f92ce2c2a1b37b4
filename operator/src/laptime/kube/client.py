"""The client: what Laptime asks of a Kubernetes API server, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from kubernetes.aio import client, config

from laptime.api.text import shown
from laptime.kube.connection import REQUEST_TIMEOUT_SECONDS, lines
from laptime.kube.errors import KubeError, kube_error, reached
from laptime.kube.logs import Logs
from laptime.kube.resources import RESOURCES, Manifest
from laptime.list_stream import ListStream

FIELD_MANAGER = "laptime"

_FROZEN_SECONDS = 5
"""So much later than the API server should end a watch, the client gives it up."""
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
"""Objects per answer of a list."""
_NOT_ASCII = re.compile(r"[\x7f-\uffff]")


async def connect(said: Callable[[str, int], None] | None = None) -> Kube:
    """Return a client for the cluster that this process runs in, or that KUBECONFIG names.

    `said` is called with method and status code (0: not reached) of every request.
    """
    configuration = client.Configuration()
    try:
        config.load_incluster_config(configuration)
    except config.ConfigException:
        await config.load_kube_config(client_configuration=configuration)
    # Each run at work holds connections, of its watches and of the logs that it follows. One that
    # waits for another to be free could be the lease's, and the operator would lose it.
    configuration.connection_pool_maxsize = 0
    # Python 3.13 refuses the CA of many a cluster, for extensions that no other client asks for.
    configuration.disable_strict_ssl_verification = True
    return Kube(client.ApiClient(configuration), said)


@dataclass(frozen=True)
class Page:
    """Some of the objects of a list, and the resource version that the list is of."""

    items: list[Manifest]
    resource_version: str


class Kube(Logs):
    """A client. Every method raises KubeError when the API server says no.

    And ValueError, before it asks, where a name or namespace is none that there can be.
    """

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
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
        """Yield the objects of a kind that match a label selector, some at a time.

        They are asked for page by page, and are all of the same moment; the last of each page says
        of which version they are. With `metadata_only` the API server sends only their metadata.
        """
        accept = _METADATA_LIST if metadata_only else "application/json"
        query = {"labelSelector": selector, "limit": str(limit)}
        while True:
            token = None
            async for items, metadata in self._list(kind, namespace, query, accept):
                yield Page(items, metadata.get("resourceVersion", ""))
                token = metadata.get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    async def time(self, kind: str, namespace: str) -> datetime:
        """Return what time it is by the clock of the API server, in whole seconds (UTC).

        It says so with each answer: here with that to a list of a kind.

        Raises:
            KubeError: refused, or no time was said.
        """
        response = await self._open(
            "GET",
            RESOURCES[kind].collection(namespace),
            query={"limit": "1"},
            accept=_METADATA_LIST,
            limits=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS),
        )
        with reached():
            async with response:
                await response.read()
            return parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)

    async def cached(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[Page]:
        """Yield the objects of a kind that match a label selector as the API server's cache has
        them, some at a time; the last ones alone say of which version they are.

        They are all of one moment, which is not before this call. Page by page some API servers
        read each object from etcd again, which takes them many times as long: so one is asked for
        like that, which says how new the cache has to be.

        Raises:
            KubeError: as ever, and with status 504 where the cache does not get so new within some
                seconds.
        """
        query = {"labelSelector": selector, "limit": "1"}
        version = "0"
        async for _, metadata in self._list(kind, namespace, query, _METADATA_LIST):
            version = metadata.get("resourceVersion", "") or version
        query = {"labelSelector": selector, "resourceVersion": version}
        query["resourceVersionMatch"] = "NotOlderThan"
        async for items, metadata in self._list(kind, namespace, query, "application/json"):
            yield Page(items, metadata.get("resourceVersion", ""))

    async def _list(
        self, kind: str, namespace: str | None, query: dict[str, str], accept: str
    ) -> AsyncIterator[tuple[list[Manifest], Manifest]]:
        """Yield the items of an answer as they come, at last with the metadata of the list.

        One after the other: whoever may write into a namespace makes the whole as large as he
        likes.
        """
        stream = ListStream()
        response = await self._open(
            "GET",
            RESOURCES[kind].collection(namespace),
            query=query,
            accept=accept,
            limits=aiohttp.ClientTimeout(
                total=None,
                sock_connect=REQUEST_TIMEOUT_SECONDS,
                sock_read=REQUEST_TIMEOUT_SECONDS,
            ),
        )
        async with response:
            while not stream.done:
                with reached():
                    chunk = await response.content.readany()
                    if not chunk:
                        raise ValueError("a list that breaks off")
                    items = list(stream.feed(chunk))
                yield items, (stream.rest.get("metadata") or {}) if stream.done else {}

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

    async def resize(
        self, namespace: str, name: str, uid: str, container: str, cpu: str
    ) -> Manifest:
        """Give a container of the running pod that has this uid so much CPU, and return the pod.

        As request and limit. The kubelet does so a little later, and without a restart.

        Raises:
            KubeError: refused, also where the API server is older than Kubernetes 1.33 (404).
        """
        amount = {"cpu": cpu}
        of_it = {"name": container, "resources": {"requests": amount, "limits": amount}}
        return await self._json(
            "PATCH",
            RESOURCES["Pod"].path(namespace, name, "resize"),
            query={"fieldManager": FIELD_MANAGER},
            # With the uid: a pod that took its place in this moment is left as it is.
            body={"metadata": {"uid": uid}, "spec": {"containers": [of_it]}},
            content_type="application/strategic-merge-patch+json",
        )

    async def _apply(self, manifest: Manifest, sub: str | None) -> Manifest:
        metadata = manifest["metadata"]
        path = RESOURCES[manifest["kind"]].path(metadata["namespace"], metadata["name"], sub)
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
                RESOURCES[manifest["kind"]].collection(metadata["namespace"]),
                query={"fieldManager": FIELD_MANAGER},
                body=manifest,
            )
        except KubeError as error:
            if error.conflict and error.reason == "AlreadyExists":
                return None
            raise

    async def could_create(self, manifest: Manifest) -> bool:
        """Return whether the object could be created, by a dry run, which stores nothing.

        False where one of that name exists, and where the API server says no for another reason.
        """
        try:
            await self._json(
                "POST",
                RESOURCES[manifest["kind"]].collection(manifest["metadata"]["namespace"]),
                query={"fieldManager": FIELD_MANAGER, "dryRun": "All"},
                body=manifest,
            )
        except KubeError as error:
            if error.status:
                return False
            raise
        return True

    async def delete(
        self, kind: str, namespace: str, name: str, uid: str, *, version: str | None = None
    ) -> Manifest | None:
        """Delete the object that has this uid and, in the background, what it owns.

        With a resource version it is deleted only if it has not changed since. Returns the object
        while it is still ending, None when it is gone. Another one of that name is left alone.

        Raises:
            KubeError: refused, also where the object was changed in this moment: it is still there.
            ValueError: it is no uid, which the API server would take for no condition at all.
        """
        if not isinstance(uid, str) or not uid:
            raise ValueError(f"{shown(repr(uid))} is no uid: nothing is deleted without one")
        wanted = {"uid": uid} | ({"resourceVersion": version} if version is not None else {})
        try:
            answer = await self._json(
                "DELETE",
                RESOURCES[kind].path(namespace, name),
                body={"propagationPolicy": "Background", "preconditions": wanted},
            )
        except KubeError as error:
            if error.not_found or error.another:
                return None
            raise
        return answer if "deletionTimestamp" in (answer.get("metadata") or {}) else None

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
            RESOURCES[kind].collection(namespace),
            query={
                "watch": "true",
                "labelSelector": selector,
                "resourceVersion": since,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(round(seconds)),
            },
            accept=_METADATA if metadata_only else "application/json",
            limits=aiohttp.ClientTimeout(
                total=seconds + _FROZEN_SECONDS, sock_connect=REQUEST_TIMEOUT_SECONDS
            ),
        )
        async for line in lines(response):
            with reached():
                event = json.loads(line)
                type_, changed = str(event["type"]), dict(event["object"])
            if type_ == "ERROR":
                raise kube_error(int(changed.get("code") or 0), json.dumps(changed))
            yield type_, changed


def _json_that_is_yaml(manifest: Manifest) -> str:
    """Return JSON that a YAML parser reads as the same.

    YAML knows no pairs of surrogates, as which JSON may write what is beyond U+FFFF; what is below
    is escaped, since YAML takes some of it for line breaks.
    """
    text = json.dumps(manifest, ensure_ascii=False)
    return _NOT_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
