"""Letters of servers that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

from laptime.analysis.repeated import logs_by_server
from laptime.analysis.ties import tie_groups
from laptime.api.metrics import Metric
from tests.analysis.runs import make_spec, run, steady

STEADY = (1.0, 1.001, 0.999, 1.0005, 0.9995)


def rates(**means: tuple[float, Sequence[float]]) -> dict[str, dict[int, float]]:
    return {
        name: {n: math.log(mean * wobble) for n, wobble in enumerate(wobbles, start=1)}
        for name, (mean, wobbles) in means.items()
    }


def test_servers_that_differ_for_sure_have_letters_of_their_own_fastest_first() -> None:
    found = tie_groups(rates(slow=(100, STEADY), fast=(900, STEADY), middle=(300, STEADY)))
    assert found == {"fast": "A", "middle": "B", "slow": "C"}


def test_equal_servers_share_a_letter() -> None:
    found = tie_groups(rates(one=(100, STEADY), other=(100, STEADY), slow=(50, STEADY)))
    assert found == {"one": "A", "other": "A", "slow": "B"}


def test_one_between_two_that_differ_belongs_to_both() -> None:
    # The one in between varies a lot: it can be told from neither, and they from each other.
    wild = (0.7, 1.4, 0.8, 1.3, 1.0)
    found = tie_groups(rates(high=(110, STEADY), low=(100, STEADY), between=(105, wild)))
    assert found["between"] == "AB"
    assert found["high"] == "A"
    assert found["low"] == "B"


def test_a_difference_below_one_percent_is_no_difference() -> None:
    exact = (1.0,) * 5
    assert set(tie_groups(rates(a=(1000, exact), b=(1005, exact))).values()) == {"A"}


def test_many_pairs_are_judged_more_strictly_than_one() -> None:
    # A ratio that is sure enough for a claim of one pair, but not for one of three pairs together.
    pair = rates(a=(100, (1.0, 1.0, 1.0)), b=(86, (0.96, 1.0, 1.05)))
    assert tie_groups(pair) == {"a": "A", "b": "B"}
    three = pair | rates(c=(89, (1.06, 0.97, 1.0)))
    assert tie_groups(three)["b"] == "A"


def test_a_single_repetition_tells_nothing_apart() -> None:
    assert tie_groups(rates(a=(100, (1.0,)), b=(900, (1.0,)))) == {}


def test_more_groups_than_letters_are_numbered() -> None:
    many = rates(**{f"s{n:02}": (1000.0 * 2**-n, (1.0, 1.0001, 0.9999)) for n in range(28)})
    assert tie_groups(many)["s25"] == "Z"
    assert tie_groups(many)["s26"] == "A2"


def test_rates_come_from_the_trials_of_the_load() -> None:
    _, trials, _ = run(make_spec("a", "b", loads=("one", "two")), steady({"a": 10, "b": 20}))
    found = logs_by_server(trials, "two", Metric.REQUESTS_PER_SECOND)
    assert set(found) == {"a", "b"}
    assert set(found["a"]) == {1, 2, 3, 4, 5}
    assert math.exp(found["b"][1]) / 20 - 1 < 0.01
