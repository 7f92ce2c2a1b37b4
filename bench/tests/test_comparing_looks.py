"""What is simulated of looks is what the operator says at them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from candidates import Array
from looks import SCHEDULES, Case, Look, seen
from noise import made_up

from laptime.analysis.comparing import Comparison
from laptime.analysis.looks import Looks, shares_of_looks


@pytest.mark.parametrize("kind", ["equal", "one noisy", "stumbles"])
@pytest.mark.parametrize(("servers", "repetitions"), [(2, 4), (2, 14), (3, 9), (4, 4), (4, 18)])
@pytest.mark.parametrize("errors", [0.05, 0.004])
def test_a_simulated_look_says_what_the_operator_says(
    kind: str, servers: int, repetitions: int, errors: float
) -> None:
    # Differences of several noises, so that all of 1 % and less is left to no chance.
    truth: Array = np.linspace(0.0, 0.25 * (servers - 1), servers)
    y = 10 * made_up(kind, (15, repetitions, servers), np.random.default_rng(5)) + truth
    look = Look(y, truth)
    told, covered = look.told(errors), look.covered(errors)
    alike = look.alike(errors, 0.4)
    for number, of_round in enumerate(y):
        scores = {f"s{n}": dict(enumerate(of_round[:, n], 1)) for n in range(servers)}
        comparison = Comparison(scores, Looks(1, (errors,)))
        for place, (one, other) in enumerate(combinations(range(servers), 2)):
            pair, true_ratio = (f"s{one}", f"s{other}"), math.exp(truth[one] - truth[other])
            ratio = comparison.ratio(*pair)
            assert ratio is not None
            assert comparison.can_be_told_apart(*pair) == told[number, place]
            assert ((ratio.low or 0) <= true_ratio <= (ratio.high or 0)) == covered[number, place]
            assert comparison.are_alike(*pair, 1.4) == alike[number, place]


@pytest.mark.parametrize(("first", "most"), [(3, 5), (3, 30)])
def test_the_operators_schedule_is_that_of_the_candidate_that_was_chosen(
    first: int, most: int
) -> None:
    candidate = SCHEDULES["Lan-DeMets, like Pocock, 3 %"](first, most)
    assert shares_of_looks(first, most) == pytest.approx(candidate, rel=1e-3)


def test_runs_stop_where_all_orders_are_known() -> None:
    case = Case(2, "equal", 3, 6, difference=0.2)
    found = seen(case, case.runs(200, []), {"ours": shares_of_looks})["ours"]
    assert found.known == 1
    assert 3 <= found.repetitions < 4
    assert found.wrong == 0
