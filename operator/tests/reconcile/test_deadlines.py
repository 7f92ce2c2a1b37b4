"""No run holds the lane for ever, whatever of the cluster stands still, and in whatever state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from laptime.api import doubts
from laptime.api.attempts import Fault
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Condition, ConditionStatus, ConditionType, State
from laptime.reconcile.actions import Delete, Fold
from laptime.reconcile.decide import decide
from laptime.reconcile.readings import Patience
from laptime.reconcile.sightings import AtWork
from laptime.reconcile.views import ContainerView, Observed, PodView

from .simulated_cluster import START
from .test_decide import run_to_the_end, spec_of
from .world import World

LONGEST = timedelta(minutes=20)


def until(world: World, reached: Callable[[World], Any]) -> None:
    while not reached(world):
        waits = not world.step().actions
        world.advance()
        if world.dead and waits:
            # Nothing more happens by itself: only deadlines come.
            world.now += timedelta(seconds=5)
        assert world.now - world.was_set - START < LONGEST, world.run.status


def test_a_quota_that_keeps_a_generator_back_for_a_while_loses_no_attempt() -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    until(world, lambda world: world.jobs_started and "trial" in world.jobs_started[-1])
    world.dead = {"Job"}
    held_back = world.now + timedelta(seconds=20)
    while world.now < held_back:
        world.step()
        world.advance()
    assert not measuring(world)
    world.dead = set()
    until(world, over)
    assert [one.attempt for one in world.observe().results.values()] == [1, 1]


def test_a_generator_that_never_gets_a_pod_is_lost_to_the_cluster_and_not_to_itself() -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    until(world, lambda world: world.jobs_started and "trial" in world.jobs_started[-1])
    world.dead = {"Job"}
    until(world, lambda world: world.run.status.lost_attempts)
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("PodMissing", Fault.CLUSTER)
    assert "the generator has no pod: kubectl describe job demo-trial-002 says why" in lost.message


def warmed_up(warmup: str, repetitions: int = 2) -> BenchmarkRunSpec:
    load = {"name": "l0", "closed": {"connections": 2, "duration": "2s"}, "warmup": warmup}
    return BenchmarkRunSpec.model_validate(
        {**spec_of(2, 1, repetitions).to_wire(), "loads": [load]}
    )


def over(world: World) -> bool:
    return world.run.status.state is not None and world.run.status.state.terminal


def said(world: World, type_: ConditionType) -> Condition:
    found = world.run.status.condition(type_)
    assert found is not None
    return found


def in_state(state: State) -> Callable[[World], bool]:
    return lambda world: world.run.status.state is state


def measuring(world: World) -> bool:
    return any(pod.component == "generator" for pod in world.pods.values())


def test_a_run_says_how_it_ended_when_its_report_is_there() -> None:
    """`kubectl wait --for=condition=Succeeded`, and the report right after it."""
    world = World(spec_of(1, 1, 1), Random(4))
    until(world, in_state(State.FINISHING))

    def ended(world: World) -> bool:
        return said(world, ConditionType.SUCCEEDED).status is not ConditionStatus.UNKNOWN

    assert not ended(world)
    until(world, ended)
    assert world.run.status.state is State.SUCCEEDED
    assert world.run.status.results_config_map == "demo-results"


STATES: dict[str, Callable[[World], bool]] = {
    "Deploying": in_state(State.DEPLOYING),
    "Verifying": in_state(State.VERIFYING),
    "Running": in_state(State.RUNNING),
    "measuring": measuring,
    "Finishing": in_state(State.FINISHING),
}


@pytest.mark.parametrize("when", STATES)
@pytest.mark.parametrize("dead", ["Deployment", "Job", "pods", "deletion", "all of them"])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_although_a_part_of_the_cluster_stands_still(
    when: str, dead: str, seed: int
) -> None:
    world = World(spec_of(2, 1, 2), Random(seed))
    until(world, STATES[when])
    world.dead = {"Deployment", "Job", "pods", "deletion"} if dead == "all of them" else {dead}
    until(world, over)
    assert said(world, ConditionType.SUCCEEDED).status is not ConditionStatus.UNKNOWN
    assert said(world, ConditionType.SUCCEEDED).message


def test_what_cannot_be_deleted_is_said_and_the_rest_is_cleaned_up() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    until(world, in_state(State.FINISHING))
    # Nobody has told it to end, and nobody will.
    pod = PodView("left-over", "haproxy", world.now, owner="somebody")
    while not over(world):
        world.pods[pod.name] = pod
        world.step()
        world.advance()
    assert world.run.status.state is State.SUCCEEDED
    cleaned = said(world, ConditionType.CLEANED_UP)
    assert (cleaned.status, cleaned.reason) == (ConditionStatus.FALSE, "ObjectsLeft")
    assert "Pod left-over" in cleaned.message
    assert not {**world.deployments, **world.jobs, **world.services}
    assert "demo-results" in world.config_maps


def test_a_run_with_nothing_left_over_says_nothing_of_it() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    run_to_the_end(world)
    assert world.run.status.condition(ConditionType.CLEANED_UP) is None
    assert world.run.status.step_started_at is None


def test_what_is_being_deleted_is_not_deleted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others' finalizers hold it: a network plugin's, a backup's."""
    world = World(spec_of(1, 1, 1), Random(1))
    until(world, measuring)
    observe, held = world.observe, {"demo-haproxy": "hash"}
    going = {("Service", "demo-haproxy"), ("NetworkPolicy", "demo")}

    def holding() -> Observed:
        found = observe()
        services = {**found.services, **held}
        return replace(
            found, services=services, network_policies={"demo": None}, deleting=frozenset(going)
        )

    monkeypatch.setattr(world, "observe", holding)
    deleted: list[tuple[str, str]] = []
    while not over(world):
        actions = world.step().actions
        deleted += [(one.kind, one.name) for one in actions if isinstance(one, Delete)]
        world.advance()
        assert world.now - START < LONGEST, world.run.status
    assert not going & set(deleted)
    assert ("Service", "demo-postgres") in deleted
    # It is waited for all the same, and named.
    assert "Service demo-haproxy" in said(world, ConditionType.CLEANED_UP).message


