"""Whether servers came in the order that the published benchmark has them in. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from laptime.analysis import wording
from laptime.analysis.ranks import fastest_first
from laptime.analysis.rows import log_rates
from laptime.analysis.statistics import can_be_told_apart, interval_of_logs, paired_logs
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import OrderClaim, Published

ALIKE_RATIO = 1.1
"""Servers with the same published figure are alike here up to this ratio of throughputs."""


class Agreement(StrEnum):
    """Whether the order is the same."""

    YES = "yes"
    """Each two servers that the source ranks stand in its order, and were told apart."""
    NO = "no"
    """At least two of them stand the other way round, and were told apart."""
    UNDECIDED = "undecided"
    """Nothing speaks against it, but not all could be told apart."""


@dataclass(frozen=True)
class OrderComparison:
    """The published order beside the measured one, under one load."""

    published: tuple[str, ...]
    """The servers of the run that the source ranks, fastest first."""
    measured: tuple[str, ...]
    """All servers with figures, fastest first."""
    contrary: tuple[str, ...]
    """What speaks against the published order, one clause each."""
    undecided: tuple[str, ...]
    """What could not be told, one clause each."""

    @property
    def agreement(self) -> Agreement:
        """Whether the order is the same."""
        if self.contrary:
            return Agreement.NO
        return Agreement.UNDECIDED if self.undecided else Agreement.YES

    @property
    def text(self) -> str:
        """Both orders and where they differ, in sentences."""
        said = [f"Published: {', '.join(self.published)}", f"measured: {', '.join(self.measured)}"]
        return f"{'; '.join([*said, *self.contrary, *self.undecided])}."


def compare_order(
    published: Published, spec: BenchmarkRunSpec, load: str, results: Sequence[TrialResult]
) -> OrderComparison | None:
    """Compare the order of a run's servers under a load with the published one.

    Two servers are compared as everywhere, paired by repetition, with all pairs of the load
    together at 95 % (Bonferroni). None when the source says nothing about any two of them.
    """
    claims = published.claims(spec, load)
    if not claims:
        return None
    rates = {
        server.name: log_rates(
            one for one in results if (one.server, one.load) == (server.name, load)
        )
        for server in spec.servers
        if server.name != spec.control_name
    }
    contrary, undecided = [], []
    for claim in claims:
        agreement, said = _judge(claim, rates, len(claims))
        if agreement is Agreement.NO:
            contrary.append(said)
        elif agreement is Agreement.UNDECIDED:
            undecided.append(said)
    return OrderComparison(
        tuple(published.order(spec, load)),
        tuple(fastest_first(rates, len(claims))),
        tuple(contrary),
        tuple(undecided),
    )


def _judge(
    claim: OrderClaim, rates: Mapping[str, Mapping[int, float]], of: int
) -> tuple[Agreement, str]:
    one, other = claim.faster, claim.slower
    logs = paired_logs(rates[one], rates[other])
    if not logs:
        return Agreement.UNDECIDED, f"{one} and {other} were not measured together"
    log_ratio = math.log(interval_of_logs(logs).value)
    apart = can_be_told_apart(rates[one], rates[other], of)
    unknown = Agreement.UNDECIDED, f"{one} and {other} cannot be told apart"
    if claim.alike:
        if abs(log_ratio) <= math.log(ALIKE_RATIO):
            return Agreement.YES, ""
        first, last = (one, other) if log_ratio > 0 else (other, one)
        said = f"{first} is {wording.number(math.exp(abs(log_ratio)))}x {last}, published as alike"
        return (Agreement.NO, said) if apart else unknown
    if not apart:
        return unknown
    if log_ratio > 0:
        return Agreement.YES, ""
    return Agreement.NO, f"{other} is faster than {one} here"
