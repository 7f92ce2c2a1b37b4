"""Refusals of the API server, as they are read by people."""

from __future__ import annotations

import json

import pytest

from laptime.cli.mistakes import explain_refusal, is_missing, is_outage


def _body(**status: object) -> str:
    return json.dumps({"kind": "Status", **status})


def test_each_broken_rule_on_a_line_of_its_own_without_the_value() -> None:
    causes = [
        {
            "field": "spec.servers[0]",
            "message": 'Invalid value: "object": write either preset or image',
        },
        {"field": "spec.loads[0].name", "message": 'Invalid value: "A: b": must be lower-case'},
        {"field": "spec.scenario", "message": 'Unsupported value: "user": supported: "users"'},
        {"field": "spec.loads", "message": "Required value"},
        {
            "field": "<nil>",
            "message": "Invalid value: null: some validation rules were not checked",
        },
    ]
    mistake = explain_refusal(
        422, _body(message="long", details={"causes": causes}), "apply BenchmarkRun demo"
    )
    assert str(mistake).splitlines() == [
        "Could not apply BenchmarkRun demo: the API server refused it.",
        "  spec.servers[0]: write either preset or image",
        "  spec.loads[0].name: must be lower-case",
        '  spec.scenario: Unsupported value: "user": supported: "users"',
        "  spec.loads: Required value",
    ]


def test_an_unknown_field_is_named() -> None:
    # The API server answers 500 to this, which is no outage.
    body = _body(
        message="failed to create typed patch object (default/bad; laptime.dev/v1alpha1, "
        "Kind=BenchmarkRun): .spec.repetition: field not declared in schema"
    )
    assert not is_outage(500, body)
    assert str(explain_refusal(500, body, "apply it")).splitlines() == [
        "Could not apply it: unknown field.",
        "  .spec.repetition: field not declared in schema: did you mean repetitions?",
    ]


@pytest.mark.parametrize(
    "said",
    [
        '.spec.servers: duplicate entries for key [name="axum"]',
        ".spec.repetitions: expected numeric (int or float), got string",
    ],
)
def test_what_does_not_fit_the_schema_is_a_refusal_that_is_said(said: str) -> None:
    # 500 too: nobody should wait for it, and everybody should read it.
    body = _body(
        message="failed to create typed patch object (default/bad; laptime.dev/v1alpha1, "
        f"Kind=BenchmarkRun): {said}"
    )
    assert not is_outage(500, body)
    assert said in str(explain_refusal(500, body, "apply it"))


@pytest.mark.parametrize(
    ("kind", "field", "hint"),
    [
        ("BenchmarkRun", '.spec.servers[name="a.b"].prest', ": did you mean preset?"),
        ("BenchmarkRun", ".spec.loads[0].closed.conections", ": did you mean connections?"),
        ("BenchmarkScenario", ".spec.requests[0].expectStaus", ": did you mean expectStatus?"),
        ("BenchmarkRun", ".spec.colour", ""),
        ("ConfigMap", ".specs", ""),
    ],
)
def test_which_field_the_api_server_was_probably_meant_to_see_is_said(
    kind: str, field: str, hint: str
) -> None:
    said = f"{field}: field not declared in schema"
    body = _body(message=f"failed to create typed patch object (a/b; laptime; Kind={kind}): {said}")
    assert str(explain_refusal(500, body, "apply it")).splitlines()[1] == f"  {said}{hint}"


def test_an_outage_is_told_from_a_refusal() -> None:
    assert is_outage(503, None)
    assert is_outage(500, _body(message="etcdserver: leader changed"))
    assert not is_outage(422, _body(message="no"))


def test_forbidden_says_who_may_not_what() -> None:
    mistake = explain_refusal(403, _body(message='User "a" cannot patch'), "apply")
    assert 'User "a" cannot patch' in str(mistake)


def test_a_missing_namespace_is_not_a_missing_kind() -> None:
    details = {"kind": "namespaces", "name": "team"}
    body = _body(message='namespaces "team" not found', details=details)
    assert 'namespaces "team" not found' in str(explain_refusal(404, body, "apply"))


def test_a_missing_kind_says_how_to_install() -> None:
    assert "helm" in str(explain_refusal(404, b"404 page not found\n", "apply"))
    body = _body(
        message="the server could not find the requested resource",
        details={"group": "laptime.dev", "kind": "benchmarkruns"},
    )
    assert "helm" in str(explain_refusal(404, body, "apply"))


def test_an_answer_that_is_no_status() -> None:
    assert "proxy says no" in str(explain_refusal(502, "proxy says no", "read"))
    assert "HTTP 418" in str(explain_refusal(418, None, "read"))


def test_a_missing_run_is_told_from_everything_else() -> None:
    body = _body(message="gone", details={"kind": "benchmarkruns", "name": "demo"})
    assert is_missing(body, "demo")
    assert not is_missing(body, "other")
    assert not is_missing("404 page not found", "demo")
