"""Whatever happens, a run comes to an end, and each trial is counted exactly once."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.attempts import MOST_ATTEMPTS, Fault, attempt_name, trial_of
from laptime.api.results import RowState, TrialOutcome
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, Order, RunStatus, State
from laptime.catalog import Feeder, scenarios
from laptime.cli.progress import warnings
from laptime.manifests.context import Network
from laptime.manifests.result import readings_name
from laptime.manifests.tiers import tier_objects
from laptime.plan import Lead, Leads, plan_trials
from laptime.reconcile.actions import Apply
from laptime.reconcile.decide import decide
from laptime.reconcile.stages import deploy
from laptime.reconcile.views import ContainerView, PodView, parse_time

from .generators import generator_log
from .world import World

MANY_PASSES = 1000


def spec_of(servers: int, loads: int, repetitions: int, **more: object) -> BenchmarkRunSpec:
    presets = ["fastapi-sync", "fastapi-async", "axum-sqlx"]
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": f"s{n}", "preset": presets[n % 3]} for n in range(servers)],
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}},
            "loads": [
                {"name": f"l{n}", "closed": {"connections": 2, "duration": "2s"}}
                for n in range(loads)
            ],
            "repetitions": repetitions,
            **more,
        }
    )


def altered(**changes: object) -> BenchmarkRunSpec:
    """Return the spec of a run with one server and one load, with other parts."""
    return BenchmarkRunSpec.model_validate({**spec_of(1, 1, 1).to_wire(), **changes})


def until_a_generator_runs(repetitions: int = 1) -> tuple[World, PodView]:
    """Return the world of a run of one server and load, and the pod of its first generator."""
    world = World(spec_of(1, 1, repetitions), Random(5))
    while not (running := world.observe().pods_of("generator")):
        world.step()
        world.advance()
    (generator,) = running
    return world, generator


def test_a_run_that_has_measured_goes_on_though_its_like_would_be_refused_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An earlier version of the operator began it, which had fewer reasons to refuse."""
    world, _ = until_a_generator_runs(repetitions=2)
    monkeypatch.setattr(deploy, "misfits", lambda *_: ["what nobody asked for before"])
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED


def test_a_run_of_which_nothing_was_begun_is_refused_for_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deploy, "misfits", lambda *_: ["what nobody can serve"])
    world = World(spec_of(1, 1, 1), Random(5))
    run_to_the_end(world)
    assert world.run.status.state is State.FAILED


def run_to_the_end(world: World) -> None:
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"


@pytest.mark.parametrize("loads", [1, 2])
def test_while_a_run_goes_on_nobody_is_the_fastest_before_all_were_measured_twice(
    loads: int,
) -> None:
    world = World(spec_of(2, loads, 3), Random(4), rates=lambda job: 1000.0 + len(job))
    named = []
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        status = world.run.status
        if status.results and not (status.state and status.state.terminal):
            twice = min(row.trials for row in status.results) >= 2
            named.append((twice, status.fastest, status.fastest_factor))
            if not twice:
                assert "is fastest" not in (status.verdict or "")
    assert {one for one in named if not one[0]} == {(False, None, None)}
    assert {one[1] for one in named if one[0]} == {"s0 or s1"}


@given(
    seed=st.integers(0, 2**32),
    servers=st.integers(1, 3),
    loads=st.integers(1, 2),
    repetitions=st.integers(1, 3),
    generators=st.integers(1, 2),
)
@settings(max_examples=25, deadline=None)
def test_an_undisturbed_run_measures_every_trial_once_in_the_planned_order(
    seed: int, servers: int, loads: int, repetitions: int, generators: int
) -> None:
    several = {"parallelism": generators}
    world = World(spec_of(servers, loads, repetitions, generator=several), Random(seed))
    run_to_the_end(world)
    planned = [trial.name for trial in world.trials]
    assert world.results_written == planned
    assert [job for job in world.jobs_started if job in planned] == planned
    assert world.run.status.state is State.SUCCEEDED
    rows = world.run.status.results or []
    assert [row.trials for row in rows] == [repetitions] * (servers * loads)


@pytest.mark.parametrize(
    ("begun", "order"),
    [
        (RunStatus(), Order.BALANCED),
        (RunStatus(state=State.QUEUED, seed=7), Order.DRAWN),
        (RunStatus(state=State.QUEUED, seed=7, order=Order.DRAWN), Order.DRAWN),
    ],
)
def test_a_run_is_measured_in_the_order_of_the_version_that_began_it(
    begun: RunStatus, order: Order
) -> None:
    spec = spec_of(3, 2, 4, seed=7)
    world = World(spec, Random(5))
    world.run = replace(world.run, status=begun)
    run_to_the_end(world)
    assert world.run.status.order is order
    planned = plan_trials("demo", spec, 7, order=order)
    results = world.observe().results
    assert world.results_written == [trial.name for trial in planned]
    assert [(results[one.name].server, results[one.name].load) for one in planned] == [
        (one.server, one.load) for one in planned
    ]


