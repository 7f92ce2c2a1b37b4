"""Whole contracts against servers in this process: the right one passes, no wrong one does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from laptime.catalog import Afterwards, Answers, Check, scenario_of, scenarios
from laptime.cli.manifest_file import read_manifest
from laptime.verification.verdict import Verdict
from laptime.verification.verify import Task, verify

Handler = Callable[[httpx.Request], httpx.Response]
TASKS = scenarios()["tasks"]
RECIPES = scenarios()["recipes"]


class TodoServer:
    """The right server of the scenario `tasks`; subclasses get one thing wrong."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {
            n: {"id": n, "name": f"task {n}", "done": n % 3 == 0} for n in range(1, 61_001)
        }

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path in ("/", "/healthz"):
            return httpx.Response(200, json={"message": "Hello, World!"})
        if path == "/tasks":
            return self.create(json.loads(request.content))
        number = int(path.removeprefix("/tasks/"))
        if number not in self.rows:
            return httpx.Response(404, json={"detail": "no such task"})
        if request.method == "GET":
            return self.read(number)
        if request.method == "PUT":
            return self.update(number, json.loads(request.content))
        return self.delete(number)

    def create(self, body: dict[str, Any]) -> httpx.Response:
        if set(body) != {"name", "done"}:
            return httpx.Response(422)
        number = len(self.rows) + 1
        self.rows[number] = {"id": number, **body}
        return httpx.Response(201, json=self.rows[number])

    def read(self, number: int) -> httpx.Response:
        return httpx.Response(200, json=self.rows[number])

    def update(self, number: int, body: dict[str, Any]) -> httpx.Response:
        self.rows[number] = {"id": number, **body}
        return httpx.Response(200, json=self.rows[number])

    def delete(self, number: int) -> httpx.Response:
        del self.rows[number]
        return httpx.Response(204)


class ForgetsUpdates(TodoServer):
    def update(self, number: int, body: dict[str, Any]) -> httpx.Response:
        return httpx.Response(200, json={"id": number, **body})


class KeepsDeleted(TodoServer):
    def delete(self, number: int) -> httpx.Response:
        return httpx.Response(204)


class ForgetsCreated(TodoServer):
    def create(self, body: dict[str, Any]) -> httpx.Response:
        answer = super().create(body)
        if answer.status_code == 201:
            del self.rows[len(self.rows)]
        return answer


class SaysDoneAsNumber(TodoServer):
    def read(self, number: int) -> httpx.Response:
        return httpx.Response(
            200, json={**self.rows[number], "done": int(self.rows[number]["done"])}
        )


class AddsAField(TodoServer):
    def read(self, number: int) -> httpx.Response:
        return httpx.Response(200, json={**self.rows[number], "created": "today"})


class AnswersAnotherRow(TodoServer):
    def read(self, number: int) -> httpx.Response:
        return httpx.Response(200, json=self.rows[1])


class TakesHalfATask(TodoServer):
    def create(self, body: dict[str, Any]) -> httpx.Response:
        return super().create({"done": False, **body})


