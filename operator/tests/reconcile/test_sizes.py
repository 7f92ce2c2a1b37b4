"""Postgres has the CPU that each server asks for while it is measured, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from laptime.api.results import TrialOutcome
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ServerState, State
from laptime.measure import Altered
from laptime.reconcile.turns import Turns, cap_exceeded

from .simulated_cluster import START
from .test_deadlines import LONGEST, over, until
from .test_decide import run_to_the_end, spec_of
from .world import World


def sized(own: str = "2", shared: str | None = "1", **more: Any) -> BenchmarkRunSpec:
    """Return a run of two servers, of which the second has a Postgres with other CPU."""
    document = spec_of(2, 1, 3, **more).to_wire()
    postgres = {"resources": {"cpu": shared}} if shared else {}
    document["topology"] = {"postgres": postgres}
    document["servers"][1]["topology"] = {"postgres": {"cpu": own}}
    return BenchmarkRunSpec.model_validate(document)


def cores_at_each_start(world: World) -> dict[str, float | None]:
    """Run to the end; return what was in force when each Job of a trial was made, by server."""
    found: dict[str, set[float | None]] = {}
    servers = {one.name: one.server for one in world.trials}
    seen = len(world.jobs_started)
    while not over(world):
        world.step()
        for job in world.jobs_started[seen:]:
            if job in servers:
                (postgres,) = [one for one in world.observe().pods_of("postgres") if one.live]
                found.setdefault(servers[job], set()).add(postgres.cpu_in_force)
        seen = len(world.jobs_started)
        world.advance()
        assert world.now - START < LONGEST, world.run.status
    return {server: of.pop() for server, of in found.items() if len(of) == 1}


def test_each_trial_begins_with_what_its_server_asks_for() -> None:
    world = World(sized(), Random(1))
    assert cores_at_each_start(world) == {"s0": 1.0, "s1": 2.0}
    assert world.run.status.state is State.SUCCEEDED
    # The same pod all the time.
    assert len({name for name, _ in world.resizes}) == 1


def test_a_run_whose_servers_all_have_the_same_changes_no_pod() -> None:
    document = sized().to_wire()
    del document["servers"][1]["topology"]
    world = World(BenchmarkRunSpec.model_validate(document), Random(1))
    run_to_the_end(world)
    assert world.resizes == []


@pytest.mark.parametrize("seed", range(6))
def test_an_operator_that_is_killed_measures_nobody_with_another_ones_cpu(seed: int) -> None:
    world = World(sized(), Random(seed))
    world.kills = 0.05
    assert cores_at_each_start(world) == {"s0": 1.0, "s1": 2.0}


def test_a_postgres_that_is_made_anew_gets_what_its_server_asks_for() -> None:
    world = World(sized(), Random(4))
    until(world, lambda world: len(world.results_written) == 2)
    (postgres,) = [one for one in world.observe().pods_of("postgres") if one.live]
    world.pods[postgres.name] = replace(world.pods[postgres.name], deleting_since=world.now)
    assert cores_at_each_start(world) == {"s0": 1.0, "s1": 2.0}


def test_a_pod_that_only_has_the_labels_of_a_postgres_is_left_alone() -> None:
    world = World(sized(), Random(2))
    until(world, lambda world: len(world.results_written) == 1)
    (postgres,) = [one for one in world.observe().pods_of("postgres") if one.live]
    theirs = replace(postgres, name="theirs", owner="shop", created=world.now, cpu=None)
    world.pods["theirs"] = theirs
    world.deployments["shop"] = replace(world.deployments["demo-postgres"], name="shop")
    until(world, over)
    assert "theirs" not in {name for name, _ in world.resizes}
    assert world.resizes


def test_more_than_a_node_has_is_said_and_the_others_are_measured() -> None:
    world = World(sized("8"), Random(1))
    world.cores = 4.0
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert second.reason == "TierNotResized"
    assert second.message is not None
    assert second.message.startswith(
        "Postgres has not got the 8 CPU that it has for server s1: Infeasible: Node didn't have"
    )
    measured = world.observe().results.values()
    assert {one.server for one in measured if one.outcome is TrialOutcome.MEASURED} == {"s0"}
    assert len(measured) == 3


def test_a_kubelet_that_says_nothing_of_it_holds_nothing_up_for_ever() -> None:
    world = World(sized(), Random(1))
    world.tells_cores = False
    until(world, over)
    assert world.run.status.state is State.FAILED
    assert all(one.reason == "TierNotResized" for one in world.run.status.servers or [])


def test_what_the_run_itself_changes_is_no_doubt_about_a_trial() -> None:
    world = World(sized(), Random(1))
    until(world, lambda world: any(one.component == "postgres" for one in world.pods.values()))
    changed = (("a CPU limit of 2", "1"), ("a CPU request of 2", "1"), ("no memory limit", "1Gi"))
    for name, pod in world.pods.items():
        world.pods[name] = replace(pod, altered=Altered(main="main", resources=changed))
    until(world, over)
    reasons = {why for one in world.observe().results.values() for why in one.validity_reasons}
    said = [why for why in reasons if why.startswith("the cluster")]
    assert said == ["the cluster gave Postgres no memory limit, and 1Gi was asked for"]


@pytest.mark.parametrize(("cpu", "fits"), [("5", True), ("4900m", False)])
def test_a_cap_counts_the_most_that_postgres_has_in_any_trial(cpu: str, fits: bool) -> None:
    document = sized("3").to_wire()
    for server in document["servers"]:
        server["resources"] = {"cpu": "1"}
    document["generator"] = {"resources": {"cpu": "1"}}
    turns = Turns.from_wire({"caps": {"*": {"cpu": cpu}}})
    exceeded = cap_exceeded(BenchmarkRunSpec.model_validate(document), "team", turns)
    assert (exceeded is None) == fits
    assert fits or "it asks for 5 cores in the pods of a trial" in (exceeded or "")