@given(
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([0.01, 0.05, 0.2]),
    servers=st.integers(1, 3),
    repetitions=st.integers(1, 3),
    generators=st.integers(1, 2),
)
@settings(max_examples=60, deadline=None)
def test_with_kills_crashes_and_lost_pods_a_run_still_ends_and_counts_no_trial_twice(
    seed: int, faults: float, servers: int, repetitions: int, generators: int
) -> None:
    several = {"parallelism": generators}
    world = World(spec_of(servers, 1, repetitions, generator=several), Random(seed), faults)
    run_to_the_end(world)
    planned = {trial.name for trial in world.trials}
    assert len(world.results_written) == len(set(world.results_written))
    started = [job for job in world.jobs_started if trial_of(job) in planned]
    assert len(started) == len(set(started)), "a generator was started twice"
    # Of each trial each attempt was made once, and no attempt without a reason.
    for result in world.observe().results.values():
        made = [job for job in started if trial_of(job) == result.trial]
        assert len(made) <= result.attempt <= MOST_ATTEMPTS
        assert len(result.lost_attempts) == result.attempt - 1
        assert all(one.fault.repeated and one.message for one in result.lost_attempts)
    # None is lost: each planned trial has its result, or its server is out and says why, or the
    # run was given up and says why.
    status = world.run.status
    succeeded = status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    missing = [trial for trial in world.trials if trial.name not in world.results_written]
    if succeeded.status is ConditionStatus.TRUE:
        assert not missing
    for trial in missing:
        rows = [row for row in status.results or [] if row.server == trial.server]
        explained = [row for row in rows if row.state is not RowState.MEASURED and row.reason]
        assert explained or succeeded.message


