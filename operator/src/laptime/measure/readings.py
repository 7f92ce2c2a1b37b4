"""Everything that Prometheus knows of the window of one trial."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from laptime.api.evidence import TierEvidence
from laptime.api.results import TrialReadings
from laptime.api.usage import Source, TrialUsage
from laptime.measure.clocks import read_clocks
from laptime.measure.evidence import tier_evidence
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import Query, TrialWindow


async def trial_readings(
    query: Query, wanted: TrialWindow, server: str, pool: str, nodes: Mapping[str, Sequence[str]]
) -> TrialReadings:
    """Return what the pods used in the window of a trial of a server, and what the tiers said.

    `pool` is that of the server in PgBouncer. `nodes` are where its parts ran, as the result has
    it; the window has the times of the first generator's node.

    Raises:
        PrometheusError: Prometheus refused a query or cannot be reached.
    """
    clocks = await read_clocks(query, wanted, nodes)
    # What exporters say has the time at which they were asked.
    asked = replace(wanted, window=clocks.in_prometheus_time(wanted.window))
    usage, (tiers, gaps) = await asyncio.gather(
        trial_usage(query, wanted, clocks),
        tier_evidence(query, asked, server, pool),
    )
    return TrialReadings(trial=wanted.trial, usage=usage.missing(gaps), tiers=tiers)


def no_readings(trial: str, why: str) -> TrialReadings:
    """Return the readings of a trial of which nobody can say anything, and why."""
    usage = TrialUsage(source=Source.NOBODY, complete=False, gaps=[why[:500]])
    return TrialReadings(trial=trial, usage=usage, tiers=TierEvidence())
