"""The published scenarios are the same work as ever: what is sent, and what a right answer is."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from laptime.api.scenario import Exchange
from laptime.catalog import Scenario, document_of, scenario_of, scenarios
from laptime.catalog.problems import scenario_problems
from laptime.catalog.statements import statements_of

# Of requests with the reset before them, and of checks, as they were when scenarios were folders of
# the operator's package. Another number here is other work under the same name.
WORK = {
    "apibench": ("07b8e8bea48a129f", "51aebc1ce53c0f35"),
    "hello": ("ca11d5c513041bdf", "4f741df4e35b7621"),
    "posts": ("1fa2e245f3599d8c", "ce565c2296d9e664"),
    "recipes": ("6c432e62f183b912", "7ce436e8480669dd"),
    "sleep": ("f776faad1a053950", "28830a538df5023f"),
    "tasks": ("97d0b43d1000ed3a", "d527655519ee9ed4"),
    "upstream": ("18a37a14d6290aa7", "c3265b28de88e0ce"),
    "users": ("ff73f612ffe6feac", "e4693ea43b8fac34"),
}
# By these `kubectl laptime compare` knows that two runs did the same work, earlier ones too.
HASHES = {
    "apibench": "1898518973664dad",
    "hello": "4f484b976a5c0eca",
    "posts": "3817ae9c94817f8b",
    "recipes": "e7ffcbcb3a79b682",
    "sleep": "483cbce7c3d2be07",
    "tasks": "22968fbd1b9805ab",
    "upstream": "267f3d9673794783",
    "users": "bbff0f7790353abb",
}
_SENT = ("name", "method", "path", "body", "expectStatus", "statements")
_ASKED = (
    *("contentType", "jsonSchema", "expected", "times", "answers", "keepsId", "sameAsUpstream"),
    *("minSeconds", "timeoutSeconds"),
)


def digest(document: Any) -> str:
    """Return 16 hex digits that stand for JSON-like content."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def on_the_wire(exchange: Exchange, *more: str) -> dict[str, Any]:
    """Return what is sent, and what is said about the answer."""
    said = exchange.to_wire()
    sent = {key: said[key] for key in (*_SENT, *more) if key in said}
    return {**sent, "headers": exchange.sent_headers}


def work(scenario: Scenario) -> tuple[str, str]:
    """Return the digests of a scenario."""
    costs = ("ids", "asksUpstream", "waitSeconds")
    requests = [
        on_the_wire(one, *costs) | {"bodyCheck": scenario.body_check(one, scenario.requests)}
        for one in scenario.requests
    ]
    checks = [on_the_wire(one, *_ASKED) for one in scenario.counting_checks]
    return digest([requests, scenario.reset_statements]), digest(checks)


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda one: one.name)
def test_requests_and_checks_are_what_they_were(scenario: Scenario) -> None:
    assert work(scenario) == WORK[scenario.name]
    assert scenario.hash == HASHES[scenario.name]


@pytest.mark.parametrize("scenario", scenarios().values(), ids=lambda one: one.name)
def test_a_published_scenario_keeps_the_rules_of_all_others(scenario: Scenario) -> None:
    assert scenario_problems(scenario) == []


def test_the_hash_is_of_the_work_and_not_of_what_is_said_about_it() -> None:
    users = scenarios()["users"]
    said = users.model_copy(update={"title": "x", "description": "y", "published": None})
    assert said.hash == users.hash
    assert users.model_copy(update={"name": "mine", "builtin": False}).hash == users.hash
    fewer = users.model_copy(update={"checks": [users.checks[0].model_copy(update={"times": 3})]})
    assert fewer.hash != users.hash
    assert len({one.hash for one in scenarios().values()}) == len(scenarios())


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1", ["SELECT 1"]),
        ("-- nothing; here\n/* nor; here */", []),
        ("SELECT ';' , \";\";", ["SELECT ';' , \";\""]),
        ("SELECT 'it''s; one';", ["SELECT 'it''s; one'"]),
        (
            "DO $$ BEGIN PERFORM 1; END; $$; SELECT 2;",
            ["DO $$ BEGIN PERFORM 1; END; $$", "SELECT 2"],
        ),
        ("SELECT $a$ ; $$ ; $a$; ;", ["SELECT $a$ ; $$ ; $a$"]),
        ("SELECT 1 -- one;\n+ 2;", ["SELECT 1  \n+ 2"]),
        ("SELECT $1;", ["SELECT $1"]),
        (r"SELECT E'it\'s; x', e'\\'; SELECT 2;", [r"SELECT E'it\'s; x', e'\\'", "SELECT 2"]),
        # No escapes: those of a name that ends so, and of plain quotes.
        (
            r"SELECT TABLE'\'; SELECT '\', E'it''s;';",
            [r"SELECT TABLE'\'", r"SELECT '\', E'it''s;'"],
        ),
        ("SELECT E'it\\'s; SELECT 2", ["SELECT E'it\\'s; SELECT 2"]),
        ("SELECT 1 /* one /* two; */ three; */ + 2;", ["SELECT 1   + 2"]),
        ("SELECT 1; /* never /* closed; */ SELECT 2;", ["SELECT 1"]),
    ],
)
def test_statements_end_where_the_database_ends_them(sql: str, statements: list[str]) -> None:
    assert statements_of(sql) == statements