def verdict(
    handler: Handler,
    checks: list[Check],
    upstream_url: str | None = None,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Verdict:
    task = Task(
        target="http://server:8080",
        wait_seconds=0,
        checks=checks,
        upstream_url=upstream_url,
        values=dict(values),
    )
    return verify(task, httpx.MockTransport(handler))


def test_a_right_todo_server_passes() -> None:
    found = verdict(TodoServer(), TASKS.checks)
    assert found == Verdict(True, "AnswersRight", f"{len(TASKS.checks)} checks passed")


def test_a_right_todo_server_passes_the_checks_of_the_example_with_sessions() -> None:
    path = Path(__file__).parents[3] / "examples/own-sessions.yaml"
    (document,) = read_manifest(path).scenarios
    scenario = scenario_of(document)
    values = scenario.check_values
    assert verdict(TodoServer(), scenario.checks, values=values).ok
    wrong = verdict(ForgetsCreated(), scenario.checks, values=values)
    assert wrong.message.startswith("GET /tasks/61001: expected status 200, got 404")


@pytest.mark.parametrize(
    ("server", "reason", "says"),
    [
        (ForgetsUpdates, "WrongAnswer", 'GET /tasks/61001: $.name: expected "called", got "call'),
        (KeepsDeleted, "WrongStatus", "GET /tasks/61001: expected status 404, got 200"),
        (ForgetsCreated, "WrongStatus", "GET /tasks/61001: expected status 200, got 404"),
        (SaysDoneAsNumber, "WrongAnswer", "$.done: expected false, got 0"),
        (AddsAField, "WrongAnswer", '$: unexpected field "created"'),
        (AnswersAnotherRow, "WrongAnswer", "$.id: expected 60998, got 1"),
        (TakesHalfATask, "WrongStatus", "POST /tasks: expected status 422, got 201"),
    ],
)
def test_a_todo_server_that_gets_one_thing_wrong_is_refused(
    server: type[TodoServer], reason: str, says: str
) -> None:
    found = verdict(server(), TASKS.checks)
    assert (found.ok, found.reason) == (False, reason)
    assert says in found.message


class RecipeServer:
    """The right server of the scenario `recipes`, with two recipes to choose from."""

    def __init__(self) -> None:
        expected = RECIPES.checks[0].expected
        assert isinstance(expected, dict)
        self.recipe: dict[str, Any] = expected
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/healthz":
            return httpx.Response(200)
        return self.answer(request.headers.get("cookie", ""))

    def answer(self, cookie: str) -> httpx.Response:
        self.asked += 1
        if cookie == "sessionid=session-182":
            return httpx.Response(200, json=self.recipe)
        if cookie == "sessionid=session-1":
            return httpx.Response(200, json={**self.recipe, "id": self.choose()})
        return httpx.Response(404 if cookie == "sessionid=session-181" else 401)

    def choose(self) -> int:
        return 1 + self.asked % 2


class AlwaysTheSame(RecipeServer):
    def choose(self) -> int:
        return 1


class IgnoresExpiry(RecipeServer):
    def answer(self, cookie: str) -> httpx.Response:
        return super().answer(cookie.replace("196", "1"))


class OldestNoteFirst(RecipeServer):
    def __init__(self) -> None:
        super().__init__()
        events, notes = self.recipe["timeline"][:4], self.recipe["timeline"][4:]
        self.recipe = {**self.recipe, "timeline": [*events, *reversed(notes)]}


class WithoutReactions(RecipeServer):
    def __init__(self) -> None:
        super().__init__()
        last = {key: value for key, value in self.recipe["timeline"][-1].items()}
        del last["reactions"]
        self.recipe = {**self.recipe, "timeline": [*self.recipe["timeline"][:-1], last]}


def test_a_right_recipe_server_passes() -> None:
    assert verdict(RecipeServer(), RECIPES.checks).ok


@pytest.mark.parametrize(
    ("server", "reason", "says"),
    [
        (AlwaysTheSame, "AnswerNeverChanges", "answered the same 8 times"),
        (IgnoresExpiry, "WrongStatus", "expected status 401, got 200"),
        (OldestNoteFirst, "WrongAnswer", "$.timeline[4].id: expected"),
        (WithoutReactions, "WrongAnswer", '$.timeline[6]: the field "reactions" is missing'),
    ],
)
def test_a_recipe_server_that_gets_one_thing_wrong_is_refused(
    server: type[RecipeServer], reason: str, says: str
) -> None:
    found = verdict(server(), RECIPES.checks)
    assert (found.ok, found.reason) == (False, reason)
    assert says in found.message


def test_a_server_that_does_not_wait_as_long_as_it_should_is_refused() -> None:
    check = Check(name="wait", path="/sync", min_seconds=0.2, expected={"message": "success"})

    def waiting(seconds: float) -> Handler:
        def answer(request: httpx.Request) -> httpx.Response:
            time.sleep(seconds if request.url.path == "/sync" else 0)
            return httpx.Response(200, json={"message": "success"})

        return answer

    assert verdict(waiting(0.2), [check]).ok
    assert verdict(waiting(0), [check]).reason == "AnsweredTooSoon"


UPSTREAM = "http://upstream:8080/users"


def passing_on(change: Callable[[Any], Any], upstream_status: int = 200) -> Handler:
    users = [
        {
            "id": 1, "name": "Ada", "username": "ada", "email": "ada@example.com", "address": {},
            "phone": "1", "website": "ada.example.com", "company": {},
        }
    ]  # fmt: skip

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "upstream":
            return httpx.Response(upstream_status, json=users)
        return httpx.Response(200, json=change(users))

    return answer


def test_what_the_upstream_says_is_to_be_passed_on() -> None:
    checks = scenarios()["upstream"].checks
    assert verdict(passing_on(lambda users: users), checks, UPSTREAM).ok
    changed = passing_on(lambda users: [{**users[0], "name": "Eve"}])
    assert verdict(changed, checks, UPSTREAM) == Verdict(
        False, "WrongAnswer", 'GET /users: $[0].name: expected "Ada", got "Eve"'
    )


def test_an_upstream_that_is_not_there_is_not_the_servers_fault() -> None:
    checks = scenarios()["upstream"].checks
    assert verdict(passing_on(lambda users: users), checks).reason == "NoUpstream"
    broken = passing_on(lambda users: users, upstream_status=503)
    assert verdict(broken, checks, UPSTREAM).reason == "NoUpstream"


def test_answers_that_are_to_differ_need_not_all_differ() -> None:
    answers = iter([1, 1, 2])
    check = Check(
        name="random", path="/", times=3, answers=Answers.DIFFERENT, json_schema={"type": "integer"}
    )

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=next(answers) if request.url.path == "/" else None)

    assert verdict(answer, [check]).ok


