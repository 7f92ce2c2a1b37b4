"""Templates are read as the generator reads them: both are tested with the same cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from laptime.catalog.templates import Place, check_path, parts_of, rendered

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "images/k6/internal/session/testdata/templates.json").read_text(
        "utf-8"
    )
)
PLACES = {
    "path": Place.PATH,
    "header": Place.HEADER,
    "cookie": Place.COOKIE,
    "body": Place.BODY,
    "jsonBody": Place.JSON_BODY,
}


def written(case: dict[str, Any]) -> str:
    """Return what a scenario with the template of a case sends in its place."""
    template, place = case["template"], PLACES[case["place"]]
    if place is Place.PATH:
        check_path("/" + template)
    return rendered(template, place, {"users.name": case["name"]})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['place']} {case['template']}")
def test_a_template_becomes_what_the_generator_makes_of_it(case: dict[str, Any]) -> None:
    if "text" in case:
        assert written(case) == case["text"]
    else:
        with pytest.raises(ValueError, match=r"write|there is no value"):
            written(case)


@pytest.mark.parametrize(
    "path", [f"/{case['text']}" for case in CASES if case["place"] == "path" and "text" in case]
)
def test_a_path_is_verified_as_it_is_measured(path: str) -> None:
    with httpx.Client(base_url="http://host:8080") as client:
        assert client.build_request("GET", path).url.raw_path == path.encode()


def test_the_short_form_is_a_value_only_where_there_are_ids() -> None:
    assert [part.name for part in parts_of("/a/{id}/b/{id}", ids=True)] == ["", "{id}", "", "{id}"]
    assert [part.text for part in parts_of("/a/{id}")] == ["/a/{id}"]
    assert rendered("/a/{id}", Place.PATH, {"{id}": 7}) == "/a/7"
    assert rendered("/a/{id}", Place.PATH, {}) == "/a/{id}"


@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), (True, "true"), ([1, 2], "[1,2]"), (1.5, "1.5"), ("x", "x")]
)
def test_what_is_no_text_is_written_as_json_has_it(value: Any, text: str) -> None:
    assert rendered("{{a}}", Place.BODY, {"a": value}) == text


def test_no_value_names_another_host() -> None:
    with pytest.raises(ValueError, match="would name another host"):
        rendered("/{{a|raw}}", Place.PATH, {"a": "/other.namespace.svc/"})


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("{{a}}", {"a": " S3cr3tKey"}),
        ("{{a}}", {"a": "S3cr3tKey\t"}),
        ("Bearer {{a}}", {"a": ""}),
        ("{{a}} x", {"a": ""}),
        (" x", {}),
        ("{{' '}}x", {}),
    ],
)
def test_no_header_field_begins_or_ends_with_a_blank(template: str, values: dict[str, Any]) -> None:
    """Some clients send it without, and others refuse to send it."""
    with pytest.raises(ValueError, match="begins or ends with a blank") as refused:
        rendered(template, Place.HEADER, values)
    assert "S3cr3t" not in str(refused.value)
    assert rendered(template, Place.BODY, values)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (Place.PATH, "S3cr3t Key"),
        (Place.HEADER, "S3cr3t\nKey"),
        (Place.COOKIE, "S3cr3t;Key"),
        (Place.QUERY, "S3cr3t;Key"),
    ],
)
def test_a_value_that_cannot_stand_there_is_not_said(place: Place, value: str) -> None:
    with pytest.raises(ValueError, match=r"{{a}}: character 7 \(.*\) cannot stand in") as refused:
        rendered("{{a|raw}}", place, {"a": value})
    assert "S3cr3t" not in str(refused.value)
    with pytest.raises(ValueError, match="begins with two /") as refused:
        rendered("/{{a|raw}}", Place.PATH, {"a": "/S3cr3t"})
    assert "S3cr3t" not in str(refused.value)


@pytest.mark.parametrize("value", ["1 OR 1=1", "1; DROP TABLE item", "'", "a" * 129, "ü"])
def test_no_value_ends_a_query(value: str) -> None:
    with pytest.raises(ValueError, match="letters, digits, '-' and '_' only"):
        rendered("SELECT {{a}}", Place.QUERY, {"a": value})
    assert rendered("SELECT '{{a}}'", Place.QUERY, {"a": "5f-1_a"}) == "SELECT '5f-1_a'"
