"""What Prometheus had read of a trial is stored beside its result, in whatever stage the run is."""

from __future__ import annotations

from laptime.manifests.result import readings_config_map
from laptime.reconcile.actions import Create
from laptime.reconcile.stages.situation import Situation


def store_readings(situation: Situation) -> None:
    """Store the readings that are here and not stored yet."""
    observed = situation.observed
    situation.actions += [
        Create(readings_config_map(situation.context, observed.results[trial], readings))
        for trial, readings in sorted(observed.readings.items())
    ]
