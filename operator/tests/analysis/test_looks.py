"""Looking after each repetition does not make errors more frequent."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from laptime.analysis.comparing import Comparison
from laptime.analysis.looks import ONCE, SPENT, Looks, looks_of, shares_of_looks
from tests.analysis.runs import make_spec


def errors_together(shares: tuple[float, ...], first: int, rounds: int, seed: int) -> float:
    """Return how often a sum of normal values is beyond its bound at any of the looks."""
    from scipy.special import ndtri

    dice = random.Random(seed)
    bounds = [-float(ndtri(one / 2)) for one in shares]
    wrong = 0
    for _ in range(rounds):
        total = sum(dice.gauss(0, 1) for _ in range(first - 1))
        for n, bound in enumerate(bounds, first):
            total += dice.gauss(0, 1)
            if abs(total) > bound * math.sqrt(n):
                wrong += 1
                break
    return wrong / rounds


@pytest.mark.parametrize(("first", "most"), [(3, 4), (3, 30), (10, 12), (5, 60)])
def test_all_looks_together_err_as_often_as_is_allowed(first: int, most: int) -> None:
    shares = shares_of_looks(first, most)
    assert len(shares) == most - first + 1
    share = errors_together(shares, first, 20_000, seed=most)
    # Three standard errors of the count.
    assert share == pytest.approx(SPENT, abs=3 * math.sqrt(SPENT / 20_000))


def test_a_single_look_may_err_by_all_that_may_be_spent() -> None:
    assert shares_of_looks(7, 7) == pytest.approx((SPENT,), rel=1e-6)


def test_200_looks_are_reckoned_once() -> None:
    shares = shares_of_looks(3, 200)
    assert all(0 < one < SPENT for one in shares)
    assert shares_of_looks(3, 200) is shares


def test_before_the_first_look_and_after_the_last_one_it_is_as_at_them() -> None:
    looks = Looks(3, (0.01, 0.02))
    assert [looks.errors(n) for n in (1, 3, 4, 9)] == [0.01, 0.01, 0.02, 0.02]
    assert ONCE.errors(1) == ONCE.errors(50) == 0.05


def test_what_counts_is_the_last_repetition_that_any_server_has() -> None:
    looks = Looks(3, (0.01, 0.02))
    assert looks.errors_of([{1: 0.0, 2: 0.0}, {1: 0.0, 4: 0.0}, {}]) == 0.02
    assert looks.errors_of([]) == 0.01


def test_a_fixed_number_of_trials_is_looked_at_as_before() -> None:
    assert looks_of(make_spec("a", "b")) is ONCE
    by_look = looks_of(make_spec("a", "b", repetitions=4, stopWhen="decided", maxRepetitions=9))
    assert (by_look.first, len(by_look.shares)) == (4, 6)


def first_claim(scores: dict[str, dict[int, float]], looks: Looks, first: int) -> bool:
    most = max(max(one) for one in scores.values())
    for n in range(first, most + 1):
        seen = {name: {k: v for k, v in one.items() if k <= n} for name, one in scores.items()}
        comparison = Comparison(seen, looks)
        if any(comparison.can_be_told_apart(*pair) for pair in combinations(seen, 2)):
            return True
    return False


@pytest.mark.parametrize("servers", [2, 4])
def test_like_servers_are_seldom_told_apart_at_any_look(servers: int) -> None:
    """With 5 % at each of ten looks every seventh run found something."""
    rounds, first, most = 300, 3, 12
    looks = Looks(first, shares_of_looks(first, most))
    wrong = {"by looks": 0, "5 % each": 0}
    for seed in range(rounds):
        dice = random.Random(seed)
        scores = {
            f"s{k}": {n: dice.gauss(0, 0.1) for n in range(1, most + 1)} for k in range(servers)
        }
        wrong["by looks"] += first_claim(scores, looks, first)
        wrong["5 % each"] += first_claim(scores, ONCE, first)
    # 5 % and twice the standard error of such a count.
    assert wrong["by looks"] / rounds <= 0.075
    assert wrong["5 % each"] / rounds >= 0.1


def test_intervals_are_wider_where_there_are_other_looks() -> None:
    dice = random.Random(1)
    scores = {name: {n: dice.gauss(0, 0.01) for n in range(1, 6)} for name in ("a", "b", "c")}
    looks = Looks(3, shares_of_looks(3, 30))
    often, once = Comparison(scores, looks).ratio("a", "b"), Comparison(scores).ratio("a", "b")
    assert often is not None
    assert once is not None
    assert often.value == once.value
    assert (often.low or 0) < (once.low or 0) < (once.high or 0) < (often.high or 0)


@pytest.mark.parametrize("servers", [2, 3])
def test_servers_are_alike_where_the_whole_interval_says_so(servers: int) -> None:
    dice = random.Random(2)
    steady = {f"s{k}": {n: dice.gauss(0, 0.002) for n in range(1, 7)} for k in range(servers)}
    comparison = Comparison(steady)
    assert comparison.are_alike("s0", "s1", 1.05)
    assert not comparison.are_alike("s0", "s1", 1.0005)
    apart = {**steady, "s0": {n: log + 0.1 for n, log in steady["s0"].items()}}
    assert not Comparison(apart).are_alike("s0", "s1", 1.05)
    assert Comparison(apart).are_alike("s0", "s1", 1.2)
    # Two repetitions in common are needed to know anything.
    single = {**steady, "s0": {1: 0.0}}
    assert not Comparison(single).are_alike("s0", "s1", 1.2)
