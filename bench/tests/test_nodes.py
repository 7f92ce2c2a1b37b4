"""What `make bench-nodes` counts, and what makes it fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nodes.run import PLAN, SERVERS, Entry, entry_of, left, table, wrong

SAID = "server two ran on slow, and on fast in trial t1: what differs may be the nodes"


def results(places: list[str], rank: int = 1, said: str = SAID) -> dict[str, Any]:
    """Return the results of a run: where each trial's server was, two trials a repetition."""
    return {
        "rows": [
            {"server": name, "rank": rank if name == "two" else 1, "factor": factor}
            for name, factor in zip(SERVERS, ({"mean": 1}, {"low": 0.9, "high": 1.2}), strict=True)
        ],
        "trials": [
            {
                "ordinal": number + 1,
                "server": SERVERS[number % 2],
                "repetition": number // 2 + 1,
                "nodes": {"server": [node]},
                "figures": {"requestsPerSecond": 50.0 if node == "slow" else 100.0},
                "validityReasons": [said] if node == "slow" else [],
            }
            for number, node in enumerate(places)
        ],
    }


def entry(nodes: str, places: list[str], rank: int = 1, said: str = SAID) -> Entry:
    return entry_of(results(places, rank, said), nodes, "c", 0.0, 60.0)


GOOD = ["fast", "fast", "slow", "slow"] * 2
LUCK = ["fast", "slow", "slow", "fast"] * 2


def test_a_trial_that_was_elsewhere_has_to_name_both_nodes() -> None:
    by_luck = entry("any", ["fast", "slow", "slow", "fast"])
    assert (by_luck.doubted, by_luck.missed, wrong(by_luck)) == (2, 0, None)
    assert by_luck.factor == [0.9, 1.2]
    silent = entry("any", ["fast", "slow"], said="server two was restarted")
    assert (silent.doubted, silent.missed) == (0, 1)
    assert "1 trials were elsewhere and do not say so" in (wrong(silent) or "")


def test_rotating_has_to_give_each_node_as_many_repetitions_and_doubt_none() -> None:
    assert wrong(entry("rotate", GOOD, said="")) is None
    assert "doubtful for their nodes" in (wrong(entry("rotate", GOOD)) or "")
    mixed = entry("rotate", ["fast", "slow", "slow", "fast"], said="")
    assert "more than one node" in (wrong(mixed) or "")
    stayed = entry("rotate", ["fast"] * 4, said="")
    assert "as many repetitions" in (wrong(stayed) or "")


def test_a_second_run_that_tells_like_servers_apart_is_a_miss() -> None:
    good, bad = entry("rotate", GOOD, said=""), entry("rotate", GOOD, rank=2, said="")
    by_luck = replace(entry("any", LUCK), factor=[0.5, 2.0])
    assert table([good] * 19 + [bad, by_luck])[1]
    found, met = table([good] * 18 + [bad] * 2 + [by_luck])
    assert met is False
    assert "told apart in 2 of 20" in found[0]


def test_by_luck_they_may_be_told_apart_as_long_as_the_interval_is_wide() -> None:
    rotated, by_luck = entry("rotate", GOOD, said=""), entry("any", LUCK, rank=2)
    assert not table([rotated, by_luck])[1]
    found, met = table([rotated, replace(by_luck, factor=[0.5, 2.0])])
    assert met
    assert any("times as wide" in line and line.endswith("met") for line in found)


def test_without_both_widths_nothing_is_good() -> None:
    found, met = table([entry("rotate", GOOD, said="")] * 20)
    assert met is False
    assert any("no width of both" in line for line in found)


def test_a_run_that_lacks_something_is_shown_and_not_counted() -> None:
    full = results(GOOD, said="")
    whole = entry_of(full, "rotate", "c", 0.0, 60.0)
    assert whole.whole
    unranked = {**full, "rows": [{**row, "rank": None} for row in full["rows"]]}
    without_factor = {**full, "rows": [{**row, "factor": None} for row in full["rows"]]}
    alone = {
        "rows": full["rows"][:1],
        "trials": [one for one in full["trials"] if one["server"] == "one"],
    }
    broken = [
        *(entry_of(one, "rotate", "c", 0.0, 60.0) for one in (unranked, without_factor, alone)),
        entry("rotate", GOOD[:6], said=""),
        entry_of(full, "rotate", "c", 0.0, 60.0, "Failed"),
    ]
    assert not any(one.whole for one in broken)
    found, _ = table([whole, *broken])
    assert sum(line.startswith("not counted: rotate, ") for line in found) == len(broken)
    assert any("told apart in 0 of 1 runs" in line for line in found)
    assert table(broken * 5)[1] is None
    assert left([*broken, whole]) == ["rotate"] * 3 + ["any", *PLAN[5:]]
    assert left([whole] * 20) == ["any"] * 5


def test_where_no_node_is_slow_nothing_is_judged() -> None:
    alike = replace(
        entry("rotate", GOOD, said=""), throughput={"fast": [100.0] * 4, "slow": [97.0] * 4}
    )
    found, met = table([alike] * 20)
    assert met is None
    assert any("slow enough" in line for line in found)


def test_a_run_of_which_the_hypervisor_took_much_is_shown_and_not_counted() -> None:
    whole = entry_of(results(GOOD, said=""), "rotate", "c", 0.0, 60.0)
    robbed = replace(whole, stolen=0.06, apart=True)
    found, _ = table([whole, robbed])
    assert found[0].startswith("not counted: rotate, ")
    assert found[0].endswith("ranked; stolen 6.0% (at most 5%)")
    assert found[1].startswith("rotate   told apart in 0 of 1 runs")
    assert left([robbed]) == list(PLAN)
