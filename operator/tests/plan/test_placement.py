"""A trial belongs where the first measured one was, and need not after it was lost."""

from __future__ import annotations

from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.plan import Places, places_of


def result(ordinal: int, measured: bool = True, **nodes: list[str]) -> TrialResult:
    figures = Figures(requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0)
    return TrialResult(
        trial=f"t{ordinal}",
        ordinal=ordinal,
        server="a",
        load="closed",
        repetition=1,
        outcome=TrialOutcome.MEASURED if measured else TrialOutcome.FAILED,
        figures=figures if measured else None,
        nodes=nodes,
    )


def test_the_first_trial_may_go_anywhere() -> None:
    assert places_of([], lost=0, deployed={"a"}) == Places()
    assert places_of([result(1, measured=False, server=["n1"])], lost=0, deployed={"a"}) == Places()
    assert places_of([result(1)], lost=0, deployed={"a"}) == Places()


def test_later_ones_go_where_the_first_measured_one_was() -> None:
    results = [result(3, server=["n3"]), result(2, server=["n2"], generator=["n1", "n4"])]
    assert places_of(results, lost=0, deployed={"a"}) == Places(
        {"server": ("n2",), "generator": ("n1", "n4")}
    )


def test_one_that_was_lost_may_go_elsewhere() -> None:
    assert places_of([result(1, server=["n1"])], lost=1, deployed={"a"}) == Places(
        {"server": ("n1",)}, firm=False
    )


def test_servers_of_a_run_do_not_follow_the_pods_of_a_service() -> None:
    service = result(1, server=["n1"], generator=["n2"]).model_copy(update={"server": "there"})
    assert places_of([service], lost=0, deployed={"a"}) == Places({"generator": ("n2",)})
    both = [service, result(2, server=["n3"], generator=["n2"])]
    expected = Places({"server": ("n3",), "generator": ("n2",)})
    assert places_of(both, lost=0, deployed={"a"}) == expected
