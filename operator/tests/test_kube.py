"""What the client module writes, and what it makes of what it reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes.aio import client
from kubernetes.aio.config import kube_config

from laptime.catalog import scenarios
from laptime.kube import LOG_BYTES, Kube, KubeError, Manifest
from laptime.kube.client import _json_that_is_yaml, connect
from laptime.kube.errors import kube_error
from laptime.measure.generator import CUT_LINE, GeneratorError, parse_generator_output
from tests.private_ca import Authority, as_in_python_3_13, kubeconfig, tls_server
from tests.reconcile.api_server import ApiServer, Fault, not_among, not_in_schema, serving

TEXTS = [
    "plain", "Łódź", "emoji 🍲 and more 👩‍🍳", "line\u2028break", "next\x85line", "\x7f\x9f",
    "\ufeffbom", 'quote " and \\ud83c', "\\\\🍲", "tab\tand\nlines", "\uffff", "'1': [~]",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_applied_reads_the_same_as_json_and_as_yaml(text: str) -> None:
    manifest: Manifest = {"kind": "ConfigMap", "data": {text: text}}
    written = _json_that_is_yaml(manifest)
    assert json.loads(written) == manifest
    assert yaml.safe_load(written) == manifest


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_the_data_of_every_scenario_can_be_applied(name: str) -> None:
    manifest: Manifest = {"data": dict(scenarios()[name].init_sql)}
    assert yaml.load(_json_that_is_yaml(manifest), yaml.CSafeLoader) == manifest


async def _ways_to_ask(kube: Kube) -> dict[str, Callable[[], Awaitable[object]]]:
    async def pages() -> None:
        async for _ in kube.pages("Pod", "default"):
            pass

    async def cached() -> None:
        async for _ in kube.cached("Pod", "default"):
            pass

    async def watch() -> None:
        async for _ in kube.watch("Pod", "default", since="1", seconds=1):
            pass

    manifest = {"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}
    return {
        "get": lambda: kube.get("ConfigMap", "default", "one"),
        "pages": pages,
        "cached": cached,
        "watch": watch,
        "create": lambda: kube.create(manifest),
        "apply": lambda: kube.apply(manifest),
        "delete": lambda: kube.delete("ConfigMap", "default", "one", "uid"),
    }


async def _broken_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"items": [')
    assert request.transport is not None
    request.transport.close()
    return response


async def _garbage(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>a proxy says hello</html>\n")


async def _another_shape(request: web.Request) -> web.StreamResponse:
    return web.Response(text='["a list"]\n')


async def _nested_too_deeply(request: web.Request) -> web.StreamResponse:
    return web.Response(text="[" * 100_000 + "\n")


async def _not_even_http(request: web.Request) -> web.StreamResponse:
    assert isinstance(request.transport, asyncio.Transport)
    request.transport.write(b"\x00\xff\x00 nonsense\r\n\r\n")
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize("way", ["get", "pages", "cached", "watch", "create", "apply", "delete"])
@pytest.mark.parametrize(
    "fault", [_broken_off, _garbage, _another_shape, _nested_too_deeply, _not_even_http]
)
async def test_whatever_a_connection_throws_is_a_kube_error(way: str, fault: Fault) -> None:
    server = ApiServer(fault=fault)
    async with serving(server) as kube:
        with pytest.raises(KubeError) as raised:
            await (await _ways_to_ask(kube))[way]()
        assert raised.value.status == 0
        # And the client still works.
        server.fault = None
        assert await kube.get("ConfigMap", "default", "one") is None


async def _changed_meanwhile(request: web.Request) -> web.StreamResponse:
    said = 'Operation cannot be fulfilled on configmaps "one": the object has been modified'
    return web.json_response({"reason": "Conflict", "message": said}, status=409)


async def test_an_object_that_was_not_deleted_is_not_taken_for_gone() -> None:
    server = ApiServer(fault=_changed_meanwhile)
    one = server.add({"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}})
    uid = one["metadata"]["uid"]
    async with serving(server) as kube:
        with pytest.raises(KubeError) as raised:
            await kube.delete("ConfigMap", "default", "one", uid)
        assert raised.value.conflict
        server.fault = None
        # Another one of its name is none of ours, and ours is gone.
        assert await kube.delete("ConfigMap", "default", "one", "another-uid") is None
        assert await kube.get("ConfigMap", "default", "one") is not None
        assert await kube.delete("ConfigMap", "default", "one", uid) is None
        assert await kube.get("ConfigMap", "default", "one") is None


NO_NAMES: list[Any] = [
    "../../kube-system/configmaps/coredns", "..", ".", "", "one/two", "one%2ftwo", "one?two",
    "one#two", "one two", "One", "one\n", None, 1,
]  # fmt: skip


@pytest.mark.parametrize("place", ["namespace", "name"])
@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
async def test_what_is_no_name_leads_nowhere(name: Any, place: str) -> None:
    """Whoever wrote it down: the path of a URL is made of it."""
    where = {"namespace": "default", "name": "one", place: name}
    namespace, one = where.values()
    manifest = {"kind": "ConfigMap", "metadata": where}
    server = ApiServer()
    async with serving(server) as kube:

        async def follow() -> None:
            async for _ in kube.follow_log(namespace, one, "k6"):
                pass

        ways: list[Callable[[], Awaitable[object]]] = [
            lambda: kube.get("ConfigMap", namespace, one),
            lambda: kube.apply(manifest),
            lambda: kube.apply_status(manifest),
            lambda: kube.resize(namespace, one, "uid", "postgres", "1"),
            lambda: kube.delete("ConfigMap", namespace, one, "uid"),
            lambda: kube.log(namespace, one, "k6"),
            lambda: kube.kubelet_answers(namespace, one, "k6"),
            follow,
        ]
        for way in ways:
            with pytest.raises(ValueError, match="is no name"):
                await way()
    assert server.requests == []


@pytest.mark.parametrize("namespace", [one for one in NO_NAMES if one is not None], ids=repr)
async def test_no_list_is_of_what_is_no_namespace(namespace: Any) -> None:
    server = ApiServer()
    async with serving(server) as kube:

        async def pages() -> None:
            async for _ in kube.pages("Pod", namespace):
                pass

        async def cached() -> None:
            async for _ in kube.cached("Pod", namespace):
                pass

        async def watch() -> None:
            async for _ in kube.watch("Pod", namespace, since="1", seconds=1):
                pass

        manifest = {"kind": "ConfigMap", "metadata": {"name": "one", "namespace": namespace}}
        ways: list[Callable[[], Awaitable[object]]] = [
            pages,
            cached,
            watch,
            lambda: kube.create(manifest),
            lambda: kube.could_create(manifest),
        ]
        for way in ways:
            with pytest.raises(ValueError, match="is no name"):
                await way()
    assert server.requests == []


@pytest.mark.parametrize("uid", [None, "", 1])
async def test_nothing_is_deleted_without_a_uid(uid: Any) -> None:
    """An API server takes none for no condition at all."""
    server = ApiServer()
    server.add({"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}})
    async with serving(server) as kube:
        with pytest.raises(ValueError, match="is no uid"):
            await kube.delete("ConfigMap", "default", "one", uid)
    assert server.get("ConfigMap", "default", "one") is not None
    assert server.requests == []


async def test_what_has_changed_since_is_not_deleted() -> None:
    server = ApiServer()
    one = server.add({"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}})
    uid, version = one["metadata"]["uid"], one["metadata"]["resourceVersion"]
    changed = server.change("ConfigMap", "default", "one", data={"a": "b"})["metadata"]
    async with serving(server) as kube:
        with pytest.raises(KubeError) as refused:
            await kube.delete("ConfigMap", "default", "one", uid, version=version)
        assert refused.value.conflict
        assert not refused.value.another
        now = changed["resourceVersion"]
        assert await kube.delete("ConfigMap", "default", "one", uid, version=now) is None
    assert server.get("ConfigMap", "default", "one") is None


@pytest.mark.parametrize(
    ("status", "answers"),
    [(400, True), (404, True), (500, None), (401, None), (429, None), (503, None)],
)
async def test_a_throttled_question_says_nothing_of_a_kubelet(
    status: int, answers: bool | None
) -> None:
    server = ApiServer()

    async def fault(request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"message": "any"}, status=status)

    server.fault = fault
    async with serving(server) as kube:
        assert await kube.kubelet_answers("default", "one", "k6") is answers


@pytest.mark.parametrize("dialled", [True, False])
@pytest.mark.parametrize("there", [True, False])
async def test_a_kubelet_is_silent_only_where_the_api_server_is_not(
    there: bool, dialled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dialled`: the API server says that it did not reach the kubelet, and is not just silent."""
    monkeypatch.setattr("laptime.kube.logs._KUBELET_SECONDS", 0.2)
    server = ApiServer()
    server.add({"kind": "Pod", "metadata": {"name": "one", "namespace": "default"}})

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if request.path.endswith("/log") and dialled:
            return web.json_response({"message": "dial tcp: connection refused"}, status=500)
        if request.path.endswith("/log") or not there:
            await asyncio.sleep(3600)
        return None

    server.fault = fault
    async with serving(server) as kube:
        assert await kube.kubelet_answers("default", "one", "k6") is (False if there else None)


