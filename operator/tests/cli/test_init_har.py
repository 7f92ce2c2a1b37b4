"""A recording becomes a scenario that holds on the server anew, without the recording's secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from laptime.catalog import Scenario, filled, scenario_of
from laptime.catalog.problems import scenario_problems
from laptime.cli.init.har.entries import schema_of_answer
from laptime.cli.init.har.translation import translated
from laptime.cli.init.translation import PLACEHOLDER
from laptime.cli.main import run_command
from laptime.cli.mistakes import Mistake
from laptime.cli.validate_command import misfits_of
from laptime.verification.verify import Task, verify
from tests.cli.api_servers import Answer, Asked, Orders, serving

PASSWORD = "Sehr-geheim-8"
Document = dict[str, Any]


def recorded_pairs(headers: Mapping[str, str]) -> list[Document]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def entry(response: httpx.Response, address: str) -> Document:
    """Return an exchange as browsers record it, as if it had been with shop.example."""
    asked = response.request
    url = str(asked.url).replace(address, "https://shop.example")
    request: Document = {
        "method": asked.method,
        "url": url,
        "headers": [*recorded_pairs(asked.headers), {"name": ":authority", "value": "shop"}],
        "cookies": [],
    }
    if asked.content:
        kind = asked.headers["content-type"]
        request["postData"] = {"mimeType": kind, "text": asked.content.decode()}
    content = {"mimeType": response.headers.get("content-type", ""), "text": response.text}
    answered = {"status": response.status_code, "headers": recorded_pairs(response.headers)}
    return {"request": request, "response": {**answered, "cookies": [], "content": content}}


def recording(*entries: Document) -> Document:
    return {"log": {"version": "1.2", "entries": list(entries)}}


class Shop(Orders):
    """Its users stay, so that a recorded login can be asked again; a cookie marks the visit."""

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/" and asked.method == "GET":
            return Answer(json={"csrfToken": f"csrf-{len(self.tokens)}-0123456789"},
                          headers={"Set-Cookie": "visit=v1234567; Path=/; HttpOnly"})  # fmt: skip
        if asked.path == "/auth/login":
            if asked.headers.get("cookie") != "visit=v1234567":
                return Answer(400, {"detail": "no visit"})
            if asked.headers.get("x-csrf-token") != f"csrf-{len(self.tokens)}-0123456789":
                return Answer(403, {"detail": "csrf"})
            said = asked.json
            if (said["email"], said["password"]) != ("ada@shop.example", PASSWORD):
                return Answer(401, {"detail": "unknown"})
            token = f"token-{len(self.tokens)}-{id(self)}-0123456789"
            self.tokens[token] = said["email"]
            self.users.setdefault(said["email"], said["password"])
            return Answer(json={"user": {"id": 1}, "access_token": token, "12345": {"a": 1}})
        return super().__call__(asked)


@contextmanager
def walked() -> Iterator[tuple[str, Document]]:
    """Serve a shop; yield its address and a walk through it as it was recorded."""
    with (
        serving(Shop()) as address,
        httpx.Client(base_url=address, headers={"accept": "application/json"}) as client,
    ):
        front = client.get("/")
        csrf = {"x-csrf-token": front.json()["csrfToken"], "cookie": "visit=v1234567; _ga=x.1"}
        client.cookies.clear()
        who = {"email": "ada@shop.example", "password": PASSWORD}
        # The server looks at one cookie only.
        login = client.post("/auth/login", json=who, headers={**csrf, "cookie": "visit=v1234567"})
        login.request.headers["cookie"] = csrf["cookie"]
        known = {"authorization": f"Bearer {login.json()['access_token']}"}
        products = client.get("/products?page=1&q=a%20b")
        lines = [{"product_id": products.json()["items"][0]["id"], "quantity": 1}]
        order = client.post("/orders", json={"lines": lines, "note": "{{x}}"}, headers=known)
        path = f"/orders/{order.json()['id']}"
        rest = [
            client.get(path, headers=known),
            client.get(path, headers=known),
            client.get("/users/me", headers=known),
            client.delete(path, headers=known),
        ]
        exchanges = [front, login, products, order, *rest]
        yield address, recording(*(entry(one, address) for one in exchanges))


def checked(document: Document) -> Scenario:
    found = scenario_of(document)
    assert scenario_problems(found) == []
    return found


def init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: Document, *more: str
) -> tuple[str, Document, Document]:
    file = tmp_path / "walk.har"
    file.write_text(json.dumps(document))
    assert run_command(["init", "--from", str(file), *more]) == 0
    text = capsys.readouterr().out
    scenario, run = yaml.safe_load_all(text)
    return text, scenario, run


def test_a_walk_holds_anew_with_the_password_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with walked() as (address, document):
        text, scenario, run = init(tmp_path, capsys, document)
        assert misfits_of(run["spec"], {run["spec"]["scenario"]: checked(scenario)}) == ([], None)
        for feeder in scenario["spec"]["feeders"]:
            assert feeder == {"name": "password", "values": [PLACEHOLDER]}
            feeder["values"] = [PASSWORD]
        found = checked(scenario)
        task = Task(target=address, checks=found.counting_checks, values=found.check_values)
        verdict = verify(task)
    assert (verdict.message, verdict.ok) == ("7 checks passed", True)
    recorded = document["log"]["entries"]
    token = json.loads(recorded[1]["response"]["content"]["text"])["access_token"]
    for secret in (PASSWORD, token, "csrf-0-0123456789", "v1234567", "x.1"):
        assert secret not in text
    (session,) = scenario["spec"]["sessions"]
    assert session["steps"] == [
        *("get", "post-auth-login", "get-products", "post-orders", "get-orders-order-id"),
        *("get-orders-order-id", "get-users-me", "delete-orders-order-id"),
    ]
    assert "the cookie _ga is left out: no answer of the recording sets it" in text


def test_secrets_are_written_where_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with walked() as (address, document):
        text, scenario, _ = init(tmp_path, capsys, document, "--with-secrets")
        assert scenario["spec"]["feeders"] == [{"name": "password", "values": [PASSWORD]}]
        found = checked(scenario)
        task = Task(target=address, checks=found.counting_checks, values=found.check_values)
        assert verify(task).ok
    assert PLACEHOLDER not in text


# Entries of a few lines -------------------------------------------------------------------


def one(
    method: str = "GET",
    url: str = "https://shop.example/a",
    status: int = 200,
    answer: str = "",
    kind: str = "application/json",
    sent: Document | None = None,
    **headers: str,
) -> Document:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request: Document = {"method": method, "url": url, "headers": recorded_pairs(named)}
    if sent is not None:
        request["postData"] = sent
    content = {"mimeType": kind, "text": answer}
    return {"request": request, "response": {"status": status, "headers": [], "content": content}}


def requests_of(*entries: Document) -> list[Document]:
    made = translated(recording(*entries))
    assert made.scenario is not None
    checked(made.scenario)
    requests: list[Document] = made.scenario["spec"]["requests"]
    return requests


@pytest.mark.parametrize(
    ("entry_", "said"),
    [
        (one(url="wss://shop.example/live"), "GET /live: no plain HTTP: write a script"),
        (one(method="OPTIONS"), "OPTIONS /a: a scenario has GET, POST, PUT, PATCH and DELETE"),
        (one(status=0), "GET /a: the recording has no answer to it"),
        (one(status=404), "GET /a: it was answered 404"),
        (one(url="https://shop.example/a.css?v=1"), "GET /a.css: pictures, styles and programs"),
        (one(kind="image/png"), "GET /a: pictures, styles and programs"),
        (
            one(method="POST", sent={"mimeType": "multipart/form-data; boundary=x", "text": "x"}),
            "POST /a: its body is multipart/form-data; boundary=x, which only a script can make",
        ),
        (
            one(method="POST", sent={"mimeType": "application/json"}),
            "POST /a: its body is not in the recording",
        ),
        (one(url="https://pictures.example/b"), "pictures.example: 1 request to another host"),
        ({"request": {}}, "entry 1 cannot be read: KeyError: 'response'"),
    ],
)
def test_what_is_left_out_is_said(entry_: Document, said: str) -> None:
    made = translated(recording(one(url="https://shop.example/kept"), entry_,
                                one(url="https://shop.example/kept")))  # fmt: skip
    (left_out,) = made.left_out
    assert left_out.startswith(said)
    assert made.scenario is not None
    assert [one["path"] for one in made.scenario["spec"]["requests"]] == ["/kept"]


def test_whose_requests_are_meant() -> None:
    both = recording(one(), one(), one(url="http://api.example:8443/b"))
    made = translated(both, "api.example:8443")
    assert made.scenario is not None
    assert made.scenario["metadata"] == {"name": "api-example-8443"}
    assert [one["path"] for one in made.scenario["spec"]["requests"]] == ["/b"]
    with pytest.raises(Mistake, match=r"nothing was asked of x; there is api.example:8443, shop"):
        translated(both, "x")
    with pytest.raises(Mistake, match="can be asked again:\n  GET /a: it was answered 500"):
        translated(recording(one(status=500)))
    with pytest.raises(Mistake, match="has no requests"):
        translated(recording())


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Basic c2VjcmV0OnNlY3JldA=="},
        {"x_api_key": "c2VjcmV0OnNlY3JldA=="},
        {"cookie": "JSESSIONID=c2VjcmV0OnNlY3JldA=="},
    ],
)
def test_secrets_from_before_the_recording_are_feeders(headers: Document) -> None:
    made = translated(recording(one(**headers)))
    assert made.scenario is not None
    assert "c2VjcmV0" not in json.dumps([made.scenario, made.to_write, made.notes])
    (feeder,) = made.scenario["spec"]["feeders"]
    assert feeder["values"] == [PLACEHOLDER]
    assert made.to_write[0].startswith(f"spec.feeders {feeder['name']}: the ")
    (request,) = made.scenario["spec"]["requests"]
    assert f"{{{{{feeder['name']}}}}}" in json.dumps(request)


def test_secrets_in_a_query_and_in_a_form() -> None:
    params = [{"name": "user", "value": "a b"}, {"name": "password", "value": "p+1/"}]
    form = {"mimeType": "application/x-www-form-urlencoded", "params": params}
    first, second = requests_of(
        one(url="https://shop.example/a?page=2&access_token=Zm9vYmFyYmF6"),
        one(method="POST", sent=form),
    )
    assert first["path"] == "/a?page=2&access_token={{accessToken}}"
    assert second["body"] == "user=a%20b&password={{password|url}}"


def test_an_address_has_nothing_that_clients_write_in_ways_of_their_own() -> None:
    # Browsers record a query as they send it.
    url = 'https://shop.example/a|b/100%?f={"x":"a^b"}&q=a\\b`&r=<c>&s=50%&t=%7C&u[0]=é'
    made = translated(recording(one(url=url)))
    assert made.scenario is not None
    (request,) = checked(made.scenario).requests
    assert request.path == (
        "/a%7Cb/100%25?f=%7B%22x%22:%22a%5Eb%22%7D&q=a%5Cb%60&r=%3Cc%3E&s=50%25&t=%7C&u[0]=%C3%A9"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("password", "password1", "new_password1", "newpassword", "passwordConfirm", "passWord"),
        *("password_confirmation", "pass", "pass1", "user_pass", "userpass", "user_pwd", "passwd"),
        *("passcode", "X-Auth", "X-Authorization", "authorization", "auth_code", "code_verifier"),
        *("SAMLResponse", "client_assertion", "x-amz-credential", "X-Amz-Signature", "sig", "pin"),
        *("client_secret", "accessToken", "id_token_hint", "fcm_tokens", "x_api_key", "apikey"),
        *("csrfmiddlewaretoken", "X-XSRF-Value", "sessionid", "my_session", "connect.sid", "otp"),
        *(
            "X-Session-Id",
            "userSessionId",
            "jsessionid",
            "appkey",
            "userPin",
            "pinCode",
            "x-bearer",
        ),
    ],
)
def test_what_a_secret_is_called(name: str) -> None:
    assert secret_is_written(name) is False


@pytest.mark.parametrize(
    "name",
    [
        *("passenger", "author", "authors", "compass", "bypass", "passport", "encompassed", "spin"),
        *("secretary", "token_type", "token_type_hint", "client_assertion_type", "max_tokens"),
        *("max_output_tokens", "auth_method", "signature_version", "design", "opinion", "keyword"),
        *(
            "pinned",
            "opinions",
            "session_ids_total",
            "session_count",
            "position",
            "hotpot",
            "resident",
            "asset",
            "authority",
        ),
    ],
)
def test_what_no_secret_is_called(name: str) -> None:
    assert secret_is_written(name) is True


def secret_is_written(name: str) -> bool:
    """Whether what a field of this name held stands in what is made, in all three places alike."""
    value = "Zm9vYmFyYmF6"
    form = {
        "mimeType": "application/x-www-form-urlencoded",
        "params": [{"name": name, "value": value}],
    }
    document = {"mimeType": "application/json", "text": json.dumps({name: value})}
    found = {
        value in json.dumps(vars(translated(recording(entry))))
        for entry in (
            one(url=f"https://shop.example/a?{name}={value}"),
            one(method="POST", sent=form),
            one(method="POST", sent=document),
        )
    }
    assert len(found) == 1
    return found.pop()


def test_an_answer_that_is_nested_too_deeply_is_left_out() -> None:
    made = translated(recording(one(), one(answer="[" * 100_000)))
    (left_out,) = made.left_out
    assert left_out.startswith("entry 1 cannot be read: RecursionError")


LOGIN = one(method="POST", sent={"mimeType": "application/json", "text": '{"pin": "2024"}'})
TEXTS = [
    ("text/plain", "from 2024-01-01 to 2024-12-31", "from {{pin}}-01-01 to {{pin}}-12-31"),
    ("application/xml", "<a>{2024}{{x}}{id}</a>", "<a>{{'{'}}{{pin}}}{{'{{'}}x}}{{'{'}}id}</a>"),
    ("application/json", "[2024", "[{{pin|raw}}"),
]


@pytest.mark.parametrize(("kind", "text", "written"), TEXTS)
def test_a_secret_in_a_text_is_a_feeder_there_too(kind: str, text: str, written: str) -> None:
    beacon = one(method="POST", url="https://shop.example/b", sent={"mimeType": kind, "text": text})
    made = translated(recording(LOGIN, beacon))
    assert made.scenario is not None
    scenario = checked(made.scenario)
    assert scenario.requests[1].body == written
    # What is asked in the end is what was recorded, and that it was changed is said.
    check = filled(scenario.checks[1], {"pin": "2024"})
    assert check.body == text
    assert "whether {{pin}} is meant in the body of POST /b: its text stood there" in made.to_write
    kept = translated(recording(LOGIN, beacon), keep_secrets=True)
    assert kept.scenario is not None
    (_, check) = checked(kept.scenario).checks
    assert filled(check, {}).body == text
    assert not any("is meant in" in line for line in kept.to_write)


SECRET = "hunter2Hunter2"


@pytest.mark.parametrize("kind", ["text/plain;charset=UTF-8", "", "application/octet-stream"])
@pytest.mark.parametrize(
    "text",
    [f'{{"user": "a", "password": "{SECRET}"}}', f'[{{"name": "password", "value": "{SECRET}"}}]'],
)
def test_json_that_is_sent_as_something_else_is_json(kind: str, text: str) -> None:
    made = translated(recording(one(method="POST", sent={"mimeType": kind, "text": text})))
    assert made.scenario is not None
    assert SECRET not in json.dumps(vars(made))
    (request,) = checked(made.scenario).requests
    assert request.body is not None
    assert "{{password}}" in request.body


@pytest.mark.parametrize(
    ("kind", "text", "where"),
    [
        ("text/xml", f"<Login><password>{SECRET}</password></Login>", "the body"),
        ("text/xml", f'<w:Password Type="text">{SECRET}</w:Password>', "the body"),
        ("application/graphql", f'mutation {{ login(password: "{SECRET}") {{id}} }}', "the body"),
        ("text/plain", f"user=a\npassword={SECRET}", "the body"),
        (
            "application/json",
            json.dumps({"query": f'mutation {{ login(password:"{SECRET}"){{id}} }}'}),
            "the field query",
        ),
        (
            "application/json",
            json.dumps({"payload": json.dumps({"password": SECRET})}),
            "the field payload",
        ),
        (
            "application/x-www-form-urlencoded",
            f"j=%7B%22password%22%3A%22{SECRET}%22%7D",
            "the field j",
        ),
    ],
)
def test_where_a_secret_may_stand_in_a_text_is_said(kind: str, text: str, where: str) -> None:
    sent = {"mimeType": kind, "text": text}
    made = translated(recording(one(method="POST", sent=sent)))
    said = f"whether a secret stands in {where} of POST /a: it is written as it was sent"
    assert said in made.to_write
    kept = translated(recording(one(method="POST", sent=sent)), keep_secrets=True)
    assert said not in kept.to_write


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        # The value is a variable's, beside it.
        (
            "application/json",
            '{"query": "mutation L($password: String!) { login(password: $password) { id } }"}',
        ),
        ("text/xml", "<order><sku>7</sku></order>"),
        ("text/plain", "I have lost my token"),
    ],
)
def test_a_text_without_a_secret_is_no_doubt(kind: str, text: str) -> None:
    made = translated(recording(one(method="POST", sent={"mimeType": kind, "text": text})))
    assert not any(line.startswith("whether a secret") for line in made.to_write)


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("/x;jsessionid=ABCDEF0123456789;v=1/y", "/x;jsessionid={{jsessionid}};v=1/y"),
        ("/maps?key=AIzaSyD-Zm9vYmFyYmF6", "/maps?key={{key}}"),
        ("/back?code=ZmFz123abc&page=2", "/back?code={{code}}&page=2"),
        ("/list?key=name&code=DE", "/list?key=name&code=DE"),
    ],
)
def test_secrets_of_an_address_are_feeders(address: str, written: str) -> None:
    (request,) = requests_of(one(url=f"https://shop.example{address}"))
    assert request["path"] == written


def test_where_a_secret_may_be_meant_by_chance_is_said() -> None:
    year = {"mimeType": "application/json", "text": '{"year": 2024}'}
    made = translated(recording(LOGIN, one(method="PUT", sent=year)))
    assert "whether {{pin}} is meant in the field year of PUT /a: its text stood there" in (
        made.to_write
    )


@pytest.mark.parametrize("deep", ["[" * 60_000, "[" * 900 + "]" * 900])
def test_a_body_that_is_nested_too_deeply_is_a_mistake(
    deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = {"mimeType": "application/json", "text": deep}
    file = tmp_path / "walk.har"
    file.write_text(json.dumps(recording(one(method="POST", sent=sent))))
    assert run_command(["init", "--from", str(file)]) == 1
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["10\u00a0000 €", "a\u00adb", "👩\u200d🚀", "a\tb\r\n\x1b[2J"])
def test_a_body_stays_what_it_is_when_it_is_printed(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = {"mimeType": "text/plain", "text": text}
    file = tmp_path / "walk.har"
    file.write_text(json.dumps(recording(one(method="POST", sent=sent))))
    assert run_command(["init", "--from", str(file)]) == 0
    scenario, _ = yaml.safe_load_all(capsys.readouterr().out)
    assert scenario["spec"]["requests"][0]["body"] == text


@pytest.mark.parametrize(
    "value", ["a7Fk2q", "kQzTbWmX", "x9f3c", "Zm9v", "3f2a-77", "qX7-pL2m", "Zx" * 10]
)
def test_a_short_token_of_an_answer_is_captured_wherever_it_is_sent(value: str) -> None:
    asked, csrf = json.dumps({"cart": value}), Document({"x-csrf-token": value})
    first, second, third, fourth = requests_of(
        one(url="https://shop.example/start", answer=json.dumps({"ticket": value})),
        one(url=f"https://shop.example/step/{value}?t={value}"),
        one(method="POST", sent={"mimeType": "application/json", "text": asked}),
        one(**csrf),
    )
    assert first["captures"] == [{"name": "ticket", "json": "/ticket"}]
    assert second["path"] == "/step/{{ticket}}?t={{ticket}}"
    assert third["body"] == '{"cart": "{{ticket}}"}'
    assert fourth["headers"] == {"x-csrf-token": "{{ticket}}"}


@pytest.mark.parametrize(
    "value",
    [
        *("active", "Berlin", "EUR", "in-stock", "listPrice", "OpenAPI", "item12", "2026-11-28"),
        *("1080p", "10ms", "1.2.3", "v2", "utf-8", "iPhone", "12"),
    ],
)
def test_what_may_be_the_same_by_chance_is_captured_only_as_a_secret(value: str) -> None:
    csrf = Document({"x-csrf-token": "wordly" if len(value) < 4 else value})
    first, second, third = requests_of(
        one(url="https://shop.example/start", answer=json.dumps({"state": value})),
        one(url=f"https://shop.example/list/{value}?sort={value}"),
        one(**csrf),
    )
    assert second["path"] == f"/list/{value}?sort={value}"
    if len(value) < 4:
        assert "captures" not in first
    else:
        assert third["headers"] == {"x-csrf-token": "{{state}}"}


def test_a_number_is_an_id_only_where_both_say_so() -> None:
    created = json.dumps({"id": 12, "count": 3})
    first, second, third, fourth = requests_of(
        one(method="POST", url="https://shop.example/carts", status=201, answer=created),
        one(url="https://shop.example/carts/12"),
        one(url="https://shop.example/pages/3?limit=12"),
        one(method="POST", url="https://shop.example/pay",
            sent={"mimeType": "application/json", "text": '{"cartId": 12, "pieces": 12}'}),
    )  # fmt: skip
    assert first["captures"] == [{"name": "cartId", "json": "/id"}]
    assert second["path"] == "/carts/{{cartId}}"
    assert third["path"] == "/pages/3?limit=12"
    assert fourth["body"] == '{"cartId": {{cartId}}, "pieces": 12}'


def test_a_long_way_is_several_sessions_that_know_what_they_need() -> None:
    login = one(method="POST", url="https://shop.example/login",
                answer='{"token": "abcdefghijklmnop-1234"}')  # fmt: skip
    pages = [
        one(url=f"https://shop.example/p{n}", authorization="Bearer abcdefghijklmnop-1234")
        for n in range(40)
    ]
    made = translated(recording(login, *pages))
    assert made.scenario is not None
    checked(made.scenario)
    sessions = [one["steps"] for one in made.scenario["spec"]["sessions"]]
    assert [len(steps) for steps in sessions] == [16, 16, 2]
    assert all(steps[0] == "post-login" for steps in sessions)
    assert made.left_out[-1] == "GET /p39: a scenario has at most 32 requests"


def test_a_request_beside_those_left_out_is_checked_with_its_own_answer() -> None:
    pages = [one(url=f"https://shop.example/p{n}", answer=f'{{"a{n}": 1}}') for n in range(32)]
    too_many = one(url="https://shop.example/late", answer="<p>", kind="text/html")
    made = translated(recording(*pages, too_many, pages[0]))
    assert made.scenario is not None
    checks = made.scenario["spec"]["checks"]
    assert [one["contentType"] for one in checks] == ["application/json"] * 32
    assert [one["jsonSchema"]["required"] for one in checks] == [[f"a{n}"] for n in range(32)]


def test_an_answer_in_base64_and_one_under_conditions() -> None:
    coded = one(if_none_match='"x"', status=304)
    coded["response"]["content"] = {
        "mimeType": "application/json; charset=utf-8",
        "encoding": "base64",
        "text": base64.b64encode(b'[{"a": 1}, {"a": null, "b": ""}]').decode(),
    }
    made = translated(recording(coded))
    assert made.scenario is not None
    (check,) = made.scenario["spec"]["checks"]
    assert check == {
        "name": "get-a",
        "path": "/a",
        "contentType": "application/json",
        "jsonSchema": {"type": "array", "items": {"type": "object", "required": ["a"]}},
        "times": 1,
    }


@pytest.mark.parametrize(
    ("status", "content", "empty"),
    [
        (302, {"size": 0}, True),
        (302, {"text": ""}, True),
        (200, {"size": 0, "text": ""}, True),
        (200, {"size": 12}, False),
        (200, {}, False),
        (200, {"size": 12, "text": ""}, False),
        (304, {"size": 0}, False),  # it is asked again without conditions
    ],
)
def test_of_an_answer_without_a_body_no_type_is_asked(
    status: int, content: Document, empty: bool
) -> None:
    asked = one(status=status)
    asked["response"]["content"] = {"mimeType": "text/html", **content}
    made = translated(recording(asked))
    assert made.scenario is not None
    (check,) = made.scenario["spec"]["checks"]
    assert ("contentType" not in check) == empty


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        (
            {"a": 1, "b": None},
            {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "number"}}},
        ),
        ({"3f2a9c1e-11": 1, "a": 2}, {"type": "object"}),
        ({"mail@shop.example x": 1}, {"type": "object"}),
        ([1, "a"], {"type": "array"}),
        ([["x"], ["y"]], {"type": "array", "items": {"type": "array", "items": TEXT}}),
        ([], {"type": "array"}),
    ],
)
def test_schemas_hold_no_values(answer: Any, schema: Document) -> None:
    assert schema_of_answer(answer) == schema