def test_the_answer_to_a_request_with_values_is_not_the_same_each_time() -> None:
    fixed = {"name": "me", "path": "/me", "headers": {"x": "{{'{{'}}"}}
    drawn = {**fixed, "headers": {"x": "{{users.name}}"}}
    feeders = [{"name": "users", "csv": {"text": "name\nada\nbob\n"}}]
    for one, said in ((fixed, "same"), (drawn, "nonEmpty")):
        scenario = Scenario.model_validate(
            {
                "name": "x",
                "feeders": feeders,
                "requests": [one],
                "checks": [{**one, "expected": {"name": "ada"}}],
            }
        )
        assert scenario.body_check(scenario.requests[0], scenario.requests) == said


def test_a_media_type_alone_asks_for_a_body_where_a_load_does() -> None:
    me = {"name": "me", "path": "/me", "contentType": "text/plain"}
    scenario = Scenario.model_validate(
        {
            "name": "x",
            "requests": [{"name": "me", "path": "/me"}, {"name": "list", "path": "/items"}],
            "checks": [
                me,
                {**me, "name": "list", "path": "/items", "expected": [1]},
                # Nothing that is sent under load.
                {**me, "name": "old", "path": "/old", "expectStatus": 302},
            ],
        }
    )
    assert scenario.bodies_asked_for == ["me"]


CREATE = {"name": "create", "method": "POST", "path": "/items", "expectStatus": 201}
DATA = {"postgres": {"schema": [{"sql": "CREATE TABLE item (id integer);"}]}}
WHOLE = {"expected": [{"id": 1}]}


def said_of(
    listed: dict[str, Any], check: dict[str, Any], writes: bool, **scenario: Any
) -> str | None:
    """Return what is asked of the answers to GET /items, in a load that writes or does not."""
    listed = {"name": "list", "path": "/items", **listed}
    sent = {key: one for key, one in listed.items() if key != "statements"}
    made = Scenario.model_validate(
        {
            "name": "shop",
            "data": DATA,
            "requests": [listed, CREATE],
            "checks": [{**sent, **check}, {**CREATE, "times": 1}],
            **scenario,
        }
    )
    asked, create = made.requests
    return made.body_check(asked, [asked, create] if writes else [asked])


def test_an_answer_is_not_called_constant_where_the_load_writes() -> None:
    assert said_of({}, WHOLE, writes=False) == "same"
    # From the first created row on the right answer is another one.
    assert said_of({}, WHOLE, writes=True) == "nonEmpty"
    # What asks no table shows none of its rows; what keeps them elsewhere may.
    nothing = {"statements": 0}
    assert said_of(nothing, WHOLE, writes=True) == "same"
    assert said_of(nothing, WHOLE, writes=True, data=None) == "nonEmpty"
    cache = [{"name": "cache", "image": "redis:8", "ports": [6379], "stateless": True}]
    assert said_of(nothing, WHOLE, writes=True, services=cache) == "nonEmpty"
    # Nobody writes into the run's upstream.
    assert said_of({}, {"sameAsUpstream": True}, writes=True) == "same"


def test_compressed_answers_to_one_request_differ() -> None:
    # Of Django each has some random bytes of its own, of Python's gzip the time.
    for asked, said in (("gzip", "nonEmpty"), ("identity", "same")):
        assert said_of({"headers": {"Accept-Encoding": asked}}, WHOLE, writes=False) == said


def test_a_request_that_computes_is_known_by_being_asked_again() -> None:
    order = {"method": "POST", "path": "/sums", "body": "[1, 2]"}
    assert said_of(order, {"expected": 3}, writes=False) == "same"
    assert said_of(order, {"expected": 3, "times": 1}, writes=False) == "nonEmpty"
    assert said_of(order, {"expected": 3}, writes=True) == "nonEmpty"


@pytest.mark.parametrize("check", [{"jsonSchema": {"type": "array"}}, {"expectedPart": [{}]}])
def test_two_answers_alike_within_a_moment_say_nothing_of_a_whole_load(check: Any) -> None:
    # Such as one that has the time of day in seconds.
    assert said_of({}, {**check, "times": 2}, writes=False) == "nonEmpty"


def test_a_scenario_says_itself_whether_an_answer_is_constant() -> None:
    schema = {"jsonSchema": {"type": "array"}}
    assert said_of({}, {**schema, "constant": True}, writes=True) == "same"
    assert said_of({}, {**WHOLE, "constant": False}, writes=False) == "nonEmpty"


def test_the_hash_is_of_the_rows_and_not_of_where_they_are() -> None:
    def with_table(csv: dict[str, Any], text: str) -> str:
        document = document_of(scenarios()["users"], "default")
        document["spec"]["feeders"] = [{"name": "users", "csv": csv}]
        return scenario_of(document, {("people", "users.csv"): text}).hash

    here = with_table({"text": "name\nada\n"}, "")
    there = {"configMap": {"name": "people", "key": "users.csv"}}
    assert with_table(there, "name\nada\n") == here
    assert with_table(there, "name\nbob\n") != here
    assert scenarios()["users"].hash != here


def test_statements_are_asked_of_checks_that_ask_for_the_same_work() -> None:
    post = {"method": "POST", "path": "/tasks", "expectStatus": 201}
    scenario = Scenario.model_validate(
        {
            "name": "mine",
            "requests": [
                {**post, "name": "login", "body": "login", "statements": 1},
                {**post, "name": "open", "body": "open", "statements": 2},
            ],
            "checks": [
                {**post, "name": "login", "body": "login"},
                {**post, "name": "opened", "body": "open"},
                {**post, "name": "refused", "body": "wrong"},
                {**post, "name": "own", "body": "wrong", "statements": 3},
                {**post, "name": "error", "body": "open", "expectStatus": 422},
            ],
        }
    )
    counted = {one.name: one.statements for one in scenario.counting_checks}
    assert counted == {"login": 1, "opened": 2, "refused": None, "own": 3, "error": None}