NUMBER = (
    'BenchmarkRun.laptime.dev "one" is invalid: [status.seed: Invalid value: "number": seed in '
    'body must be of type integer: "number", <nil>: Invalid value: null: some validation rules '
    "were not checked because the object was invalid; correct the existing errors to complete "
    "validation]"
)


@pytest.mark.parametrize(
    ("older", "status", "message"),
    [
        (True, 500, not_in_schema(".status.order", "one")),
        (True, 400, not_in_schema(".status.order", "one")),
        (True, 500, not_in_schema(".status.order", "one", "expected map, got &{Balanced}")),
        (True, 500, not_in_schema(".status.seed", "one", "expected string, got &value{7}")),
        (True, 422, not_among("status.state", "one")),
        (True, 422, not_among("status.results[3].limitedBy.cause", "one")),
        (True, 422, NUMBER),
        # Somebody else has written that, or it is a rule that this status breaks.
        (False, 422, not_among("spec.status.order", "one")),
        (False, 422, 'BenchmarkRun.laptime.dev "one" is invalid: status.results: Too many: 3000'),
        (False, 422, NUMBER.replace("must be of type integer", "should be less than 7")),
        (False, 500, "etcdserver: mvcc: database space exceeded"),
        (False, 403, not_among("status.state", "one")),
        (False, 500, not_in_schema(".status.conditions", "one", "duplicate entries for key [x]")),
    ],
)
def test_a_schema_that_has_no_place_or_word_for_a_status_is_told_from_all_else(
    older: bool, status: int, message: str
) -> None:
    answer = {"kind": "Status", "code": status, "message": message}
    assert kube_error(status, json.dumps(answer)).not_in_schema is older


