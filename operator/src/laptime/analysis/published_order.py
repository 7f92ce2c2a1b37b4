"""Whether servers came in the order that the published benchmark has them in. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from laptime.analysis import wording
from laptime.analysis.comparing import Comparison
from laptime.analysis.looks import looks_of
from laptime.analysis.ranks import fastest_first
from laptime.analysis.repeated import logs_of
from laptime.api.metrics import Metric
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import OrderClaim, Published

ALIKE_RATIO = 1.1
"""Servers with the same published figure are alike here up to this ratio of throughputs."""


class Agreement(StrEnum):
    """Whether the order is the same."""

    YES = "yes"
    """Each two servers that the source ranks stand in its order, and were told apart; those that it
    has as alike differ by less than ALIKE_RATIO for sure."""
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

    Two servers are compared as everywhere: all servers of the load in one model, so that all
    answers hold at once with 95 %. None when the source says nothing about any two of them.
    """
    claims = published.claims(spec, load)
    if not claims:
        return None
    rates = {
        server.name: logs_of(
            (one for one in results if (one.server, one.load) == (server.name, load)),
            Metric.REQUESTS_PER_SECOND,
        )
        for server in spec.servers
        if server.name != spec.control_name
    }
    comparison = Comparison(rates, looks_of(spec))
    contrary, undecided = [], []
    for claim in claims:
        agreement, said = _judge(claim, comparison)
        if agreement is Agreement.NO:
            contrary.append(said)
        elif agreement is Agreement.UNDECIDED:
            undecided.append(said)
    return OrderComparison(
        tuple(published.order(spec, load)),
        tuple(fastest_first(rates, comparison)),
        tuple(contrary),
        tuple(undecided),
    )


def _judge(claim: OrderClaim, comparison: Comparison) -> tuple[Agreement, str]:
    one, other = claim.faster, claim.slower
    ratio = comparison.ratio(one, other)
    if ratio is None:
        return Agreement.UNDECIDED, f"{one} and {other} were not measured together"
    log_ratio = math.log(ratio.value)
    apart = comparison.can_be_told_apart(one, other)
    unknown = Agreement.UNDECIDED, f"{one} and {other} cannot be told apart"
    if claim.alike:
        if comparison.are_alike(one, other, ALIKE_RATIO):
            return Agreement.YES, ""
        if abs(log_ratio) <= math.log(ALIKE_RATIO):
            said = f"{one} and {other} may differ by more than a tenth"
            return Agreement.UNDECIDED, f"{said}, and were published as alike"
        first, last = (one, other) if log_ratio > 0 else (other, one)
        said = f"{first} is {wording.number(math.exp(abs(log_ratio)))}x {last}, published as alike"
        return (Agreement.NO, said) if apart else unknown
    if not apart:
        return unknown
    if log_ratio > 0:
        return Agreement.YES, ""
    return Agreement.NO, f"{other} is faster than {one} here"