@given(seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_what_a_run_needed_is_gone_when_it_is_over_and_its_results_stay(seed: int) -> None:
    world = World(spec_of(2, 1, 2), Random(seed), faults=0.03)
    run_to_the_end(world)
    assert not world.deployments
    assert not world.jobs
    assert not world.services
    assert not world.secret
    assert set(world.config_maps) == {
        *world.results_written,
        *world.readings_written,
        "demo-results",
    }


@given(seed=st.integers(0, 2**32), faults=st.sampled_from([0.0, 0.1]))
@settings(max_examples=20, deadline=None)
def test_each_measured_trial_of_a_watched_run_has_its_readings_once(
    seed: int, faults: float
) -> None:
    world = World(spec_of(2, 1, 2), Random(seed), faults)
    run_to_the_end(world)
    results = world.observe().results.values()
    measured = [one.trial for one in results if one.outcome is TrialOutcome.MEASURED]
    assert sorted(world.readings_written) == sorted(map(readings_name, measured))


def test_a_run_that_nobody_watches_waits_for_no_readings() -> None:
    world = World(spec_of(1, 1, 2), Random(7), watched=False)
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert not world.readings_written


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_while_a_generator_runs_only_its_own_server_is_alive(seed: int) -> None:
    world = World(spec_of(3, 1, 2), Random(seed))
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        for generator in world.pods.values():
            if generator.component != "generator" or generator.phase != "Running":
                continue
            trial = next(t for t in world.trials if t.name == trial_of(generator.trial or ""))
            if trial.name in world.results_written:
                continue
            alive = {
                pod.server
                for pod in world.pods.values()
                if pod.component == "server" and not pod.deleting
            }
            assert alive <= {trial.server}


def crash(world: World, server: str) -> None:
    """Have a server end by itself whenever a generator sends it requests."""
    sent_to = {pod.trial for pod in world.pods.values() if pod.component == "generator"}
    for pod in list(world.pods.values()):
        if pod.component == "server" and pod.server == server and pod.trial in sent_to:
            crashed = ContainerView("main", restarts=1, exit_code=139, exit_reason="Error")
            world.pods[pod.name] = replace(pod, ready=False, containers=(crashed,))


def test_a_server_whose_trials_fail_twice_is_out_and_the_others_go_on() -> None:
    world = World(spec_of(2, 1, 4), Random(1))
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        crash(world, "s1")
        assert world.passes < MANY_PASSES
    by_server = {
        server: [
            world.observe().results[t.name].outcome
            for t in world.trials
            if t.server == server and t.name in world.results_written
        ]
        for server in ("s0", "s1")
    }
    assert by_server["s0"] == [TrialOutcome.MEASURED] * 4
    assert by_server["s1"] == [TrialOutcome.FAILED] * 2
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.status is ConditionStatus.FALSE
    assert "s1" in succeeded.message
    # The run is over: nothing is "so far", and the table says of the server why it has no figures.
    summary = world.observe().summary
    assert summary is not None
    assert summary.finished
    assert "so far" not in summary.verdict
    assert "s1 (Crashed)" in summary.verdict
    (row,) = (row for row in summary.rows if row.server == "s1")
    assert (row.state, row.reason) == (RowState.FAILED, "Crashed")
    assert {one.fault for one in world.observe().results.values() if one.server == "s1"} == {
        Fault.SERVER
    }


def start_again(world: World, told_after: float | None) -> None:
    """Have a server be started again under load; how it ended is said later, or never."""
    sent_to = {pod.trial for pod in world.pods.values() if pod.component == "generator"}
    for pod in list(world.pods.values()):
        if pod.component != "server" or pod.trial not in sent_to or pod.trial != FIRST_TRIAL:
            continue
        since = next((one.running_since for one in pod.containers if one.restarts), world.now)
        assert since is not None
        told = told_after is not None and (world.now - since).total_seconds() >= told_after
        again = ContainerView(
            "main",
            restarts=1,
            running=True,
            running_since=since,
            exit_code=139 if told else None,
            exit_reason="Error" if told else None,
        )
        world.pods[pod.name] = replace(pod, containers=(again,))


FIRST_TRIAL = "demo-trial-001"


@pytest.mark.parametrize("told_after", [None, 2.0], ids=["never told", "told"])
def test_a_restart_is_a_servers_fault_only_if_the_kubelet_saw_it_end(
    told_after: float | None,
) -> None:
    world = World(spec_of(2, 1, 3), Random(1))
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        start_again(world, told_after)
        assert world.passes < MANY_PASSES
    first = world.observe().results[FIRST_TRIAL]
    if told_after is None:
        assert first.outcome is TrialOutcome.MEASURED
        assert [(one.reason, one.fault) for one in first.lost_attempts] == [
            ("NodeLost", Fault.NODE)
        ]
        assert world.run.status.state is State.SUCCEEDED
    else:
        assert (first.outcome, first.reason, first.fault) == (
            TrialOutcome.FAILED, "Crashed", Fault.SERVER,
        )  # fmt: skip


def test_a_generator_on_a_node_that_is_gone_holds_up_nobody_and_its_trial_is_repeated() -> None:
    """Its pod is shown as running until the node comes back."""
    world, generator = until_a_generator_runs(repetitions=2)
    gone = replace(generator, deleting_since=world.now, phase="Running")
    world.stubborn.add(gone.name)
    while not (world.run.status.state and world.run.status.state.terminal):
        world.pods[gone.name] = gone
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES, f"the run hangs in {world.run.status}"
    first, second = (result for _, result in sorted(world.observe().results.items()))
    assert {first.outcome, second.outcome} == {TrialOutcome.MEASURED}
    assert (first.attempt, second.attempt) == (2, 1)
    assert [one.reason for one in first.lost_attempts] == ["PodDeleted"]


def test_the_second_and_the_third_attempt_wait_for_what_was_wrong_to_pass() -> None:
    world, generator = until_a_generator_runs()
    for attempt, seconds in ((2, 5), (3, 30)):
        del world.pods[generator.name]
        while len(lost := world.run.status.lost_attempts or []) < attempt - 1:
            world.step()
            world.advance()
        again, ends = attempt_name(FIRST_TRIAL, attempt), parse_time(lost[-1].lost_at)
        assert ends is not None
        ends += timedelta(seconds=seconds)
        # However soon a fresh server is ready.
        for _ in range(30):
            world.now = min(world.now, ends - timedelta(seconds=0.1))
            world.step()
            world.advance()
        assert again not in world.jobs_started
        world.now = ends
        world.step()
        assert again in world.jobs_started
        while not (running := world.observe().pods_of("generator")):
            world.step()
            world.advance()
        (generator,) = running
    run_to_the_end(world)
    assert [one.attempt for one in world.observe().results.values()] == [3]


def test_a_new_version_of_the_operator_leaves_the_tiers_of_a_running_run_alone() -> None:
    world = World(spec_of(1, 1, 2), Random(5))
    while world.run.status.state != "Running":
        world.step()
        world.advance()
    other = replace(world.context.images, postgres="postgres:next", haproxy="haproxy:next")
    world.context = replace(world.context, images=other)
    before = {name: world.deployments[name].manifest_hash for name in ("demo-postgres",)}
    world.step()
    assert {name: world.deployments[name].manifest_hash for name in before} == before
    run_to_the_end(world)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.status is ConditionStatus.TRUE


@pytest.mark.parametrize("measured", [None, 0, 1])
@pytest.mark.parametrize(
    ("lost", "anew"),
    [
        # The new version has policies.
        (None, set()),
        (("Service", "demo-haproxy"), set()),
        (("ConfigMap", "demo-pgbouncer"), set()),
        (
            ("Deployment", "demo-haproxy"),
            {("Deployment", "demo-haproxy"), ("ConfigMap", "demo-haproxy")},
        ),
    ],
)
def test_a_new_version_leaves_the_tiers_of_a_running_run_alone_also_where_something_is_missing(
    lost: tuple[str, str] | None, anew: set[tuple[str, str]], measured: int | None
) -> None:
    """`measured` is how many trials were by then; None: the first check is under way."""
    world = World(spec_of(1, 1, 2), Random(5))

    def reached() -> bool:
        if measured is None:
            return "demo-verify-s0" in world.jobs
        return world.run.status.state == "Running" and len(world.results_written) >= measured

    while not reached():
        world.step()
        world.advance()
    before = hashes_of_tiers(world)
    images = replace(world.context.images, pull_policy="Always")
    world.context = replace(world.context, images=images, cluster_domain="next.local")
    if lost is None:
        world.context = replace(world.context, network=Network())
    else:
        world.remove(*lost)
    changed: set[tuple[str, str]] = set()
    while len(world.results_written) < 2:
        world.step()
        after = hashes_of_tiers(world)
        changed |= {key for key in before.keys() & after.keys() if after[key] != before[key]}
        world.advance()
        assert world.passes < MANY_PASSES
    assert hashes_of_tiers(world).keys() == before.keys()
    assert changed == anew
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED


def test_a_tier_that_got_no_image_is_made_anew_once_somebody_has_mended_that() -> None:
    """After a retry or a resume nothing rests on it, though something was measured before."""
    world = World(spec_of(1, 1, 2), Random(5))
    while len(world.results_written) < 1:
        world.step()
        world.advance()
    before = hashes_of_tiers(world)
    waits = ContainerView("pgbouncer", waiting_reason="ImagePullBackOff")
    for pod in world.observe().pods_of("pgbouncer"):
        world.pods[pod.name] = replace(pod, ready=False, main="pgbouncer", containers=(waits,))
    world.context = replace(
        world.context, images=replace(world.context.images, pull_policy="Always")
    )
    world.remove("Service", "demo-haproxy")
    world.step()
    after = hashes_of_tiers(world)
    changed = {key for key in before.keys() & after.keys() if after[key] != before[key]}
    assert changed == {("Deployment", "demo-pgbouncer")}


def hashes_of_tiers(world: World) -> dict[tuple[str, str], str | None]:
    observed = world.observe()
    stored = {
        "Deployment": {name: one.manifest_hash for name, one in observed.deployments.items()},
        "Service": observed.services,
        "ConfigMap": observed.config_maps,
    }
    keys = {(one["kind"], one["metadata"]["name"]) for one in tier_objects(world.context)}
    return {(kind, name): stored[kind][name] for kind, name in keys if name in stored[kind]}


def test_nothing_that_becomes_of_an_applied_tier_changes_what_is_wanted() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    world.step()

    def applied() -> list[dict[str, Any]]:
        decision = decide(world.run, world.observe(), world.context, world.now)
        return [one.manifest for one in decision.actions if isinstance(one, Apply)]

    before = deepcopy(applied())
    assert {one["kind"] for one in before} == {"Deployment", "Service"}
    for manifest in applied():
        manifest["metadata"]["labels"].clear()
    assert applied() == before


def test_a_run_that_loses_a_service_is_not_refused_for_what_its_servers_were_verified_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _ = until_a_generator_runs()
    world.remove("Service", "demo-haproxy")
    monkeypatch.setattr(deploy, "misfits", lambda *_: ["what nobody asked for before"])
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED


@pytest.mark.parametrize("component", ["postgres", "haproxy"])
def test_a_tier_that_never_gets_ready_ends_the_run_with_its_reason(component: str) -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        for pod in list(world.pods.values()):
            if pod.component == component:
                world.pods[pod.name] = replace(pod, ready=False)
        assert world.passes < MANY_PASSES
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "NotReady"
    assert not world.results_written


@pytest.mark.parametrize("kind", ["Deployment", "Service", "Job"])
def test_an_object_that_the_api_server_refuses_ends_the_run_with_its_message(kind: str) -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    world.refuses = {kind}
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "ObjectRefused")
    assert f"{kind}: not here" in (succeeded.message or "")


