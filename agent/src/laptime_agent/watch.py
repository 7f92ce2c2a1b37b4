"""The pods on this node, as the API server tells: one list, then watches, for ever."""

from __future__ import annotations

import http.client
import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import sleep
from typing import Any
from urllib.parse import urlencode

from laptime_agent.list_stream import MOST_BYTES, ListStream
from laptime_agent.pods import UID_LABEL, Pod

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_WATCH_SECONDS = 300
# A watch says something at least this often: it ends after _WATCH_SECONDS.
_SILENCE_SECONDS = _WATCH_SECONDS + 30
_SHORTEST_SECONDS = 1.0
"""From the begin of a watch to the next: whoever ends each at once is not asked without a pause."""
_RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0)
_ANY_VERSION = "0"
_CHUNK_BYTES = 2**16
MOST_PODS = 5_000
"""On a node, with those that are over: a kubelet takes some hundreds, and who names the node in a
pod can make any number that it refuses."""
_SHORT_FAILURES = 4
"""An API server that starts again is away for no more, one after the other."""
# It is too old, or, to an etcd that was restored, too new.
_UNKNOWN_VERSION = (410, 504)
_WHOLE = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"

logger = logging.getLogger(__name__)


class Refused(Exception):
    """The API server answered, and not with what was asked for."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True)
class ApiServer:
    """Where the API server is and how to show who asks; the token is read anew for each request."""

    host: str
    port: int
    token_file: str
    authority_file: str | None

    @classmethod
    def of_this_pod(cls) -> ApiServer:
        """Return the API server of the cluster that this process runs in; KeyError outside."""
        return cls(
            os.environ["KUBERNETES_SERVICE_HOST"],
            int(os.environ.get("KUBERNETES_SERVICE_PORT", "443")),
            f"{_ACCOUNT}/token",
            f"{_ACCOUNT}/ca.crt",
        )

    def get(self, path: str, timeout_seconds: float, accept: str) -> http.client.HTTPResponse:
        """Return the answer to a GET request, its body unread; `accept` is the form that it has.

        Raises:
            Refused: the status is not 200.
            OSError, http.client.HTTPException: it cannot be reached.
        """
        context = ssl.create_default_context(cafile=self.authority_file)
        # Python 3.13 refuses the CA of many a cluster, for extensions that no other client wants.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout_seconds, context=context
        )
        with open(self.token_file, encoding="ascii") as file:
            token = file.read().strip()
        connection.request(
            "GET",
            path,
            headers={"Authorization": f"Bearer {token}", "Accept": accept},
        )
        response = connection.getresponse()
        if response.status != 200:
            body = response.read(4096)
            connection.close()
            raise Refused(response.status, body.decode("utf-8", "replace"))
        return response


class PodWatch:
    """Keeps the pods of one namespace (or of all) on one node: of runs, or those of no run.

    `changed` is called, in the watch's own thread, with all pods whenever one has changed. Of
    `neighbours`, those of no run, only the metadata is asked for.
    """

    def __init__(
        self,
        api: ApiServer,
        node: str,
        namespace: str | None,
        changed: Callable[[Mapping[str, Pod]], None],
        *,
        neighbours: bool = False,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._changed = changed
        self._pods: dict[str, Pod] = {}
        self._what = f"{'neighbours' if neighbours else 'pods'} in {namespace or 'all namespaces'}"
        self._selectors = {
            "fieldSelector": f"spec.nodeName={node}",
            "labelSelector": f"!{UID_LABEL}" if neighbours else UID_LABEL,
        }
        self._accept_list, self._accept_watch = (
            (_METADATA.format("List"), _METADATA.format("")) if neighbours else (_WHOLE, _WHOLE)
        )
        self._version = _ANY_VERSION
        self._listed = False
        """Whether the changes since that version are all that is missing."""
        self._failures = 0
        self._left_out = False
        """Whether that was said of any pod."""
        self.up = False
        """Whether the API server last did what was asked."""

    def start(self) -> None:
        """Begin to watch, in a thread that ends with the process."""
        threading.Thread(target=self._run_for_ever, name=self._what, daemon=True).start()

    def _run_for_ever(self) -> None:
        last_said = ""
        while True:
            try:
                if not self._listed:
                    self._list()
                while True:
                    begun = time.monotonic()
                    self._watch()
                    last_said = ""
                    sleep(max(0.0, begun + _SHORTEST_SECONDS - time.monotonic()))
            except Exception as error:
                # Whatever was answered: nobody begins this thread again.
                refused = error.status if isinstance(error, Refused) else None
                lost = isinstance(error, (OSError, http.client.HTTPException, Refused))
                if refused in _UNKNOWN_VERSION or not lost or self._failures >= _SHORT_FAILURES:
                    # Nobody says any more what has changed since then. Else it goes on from there:
                    # an API server that starts again refuses much for some seconds. After longer
                    # it may have an older state, and a watch would wait until that is as new.
                    self._listed = False
                if refused != 410:
                    # What is known of the pods stays: they run on while the API server restarts.
                    self.up = False
                    said = f"{type(error).__name__}: {error}"
                    if said != last_said:
                        logger.warning("%s: %s", self._what, said)
                    last_said = said
                sleep(_RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)])
                self._failures += 1

    def _path(self, **parameters: str) -> str:
        scope = f"namespaces/{self._namespace}/" if self._namespace else ""
        return f"/api/v1/{scope}pods?{urlencode({**self._selectors, **parameters})}"

    def _list(self) -> None:
        """Take all pods as the API server has them in its memory.

        By a quorum of etcd it would be asked for all pods of a cluster, by each node, whenever an
        API server restarts. What it has may be older than now, but not than what is known.
        """
        path = self._path(resourceVersion=self._version)
        stream = ListStream()
        pods: dict[str, Pod] = {}
        try:
            with self._api.get(path, 30.0, self._accept_list) as response:
                while not stream.done:
                    chunk = response.read(_CHUNK_BYTES)
                    if not chunk:
                        raise ValueError("a list that breaks off")
                    # One by one: whoever may make pods here makes the whole as large as he likes.
                    for document in stream.feed(chunk):
                        self._put(pods, document)
        except Refused as error:
            if error.status in _UNKNOWN_VERSION:
                # Such as by an etcd that was restored, which never had this version.
                self._version = _ANY_VERSION
            raise
        self._version = str(stream.rest["metadata"]["resourceVersion"])
        self._pods = pods
        self._listed, self.up, self._failures = True, True, 0
        self._changed(self._pods)

    def _put(self, pods: dict[str, Pod], document: Mapping[str, Any]) -> None:
        """Take in a pod; one that is not understood keeps no other from being heard of."""
        uid = document["metadata"]["uid"]
        if uid not in pods and len(pods) >= MOST_PODS:
            problem = f"there are more than {MOST_PODS}"
        else:
            try:
                pods[uid] = Pod.from_wire(document)
                return
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        # It is heard of again with each change, and one line tells of all of them.
        if not self._left_out:
            self._left_out = True
            logger.warning("%s: a pod is left out: %.200s", self._what, problem)

    def _watch(self) -> None:
        """Follow the changes since the last version until the watch ends."""
        path = self._path(
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=self._version,
            timeoutSeconds=str(_WATCH_SECONDS),
        )
        with self._api.get(path, _SILENCE_SECONDS, self._accept_watch) as response:
            self.up, self._failures = True, 0
            for event in _events(response):
                self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        document = event["object"]
        if event["type"] == "ERROR":
            raise Refused(int(document.get("code", 500)), str(document.get("message", "")))
        if event["type"] == "DELETED":
            self._pods = {k: v for k, v in self._pods.items() if k != document["metadata"]["uid"]}
            self._changed(self._pods)
        elif event["type"] in ("ADDED", "MODIFIED"):
            pods = dict(self._pods)
            self._put(pods, document)
            self._pods = pods
            self._changed(self._pods)
        self._version = str(document["metadata"]["resourceVersion"])


def _events(response: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
    while line := response.readline(MOST_BYTES):
        if len(line) == MOST_BYTES:
            raise ValueError(f"an event of more than {MOST_BYTES} bytes")
        yield json.loads(line)