class Counter:
    """Counts one statement per request of a server that sends one."""

    def __init__(self) -> None:
        self.seen = 0

    def total(self) -> int:
        return self.seen

    def rows(self, query: str) -> list[list[Any]]:
        return [[self.seen, query]]


def counted(check: Check, statements: list[int]) -> Verdict:
    counter, each = Counter(), iter(statements)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/list":
            counter.seen += next(each)
        return httpx.Response(200, json=[])

    task = Task(target="http://server:8080", wait_seconds=0, checks=[check])
    return verify(task, httpx.MockTransport(answer), counter)


def test_a_server_that_leaves_a_statement_out_is_refused() -> None:
    check = Check(name="list", path="/list", statements=2)
    assert counted(check, [2, 2]).ok
    assert counted(check, [3, 2]).ok, "what a server does beyond that costs only itself"
    assert counted(check, [2, 1]) == Verdict(
        False,
        "StatementMissing",
        "GET /list: statements for each request: expected 2, the database saw 1.5",
    )
    assert counted(check, [2, 0]).reason == "StatementMissing", "an answer from a cache"


def test_a_statement_that_is_counted_after_the_answer_is_none_too_few() -> None:
    class LateCounter(Counter):
        asked = 0

        def total(self) -> int:
            self.asked += 1
            # Before the requests, when they are over, and a moment later.
            return [0, 1, 1, 2][self.asked - 1]

    check = Check(name="list", path="/list", statements=1)
    task = Task(target="http://server:8080", wait_seconds=0, checks=[check])
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=[]))
    counter = LateCounter()
    assert verify(task, transport, counter).ok
    assert counter.asked == 4


def test_statements_are_not_asked_for_where_nobody_says_how_many() -> None:
    assert counted(Check(name="list", path="/list"), [0, 0]).ok


def one_answer(check: Check, **response: Any) -> Verdict:
    """Return what is said of a server that always gives the same answer."""
    return verdict(lambda request: httpx.Response(**{"status_code": 200, **response}), [check])


def test_part_of_an_answer_may_be_all_that_is_asked_for() -> None:
    part = {"user": {"name": "Ada"}, "tags": [{"n": 1}]}
    check = Check(name="me", path="/me", expected_part=part)
    more = {"user": {"name": "Ada", "id": 7}, "tags": [{"n": 1, "m": 2}], "at": "now"}
    assert one_answer(check, json=more).ok
    wrong = one_answer(check, json={**more, "user": {"id": 7}})
    assert wrong == Verdict(False, "WrongAnswer", 'GET /me: $.user: the field "name" is missing')
    longer = one_answer(check, json={**more, "tags": [{"n": 1}, {"n": 2}]})
    assert longer.message == "GET /me: $.tags: expected 1 items, got 2"


def test_a_schema_that_does_not_end_is_no_fault_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("laptime.verification.judge._SCHEMA_SECONDS", 0.2)
    slow = Check(name="me", path="/me", json_schema={"pattern": "^(a+)+$"})
    began = time.monotonic()
    wrong = one_answer(slow, json="a" * 40 + "b")
    assert time.monotonic() - began < 5
    assert wrong.reason == "SchemaNotCheckable"
    assert "GET /me: the jsonSchema of the check takes more than 0.2s: write patterns" in (
        wrong.message
    )
    endless = Check(name="me", path="/me", json_schema={"allOf": [{"$ref": "#"}]})
    wrong = one_answer(endless, json=1)
    assert wrong.reason == "SchemaNotCheckable"
    assert "refers to itself without an end" in wrong.message
    nowhere = Check(name="me", path="/me", json_schema={"items": {"$ref": "#/$defs/a"}})
    wrong = one_answer(nowhere, json=[1])
    assert wrong.reason == "SchemaNotCheckable"
    assert "the jsonSchema of the check has no /$defs/a, to which it refers" in wrong.message


@pytest.mark.parametrize("number", ["1e400", "1" + "0" * 400])
def test_a_number_without_bounds_is_a_wrong_answer(number: str) -> None:
    check = Check(name="a", path="/a", json_schema={"properties": {"p": {"multipleOf": 0.01}}})
    assert one_answer(check, text='{"p": 12.34}').ok
    wrong = one_answer(check, text=f'{{"p": {number}}}')
    assert wrong.reason == "WrongAnswer"
    assert "GET /a: it has a number that is too large to be compared" in wrong.message