@pytest.mark.parametrize("kind", ["Deployment", "Service"])
def test_what_is_waited_for_since_it_may_pass_is_named_by_whatever_ends_first(kind: str) -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    # As of a webhook that does not answer.
    world.refuses, world.refusal_passes = {kind}, 1e6
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "PodMissing"
    assert (succeeded.message or "").endswith(f": {kind}: not here")


@pytest.mark.parametrize(
    "theirs",
    [
        ("ConfigMap", "demo-postgres"),
        ("Service", "demo-server-s1"),
        ("Service", "demo-haproxy"),
        ("Deployment", "demo-pgbouncer"),
        ("Deployment", "demo-server-s1"),
    ],
    ids=" ".join,
)
def test_a_name_that_somebody_else_has_ends_the_run_before_anything_is_measured(
    theirs: tuple[str, str],
) -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    world.strangers = {theirs}
    began = world.now
    succeeded = None
    while succeeded is None or succeeded.reason != "NameTaken":
        world.step()
        world.advance()
        succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
        assert world.now - began < timedelta(seconds=30)
    run_to_the_end(world)
    assert " ".join(theirs) in succeeded.message
    assert world.run.status.state is State.FAILED
    assert not world.jobs_started
    assert not {**world.deployments, **world.services}
    assert not world.secret


