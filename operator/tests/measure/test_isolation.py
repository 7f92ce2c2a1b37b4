"""Whether a trial had its nodes for itself: each word on both sides of its threshold."""

from __future__ import annotations

from math import log
from statistics import stdev
from typing import Any

import pytest

from laptime.analysis import wording
from laptime.api.isolation import Isolation, Quietness
from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.api.usage import NodeUsage, Source, TrialUsage
from laptime.measure.isolation import MAX_QUIET_SHARE, run_isolation, trial_isolation
from laptime.measure.validity import (
    MAX_OTHERS_SHARE,
    MAX_STOLEN_SHARE,
    MAX_STOOD_STILL_SECONDS,
    judge_usage,
)

QUIET, NOT_KNOWN, SHARED, DISTURBED = Quietness


def node(name: str = "n1", **changes: Any) -> NodeUsage:
    known = {"others_cores": 0.1, "other_pods_cores": 0.05, "stolen_share": 0.0}
    return NodeUsage(**{"node": name, "cpus": 8, **known, **changes})


def usage(*nodes: NodeUsage) -> TrialUsage:
    return TrialUsage(source=Source.AGENT, complete=True, nodes=list(nodes))


def judged(*nodes: NodeUsage, on: tuple[str, ...] = ()) -> Isolation:
    return trial_isolation(usage(*nodes), on)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, QUIET),
        ({"others_cores": 8 * MAX_QUIET_SHARE}, QUIET),
        ({"others_cores": 8 * MAX_QUIET_SHARE + 0.001}, SHARED),
        ({"others_cores": 8 * MAX_OTHERS_SHARE}, SHARED),
        ({"others_cores": 8 * MAX_OTHERS_SHARE + 0.001}, DISTURBED),
        ({"stolen_share": MAX_STOLEN_SHARE}, QUIET),
        ({"stolen_share": MAX_STOLEN_SHARE + 0.001}, DISTURBED),
        ({"stood_still_seconds": MAX_STOOD_STILL_SECONDS}, QUIET),
        ({"stood_still_seconds": MAX_STOOD_STILL_SECONDS + 0.1}, DISTURBED),
        # A figure that is too low can be bad already, and cannot be good.
        ({"other_pods_cores": None}, NOT_KNOWN),
        ({"other_pods_cores": None, "others_cores": 1.0}, SHARED),
        ({"other_pods_cores": None, "others_cores": 4.0}, DISTURBED),
        ({"others_cores": None, "other_pods_cores": None}, NOT_KNOWN),
        ({"stolen_share": None}, NOT_KNOWN),
        ({"cpus": 0, "others_cores": 4.0}, NOT_KNOWN),
        ({"others_cores": None, "other_pods_cores": None, "stolen_share": 0.5}, DISTURBED),
    ],
)
def test_the_words(changes: dict[str, Any], word: Quietness) -> None:
    found = judged(node(**changes))
    assert found.word is word
    assert (found.message is None) == (word is QUIET)
    # What disturbs a trial is a doubt about it, and nothing else is.
    assert bool(judge_usage(usage(node(**changes))).reasons) == (word is DISTURBED)


def test_it_says_why_and_of_which_node() -> None:
    found = judged(node(others_cores=1.234))
    assert found.message == "others used at least 1.2 of the 8 CPUs of node n1 meanwhile"
    assert (found.node, found.cpus, found.others_cores) == ("n1", 8, 1.234)
    assert (found.other_pods_cores, found.stolen_share) == (0.05, 0.0)
    both = judged(node(others_cores=4.0, stolen_share=0.02))
    assert both.message == (
        "the hypervisor took 2.0% of the CPU time of node n1; "
        "others used at least 4 of the 8 CPUs of node n1 meanwhile"
    )


def test_the_worst_node_counts() -> None:
    assert judged(node("n1"), node("n2", others_cores=1.0), node("n3")).node == "n2"
    assert judged(node("n1", others_cores=1.0), node("n2", others_cores=1.5)).node == "n2"
    # Of like shares, not of like numbers of CPUs.
    small = node("n2", cpus=2, others_cores=0.4)
    assert judged(node("n1", others_cores=0.6), small).node == "n2"