def test_results_that_cannot_be_stored_end_the_run_with_that_reason() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    until(world, lambda world: world.results_written and not world.observe().unread)
    world.refuses = {"ConfigMap"}
    folded_when_over = False
    while not over(world):
        decision = world.step()
        folds = any(isinstance(one, Fold) for one in decision.actions)
        folded_when_over |= folds and decision.status.state in (State.SUCCEEDED, State.FAILED)
        world.advance()
        assert world.now - START < LONGEST, world.run.status
    # From there on what was folded before is deleted, beside everything else.
    assert not folded_when_over
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert (world.run.status.state, succeeded.reason) == (State.FAILED, "ResultsNotStored")
    assert "ConfigMap demo-results" in succeeded.message
    assert "ConfigMap: not here" in succeeded.message
    assert world.run.status.results_config_map is None
    assert not {**world.deployments, **world.jobs, **world.services}


def test_readings_that_never_come_end_the_run_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    observe = world.observe

    def without_readings() -> Observed:
        found = observe()
        return replace(found, readings={}, unread=frozenset(found.results))

    monkeypatch.setattr(world, "observe", without_readings)
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def test_the_last_readings_are_waited_for_as_long_as_a_slow_prometheus_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    observe, measured = world.observe, list[datetime]()

    def late() -> Observed:
        found = observe()
        if found.results and not measured:
            measured.append(world.now)
        waited = (world.now - measured[0]).total_seconds() if measured else 0.0
        if waited > Patience().fetched_seconds:
            return found
        return replace(found, readings={}, unread=frozenset(found.results))

    monkeypatch.setattr(world, "observe", late)
    until(world, over)
    assert world.readings_written