@pytest.mark.parametrize(
    "theirs",
    [
        ("ConfigMap", "demo-postgres"),
        ("ConfigMap", "demo-feeders"),
        ("Service", "demo-server-s1"),
        ("Service", "demo-generator"),
        ("Deployment", "demo-pgbouncer"),
        ("Deployment", "demo-server-s1"),
    ],
    ids=" ".join,
)
def test_a_name_that_somebody_takes_in_mid_run_ends_the_run_and_what_was_measured_stays(
    theirs: tuple[str, str],
) -> None:
    users = scenarios()["users"]
    feeder = Feeder.model_validate({"name": "word", "csv": {"text": "text\nhi\n"}})
    scenario = users.model_copy(update={"feeders": [*users.feeders, feeder]})
    spec = spec_of(2, 1, 3, generator={"parallelism": 2})
    world = World(spec, Random(3), scenario=scenario)
    while not world.results_written:
        world.step()
        world.advance()
    kind, name = theirs
    there: dict[str, Collection[str]] = {
        "ConfigMap": world.config_maps,
        "Service": world.services,
        "Deployment": world.deployments,
    }
    assert name in there[kind]
    # Somebody deletes the run's own, and makes one of his.
    world.remove(kind, name)
    world.strangers = {theirs}
    took = world.now
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    while succeeded is None or succeeded.reason != "NameTaken":
        world.step()
        world.advance()
        succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
        assert world.now - took < timedelta(seconds=30)
    run_to_the_end(world)
    assert " ".join(theirs) in succeeded.message
    assert world.run.status.state is State.FAILED
    assert world.results_written
    assert "demo-results" in world.config_maps
    assert not {**world.deployments, **world.services, **world.jobs}


def test_an_object_that_is_refused_for_a_moment_costs_nothing() -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    world.refuses = {"Job"}
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        if world.refusal and world.now - world.refusal.since > timedelta(seconds=8):
            world.refuses = set()
        assert world.passes < MANY_PASSES
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.status is ConditionStatus.TRUE


@pytest.mark.parametrize("full", [True, False], ids=["a quota", "a rule"])
def test_a_quota_may_pass_and_a_rule_may_not(full: bool) -> None:
    world = World(spec_of(1, 1, 1), Random(3))
    world.refuses, world.full = {"ConfigMap"}, full
    room, said = world.now + timedelta(seconds=45), set()
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        progressing = world.run.status.condition(ConditionType.PROGRESSING)
        assert progressing is not None
        if world.refusal and world.now - world.refusal.since > timedelta(seconds=8):
            said.add((progressing.reason, progressing.message))
        if world.now >= room:
            world.refuses = set()
        assert world.passes < MANY_PASSES
    assert ("ObjectRefused", "ConfigMap: not here") in said
    assert world.run.status.state is (State.SUCCEEDED if full else State.FAILED)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("seconds", [-86_400, -90, 90, 86_400])
def test_clocks_of_the_cluster_that_differ_from_the_operators_blame_nobody(
    seconds: int, seed: int
) -> None:
    world = World(spec_of(2, 1, 2), Random(seed))
    world.others_clock = timedelta(seconds=seconds)
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    assert world.run.status.state is State.SUCCEEDED
    assert not world.run.status.lost_attempts
    assert len(world.results_written) == 4


@pytest.mark.parametrize("seconds", [-90, 90])
@pytest.mark.parametrize("dead", ["pods", "deletion"])
def test_what_stands_still_is_given_up_in_time_whatever_the_clocks_say(
    seconds: int, dead: str
) -> None:
    took = []
    for others in (0, seconds):
        world = World(spec_of(2, 1, 2), Random(2))
        world.others_clock = timedelta(seconds=others)
        while not world.results_written:
            world.step()
            world.advance()
        world.dead, since = {dead}, world.now
        while not (world.run.status.state and world.run.status.state.terminal):
            world.step()
            world.advance()
            assert world.passes < MANY_PASSES
        took.append(world.now - since)
    assert abs(took[0] - took[1]) < timedelta(seconds=30)


def test_a_result_for_which_there_is_no_room_for_a_while_is_waited_for() -> None:
    world = World(spec_of(2, 1, 2), Random(3))
    while not world.results_written:
        world.step()
        world.advance()
    world.refuses = {"ConfigMap"}
    room = world.now + timedelta(seconds=45)
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        if world.now >= room:
            world.refuses = set()
    assert world.run.status.state is State.SUCCEEDED
    assert len(world.results_written) == 4


