"""How well a trial knows its throughput, by its own seconds."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from laptime.api.loads import Load
from laptime.measure import GeneratorResult, merge_results, parse_generator_output, trial_result
from laptime.measure.batches import error_share
from tests.measure.samples import TRIAL, document, line, phase

NOISE = 0.05
"""Standard deviation of a second, as a share."""


def seconds(chance: random.Random, length: int, alike: float) -> list[int]:
    """Return counts of seconds, each like the one before with such a correlation."""

    def noise() -> Iterator[float]:
        now = chance.gauss(0, 1)
        for _ in range(length):
            yield now
            now = alike * now + math.sqrt(1 - alike**2) * chance.gauss(0, 1)

    return [round(100_000 * (1 + NOISE * one)) for one in noise()]


def known(length: int, alike: float) -> float:
    """Return the variance of a trial by its own seconds, over many, beside the true one."""
    chance = random.Random(f"{length} {alike}")
    shares = [error_share(seconds(chance, length, alike)) for _ in range(500)]
    variance = sum(one**2 for one in shares if one is not None) / len(shares)
    apart = sum((length - lag) * alike**lag for lag in range(1, length))
    return variance / (NOISE**2 * (length + 2 * apart) / length**2)


@pytest.mark.parametrize("length", [8, 15, 16, 31, 60, 120])
def test_the_variance_of_seconds_that_are_apart_is_right(length: int) -> None:
    assert 0.9 <= known(length, 0.0) <= 1.25


@pytest.mark.parametrize(("length", "alike", "least"), [(30, 0.5, 0.6), (120, 0.8, 0.6)])
def test_seconds_that_are_alike_count_for_less(length: int, alike: float, least: float) -> None:
    """What single seconds would say is a third and a ninth of it."""
    assert least <= known(length, alike) <= 1.2


def test_a_trend_is_no_noise() -> None:
    level = seconds(random.Random(1), 40, 0.0)
    rising = [count + 300 * t for t, count in enumerate(level)]
    of_level, of_rising = error_share(level), error_share(rising)
    assert of_level is not None
    assert of_rising is not None
    assert of_rising * sum(rising) == pytest.approx(of_level * sum(level), rel=1e-6)


def test_of_few_seconds_and_of_no_answers_nothing_is_known() -> None:
    assert error_share([100, 101, 99, 100, 100, 102, 98]) is None
    assert error_share([0] * 20) is None
    assert error_share([7] * 20) == 0


def parsed(measured: dict[str, Any], **more: Any) -> GeneratorResult:
    found = parse_generator_output(line({**document(measured), **more}))
    assert isinstance(found, GeneratorResult), found
    return found


COUNTS = seconds(random.Random(2), 10, 0.0)
CLOSED = Load.model_validate({"name": "l", "closed": {"connections": 2, "duration": "10s"}})
OPEN = Load.model_validate({"name": "l", "open": {"rate": 50, "duration": "10s"}})


def rows(counts: list[int]) -> list[dict[str, int]]:
    return [{"t": t, "requests": count, "errors": 0} for t, count in enumerate(counts) if count]


def within(result: GeneratorResult, load: Load | None) -> float | None:
    figures = trial_result(TRIAL, result, load).figures
    assert figures is not None
    return figures.within_share


def test_a_trial_of_a_closed_load_says_how_well_it_knows_its_throughput() -> None:
    result = parsed(phase([1000], window=10.0, seconds=rows(COUNTS)))
    assert within(result, CLOSED) == pytest.approx(error_share(COUNTS), rel=1e-5)
    # The rate of others is not the server's.
    assert within(result, OPEN) is None
    assert within(result, None) is None


def test_a_second_without_an_answer_is_one_of_them() -> None:
    still = [*COUNTS[:5], 0, *COUNTS[6:]]
    result = parsed(phase([1000], window=10.0, seconds=rows(still)))
    assert within(result, CLOSED) == pytest.approx(error_share(still), rel=1e-5)


@pytest.mark.parametrize("window", [7.9, 1e9])
def test_of_too_short_and_impossible_phases_it_is_not_known(window: float) -> None:
    assert within(parsed(phase([1000], window=window, seconds=rows(COUNTS))), CLOSED) is None


def test_it_is_that_of_all_generators_together() -> None:
    halves = [[count // 2 for count in COUNTS], [count - count // 2 for count in COUNTS]]
    results = [
        parsed(phase([1000], window=10.0, seconds=rows(half)), segment={"index": index, "count": 2})
        for index, half in enumerate(halves)
    ]
    merged = merge_results(results)
    assert isinstance(merged, GeneratorResult), merged
    assert within(merged, CLOSED) == pytest.approx(error_share(COUNTS), rel=1e-5)