def test_a_tier_that_never_is_as_wanted_ends_the_run() -> None:
    """Somebody's controller changes back what the run applies."""
    world = World(spec_of(1, 1, 1), Random(1))
    while not over(world):
        world.step()
        world.services = dict.fromkeys(world.services, "another")
        world.advance()
        assert world.now - START < LONGEST
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert succeeded.reason == "NotDeployed"
    assert "Service demo-" in succeeded.message


def test_a_tier_that_never_is_as_wanted_since_that_is_refused_ends_the_run_with_the_refusal() -> (
    None
):
    world = World(spec_of(1, 1, 1), Random(1))
    # As of a webhook that does not answer.
    world.refusal_passes = 1e6
    until(world, lambda world: "demo-haproxy" in world.deployments)
    world.services = dict.fromkeys(world.services, "another")
    world.refuses = {"Service"}
    until(world, over)
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert succeeded.reason == "NotDeployed"
    assert succeeded.message == "the tiers did not come to stand: Service: not here"


def test_a_generator_that_never_ends_fails_its_trial() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    until(world, measuring)
    running = (ContainerView("main", ready=True, running=True, running_since=world.now),)
    world.pods = {
        pod.name: replace(pod, phase="Running", ready=True, containers=running)
        for pod in world.pods.values()
    }
    world.dead = {"pods", "Job"}
    until(world, lambda world: world.results_written)
    (result,) = world.observe().results.values()
    assert [one.reason for one in result.lost_attempts] == ["GeneratorTimedOut"]
    assert (result.outcome, result.fault) == (TrialOutcome.FAILED, Fault.NODE)


@pytest.mark.parametrize("when", STATES)
@pytest.mark.parametrize("seed", range(2))
def test_a_kubelet_that_stood_still_for_a_minute_costs_no_server_anything(
    when: str, seed: int
) -> None:
    world = World(spec_of(2, 1, 2), Random(seed))
    until(world, STATES[when])
    world.dead, thaws = {"kubelet"}, world.now + timedelta(seconds=60)
    until(world, lambda world: world.now >= thaws or over(world))
    world.dead = set()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    results = world.observe().results.values()
    assert [one.outcome for one in results] == [TrialOutcome.MEASURED] * 4


def test_a_kubelet_that_never_comes_back_ends_the_run_and_blames_no_server() -> None:
    world = World(spec_of(2, 1, 2), Random(1))
    until(world, measuring)
    world.dead = {"kubelet"}
    until(world, over)
    assert world.run.status.state is State.FAILED
    assert {one.fault for one in world.observe().results.values()} == {Fault.NODE}
    assert said(world, ConditionType.SUCCEEDED).reason == "InfrastructureFailed"
    assert "by no fault of their servers" in said(world, ConditionType.SUCCEEDED).message


def lost_beside_generators(servers: int, place: slice) -> World:
    """Return a run in which generators have no room beside some servers, by the order of trials."""
    world = World(spec_of(servers, 1, 1), Random(1))
    until(world, lambda world: world.jobs_started)
    world.no_room = {one.name for one in world.trials[place]}
    until(world, over)
    return world


@pytest.mark.parametrize("place", [slice(0, 2), slice(1, 3), slice(2, 4)])
def test_two_servers_that_never_fit_beside_the_generator_cost_the_others_nothing(
    place: slice,
) -> None:
    world = lost_beside_generators(4, place)
    results = world.observe().results
    assert {name for name, one in results.items() if one.lost} == world.no_room
    assert sum(one.outcome is TrialOutcome.MEASURED for one in results.values()) == 2
    assert said(world, ConditionType.SUCCEEDED).reason != "InfrastructureFailed"


@pytest.mark.parametrize("first", [0, 1])
def test_three_servers_that_never_fit_end_the_run(first: int) -> None:
    world = lost_beside_generators(5, slice(first, 5))
    results = sorted(world.observe().results.values(), key=lambda one: one.ordinal)
    assert [one.lost for one in results] == [*[False] * first, *[True] * 3]
    assert said(world, ConditionType.SUCCEEDED).reason == "InfrastructureFailed"


