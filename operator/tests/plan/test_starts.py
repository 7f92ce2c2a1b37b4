"""Where searches begin: anywhere in an octave, and always at the same place."""

from __future__ import annotations

import math

from laptime.api.loads import SaturationLoad
from laptime.plan import Trial, start_rate

SEARCH = SaturationLoad.model_validate({"p99": "50ms", "startRate": 100})


def trial(server: str = "axum", load: str = "limit", repetition: int = 1) -> Trial:
    return Trial("demo-trial-001", 1, server, load, repetition)


def test_a_trial_always_begins_at_the_same_rate() -> None:
    # An operator of a later version goes on with the same runs.
    assert start_rate(SEARCH, 1, trial()) == 75.94


def test_servers_loads_repetitions_and_runs_begin_at_rates_of_their_own() -> None:
    others = [trial(server="go"), trial(load="other"), trial(repetition=2)]
    rates = {start_rate(SEARCH, 1, one) for one in [trial(), *others]}
    assert len(rates | {start_rate(SEARCH, 2, trial())}) == 5


def test_rates_are_spread_evenly_over_an_octave_by_their_logarithm() -> None:
    rates = [start_rate(SEARCH, 1, trial(repetition=n)) for n in range(2000)]
    assert all(50 <= rate <= 100 for rate in rates)
    places = sorted(math.log2(rate / 50) for rate in rates)
    # Kolmogorov's distance of 2000 uniform values is above this in one of a million.
    apart = max(abs(place - n / len(places)) for n, place in enumerate(places))
    assert apart < 2.7 / math.sqrt(len(places))


def test_no_rate_is_below_one_a_second_and_one_is_drawn_all_the_same() -> None:
    slow = SaturationLoad.model_validate({"p99": "50ms", "startRate": 1})
    rates = [start_rate(slow, 1, trial(repetition=n)) for n in range(50)]
    assert all(1 <= rate <= 2 for rate in rates)
    assert len(set(rates)) > 30
    # No search goes beyond what it may.
    slowest = SaturationLoad.model_validate({"p99": "50ms", "startRate": 1, "maxRate": 1})
    assert start_rate(slowest, 1, trial()) == 1
