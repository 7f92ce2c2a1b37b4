"""Each answer is shown beside what was expected, without what is worth something to others."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from laptime.api.answers import CheckedAnswer, answers_in
from laptime.catalog import Check
from laptime.measure.answers import expectation
from laptime.measure.verdict import Verdict
from laptime.measure.verify import Client, Task, main, verify
from tests.cli.api_servers import Answer, serving

TOKEN = "a-token-of-more-than-eight-letters"
LOGIN = Check.model_validate(
    {
        "name": "login",
        "path": "/login",
        "times": 1,
        "captures": [{"name": "token", "json": "/token"}],
    }
)
READ = Check.model_validate({"name": "read", "path": "/{{token}}", "times": 1})


def asked(
    *checks: Check, answers: dict[str, httpx.Response], client: Client | None = None
) -> tuple[Verdict, list[CheckedAnswer]]:
    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.get(request.url.path)
        if request.url.path == "/healthz":
            return httpx.Response(200)
        if found is None:
            raise httpx.ConnectError("refused")
        return found

    seen: list[CheckedAnswer] = []
    task = Task(target="http://shop", checks=list(checks))
    transport = httpx.MockTransport(answer)
    verdict = verify(task, transport, client=client or Client(), show=seen.append)
    return verdict, seen


def test_all_is_asked_after_a_wrong_answer_and_the_first_one_is_the_verdict() -> None:
    wrong = Check(name="wrong", path="/a", times=1)
    verdict, seen = asked(
        wrong,
        wrong.model_copy(update={"name": "again", "path": "/b"}),
        wrong.model_copy(update={"name": "right", "path": "/c"}),
        answers={
            "/a": httpx.Response(404, text="nobody"),
            "/b": httpx.Response(500),
            "/c": httpx.Response(200),
        },
    )
    assert [(one.check, one.right, one.answered) for one in seen] == [
        ("wrong", False, "404 text/plain\nnobody"),
        ("again", False, "500"),
        ("right", True, "200"),
    ]
    assert verdict.message == 'GET /a: expected status 200, got 404; it said "nobody"'
    assert seen[0].said == f"WrongStatus: {verdict.message}"


def test_a_server_that_answers_nothing_is_not_asked_on() -> None:
    verdict, seen = asked(READ.model_copy(update={"path": "/a"}), LOGIN, answers={})
    assert [(one.check, one.answered) for one in seen] == [("read", "no answer")]
    assert verdict.reason == "ConnectionLost"


@pytest.mark.parametrize("status", [200, 500])
def test_what_is_captured_is_not_shown(status: int) -> None:
    good = httpx.Response(status, json={"token": TOKEN, "n": 1})
    _, seen = asked(LOGIN, READ, answers={"/login": good, f"/{TOKEN}": httpx.Response(200)})
    assert TOKEN not in json.dumps([one.to_wire() for one in seen])
    assert '"token":"{{token}}"' in seen[0].answered.replace(" ", "")
    assert [one.right for one in seen] == [status == 200] * 2
    assert seen[1].request == "GET /{{token}}"


def test_the_credentials_of_a_service_are_not_shown() -> None:
    said = httpx.Response(200, text=f"you sent Bearer {TOKEN}")
    _, (seen,) = asked(
        READ.model_copy(update={"path": "/a"}),
        answers={"/a": said},
        client=Client(f"Bearer {TOKEN}"),
    )
    assert seen.answered == "200 text/plain\nyou sent (credentials)"


def test_a_long_answer_is_cut() -> None:
    _, (seen,) = asked(
        READ.model_copy(update={"path": "/a"}), answers={"/a": httpx.Response(200, text="x" * 5000)}
    )
    assert len(seen.answered) == 1001


def test_the_job_prints_answers_only_where_it_is_told_to(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with serving(lambda _: Answer()) as address:
        for told in (False, True):
            document = {"target": address, "checks": [{"name": "a", "path": "/"}]}
            text = json.dumps({**document, "showAnswers": told})
            assert main({"LAPTIME_VERIFY": text}, tmp_path / "log") == 0
            lines = capsys.readouterr().out
            assert [one.check for one in answers_in(lines)] == (["a"] if told else [])


def test_what_is_expected_is_said_in_words() -> None:
    check = Check.model_validate(
        {
            "name": "a",
            "path": "/",
            "contentType": "application/json",
            "expectHeaders": {"x-a": "b"},
            "expectedPart": {"a": 1},
            "jsonSchema": {"type": ["object", "null"], "required": ["a"]},
            "minSeconds": 1,
            "times": 3,
            "answers": "different",
            "afterwards": [{"query": "SELECT 1", "rows": [[1]]}],
        }
    )
    assert expectation(check).splitlines() == [
        "200 application/json",
        "x-a: b",
        'in it: {"a": 1}',
        "meets: object or null with a",
        "not before 1 s",
        "not always the same 3 times",
        "then SELECT 1: [[1]]",
    ]


def test_lines_that_are_no_answers_say_nothing() -> None:
    assert answers_in('starting\n{"ok": true}\n[[[\n' + "[" * 5000) == []
