"""Each answer is shown beside what was expected, without what is worth something to others."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import httpx
import pytest

from laptime.api.answers import CheckedAnswer, answers_in
from laptime.catalog import Check
from laptime.verification.answers import expectation
from laptime.verification.mask import Mask
from laptime.verification.verdict import Verdict
from laptime.verification.verify import Client, Task, main, verify
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
    *checks: Check,
    answers: dict[str, httpx.Response],
    client: Client | None = None,
    values: dict[str, str | int] | None = None,
) -> tuple[Verdict, list[CheckedAnswer]]:
    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.get(request.url.path)
        if request.url.path == "/healthz":
            return httpx.Response(200)
        if found is None:
            raise httpx.ConnectError("refused")
        return found

    seen: list[CheckedAnswer] = []
    task = Task(target="http://shop", checks=list(checks), values=values or {})
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
    verdict, seen = asked(LOGIN, READ, answers={"/login": good, f"/{TOKEN}": httpx.Response(200)})
    assert TOKEN not in json.dumps([one.to_wire() for one in seen])
    assert TOKEN not in verdict.message
    assert verdict.ok == (status == 200)
    assert '"token":"{{token}}"' in seen[0].answered.replace(" ", "")
    assert [one.right for one in seen] == [status == 200] * 2
    assert seen[1].request == "GET /{{token}}"


def test_what_is_captured_is_not_in_the_verdict_of_a_run_that_measures() -> None:
    said = httpx.Response(201, json={"token": TOKEN})
    task = Task(target="http://shop", health_path="/login", checks=[LOGIN])
    served = iter([httpx.Response(200)])
    verdict = verify(task, httpx.MockTransport(lambda _: next(served, said)))
    assert verdict.message == (
        'GET /login: expected status 200, got 201; it said "{\\"token\\": \\"{{token}}\\"}"'
    )


@pytest.mark.parametrize(
    ("token", "body"),
    [
        ("ab/cdefgh+ij", r'{"token": "ab\/cdefgh\u002Bij"}'),
        ("ab/cdefgh+ij", r'{"token": "\u0061b/cdefgh+ij", "again": ["ab\/cdefgh+ij"]}'),
        (123456789012, '{"token": 123456789012}'),
        (
            ["first-secret", {"a": "second-secret"}],
            '{"token": ["first-secret", {"a": "second-secret"}]}',
        ),
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_however_it_is_spelled_what_is_captured_is_hidden(
    token: object, body: str, status: int
) -> None:
    said = httpx.Response(status, text=body)
    read = READ.model_copy(update={"path": "/r/{{token | url}}"})
    verdict, seen = asked(LOGIN, read, answers={"/login": said})
    if status == 200:
        assert [one.request for one in seen] == ["GET /login", "GET /r/{{token}}"]
    shown = json.dumps([one.to_wire() for one in seen]) + verdict.message
    for secret in ("cdefgh", "123456789012", "first-secret", "second-secret"):
        assert secret not in shown
    assert '"token": "{{token}}"' in seen[0].answered


def test_nothing_is_left_of_a_token_that_an_excerpt_would_cut_in_two() -> None:
    token = "t0ken-" * 60
    same = LOGIN.model_copy(update={"expected": {"token": "another"}})
    for check, status in ((LOGIN, 500), (same, 200)):
        said = httpx.Response(status, json={"filler": "x" * 60, "token": token})
        verdict, seen = asked(check, answers={"/login": said})
        assert not verdict.ok
        assert "t0ken" not in verdict.message + json.dumps([one.to_wire() for one in seen])
    long = httpx.Response(200, json={"filler": "x" * 960, "token": token})
    _, (one,) = asked(LOGIN, answers={"/login": long})
    assert "t0ken" not in one.answered


def test_each_token_is_hidden_where_every_answer_has_another() -> None:
    answers = (httpx.Response(200, json={"token": f"{n}-{TOKEN}"}) for n in range(9))
    check = LOGIN.model_copy(update={"times": 2, "json_schema": {"type": "object"}})
    task = Task(target="http://shop", health_path="/", checks=[check])
    verdict = verify(task, httpx.MockTransport(lambda _: next(answers)))
    assert verdict.reason == "AnswerNotStable"
    assert TOKEN not in verdict.message


def test_a_value_that_cannot_stand_in_a_header_is_hidden_there() -> None:
    said = httpx.Response(200, json={"token": f"of two\nlines {TOKEN}"})
    read = READ.model_copy(update={"path": "/a", "headers": {"x-a": "{{token}}"}})
    verdict, seen = asked(LOGIN, read, answers={"/login": said})
    assert verdict.reason == "CaptureMissing"
    assert "of two" not in verdict.message + json.dumps([one.to_wire() for one in seen])


FED = "S3cr3t&/Passw0rd!"
SIGN_IN = Check.model_validate(
    {
        "name": "sign-in",
        "method": "POST",
        "path": "/login?key={{key}}",
        "headers": {"content-type": "application/json", "authorization": "{{scheme}}"},
        "body": '{"password": "{{users.password}}"}',
        "times": 1,
    }
)
FED_VALUES: dict[str, str | int] = {
    "users.password": FED,
    "key": "Q7z9",
    "scheme": "Bearer of-a-feeder",
    "n": 4711,
}


@pytest.mark.parametrize(
    "said",
    [
        httpx.Response(422, json={"detail": [{"input": {"password": FED, "key": "Q7z9"}}]}),
        httpx.Response(422, text=f"no such user: {FED} (key Q7z9)"),
        httpx.Response(422, text="you sent S3cr3t&amp;/Passw0rd!"),
        httpx.Response(422, text="S3cr3t%26%2FPassw0rd%21, S3cr3t%26%2fPassw0rd%21"),
        httpx.Response(422, text="the token of-a-feeder is none"),
        httpx.Response(422, json={"filler": "x" * 110, "password": FED}),
        httpx.Response(200, json={"password": FED}),
        httpx.Response(200, json={FED: 1}),
        httpx.Response(200, headers={"x-key": FED}, json={"password": "another"}),
    ],
)
@pytest.mark.parametrize(
    "right",
    [
        {},
        {"expected": {"password": "none"}},
        {"expected_part": {"password": "{{users.password}} and more"}},
        {"json_schema": {"properties": {"password": {"maxLength": 1}}, "maxProperties": 0}},
        {"expect_headers": {"x-key": "{{key}}"}},
        {"expect_status": 418},
    ],
)
def test_what_a_feeder_holds_is_in_no_verdict_and_no_answer(
    said: httpx.Response, right: dict[str, object]
) -> None:
    check = SIGN_IN.model_copy(update=right)
    _, seen = asked(check, answers={"/login": said}, values=FED_VALUES)
    task = Task(target="http://shop", checks=[check], values=FED_VALUES)
    served = iter([httpx.Response(200)])
    verdict = verify(task, httpx.MockTransport(lambda _: next(served, said)))
    shown = json.dumps([one.to_wire() for one in seen]) + verdict.message
    for secret in ("S3cr3t", "Passw0rd", "Q7z9", "of-a-feeder"):
        assert secret not in shown
    assert seen[0].request == "POST /login?key={{key}}"


def test_numbers_of_a_range_and_the_shortest_cells_are_shown() -> None:
    """A message without each `ada` or `4` in it would say nothing."""
    check = READ.model_copy(update={"path": "/{{n}}/{{name}}"})
    said = httpx.Response(404, text="neither 4711 nor ada")
    values: dict[str, str | int] = {"n": 4711, "name": "ada"}
    verdict, _ = asked(check, answers={"/4711/ada": said}, values=values)
    assert verdict.message == (
        'GET /4711/ada: expected status 200, got 404; it said "neither 4711 nor ada"'
    )


def test_what_is_hidden_twice_is_hidden_once() -> None:
    """Each message goes through it more than once, and `name` is a word of what is shown."""
    said = httpx.Response(404, text="no user called name")
    check = READ.model_copy(update={"path": "/a?u={{users.name}}"})
    verdict, (seen,) = asked(check, answers={"/a": said}, values={"users.name": "name"})
    assert seen.answered == "404 text/plain\nno user called {{users.name}}"
    assert verdict.message.startswith("GET /a?u={{users.name}}: expected")


def test_a_verifier_that_breaks_tells_nobody_what_a_feeder_holds() -> None:
    """The end of its last words stands in the status."""

    def breaks(_: httpx.Request) -> httpx.Response:
        raise ArithmeticError(f"no place for {FED}")

    task = Task(target="http://shop", checks=[SIGN_IN], values=FED_VALUES)
    with pytest.raises(RuntimeError, match=r"no place for \{\{users\.password\}\}") as broken:
        verify(task, httpx.MockTransport(breaks))
    assert "ArithmeticError" in str(broken.value)
    told = "".join(traceback.format_exception(broken.value))
    assert FED not in told


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


def test_without_secrets_an_answer_is_shown_as_it_came() -> None:
    raw = b'{"price":1.10,"e":1e400,"token":"first","token":"second"}'
    assert Client().mask().body(raw) == raw.decode()


def test_a_short_value_is_hidden_where_it_stands_alone() -> None:
    mask = Mask()
    for name, value in {"k": "item", "u.year": "2026", "u.active": "true"}.items():
        mask.hide_fed(name, value)
    assert mask.text("GET /items: item, %20item, a\\nitem; x-item=2026-11, id 120261") == (
        "GET /items: {{k}}, %20{{k}}, a\\n{{k}}; x-{{k}}={{u.year}}-11, id 120261"
    )
    for coded in ("\\\\u003e", "\\\\x3e", "%252f", "\\\\v"):
        assert mask.text(f"{coded}item") == f"{coded}{{{{k}}}}"
    assert mask.quoted(True) == "true"
    assert mask.quoted({"a": True, "b": "true"}) == '{"a": true, "b": "{{u.active}}"}'
