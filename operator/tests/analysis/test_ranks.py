"""Ranks claim no more than the figures show."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from laptime.analysis.ranks import ranks
from laptime.analysis.statistics import can_be_told_apart
from tests.analysis.runs import make_spec, steady, summary_of

SCORES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.dictionaries(st.integers(1, 6), st.floats(0, 1), max_size=6),
    max_size=6,
)


def around(rate: float, *wobble: float) -> dict[int, float]:
    return {number: math.log(rate) + one for number, one in enumerate(wobble, start=1)}


def test_servers_that_differ_for_sure_have_ranks_of_their_own() -> None:
    noise = (0.0, 0.002, -0.001, 0.001, -0.002)
    scores = {"slow": around(100, *noise), "fast": around(900, *noise[::-1])}
    assert ranks(scores) == {"fast": 1, "slow": 2}


def test_servers_that_cannot_be_told_apart_share_a_rank() -> None:
    scores = {
        "a": around(500, 0.0, 0.02, -0.02, 0.01),
        "b": around(503, 0.01, -0.02, 0.02, 0.0),
        "c": around(90, 0.0, 0.01, 0.0, -0.01),
    }
    assert ranks(scores) == {"a": 1, "b": 1, "c": 3}


def test_like_the_next_but_not_like_the_one_after() -> None:
    scores = {
        "a": around(109, 0.0, 0.01, -0.01, 0.005),
        "b": around(103, 0.06, -0.05, 0.05, -0.06),
        "c": around(100, 0.01, 0.0, -0.005, 0.01),
    }
    assert not can_be_told_apart(scores["a"], scores["b"], 3)
    assert not can_be_told_apart(scores["b"], scores["c"], 3)
    assert can_be_told_apart(scores["a"], scores["c"], 3)
    assert ranks(scores) == {"a": 1, "b": 1, "c": 2}


def test_one_repetition_gives_no_rank() -> None:
    assert ranks({"a": {1: 1.0}, "b": {1: 2.0}}) == {}


@given(SCORES)
def test_servers_that_differ_for_sure_never_share_a_rank(
    scores: dict[str, dict[int, float]],
) -> None:
    found = ranks(scores)
    pairs = len(found) * (len(found) - 1) // 2
    for one in found:
        for other in found:
            if can_be_told_apart(scores[one], scores[other], pairs):
                assert found[one] != found[other]


@given(SCORES)
def test_somebody_is_first_and_ranks_follow_the_means(scores: dict[str, dict[int, float]]) -> None:
    found = ranks(scores)
    assert set(found) == {name for name, score in scores.items() if len(score) > 1}
    assert not found or min(found.values()) == 1


def test_rows_have_ranks_under_each_load() -> None:
    spec = make_spec("fastapi", "axum", "twin", loads=("one", "two"))
    rates = {"fastapi": 600.0, "axum": 15000.0, "twin": 15000.0}
    found = {(row.load, row.server): row.rank for row in summary_of(spec, steady(rates)).rows}
    assert found == {
        (load, server): rank
        for load in ("one", "two")
        for server, rank in (("fastapi", 3), ("axum", 1), ("twin", 1))
    }
