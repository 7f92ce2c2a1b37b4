"""The list of doubts: closed, and each of them known again by its words."""

from __future__ import annotations

import re

import pytest

from laptime.api import doubts
from laptime.api.doubts import DOUBTS, Bearing, Doubt, bearing, doubt
from laptime.api.metrics import Metric
from tests.slow import within

# As results of earlier versions have them: what was stored is still known.
STORED = {
    "100.00% of the requests had no right answer": doubts.ERRORS,
    "0.49% of the requests had no right answer": doubts.ERRORS,
    "no right answer": doubts.NO_RIGHT_ANSWER,
    "no answer came within the measured time: 4 right ones came after it": doubts.ALL_TOO_LATE,
    "no right answer, mostly status (9 of 9 requests)": doubts.NO_RIGHT_ANSWER,
    "the generator used 95% of its CPU and may have been the limit": doubts.GENERATOR_BUSY,
    "the generator was held back by a CPU limit in 3% of time": doubts.GENERATOR_HELD_BACK,
    "node a stood still for 8.1 s: nothing was seen to run there": doubts.STOOD_STILL,
    "1,204 of 98,000 requests had no port to connect from: that is the generator's limit and not "
    "the server's": doubts.NO_PORT,
    "a generator of an earlier trial may have sent requests meanwhile: its node a does not "
    "answer": doubts.STILL_DRIVEN,
    "connection tracking of node a was 96% full, 1,203 packets dropped": doubts.TRACKING_FULL,
    "connection tracking of node a dropped 1,203 packets": doubts.TRACKING_LOST,
    "the generator sent 1 of 100 requests 3 ms late or more, which their response times include "
    "(p99 1.2e+04 ms)": doubts.GENERATOR_LATE,
    "users who think keep some 20 of the 20 connections, so that others may have waited for one: "
    "that is the load's limit and not the server's": doubts.THINKERS,
    "Little's law does not hold: 10 connections, but throughput times mean response time is 8.31": (
        doubts.LITTLES_LAW
    ),
    "Little's law does not hold: 10 connections, but throughput times mean response time and think "
    "time is 8.31": doubts.LITTLES_LAW,
    "the rate was not held: 900.0 requests/s were due instead of 1,000": doubts.RATE_NOT_HELD,
    "users of a session think for 4 s before a request on average, too long for 5 s at a rate: the "
    "server was asked for less than that at a time": doubts.SESSIONS_TOO_LONG,
    "the first 2 s were 9% slower than the rest: make the warm-up longer": doubts.WARMING_UP,
    "the first 2 s were 9% faster than the rest: server, database or machine slowed down": (
        doubts.SLOWING_DOWN
    ),
    "3 statements per right answer instead of 1: the server does more than the work": (
        doubts.MORE_STATEMENTS
    ),
    "0.01 statements per right answer instead of 1: the server does less than the work, or "
    "remembers it": doubts.FEWER_STATEMENTS,
    "Postgres was held back by its CPU limit in 20% of time: the figures are about it as much as "
    "about the server": doubts.TIER_HELD_BACK,
    "the hypervisor took 2.0% of the CPU time of node a": doubts.STOLEN_TIME,
    "others used at least 2.3 of the 8 CPUs of node a meanwhile": doubts.NEIGHBOURS,
    "the objective was met at 100,000 requests/s, the highest rate tried: the server can do more": (
        doubts.NO_UPPER_END
    ),
    "at 5,040 requests/s, where the search ended, the generator did not send in time: the server "
    "may do more": doubts.SEARCHED_LATE,
    "at 2 requests/s, where the search ended, the generator did not send in time: the server may "
    "do more": doubts.SEARCHED_LATE,
    "3 steps of the search began before the server answered as fast as at first": doubts.RESTLESS,
    "measured only once, so nobody knows how far chance goes: no interval": doubts.MEASURED_ONCE,
    "only 400 answers: p99.9 needs at least 1000": doubts.FEW_ANSWERS,
    "the response times of 1 of 5 trials are missing": doubts.TIMES_MISSING,
    "1 of 5 repetitions is invalid and left out": doubts.INVALID_REPETITIONS,
    "2 of 5 trials failed": doubts.TRIALS_FAILED,
    "asked for again (`retry`), and so measured at another time than axum and go: how they compare "
    "is not known": doubts.ASKED_AGAIN,
    "2 of 5 trials were lost to the node and the tier, not to the server": doubts.TRIALS_LOST,
    "failed: GeneratorLost": doubts.FAILED,
    "check 'status is 200' failed in 1,000 of 2,000 answers (50.00%)": doubts.CHECK_FAILED,
    "3 more checks failed as well": doubts.MORE_CHECKS_FAILED,
    "90 answers failed one check or another (0.90% of the 10,000 that the check that was asked "
    "most often had): 'status is 200', 'has a list' and 2 more": doubts.ANSWERS_WRONG,
    "1 of 1,000 iterations ended with an exception: Error: no list at default "
    "(file:///scripts/script.js:7:10(5))": doubts.THROWN,
    "4 more doubts, which the trials say": doubts.MORE_DOUBTS,
    "k6 dropped 1,000 of 2,000 iterations: it had no VU left for them (maxVUs), so the load was "
    "less than the script asks for": doubts.ITERATIONS_DROPPED,
    "server axum ran a@sha256:1, and a@sha256:2 in trial demo-trial-001: they are not the same": (
        doubts.OTHER_IMAGE
    ),
    "server mine ran a@sha256:1, and a@sha256:2 when its answers were checked: they are not the "
    "same": doubts.NOT_AS_CHECKED,
    "whether the tag of mine:main has moved is not known: an older image of that name may have "
    "run": doubts.TAG_UNKNOWN,
    "server old was measured on another schema of the database than it was checked on: on that of "
    "server new": doubts.OTHER_SCHEMA,
    "the server ran on b, and on a in trial demo-trial-001: what differs may be the nodes": (
        doubts.OTHER_NODES
    ),
    "node n1 has AMD EPYC 7B12, and had Intel(R) Xeon(R) CPU @ 2.20GHz in trial demo-trial-001: "
    "what differs may be the machine": doubts.OTHER_MACHINE,
    "the cluster added init container istio-init and container istio-proxy to the pod of server "
    "axum: what it does there is in the figures": doubts.CONTAINER_ADDED,
    "the cluster limits the generator to 100m of CPU and 128Mi of memory, and nobody asked for a "
    "limit": doubts.LIMIT_ADDED,
    "the cluster gave Postgres a CPU request of 250m, and 100m was asked for": (
        doubts.OTHER_RESOURCES
    ),
    "the cluster runs mirror/a:1 for server axum, and a:1 was asked for": doubts.IMAGE_REPLACED,
    "Service shop was there before: neither its pods nor its data were brought to the same state "
    "before the trial": doubts.NOT_FRESH,
    "whether others used Service shop at the same time is not known": doubts.SHARED,
    **{
        one.text: one
        for one in (
            doubts.NO_REQUEST,
            doubts.NO_WARMUP,
            doubts.ENDED_EARLY,
            doubts.NO_RATE,
            doubts.MEASURED_ONCE,
        )
    },
}


