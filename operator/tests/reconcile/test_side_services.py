"""Services around the servers are in their first state before each trial and each check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.api.attempts import Fault
from laptime.api.resources import Resources
from laptime.api.results import TrialOutcome
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.catalog import Scenario
from laptime.manifests.side_services import reset_name
from laptime.reconcile.actions import Apply, Create, Decision, Delete
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.turns import Caps, Turns, cap_exceeded
from laptime.reconcile.views import ContainerView, PodView
from tests.attacks import ATTACKS, harmless

from .world import World

MANY_PASSES = 1500
CACHE = {"name": "cache", "image": "redis:8", "ports": [6379], "password": True}
MOCK = {
    "name": "mock",
    "image": "mock:1",
    "ports": [8080],
    "reset": {"request": {"path": "/reset"}},
}
STORE = {"name": "store", "image": "mysql:9", "ports": [3306], "reset": {"job": {"image": "r:1"}}}
FONTS = {"name": "fonts", "image": "fonts:1", "ports": [80], "stateless": True}


def scenario(*services: dict[str, Any]) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "shop",
            "services": list(services),
            "requests": [{"name": "list", "path": "/"}],
            "checks": [{"name": "list", "path": "/"}],
        }
    )


def spec(
    servers: int = 1, repetitions: int = 1, warmup: int = 0, database: int = 0
) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "shop",
            "topology": {"postgres": {}} if database else {},
            "servers": [{"name": f"s{n}", "image": "own:1"} for n in range(servers)],
            "loads": [
                {
                    "name": "all",
                    "closed": {"connections": 2, "duration": "2s"},
                    "warmup": f"{warmup}s",
                }
            ],
            "repetitions": repetitions,
        }
    )


def world(*services: dict[str, Any], faults: float = 0.0, seed: int = 1, **of: int) -> World:
    return World(spec(**of), Random(seed), faults, scenario=scenario(*services))


@pytest.mark.parametrize("what", ["image", "preset", "service-fonts", "service-mock"])
def test_only_beside_an_own_image_there_is_something_to_write_for_what_a_pod_may_not(
    what: str,
) -> None:
    server = {"preset": "axum-sqlx"} if what == "preset" else {"image": "own:1"}
    document = {**spec().to_wire(), "servers": [{"name": "s0", **server}]}
    around = scenario(FONTS, {**MOCK, "reset": None})
    run = World(BenchmarkRunSpec.model_validate(document), Random(1), scenario=around)
    component = what if what.startswith("service") else "server"
    crash = ContainerView("c", restarts=3, exit_code=1, exit_message="EROFS: a file")
    said: list[str] = []
    for _ in range(60):
        for pod in run.observe().pods_of(component):
            broken = replace(pod, ready=False, main="c", containers=(crash,))
            run.pods[pod.name] = broken
        run.step()
        said += [one.message or "" for one in run.run.status.servers or []]
        said += [one.message or "" for one in run.run.status.conditions or []]
        run.advance()
    (crashed,) = {one for one in said if "ends again and again" in one}
    assert ("beside image" in crashed) is (what != "preset")


def run_to_the_end(run: World, each: Callable[[Decision], None] = lambda _: None) -> None:
    while not (run.run.status.state and run.run.status.state.terminal):
        each(run.step())
        run.advance()
        assert run.passes < MANY_PASSES, f"the run hangs in {run.run.status}"


def run_until(run: World, reached: Callable[[], bool]) -> None:
    while not reached():
        run.step()
        run.advance()
        assert run.passes < MANY_PASSES, f"the run hangs in {run.run.status}"


def made(decision: Decision, kind: str) -> list[dict[str, Any]]:
    return [
        action.manifest
        for action in decision.actions
        if isinstance(action, Apply | Create) and action.manifest["kind"] == kind
    ]


def failure(run: World) -> tuple[str, str] | None:
    """Return why a run has failed, None while it has not."""
    succeeded = run.run.status.condition(ConditionType.SUCCEEDED)
    if succeeded is None or succeeded.status is not ConditionStatus.FALSE:
        return None
    return succeeded.reason, succeeded.message


def of(pods: list[PodView], component: str) -> list[PodView]:
    return [pod for pod in pods if pod.component == component]


@given(seed=st.integers(0, 2**32), servers=st.integers(1, 2), repetitions=st.integers(1, 2))
@settings(max_examples=5, deadline=None)
def test_each_trial_and_each_check_begins_with_services_in_their_first_state(
    seed: int, servers: int, repetitions: int
) -> None:
    one = world(CACHE, MOCK, STORE, FONTS, seed=seed, servers=servers, repetitions=repetitions)
    first_pods: dict[str, str] = {}

    def look(decision: Decision) -> None:
        for job in made(decision, "Job"):
            name, pods = job["metadata"]["name"], list(one.pods.values())
            if job["metadata"]["labels"]["laptime.dev/component"].startswith(("reset-", "asker")):
                continue
            live = [pod for pod in of(pods, "service-cache") if pod.live]
            assert [(pod.trial, pod.ready) for pod in live] == [(name, True)]
            # None of an earlier trial.
            assert live[0].name not in first_pods.values()
            first_pods[name] = live[0].name
            assert job["metadata"]["annotations"]["laptime.dev/pods"].count("service-") == 4
            for service in (one.context.scenario.services[1], one.context.scenario.services[2]):
                assert one.jobs[reset_name(one.context, service, name)].complete

    run_to_the_end(one, look)
    assert one.run.status.state is State.SUCCEEDED
    assert one.results_written == [trial.name for trial in one.trials]
    assert len(first_pods) == servers * (1 + repetitions)
    assert len(set(first_pods.values())) == len(first_pods)
    # What was needed is gone.
    assert not one.deployments
    assert not one.jobs
    assert not one.services


@given(seed=st.integers(0, 2**32), faults=st.sampled_from([0.01, 0.05]))
@settings(max_examples=10, deadline=None)
def test_whatever_happens_to_services_no_trial_is_counted_twice_and_no_server_is_blamed(
    seed: int, faults: float
) -> None:
    one = world(CACHE, MOCK, STORE, faults=faults, seed=seed, servers=2, repetitions=2)
    run_to_the_end(one)
    assert len(one.results_written) == len(set(one.results_written))
    succeeded = one.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.status is ConditionStatus.TRUE or succeeded.message


def test_a_service_comes_before_the_server_that_may_need_it_when_it_starts() -> None:
    one = world(CACHE)
    seen: list[bool] = []

    def look(decision: Decision) -> None:
        for server in made(decision, "Deployment"):
            if server["metadata"]["labels"]["laptime.dev/component"] == "server":
                wanted = server["spec"]["replicas"]
                ready = [pod.ready for pod in of(list(one.pods.values()), "service-cache")]
                seen.append(not wanted or any(ready))

    run_to_the_end(one, look)
    assert len(seen) >= 3
    assert all(seen)


def test_services_get_into_their_first_state_while_nothing_lives_that_could_write_to_them() -> None:
    one = world(CACHE, MOCK, STORE, servers=2, repetitions=2)
    begun = []

    def look(decision: Decision) -> None:
        began = {job["metadata"]["name"] for job in made(decision, "Job")}
        resets = {name for name in began if name.startswith("demo-reset-")}
        fresh = [
            deployment
            for deployment in made(decision, "Deployment")
            if deployment["metadata"]["labels"]["laptime.dev/component"] == "service-cache"
        ]
        live = [
            pod.name
            for component in ("server", "generator", "verifier")
            for pod in of(list(one.pods.values()), component)
            if not pod.ended
        ]
        if resets or fresh:
            begun.append(live)
        for server in made(decision, "Deployment"):
            labels = server["metadata"]["labels"]
            if labels["laptime.dev/component"] == "server" and server["spec"]["replicas"]:
                purpose = server["spec"]["template"]["metadata"]["labels"]["laptime.dev/trial"]
                for service in one.context.scenario.services[1:]:
                    assert one.jobs[reset_name(one.context, service, purpose)].complete

    run_to_the_end(one, look)
    assert len(begun) >= 2 * 6
    assert not any(begun)


def test_before_a_check_is_made_again_services_are_reset_again() -> None:
    one = world(STORE)
    check = "demo-verify-s0"
    run_until(one, lambda: bool(of(list(one.pods.values()), "verifier")))
    (pod,) = of(list(one.pods.values()), "verifier")
    one.pods[pod.name] = replace(pod, phase="Pending", containers=(), deleting_since=one.now)
    one.jobs[check] = replace(one.jobs[check], failed_reason="BackoffLimitExceeded")
    run_to_the_end(one)
    assert one.run.status.state is State.SUCCEEDED
    assert one.jobs_started.count(check) == 2
    (store,) = one.context.scenario.services
    assert one.jobs_started.count(reset_name(one.context, store, check)) == 2


def test_what_starts_one_after_the_other_has_its_time_one_after_the_other() -> None:
    alone, fresh, both = (world(*services) for services in ((), (CACHE,), (CACHE, STORE)))
    steps = [
        Situation(one.run, one.observe(), one.context, one.now).patience_seconds
        for one in (alone, fresh, both)
    ]
    assert [step - steps[0] for step in steps] == [0, 30, 60]


def test_a_service_that_is_fresh_is_no_reason_to_say_that_tiers_are_gone() -> None:
    one = world(CACHE, repetitions=2)
    said: list[str] = []

    def look(decision: Decision) -> None:
        ready = decision.status.condition(ConditionType.TIERS_READY)
        if ready is not None and (not said or said[-1] != ready.status):
            said.append(ready.status)

    run_to_the_end(one, look)
    assert said == ["False", "True"]
    ready = one.run.status.condition(ConditionType.TIERS_READY)
    assert ready is not None
    assert ready.message == "service cache"


def test_a_service_that_crashes_while_a_server_is_measured_is_a_tiers_fault() -> None:
    one = world(CACHE)
    (trial,) = (one.trials[0].name,)
    run_until(one, lambda: trial in one.jobs)
    (pod,) = [pod for pod in of(list(one.pods.values()), "service-cache") if pod.trial == trial]
    crashed = ContainerView("service", restarts=1, exit_code=1, exit_reason="Error")
    one.pods[pod.name] = replace(pod, ready=False, last_started=one.now, containers=(crashed,))
    run_to_the_end(one)
    (result,) = one.observe().results.values()
    (lost,) = result.lost_attempts
    assert (lost.fault, lost.reason) == (Fault.TIER, "TierRestarted")
    assert lost.message.startswith("service cache was started again meanwhile")
    assert (result.outcome, result.attempt) == (TrialOutcome.MEASURED, 2)


def test_a_service_that_does_not_end_is_an_overlap() -> None:
    one = world(CACHE, repetitions=2, warmup=10)
    first, second = (trial.name for trial in one.trials)
    run_until(one, lambda: first in one.jobs)
    (old,) = [pod for pod in of(list(one.pods.values()), "service-cache") if pod.trial == first]
    one.stubborn.add(old.name)
    run_until(one, lambda: bool(one.run.status.lost_attempts))
    (lost,) = one.run.status.lost_attempts or []
    assert (lost.trial, lost.reason) == (second, "PodsOverlapped")
    assert old.name in lost.message
    one.stubborn.clear()
    run_to_the_end(one)
    assert one.results_written == [first, second]


def test_a_service_that_never_comes_up_ends_the_run_in_seconds() -> None:
    one = world(CACHE)
    run_until(one, lambda: bool(of(list(one.pods.values()), "service-cache")))
    (pod,) = of(list(one.pods.values()), "service-cache")
    one.dead.add("pods")
    waiting = ContainerView(
        "service", waiting_reason="ErrImagePull", waiting_message="no such tag 8x"
    )
    one.pods[pod.name] = replace(pod, image="redis:8x", containers=(waiting,))
    began = one.now
    run_until(one, lambda: failure(one) is not None)
    reason, message = failure(one) or ("", "")
    assert reason == "ImagePullFailed"
    assert "the image of service cache (redis:8x) cannot be pulled" in message
    assert one.now - began < timedelta(seconds=40)


@pytest.mark.parametrize("checked", [True, False])
def test_a_service_whose_pod_is_refused_ends_the_run(checked: bool) -> None:
    one = world(CACHE)
    state = State.VERIFYING if checked else State.RUNNING
    run_until(one, lambda: one.run.status.state is state)
    _refuse_the_cache(one, "exceeded quota: small")
    began = one.now
    while not (one.run.status.state and one.run.status.state.terminal):
        one.step()
        one.advance()
        _refuse_the_cache(one, "exceeded quota: small")
        assert one.now - began < timedelta(seconds=60 if checked else 300)
    said = "the pod of service cache was refused: exceeded quota: small"
    if checked:
        assert failure(one) == ("PodRefused", said)
    else:
        (result,) = one.observe().results.values()
        assert (result.reason, result.message) == ("PodRefused", said)


def test_a_service_that_gets_no_pod_is_named_and_not_the_server() -> None:
    one = world(CACHE)
    run_until(one, lambda: one.run.status.state is State.VERIFYING)
    _refuse_the_cache(one, None)
    one.dead.add("Deployment")
    run_until(one, lambda: failure(one) is not None)
    reason, message = failure(one) or ("", "")
    assert reason == "PodMissing"
    assert message.startswith("service cache has no pod after ")
    assert ": kubectl get events says why" in message


def _refuse_the_cache(one: World, message: str | None) -> None:
    """Have the API server take no pod of the cache, which has none then."""
    cache = one.deployments.get("demo-service-cache")
    if cache is not None:
        one.deployments[cache.name] = replace(cache, refused_message=message)
    for pod in of(list(one.pods.values()), "service-cache"):
        del one.pods[pod.name]


def test_a_reset_that_is_answered_otherwise_ends_the_run_before_anything_is_measured() -> None:
    one = world(MOCK)
    wrong = "reset: POST /reset answers 404, expected 200"
    one.reset_verdicts = [{"ok": False, "reason": "WrongStatus", "message": wrong}] * 9
    run_to_the_end(one)
    assert failure(one) == ("ServiceResetFailed", f"the reset of service mock failed: {wrong}")
    assert one.now - one.run.created < timedelta(seconds=90)
    assert not one.results_written


def test_a_job_that_resets_and_fails_says_its_last_words() -> None:
    one = world(STORE)
    one.reset_verdicts = [{"exit": 3, "ERROR 1045": "Access denied"}]
    run_to_the_end(one)
    reason, message = failure(one) or ("", "")
    assert reason == "ServiceResetFailed"
    assert message.startswith("the reset of service store failed: exit code 3; it said: ")
    assert "Access denied" in message


@pytest.mark.parametrize("service", ["request", "job"])
def test_the_words_of_a_reset_move_nothing(service: str) -> None:
    everything = " ".join(ATTACKS.values())
    one = world(MOCK if service == "request" else STORE)
    said = {"ok": False} if service == "request" else {"exit": 3}
    one.reset_verdicts = [{**said, "message": everything} for _ in range(9)]
    run_to_the_end(one)
    reason, message = failure(one) or ("", "")
    assert reason == "ServiceResetFailed"
    assert "failed" in message
    assert harmless(message)
    for condition in one.run.status.conditions or []:
        assert harmless(condition.message or "")


def test_a_job_that_resets_and_does_not_end_is_given_up_in_time() -> None:
    one = world(STORE)
    run_until(one, lambda: bool(of(list(one.pods.values()), "reset-store")))
    (pod,) = of(list(one.pods.values()), "reset-store")
    goes_on = ContainerView("reset", ready=True, running=True, running_since=one.now)
    one.pods[pod.name] = replace(pod, phase="Running", ready=True, containers=(goes_on,))
    began = one.now
    run_until(one, lambda: failure(one) is not None)
    assert failure(one) == (
        "ServiceResetFailed",
        "the reset of service store did not end within 30 s",
    )
    assert one.now - began < timedelta(seconds=40)


def test_a_reset_whose_image_cannot_be_pulled_says_so() -> None:
    one = world(STORE)
    run_until(one, lambda: bool(of(list(one.pods.values()), "reset-store")))
    (pod,) = of(list(one.pods.values()), "reset-store")
    one.dead.add("pods")
    waiting = ContainerView("reset", waiting_reason="ErrImagePull", waiting_message="no such")
    one.pods[pod.name] = replace(pod, phase="Pending", image="r:1", containers=(waiting,))
    run_until(one, lambda: failure(one) is not None)
    reason, message = failure(one) or ("", "")
    assert reason == "ImagePullFailed"
    assert "the image of the reset of service store (r:1) cannot be pulled" in message


def test_a_reset_that_is_lost_is_done_again() -> None:
    one = world(STORE)
    run_until(one, lambda: bool(of(list(one.pods.values()), "reset-store")))
    (pod,) = of(list(one.pods.values()), "reset-store")
    one.pods[pod.name] = replace(pod, phase="Pending", containers=(), deleting_since=one.now)
    run_to_the_end(one)
    assert one.run.status.state is State.SUCCEEDED
    assert len([name for name in one.jobs_started if name.startswith("demo-reset-")]) == 3
    assert not [one for result in one.observe().results.values() for one in result.lost_attempts]


@pytest.mark.parametrize("ended", [(), (ContainerView("reset", exit_code=0),)])
def test_a_reset_whose_pod_was_refused_or_evicted_is_not_done(
    ended: tuple[ContainerView, ...],
) -> None:
    """A kubelet that has no room refuses a pod, of which no container was ever there."""
    one = world(STORE)
    run_until(one, lambda: bool(of(list(one.pods.values()), "reset-store")))
    (pod,) = of(list(one.pods.values()), "reset-store")
    one.pods[pod.name] = replace(pod, once=True, phase="Failed", containers=ended)
    for _ in range(4):
        one.step()
        one.advance()
        assert not of(list(one.pods.values()), "server")


def test_a_reset_that_fails_later_costs_an_attempt_and_no_server() -> None:
    one = world(MOCK)
    trial = one.trials[0].name
    run_until(one, lambda: one.run.status.state is State.RUNNING)
    one.reset_verdicts = [{"ok": False, "message": "answers 503, expected 200"}]
    run_to_the_end(one)
    (result,) = one.observe().results.values()
    assert [(lost.reason, lost.fault) for lost in result.lost_attempts] == [
        ("ServiceResetFailed", Fault.TIER)
    ]
    assert (result.trial, result.outcome) == (trial, TrialOutcome.MEASURED)


def test_what_services_ask_for_counts_against_the_caps() -> None:
    turns = Turns(caps={"*": Caps(cpu=2.0)})
    services = scenario({**CACHE, "resources": {"cpu": "1500m"}}).services
    assert services[0].resources == Resources(cpu="1500m")
    server = {"name": "s", "image": "own:1", "resources": {"cpu": "1"}}
    generator = {"resources": {"cpu": "250m"}}
    run = BenchmarkRunSpec.model_validate(
        {**spec().to_wire(), "servers": [server], "generator": generator}
    )
    assert cap_exceeded(run, "bench", turns) is None
    said = cap_exceeded(run, "bench", turns, services)
    assert said is not None
    assert said.startswith("it asks for 2.75 cores in the pods of a trial, and may have 2")
    said = cap_exceeded(run, "bench", turns, scenario(CACHE).services)
    assert said is not None
    assert "it does not say how much service cache of the scenario may have" in said


@pytest.mark.parametrize("lost", ["demo-services", "demo-postgres"])
def test_a_run_that_loses_what_its_passwords_go_with_has_new_ones_and_new_pods(lost: str) -> None:
    one = world({**CACHE, "stateless": True}, repetitions=2, database=True)
    run_until(one, lambda: len(one.results_written) == 1)
    keepers = {"demo-service-cache", "demo-postgres"}
    old = {name: one.deployments[name].created for name in keepers}
    server = next(name for name in one.deployments if name.startswith("demo-server-"))
    del one.config_maps[lost]
    # The server has it in its environment.
    assert Delete("Deployment", server) in one.step().actions
    run_until(one, lambda: lost in one.config_maps)
    run_until(one, lambda: keepers <= one.deployments.keys())
    assert all(one.deployments[name].created > old[name] for name in keepers)
    run_to_the_end(one)
    assert one.run.status.state is State.SUCCEEDED
    assert len(one.results_written) == 2


@pytest.mark.parametrize("done", range(4))
def test_no_pod_keeps_a_lost_password_though_the_operator_is_killed_while_it_sees_to_that(
    done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world({**CACHE, "stateless": True}, repetitions=2, database=True)
    run_until(one, lambda: len(one.results_written) == 1)
    keepers = {"demo-service-cache", "demo-postgres"}
    old = {name: one.deployments[name].created for name in keepers}
    one.remove("ConfigMap", "demo-postgres")
    kills = iter([False] * (1 + done) + [True])
    monkeypatch.setattr(one, "_killed", lambda: next(kills, False))

    def anew(name: str) -> bool:
        return name in one.deployments and one.deployments[name].created > old[name]

    run_until(one, lambda: all(map(anew, keepers)))
    run_to_the_end(one)
    assert one.run.status.state is State.SUCCEEDED


def test_a_pause_leaves_no_passwords() -> None:
    one = world(CACHE)
    run_until(one, lambda: one.run.status.state is State.RUNNING)
    one.run = replace(one.run, spec=one.run.spec.model_copy(update={"suspend": True}))
    run_until(one, lambda: one.run.status.state is State.SUSPENDED)
    assert "demo-services" not in one.config_maps
    assert not one.deployments
    one.run = replace(one.run, spec=one.run.spec.model_copy(update={"suspend": False}))
    run_to_the_end(one)
    assert one.run.status.state is State.SUCCEEDED
