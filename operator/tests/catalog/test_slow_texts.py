"""Texts that strangers wrote to be slow to read are read in a time that their length bounds."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.catalog import Scenario
from laptime.catalog.problems import scenario_problems
from laptime.catalog.statements import statements_of
from tests.slow import within

LONG = 400_000
IDS = {"first": 1, "last": 9, "use": "cycle"}


def sql_of(text: str) -> int:
    return len(statements_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "/* " * (LONG // 3),
        "".join(f"$a{number}$ " for number in range(LONG // 8)),
        "$a" * (LONG // 2),
        "'" + " ''" * (LONG // 3),
        '"' * LONG,
        "E'\\\\" * (LONG // 4),
        "E'" + "\\'E" * (LONG // 3),
        "/**/" * (LONG // 4),
    ],
    ids=["comments", "tags", "one tag", "quotes", "names", "escapes", "escaped", "no comments"],
)
def test_what_nothing_closes_is_looked_for_once(text: str) -> None:
    assert within(60, sql_of, text) <= 1


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("SELECT 1; /* no end; SELECT 2;", ["SELECT 1"]),
        ("DO $a$ BEGIN; $b$ no end;", ["DO $a$ BEGIN; $b$ no end;"]),
        # A name may have $ in it, which opens nothing.
        ("SELECT a$b$c; SELECT 2;", ["SELECT a$b$c", "SELECT 2"]),
        ("SELECT a$$; SELECT $$;$$;", ["SELECT a$$", "SELECT $$;$$"]),
    ],
)
def test_what_has_no_end_goes_to_the_end_of_the_text(sql: str, statements: list[str]) -> None:
    assert statements_of(sql) == statements


def asking(request: str, check: str, **more: Any) -> list[str]:
    """Return what is said of a scenario with one request and one check."""
    values = [{"name": "x", "values": ["1"]}, {"name": "y", "values": ["2"]}]
    scenario = Scenario.model_validate(
        {
            "name": "mine",
            "feeders": values,
            "requests": [{"name": "one", "path": request, **more}],
            "checks": [{"name": "one", "path": check}],
        }
    )
    return [said for said in scenario_problems(scenario) if "no check asks" in said]


@pytest.mark.parametrize("value", ["{{x|raw}}", "{{x}}", "{id}"])
def test_a_path_with_many_values_is_compared_in_steps(value: str) -> None:
    some = {"ids": IDS} if value == "{id}" else {}
    each = {"{id}": "1"}.get(value, "a")
    path = "/" + f"{value}1" * (2000 // (len(value) + 1))
    assert within(60, asking, path, "/" + each * 1900 + "b", **some) != []
    assert within(60, asking, path, "/" + "1" * 1900, **some) == []


@pytest.mark.parametrize(
    ("request_path", "check", "same"),
    [
        ("/a", "/a", True),
        ("/a", "/ab", False),
        ("/{{x}}", "/1", True),
        ("/{{x}}", "/", False),
        ("/{{x}}", "/1/2", False),
        ("/{{x}}?y={{y}}", "/1?y=2", True),
        ("/{{x}}?y={{y}}", "/{{y}}?y={{x}}", True),
        ("/{{x}}", "/a?b=c", False),
        ("/{{x|raw}}", "/a?b=c", True),
        # The first place where what follows a value is found need not be the right one.
        ("/{{x}}a{{y}}b", "/1a2a3b", True),
        ("/{{x}}-{{y}}.json", "/a-b-c.json", True),
    ],
)
def test_any_text_stands_for_a_value_of_a_path(request_path: str, check: str, same: bool) -> None:
    assert (asking(request_path, check) == []) is same


@pytest.mark.parametrize(("check", "same"), [("/7", True), ("/77", True), ("/x", False)])
def test_a_number_stands_for_an_id(check: str, same: bool) -> None:
    said = asking("/{id}", check, ids=IDS)
    assert (said == []) is same
