"""What is said of a closed load that nothing had to queue for."""

from __future__ import annotations

from typing import Any

import pytest

from laptime.analysis.suspects import load_itself
from laptime.api.loads import Load


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({"closed": {"connections": 10, "duration": "5s"}}, "10 connections, each of which waits"),
        ({"closed": {"connections": 1, "duration": "5s"}}, "1 connection, which waits"),
        (
            {
                "closed": {"connections": 1, "duration": "5s"},
                "protocol": "http2",
                "streams": 50,
            },
            "1 connection of 50 streams, each of which waits",
        ),
    ],
)
def test_a_closed_load_is_itself_what_limits(more: dict[str, Any], who: str) -> None:
    load = Load.model_validate({"name": "mine", **more})
    said = load_itself(load) or ""
    assert said.startswith(f"what limits it under mine is the load itself: {who} for its answer.")
    assert load.closed is not None
    assert f"a second one with {2 * load.closed.connections} connections beside it" in said
    assert said.endswith("at least 1.05 times the upper end of those of mine")


def test_a_rate_that_was_met_limits_nothing() -> None:
    load = Load.model_validate({"name": "mine", "open": {"rate": 100, "duration": "5s"}})
    assert load_itself(load) is None