@pytest.mark.parametrize("end", ["deleted", "killed", "said so"])
def test_one_lost_generator_of_several_fails_the_trial(end: str) -> None:
    world = World(spec_of(1, 1, 1, generator={"parallelism": 2}), Random(5))
    while not any(pod.component == "generator" for pod in world.pods.values()):
        world.step()
        world.advance()
    (trial,) = world.trials
    first, second = world.observe().pods_of("generator", trial=trial.name)
    # The one has measured; the other one never will.
    world.logs[trial.name, first.index] = generator_log(trial.name, segment=(first.index, 2))
    world.pods[first.name] = replace(
        first, phase="Succeeded", containers=(ContainerView("k6", exit_code=0),)
    )
    match end:
        case "deleted":
            del world.pods[second.name]
        case "killed":
            world.logs[trial.name, second.index] = "LAPTIME-READY\n"
            killed = ContainerView("k6", exit_code=137)
            world.pods[second.name] = replace(second, phase="Failed", containers=(killed,))
        case "said so":
            world.logs[trial.name, second.index] = (
                'LAPTIME-ERROR {"reason":"GeneratorsIncomplete","message":"generator 0 is gone"}\n'
            )
            ended = ContainerView("k6", exit_code=6)
            world.pods[second.name] = replace(second, phase="Failed", containers=(ended,))
    world.now += timedelta(seconds=20)
    world.step()
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("GeneratorLost", Fault.GENERATOR)


@pytest.mark.parametrize(
    ("log", "exit_code"), [("", 0), ("LAPTIME-READY\n", 0), ("", 2)], ids=["none", "half", "failed"]
)
def test_a_node_that_loses_a_generators_log_is_to_blame_and_the_trial_is_repeated(
    log: str, exit_code: int
) -> None:
    world, generator = until_a_generator_runs()
    assert generator.trial is not None
    world.logs[generator.trial, 0] = log
    ended = ContainerView("k6", exit_code=exit_code)
    world.pods[generator.name] = replace(generator, phase="Succeeded", containers=(ended,))
    world.now += timedelta(seconds=6)
    world.step()
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("LogMissing", Fault.NODE)
    run_to_the_end(world)
    assert [one.attempt for one in world.observe().results.values()] == [2]


def test_a_log_whose_last_lines_come_late_is_read_once_more() -> None:
    world, generator = until_a_generator_runs()
    assert generator.trial is not None
    whole = generator_log(generator.trial)
    world.logs[generator.trial, 0] = whole[: whole.index("LAPTIME-RESULT") + 100]
    ended = ContainerView("k6", exit_code=0, ended_at=world.now)
    world.pods[generator.name] = replace(generator, phase="Succeeded", containers=(ended,))
    world.step()
    assert not world.run.status.lost_attempts
    world.logs[generator.trial, 0] = whole
    run_to_the_end(world)
    assert [one.attempt for one in world.observe().results.values()] == [1]


def test_a_tier_that_is_not_ready_while_servers_are_checked_has_time_to_come_back() -> None:
    # So it is after a kubelet stood still: the node's pods count as unready until it says more.
    world = World(spec_of(1, 1, 1), Random(5))
    while world.run.status.state is not State.VERIFYING:
        world.step()
        world.advance()
    (postgres,) = world.observe().pods_of("postgres")
    world.pods[postgres.name] = replace(postgres, ready=False)
    for _ in range(40):
        world.now += timedelta(seconds=1)
        world.step()
        assert world.run.status.state is State.VERIFYING
    world.pods[postgres.name] = postgres
    run_to_the_end(world)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.status is ConditionStatus.TRUE


@pytest.mark.parametrize("state", [State.DEPLOYING, State.VERIFYING])
def test_nodes_that_take_no_pods_for_a_while_cost_nothing_but_time(state: State) -> None:
    """So it is while a node's disk is full: 20 s, and how long a kubelet waits afterwards."""
    closed = "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1."
    world = World(spec_of(2, 1, 1), Random(5))
    component = "postgres" if state is State.DEPLOYING else "server"
    while not (waiting := world.observe().pods_of(component)):
        world.step()
        world.advance()
    said: set[str] = set()
    for _ in range(100):
        for pod in waiting:
            world.pods[pod.name] = PodView(
                pod.name,
                pod.component,
                pod.created,
                server=pod.server,
                trial=pod.trial,
                owner=pod.owner,
                unschedulable_message=closed,
            )
        world.now += timedelta(seconds=1)
        world.step()
        assert world.run.status.state is state
        said |= {str(one.reason) for one in world.run.status.conditions or []}
    assert "NodesClosed" in said
    for pod in waiting:
        world.pods[pod.name] = pod
    run_to_the_end(world)
    assert len(world.observe().results) == 2
    assert {one.fault for one in world.observe().results.values()} == {None}


def until_postgres_starts() -> tuple[World, PodView]:
    """Return a run that deploys, and the pod of its Postgres."""
    world = World(spec_of(1, 1, 1), Random(5))
    while not (starting := world.observe().pods_of("postgres")):
        world.step()
        world.advance()
    (pod,) = starting
    return world, pod


def test_a_tier_that_is_evicted_while_it_comes_up_is_waited_for() -> None:
    world, pod = until_postgres_starts()
    world.pods[pod.name] = replace(
        pod,
        phase="Failed",
        pod_reason="Evicted",
        pod_message="The node was low on resource: ephemeral-storage.",
    )
    for _ in range(60):
        world.now += timedelta(seconds=1)
        world.step()
        assert world.run.status.state is State.DEPLOYING
    world.pods[pod.name] = pod
    run_to_the_end(world)
    assert world.observe().results