def test_a_media_type_is_the_same_in_capital_letters() -> None:
    kind = "application/vnd.myCompany+json"
    check = Check(name="a", path="/a", content_type=kind)
    for got in (kind, kind.lower(), f"{kind}; charset=utf-8"):
        assert one_answer(check, text="{}", headers={"content-type": got}).ok
    wrong = one_answer(check, text="{}", headers={"content-type": "application/json"})
    assert wrong.reason == "WrongContentType"


@pytest.mark.parametrize("depth", [600, 3000, 100_000])
def test_an_answer_that_is_nested_too_deeply_is_wrong(depth: int) -> None:
    check = Check(name="me", path="/me", json_schema={"type": "object"}, times=2)
    wrong = one_answer(check, text='{"a":' * depth + "1" + "}" * depth)
    assert wrong.reason == "NotJson"
    assert "GET /me" in wrong.message
    assert "nested too deeply" in wrong.message


def test_a_header_of_the_answer_must_be_as_expected() -> None:
    check = Check(name="me", path="/me", expect_headers={"Cache-Control": "no-store"})
    assert one_answer(check, headers={"cache-control": "no-store"}).ok
    wrong = one_answer(check, headers={"cache-control": "public"})
    assert wrong == Verdict(
        False,
        "WrongHeader",
        'GET /me: header Cache-Control: expected "no-store", got "public"',
    )
    assert one_answer(check).message.endswith("got none")


def test_an_answer_of_which_a_type_is_asked_has_a_body() -> None:
    # Under load each answer to a request of its name is asked for one.
    check = Check(name="me", path="/me", content_type="text/plain")
    headers = {"content-type": "text/plain"}

    def asked(content: bytes, *bodies: str) -> Verdict:
        task = Task(target="http://server:8080", wait_seconds=0, checks=[check], bodies=[*bodies])
        right = httpx.Response(200, headers=headers, content=content)
        return verify(task, httpx.MockTransport(lambda _: right))

    assert asked(b"x", "me").ok
    assert asked(b"").ok
    assert asked(b"", "me") == Verdict(
        False,
        "WrongAnswer",
        "GET /me: the body is empty, and the check has contentType: where a right answer may be "
        "empty, leave it out",
    )


def test_cookies_are_sent_with_the_header_fields() -> None:
    check = Check(name="me", path="/me", headers={"accept": "*/*"}, cookies={"a": "1", "b": "2"})

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=request.headers.get("cookie"))

    assert verdict(answer, [check.model_copy(update={"expected": "a=1; b=2"})]).ok


def test_what_must_hold_afterwards_is_asked_of_the_database() -> None:
    def seen(rows: Any, query: str = "SELECT n") -> Verdict:
        afterwards = [Afterwards(query=query, rows=rows)]
        check = Check(name="create", path="/x", times=1, afterwards=afterwards)
        task = Task(target="http://server:8080", wait_seconds=0, checks=[check])
        transport = httpx.MockTransport(lambda request: httpx.Response(200, json=[]))
        return verify(task, transport, Counter())

    assert seen([[0, "SELECT n"]]).ok
    assert seen([[1, "SELECT n"]]) == Verdict(
        False,
        "WrongRows",
        'GET /x: afterwards "SELECT n" answers: rows[0][0]: expected 1, got 0',
    )


def test_what_an_answer_has_made_is_looked_for_afterwards() -> None:
    def seen(made: Any, rows: Any) -> Verdict:
        check = Check.model_validate(
            {
                "name": "create",
                "path": "/x",
                "times": 1,
                "captures": [{"name": "it", "json": "/it"}],
                "afterwards": [{"query": "SELECT {{it}}", "rows": rows}],
            }
        )
        task = Task(target="http://server:8080", wait_seconds=0, checks=[check])
        answer = httpx.MockTransport(lambda request: httpx.Response(200, json={"it": made}))
        return verify(task, answer, Counter())

    # The counter answers a query with itself.
    assert seen(7, [[0, "SELECT 7"]]).ok
    assert seen("a-7", [[0, "SELECT a-7"]]).ok
    refused = seen("7; DROP TABLE item", [[0, ""]])
    assert refused.reason == "CaptureMissing"
    assert "cannot stand in a query, which takes letters, digits, '-' and '_' only" in (
        refused.message
    )


@pytest.mark.parametrize("kept", [{"id": "a/../b"}, {"id": None}, {"id": True}, {}, [], "x"])
def test_an_id_that_would_lead_elsewhere_is_not_kept(kept: Any) -> None:
    check = Check(name="create", path="/x", times=1, keeps_id=True, json_schema={})
    assert one_answer(check, json=kept).reason == "WrongAnswer"
