"""Comparing answers: equal or not, and the place of the first difference."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.verification.compare import first_difference, first_violation, parse_strict, quoted

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
)


@given(JSON)
def test_a_value_equals_itself_after_a_round_trip(value: object) -> None:
    assert first_difference(value, json.loads(json.dumps(value))) is None


@given(JSON, JSON)
def test_two_values_differ_exactly_when_their_canonical_texts_do(
    one: object, other: object
) -> None:
    differ = json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)
    assert (first_difference(one, other) is not None) == differ


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], "$[1].a: expected 2, got 3"),
        ([1, 2], [2, 1], "$[0]: expected 1, got 2"),
        ([1, 2], [1], "$: expected 2 items, got 1"),
        ([], [1], "$: expected 0 items, got 1"),
        ({"a": 1}, {}, '$: the field "a" is missing'),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, '$.a: unexpected field "c"'),
        (1, True, "$: expected 1, got true"),
        (False, 0, "$: expected false, got 0"),
        ("1", 1, '$: expected "1", got 1'),
        ([], {}, "$: expected [], got {}"),
        (None, "", '$: expected null, got ""'),
        ("ab", ["a", "b"], '$: expected "ab", got ["a", "b"]'),
    ],
)
def test_the_first_difference_is_named(expected: object, got: object, difference: str) -> None:
    assert first_difference(expected, got) == difference


def test_an_integral_number_may_be_written_as_a_fraction() -> None:
    assert first_difference([1], [1.0]) is None


def test_the_order_of_fields_does_not_count() -> None:
    assert first_difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) is None


def test_long_values_are_cut() -> None:
    difference = first_difference("x" * 5000, "y" * 5000)
    assert difference is not None
    assert len(difference) < 300
    assert difference.endswith("…")
    assert quoted("short") == '"short"'


SCHEMA = {
    "type": "array",
    "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
}


@pytest.mark.parametrize(
    ("got", "violation"),
    [
        ([{"id": 1}], None),
        ([{"id": 1}, {"id": "2"}], '$[1].id: expected type "integer", got "2"'),
        ([{}], '$[0]: expected required ["id"], got {}'),
        ({}, '$: expected type "array", got {}'),
    ],
)
def test_the_first_violation_of_a_schema_is_named(got: object, violation: str | None) -> None:
    assert first_violation(SCHEMA, got) == violation


def test_of_many_violations_the_first_place_is_named() -> None:
    many = [{"id": 1}] * 9 + [{"id": "ten"}] * 5
    assert first_violation(SCHEMA, many) == '$[9].id: expected type "integer", got "ten"'


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_strict(text)
