"""Two servers at the same time: prepared, measured, counted and lost together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.attempts import MOST_ATTEMPTS, Fault, trial_of
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, RunStatus, State
from laptime.plan import Trial, plan_trials
from laptime.reconcile.actions import Apply
from laptime.reconcile.views import ContainerView, PodView

from .api_server import ApiServer
from .generators import generator_log
from .nodes import working
from .test_controller import operating, run_manifest, state, until
from .test_decide import run_to_the_end, spec_of
from .world import IMAGES, World

PRESETS = ("go-nethttp", "starlette")
IMAGED = replace(IMAGES, servers={name: name for name in PRESETS})


def duet(repetitions: int, loads: int = 1, **more: Any) -> BenchmarkRunSpec:
    servers = [{"name": f"s{n}", "preset": preset} for n, preset in enumerate(PRESETS)]
    spec = spec_of(2, loads, repetitions, pairing="duet", **more).to_wire()
    changed = {"scenario": "hello", "servers": servers, "topology": {}}
    return BenchmarkRunSpec.model_validate({**spec, **changed})


def measured(world: World) -> list[TrialResult]:
    found = world.observe().results.values()
    return [one for one in found if one.outcome is TrialOutcome.MEASURED]


def partner(world: World, trial: str) -> Trial:
    return next(one for one in world.trials if one.beside == trial)


@given(
    seed=st.integers(0, 2**32),
    loads=st.integers(1, 2),
    repetitions=st.integers(1, 4),
    generators=st.integers(1, 2),
)
@settings(max_examples=20, deadline=None)
def test_the_two_servers_of_a_repetition_are_measured_together(
    seed: int, loads: int, repetitions: int, generators: int
) -> None:
    world = World(
        duet(repetitions, loads, generator={"parallelism": generators}), Random(seed), images=IMAGED
    )
    together: list[set[str | None]] = []
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        started = {pod.trial for pod in world.pods.values() if pod.component == "generator"}
        alive = {
            pod.trial
            for pod in world.pods.values()
            if pod.component == "generator" and pod.phase in ("Pending", "Running")
        }
        if started and alive:
            together.append(alive)
        world.advance()
        assert world.passes < 1000
    assert world.run.status.state is State.SUCCEEDED
    assert world.results_written == [one.name for one in world.trials]
    jobs = [job for job in world.jobs_started if job in world.results_written]
    assert jobs == world.results_written
    for first, second in zip(jobs[::2], jobs[1::2], strict=True):
        assert {first, second} in together
        one, other = (world.observe().results[name] for name in (first, second))
        assert (one.beside, other.beside) == (second, first)
        assert (one.load, one.repetition) == (other.load, other.repetition)
        assert {one.server, other.server} == {"s0", "s1"}
    # Never with a trial of another pair.
    pairs = {name: (number - 1) // 2 for number, name in enumerate(world.results_written, 1)}
    assert all(len({pairs[name or ""] for name in some}) == 1 for some in together)
    assert "at the same time" in (world.run.status.verdict or "")


def test_each_server_leads_as_often_and_loads_follow_each_other() -> None:
    spec = duet(4, 2)
    trials = plan_trials("demo", spec, 7)
    leaders = [one for one in trials if one.leads]
    for load in ("l0", "l1"):
        assert sorted(one.server for one in leaders if one.load == load) == ["s0", "s0", "s1", "s1"]
    for first, second in zip(trials[::2], trials[1::2], strict=True):
        assert (first.beside, second.beside) == (second.name, first.name)
        assert (first.leads, second.leads) == (True, False)
        assert first.meeting == second.meeting == first.name
    for block in zip(*[iter(trials)] * 4, strict=True):
        assert {one.repetition for one in block} == {block[0].repetition}
    assert [one.ordinal for one in trials] == list(range(1, 17))
    assert all(after.ordinal == before.ordinal + 1 for before, after in pairwise(trials))


@given(
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([0.01, 0.05, 0.2]),
    repetitions=st.integers(1, 3),
    generators=st.integers(1, 2),
)
@settings(max_examples=60, deadline=None)
def test_with_kills_crashes_and_lost_pods_nothing_counts_that_was_measured_alone(
    seed: int, faults: float, repetitions: int, generators: int
) -> None:
    spec = duet(repetitions, generator={"parallelism": generators})
    world = World(spec, Random(seed), faults, images=IMAGED)
    world.shuffles = True
    run_to_the_end(world)
    planned = {trial.name for trial in world.trials}
    assert len(world.results_written) == len(set(world.results_written))
    started = [job for job in world.jobs_started if trial_of(job) in planned]
    assert len(started) == len(set(started)), "a generator was started twice"
    results = world.observe().results
    of_loads: set[bool] = set()
    for one in results.values():
        assert one.attempt <= MOST_ATTEMPTS
        assert len(one.lost_attempts) == one.attempt - 1
        if one.outcome is not TrialOutcome.MEASURED:
            continue
        of_loads.add(one.beside is None)
        other = results.get(partner(world, one.trial).name)
        if one.beside is not None and other is not None:
            # Its partner was measured as well, or its figures were lost when they were there.
            assert (other.beside, one.beside) == (one.attempt_name, other.attempt_name)
            assert other.figures is not None or other.reason == "PartnerMissing", other
    # Figures under a load are all of one kind.
    assert len(of_loads) <= 1
    status = world.run.status
    succeeded = status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    if succeeded.status is ConditionStatus.TRUE:
        assert not (status.verdict or "").startswith("so far"), status.verdict


@given(seed=st.integers(0, 2**32), kills=st.sampled_from([0.05, 0.2, 0.4]))
@settings(max_examples=40, deadline=None)
def test_an_operator_that_is_killed_between_any_two_steps_measures_each_pair_once(
    seed: int, kills: float
) -> None:
    world = World(duet(3), Random(seed), images=IMAGED)
    world.kills, world.shuffles = kills, True
    run_to_the_end(world)
    names = [trial.name for trial in world.trials]
    assert sorted(world.results_written) == names
    assert sorted(job for job in world.jobs_started if trial_of(job) in names) == names
    assert {one.outcome for one in world.observe().results.values()} == {TrialOutcome.MEASURED}


def until_both_generators_run(repetitions: int = 2, **more: Any) -> tuple[World, list[PodView]]:
    world = World(duet(repetitions, **more), Random(5), images=IMAGED)
    while len(running := world.observe().pods_of("generator")) < 2:
        world.step()
        world.advance()
        assert world.passes < 1000
    return world, running


def ended(world: World, pod: PodView, log: str, code: int) -> None:
    assert pod.trial is not None
    world.logs[pod.trial, 0] = log
    one = ContainerView("k6", exit_code=code, ended_at=world.now)
    phase = "Failed" if code else "Succeeded"
    world.pods[pod.name] = replace(pod, phase=phase, ready=False, containers=(one,))


def test_when_one_generator_is_lost_both_are_measured_again() -> None:
    world, (first, second) = until_both_generators_run(1)
    assert first.trial
    assert second.trial
    ended(world, second, generator_log(second.trial), 0)
    del world.pods[first.name]
    world.now += timedelta(seconds=20)
    world.step()
    lost = world.run.status.lost_attempts or []
    assert [(one.trial, one.attempt, one.reason, one.fault) for one in lost] == [
        (first.trial, 1, "GeneratorLost", Fault.GENERATOR),
        (second.trial, 1, "PartnerFailed", Fault.PARTNER),
    ]
    assert "was to be measured at the same time: GeneratorLost" in lost[1].message
    run_to_the_end(world)
    results = world.observe().results.values()
    assert [one.attempt for one in results] == [2, 2]
    assert {one.beside for one in results} == {
        f"{name}-attempt-2" for name in (first.trial, second.trial)
    }


def test_what_one_waited_for_in_vain_is_not_its_own_fault() -> None:
    world, (first, second) = until_both_generators_run(1)
    waited = (
        'LAPTIME-ERROR {"reason":"GeneratorsIncomplete","message":"generator 1 did not come"}\n'
    )
    ended(world, first, waited, 6)
    while not all(pod.ready for pod in world.observe().pods_of("server")):
        for pod in world.observe().pods_of("server"):
            world._run_pod(pod)
    world.dead.add("pods")
    world.now += timedelta(seconds=1)
    world.step()
    # Until it is known what kept the other one.
    assert not world.run.status.lost_attempts
    unreached = 'LAPTIME-ERROR {"reason":"TargetNotReachable","message":"nobody answers"}\n'
    ended(world, second, unreached, 3)
    world.now += timedelta(seconds=1)
    world.step()
    assert [(one.trial, one.reason, one.fault) for one in world.run.status.lost_attempts or []] == [
        (first.trial, "PartnerFailed", Fault.PARTNER),
        (second.trial, "TargetNotReachable", Fault.CLUSTER),
    ]


def store_the_first_alone(world: World, second: PodView) -> None:
    """Have the operator be killed between storing two results."""
    kept = world.create

    def only_the_first(manifest: dict[str, Any]) -> None:
        if manifest["metadata"]["name"] != second.trial:
            kept(manifest)

    world.create = only_the_first  # type: ignore[method-assign]
    world.step()
    world.create = kept  # type: ignore[method-assign]


def to_the_end(world: World, each: Callable[[], None]) -> None:
    """Run to the end, with something that happens before each pass."""
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        each()
        assert world.passes < 2000


def crash(world: World, server: str) -> None:
    """Have a server crash while it is measured."""
    running = {pod.phase for pod in world.observe().pods_of("generator")}
    if "Running" not in running:
        return
    for pod in list(world.pods.values()):
        if pod.component == "server" and pod.server == server and pod.live and pod.ready:
            broken = ContainerView("main", restarts=1, exit_code=1, exit_reason="Error")
            world.pods[pod.name] = replace(
                pod, ready=False, last_started=world.now, containers=(broken,)
            )


def test_a_server_that_always_crashes_is_out_and_the_other_one_is_measured_alone() -> None:
    world = World(duet(4), Random(5), images=IMAGED)
    to_the_end(world, lambda: crash(world, "s0"))
    results = world.observe().results
    of = {
        name: sorted(
            (one.repetition, one.outcome, one.fault)
            for one in results.values()
            if one.server == name
        )
        for name in ("s0", "s1")
    }
    assert of["s0"] == [(number, TrialOutcome.FAILED, Fault.SERVER) for number in (1, 2)]
    assert of["s1"] == [
        *((number, TrialOutcome.FAILED, Fault.PARTNER) for number in (1, 2)),
        *((number, TrialOutcome.MEASURED, None) for number in (3, 4)),
    ]
    assert {one.beside for one in measured(world)} == {None}
    assert not (world.run.status.verdict or "").startswith("so far")


def test_a_server_that_was_measured_with_another_one_is_not_measured_alone_later() -> None:
    world = World(duet(4), Random(5), images=IMAGED)
    to_the_end(world, lambda: crash(world, "s0") if world.results_written else None)
    assert [(one.server, one.repetition) for one in measured(world)].count(("s1", 1)) == 1
    assert {one.repetition for one in measured(world)} == {1}
    status = world.run.status
    assert status.state is State.SUCCEEDED
    assert not (status.verdict or "").startswith("so far")


def test_one_whose_partner_has_its_result_already_is_given_up() -> None:
    world, (first, second) = until_both_generators_run(1)
    assert first.trial
    assert second.trial
    for pod in (first, second):
        ended(world, pod, generator_log(pod.trial or ""), 0)
    store_the_first_alone(world, second)
    assert world.results_written == [first.trial]
    # The operator was killed in between, and its pod goes before there is a new one.
    del world.jobs[second.trial]
    del world.pods[second.name]
    run_to_the_end(world)
    other = world.observe().results[second.trial]
    assert (other.reason, other.fault) == ("PartnerMissing", Fault.PARTNER)
    assert [job for job in world.jobs_started if "trial" in job] == [first.trial, second.trial]


def test_one_whose_partner_failed_is_not_stored_although_it_was_measured_to_its_end() -> None:
    world, (first, second) = until_both_generators_run(1)
    wrong = 'LAPTIME-ERROR {"reason":"ProtocolNotSpoken","message":"no HTTP/2"}\n'
    ended(world, first, wrong, 5)
    ended(world, second, generator_log(second.trial or ""), 0)
    world.now += timedelta(seconds=1)
    store_the_first_alone(world, second)
    assert world.results_written == [first.trial]
    world.step()
    assert second.trial
    other = world.observe().results[second.trial]
    assert (other.reason, other.fault) == ("PartnerFailed", Fault.PARTNER)
    assert "ProtocolNotSpoken" in (other.message or "")


def test_what_a_server_did_itself_is_stored_although_its_partner_is_stored_first() -> None:
    world, (first, second) = until_both_generators_run(1)
    wrong = 'LAPTIME-ERROR {"reason":"ProtocolNotSpoken","message":"no HTTP/2"}\n'
    ended(world, second, wrong, 5)
    ended(world, first, generator_log(first.trial or ""), 0)
    world.now += timedelta(seconds=1)
    # The other way round: the one that failed is not stored yet.
    store_the_first_alone(world, second)
    assert first.trial
    assert second.trial
    assert world.observe().results[first.trial].fault is Fault.PARTNER
    world.step()
    failed = world.observe().results[second.trial]
    assert (failed.reason, failed.fault) == ("ProtocolNotSpoken", Fault.RUN)


def test_generators_that_others_cut_short_have_waited_too() -> None:
    world = World(duet(1, generator={"parallelism": 2}), Random(5), images=IMAGED)
    while len(running := world.observe().pods_of("generator")) < 4:
        world.step()
        world.advance()
        assert world.passes < 1000
    world.dead.add("pods")
    (first, *_) = running
    mine = [pod for pod in running if pod.trial == first.trial]
    waited = 'LAPTIME-ERROR {"reason":"GeneratorsIncomplete","message":"0 did not come"}\n'
    for pod, log, code in zip(mine, ("LAPTIME-READY\n", waited), (137, 6), strict=True):
        world.logs[pod.trial or "", pod.index] = log
        one = ContainerView("k6", exit_code=code, ended_at=world.now)
        world.pods[pod.name] = replace(pod, phase="Failed", ready=False, containers=(one,))
    world.now += timedelta(seconds=1)
    world.step()
    # Until it is known what kept those of the other server.
    assert not world.run.status.lost_attempts
    assert not world.results_written


def test_of_two_servers_the_one_that_leads_is_asked_for_first() -> None:
    world = World(duet(4), Random(5), images=IMAGED)
    asked: list[list[str]] = []
    while not (world.run.status.state and world.run.status.state.terminal):
        decision = world.step()
        made = [
            one.manifest["spec"]["template"]["metadata"]["labels"].get("laptime.dev/trial")
            for one in decision.actions
            if isinstance(one, Apply) and one.manifest["kind"] == "Deployment"
        ]
        pair = [name for name in made if name in {one.name for one in world.trials}]
        asked += [pair] if len(pair) == 2 else []
        world.advance()
        assert world.passes < 1000
    leads = {one.name: one.leads for one in world.trials}
    assert len(asked) == 4
    assert all([leads[one] for one in pair] == [True, False] for pair in asked)


def test_where_one_was_measured_alone_a_retry_measures_alone_too() -> None:
    world = World(duet(4), Random(5), images=IMAGED)
    to_the_end(world, lambda: crash(world, "s0"))
    before = {one.trial for one in measured(world)}
    assert len(before) == 2
    failed = [one.trial for one in world.observe().results.values() if one.figures is None]
    for name in failed:
        # As a retry has it: what failed is in the archive, and is asked for again.
        del world.config_maps[name]
        world.results_written.remove(name)
        world._results.pop(name, None)
    begun = world.run.status
    world.run = replace(world.run, status=RunStatus(seed=begun.seed, order=begun.order))
    world.config_maps.pop("demo-results", None)
    run_to_the_end(world)
    results = measured(world)
    assert len(results) == 8
    assert {one.beside for one in results} == {None}


def test_a_server_whose_node_is_bad_does_not_take_the_other_one_along() -> None:
    world = World(duet(6), Random(5), images=IMAGED)

    def lose_those_of_one() -> None:
        for pod in world.observe().pods_of("generator"):
            trial = next(one for one in world.trials if one.name == trial_of(pod.trial or ""))
            if trial.server == "s0":
                world.pods.pop(pod.name, None)

    to_the_end(world, lose_those_of_one)
    assert [(one.server, one.beside) for one in measured(world)] == [("s1", None)] * 4
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "ServersFailed"


def test_the_status_names_both_trials_that_are_measured_now() -> None:
    world, (first, second) = until_both_generators_run()
    world.step()
    status = world.run.status
    assert {status.current_trial, status.current_beside} == {first.trial, second.trial}
    run_to_the_end(world)
    assert world.run.status.current_beside is None


async def test_what_two_nodes_exchange_is_measured_for_a_duet_as_well() -> None:
    server = ApiServer()
    servers = [{"name": name, "image": "mine:1"} for name in ("s0", "s1")]
    server.add({**run_manifest("apart"), "spec": {**duet(2).to_wire(), "servers": servers}})
    async with operating(server), working(server) as nodes:
        nodes.free = ["node-1", "node-2"]
        await until(lambda: state(server, "apart") == "Succeeded")
        assert len(nodes.paths_measured) == 1
    (run,) = server.of("BenchmarkRun")
    assert len(run["status"]["nodePaths"]) == 1
    assert [row["trials"] for row in run["status"]["results"]] == [2, 2]


def test_a_run_of_which_nothing_can_be_measured_is_given_up_after_two_pairs() -> None:
    world = World(duet(6), Random(5), images=IMAGED)

    def lose_all() -> None:
        for pod in world.observe().pods_of("generator"):
            world.pods.pop(pod.name, None)

    to_the_end(world, lose_all)
    assert len(world.results_written) == 4
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "InfrastructureFailed"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"servers": [{"name": "a", "preset": "axum-sqlx"}]}, "two servers"),
        ({"control": True}, "leave control out"),
        ({"topology": {"postgres": {}}}, "share no tier"),
        ({"topology": {"upstream": {}}}, "share no tier"),
        ({"topology": {"haproxy": {}}}, "share no tier"),
        (
            {"loads": [{"name": "l", "closed": {"connections": 2, "requests": 100}}]},
            "closed with a duration",
        ),
        (
            {"loads": [{"name": "l", "saturation": {"p99": "10ms", "maxRate": 1000}}]},
            "closed with a duration",
        ),
        ({"topology": {"database": "sqlite"}}, None),
        ({"pairing": "interleaved", "topology": {"postgres": {}}}, None),
        ({"pairing": "trio"}, "not one of interleaved, duet"),
    ],
)
def test_what_cannot_be_measured_at_the_same_time_is_refused(
    change: dict[str, Any], says: str | None
) -> None:
    from laptime.cli.own_schemas import violations

    spec = {**duet(1).to_wire(), **change}
    document = {
        "apiVersion": "laptime.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "demo"},
        "spec": spec,
    }
    said, checked = violations(document)
    assert checked
    if says is None:
        assert not said
    else:
        assert any(says in one for one in said), said
