"""What was computed of trials is kept while a run goes on, and no longer."""

from __future__ import annotations

from laptime.analysis.remembered import forget, remembered


def test_what_was_computed_is_kept_until_it_is_forgotten() -> None:
    asked: list[int] = []

    @remembered(2)
    def twice(number: int) -> int:
        asked.append(number)
        return 2 * number

    assert [twice(1), twice(1), twice(2)] == [2, 2, 4]
    assert asked == [1, 2]
    forget()
    assert twice(1) == 2
    assert asked == [1, 2, 1]


def test_no_more_is_kept_than_was_said() -> None:
    asked: list[int] = []

    @remembered(1)
    def same(number: int) -> int:
        asked.append(number)
        return number

    for number in (1, 2, 1):
        same(number)
    assert asked == [1, 2, 1]