def test_each_doubt_is_known_by_what_it_says_and_no_other_one_says_it() -> None:
    assert set(STORED.values()) == set(DOUBTS)
    for reason, expected in STORED.items():
        of_several = doubts.in_repetitions([reason, "others"], 5)
        for said in (reason, f"{reason} (in 2 of 5 repetitions)", of_several):
            assert [one for one in DOUBTS if one.said(said)] == [expected], said


@pytest.mark.parametrize(
    ("one", "figures", "said"),
    [
        (doubts.ERRORS, {"share": 29_999 / 30_000}, "99.997% of the requests"),
        (doubts.CHECK_FAILED, {"share": 29_999 / 30_000}, "(99.997%)"),
        (doubts.ANSWERS_WRONG, {"share": 29_999 / 30_000}, "(99.997% of the 30,000 that"),
        (doubts.ERRORS, {"share": 0.00234}, "0.234% of the requests"),
        (doubts.ERRORS, {"share": 1.0}, "100% of the requests"),
        (doubts.NO_UPPER_END, {"rate": 2.38}, "at 2.38 requests/s"),
        (doubts.SEARCHED_LATE, {"rate": 2.38}, "at 2.38 requests/s"),
        (doubts.SEARCHED_LATE, {"rate": 15_363.4}, "at 15,363 requests/s"),
    ],
)
def test_shares_and_rates_are_those_of_the_table(
    one: Doubt, figures: dict[str, float], said: str
) -> None:
    others = {"name": "a", "names": "'a'", "failed": 29_999, "wrong": 29_999, "answers": 30_000}
    reason = one.says(**others, **figures)
    assert said in reason
    assert doubt(reason) is one


@pytest.mark.parametrize("one", DOUBTS, ids=lambda one: str(one.text)[:30])
def test_each_doubt_says_what_to_do(one: Doubt) -> None:
    assert one.advice
    assert not one.advice.endswith(".")


@pytest.mark.parametrize("one", DOUBTS, ids=lambda one: str(one.text)[:30])
def test_the_name_of_a_check_cannot_pass_a_failed_one_off_as_something_harmless(one: Doubt) -> None:
    # What the author of a script writes is no word of ours, whatever it looks like.
    text = re.sub(r"\{\w+(?::[^}]*)?\}", "1", one.text)
    reason = doubts.CHECK_FAILED.says(name=text, failed=5, answers=9, share=5 / 9)
    assert doubt(reason) is doubts.CHECK_FAILED
    assert all(bearing(reason, metric) is Bearing.EITHER for metric in Metric)


@pytest.mark.parametrize("metric", list(Metric))
def test_a_reason_that_nobody_knows_bears_on_everything(metric: Metric) -> None:
    assert bearing("something new", metric) is Bearing.EITHER


def test_a_gate_on_a_virtual_machine_can_pass_and_is_never_missed_for_stolen_time() -> None:
    found = bearing("the hypervisor took 9.0% of the CPU time of node a", Metric.P99)
    assert Bearing.LOOKS_BETTER not in found
    assert Bearing.LOOKS_WORSE in found


@pytest.mark.parametrize(
    "reason",
    [
        " ran " * 4000 + ", and " * 4000 + " in trial " * 4000,
        "the cluster runs " + " for " * 4000 + ", and " * 4000,
        "check '" + "' failed in 1" * 4000,
    ],
)
def test_a_reason_that_is_no_doubt_is_known_in_a_time_that_its_length_bounds(reason: str) -> None:
    assert within(60, doubt, reason) is None


def test_what_a_doubt_is_about_is_read_whatever_the_names_are() -> None:
    said = doubts.OTHER_IMAGE.says(
        what="a ran b", image="c, and d", before="e in trial f", trial="g"
    )
    assert doubt(f"{said} (in 2 of 5 repetitions)") is doubts.OTHER_IMAGE


def test_a_smaller_load_makes_response_times_look_better_and_nobody_knows_of_throughput() -> None:
    dropped = doubts.ITERATIONS_DROPPED.says(dropped=800, due=2000)
    assert bearing(dropped, Metric.P99) is Bearing.LOOKS_BETTER
    assert bearing(dropped, Metric.REQUESTS_PER_SECOND) is Bearing.EITHER
