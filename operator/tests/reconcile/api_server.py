"""A small API server that speaks the real protocol over HTTP, for tests of what is made of it.

It has resource versions, uids and preconditions, label selectors, lists in pages, watches with
bookmarks, logs, a garbage collector, and the rights that the chart gives the operator: who asks for
more is refused, and the test fails. It can be told to misbehave: refuse, cut, freeze, forget.
What is tested against it is the protocol; whether the real one does the same, e2e/ shows.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from aiohttp import web
from kubernetes.aio import client

from laptime.kube import RESOURCES, Kube
from tests.chart_rights import granted

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace, name."""
Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

_KIND_OF = {(r.group, r.plural): r.kind for r in RESOURCES.values()}
_GRANTED = granted()
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)


@dataclass
class Event:
    """A change, as watches tell it."""

    version: int
    type: str
    kind: str
    object: Object


@dataclass
class ApiServer:
    """The state of the server, and the handler of its requests."""

    objects: dict[Key, Object] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Verb as the audit log has it (get, list, watch, create, patch, delete), and path."""
    logs: dict[str, str] = field(default_factory=dict)
    """What pods have written, by their name."""
    forbidden: set[str] = field(default_factory=set)
    """Namespaces in which everything but runs is refused."""
    forbidden_from: str = ""
    """From the first object of this kind on that is to be created, nothing is allowed beside it."""
    fault: Fault | None = None
    """Asked first: what it returns is the answer."""
    breaking_off: bool = False
    """Whether a log that is followed breaks off in the middle of what is written next."""
    collects: bool = True
    """Whether the garbage collector deletes what has no owner any more."""
    lacks: frozenset[str] = frozenset()
    """Fields of a status that its CustomResourceDefinition does not have, or not their words."""
    lacking_is: int = 500
    """The HTTP status by which it says so; 422: it has the fields."""
    resizes: bool = True
    """Whether it knows that pods can be resized: it is of Kubernetes 1.33 or later."""
    version: int = 1
    oldest: int = 0
    """Changes up to this version are forgotten: a watch from there is too old."""

    def __post_init__(self) -> None:
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._watches: set[web.StreamResponse] = set()
        self._transports: set[asyncio.Transport] = set()
        self.frozen = False
        """Whether watches send nothing although they are open."""
        self.beyond: list[tuple[str, str]] = []
        """What was asked that no role of the chart allows, as in `requests`."""

    # What tests do -------------------------------------------------------------------------

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((kind, namespace, name))

    def of(self, kind: str) -> list[Object]:
        return [one for (found, _, _), one in self.objects.items() if found == kind]

    def add(self, manifest: Object) -> Object:
        """Store an object as somebody would create it."""
        stored = deepcopy(manifest)
        metadata = stored["metadata"]
        metadata.setdefault("namespace", "default")
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["generation"] = 1
        for key, text in (stored.pop("stringData", None) or {}).items():
            stored.setdefault("data", {})[key] = text
        if self.collects and metadata.get("ownerReferences"):
            asyncio.get_running_loop().call_later(0.05, self._collect_orphan, metadata["uid"])
        return self._store("ADDED", stored)

    def _collect_orphan(self, uid: str) -> None:
        uids = {one["metadata"]["uid"]: key for key, one in self.objects.items()}
        if uid in uids:
            references = self.objects[uids[uid]]["metadata"]["ownerReferences"]
            if not any(reference["uid"] in uids for reference in references):
                self.remove(*uids[uid])

    def change(self, kind: str, namespace: str, name: str, /, **content: Any) -> Object:
        """Replace parts of an object, such as its status."""
        return self._store("MODIFIED", {**self.objects[kind, namespace, name], **content})

    def remove(self, kind: str, namespace: str, name: str) -> None:
        gone = self.objects.pop((kind, namespace, name))
        self.version += 1
        last = deepcopy(gone)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._tell(Event(self.version, "DELETED", kind, last))
        if self.collects:
            self.collect(gone["metadata"]["uid"])

    def collect(self, owner: str) -> None:
        """Delete what an object owned."""
        for (kind, namespace, name), one in list(self.objects.items()):
            owners = one["metadata"].get("ownerReferences") or []
            if any(reference["uid"] == owner for reference in owners):
                self.remove(kind, namespace, name)

    def compact(self) -> None:
        """Forget all changes so far."""
        self.oldest = self.version
        self._events.clear()

    def stop_clock_at(self, moment: datetime) -> None:
        """Say this time with each answer."""

        async def dated(request: web.Request) -> web.StreamResponse | None:
            if request.query.get("watch"):
                return None
            answer = await self.answer(request)
            answer.headers["Date"] = format_datetime(moment.astimezone(UTC), usegmt=True)
            return answer

        self.fault = dated

    def cut(self) -> None:
        """Cut all open watches in the middle of what they say."""
        for transport in list(self._transports):
            transport.abort()

    # The state -----------------------------------------------------------------------------

    def _store(self, type_: str, manifest: Object) -> Object:
        self.version += 1
        stored = deepcopy(manifest)
        metadata = stored["metadata"]
        metadata["resourceVersion"] = str(self.version)
        self.objects[stored["kind"], metadata["namespace"], metadata["name"]] = stored
        self._tell(Event(self.version, type_, stored["kind"], stored))
        return stored

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._changed.set()
        self._changed = asyncio.Event()

    # Requests ------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        found = _PATH.fullmatch(request.path)
        assert found, request.path
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(request.method) or (
            "watch" if request.query.get("watch") else "get" if found["name"] else "list"
        )
        self.requests.append((verb, request.path))
        what = "/".join(part for part in (found["plural"], found["sub"]) if part)
        if found["group"]:
            what += f".{found['group']}"
        if (what, verb) not in _GRANTED:
            self.beyond.append((verb, request.path))
            return _refusal(403, "Forbidden", f"the operator may not {verb} {what}")
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        return await self.answer(request)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return what the server says to a request when nothing goes wrong."""
        found = _PATH.fullmatch(request.path)
        assert found, request.path
        kind = _KIND_OF[found["group"] or "", found["plural"]]
        namespace, name, sub = found["namespace"], found["name"], found["sub"]
        watching = request.query.get("watch") == "true"
        if request.method == "POST" and kind == self.forbidden_from:
            self.forbidden.add(namespace)
        if namespace in self.forbidden and kind != "BenchmarkRun":
            return _refusal(403, "Forbidden", f"you may do nothing in {namespace}")
        if watching:
            return await self._watch(request, kind, namespace)
        match request.method:
            case "GET" if name is None:
                return self._list(request, kind, namespace)
            case "GET" if sub == "log":
                return await self._log(request, name or "")
            case "GET":
                one = self.objects.get((kind, namespace or "", name or ""))
                return web.json_response(one) if one else _not_found(name)
            case "POST":
                dry = request.query.get("dryRun") == "All"
                return self._create(await request.json(), namespace or "", dry=dry)
            case "PATCH":
                applied = json.loads(await request.text())
                if sub == "resize":
                    return self._resize(applied, namespace or "", name or "")
                return self._apply(applied, kind, namespace or "", name or "", sub)
        return self._delete(await request.json(), kind, namespace or "", name or "")

    def _selected(self, request: web.Request, kind: str, namespace: str | None) -> list[Object]:
        selector = request.query.get("labelSelector", "")
        return [
            one
            for (of, where, _), one in sorted(self.objects.items())
            if of == kind and namespace in (None, where) and _matches(one, selector)
        ]

    def _list(self, request: web.Request, kind: str, namespace: str | None) -> web.Response:
        items = self._selected(request, kind, namespace)
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query.get("limit") or len(items) + 1)
        metadata: Object = {"resourceVersion": str(self.version)}
        if end < len(items):
            metadata["continue"] = str(end)
        shown = [_shown(request, one) for one in items[begin:end]]
        return web.json_response({"metadata": metadata, "items": shown})

    def _create(self, manifest: Object, namespace: str, *, dry: bool = False) -> web.Response:
        metadata = manifest["metadata"]
        metadata["namespace"] = namespace
        if (manifest["kind"], namespace, metadata["name"]) in self.objects:
            return _refusal(409, "AlreadyExists", f"{metadata['name']} already exists")
        return web.json_response(manifest if dry else self.add(manifest), status=201)

    def _resize(self, patch: Object, namespace: str, name: str) -> web.Response:
        if not self.resizes:
            return _refusal(404, "NotFound", "the server could not find the requested resource")
        pod = self.objects.get(("Pod", namespace, name))
        if pod is None:
            return _not_found(name)
        if patch["metadata"]["uid"] != pod["metadata"]["uid"]:
            said = f'Pod "{name}" is invalid: metadata.uid: Invalid value: field is immutable'
            return _refusal(422, "Invalid", said)
        changed = {one["name"]: one["resources"] for one in patch["spec"]["containers"]}
        containers = [
            {**one, "resources": changed.get(one["name"], one.get("resources"))}
            for one in pod["spec"]["containers"]
        ]
        spec = {**pod["spec"], "containers": containers}
        return web.json_response(self.change("Pod", namespace, name, spec=spec))

    def _apply(
        self, manifest: Object, kind: str, namespace: str, name: str, sub: str | None
    ) -> web.Response:
        old = self.objects.get((kind, namespace, name))
        uid = manifest["metadata"].pop("uid", None)
        if old is None:
            if uid is not None:
                return _refusal(409, "Conflict", "uid mismatch: no existing object was found")
            return _not_found(name) if sub else web.json_response(self.add(manifest), status=201)
        version = manifest["metadata"].pop("resourceVersion", None)
        if version not in (None, old["metadata"]["resourceVersion"]):
            return _refusal(409, "Conflict", "the object has been modified")
        if sub == "status":
            for field_ in sorted(self.lacks & manifest["status"].keys()):
                if self.lacking_is == 422:
                    return _refusal(422, "Invalid", not_among(f"status.{field_}", name))
                said = not_in_schema(f".status.{field_}", name)
                return _refusal(self.lacking_is, "", said)
            # Of the metadata nothing else is looked at.
            return web.json_response(self.change(kind, namespace, name, status=manifest["status"]))
        if uid not in (None, old["metadata"]["uid"]):
            return _refusal(422, "Invalid", "metadata.uid: field is immutable")
        metadata = {**old["metadata"], **manifest["metadata"]}
        content = {key: one for key, one in manifest.items() if key != "metadata"}
        return web.json_response(self.change(kind, namespace, name, metadata=metadata, **content))

    def _delete(self, options: Object, kind: str, namespace: str, name: str) -> web.Response:
        old = self.objects.get((kind, namespace, name))
        if old is None:
            return _not_found(name)
        wanted = options.get("preconditions") or {}
        for key, name_of_it in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if wanted.get(key) not in (None, old["metadata"][key]):
                said = f"Precondition failed: {name_of_it} in precondition"
                return _refusal(409, "Conflict", said)
        self.remove(kind, namespace, name)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _log(self, request: web.Request, pod: str) -> web.StreamResponse:
        if request.query.get("follow") != "true":
            # As the kubelet does it: first the lines, then the bytes from the first of them on.
            text = self.logs.get(pod, "")
            if "tailLines" in request.query:
                text = "".join(text.splitlines(keepends=True)[-int(request.query["tailLines"]) :])
            limit = int(request.query.get("limitBytes", len(text.encode())))
            return web.Response(body=text.encode()[:limit])
        response = web.StreamResponse()
        await response.prepare(request)
        said = 0
        while pod in {name for kind, _, name in self.objects if kind == "Pod"}:
            text = self.logs.get(pod, "")
            if len(text) > said:
                if self.breaking_off:
                    await response.write(text[: -len(text) // 4].encode())
                    return response
                await response.write(text[said:].encode())
                said = len(text)
            await asyncio.sleep(0.01)
        return response

    async def _watch(
        self, request: web.Request, kind: str, namespace: str | None
    ) -> web.StreamResponse:
        since = int(request.query.get("resourceVersion") or self.version)
        if since < self.oldest:
            return _refusal(410, "Expired", "too old resource version")
        selector = request.query.get("labelSelector", "")
        ends = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        response = web.StreamResponse()
        await response.prepare(request)
        assert isinstance(request.transport, asyncio.Transport)
        self._transports.add(request.transport)
        with suppress(ConnectionError):
            while (left := ends - asyncio.get_running_loop().time()) > 0 or self.frozen:
                if self.frozen:
                    await asyncio.sleep(0.01)
                    continue
                changed = self._changed
                if since < self.oldest:
                    gone = {"kind": "Status", "code": 410, "reason": "Expired"}
                    await response.write(_line("ERROR", gone))
                    break
                for event in [one for one in self._events if one.version > since]:
                    since = event.version
                    where = event.object["metadata"]["namespace"]
                    if event.kind != kind or namespace not in (None, where):
                        continue
                    if _matches(event.object, selector):
                        await response.write(_line(event.type, _shown(request, event.object)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await changed.wait()
            bookmark = {"kind": kind, "metadata": {"resourceVersion": str(since)}}
            await response.write(_line("BOOKMARK", bookmark))
        self._transports.discard(request.transport)
        return response


def _line(type_: str, manifest: Object) -> bytes:
    return json.dumps({"type": type_, "object": manifest}).encode() + b"\n"


def _shown(request: web.Request, manifest: Object) -> Object:
    if "PartialObjectMetadata" in request.headers.get("Accept", ""):
        return {"kind": "PartialObjectMetadata", "metadata": manifest["metadata"]}
    return manifest


def _matches(manifest: Object, selector: str) -> bool:
    labels = manifest["metadata"].get("labels") or {}
    wanted = [part.split("=") for part in selector.split(",") if part]
    return all(
        part[0] in labels if len(part) == 1 else labels.get(part[0]) == part[1] for part in wanted
    )


def not_in_schema(path: str, name: str, why: str = "field not declared in schema") -> str:
    """Return what an API server says of a field in an applied run of which it knows nothing.

    Or, with `why`, of one that it cannot read.
    """
    of_it = f"default/{name}; laptime.dev/v1alpha1, Kind=BenchmarkRun"
    return f"failed to create typed patch object ({of_it}): {path}: {why}"


def not_among(path: str, name: str) -> str:
    """Return what an API server says of a word of a run that is none of its enum."""
    said = f'{path}: Unsupported value: "Newer": supported values: "Older"'
    more = '<nil>: Invalid value: "null": some validation rules were not checked'
    return f'BenchmarkRun.laptime.dev "{name}" is invalid: [{said}, {more}]'


def _refusal(code: int, reason: str, message: str) -> web.Response:
    content = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(content, status=code)


def _not_found(name: str | None) -> web.Response:
    return _refusal(404, "NotFound", f"{name} not found")


@asynccontextmanager
async def serving(server: ApiServer) -> AsyncIterator[Kube]:
    """Serve it on a free port of this machine; yield a client of it."""
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    _, port = runner.addresses[0][:2]
    kube = Kube(client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{port}")))
    try:
        yield kube
    finally:
        await kube.close()
        await runner.cleanup()
    assert not server.beyond, "no role of the chart allows this"
