"""How long a run still takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from laptime.api.loads import Load
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import UNKNOWN, Scenario
from laptime.plan.endpoints import sent_sessions
from laptime.plan.sessions import REQUESTS_BOUND_SECONDS, thinking_seconds
from laptime.plan.trials import Trial

OVERHEAD_SECONDS = 4.0
"""From one trial's last request to the next one's first, with a new pod of the server."""

MOST_STEPS = 40
"""Of a saturation search; the generator leaves open what is not known then."""

_USUAL_STEPS = 18
"""Of a saturation search, from 100 requests/s to a few thousand, as bench/search counts them."""

_USUAL_MISSES = 8
"""Steps of them that miss the objective, after each of which the server gets its rest."""

_USUAL_REST_SECONDS = 1.0
"""What is left to be answered, and a few answers that come as fast as at first."""

_REST_IN_STEPS = 2
"""The longest rest, as the generator has it (images/k6/internal/generator/rest.go)."""

_PROBE_SECONDS = 1.0
"""The longest question how fast answers come, but for its last answer."""

USUAL_RATE = 1000.0
"""Requests/s of a trial bound by requests that nothing is known about yet."""

_UNKNOWN_SECONDS = 20.0
"""A measured part that says nothing of its length."""


def remaining_seconds(
    spec: BenchmarkRunSpec,
    trials_left: Sequence[Trial],
    measured_durations: Mapping[tuple[str, str], Sequence[float]],
    scenario: Scenario = UNKNOWN,
) -> float:
    """Estimate the seconds that the trials left will take, one after the other.

    `measured_durations` are the whole lengths in seconds of the trials that are over, from one
    trial's start to the next one's, by (server, load). What was measured wins over what the spec
    says; a pair with nothing measured takes the mean of its load. Two trials at the same time take
    as long as the longer one. What users think by the `scenario` counts where it is known.
    """
    expected = {
        (server, load): _expected(spec.load(load), server, measured_durations, scenario)
        for server, load in {(one.server, one.load) for one in trials_left}
    }
    longest: dict[str, float] = {}
    for trial in trials_left:
        seconds = expected[trial.server, trial.load]
        longest[trial.meeting] = max(seconds, longest.get(trial.meeting, 0.0))
    return sum(longest.values())


def _expected(
    load: Load,
    server: str,
    measured: Mapping[tuple[str, str], Sequence[float]],
    scenario: Scenario,
) -> float:
    if load.saturation is not None:
        # What is measured of it is the best step alone.
        steps = _USUAL_STEPS * load.saturation.step_seconds
        # A search asks before its first step, too.
        return _around(load) + steps + (_USUAL_MISSES + 1) * _USUAL_REST_SECONDS
    own = measured.get((server, load.name))
    if own:
        return fmean(own)
    seconds = load.measured_seconds
    if seconds is not None and load.script is None:
        return _around(load) + seconds
    same_load = [
        fmean(durations)
        for (_, name), durations in measured.items()
        if name == load.name and durations
    ]
    if same_load:
        return fmean(same_load)
    if seconds is None:
        bound = load.closed.requests if load.closed is not None else None
        seconds = _requests_seconds(load, bound, scenario) if bound else _UNKNOWN_SECONDS
    return _around(load) + seconds


def _requests_seconds(load: Load, requests: int, scenario: Scenario) -> float:
    try:
        sessions = sent_sessions(load, scenario)
    except ValueError:
        # Nobody knows the scenario yet, or it refuses the load.
        sessions = []
    # A trial is ended where the server takes longer, which is no part of what users think.
    answers = min(requests / USUAL_RATE, REQUESTS_BOUND_SECONDS)
    return max(answers, thinking_seconds(load, sessions))


def longest_rest_seconds(load: Load) -> float:
    """Return how long a search waits at most before its next step, in seconds; 0 for no search."""
    if load.saturation is None:
        return 0.0
    rest = _REST_IN_STEPS * load.saturation.step_seconds
    return rest + _PROBE_SECONDS + load.timeout_seconds


def _around(load: Load) -> float:
    """Return the seconds of a trial beside its measured part; both parts open connections."""
    return load.warmup_seconds + 2 * load.connect_seconds + OVERHEAD_SECONDS
