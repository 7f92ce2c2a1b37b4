"""What is simulated is what the operator does."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from candidates import ours, pairs
from measured_noise import halves
from noise import FELT_UNLIKE, MADE_UP, disturbance, made_up, planned
from orders import ORDERS, with_place

from laptime.analysis.comparing import Comparison
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import plan_trials


@pytest.mark.parametrize("kind", MADE_UP)
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 5), (3, 5), (4, 4), (4, 9), (13, 3)])
def test_the_simulated_rule_claims_what_the_operator_claims(
    kind: str, servers: int, repetitions: int
) -> None:
    y = made_up(kind, (20, repetitions, servers), np.random.default_rng(5))
    # Twice the noise apart, so that some pairs are told apart and others are not.
    y = y + 0.02 * np.arange(servers)
    said = ours(y)
    claimed = np.abs(said.difference) > np.maximum(said.needed, np.log(1.01))
    for number, of_round in enumerate(y):
        comparison = Comparison(
            {f"s{place:02}": dict(enumerate(of_round[:, place])) for place in range(servers)}
        )
        names = comparison.servers
        apart = [comparison.can_be_told_apart(*pair) for pair in combinations(names, 2)]
        assert apart == claimed[number].tolist()


@pytest.mark.parametrize("repetitions", [5, 9])
def test_the_simulated_intervals_are_those_of_the_operator(repetitions: int) -> None:
    y = made_up("one noisy", (10, repetitions, 4), np.random.default_rng(6))
    covered = ours(y).covered
    for number, of_round in enumerate(y):
        comparison = Comparison({f"s{n}": dict(enumerate(of_round[:, n])) for n in range(4)})
        for place, pair in enumerate(combinations(comparison.servers, 2)):
            ratio = comparison.ratio(*pair)
            assert ratio is not None
            assert ((ratio.low or 0) <= 1 <= (ratio.high or 0)) == covered[number, place]


def test_pairs_alone_need_more_the_more_servers_there_are() -> None:
    y = made_up("equal", (10, 4, 4), np.random.default_rng(5))
    said = pairs(y)
    assert float(np.mean(said.needed / said.half)) == pytest.approx(1.96, abs=0.1)


def test_runs_that_were_measured_are_in_one_half_each() -> None:
    chosen_by, held_out = halves()
    assert len(chosen_by) == 10
    assert len(held_out) == 12
    # Nobody's noise is negative, and nobody's is that of a server that stood still.
    assert all(0.001 < one < 1 for run in (*chosen_by, *held_out) for one in run)


@pytest.mark.parametrize("servers", [2, 3, 4])
def test_the_simulated_order_is_the_one_that_the_operator_plans(servers: int) -> None:
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": f"s{n:02}", "preset": "axum-sqlx"} for n in range(servers)],
            "loads": [{"name": "load", "closed": {"connections": 1, "requests": 1}}],
            "repetitions": 6,
        }
    )
    places = planned((5, 6, servers), 11)
    for run in range(5):
        for trial in plan_trials("run", spec, 11 + run):
            place = (trial.ordinal - 1) % servers
            assert places[run, trial.repetition - 1, int(trial.server[1:])] == place


def test_a_machine_that_gets_slower_hits_servers_by_their_place() -> None:
    shape = (50, 3, 2)
    slower = disturbance("line", shape, np.random.default_rng(7))
    y = np.take_along_axis(slower, planned(shape, 3), 2)
    # By the order within a repetition alone, the difference has one sign or the other.
    signs = np.sign(y[:, :, 0] - y[:, :, 1])
    assert not np.any(np.abs(signs.sum(1)) == 3)


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 5), (3, 7), (4, 4), (5, 3)])
def test_each_order_has_each_server_once_in_each_repetition(
    name: str, servers: int, repetitions: int
) -> None:
    places = ORDERS[name]((20, repetitions, servers), np.random.default_rng(8))
    assert places.shape == (20, repetitions, servers)
    assert np.array_equal(np.sort(places, 2), np.broadcast_to(np.arange(servers), places.shape))


def test_orders_that_are_tried_are_mirrored_where_they_say_so() -> None:
    shape = (20, 4, 4)
    for name in ("mirrored in pairs", "Williams, each row and its mirror"):
        places = ORDERS[name](shape, np.random.default_rng(8))
        assert np.array_equal(places[:, 1], 3 - places[:, 0])
        assert np.array_equal(places[:, 3], 3 - places[:, 2])


def test_a_place_that_is_a_covariate_takes_a_straight_drift_out() -> None:
    shape = (10, 4, 4)
    at = ORDERS["Williams"](shape, np.random.default_rng(8))
    steep = 0.1 * (at + 4 * np.arange(4)[None, :, None])
    said = with_place(steep + made_up("equal", shape, np.random.default_rng(9)), at)
    assert np.all(said.needed < 0.05)


@pytest.mark.parametrize("kind", FELT_UNLIKE)
def test_a_server_takes_half_of_what_the_machine_does_and_another_one_twice(kind: str) -> None:
    shape = (300, 5, 3)
    y = made_up(kind, shape, np.random.default_rng(3))
    spread = np.sqrt(y.var((0, 1)) - 0.01**2)
    assert spread / spread[2] == pytest.approx([0.5, 2.0, 1.0], rel=0.15)
    # Nobody is worth more for it.
    assert y.mean((0, 1)) == pytest.approx([0.0] * 3, abs=4 * 2 * 0.03 / 300**0.5)


def test_a_level_is_that_of_a_whole_repetition() -> None:
    done = disturbance("levels", (4, 5, 3), np.random.default_rng(3))
    assert np.all(done == done[:, :, :1])
    assert len(np.unique(done)) == 20
