"""Checks that keep something of an answer for those after them: log in, create, read back."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from laptime.manifests.verifier import verify_document
from laptime.verification.captures import MAX_BODY_BYTES
from laptime.verification.verdict import Verdict
from laptime.verification.verify import Task, verify
from tests.manifests.runs import MARKET, context


class Market:
    """The right server of the scenario; subclasses get one thing wrong."""

    def __init__(self) -> None:
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        if request.url.path == "/login":
            return self.login(json.loads(request.content))
        if request.url.path == "/items":
            return self.create(request)
        if request.url.path.startswith("/items/"):
            return self.read(request.url.path.removeprefix("/items/"))
        return httpx.Response(200)

    def login(self, user: dict[str, str]) -> httpx.Response:
        if user != {"name": "ada", "password": "pa,ss"}:
            return httpx.Response(401)
        return httpx.Response(200, json={"token": 'a"b'}, headers={"set-cookie": "seen=1"})

    def create(self, request: httpx.Request) -> httpx.Response:
        if request.headers.get("authorization") != 'Bearer a"b':
            return httpx.Response(401)
        return httpx.Response(201, headers={"location": "/items/i-7"})

    def read(self, item: str) -> httpx.Response:
        return httpx.Response(200, json={"id": item, "more": 1})


class NoToken(Market):
    def login(self, user: dict[str, str]) -> httpx.Response:
        return httpx.Response(200, json={"token": None})


class WritesHeaders(Market):
    def login(self, user: dict[str, str]) -> httpx.Response:
        return httpx.Response(200, json={"token": "x\r\nEvil: 1"})


class LeadsElsewhere(Market):
    def create(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(201, headers={"location": "https://other.example/"})


class AnswersAnother(Market):
    def read(self, item: str) -> httpx.Response:
        return httpx.Response(200, json={"id": "i-8"})


def judged(server: Market) -> Verdict:
    """Return the verdict of the verifier, which gets what its Job would get."""
    ctx = context("sessions")
    document = verify_document(ctx, ctx.spec.servers[0], MARKET.checks)
    task = Task.model_validate({**document, "waitSeconds": 0})
    return verify(task, httpx.MockTransport(server))


def test_a_session_is_checked_step_by_step() -> None:
    server = Market()
    assert judged(server) == Verdict(True, "AnswersRight", "4 checks passed")
    (created,) = [one for one in server.seen if one.url.path == "/items"]
    assert created.url.query == b"colour=red&n=1"


def test_no_cookie_is_sent_that_no_check_names() -> None:
    server = Market()
    judged(server)
    assert not [one for one in server.seen if "cookie" in one.headers]


@pytest.mark.parametrize(
    ("server", "reason", "says"),
    [
        (NoToken, "CaptureMissing", "POST /login: the answer has nothing for {{token}}, which is "
         'JSON at /token; it said "{\\"token\\": null}"'),
        (WritesHeaders, "CaptureMissing", "{{token}}: character 2 ('\\r') cannot stand in a"),
        (LeadsElsewhere, "CaptureMissing",
         "which is header location, where /items/(.+) finds it"),
        (AnswersAnother, "WrongAnswer", 'GET /items/i-7: $.id: expected "i-7", got "i-8"'),
    ],
)  # fmt: skip
def test_a_server_whose_answers_do_not_lead_on_is_refused(
    server: type[Market], reason: str, says: str
) -> None:
    found = judged(server())
    assert (found.ok, found.reason) == (False, reason)
    assert says in found.message


def one_check(answer: dict[str, Any], **second: Any) -> Verdict:
    """Return the verdict on two checks: the first keeps `it` of an answer, the second uses it."""
    checks = [
        {"name": "a", "path": "/a", "times": 1, "captures": [{"name": "it", "json": "/it"}]},
        {"name": "b", "path": "/b", "times": 1, **second},
    ]
    asked = Task.model_validate(
        {"target": "http://server:8080", "waitSeconds": 0, "checks": checks, "values": {"n": 5}}
    )

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=answer, headers={"x": "got 5"})

    return verify(asked, httpx.MockTransport(handler))


def test_a_value_so_far_behind_that_no_load_would_find_it_is_refused() -> None:
    rest = "x" * MAX_BODY_BYTES
    assert one_check({"it": "a", "rest": rest}).ok
    assert one_check({"rest": rest, "it": "a"}).message.startswith(
        "GET /a: the answer has nothing for {{it}}, which is JSON at /it, in its first 1048576 "
        "bytes, and no more are looked at under load; it said "
    )


def test_a_number_that_was_kept_is_a_number_where_it_is_expected() -> None:
    assert one_check({"it": 7}, expected={"it": "{{it}}"}).ok
    assert not one_check({"it": "7"}, expected={"it": 7}).ok
    assert one_check({"it": "7"}, expected={"it": "{{it}}"}).ok
    assert one_check({"it": "i 7 of 5"}, expected={"it": "{{it}}"}).ok
    assert not one_check({"it": "i"}, expectedPart={"it": "{{it}} of {{n}}"}).ok
    assert one_check({"it": "i"}, expectHeaders={"x": "got {{n}}"}).ok


def test_what_an_answer_held_is_no_part_of_the_syntax_of_the_next_request() -> None:
    seen: list[httpx.Request] = []
    checks = [
        {"name": "a", "path": "/a", "times": 1, "captures": [{"name": "it", "json": "/it"}]},
        {
            "name": "b",
            "method": "POST",
            "path": "/b/{{it}}?q={{it}}",
            "headers": {"content-type": "application/json"},
            "body": '{"a": "{{it}}"}',
            "times": 1,
        },
    ]

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"it": '../"?&x'})

    task = Task.model_validate({"target": "http://server:8080", "waitSeconds": 0, "checks": checks})
    assert verify(task, httpx.MockTransport(handler)).ok
    assert seen[-1].url.raw_path == b"/b/..%2F%22%3F%26x?q=..%2F%22%3F%26x"
    assert json.loads(seen[-1].content) == {"a": '../"?&x'}


def test_what_an_answer_held_cannot_name_another_host() -> None:
    said = one_check({"it": "/other.namespace.svc/"}, path="/{{it|raw}}")
    assert said.reason == "CaptureMissing"
    assert "which would name another host" in said.message
