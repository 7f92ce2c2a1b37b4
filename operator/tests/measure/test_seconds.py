"""What ended in each second of a phase."""

from __future__ import annotations

from typing import Any

from laptime.measure import (
    GeneratorResult,
    measured_phase,
    parse_generator_output,
    right_answers_by_second,
)
from tests.measure.samples import document, line, phase


def by_second(content: dict[str, Any]) -> dict[int, int]:
    parsed = parse_generator_output(line(content))
    assert isinstance(parsed, GeneratorResult), parsed
    found = measured_phase(parsed)
    assert found is not None
    return right_answers_by_second(found)


def rows(*counts: tuple[int, int]) -> list[dict[str, int]]:
    return [
        {"t": t, "requests": requests, "errors": errors, "p50Us": 900, "p99Us": 999, "maxUs": 1000}
        for t, (requests, errors) in enumerate(counts)
    ]


def test_errors_are_no_right_answers_and_a_part_of_a_second_is_none() -> None:
    seconds = rows((10, 0), (12, 2), (4, 0))
    assert by_second(document(phase([1000], window=2.5, seconds=seconds))) == {0: 10, 1: 10}


def test_a_whole_number_of_seconds_is_kept_whole() -> None:
    assert by_second(document(phase([1000], window=2.0, seconds=rows((3, 0), (5, 0))))) == {
        0: 3,
        1: 5,
    }


def test_scenarios_of_a_script_are_put_on_one_clock() -> None:
    late = phase([1000], window=2.0, seconds=rows((7, 0), (1, 1)))
    late |= {"firstRequestAt": 1_700_000_003.0, "lastResponseAt": 1_700_000_005.0}
    content = document(phase([1000], window=2.0, seconds=rows((3, 0), (5, 0))))
    content["phases"]["second"] = late
    assert by_second(content) == {0: 3, 1: 5, 3: 7, 4: 0}
