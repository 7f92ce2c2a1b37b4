"""Ranks claim no more than the figures show."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from laptime.analysis.comparing import Comparison
from laptime.analysis.looks import ONCE, Looks, shares_of_looks
from laptime.analysis.ranks import fastest_first, ranks
from laptime.analysis.statistics import is_faster
from laptime.analysis.ties import tie_groups
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
        "a": around(121, 0.0, 0.01, -0.01, 0.005),
        "b": around(110, 0.06, -0.05, 0.05, -0.06),
        "c": around(100, 0.01, 0.0, -0.005, 0.01),
    }
    compared = Comparison(scores)
    assert not compared.can_be_told_apart("a", "b")
    assert not compared.can_be_told_apart("b", "c")
    assert compared.can_be_told_apart("a", "c")
    assert ranks(scores) == {"a": 1, "b": 1, "c": 2}


STUMBLED = {
    # b is 3 % faster in each repetition, but for two in which something else took the machine.
    "a": around(970, *[0.001 * (n % 3) for n in range(20)]),
    "b": around(1000, *[-0.55 if n in (4, 11) else 0.001 * (n % 4) for n in range(20)]),
}


def test_a_server_that_stumbled_twice_is_not_behind_one_that_it_is_faster_than() -> None:
    assert sum(STUMBLED["a"].values()) > sum(STUMBLED["b"].values())
    assert is_faster(STUMBLED["b"], STUMBLED["a"])
    assert not is_faster(STUMBLED["a"], STUMBLED["b"])
    assert ranks(STUMBLED) == {"b": 1, "a": 2}
    assert tie_groups(STUMBLED) == {"b": "A", "a": "B"}


def test_who_failed_in_a_bad_hour_is_not_the_faster_for_it() -> None:
    # Both were slower in the second half, where b was measured and a failed.
    a = {number: math.log(1000) + 0.001 * (number % 2) for number in range(1, 4)}
    b = {n: math.log(1030 if n < 4 else 500) + 0.001 * (n % 3) for n in range(1, 7)}
    assert fastest_first({"a": a, "b": b}) == ["b", "a"]
    assert ranks({"a": a, "b": b}) == {"b": 1, "a": 2}


def test_the_order_is_that_of_the_figures_that_stand_in_the_table() -> None:
    """A run that looks after each repetition has means, where others have Hodges' and Lehmann's."""
    looks = Looks(3, shares_of_looks(3, 30))
    scores = {
        "a": around(1000, *[0.001 * (n % 3) - (n == 9) * math.log(1.2) for n in range(1, 10)]),
        "b": around(995, *[0.001 * ((n + 1) % 3) for n in range(1, 10)]),
    }
    for one, order in ((looks, ["b", "a"]), (ONCE, ["a", "b"])):
        compared = Comparison(scores, one)
        values = {name: found.value for name, found in compared.estimates().items()}
        assert fastest_first(scores, compared) == sorted(values, key=lambda name: -values[name])
        assert fastest_first(scores, compared) == order
        assert list(tie_groups(scores, one)) == order


def test_one_repetition_gives_no_rank() -> None:
    assert ranks({"a": {1: 1.0}, "b": {1: 2.0}}) == {}


@given(SCORES)
def test_servers_that_differ_for_sure_never_share_a_rank(
    scores: dict[str, dict[int, float]],
) -> None:
    found = ranks(scores)
    comparison = Comparison({name: score for name, score in scores.items() if name in found})
    for one in found:
        for other in found:
            if comparison.can_be_told_apart(one, other):
                assert found[one] != found[other]


@given(SCORES)
def test_somebody_is_first_and_nobody_beats_the_first_ones(
    scores: dict[str, dict[int, float]],
) -> None:
    found = ranks(scores)
    order = fastest_first(scores)
    compared = Comparison(scores)
    beaten = {one for one in order if any(compared.is_faster(o, one) for o in order)}
    assert not order or order[0] not in beaten or beaten == set(order)
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
