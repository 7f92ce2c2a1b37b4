"""What runs take in the operator's memory: little, and bounded whatever they measured."""

from __future__ import annotations

from random import Random

from laptime.reconcile.run_metrics import MOST_TRIALS, RunFigures
from tests.large_trials import large_result, traced

from .test_decide import spec_of
from .world import World, manifest_of

KIB = 2**10


def test_of_the_trials_of_runs_that_are_over_no_more_is_kept_than_what_is_shown_of_them() -> None:
    """They are shown for as long as they are among the newest 50: as results they fill the memory.

    Before, a run of 2,000 trials with 100 metrics each kept 500 MB for days.
    """
    figures, world = RunFigures(), World(spec_of(4, 1, 25), Random(0))
    figures.see(manifest_of(world.run))
    with traced() as memory:
        results = {one.name: large_result(one, metrics=20, endpoints=5) for one in world.trials}
        figures.see_trials(world.run, world.trials, results)
        del results
        now, _ = memory()
    assert now < 100 * KIB
    assert figures.text().count(b"laptime_trial_requests_per_second{") == 100


def test_of_the_trials_of_a_long_run_the_newest_are_kept() -> None:
    figures, world = RunFigures(), World(spec_of(10, 2, 100), Random(0))
    figures.see(manifest_of(world.run))
    with traced() as memory:
        results = {one.name: large_result(one) for one in world.trials}
        figures.see_trials(world.run, world.trials, results)
        del results
        now, _ = memory()
    assert now < 400 * KIB
    assert figures.text().count(b"laptime_trial_info{") == MOST_TRIALS
