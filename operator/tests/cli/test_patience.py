"""Asking again while a cluster is out of reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laptime.cli.mistakes import Unreachable
from laptime.cli.patience import PATIENCE_SECONDS, patiently


class Cluster:
    """Answers after some outages, and what it does until the first takes its time."""

    def __init__(self, outages: int, first_takes: float = 0.0) -> None:
        self.now = 0.0
        self._first_takes = first_takes
        self._answers: Iterator[bool] = iter([False] * outages + [True])

    def ask(self) -> str:
        """Answer, or be out of reach."""
        self.now, self._first_takes = self.now + self._first_takes, 0.0
        if not next(self._answers):
            raise Unreachable("out of reach")
        return "answer"

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.now += seconds


def test_an_outage_counts_from_its_begin_and_not_from_that_of_what_was_asked() -> None:
    cluster = Cluster(outages=3, first_takes=10 * PATIENCE_SECONDS)
    said: list[str] = []
    assert patiently(cluster.ask, said.append, lambda: cluster.now, cluster.sleep) == "answer"
    assert said == ["out of reach; trying again"]


def test_an_outage_that_lasts_is_said() -> None:
    cluster = Cluster(outages=10_000)
    with pytest.raises(Unreachable):
        patiently(cluster.ask, lambda _: None, lambda: cluster.now, cluster.sleep)
    assert cluster.now == PATIENCE_SECONDS
