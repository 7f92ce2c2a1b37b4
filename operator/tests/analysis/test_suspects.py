"""What is said of a closed load that nothing had to queue for."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.suspects import load_itself
from laptime.api.causes import Cause, LimitedBy
from laptime.api.loads import Load


def of_the_load(evidence: str) -> LimitedBy:
    return LimitedBy(cause=Cause.OFFERED_LOAD, evidence=evidence)


@pytest.mark.parametrize(
    ("more", "evidence"),
    [
        (
            {"closed": {"connections": 10, "duration": "5s"}},
            "10 connections with one request each, and nothing that they had to queue for",
        ),
        (
            {
                "closed": {"connections": 1, "duration": "5s"},
                "protocol": "http2",
                "streams": 50,
            },
            "50 streams with one request each, and nothing that they had to queue for",
        ),
        # The load, or the sessions of the scenario.
        (
            {"closed": {"connections": 10, "duration": "5s"}, "thinkTime": {"min": "1s"}},
            "10 users think for 99% of the time",
        ),
        ({"closed": {"connections": 10, "duration": "5s"}}, "10 users think for 99% of the time"),
    ],
)
def test_a_closed_load_is_itself_what_is_suspected_by_what_its_users_do(
    more: dict[str, Any], evidence: str
) -> None:
    load = Load.model_validate({"name": "mine", **more})
    said = load_itself(load, of_the_load(evidence)) or ""
    assert said.startswith(
        f"what is suspected under mine is the load itself: {evidence}. All servers share a load"
    )
    assert load.closed is not None
    assert f"a second one with {2 * load.closed.connections} connections beside it" in said
    assert said.endswith("at least 1.05 times the upper end of those of mine")


def test_what_was_said_of_another_cause_is_not_said_of_the_load() -> None:
    load = Load.model_validate({"name": "mine", "closed": {"connections": 10, "duration": "5s"}})
    near = LimitedBy(cause=Cause.NODE, evidence="all cores were busy", also=[Cause.OFFERED_LOAD])
    assert (load_itself(load, near) or "").startswith(
        "what is suspected under mine is the load itself. All servers share a load"
    )


@pytest.mark.parametrize(
    ("more", "advised"),
    [
        ({"closed": {"connections": 5000, "duration": "5s"}}, "with 10000 connections beside it"),
        ({"closed": {"connections": 5001, "duration": "5s"}}, None),
        (
            {"closed": {"connections": 300, "duration": "5s"}, "protocol": "http2", "streams": 100},
            "with 600 connections beside it",
        ),
        (
            {"closed": {"connections": 301, "duration": "5s"}, "protocol": "http2", "streams": 100},
            None,
        ),
        (
            {"closed": {"connections": 10, "requests": 399}, "protocol": "http2", "streams": 20},
            "with 20 connections and at least 400 requests beside it",
        ),
        (
            {"closed": {"connections": 10, "requests": 400}, "protocol": "http2", "streams": 20},
            "with 20 connections beside it",
        ),
    ],
)
def test_no_load_is_advised_that_nobody_may_write(
    more: dict[str, Any], advised: str | None
) -> None:
    said = load_itself(Load.model_validate({"name": "mine", **more}), of_the_load("so")) or ""
    if advised is None:
        assert said.endswith(
            "All servers share a load, and none may have twice as many connections"
        )
    else:
        assert f"so write a second one {advised} in one run" in said


def test_a_rate_that_was_met_limits_nothing() -> None:
    load = Load.model_validate({"name": "mine", "open": {"rate": 100, "duration": "5s"}})
    assert load_itself(load, of_the_load("so")) is None