def test_a_node_that_nobody_watched_is_no_quiet_one() -> None:
    found = judged(node("n1"), on=("n1", "n2"))
    assert (found.word, found.message) == (NOT_KNOWN, "nobody watched node n2")
    assert judged(node("n1"), on=("n1",)).word is QUIET
    assert judged(node("n1", others_cores=1.0), on=("n2",)).word is SHARED
    for nothing in (None, TrialUsage(source=Source.NOBODY, complete=False)):
        found = trial_isolation(nothing, ())
        assert (found.word, found.message) == (NOT_KNOWN, "nobody watched its nodes")


def trial(ordinal: int, isolation: Isolation | None, measured: bool = True) -> TrialResult:
    figures = Figures(requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0)
    return TrialResult(
        trial=f"t{ordinal}",
        ordinal=ordinal,
        server="a",
        load="closed",
        repetition=ordinal,
        outcome=TrialOutcome.MEASURED,
        figures=figures if measured else None,
        isolation=isolation,
    )


def test_a_run_is_as_quiet_as_its_worst_trial() -> None:
    quiet, shared, more = judged(node()), judged(node(others_cores=1)), judged(node(others_cores=2))
    run = run_isolation([trial(1, quiet), trial(2, more), trial(3, shared)])
    assert run == more.model_copy(update={"trial": "t2"})
    run = run_isolation([trial(1, quiet)])
    assert run is not None
    assert (run.word, run.trials_not_known) == (QUIET, None)


def test_of_a_run_it_is_not_known_where_it_is_not_known_of_a_trial() -> None:
    # An older version stored none.
    run = run_isolation([trial(1, judged(node())), trial(2, None)])
    assert run is not None
    assert (run.word, run.trial, run.trials_not_known) == (NOT_KNOWN, "t2", 1)
    assert run.message == "its version of Laptime did not tell"
    run = run_isolation([trial(1, judged(node(others_cores=1))), trial(2, None), trial(3, None)])
    assert run is not None
    assert (run.word, run.trial, run.trials_not_known) == (SHARED, "t1", 2)


def with_probes(ordinal: int, **seconds: float) -> TrialResult:
    nodes = [
        node(name, probe_seconds=each, probe_work="1") for name, each in seconds.items() if each
    ]
    return trial(ordinal, judged(*nodes)).model_copy(update={"usage": usage(*nodes)})


def test_how_much_the_speed_of_the_cpus_varied() -> None:
    steady, fast = [1.0, 1.0, 1.0, 1.0], [1.0, 1.1, 0.9, 1.0]
    run = run_isolation(
        with_probes(number, n1=one, n2=other)
        for number, (one, other) in enumerate(zip(steady, fast, strict=True))
    )
    assert run is not None
    # Of the node that varied most, with three degrees of freedom.
    assert run.cpu_speed_spread == pytest.approx(stdev(map(log, fast)), rel=1e-5)
    assert wording.isolation(run) == "quiet"
    told = run.model_copy(update={"cpu_speed_spread": 0.123})
    assert wording.isolation(told) == (
        "quiet; the CPUs were not always as fast (standard deviation 12.3%)"
    )


def test_servers_that_make_a_node_more_or_less_busy_are_no_change_of_its_speed() -> None:
    """An idle CPU is slow to begin: each server has a level of its own."""
    run = run_isolation(
        with_probes(number, n1=250e-6 if number % 2 else 200e-6).model_copy(
            update={"server": "ab"[number % 2]}
        )
        for number in range(6)
    )
    assert run is not None
    assert run.cpu_speed_spread == 0.0


def test_two_trials_or_two_pieces_of_work_say_nothing_of_the_speed() -> None:
    for trials in (
        [with_probes(1, n1=1.0), with_probes(2, n1=2.0)],
        [with_probes(1, n1=1.0), with_probes(2, n2=2.0), with_probes(3, n3=3.0)],
        [with_probes(1, n1=1.0), with_probes(2, n1=2.0), trial(3, judged(node()))],
        [trial(number, judged(node())) for number in range(4)],
    ):
        run = run_isolation(trials)
        assert run is not None
        assert run.cpu_speed_spread is None


def test_trials_that_measured_nothing_do_not_count() -> None:
    assert run_isolation([trial(1, None, measured=False)]) is None
    assert run_isolation([]) is None