def test_a_server_that_does_not_end_makes_the_next_trial_repeat_and_overlaps_none() -> None:
    world = World(warmed_up("10s", 1), Random(3))
    until(world, lambda world: measuring(world) and not world.results_written)
    (slow,) = (pod for pod in world.pods.values() if pod.component == "server" and not pod.deleting)
    world.stubborn.add(slow.name)
    until(world, lambda world: world.run.status.lost_attempts)
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("PodsOverlapped", Fault.CLUSTER)
    assert slow.name in lost.message
    again = f"{lost.trial}-attempt-2"
    patient = world.now + timedelta(seconds=60)
    until(world, lambda world: world.now >= patient)
    assert again not in world.jobs_started
    world.stubborn.clear()
    until(world, lambda world: again in world.jobs_started)
    assert slow.name not in world.pods
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    (second,) = (one for one in world.observe().results.values() if one.ordinal == 2)
    assert (second.attempt, [one.reason for one in second.lost_attempts]) == (
        2,
        ["PodsOverlapped"],
    )
    (row,) = (one for one in world.run.status.results or [] if one.server == second.server)
    assert row.lost_attempts == 1


@pytest.mark.parametrize("ahead", [-90, 0, 90])
def test_an_overlap_that_is_over_before_the_trial_is_not_missed_whatever_the_clocks_say(
    ahead: int,
) -> None:
    world = World(warmed_up("10s", 1), Random(3))
    world.others_clock = timedelta(seconds=ahead)
    until_a_server_is_measured_that_will_not_end(world)
    until(
        world,
        lambda world: any(
            one.component == "generator" and one.running_since and not one.deleting
            for one in world.pods.values()
        ),
    )
    world.dead = {"pods"}
    wait(world, timedelta(seconds=14))
    world.stubborn.clear()
    world.dead = set()
    until(world, over)
    (second,) = (one for one in world.observe().results.values() if one.ordinal == 2)
    assert [one.reason for one in second.lost_attempts] == ["PodsOverlapped"]


def test_a_run_in_which_a_pod_has_ended_too_late_once_waits_for_the_next_one() -> None:
    world = World(warmed_up("10s"), Random(3))
    for _ in range(3):
        slow = until_a_server_is_measured_that_will_not_end(world)
        wait(world, timedelta(seconds=30))
        assert slow in world.pods
        world.stubborn.clear()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    lost = [
        one.reason for result in world.observe().results.values() for one in result.lost_attempts
    ]
    assert lost == ["PodsOverlapped"]


@pytest.mark.parametrize(("warmup", "waits"), [("1s", True), ("10s", False)])
def test_a_short_warmup_begins_when_the_pods_before_it_have_ended(warmup: str, waits: bool) -> None:
    world = World(warmed_up(warmup), Random(3))
    slow = until_a_server_is_measured_that_will_not_end(world)
    begun = len(world.jobs_started)
    wait(world, timedelta(seconds=10))
    assert slow in world.pods
    assert (len(world.jobs_started) == begun) is waits
    world.stubborn.clear()
    until(world, over)
    lost = [one.lost_attempts for one in world.observe().results.values()]
    assert not waits or not any(lost)


@pytest.mark.parametrize("profiled", [False, True])
# The file of SQLite is each pod's own.
@pytest.mark.parametrize(
    ("topology", "waits"), [({"postgres": {}}, True), ({"database": "sqlite"}, False)]
)
def test_rows_are_brought_back_when_nobody_is_left_who_writes_them(
    topology: dict[str, Any], waits: bool, profiled: bool
) -> None:
    """The scenario's `reset` of a trial is for nothing where the server before writes after it.

    So is that of a profile, which comes after the last trial.
    """
    wire = warmed_up("10s").to_wire()
    spec = wire | {
        "scenario": "tasks",
        "loads": [{**wire["loads"][0], "endpoints": ["create"]}],
        "servers": [
            {"name": name, "image": "mine:1", "profile": profiled}
            for name in ("s0", "s1")[profiled:]
        ],
        "repetitions": 1,
        "topology": topology,
    }
    world = World(BenchmarkRunSpec.model_validate(spec), Random(3))
    slow = until_a_server_is_measured_that_will_not_end(world)
    begun = len(world.jobs_started)
    wait(world, timedelta(seconds=10))
    assert slow in world.pods
    assert (len(world.jobs_started) == begun) is waits
    world.stubborn.clear()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def lasting(duration: str) -> BenchmarkRunSpec:
    load = {"name": "l0", "closed": {"connections": 2, "duration": duration}, "warmup": "10s"}
    return BenchmarkRunSpec.model_validate({**spec_of(1, 1, 2).to_wire(), "loads": [load]})


