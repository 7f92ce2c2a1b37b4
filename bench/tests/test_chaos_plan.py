"""Which faults make chaos injects, and what became of them so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from chaos.acts import ACTS
from chaos.plan import (
    CRASH_POINTS,
    KINDS,
    LEAST_FAULTS,
    LEAST_KINDS,
    OF_EACH_KIND,
    Fault,
    fault,
    plan,
)
from chaos.record import Entry, Record, standing, table

SEED = "0123456789ab"


def entry(of: Fault, bit: str = "it bit", problems: list[str] | None = None) -> Entry:
    return Entry(
        SEED, of.kind.name, of.number, 1.0, 7, "Running a-trial-001", bit, 2.0, 40.0, problems or []
    )


def test_there_are_as_many_kinds_and_faults_as_promised() -> None:
    faults = plan(SEED)
    counts = Counter(one.kind.name for one in faults)
    assert len(counts) == len(KINDS) >= LEAST_KINDS
    assert dict(counts) == {kind.name: kind.count for kind in KINDS}
    assert min(counts.values()) == OF_EACH_KIND >= 8
    assert counts["killed-before-write"] + counts["killed-after-write"] == 2 * CRASH_POINTS >= 60
    assert len(faults) >= LEAST_FAULTS
    assert len({one.name for one in faults}) == len(faults)


def test_each_kind_has_an_act() -> None:
    assert set(ACTS) == {kind.name for kind in KINDS}


def test_a_name_has_room_for_what_a_trial_adds() -> None:
    longest = "-trial-001-attempt-3-abcde"
    assert all(len(one.name + longest) <= 63 for one in plan(SEED))


def test_the_plan_is_of_the_commit() -> None:
    assert plan(SEED) == plan(SEED)
    assert plan(SEED) != plan("another")


def test_whoever_stops_early_has_seen_all_kinds() -> None:
    first = plan(SEED)[: len(plan(SEED)) // OF_EACH_KIND]
    assert {one.kind for one in first} == set(KINDS)


def test_the_moments_of_a_kind_are_spread_over_the_whole_run() -> None:
    writes = 800
    for kind in KINDS:
        mine = sorted(one.write(writes) for one in plan(SEED) if one.kind is kind)
        part = writes * kind.until / kind.count
        for number, write in enumerate(mine):
            assert number * part <= write <= (number + 1) * part + 1
    assert all(one.write(1) == 1 for one in plan(SEED))


def test_a_fault_that_did_not_bite_has_another_moment() -> None:
    one = KINDS[0]
    assert fault(SEED, one, 0) in plan(SEED)
    assert fault(SEED, one, 0, tried=1) != fault(SEED, one, 0)


def test_a_fault_that_is_tried_again_comes_before_the_end() -> None:
    for kind in KINDS:
        again = [fault(SEED, kind, 0, tried=tried) for tried in range(1, 100)]
        assert max(one.share for one in again) < 0.8 * kind.until


def test_what_is_drawn_is_within_bounds() -> None:
    for one in plan(SEED):
        assert 3 <= one.between(3, 10) <= 10
        assert one.count(1, 5) in range(1, 6)


def test_the_record_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "journal.jsonl"
    faults = plan(SEED)
    Record(file).add(entry(faults[0]))
    with file.open("a") as text:
        text.write('{"commit": "0123')  # the process was killed in the middle of it
    assert Record(file).entries(SEED) == [entry(faults[0])]
    assert Record(file).entries("another commit") == []
    found = standing(faults, Record(file).entries(SEED))
    assert sum(one.done for one in found.values()) == 1


def test_the_record_forgets_other_commits(tmp_path: Path) -> None:
    record = Record(tmp_path / "journal.jsonl")
    one, two = plan(SEED)[:2]
    record.keep_only(SEED)
    assert not record.file.exists()
    for old in (replace(entry(one), commit="of yesterday"), entry(one), entry(two)):
        record.add(old)
    record.keep_only(SEED)
    assert record.entries(SEED) == [entry(one), entry(two)]
    assert record.entries("of yesterday") == []
    assert [file.name for file in tmp_path.iterdir()] == ["journal.jsonl"]


def test_a_failure_stays_one_whatever_comes_afterwards() -> None:
    faults = plan(SEED)
    found = standing(faults, [entry(faults[0], problems=["stuck"]), entry(faults[0])])
    assert found[faults[0].kind.name, faults[0].number].failed


def test_a_fault_that_never_bites_has_failed() -> None:
    faults = plan(SEED)
    key = (faults[0].kind.name, faults[0].number)
    once = standing(faults, [entry(faults[0], bit="")])[key]
    assert not once.done
    assert not once.failed
    never = standing(faults, [entry(faults[0], bit="")] * 3)[key]
    assert never.done
    assert never.failed
    assert not never.bit
    at_last = standing(faults, [entry(faults[0], bit=""), entry(faults[0])])[key]
    assert at_last.done
    assert at_last.bit
    assert not at_last.failed


def test_the_table_counts_and_says_what_failed() -> None:
    faults = [one for one in plan(SEED) if one.kind.count == OF_EACH_KIND]
    lines = table(standing(faults, [entry(faults[0], problems=["stuck in Finishing"])]))
    (row,) = [line for line in lines if line.startswith(faults[0].kind.name)]
    assert row.split()[1:] == ["8", "1", "1", "1", "2.0", "s", "2.0", "s"]
    assert lines[len(KINDS) + 1].split()[:5] == ["all", str(len(faults)), "1", "1", "1"]
    assert lines[-1] == (
        f"FAILED: {faults[0].name}, write 7, Running a-trial-001: stuck in Finishing"
    )
