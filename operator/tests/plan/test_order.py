"""The order within repetitions: balanced over position and predecessor, and drawn by the seed."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Order, RunStatus
from laptime.plan import order_of, orders, plan_trials, williams_squares
from laptime.plan.order import MOST_BALANCED

SEEDS = st.integers(0, 2**31 - 1)
SIZES = st.integers(1, 17)
BALANCED = st.integers(1, MOST_BALANCED)
RULES = st.sampled_from(Order)


def treatments(size: int) -> list[tuple[str, str]]:
    """Return so many pairs of server and load, two loads for each server."""
    return [(f"s{number // 2}", f"l{number % 2}") for number in range(size)]


def rows_of_a_square(size: int) -> int:
    """Return after how many repetitions everything was at each position equally often."""
    return 4 if size == 2 else size


@given(BALANCED, SEEDS, st.integers(0, 3))
def test_over_a_square_everything_is_at_each_position_equally_often(
    size: int, seed: int, before: int
) -> None:
    rows = rows_of_a_square(size)
    planned = orders(treatments(size), seed, (before + 1) * rows)[before * rows :]
    for position in range(size):
        counted = Counter(row[position] for row in planned)
        assert counted == dict.fromkeys(treatments(size), rows // size)


@given(st.integers(3, MOST_BALANCED), SEEDS)
def test_in_a_square_nothing_follows_the_same_twice(size: int, seed: int) -> None:
    even = size % 2 == 0
    planned = orders(treatments(size), seed, size)
    assert max(Counter(pair for row in planned for pair in pairwise(row)).values()) <= (
        1 if even else 2
    )


@given(BALANCED, SEEDS)
def test_over_all_squares_everything_follows_everything_equally_often(size: int, seed: int) -> None:
    repetitions = {1: 1, 2: 4}.get(size, size if size % 2 == 0 else 2 * size)
    planned = orders(treatments(size), seed, repetitions)
    counted = Counter(pair for row in planned for pair in pairwise(row))
    assert len(counted) == size * (size - 1)
    assert len(set(counted.values())) <= 1


@given(BALANCED, SEEDS, st.integers(1, 40))
def test_at_no_time_is_anything_far_ahead_at_a_position(
    size: int, seed: int, repetitions: int
) -> None:
    planned = orders(treatments(size), seed, repetitions)
    most = 2 if size == 2 else 1
    for position in range(size):
        counted = Counter({one: 0 for one in treatments(size)})
        counted.update(row[position] for row in planned)
        assert max(counted.values()) - min(counted.values()) <= most


@given(st.integers(1, 17))
def test_squares_are_balanced_over_position_and_predecessor(size: int) -> None:
    rows = [row for square in williams_squares(size) for row in square]
    for position in range(size):
        assert len(set(Counter(row[position] for row in rows).values())) == 1
    pairs = Counter(pair for row in rows for pair in pairwise(row))
    assert len(pairs) == size * (size - 1)
    assert len(set(pairs.values())) <= 1


@given(st.integers(MOST_BALANCED + 1, 17), SEEDS)
def test_of_many_each_repetition_is_drawn_by_itself(size: int, seed: int) -> None:
    assert orders(treatments(size), seed, 6) == orders(treatments(size), seed, 6, Order.DRAWN)


@given(SEEDS)
def test_of_two_servers_none_comes_first_in_all_of_three_repetitions(seed: int) -> None:
    # A machine that gets slower all the time would make the same one look faster each time.
    firsts = Counter(row[0] for row in orders(treatments(2), seed, 3))
    assert sorted(firsts.values()) == [1, 2]


def test_all_orders_of_two_servers_that_are_left_are_equally_likely() -> None:
    found = Counter(
        "".join(row[0][1] for row in orders(treatments(2), seed, 3)) for seed in range(6000)
    )
    assert len(found) == 6
    # 1000 are expected each; five standard deviations of the binomial distribution are 144.
    assert all(abs(count - 1000) < 144 for count in found.values())


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_everything_is_as_likely_at_each_position_of_each_repetition(size: int) -> None:
    # What the machine does to a position hits each with the same chance: nobody is favoured.
    counted: Counter[tuple[int, int, tuple[str, str]]] = Counter()
    seeds = 3000
    for seed in range(seeds):
        for repetition, row in enumerate(orders(treatments(size), seed, 3)):
            counted.update((repetition, position, one) for position, one in enumerate(row))
    expected, share = seeds / size, 1 / size
    assert len(counted) == 3 * size * size
    five = 5 * (seeds * share * (1 - share)) ** 0.5
    assert all(abs(count - expected) < five for count in counted.values())


@given(SIZES, SEEDS, RULES, st.integers(1, 20), st.integers(0, 20))
def test_more_repetitions_only_add_to_the_end(
    size: int, seed: int, rule: Order, few: int, more: int
) -> None:
    short = orders(treatments(size), seed, few, rule)
    assert orders(treatments(size), seed, few + more, rule)[:few] == short


@given(SIZES, SEEDS, RULES, st.randoms())
def test_it_is_of_no_matter_how_servers_are_sorted(
    size: int, seed: int, rule: Order, random: Random
) -> None:
    mixed = treatments(size)
    random.shuffle(mixed)
    assert orders(mixed, seed, 7, rule) == orders(treatments(size), seed, 7, rule)


# A run that is resumed by a newer operator must find the plan that it began with.


def made(servers: int, repetitions: int) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": f"s{n}", "preset": "axum-sqlx"} for n in range(servers)],
            "loads": [{"name": "l0", "closed": {"connections": 1, "requests": 1}}],
            "repetitions": repetitions,
        }
    )


@pytest.mark.parametrize(
    ("rule", "servers", "planned"),
    [
        (Order.DRAWN, 3, "s0 s1 s2, s1 s2 s0"),
        (Order.BALANCED, 2, "s0 s1, s1 s0, s1 s0, s0 s1, s0 s1, s0 s1"),
        (Order.BALANCED, 3, "s1 s2 s0, s0 s1 s2, s2 s0 s1, s0 s2 s1"),
        (Order.BALANCED, 4, "s0 s3 s2 s1, s3 s1 s0 s2"),
    ],
)
def test_the_plan_of_a_seed_never_changes(rule: Order, servers: int, planned: str) -> None:
    repetitions = planned.count(",") + 1
    trials = plan_trials("run", made(servers, repetitions), 42, order=rule)
    found = ", ".join(
        " ".join(trial.server for trial in trials if trial.repetition == repetition)
        for repetition in range(1, repetitions + 1)
    )
    assert found == planned


def test_a_run_keeps_the_rule_that_it_began_with() -> None:
    assert order_of(RunStatus(seed=42, order=Order.BALANCED)) is Order.BALANCED
    assert order_of(RunStatus(seed=42, order=Order.DRAWN)) is Order.DRAWN


def test_a_run_that_an_older_version_began_goes_on_with_its_order() -> None:
    assert order_of(RunStatus.model_validate({"state": "Running", "seed": 42})) is Order.DRAWN


def test_a_run_that_is_not_begun_gets_the_balanced_order() -> None:
    assert order_of(RunStatus()) is Order.BALANCED


@pytest.mark.parametrize("pair", list(combinations(range(4), 2)))
def test_of_two_that_are_left_of_a_square_each_comes_first_as_often(pair: tuple[int, int]) -> None:
    """A load that is decided takes its treatments out of the rows that are left."""
    one, other = pair
    (square,) = williams_squares(4)
    assert sum(row.index(one) < row.index(other) for row in square) == 2