def until_the_node_of_a_generator_is_silent(world: World, after: timedelta) -> str:
    """Go on until the first trial is lost, whose server and generator go on; return its attempt 2.

    They have run for so long by then.
    """
    until(world, generating)
    world.dead = {"pods"}
    wait(world, after)
    world.dead = set()
    for pod in [one for one in world.pods.values() if one.component in ("server", "generator")]:
        # As the node controller marks pods of a node that says nothing.
        world.pods[pod.name] = replace(pod, node="far", ready=False)
    world.silent = {"far"}
    until(world, lambda world: world.run.status.lost_attempts)
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("NodeLost", Fault.NODE)
    return f"{lost.trial}-attempt-2"


def generating(world: World) -> bool:
    return any(
        pod.component == "generator" and pod.running_since and not pod.deleting
        for pod in world.pods.values()
    )


def doubted_for_it(result: TrialResult) -> bool:
    return any(doubts.STILL_DRIVEN.said(reason) for reason in result.validity_reasons)


@pytest.mark.parametrize("killed", [False, True])
def test_a_generator_on_a_silent_node_that_goes_on_makes_the_next_attempt_doubtful(
    killed: bool,
) -> None:
    """It sends its load to the address that the next attempt's server has as well."""
    world = World(lasting("600s"), Random(3))
    again = until_the_node_of_a_generator_is_silent(world, timedelta(seconds=30))
    until(world, lambda world: again in world.jobs_started)
    if killed:
        # What is known of pods that should have ended long ago stands in the Job.
        world.new_operator()
    until(world, lambda world: world.results_written)
    (first,) = world.observe().results.values()
    assert [one.reason for one in first.lost_attempts] == ["NodeLost"]
    assert first.attempt == 2
    assert doubted_for_it(first), first.validity_reasons
    assert "its node far does not answer" in first.validity_reasons[-1]
    # No load goes on for longer than its Job may.
    world.now += timedelta(seconds=900)
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    second = next(one for one in world.observe().results.values() if one.ordinal == 2)
    assert (second.attempt, doubted_for_it(second)) == (1, False)


def test_a_generator_on_a_silent_node_that_must_soon_be_done_is_waited_for() -> None:
    world = World(lasting("2s"), Random(3))
    again = until_the_node_of_a_generator_is_silent(world, timedelta(seconds=80))
    until(world, lambda world: again in world.jobs_started)
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    first, second = sorted(world.observe().results.values(), key=lambda one: one.ordinal)
    assert [one.reason for one in first.lost_attempts] == ["NodeLost"]
    assert (first.attempt, second.attempt) == (2, 1)
    assert not doubted_for_it(first)
    assert not doubted_for_it(second)


def test_a_node_that_comes_back_with_its_generator_in_the_next_attempt_costs_that_attempt() -> None:
    """It was frozen, say: until its kubelet has ended them its pods go on with what they did."""
    world = World(lasting("600s"), Random(3))
    again = until_the_node_of_a_generator_is_silent(world, timedelta(seconds=30))
    until(world, lambda world: again in world.jobs_started and generating(world))
    world.dead, world.silent = {"pods"}, set()
    until(world, lambda world: not any(pod.node == "far" for pod in world.pods.values()))
    world.dead = set()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    first, second = sorted(world.observe().results.values(), key=lambda one: one.ordinal)
    assert [one.reason for one in first.lost_attempts] == ["NodeLost", "PodsOverlapped"]
    assert (first.attempt, second.attempt) == (3, 1)
    assert not doubted_for_it(first)


