"""Which repetitions a later run lacks, and by whose doing."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pytest

from laptime.analysis import summarise
from laptime.analysis.cut_short import not_all_made
from laptime.api.attempts import Fault
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import Trial
from tests.analysis.runs import Outcome, make_spec, run, steady, summary_of

ONE = make_spec("axum", "sync")
DECIDED = make_spec("axum", "sync", stopWhen="decided", maxRepetitions=20)


def not_made(
    spec: BenchmarkRunSpec,
    end: str | None,
    planned: Any = 5,
    *,
    never: Container[tuple[str, int]] = (),
    lost: Container[tuple[str, int]] = (),
    crashed: Container[tuple[str, int]] = (),
    alike: bool = False,
) -> dict[str, str]:
    """Return what is said by server of a run with a plan so long, or so long by load.

    It comes after one of 10 repetitions, or with `alike` after one that went as it did.
    """
    rates = steady({"axum": 1000.0, "sync": 500.0})

    def script(trial: Trial) -> Outcome | None:
        of = trial.server, trial.repetition
        if of in lost:
            return Outcome(0.0, failure=("NodeLost", "it is gone"), fault=Fault.NODE)
        if of in crashed:
            return Outcome(0.0, failure=("ServerCrashed", "exit code 1"))
        return None if of in never else rates(trial)

    wire = spec.to_wire() | {"stopWhen": None, "maxRepetitions": None}
    before, after = (
        BenchmarkRunSpec.model_validate(wire | {"repetitions": repetitions})
        for repetitions in (10, planned)
    )
    trials, results, payloads = run(after, script)
    rows = summarise(after, trials, results, payloads, None, {}).rows
    earlier = results if alike else run(before, rates)[1]
    said = not_all_made(earlier, results, rows, spec, end)
    return {server: words for (server, _), words in said.items()}


def beyond(repetition: int) -> set[tuple[str, int]]:
    return {(server, number) for server in ("axum", "sync") for number in range(repetition + 1, 21)}


ENDS = ("TurnOver", "Cancelled", None)
"""How runs end that are cut short; None: nobody knows."""
WHOLE = ("Completed", "ServersFailed", "AllServersFailed")


@pytest.mark.parametrize("end", ENDS)
def test_repetitions_that_a_run_never_made_are_told_from_those_that_it_lost(
    end: str | None,
) -> None:
    assert not_made(ONE, end) == {}
    said = {
        server: f"{server} under closed: the later run ended after 2 of its repetitions, the "
        "earlier one made 10"
        for server in ("axum", "sync")
    }
    assert not_made(ONE, end, never=beyond(2)) == said
    assert not_made(ONE, end, never=beyond(2), lost={("axum", 1)}) == said
    assert not_made(ONE, end, lost={("axum", 1)}) == {}
    # All is there of the one that came first.
    assert not_made(ONE, end, never={("sync", 5)}).keys() == {"sync"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("planned", [5, 6])
def test_no_server_is_done_with_a_repetition_that_another_one_never_made(
    end: str | None, planned: int
) -> None:
    found = not_made(DECIDED, end, planned, never={("sync", planned)})
    ends = f"the later run ended after {planned} of its repetitions, the earlier one made 10"
    assert found["axum"] == f"axum under closed: {ends}"
    assert found.keys() == {"axum", "sync"}
    assert not_made(DECIDED, end, planned) == {}
    # After the last one that there may be none is waited for.
    assert not_made(DECIDED, end, 20, never={("sync", 20)}).keys() == {"sync"}


@pytest.mark.parametrize("end", ["TurnOver", "Cancelled", "PlacementChanged"])
@pytest.mark.parametrize("lost", [{("axum", 1)}, {("axum", 1), ("sync", 2)}])
def test_what_was_lost_before_does_not_hide_that_a_run_was_cut_short(
    end: str, lost: set[tuple[str, int]]
) -> None:
    assert not_made(DECIDED, end, 6, never=beyond(5), lost=lost).keys() == {"axum", "sync"}
    for whole in (*WHOLE, None):
        assert not_made(DECIDED, whole, 6, lost=lost) == {}
    assert not_made(DECIDED, end, 20, lost=lost) == {}


@pytest.mark.parametrize("end", [*WHOLE, *ENDS])
def test_a_run_does_not_end_with_a_server_that_it_gave_up(end: str | None) -> None:
    never = {("axum", number) for number in (4, 5, 6)}
    given_up = {("axum", 2), ("axum", 3)}
    for spec in (ONE, DECIDED):
        planned = 5 if spec is ONE else 6
        assert not_made(spec, end, planned, never=never, crashed=given_up) == {
            "axum": "axum under closed: 3 of its repetitions were made in the later run, 10 in the "
            "earlier one: ServerCrashed"
        }
        # It never ran in either.
        same = not_made(spec, "Completed", planned, never=never, crashed=given_up, alike=True)
        assert same == {}
    # By no fault of its own, at a time from which on the other one alone is measured.
    lost = {("axum", 7), ("axum", 8)}
    found = not_made(DECIDED, end, 12, never={("axum", n) for n in range(9, 13)}, lost=lost)
    assert found.keys() == {"axum"}
    assert "8 of its repetitions were made in the later run" in found["axum"]
    assert not_made(ONE, end, lost={("axum", 4), ("axum", 5)}) == {}


def test_nor_does_it_with_the_partner_of_a_duet_that_is_not_measured_alone() -> None:
    found = not_made(ONE, "Completed", never=beyond(3), crashed={("axum", 2), ("axum", 3)})
    made = "3 of its repetitions were made in the later run, 10 in the earlier one"
    assert found == {
        "axum": f"axum under closed: {made}: ServerCrashed",
        "sync": f"sync under closed: {made}",
    }


@pytest.mark.parametrize("end", ENDS)
def test_a_load_that_was_decided_is_whole_whatever_ends_another_one(end: str | None) -> None:
    spec = make_spec("axum", "sync", loads=("calm", "loud"), stopWhen="decided", maxRepetitions=20)
    rates = steady({"axum": 1000.0, "sync": 500.0})

    def loads(calm: int, loud: int, never: Container[tuple[str, int]]) -> set[str]:
        longest = spec.model_copy(
            update={"stop_when": None, "max_repetitions": None, "repetitions": max(calm, loud)}
        )
        most = {"calm": calm, "loud": loud}
        planned, results, payloads = run(longest, rates)
        there = tuple(one for one in planned if one.repetition <= most[one.load])
        known = [
            one
            for one in results
            if one.repetition <= most[one.load]
            if one.load == "calm" or (one.server, one.repetition) not in never
        ]
        rows = summarise(spec, there, known, payloads, None, {}).rows
        return {load for _, load in not_all_made(results, known, rows, spec, end)}

    assert loads(5, 8, ()) == set()
    assert loads(5, 8, {("sync", 8)}) == {"loud"}
    assert loads(5, 6, beyond(5)) == {"loud"}
    # Nobody had looked yet at the repetition of which a trial is missing.
    assert loads(8, 8, {("sync", 8)}) == {"calm", "loud"}


def test_only_what_both_runs_make_or_ask_for_is_said_to_lack_repetitions() -> None:
    fewer = make_spec("axum", "sync", repetitions=3)
    assert not_made(fewer, "Completed", 3) == not_made(fewer, "TurnOver", 3) == {}
    every = run(ONE, steady({"axum": 1000.0, "sync": 500.0}))[1]
    rows = summary_of(ONE, lambda one: Outcome(1.0) if one.repetition < 3 else None).rows
    later = [one for one in every if one.repetition < 3]
    sync = [one for one in every if one.server == "sync"]
    assert not_all_made(sync, later, rows, ONE, "TurnOver").keys() == {("sync", "closed")}
    # As early as that the run before may have ended: nobody knows what would have become of it.
    assert len(not_all_made(later, later, rows, ONE, "TurnOver")) == 2
