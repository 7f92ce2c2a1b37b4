"""Tiers have the CPU that each server asks for while it is measured, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from laptime.api.attempts import Fault
from laptime.api.resources import quantity
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ServerState, State
from laptime.api.topology import SIZED_TIERS
from laptime.measure import Altered
from laptime.reconcile.turns import Turns, cap_exceeded
from laptime.reconcile.views import ResizeRefused

from .simulated_cluster import START
from .test_deadlines import LONGEST, over, until
from .test_decide import run_to_the_end, spec_of
from .world import World

POSTGRES = ("postgres",)


def sized(own: str = "2", shared: str = "1", tiers: Sequence[str] = POSTGRES) -> BenchmarkRunSpec:
    """Return a run of two servers, of which the second has tiers with other CPU."""
    document = spec_of(2, 1, 3).to_wire()
    document["topology"] = {"postgres": {}} | {one: {"resources": {"cpu": shared}} for one in tiers}
    document["servers"][1]["topology"] = {one: {"cpu": own} for one in tiers}
    return BenchmarkRunSpec.model_validate(document)


def cores_at_each_start(world: World, tier: str = "postgres") -> dict[str, float | None]:
    """Run to the end; return what was in force when each Job of a trial was made, by server."""
    found: dict[str, set[float | None]] = {}
    servers = {one.name: one.server for one in world.trials}
    seen = len(world.jobs_started)
    while not over(world):
        world.step()
        for job in world.jobs_started[seen:]:
            if job in servers:
                (pod,) = [one for one in world.observe().pods_of(tier) if one.live]
                found.setdefault(servers[job], set()).add(pod.cpu_in_force)
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


@pytest.mark.parametrize("tier", ["pgbouncer", "haproxy"])
def test_pgbouncer_and_haproxy_are_changed_as_postgres_is(tier: str) -> None:
    for tiers in ((tier,), ("postgres", tier)):
        world = World(sized(tiers=tiers), Random(1))
        assert cores_at_each_start(world, tier) == {"s0": 1.0, "s1": 2.0}
        assert len({name for name, _ in world.resizes}) == len(tiers)


def test_a_tier_that_gets_less_makes_room_for_one_that_gets_more() -> None:
    document = sized(tiers=("postgres", "haproxy")).to_wire()
    for tier, shared, own in (("postgres", "500m", "2"), ("haproxy", "2", "500m")):
        document["topology"][tier] = {"resources": {"cpu": shared}}
        document["servers"][1]["topology"][tier] = {"cpu": own}
    world = World(BenchmarkRunSpec.model_validate(document), Random(1))
    world.cores = 2.5
    assert cores_at_each_start(world) == {"s0": 0.5, "s1": 2.0}
    assert world.run.status.state is State.SUCCEEDED
    assert len(world.results_written) == 6


def test_what_has_no_room_for_long_is_said_and_the_others_are_measured() -> None:
    world = World(sized(tiers=("postgres", "haproxy")), Random(1))
    world.cores = 3.0
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert (second.message or "").endswith("Deferred: Node didn't have enough resource: cpu")
    assert len(world.results_written) == 3


def test_of_two_tiers_the_one_that_gets_no_more_is_named() -> None:
    spec = sized(tiers=("postgres", "haproxy")).to_wire()
    spec["servers"][1]["topology"]["haproxy"]["cpu"] = "8"
    world = World(BenchmarkRunSpec.model_validate(spec), Random(1))
    world.cores = 4.0
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert (second.message or "").startswith(
        "HAProxy has not got the 8 CPU that it has for server s1: Infeasible"
    )
    assert len(world.results_written) == 3


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


@pytest.mark.parametrize("owner", ["shop", "demo-TIER-copy-5d9c"])
@pytest.mark.parametrize("tier", SIZED_TIERS)
def test_a_pod_that_only_has_the_labels_of_a_tier_is_left_alone(tier: str, owner: str) -> None:
    world = World(sized(tiers=[tier]), Random(2))
    until(world, lambda world: len(world.results_written) == 1)
    (ours,) = [one for one in world.observe().pods_of(tier) if one.live]
    owner = owner.replace("TIER", tier)
    theirs = replace(ours, name="theirs", owner=owner, created=world.now, cpu=None)
    world.pods["theirs"] = theirs
    world.deployments[owner] = replace(world.deployments[f"demo-{tier}"], name=owner)
    until(world, over)
    assert "theirs" not in {name for name, _ in world.resizes}
    assert world.resizes


def claimed(world: World, tier: str) -> None:
    """Have a pod beside that of a tier whose owner is called as one that its Deployment makes."""
    (ours,) = [one for one in world.observe().pods_of(tier) if one.live]
    owner = f"demo-{tier}-5d9c"
    world.pods["theirs"] = replace(
        ours, name="theirs", owner=owner, created=world.now, cpu=2.0, cpu_request=2.0,
        cpu_in_force=2.0,
    )  # fmt: skip
    world.deployments[owner] = replace(world.deployments[f"demo-{tier}"], name=owner)


@pytest.mark.parametrize("tier", SIZED_TIERS)
def test_of_two_pods_that_say_that_they_are_a_tier_none_is_changed_or_believed(tier: str) -> None:
    world = World(sized(tiers=[tier]), Random(2))
    until(world, lambda world: len(world.results_written) == 1)
    claimed(world, tier)
    resized = list(world.resizes)
    until(world, over)
    assert world.resizes == resized
    assert world.run.status.state is State.FAILED
    results = world.observe().results.values()
    assert len([one for one in results if one.outcome is TrialOutcome.MEASURED]) == 1
    failed = [one for one in results if one.outcome is TrialOutcome.FAILED]
    # What one asks for is the first that the tier has not got, and both would be on two pods.
    assert failed
    for one in failed:
        assert (one.reason, one.fault) == ("ReplicasChanged", Fault.CLUSTER)
        assert f"2 pods where the run has one: demo-{tier}-" in (one.message or "")


def test_a_second_pod_that_goes_again_costs_nothing() -> None:
    world = World(sized(), Random(2))
    until(world, lambda world: len(world.results_written) == 1)
    claimed(world, "postgres")
    for _ in range(3):
        world.step()
        world.advance()
    del world.pods["theirs"], world.deployments["demo-postgres-5d9c"]
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert len(world.results_written) == 6


@pytest.mark.parametrize("place", [0, 1])
def test_more_than_a_node_has_is_said_and_the_others_are_measured(place: int) -> None:
    document = sized("2").to_wire()
    greedy = {"name": "greedy", "preset": "axum-sqlx", "topology": {"postgres": {"cpu": "8"}}}
    document["servers"].insert(place, greedy)
    document["baseline"] = "s0"
    world = World(BenchmarkRunSpec.model_validate(document), Random(1))
    world.cores = 4.0
    until(world, over)
    servers = {one.name: one for one in world.run.status.servers or []}
    assert (servers["greedy"].state, servers["greedy"].reason) == (
        ServerState.FAILED,
        "TierNotResized",
    )
    assert (servers["greedy"].message or "").startswith(
        "Postgres has not got the 8 CPU that it has for server greedy: Infeasible: Node didn't have"
    )
    # What was said of it is not taken for what is said of the next one.
    measured = world.observe().results.values()
    assert {one.server for one in measured if one.outcome is TrialOutcome.MEASURED} == {"s0", "s1"}
    assert len(measured) == 6


def test_a_kubelet_that_says_nothing_of_it_costs_those_alone_who_ask_for_more() -> None:
    world = World(sized(), Random(1))
    world.tells_cores = False
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert second.reason == "TierNotResized"
    assert len(world.results_written) == 3


@pytest.mark.parametrize("may_pass", [False, True])
def test_what_the_api_server_refuses_costs_those_alone_who_ask_for_it(may_pass: bool) -> None:
    world = World(sized(), Random(1))
    world.resize_refused = ResizeRefused("", "2", "maximum cpu usage per Pod is 1", may_pass)
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert second.message is not None
    assert second.message.endswith("the API server refuses it: maximum cpu usage per Pod is 1")
    assert len(world.results_written) == 3
    assert may_pass or len(world.resizes) == 1


def test_a_quota_that_was_full_once_is_held_against_nobody() -> None:
    world = World(sized(), Random(1))
    world.resize_refused = ResizeRefused("", "2", "exceeded quota: team", may_pass=True)
    until(world, lambda world: world.resizes)
    world.resize_refused = None
    until(world, lambda world: len(world.results_written) == 1)
    # From here on a server takes longer to start than a quota is waited for.
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert len(world.results_written) == 6


def test_a_quota_that_is_full_for_two_trials_ends_the_tries_of_that_server_alone() -> None:
    """Under that load, as whatever else a run asks for in vain."""
    world = World(sized().model_copy(update={"repetitions": 5}), Random(1))
    until(world, lambda world: sum("trial" in one for one in world.jobs_started) == 1)
    world.resize_refused = ResizeRefused("", "2", "exceeded quota: team", may_pass=True)

    def failed() -> list[TrialResult]:
        results = world.observe().results.values()
        return [one for one in results if one.outcome is TrialOutcome.FAILED]

    until(world, lambda _: len(failed()) == 2)
    world.resize_refused = None
    until(world, over)
    assert {(one.server, one.reason, one.fault) for one in failed()} == {
        ("s1", "TierNotResized", Fault.RUN)
    }
    measured = [one for one in world.observe().results.values() if one not in failed()]
    assert sum(one.server == "s0" for one in measured) == 5
    assert len(failed()) == 2
    assert sum(one.server == "s1" for one in measured) < 3
    assert world.run.status.state is State.SUCCEEDED


def test_a_quota_that_is_full_for_one_trial_costs_that_trial_alone() -> None:
    world = World(sized().model_copy(update={"repetitions": 5}), Random(1))
    until(world, lambda world: sum("trial" in one for one in world.jobs_started) == 1)
    world.resize_refused = ResizeRefused("", "2", "exceeded quota: team", may_pass=True)
    until(world, lambda world: any(one.fault for one in world.observe().results.values()))
    world.resize_refused = None
    until(world, over)
    outcomes = [one.outcome for one in world.observe().results.values()]
    assert (len(outcomes), outcomes.count(TrialOutcome.FAILED)) == (10, 1)


def test_a_profile_whose_tier_is_not_resized_any_more_is_given_up_and_holds_no_lane() -> None:
    document = sized().to_wire()
    document["servers"][1]["profile"] = True
    world = World(BenchmarkRunSpec.model_validate(document), Random(1))
    until(world, lambda world: len(world.results_written) == 6)
    # Of the last trial it may still be as the profile needs it.
    world.resize_refused = ResizeRefused("", "2", "exceeded quota: team", may_pass=True)
    (postgres,) = [one for one in world.observe().pods_of("postgres") if one.live]
    world.pods[postgres.name] = replace(postgres, cpu=1.0, cpu_request=1.0, cpu_in_force=1.0)
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert len(world.profiles_written) == 1


def test_what_somebody_else_changes_again_and_again_is_said() -> None:
    world = World(sized(), Random(1))
    world.stubborn_cores = 1.0
    until(world, over)
    first, second = world.run.status.servers or []
    assert (first.state, second.state) == (ServerState.VERIFIED, ServerState.FAILED)
    assert second.reason == "TierNotResized"
    assert (second.message or "").endswith("it has 1, however often it is changed")


def test_a_driver_that_rounds_to_hundredths_is_waited_for_in_vain_by_nobody() -> None:
    world = World(sized("333m", "250m"), Random(1))
    world.rounds_in_force = True
    assert cores_at_each_start(world) == {"s0": 0.25, "s1": 0.34}


def test_a_run_without_sizes_waits_for_no_pod_of_before_that_it_did_not_wait_for() -> None:
    document = spec_of(2, 1, 2).to_wire()
    document["topology"] = {"postgres": {"resources": {"cpu": "1"}}}
    document["loads"][0]["warmup"] = "10s"
    world = World(BenchmarkRunSpec.model_validate(document), Random(3))
    until(world, lambda world: len(world.results_written) == 1)
    slow = [one.name for one in world.observe().pods_of("server") if one.live]
    world.stubborn.update(slow)
    until(world, lambda world: sum("trial" in one for one in world.jobs_started) == 2)
    assert any(name in world.pods for name in slow)


def test_less_than_a_thousandth_of_a_core_is_no_difference() -> None:
    # The API server keeps 334m of it.
    world = World(sized("0.3333", "0.25"), Random(1))
    world.rounds_cores = True
    assert cores_at_each_start(world) == {"s0": 0.25, "s1": 0.334}
    assert len(world.resizes) < 8


def test_a_pod_that_somebody_resizes_in_mid_trial_is_doubted() -> None:
    world = World(sized(), Random(1))
    until(world, lambda world: sum("trial" in one for one in world.jobs_started) == 1)
    (postgres,) = [one for one in world.pods.values() if one.component == "postgres"]
    world.pods[postgres.name] = replace(postgres, cpu=5.0, altered=Altered(main="main"))
    until(world, lambda world: world.results_written)
    (result,) = world.observe().results.values()
    said = [why for why in result.validity_reasons if why.startswith("the cluster")]
    wanted = 1 if result.server == "s0" else 2
    assert said == [f"the cluster gave Postgres a CPU limit of 5, and {wanted} was asked for"]


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
@pytest.mark.parametrize("tier", SIZED_TIERS)
def test_a_cap_counts_the_most_that_a_tier_has_in_any_trial(
    tier: str, cpu: str, fits: bool
) -> None:
    document = sized("3", tiers=[tier]).to_wire()
    document["topology"].setdefault("postgres", {}).setdefault("resources", {"cpu": "1m"})
    if tier != "postgres":
        cpu = f"{int(1000 * quantity(cpu)) + 1}m"
    for server in document["servers"]:
        server["resources"] = {"cpu": "1"}
    document["generator"] = {"resources": {"cpu": "1"}}
    turns = Turns.from_wire({"caps": {"*": {"cpu": cpu}}})
    exceeded = cap_exceeded(BenchmarkRunSpec.model_validate(document), "team", turns)
    assert (exceeded is None) == fits
    assert fits or "it asks for 5" in (exceeded or "")