def test_a_node_that_comes_back_without_anything_to_send_costs_no_attempt() -> None:
    """So does one that somebody deletes: what was there is gone, and had no load any more."""
    world = World(lasting("600s"), Random(3))
    again = until_the_node_of_a_generator_is_silent(world, timedelta(seconds=30))
    until(world, lambda world: again in world.jobs_started)
    until(world, lambda world: world.results_written)
    world.now += timedelta(seconds=900)
    begun = len(world.jobs_started)
    until(world, lambda world: len(world.jobs_started) > begun and generating(world))
    assert any(pod.node == "far" for pod in world.pods.values())
    world.dead, world.silent = {"pods"}, set()
    until(world, lambda world: not any(pod.node == "far" for pod in world.pods.values()))
    world.dead = set()
    until(world, over)
    second = next(one for one in world.observe().results.values() if one.ordinal == 2)
    assert (second.attempt, doubted_for_it(second)) == (1, False)


def test_a_machine_that_slept_while_a_server_started_blames_nobody() -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    until(world, lambda world: any(one.component == "server" for one in world.pods.values()))
    world.dead = {"pods"}
    starting = (ContainerView("main", running=True, running_since=world.now),)
    world.pods = {
        pod.name: replace(pod, phase="Running", ready=False, containers=starting)
        if pod.component == "server"
        else pod
        for pod in world.pods.values()
    }
    world.step()
    world.set_clock(timedelta(minutes=10))
    world.step()
    world.dead = set()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    (result,) = world.observe().results.values()
    assert result.attempt == 1


@pytest.mark.parametrize("ended", [False, True], ids=["goes on", "ended by its Job"])
def test_a_machine_that_slept_through_a_deadline_blames_no_server(ended: bool) -> None:
    load = {"name": "l0", "closed": {"connections": 2, "requests": 50_000}}
    spec = BenchmarkRunSpec.model_validate({**spec_of(1, 1, 1).to_wire(), "loads": [load]})
    world = World(spec, Random(3))
    until(world, generating)
    world.dead = {"pods", "Job"}
    world.step()
    world.set_clock(timedelta(hours=2))
    name = world.jobs_started[-1]
    if ended:
        world.jobs[name] = replace(
            world.jobs[name], failed_reason="DeadlineExceeded", failed_message="active for too long"
        )
    world.step()
    world.dead = set()
    world.advance()
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    (result,) = world.observe().results.values()
    assert result.outcome is TrialOutcome.MEASURED
    assert [one.reason for one in result.lost_attempts] == ["GeneratorLost"] * ended


def test_a_clock_that_is_set_back_after_a_lost_attempt_costs_no_trial() -> None:
    world = World(spec_of(1, 1, 2), Random(3))
    until(world, generating)
    (generator,) = (one for one in world.pods.values() if one.component == "generator")
    del world.pods[generator.name]
    until(world, lambda world: world.run.status.lost_attempts)
    world.set_clock(timedelta(hours=-1))
    until(world, over)
    first, second = sorted(world.observe().results.values(), key=lambda one: one.ordinal)
    assert (first.outcome, second.outcome) == (TrialOutcome.MEASURED, TrialOutcome.MEASURED)
    assert (first.attempt, second.attempt) == (2, 1)


def wait(world: World, long: timedelta) -> None:
    end = world.now + long
    until(world, lambda world: world.now >= end)


def until_a_server_is_measured_that_will_not_end(world: World) -> str:
    """Go on until another server is measured; return its pod, which the kubelet does not end."""
    done = len(world.results_written)
    until(world, lambda world: measuring(world) and len(world.results_written) == done)
    (slow,) = (pod for pod in world.pods.values() if pod.component == "server" and not pod.deleting)
    world.stubborn.add(slow.name)
    until(world, lambda world: len(world.results_written) > done)
    return slow.name


