"""What was tried of what limits the servers of a run, by `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laptime.analysis.explained import explained, said_of
from laptime.report import Experiment

if TYPE_CHECKING:
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run


def experiments_of(cluster: Cluster, run: Run) -> list[Experiment]:
    """Return what experiments on the servers of a run have found; those that go on say nothing.

    Nor do those that tried other work, since the scenario was changed, or another server.
    """
    return [
        found
        for one in cluster.experiments_on(run)
        if one.over and one.status.scenario_hash == run.status.scenario_hash
        for found in _found(one, run.spec)
    ]


def _found(run: Run, before: BenchmarkRunSpec | None) -> list[Experiment]:
    # Anybody can write the label: it has to be about a server that the run has had.
    if run.spec is None or before is None or not _unchanged(run.spec, before):
        return []
    every = explained(run.spec, run.status.results or [])
    return [
        Experiment(
            run.name,
            run.spec.baseline_name,
            load.name,
            [said_of(one) for one in every if one.load == load.name],
        )
        for load in run.spec.loads
        if any(one.load == load.name for one in every)
    ]


def _unchanged(spec: BenchmarkRunSpec, before: BenchmarkRunSpec) -> bool:
    name = spec.baseline_name
    there = [one for one in before.servers if one.name == name]
    same = [one.model_copy(update={"profile": False}) for one in there]
    return same == [spec.server(name)]
