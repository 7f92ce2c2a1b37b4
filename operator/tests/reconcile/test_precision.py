"""A run repeats until its factors are known well enough, whatever happens on the way."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.attempts import trial_of
from laptime.api.status import State

from .test_decide import run_to_the_end, spec_of
from .world import World


def loud(seed: int, spread: float) -> World:
    """Return a world whose throughputs differ from trial to trial, the same on every try."""
    spec = spec_of(2, 1, 3, precision="2%", maxRepetitions=12)
    return World(
        spec,
        Random(seed),
        # The same in every attempt.
        rates=lambda job: 1000.0 * (1 + spread * Random(f"{seed}/{trial_of(job)}").uniform(-1, 1)),
    )


def test_steady_servers_are_done_after_the_first_look() -> None:
    world = loud(1, 0.002)
    run_to_the_end(world)
    assert [row.trials for row in world.run.status.results or []] == [8, 8]
    assert "precision" not in (world.run.status.verdict or "")


def test_loud_servers_are_repeated_until_the_most_and_the_verdict_says_so() -> None:
    world = loud(1, 0.3)
    run_to_the_end(world)
    status = world.run.status
    assert status.state is State.SUCCEEDED
    assert [row.trials for row in status.results or []] == [12, 12]
    assert "the precision of 2% was not reached: intervals reach" in (status.verdict or "")
    assert status.progress is not None
    assert (status.progress.completed, status.progress.total) == (24, 24)


@given(seed=st.integers(0, 2**32), spread=st.sampled_from([0.01, 0.03, 0.06]))
@settings(max_examples=15, deadline=None)
def test_an_operator_that_is_killed_makes_the_same_trials(seed: int, spread: float) -> None:
    calm, stormy = loud(seed, spread), loud(seed, spread)
    run_to_the_end(calm)
    # Killed between any two steps, but no pod is lost: results are the same. Not so often that
    # the tiers cannot be made within the time that they have.
    stormy.kills = 0.05
    run_to_the_end(stormy)
    assert stormy.results_written == calm.results_written
    assert len(set(calm.results_written)) == len(calm.results_written)


@pytest.mark.parametrize("more", [{}, {"precision": "2%"}])
def test_the_control_is_a_server_like_the_others_and_no_competitor(more: dict[str, str]) -> None:
    world = World(spec_of(2, 1, 3, control=True, **more), Random(1))
    run_to_the_end(world)
    status = world.run.status
    assert [row.server for row in status.results or []] == ["s0", "s1", "s0-control"]
    assert "control" not in f"{status.fastest} {status.verdict}"
    (control,) = status.control or []
    assert (control.load, control.factor.value, control.differs) == ("l0", 1.0, False)
    assert [(row.server, row.rank) for row in status.results or []] == [
        ("s0", 1),
        ("s1", 1),
        ("s0-control", None),
    ]
