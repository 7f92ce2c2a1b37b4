"""What `make bench-alike` counts, and what makes it fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alike.kinds import FIGURES, KINDS, NAMES, manifest
from alike.run import Entry, entry_of, least_that_misses, table, told_apart

from laptime.api.spec import BenchmarkRunSpec

SERVERS = NAMES[: KINDS["four"].servers]


def results(
    ranks: dict[str, int], p99_rank: int = 1, failed: str = "", repetitions: int = 2
) -> dict[str, Any]:
    """Return the results of a run, as much of them as is read."""
    return {
        "rows": [
            {
                "server": name,
                "rank": ranks.get(name, 1),
                "latencyFigures": {"p99": {"rank": p99_rank if name == "two" else 1}},
            }
            for name in SERVERS
        ],
        "trials": [
            {
                "server": name,
                "repetition": repetition,
                "figures": None
                if name == failed
                else {"requestsPerSecond": 100.0 * repetition, "latency": {"p99Seconds": 0.01}},
                "usage": {
                    "nodes": [
                        {"stolenShare": 0.01, "busyShare": 0.5, "othersCores": 0.1, "cpus": 2}
                    ]
                },
            }
            for repetition in range(repetitions, 0, -1)
            for name in SERVERS
        ],
    }


def test_seven_of_sixty_and_ten_of_a_hundred_are_a_miss() -> None:
    assert (least_that_misses(60), least_that_misses(100)) == (7, 10)


def test_a_second_rank_counts_by_its_figure() -> None:
    alike = entry_of(results({}), "c", 0.0, 1.0)
    assert alike.apart == []
    assert alike.throughput["one"] == [100.0, 200.0]
    assert (alike.stolen, alike.busy, alike.lost) == (0.01, 0.5, 0)
    assert alike.outside["stolenShare"]["one"] == [0.01, 0.01]
    assert alike.outside["probeSeconds"]["one"] == [None, None]
    assert entry_of(results({"four": 2}), "c", 0.0, 1.0).apart == ["throughput"]
    assert entry_of(results({"four": 2}, p99_rank=4), "c", 0.0, 1.0).apart == list(FIGURES)


def test_a_trial_without_a_figure_is_counted_as_lost() -> None:
    entry = entry_of(results({}, failed="two"), "c", 0.0, 1.0)
    assert entry.lost == 2
    assert "two" not in entry.throughput
    assert not entry.whole


def test_a_run_that_lacks_something_is_shown_and_not_counted() -> None:
    full = results({}, repetitions=4)
    whole = entry_of(full, "c", 0.0, 1.0)
    assert whole.whole
    # Three of four were refused: they have no trials, so that none was lost.
    alone = [one for one in full["trials"] if one["server"] == "one"]
    refused = entry_of({**full, "trials": alone}, "c", 0.0, 1.0)
    assert refused.lost == 0
    short = entry_of(results({}, repetitions=3), "c", 0.0, 1.0)
    cancelled = entry_of(full, "c", 0.0, 1.0, state="Cancelled")
    broken = [refused, short, cancelled]
    assert not any(one.whole for one in broken)
    lines, _ = table([whole, *broken], "c")
    assert lines[0] == "not counted: Succeeded; 4 trials have figures, 0 none"
    assert sum(line.startswith("not counted: ") for line in lines) == 3
    assert any("told apart in 0 of 1 runs" in line for line in lines)
    lines, met = table(broken * 34, "c")
    assert not met
    assert lines[-1] == "no run can be judged"


def made(apart: bool, kind: str = "four") -> Entry:
    """Return a run whose figures tell its last server apart, or none."""
    wobble = (1.0, 1.02, 0.99, 1.01)
    expected = KINDS[kind]
    rates = {
        name: [
            100.0 * (2 if apart and place == 3 else 1) * wobble[(place + n) % 4]
            for n in range(expected.repetitions)
        ]
        for place, name in enumerate(NAMES[: expected.servers])
    }
    times = {name: [1 / one for one in of] for name, of in rates.items()}
    of_run = entry_of(results({}), "c", 0.0, 90.0, kind)
    return replace(of_run, throughput=rates, p99=times)


def test_too_many_false_runs_are_a_miss() -> None:
    good, bad = [made(False)] * 54, [made(True)]
    assert table(good + bad * 6, "c")[1]
    lines, met = table([*good, *bad * 7], "c")
    assert not met
    assert lines[0].startswith("throughput   told apart in 7 of 61 runs: 11.5% (4.7% to 22.2%)")
    assert lines[0].endswith("MISSED")


def test_the_rule_of_today_judges_and_what_a_run_said_is_told_beside_it() -> None:
    apart = made(True)
    assert told_apart(apart) == list(FIGURES)
    assert any("1 runs said otherwise" in line for line in table([apart, made(False)], "c")[0])


def test_open_loads_are_told_apart_by_response_times_alone() -> None:
    entry = entry_of(results({"four": 2}, p99_rank=2), "c", 0.0, 1.0, "two-open")
    assert (entry.kind, entry.apart) == ("two-open", ["p99"])
    assert [line.split()[0] for line in table([made(False, "two-open")], "c")[0]] == [
        *("p99", "noise", "1", "machine"),
    ]


def test_runs_of_all_commits_are_judged_together_and_are_told_by_commit() -> None:
    lines, _ = table([made(False), made(True), replace(made(False), commit="other")], "c")
    assert lines[0].startswith("throughput   told apart in 1 of 3 runs")
    assert any(line.strip() == "2 on c, 1 on other" for line in lines)
    assert any("1 of 2 on the present commit, fewer than 2" in line for line in lines)


def test_a_commit_that_tells_like_servers_apart_misses_whatever_others_did() -> None:
    others = [replace(made(False), commit="other")] * 80
    assert table([*others, *[made(True)] * 2, *[made(False)] * 10], "c")[1]
    lines, met = table([*others, *[made(True)] * 3, *[made(False)] * 10], "c")
    assert not met
    assert any("3 of 13 on the present commit, fewer than 3: MISSED" in line for line in lines)


def test_each_kind_is_a_run_that_the_operator_takes() -> None:
    for kind in KINDS.values():
        spec = BenchmarkRunSpec.model_validate(manifest("alike", "1", kind)["spec"])
        assert len(spec.servers) == kind.servers


def test_a_run_beside_which_others_used_the_machine_is_shown_and_not_counted() -> None:
    noisy = replace(made(True), others=0.3, apart=["throughput"])
    lines, met = table([made(False), noisy, replace(made(True), stolen=0.06)], "c")
    assert met
    assert lines[:2] == [
        "not counted: Succeeded; 16 trials have figures, 0 none; others 30.0% (at most 20%), "
        "told apart: throughput",
        "not counted: Succeeded; 16 trials have figures, 0 none; stolen 6.0% (at most 5%), "
        "told apart: none",
    ]
    # Unless that is what it is about.
    assert replace(noisy, kind="disturbed").whole
