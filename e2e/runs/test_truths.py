"""What is compared with panels finds what they say wrongly, tried with made-up answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from laptime.measure.generator import GeneratorPhase, GeneratorSecond

from .test_dashboards import SHOWN
from .truths import grafana
from .truths.facts import Facts
from .truths.grafana import Answers, Series
from .truths.panels import PANELS

AT = 1_000_020.0
ROW = {
    **{"server": "axum", "load": "closed", "state": "Measured", "trials": 1, "validity": "valid"},
    "requestsPerSecond": {"value": 100.0, "low": 90.0, "high": 900.0},
    "latencyFigures": {"p99": {"seconds": {"value": 0.002, "low": 0.001, "high": 0.003}}},
}
RUN = {
    "metadata": {"name": "r", "namespace": "n", "creationTimestamp": "1970-01-12T13:46:40Z"},
    "spec": {
        **{"scenario": "users", "topology": {"postgres": {}}},
        "servers": [{"name": "axum", "resources": {"cpu": "500m"}}],
        "loads": [{"name": "closed", "closed": {"connections": 4}}],
    },
    "status": {
        **{"state": "Succeeded", "startedAt": "1970-01-12T13:46:40Z", "verdict": "axum"},
        **{"finishedAt": "1970-01-12T13:47:00Z", "results": [ROW]},
        "conditions": [{"type": "TiersReady", "status": "True"}],
    },
}
TRIAL = {"trial": "r-trial-001", "server": "axum", "load": "closed", "repetition": 1}
SECONDS = [GeneratorSecond(t=t, requests=10 + t) for t in range(3)]
PHASE = GeneratorPhase(started_at=1_000_010.25, window_seconds=2.5, seconds=SECONDS)
FACTS = Facts(
    run=RUN,
    trials=[{**TRIAL, "outcome": "Measured"}],
    readings=[],
    judged={},
    phases={"r-trial-001": PHASE},
    begin=1_000_000.0,
    at=AT,
    increase=lambda _: 8.0,
    nodes={"node": {"cpu": "2", "memory": "1Gi"}},
    states=Counter({"Succeeded": 1}),
)
LABELS = {"server": "axum", "load": "closed"}


def said(**by_letter: Mapping[Any, Any]) -> Answers:
    """Return answers: values, or samples, by the labels of each, as `key=value`."""
    return {
        letter: [
            Series(
                {**LABELS, **dict(one.split("=", 1) for one in labels)},
                value if isinstance(value, list) else [(AT, value)],
            )
            for labels, value in series.items()
        ]
        for letter, series in by_letter.items()
    }


def wrong(
    panel: str, answers: Answers, facts: Facts = FACTS, uid: str = "laptime-run"
) -> list[str]:
    name = f"{uid}: {panel}"
    letters = {one["refId"]: answers.get(one["refId"], []) for one in SHOWN[name]["targets"]}
    return list(PANELS[name](facts, SHOWN[name], letters))


def bounds(low: float, estimate: float, high: float) -> dict[tuple[str, ...], float]:
    ends = {"low": low, "estimate": estimate, "high": high}
    return {("position=1", "place=1", f"bound={end}"): value for end, value in ends.items()}


def test_a_picture_of_the_answer_is_cut_and_says_the_exact_end() -> None:
    exact, drawn = bounds(90.0, 100.0, 900.0), bounds(90.0, 100.0, 200.0)
    assert wrong("Throughput", said(A=exact, B=drawn)) == []
    assert len(wrong("Throughput", said(A=exact, B=exact))) == 2
    assert wrong("Throughput", {})


def test_of_a_picture_of_several_runs_the_lines_of_the_run_are_compared() -> None:
    def of(run: str, *more: str) -> tuple[str, ...]:
        return (f"run={run}", "namespace=n", *more)

    def problems(high: float = 900.0, cut: float = 400.0) -> list[str]:
        # The other run has a higher estimate, and says where ends are cut.
        ends = {"low": 90.0, "estimate": 100.0, "high": high}
        exact = {of("r", f"bound={end}"): value for end, value in ends.items()}
        drawn = {key: min(value, cut) for key, value in exact.items()}
        other = {of("other", "bound=estimate"): 200.0}
        places: dict[tuple[str, ...], float] = {("position=1",): 0.0}
        rows = {of("r"): 1_000_000.0, of("other"): 999_000.0}
        answers = said(A={**exact, **other}, B={**drawn, **other}, C=places, D=rows)
        return wrong("Throughput", answers, uid="laptime-compare")

    assert problems() == []
    assert len(problems(high=901.0)) == 2
    assert problems(cut=150.0) == ["draws 150.0 for 900.0"]


def test_a_table_is_merged_row_by_row_and_each_cell_compared() -> None:
    panel = SHOWN["laptime-run: Results"]
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    letters = {
        title: field.removeprefix("Value #")
        for field, title in organize["options"]["renameByName"].items()
    }
    (state,) = (one["refId"] for one in panel["targets"] if "result_state" in one["expr"])
    cells = {"Requests/s": 100.0, "p99": 0.002, "low p99": 0.001, "high p99": 0.003, "Trials": 1.0}
    answers: dict[str, dict[tuple[str, ...], float]] = {
        letters[title]: {(): value} for title, value in cells.items()
    }
    answers[state] = {("place=1", "validity=valid"): 1.0}
    assert wrong("Results", said(**answers)) == []
    answers[letters["Trials"]] = {(): 2.0}
    said_wrongly, not_said = wrong("Results", said(**answers))
    assert "says" in said_wrongly
    assert "('Trials', 2.0)" in said_wrongly
    assert "('Trials', 1.0)" in not_said


@pytest.mark.parametrize(
    ("drawn", "problems"),
    [
        ([(1_000_012.0, 10.0), (1_000_013.0, 11.0)], 0),
        ([(1_000_012.0, 10.0), (1_000_013.0, 11.5)], 1),
        ([(1_000_012.0, 10.0)], 1),
        # It is not whole.
        ([(1_000_012.0, 10.0), (1_000_013.0, 11.0), (1_000_014.0, 12.0)], 1),
        ([], 1),
    ],
)
def test_each_second_is_drawn_where_it_was(drawn: list[tuple[float, float]], problems: int) -> None:
    answers = said(A={(): drawn}) if drawn else {}
    assert len(wrong("Requests of each second", answers)) == problems


@pytest.mark.parametrize(
    ("p50", "p99", "problems"), [(0.002, 0.009, 0), (0.002, 0.03, 2), (0.009, 0.002, 2)]
)
def test_percentiles_of_a_second_lie_between_the_fastest_and_the_slowest_answer(
    p50: float, p99: float, problems: int
) -> None:
    latency = {"minSeconds": 0.001, "maxSeconds": 0.01}
    facts = replace(FACTS, trials=[{**FACTS.trials[0], "figures": {"latency": latency}}])
    steps = (1_000_012.0, 1_000_013.0)
    drawn: dict[tuple[str, ...], Any] = {
        (f"quantile={share}",): [(at, value) for at in steps]
        for share, value in (("0.5", p50), ("0.99", p99))
    }
    panel = "Response times of each second: p50 and p99"
    assert len(wrong(panel, said(A=drawn), facts)) == problems
    assert len(wrong(panel, {}, facts)) == 2


def test_lines_lie_between_bounds_and_come_together_to_what_was_counted() -> None:
    first = ("position=1",)

    def problems(*cores: float, limit: float = 0.5) -> list[str]:
        server = [(AT + at, one) for at, one in enumerate(cores)]
        generator = [(AT + at, 2.0) for at in range(4)]
        answers = said(A={first: server}, B={first: generator}, C={first: limit})
        return wrong("CPU of servers and generators", answers)

    assert problems(*[0.5] * 16) == []
    assert problems(*[0.5] * 16, limit=1.0) == ["C: '1 limit of axum' is 1.0, where 0.5 is right"]
    assert problems(*[0.5] * 2) == ["A: 1.0 in all, where the counters grew by 8.0"]
    assert problems(*[0.5] * 15, 0.9) == ["A: '1 axum' is [0.9], not 0.0 to 0.65"]


def test_what_is_not_there_is_said_by_nobody() -> None:
    some = said(A={(): 1.0})
    assert wrong("HAProxy: queue", some) == ["A: data of haproxy"]
    assert wrong("HAProxy: queue", {}) == []
    parts = (("A", "server"), ("B", "tiers"), ("C", "generator"))
    assert wrong("Memory", {}) == [f"{letter}: no data of {part}" for letter, part in parts]
    after = replace(FACTS, kept=False)
    assert wrong("Memory", {}, after) == []
    assert wrong("Requests of each second", {}, after) == []
    assert wrong("Memory", some, after) == ["A: data of server"]


def test_of_a_run_that_was_never_set_up_there_are_no_lines() -> None:
    facts = replace(FACTS, trials=[], run={**RUN, "status": {"state": "Failed"}})
    panel = "Memory of the nodes"
    there = {("node=node",): float(2**30)}
    assert wrong(panel, {}, facts) == []
    assert wrong(panel, said(A=there), facts) == ["A: data of node"]
    assert wrong(panel, said(B=there), facts) == [
        f"B: 'node in all' is {2.0**30}, where nan is right"
    ]
    # Of one that has no trial yet both is right, and a wrong one never.
    begun = replace(FACTS, trials=[])
    assert wrong(panel, {}, begun) == wrong(panel, said(A=there, B=there), begun) == []
    assert wrong(panel, said(B={("node=node",): 1.0}), begun) == [
        f"B: 'node in all' is 1.0, where {2.0**30} is right"
    ]


def test_rows_of_several_queries_become_one_as_in_grafana() -> None:
    panel = {
        "targets": [{}, {}],
        "transformations": [{"id": "merge", "options": {}}],
        "fieldConfig": {"overrides": []},
    }
    ends = [Series({"server": "a", "bound": one}, [(1, 2.0)]) for one in ("low", "high")]
    others = [Series({"server": "a"}, [(1, 3.0)]), Series({"server": "b"}, [(1, 4.0)])]
    rows = grafana.rows(panel, {"A": ends, "B": others})
    shared = {"Time": 1, "server": "a", "Value #A": 2.0, "Value #B": 3.0}
    assert rows == [
        {**shared, "bound": "low"},
        {**shared, "bound": "high"},
        {"Time": 1, "server": "b", "Value #B": 4.0},
    ]
