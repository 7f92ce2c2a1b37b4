"""What is found of a server that is 3 % faster, in as many repetitions as a run makes by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from longest import ENDS, FASTER, found, table
from looks import MOST
from measured_noise import left_over

from laptime.analysis.comparing import Comparison
from laptime.analysis.looks import Looks


@pytest.mark.parametrize("errors", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("servers", [2, 4])
def test_it_is_found_where_the_operator_finds_it(servers: int, errors: float) -> None:
    noise = 0.03 * np.random.default_rng(4).standard_normal((40, MOST, servers))
    expected = 0
    for of_round in noise:
        y = of_round + math.log(FASTER) * (np.arange(servers) == 1)
        scores = {f"s{place}": dict(enumerate(y[:, place], 1)) for place in range(servers)}
        expected += Comparison(scores, Looks(1, (errors,))).is_faster("s1", "s0")
    assert 0 < expected < 40
    assert found(noise, errors) == expected


def test_the_figures_of_like_servers_are_told_apart_by_their_name() -> None:
    throughput, p99 = (sum(map(len, left_over(name))) for name in ("throughput", "p99"))
    assert min(throughput, p99) > 0
    assert throughput + p99 == sum(map(len, left_over()))


def test_a_share_has_its_interval() -> None:
    lines = list(table(20, [2]))
    assert len(lines) == 3 + 3
    assert all(line.count(" to ") == len(ENDS) for line in lines[3:])
