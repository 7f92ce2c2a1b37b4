"""A run measures no more under a load once all orders under it are known."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.attempts import trial_of
from laptime.api.status import State
from laptime.plan import plan_trials
from laptime.report.results import read_results

from .test_decide import run_to_the_end, spec_of
from .world import World


def world_of(seed: int, spread: float = 0.02) -> World:
    """Return a world in which the second server is twice as fast, under the first load alone."""
    spec = spec_of(2, 2, 3, stopWhen="decided", maxRepetitions=7, seed=seed % 2**31)
    trials = {one.name: one for one in plan_trials("demo", spec, seed % 2**31, 7)}

    def rate(job: str) -> float:
        trial = trials[trial_of(job)]
        faster = 2.0 if (trial.server, trial.load) == ("s1", "l0") else 1.0
        # The same in every attempt.
        noise = 1 + spread * Random(f"{seed}/{trial.name}").uniform(-1, 1)
        return 1000.0 * faster * noise

    return World(spec, Random(seed), rates=rate)


def test_one_load_stops_early_and_the_other_goes_on() -> None:
    world = world_of(3)
    run_to_the_end(world)
    status = world.run.status
    assert status.state is State.SUCCEEDED
    trials = {(row.server, row.load): row.trials for row in status.results or []}
    assert trials == {("s0", "l0"): 3, ("s1", "l0"): 3, ("s0", "l1"): 7, ("s1", "l1"): 7}
    assert status.progress is not None
    assert (status.progress.completed, status.progress.total) == (20, 20)
    verdict = status.verdict or ""
    assert "s1 is fastest: 2." in verdict
    assert "s0 and s1 cannot be told apart by throughput under l1" in verdict
    assert "all orders under l0 are known after 3 repetitions" in verdict
    assert "under l1 the order is not known after 7 repetitions" in verdict


def test_a_run_that_is_cancelled_says_everywhere_how_much_of_it_was_made() -> None:
    """Under one of its loads no trial was begun."""
    world = world_of(3)
    while not world.run.status.state or not world.run.status.state.terminal:
        world.step()
        world.advance()
        if len(world.results_written) == 1:
            world.run = replace(world.run, spec=world.run.spec.model_copy(update={"cancel": True}))
    progress = world.run.status.progress
    assert world.run.status.state is State.CANCELLED
    assert progress is not None
    assert (progress.completed, progress.total, progress.percent) == (1, 12, 8)
    assert progress.text == "1/12"
    _, report = read_results(world.files["results.json"])
    assert report.trials_said == "1 of 12 measured, in 3 repetitions"


@given(seed=st.integers(0, 2**31 - 1), spread=st.sampled_from([0.01, 0.1, 0.3]))
@settings(max_examples=10, deadline=None)
def test_an_operator_that_is_killed_makes_the_same_trials(seed: int, spread: float) -> None:
    calm, stormy = world_of(seed, spread), world_of(seed, spread)
    run_to_the_end(calm)
    stormy.kills = 0.05
    run_to_the_end(stormy)
    assert stormy.results_written == calm.results_written
    assert len(set(calm.results_written)) == len(calm.results_written)
