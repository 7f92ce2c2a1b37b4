"""What was tried of what limits the servers of a run, by `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laptime.analysis.explained import explained, said_of
from laptime.api.status import State
from laptime.plan.experiments import besides
from laptime.report import Experiment

if TYPE_CHECKING:
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run


def experiments_of(cluster: Cluster, run: Run) -> list[Experiment]:
    """Return what experiments on the servers of a run have found; those that go on say nothing.

    Nor do those that tried other work, since the scenario was changed, another server, or another
    load. Anybody can write the label that they are found by.
    """
    return [
        found
        for one in cluster.experiments_on(run)
        if one.over and one.status.scenario_hash == run.status.scenario_hash
        for found in _found(one, run.spec)
    ]


def _found(run: Run, before: BenchmarkRunSpec | None) -> list[Experiment]:
    if run.spec is None or before is None or not _of_this_server(run.spec, before):
        return []
    every = explained(run.spec, run.status.results or [])
    state = run.status.state
    beside = [besides(before, run.spec)]
    if state is not State.SUCCEEDED:
        beside.append(f"the experiment ended {state}")
    told = "".join(f"; {one}" for one in beside if one)
    return [
        Experiment(
            run.name,
            run.spec.baseline_name,
            load.name,
            [said_of(one) + told for one in every if one.load == load.name],
        )
        for load in run.spec.loads
        if load in before.loads and any(one.load == load.name for one in every)
    ]


def _of_this_server(spec: BenchmarkRunSpec, before: BenchmarkRunSpec) -> bool:
    """Return whether an experiment has the server as the run had it, and its tiers."""
    there = [one for one in before.servers if one.name == spec.baseline_name]
    same = [one.model_copy(update={"profile": False}) for one in there]
    return same == [spec.server(spec.baseline_name)] and _tiers(spec) == _tiers(before)


def _tiers(spec: BenchmarkRunSpec) -> object:
    # How many connections Postgres takes is what an experiment changes of them, and says.
    wire = spec.topology.to_wire()
    wire.get("postgres", {}).pop("maxConnections", None)
    return wire