def test_of_pods_of_one_second_the_one_that_lives_is_the_newest() -> None:
    """Times have whole seconds and names are drawn: neither says which pod came last."""
    world, pod = until_postgres_starts()
    refused = replace(
        pod,
        name=f"{pod.name}-zz",
        phase="Failed",
        pod_reason="Evicted",
        pod_message="Pod was rejected: The node had condition: [DiskPressure]. ",
    )
    world.pods[refused.name] = refused
    assert world.observe().pods_of("postgres")[-1].name == pod.name
    run_to_the_end(world)
    assert world.observe().results


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("PANIC:  could not write to file: No space left on device", "DiskFull"),
        # The log is on the same disk.
        (None, "LogMissing"),
    ],
)
def test_a_tier_that_crashes_on_a_full_disk_is_waited_for(words: str | None, reason: str) -> None:
    world, starting = until_postgres_starts()
    crash = ContainerView("postgres", restarts=4, exit_code=1, exit_message=words)
    world.pods[starting.name] = replace(starting, containers=(crash,))
    for _ in range(100):
        world.now += timedelta(seconds=1)
        world.step()
        assert world.run.status.state is State.DEPLOYING
    ready = world.run.status.condition(ConditionType.TIERS_READY)
    assert ready is not None
    assert ready.reason == reason
    world.pods[starting.name] = starting
    run_to_the_end(world)
    assert world.observe().results


@pytest.mark.parametrize(
    ("code", "words"), [(3, "ERROR:  relation users does not exist"), (139, None)]
)
def test_a_tier_that_crashes_by_itself_ends_the_run_at_once(code: int, words: str | None) -> None:
    world, starting = until_postgres_starts()
    crash = ContainerView("postgres", restarts=2, exit_code=code, exit_message=words)
    world.pods[starting.name] = replace(starting, containers=(crash,))
    world.step()
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "CrashLoop"


def test_sql_that_fails_is_named_as_it_stands_in_the_scenario() -> None:
    world, starting = until_postgres_starts()
    words = (
        "psql:/etc/laptime/init.d/02-seed.sql:2: ERROR:  INSERT has more expressions than target "
        "columns\nLINE 2: SELECT 'agent' || n"
    )
    crash = ContainerView("postgres", restarts=2, exit_code=3, exit_message=words)
    world.pods[starting.name] = replace(starting, containers=(crash,))
    world.step()
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert "data.postgres.seed[0], line 2: ERROR:  INSERT has more" in succeeded.message
    assert "init.d" not in succeeded.message


def test_the_generators_of_a_trial_count_together() -> None:
    world = World(spec_of(1, 1, 1, generator={"parallelism": 2}), Random(5))
    run_to_the_end(world)
    (result,) = world.observe().results.values()
    assert result.figures is not None
    assert result.figures.requests == 2 * 2000
    assert result.figures.requests_per_second == pytest.approx(2 * 1000)


@pytest.mark.parametrize(
    ("met", "status", "reason"),
    [
        (True, ConditionStatus.TRUE, "AllMet"),
        (False, ConditionStatus.FALSE, "ObjectivesMissed"),
    ],
)
def test_the_thresholds_of_a_script_are_objectives_of_the_run(
    met: bool, status: ConditionStatus, reason: str
) -> None:
    world = World(altered(loads=[{"name": "own", "script": {"configMap": "mine"}}]), Random(1))
    threshold = {"metric": "http_req_duration", "expression": "p(95)<10", "contains": "time"}
    world.script = {
        "warmup": "time",
        "thresholds": [{**threshold, "met": met, "value": 5 if met else 12.5, "samples": 2000}],
    }
    run_to_the_end(world)
    objectives = world.run.status.condition(ConditionType.OBJECTIVES_MET)
    assert objectives is not None
    assert (objectives.status, objectives.reason) == (status, reason)
    if not met:
        assert objectives.message == ("s0 under own: http_req_duration: p(95)<10, measured 12.5 ms")


@pytest.mark.parametrize(
    ("scripts", "reason", "says"),
    [
        ({"mine": None}, "ConfigMapMissing", "create configmap mine --from-file=a.tar"),
        ({"mine": frozenset({"b.js"})}, "ConfigMapKeyMissing", "key a.tar of ConfigMap mine"),
        (
            {"mine": frozenset({"a.tar"}), "more": None},
            "ConfigMapMissing",
            "create configmap more --from-file=FILE",
        ),
    ],
)
def test_what_of_a_script_is_missing_is_said(
    scripts: dict[str, frozenset[str] | None], reason: str, says: str
) -> None:
    script = {"configMap": "mine", "key": "a.tar", "files": ["more"]}
    world = World(altered(loads=[{"name": "own", "script": script}]), Random(1))
    world.scripts = scripts
    run_to_the_end(world)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, reason)
    assert says in succeeded.message
    assert not world.jobs_started