def tier_of(world: World) -> PodView:
    return next(pod for pod in world.pods.values() if pod.component == "postgres")


def test_a_node_whose_clock_is_ahead_restarts_no_tier() -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    until(world, measuring)
    tier = tier_of(world)
    world.pods[tier.name] = replace(tier, last_started=world.now + timedelta(seconds=90))
    until(world, over)
    assert [one.attempt for one in world.observe().results.values()] == [1, 1]


def test_a_tier_that_is_started_again_is_noticed_whatever_its_clock_says() -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    until(world, measuring)
    tier = tier_of(world)
    again = (replace(tier.containers[0], restarts=1), *tier.containers[1:])
    behind = world.now - timedelta(seconds=90)
    world.pods[tier.name] = replace(tier, containers=again, last_started=behind)
    until(world, over)
    lost = [
        one.reason for result in world.observe().results.values() for one in result.lost_attempts
    ]
    assert lost == ["TierRestarted"]


def test_a_server_replaced_within_the_second_of_its_job_is_measured_again() -> None:
    """Creation times have whole seconds: the new pod looks as if it had always been there."""
    world = World(spec_of(1, 1, 2), Random(3))
    until(world, measuring)
    first = next(pod for pod in world.pods.values() if pod.component == "server")
    del world.pods[first.name]
    job = world.jobs[world.jobs_started[-1]]
    world.pods["another-one"] = replace(first, name="another-one", created=job.created)
    until(world, over)
    results = sorted(world.observe().results.values(), key=lambda one: one.ordinal)
    assert [one.reason for one in results[0].lost_attempts] == ["PodDeleted"]
    assert [one.attempt for one in results] == [2, 1]


def test_nothing_is_measured_before_it_is_known_which_pod_is() -> None:
    world = World(spec_of(2, 1, 2), Random(3))
    while not over(world):
        jobs = set(world.jobs)
        servers = {pod.trial for pod in world.pods.values() if pod.component == "server"}
        world.step()
        assert {world.jobs[name].trial or name for name in set(world.jobs) - jobs} <= servers
        world.advance()


def with_an_outage(before_pass: int, seconds: float, killed: bool) -> World:
    """Return a run at which nobody was at work for so long; `killed`: with a status just said."""
    world = World(spec_of(1, 2, 2), Random(5))
    while world.run.status.finished_at is None:
        if world.passes == before_pass:
            if killed:
                said = decide(world.run, world.observe(), world.context, world.now).status
                world.run = replace(world.run, status=world._stored(said))
            until_then = world.now + timedelta(seconds=seconds)
            while world.now < until_then:
                world.advance()
        world.step()
        world.advance()
        assert world.passes < 1000, world.run.status
    return world


@pytest.mark.parametrize(("seconds", "killed"), [(270, False), (360, True)])
def test_a_run_at_which_nobody_was_at_work_for_a_while_goes_on_as_if_nothing_was(
    seconds: float, killed: bool
) -> None:
    for number in range(with_an_outage(-1, 0, False).passes):
        world = with_an_outage(number, seconds, killed)
        where = f"before pass {number}", world.run.status
        assert world.run.status.state is State.SUCCEEDED, where
        results = world.observe().results.values()
        assert [one.outcome for one in results] == [TrialOutcome.MEASURED] * 4, where
        assert world.run.status.results_config_map == "demo-results", where


def test_the_time_of_a_step_is_counted_while_somebody_looks() -> None:
    at_work = AtWork()
    assert [at_work.look(now, now) for now in (1000.0, 1000.5, 1050.0)] == [0.0, 0.5, 50.0]
    # The API server was away.
    assert [at_work.look(now, now) for now in (1200.0, 1201.0)] == [0.0, 1.0]
    # The machine slept for an hour, in which one of the two clocks stands.
    assert [at_work.look(now, now + 3600.0) for now in (1202.0, 1203.0)] == [0.0, 1.0]
    # That clock was set back, which is no hour either.
    assert [at_work.look(now, now - 3600.0) for now in (1204.0, 1205.0)] == [0.0, 1.0]
