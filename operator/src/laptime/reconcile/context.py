"""What the builders know of a run that has, or is to have, a lane."""

from __future__ import annotations

from laptime.catalog import UNKNOWN, Scenario
from laptime.manifests.context import RunContext
from laptime.reconcile.placements import NotPlaced
from laptime.reconcile.settings import Settings
from laptime.reconcile.views import Run


def context_of(
    run: Run, settings: Settings, scenario: Scenario = UNKNOWN, lane: str | None = None
) -> RunContext:
    """Return what the builders know of a run that has a lane; without its turn nothing is made."""
    placement, problem = None, None
    try:
        placement = settings.placements.chosen(
            run.spec.placement,
            run.namespace,
            run.status.placement,
            begun=run.begun,
            lane=lane,
        )
    except NotPlaced as error:
        problem = (error.reason, str(error))
    return RunContext(
        name=run.name,
        namespace=run.namespace,
        uid=run.uid,
        spec=run.spec,
        scenario=scenario,
        images=settings.images.pinned(run.status.images),
        cluster_domain=settings.cluster_domain,
        network=settings.network,
        foreign_users=settings.foreign_users,
        longest_seconds=settings.turns.caps_of(run.namespace).duration_seconds,
        placement=placement,
        placement_problem=problem,
    )