JSLIB = Lead("script.js:2", "https://jslib.k6.io/utils/index.js", "jslib.k6.io", imported=True)
OTHER = Lead("script.js:9", "http://shop.other.svc", "shop.other.svc")


def world_that_leads(network: Network | None = None, **changes: object) -> World:
    loads = [{"name": "own", "script": {"configMap": "mine"}}]
    world = World(altered(loads=loads, **changes), Random(1), network=network)
    world.scripts = {"mine": frozenset({"script.js"})}
    return world


def test_a_run_whose_script_imports_what_no_pod_can_load_ends_before_anything_is_deployed() -> None:
    world = world_that_leads(Network())
    world.leads = {"own": Leads(imports=(JSLIB,), names=(OTHER,))}
    run_to_the_end(world)
    for type_ in (ConditionType.SUCCEEDED, ConditionType.SCRIPTS_SELF_CONTAINED):
        said = world.run.status.condition(type_)
        assert said is not None
        assert (said.status, said.reason) == (ConditionStatus.FALSE, "RemoteImport")
        assert said.message == (
            "load own: script.js:2 imports https://jslib.k6.io/utils/index.js, and pods of a run "
            "have no way to jslib.k6.io: put the file into the script's ConfigMap and import "
            "'./index.js', or make an archive of all by k6 archive; or name its addresses in "
            "spec.egress"
        )
    assert not world.jobs_started


def test_of_a_script_in_an_image_it_is_said_that_nobody_has_read_it() -> None:
    world = World(altered(loads=[{"name": "own", "script": {"image": "a/b:1"}}]), Random(1))
    world.step()
    said = world.run.status.condition(ConditionType.SCRIPTS_SELF_CONTAINED)
    assert said is not None
    assert (said.status, said.reason) == (ConditionStatus.UNKNOWN, "ScriptInImage")
    assert "load own" in said.message
    run_to_the_end(world)
    assert world.observe().results


@pytest.mark.parametrize(
    ("network", "egress", "leads", "says"),
    [
        # Nobody knows which address a name stands for, or nothing keeps pods from any.
        (Network(), [{"cidr": "203.0.113.0/24"}], Leads(imports=(JSLIB,)), "in every trial"),
        (None, [], Leads(imports=(JSLIB,)), "script.js:2 imports https://jslib.k6.io"),
        (Network(), [], Leads(names=(OTHER,)), "script.js:9 names http://shop.other.svc: these"),
        (Network(), [], Leads(names=(OTHER,) * 7), " and 2 more: these"),
        (Network(), [{"namespace": "other"}], Leads(names=(OTHER,)), None),
        (Network(), [], Leads(whole=False), None),
    ],
)
def test_what_a_script_may_ask_is_said_before_its_first_trial(
    network: Network | None, egress: list[object], leads: Leads, says: str | None
) -> None:
    world = world_that_leads(network, egress=egress)
    world.leads = {"own": leads}
    world.step()
    assert not world.jobs_started
    said = world.run.status.condition(ConditionType.SCRIPTS_SELF_CONTAINED)
    assert said is not None
    if says is None:
        assert (said.status, said.reason) == (ConditionStatus.TRUE, "NothingLeadsOut")
        assert leads.whole or said.message.endswith("too long to be read")
    else:
        assert (said.status, said.reason) == (ConditionStatus.FALSE, "OtherHostsNamed")
        assert says in said.message
        assert any(said.message in text for text in warnings(world.run.status))
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    kept = world.run.status.condition(ConditionType.SCRIPTS_SELF_CONTAINED)
    assert kept is not None
    assert kept.message == said.message


def test_without_a_script_nothing_is_said_of_scripts() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    run_to_the_end(world)
    assert world.run.status.condition(ConditionType.SCRIPTS_SELF_CONTAINED) is None


def test_a_load_that_its_scenario_cannot_serve_fails_the_run_before_anything_is_deployed() -> None:
    loads = [
        {
            "name": "delete",
            "endpoints": ["delete"],
            "closed": {"connections": 1, "requests": 60_000},
        }
    ]
    servers = [{"name": "a", "preset": "axum-diesel"}]
    world = World(altered(scenario="tasks", servers=servers, loads=loads), Random(1))
    run_to_the_end(world)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "LoadImpossible")
    assert "send at most 50000" in succeeded.message
    assert not world.jobs_started


def test_a_run_on_sqlite_with_an_upstream_ends_and_leaves_nothing_of_them() -> None:
    servers = [{"name": "mine", "image": "registry.example/mine:1"}]
    topology = {"database": "sqlite", "upstream": {}}
    spec = altered(scenario="posts", servers=servers, topology=topology)
    world = World(spec, Random(1))
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert not world.deployments
    assert not world.services
    kept = {*world.results_written, *world.readings_written, "demo-results"}
    assert set(world.config_maps) == kept
