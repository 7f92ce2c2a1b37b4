"""What was tried of what limits the servers of a run, by `explain`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from laptime.analysis.explained import explained, said_of
from laptime.analysis.run_differences import placed_otherwise
from laptime.api.images import bits
from laptime.api.status import State
from laptime.cli.mistakes import Mistake
from laptime.cli.stored_results import stored_results
from laptime.plan.experiments import besides, says_all
from laptime.report import Experiment

if TYPE_CHECKING:
    from laptime.api.loads import Load
    from laptime.api.results import TrialResult
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run


def experiments_of(cluster: Cluster, run: Run) -> list[Experiment]:
    """Return what experiments on the servers of a run have found; those that go on say nothing.

    Nor do those that tried other work, since the scenario or a script was changed, another server,
    another load, or something else than more of what they say. Where they had other images or nodes
    it is said. Anybody can write the label that they are found by.
    """
    return [
        found
        for one in cluster.experiments_on(run)
        if one.over and one.status.scenario_hash == run.status.scenario_hash
        for found in _found(cluster, one, run)
    ]


def _found(cluster: Cluster, one: Run, run: Run) -> list[Experiment]:
    spec, before = one.spec, run.spec
    if spec is None or before is None or not _of_this_server(spec, before):
        return []
    every = explained(spec, one.status.results or [])
    loads = [
        load
        for load in spec.loads
        if load in before.loads
        and any(its.load == load.name for its in every)
        and same_script(load, one, run)
    ]
    if not loads:
        return []
    beside = [besides(before, spec), *_made_otherwise(cluster, one, run)]
    if one.status.state is not State.SUCCEEDED:
        beside.append(f"the experiment ended {one.status.state}")
    told = "".join(f"; {its}" for its in beside if its)
    return [
        Experiment(
            one.name,
            spec.baseline_name,
            load.name,
            [said_of(its) + told for its in every if its.load == load.name],
        )
        for load in loads
    ]


def same_script(load: Load, one: Run, run: Run) -> bool:
    """Return whether a load had the same script both times, as far as that is known."""
    now, before = (
        {its.config_map: its.hash for its in of.status.scripts or []} for of in (one, run)
    )
    names = load.script.config_maps if load.script is not None else []
    return all(now.get(name, "") == before.get(name, "") for name in names if name in before)


def _made_otherwise(cluster: Cluster, one: Run, run: Run) -> list[str]:
    """Return on what else than the run an experiment was measured: placement, images, nodes."""
    assert one.spec is not None
    said = placed_otherwise(run.status.placement, one.status.placement)
    now, before = (_trials(cluster, of, one.spec.baseline_name) for of in (one, run))
    if now and before:
        for what, of_trial in _USED.items():
            said += [f"another {what} of {part}" for part in _apart(of_trial, now, before)]
    elif len({_pinned(of) for of in (one, run) if of.status.images}) > 1:
        said.append("images of another version of Laptime")
    return [f"the experiment was made otherwise than the run: {', '.join(said)}"] if said else []


def _pinned(run: Run) -> tuple[str | None, ...]:
    """Return what the images of a run are called, but for those of servers and of checks."""
    images = run.status.images
    if images is None:
        return ()
    tiers = images.postgres, images.pgbouncer, images.haproxy, images.upstream, images.delay
    return images.generator, *tiers


def _trials(cluster: Cluster, run: Run, server: str) -> list[TrialResult]:
    """Return the trials of a server in a run; none where they cannot be read."""
    with suppress(Mistake):
        return [one for one in stored_results(cluster, run).report.trials if one.server == server]
    return []


def _apart(
    of_trial: Callable[[TrialResult], Mapping[str, Collection[str]]],
    now: Sequence[TrialResult],
    before: Sequence[TrialResult],
) -> list[str]:
    """Return the parts of which trials used others; a part that is not known of both is none."""
    used: list[dict[str, set[str]]] = []
    for trials in (now, before):
        found: dict[str, set[str]] = {}
        for trial in trials:
            for part, its in of_trial(trial).items():
                found.setdefault(part, set()).update(its)
        used.append(found)
    return sorted(
        part for part in used[0].keys() & used[1].keys() if used[0][part] != used[1][part]
    )


_USED: Mapping[str, Callable[[TrialResult], Mapping[str, Collection[str]]]] = {
    # By what the kubelets said, which a tag that was moved does not hide.
    "image": lambda trial: {part: bits(image) for part, image in trial.images.items()},
    "node": lambda trial: trial.nodes,
}


def _of_this_server(spec: BenchmarkRunSpec, before: BenchmarkRunSpec) -> bool:
    """Return whether an experiment has the server as the run had it, its tiers and its generators.

    And beside it nothing but that with more of what is said: who takes an experiment to try another
    image has the label of the first one in it.
    """
    there = [one for one in before.servers if one.name == spec.baseline_name]
    same = [one.model_copy(update={"profile": False}) for one in there]
    unchanged = spec.server(spec.baseline_name)
    arms = [one for one in spec.servers if one.name != unchanged.name]
    return (
        same == [unchanged]
        and all(says_all(spec, unchanged, one) for one in arms)
        and _tiers(spec) == _tiers(before)
        and spec.generator == before.generator
    )


def _tiers(spec: BenchmarkRunSpec) -> object:
    # How many connections Postgres takes is what an experiment changes of them, and says.
    wire = spec.topology.to_wire()
    wire.get("postgres", {}).pop("maxConnections", None)
    return wire