async def test_a_server_that_is_not_there_is_a_kube_error() -> None:
    kube = Kube(client.ApiClient(client.Configuration(host="http://127.0.0.1:1")))
    with pytest.raises(KubeError, match="Unreachable"):
        await kube.get("Pod", "default", "one")
    await kube.close()


async def test_a_cluster_need_not_have_a_ca_as_python_3_13_asks_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    as_in_python_3_13(monkeypatch)
    authority = Authority(tmp_path, "cluster")
    with tls_server(authority.server("localhost")) as address:
        config = kubeconfig(tmp_path / "config", address, authority)
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(config))
        kube = await connect()
        assert await kube.get("Pod", "default", "one") == {}
        await kube.close()


async def test_connections_that_are_held_keep_no_other_request_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each run at work holds some ten, and the lease must not wait for one of them."""
    asked, all_there, arrived = asyncio.Event(), asyncio.Event(), 0

    async def slow(request: web.Request) -> web.StreamResponse | None:
        nonlocal arrived
        if request.path.endswith("/held"):
            arrived += 1
            if arrived == many:
                all_there.set()
            await asked.wait()
        return None

    many = 150
    server = ApiServer(fault=slow)
    async with serving(server) as kube:
        host = kube._api.configuration.host
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "one",
                    "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
                    "clusters": [{"name": "one", "cluster": {"server": host}}],
                    "users": [{"name": "one", "user": {}}],
                }
            )
        )
        # The library looks at KUBECONFIG when it is imported.
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        other = await connect()
        held = [asyncio.create_task(other.get("ConfigMap", "default", "held")) for _ in range(many)]
        try:
            async with asyncio.timeout(60):
                await all_there.wait()
                assert await other.get("ConfigMap", "default", "lease") is None
            assert not any(one.done() for one in held)
        finally:
            asked.set()
            await asyncio.gather(*held)
            await other.close()


async def test_a_list_comes_in_pages_of_one_moment() -> None:
    server = ApiServer()
    for n in range(1201):
        server.add({"kind": "ConfigMap", "metadata": {"name": f"c{n}", "namespace": "default"}})
    async with serving(server) as kube:
        pages = [page async for page in kube.pages("ConfigMap", None, metadata_only=True)]
    names = [one["metadata"]["name"] for page in pages for one in page.items]
    assert sorted(names) == sorted(f"c{n}" for n in range(1201))
    assert [verb for verb, _ in server.requests] == ["list"] * 3
    assert all("data" not in one for page in pages for one in page.items)
    assert pages[-1].resource_version == "1202"
    assert {page.resource_version for page in pages} <= {"", "1202"}


async def test_a_list_from_the_cache_comes_at_once_and_says_its_version_last() -> None:
    server = ApiServer()
    for n in range(1201):
        server.add({"kind": "ConfigMap", "metadata": {"name": f"c{n}", "namespace": "default"}})
    async with serving(server) as kube:
        pages = [page async for page in kube.cached("ConfigMap", None)]
    names = [one["metadata"]["name"] for page in pages for one in page.items]
    assert sorted(names) == sorted(f"c{n}" for n in range(1201))
    assert [page.resource_version for page in pages[-1:]] == ["1202"]
    assert {page.resource_version for page in pages[:-1]} <= {""}


async def test_lines_longer_than_any_buffer_come_whole() -> None:
    server = ApiServer(logs={"pod": "short\n" + "x" * 3_000_000 + "\nlast"})
    server.add({"kind": "Pod", "metadata": {"name": "pod", "namespace": "default"}})
    async with serving(server) as kube:
        lines = []
        async for line in kube.follow_log("default", "pod", "k6"):
            lines.append(len(line))
            if len(lines) == 2:
                server.remove("Pod", "default", "pod")
    assert lines == [5, 3_000_000, 4]


async def _log_of(written: str) -> str:
    server = ApiServer(logs={"pod": written})
    async with serving(server) as kube:
        return await kube.log("default", "pod", "k6")


async def test_a_short_log_is_read_as_a_whole() -> None:
    assert await _log_of("one\ntwo\n") == "one\ntwo\n"


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param("x\n" * 60_000, id="many lines"),
        pytest.param(("x" * 1000 + "\n") * 15_000, id="many bytes"),
    ],
)
async def test_of_a_log_without_end_the_last_lines_are_read(noise: str) -> None:
    result = "LAPTIME-RESULT " + "A" * 900_000
    read = await _log_of(f"{noise}{result}\nbye\n")
    assert read.startswith(f"{CUT_LINE}\n")
    assert f"\n{result}\nbye\n" in read
    assert len(read) <= LOG_BYTES + len(CUT_LINE) + 1


async def test_of_a_line_without_end_no_more_is_read_than_the_limit() -> None:
    # An API server that knows no limit, too.
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 100_000)

    server = ApiServer(fault=endless)
    async with serving(server) as kube:
        read = await kube.log("default", "pod", "k6")
    assert len(read) == LOG_BYTES + len(CUT_LINE) + 1
    said = parse_generator_output(read)
    assert isinstance(said, GeneratorError)
    assert "too long to be read as a whole; its last line was: xxx" in said.message
    assert len(said.message) < 500
