"""How long a trial should be."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from laptime.analysis import summarise, wording
from laptime.analysis.comparing import POWER, Noise, critical
from laptime.analysis.distributions import student_quantile
from laptime.analysis.length import (
    CAREFUL,
    FEWEST_REPETITIONS,
    SHORTEST_SECONDS,
    WORTH_SAVING,
    Measured,
    better_length,
    repetitions_needed,
    trial_lengths,
)
from laptime.analysis.statistics import ERRORS
from laptime.api import doubts
from laptime.api.loads import Load
from laptime.api.results import (
    Figures,
    ResponseTimes,
    TrialLength,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import Source, TrialUsage
from laptime.plan import plan_trials
from tests.analysis.runs import make_spec

SERVERS = ("a", "b", "c", "d")
MOSTLY_BETWEEN = Measured(
    servers=4,
    noise=Noise(variance=4e-4, repetitions=5, degrees=12),
    within=0.2e-4,
    seconds=30.0,
    around=15.0,
    shortest=SHORTEST_SECONDS,
)
MOSTLY_WITHIN = Measured(
    servers=4,
    noise=Noise(variance=1e-4, repetitions=21, degrees=60),
    within=1e-4,
    seconds=8.0,
    around=40.0,
    shortest=SHORTEST_SECONDS,
)


def test_where_trials_differ_more_than_their_seconds_shorter_ones_save_time() -> None:
    found = better_length("closed", MOSTLY_BETWEEN)
    assert found is not None
    assert (found.load, found.seconds, found.instead_of_seconds) == ("closed", 8, 30)
    assert 5 <= found.repetitions <= 7
    assert found.instead_of_repetitions == 5
    assert found.time_share == pytest.approx(found.repetitions * 23 / (5 * 45))
    assert found.time_share <= 1 - WORTH_SAVING


def test_longer_trials_are_never_advised() -> None:
    """Where each of them stands still for a while, that looks like noise within them."""
    assert better_length("closed", MOSTLY_WITHIN) is None
    assert better_length("closed", MOSTLY_WITHIN, careful=0.0) is None


@pytest.mark.parametrize("careful", [0.0, CAREFUL])
def test_where_seconds_vary_more_than_trials_nothing_is_advised(careful: float) -> None:
    for within in (1.01, 2.0, 20.0):
        known = replace(MOSTLY_BETWEEN, within=within * MOSTLY_BETWEEN.noise.variance)
        assert better_length("closed", known, careful) is None


@pytest.mark.parametrize(("servers", "repetitions"), [(2, 3), (4, 4), (6, 5), (3, 12)])
@pytest.mark.parametrize("variance", [0.2, 0.9, 1.0, 1.3, 5.0])
def test_as_many_repetitions_find_the_same(servers: int, repetitions: int, variance: float) -> None:
    """The first number of them that finds at least what was found before."""

    def smallest(count: int, noise: float) -> float:
        needed = critical(servers, count, ERRORS) + student_quantile(count - 1, POWER)
        return needed * math.sqrt(noise / count)

    found = repetitions_needed(servers, repetitions, variance)
    assert smallest(found, variance) <= smallest(repetitions, 1)
    assert found == FEWEST_REPETITIONS or smallest(found - 1, variance) > smallest(repetitions, 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"noise": Noise(4e-4, 2, 3), "seconds": 60.0},
        {"servers": 1},
        {"around": 0.0},
        # Nothing is known of it, or it is alike in all trials.
        {"within": 0.0},
        {"within": 9e-4},
        # Nothing is to be had.
        {"within": 2e-4},
        {"seconds": 9.0},
        {"shortest": 25.0},
    ],
)
def test_where_little_is_saved_or_known_nothing_is_advised(changed: dict[str, Any]) -> None:
    assert better_length("closed", replace(MOSTLY_BETWEEN, **changed)) is None


def test_what_is_alike_in_each_trial_is_no_noise_that_longer_ones_average_out() -> None:
    assert better_length("closed", replace(MOSTLY_WITHIN, within=2e-4)) is None


def test_few_repetitions_do_not_say_that_the_noise_is_between_trials() -> None:
    noise = Noise(variance=4e-4, repetitions=3, degrees=2)
    known = replace(MOSTLY_BETWEEN, noise=noise, within=1.7e-4, seconds=120.0)
    assert better_length("closed", known) is None
    assert better_length("closed", known, careful=0.0) is not None


def asked(load: dict[str, Any], **more: Any) -> BenchmarkRunSpec:
    loads = [Load.model_validate({"name": "closed", **load})]
    return make_spec(*SERVERS, **more).model_copy(update={"loads": loads})


CLOSED = {"closed": {"connections": 4, "duration": "30s"}}


def measured(repetitions: int = 5, within: float | None = 0.003, **more: Any) -> list[TrialResult]:
    """Return trials of 30 s, one each 50 s, that differ by some 2 %."""
    dice, clock, found = random.Random(7), datetime(2026, 11, 23, 10), list[TrialResult]()
    for repetition in range(1, repetitions + 1):
        for server in SERVERS:
            begin = clock + timedelta(seconds=50 * len(found))
            figures = Figures(
                requests=30_000,
                errors=0,
                window_seconds=30.0,
                requests_per_second=1000 * math.exp(dice.gauss(0, 0.02)),
                within_share=within,
                latency=ResponseTimes(
                    mean_seconds=0.01,
                    p99_seconds=0.1 * math.exp(dice.gauss(0, 0.02)),
                    max_seconds=0.2,
                ),
            )
            found.append(
                TrialResult(
                    trial=f"t-{len(found)}",
                    ordinal=len(found) + 1,
                    server=server,
                    load="closed",
                    repetition=repetition,
                    outcome=TrialOutcome.MEASURED,
                    started_at=begin.isoformat(),
                    finished_at=(begin + timedelta(seconds=30)).isoformat(),
                    figures=figures,
                    **more,
                )
            )
    return found


def test_a_run_says_for_each_load_which_length_would_do() -> None:
    (found,) = trial_lengths(asked(CLOSED), measured())
    assert (found.load, found.seconds, found.instead_of_seconds) == ("closed", 8, 30)
    # 20 s lie around each of them.
    assert found.time_share == pytest.approx(found.repetitions * 28 / (5 * 50))


def test_a_run_that_is_over_says_it_in_its_summary() -> None:
    spec = asked(CLOSED)
    trials = plan_trials("demo", spec, seed=1)
    names = {(one.server, one.repetition): one.name for one in trials}
    results = [
        one.model_copy(update={"trial": names[one.server, one.repetition]}) for one in measured()
    ]
    over = summarise(spec, trials, results, {}, None, {})
    assert len(over.trial_lengths) == 1
    assert over.trial_lengths == trial_lengths(spec, results)
    assert summarise(spec, trials, results[:-1], {}, None, {}).trial_lengths == ()


def test_a_trial_is_as_long_as_its_answers_and_users_ask_for() -> None:
    slow = ResponseTimes(mean_seconds=1.0, p99_seconds=2.6, max_seconds=4.0)
    results = [
        one.model_copy(update={"figures": one.figures.model_copy(update={"latency": slow})})
        for one in measured()
        if one.figures
    ]
    assert [one.seconds for one in trial_lengths(asked(CLOSED), results)] == [11]
    thinking = {"closed": {"connections": 1000, "duration": "30s"}}
    (found,) = trial_lengths(asked(thinking), measured())
    assert found.seconds == 11


@pytest.mark.parametrize("repetitions", [1, 2])
def test_few_repetitions_advise_nothing(repetitions: int) -> None:
    spec = asked(CLOSED, repetitions=repetitions)
    assert trial_lengths(spec, measured(repetitions)) == ()


def of(place: int, results: list[TrialResult], **changed: Any) -> list[TrialResult]:
    """Return results of which one, or its figures, is changed."""
    one = results[place]
    if one.figures is not None and (known := changed.keys() & Figures.model_fields.keys()):
        figures = one.figures.model_copy(update={name: changed.pop(name) for name in known})
        changed["figures"] = figures
    return [*results[:place], one.model_copy(update=changed), *results[place + 1 :]]


def test_a_server_with_failed_trials_alone_is_none_whose_time_is_known() -> None:
    failed = [
        TrialResult(
            trial=f"f-{number}",
            ordinal=100 + number,
            server="e",
            load="closed",
            repetition=number,
            outcome=TrialOutcome.FAILED,
        )
        for number in range(1, 6)
    ]
    (found,) = trial_lengths(asked(CLOSED), [*measured(), *failed])
    assert found.time_share == pytest.approx(found.repetitions * 28 / (5 * 50))


def test_where_it_is_not_known_how_long_trials_took_nothing_is_advised() -> None:
    results = [one.model_copy(update={"load": "other"}) for one in measured()]
    results += [one.model_copy(update={"finished_at": None}) for one in measured()]
    assert trial_lengths(asked(CLOSED), results) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"validity": Validity.INVALID},
        {"requests_per_second": 0.0},
        {"repetition": 6},
        # It was asked for again, and is paired with none of the others.
        {"retry": 1},
    ],
)
def test_where_a_server_lacks_a_repetition_nothing_is_advised(changed: dict[str, Any]) -> None:
    assert len(trial_lengths(asked(CLOSED), measured())) == 1
    assert trial_lengths(asked(CLOSED), of(0, measured(), **changed)) == ()
    assert trial_lengths(asked(CLOSED), measured()[1:]) == ()
    assert trial_lengths(asked(CLOSED, repetitions=6), measured()) == ()


@pytest.mark.parametrize("share", [1e200, math.inf, math.nan, 1.01, -0.003])
def test_what_is_no_share_is_not_known(share: float) -> None:
    assert trial_lengths(asked(CLOSED), of(3, measured(), within_share=share)) == ()


def test_a_trial_keeps_the_answers_that_its_percentiles_need() -> None:
    def seconds(rate: float, answers: int) -> list[float]:
        results = measured()
        for place, one in enumerate(results):
            if one.figures is not None:
                now = one.figures.requests_per_second * rate / 1000
                results = of(place, results, requests_per_second=now, requests=answers)
        slowest = min(one.figures.requests_per_second for one in results if one.figures)
        found = [one.seconds for one in trial_lengths(asked(CLOSED), results)]
        needed = 1000 if answers >= 1000 else 100
        assert not found or found == [max(8, math.ceil(needed / slowest))]
        return found

    # p99.9 needs 1,000.
    assert seconds(100.0, 3000) == [11]
    assert seconds(35.0, 1050) == []
    # There was none; p99 needs 100.
    assert seconds(30.0, 900) == [8]
    assert seconds(10.0, 300) == [11]
    assert seconds(3.0, 90) == []


@pytest.mark.parametrize(("apart", "seconds"), [(None, [8]), (1.0, [8]), (2.2, [11]), (6.0, [])])
def test_a_trial_is_long_enough_for_the_readings_of_its_pods(
    apart: float | None, seconds: list[float]
) -> None:
    usage = TrialUsage(source=Source.AGENT, resolution_seconds=apart, complete=True)
    found = trial_lengths(asked(CLOSED), of(2, measured(), usage=usage))
    assert [one.seconds for one in found] == seconds


def test_results_of_earlier_versions_advise_nothing() -> None:
    stored = [one.to_wire() for one in measured()]
    for one in stored:
        del one["figures"]["withinShare"]
    results = [TrialResult.model_validate(one) for one in stored]
    assert trial_lengths(asked(CLOSED), results) == ()
    # Nor does a run that was begun by one.
    assert trial_lengths(asked(CLOSED), [*results[:1], *measured()[1:]]) == ()


@pytest.mark.parametrize("doubt", [doubts.WARMING_UP, doubts.SLOWING_DOWN])
def test_trials_that_were_not_steady_advise_nothing(doubt: doubts.Doubt) -> None:
    results = measured()
    results[3] = results[3].model_copy(
        update={"validity_reasons": [doubt.says(seconds=7, by=0.12)]}
    )
    assert trial_lengths(asked(CLOSED), results) == ()


@pytest.mark.parametrize(
    "load",
    [
        {"open": {"rate": 50, "duration": "30s"}},
        {"closed": {"connections": 4, "requests": 30_000}},
        {"saturation": {"p99": "50ms"}},
    ],
)
def test_only_closed_loads_with_a_duration_are_advised(load: dict[str, Any]) -> None:
    assert trial_lengths(asked(load), measured()) == ()


def test_who_asks_for_response_times_or_lets_the_results_decide_is_not_advised() -> None:
    objective = {"server": "a", "load": "closed", "metric": "p99", "atMost": "5ms"}
    assert trial_lengths(asked(CLOSED, objectives=[objective]), measured()) == ()
    assert trial_lengths(asked(CLOSED, stopWhen="decided"), measured()) == ()
    results = [one for one in measured() if one.server in "ab"]
    pair = make_spec("a", "b", pairing="duet").model_copy(update={"loads": asked(CLOSED).loads})
    assert trial_lengths(pair, results) == ()


def test_it_is_said_in_one_sentence() -> None:
    found = TrialLength(
        load="closed",
        seconds=10,
        repetitions=5,
        instead_of_seconds=30,
        instead_of_repetitions=5,
        time_share=0.4512,
    )
    said = (
        "trials of 10s instead of 30s would find the same differences in throughput in about 0.45 "
        "of this load's time"
    )
    assert wording.trial_length(found) == said
    more = found.model_copy(update={"repetitions": 6})
    assert wording.trial_length(more) == f"{said}, in 6 repetitions instead of 5"
