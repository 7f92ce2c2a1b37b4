"""What is said of a server that stops answering while it is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionType, ServerState, State
from laptime.api.topology import HAProxy
from laptime.catalog import scenarios
from laptime.reconcile.views import ContainerView, PodView, parse_time

from .api_server import ApiServer
from .nodes import working
from .test_controller import operating, run_manifest
from .test_controller import until as eventually
from .test_deadlines import over, until
from .test_decide import MANY_PASSES, spec_of
from .world import World


def verifiers(world: World) -> list[PodView]:
    return [p for p in world.pods.values() if p.component == "verifier"]


def check_finds(world: World, reason: str) -> None:
    """Have the next check end now, and say this of its server."""
    before = {one.name for one in verifiers(world)}
    while not (new := [one for one in verifiers(world) if one.name not in before]):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    verdict = json.dumps({"ok": False, "reason": reason, "message": "it broke"})
    ended = ContainerView("verify", exit_code=0, exit_message=verdict, ended_at=world.now)
    world.pods[new[0].name] = replace(new[0], phase="Succeeded", containers=(ended,))


def test_the_pod_of_a_check_is_known_by_its_job_and_not_by_two_clocks() -> None:
    world = World(spec_of(1, 1, 1), Random(1))
    while not verifiers(world):
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    # The API server that has made it is behind the one that has made the Job.
    (pod,) = verifiers(world)
    verdict = ContainerView("verify", exit_code=0, exit_message='{"ok": true}', ended_at=world.now)
    world.pods[pod.name] = replace(
        pod, created=pod.created - timedelta(seconds=5), phase="Succeeded", containers=(verdict,)
    )
    world.step()
    assert state_of_first(world) == (ServerState.VERIFIED, None)


def world_with_a_lost_connection(reason: str = "ConnectionLost") -> tuple[World, PodView]:
    """Return a world whose verifier said this of its server just now, and the server's pod."""
    world = World(spec_of(1, 1, 1), Random(1))
    check_finds(world, reason)
    (server,) = (p for p in world.pods.values() if p.component == "server")
    alive = replace(
        server, ready=True, containers=(ContainerView("server", ready=True, running=True),)
    )
    world.pods[server.name] = alive
    return world, alive


def state_of_first(world: World) -> tuple[ServerState, str | None]:
    server, *_ = world.run.status.servers or []
    return server.state, server.reason


def test_a_crash_that_shows_a_moment_later_is_named_and_not_the_lost_connection() -> None:
    world, server = world_with_a_lost_connection()
    world.now += timedelta(seconds=1)
    world.step()
    assert state_of_first(world) == (ServerState.PENDING, None)
    killed = ContainerView(
        "server", restarts=1, exit_code=137, exit_reason="OOMKilled", limited=True
    )
    world.pods[server.name] = replace(server, ready=False, containers=(killed,))
    world.now += timedelta(seconds=1)
    world.step()
    assert state_of_first(world) == (ServerState.FAILED, "OutOfMemory")


@pytest.mark.parametrize("reason", ["ConnectionLost", "NotReachable", "TimedOut"])
def test_a_server_that_gives_no_answer_without_a_crash_is_out_after_a_second_check(
    reason: str,
) -> None:
    world, _ = world_with_a_lost_connection(reason)
    for seconds in (0, 10):
        assert state_of_first(world) == (ServerState.PENDING, None)
        world.now += timedelta(seconds=seconds)
        world.step()
    assert state_of_first(world) == (ServerState.PENDING, reason)
    progress = world.run.status.condition(ConditionType.PROGRESSING)
    assert progress is not None
    assert "it is checked once more" in progress.message
    check_finds(world, reason)
    world.step()
    assert state_of_first(world) == (ServerState.PENDING, reason)
    world.now += timedelta(seconds=10)
    world.step()
    assert state_of_first(world) == (ServerState.FAILED, reason)
    server, *_ = world.run.status.servers or []
    assert server.message is not None
    assert f"(its first check: {reason})" in server.message
    assert checks(world) == 2


def checks(world: World) -> int:
    """Return how many checks there were, each with a pod of the server of its own."""
    jobs = [name for name in world.jobs_started if "-verify-" in name or "-again-" in name]
    assert len(jobs) == len(set(jobs))
    return len(jobs)


def test_a_first_check_that_ends_late_leaves_the_second_one_its_time() -> None:
    world, _ = world_with_a_lost_connection("TimedOut")
    world.now += timedelta(seconds=230)
    check_again(world)
    assert state_of_first(world) == (ServerState.PENDING, "TimedOut")
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    assert checks(world) == 2


@pytest.mark.parametrize(("proxy", "often"), [(HAProxy(), 2), (None, 1)])
def test_behind_haproxy_a_wrong_status_may_be_the_proxys(proxy: HAProxy | None, often: int) -> None:
    spec = spec_of(1, 1, 1)
    topology = spec.topology.model_copy(update={"haproxy": proxy})
    spec = spec.model_copy(update={"topology": topology})
    world = World(spec, Random(1))
    check_finds(world, "WrongStatus")
    if often == 2:
        check_again(world)
        check_finds(world, "WrongStatus")
    check_again(world)
    assert state_of_first(world) == (ServerState.FAILED, "WrongStatus")
    assert checks(world) == often


def check_again(world: World) -> None:
    """Let pass what a server has for saying that it crashed."""
    for seconds in (0, 10):
        world.now += timedelta(seconds=seconds)
        world.step()


def test_of_a_run_that_is_over_no_server_is_said_to_be_checked_once_more() -> None:
    world, _ = world_with_a_lost_connection("TimedOut")
    check_again(world)
    assert state_of_first(world) == (ServerState.PENDING, "TimedOut")
    spec = world.run.spec.model_copy(update={"cancel": True})
    world.run = replace(world.run, spec=spec)
    while world.run.status.state is not State.CANCELLED:
        world.step()
        world.advance()
        assert world.passes < MANY_PASSES
    assert state_of_first(world) == (ServerState.PENDING, None)


def test_a_server_that_answers_when_it_is_checked_a_second_time_takes_part() -> None:
    world, _ = world_with_a_lost_connection("TimedOut")
    for seconds in (0, 10):
        world.now += timedelta(seconds=seconds)
        world.step()
    assert state_of_first(world) == (ServerState.PENDING, "TimedOut")
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()
    assert state_of_first(world) == (ServerState.VERIFIED, None)


def test_wrong_answers_of_a_server_replaced_meanwhile_are_asked_for_again() -> None:
    world, server = world_with_a_lost_connection("WrongAnswer")
    (job,) = (name for name in world.jobs_started if "-verify-" in name)
    del world.pods[server.name]
    world.pods["another-one"] = replace(server, name="another-one")
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()
    assert world.jobs_started.count(job) == 2


@pytest.mark.parametrize("code", [0, 1])
def test_a_check_whose_words_are_lost_on_a_full_disk_is_made_again(code: int) -> None:
    world, _ = world_with_a_lost_connection()
    (job,) = (name for name in world.jobs_started if "-verify-" in name)
    (verifier,) = verifiers(world)
    silent = ContainerView("verify", exit_code=code, ended_at=world.now)
    phase = "Failed" if code else "Succeeded"
    world.pods[verifier.name] = replace(verifier, phase=phase, containers=(silent,))
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()
    assert world.jobs_started.count(job) == 2


def refuse(world: World, text: str | None) -> None:
    """Have a quota keep back all pods of servers, or no more."""
    if text:
        world.pods = {name: pod for name, pod in world.pods.items() if pod.component != "server"}
    for name, one in world.deployments.items():
        if "-server-" in name:
            world.deployments[name] = replace(one, refused_message=text)


def until_all_servers_are_refused_for(seconds: float) -> World:
    world = World(spec_of(2, 1, 1), Random(1))
    end = None
    while end is None or world.now < end:
        world.advance()
        refuse(world, "exceeded quota")
        world.step()
        assert world.passes < MANY_PASSES
        if end is None and world.run.status.state is State.VERIFYING:
            end = world.now + timedelta(seconds=seconds)
    return world


def test_servers_that_a_quota_keeps_back_for_a_while_are_checked_after_it() -> None:
    world = until_all_servers_are_refused_for(25)
    assert state_of_first(world) == (ServerState.PENDING, None)
    refuse(world, None)
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()


def test_servers_that_a_quota_keeps_back_for_ever_are_out_and_it_is_said_why() -> None:
    world = until_all_servers_are_refused_for(90)
    assert [(one.state, one.reason) for one in world.run.status.servers or []] == [
        (ServerState.FAILED, "PodRefused")
    ] * 2


EPHEMERAL = "minimum ephemeral-storage usage per Pod is 1Gi. No request is specified"
WANTS_LIMITS = (
    'pods "x" is forbidden: failed quota: compute: must specify limits.cpu for: server; '
    "limits.memory for: server"
)


def test_servers_without_the_limits_that_a_quota_wants_are_out_at_once_and_told_what_to_write() -> (
    None
):
    world = World(spec_of(2, 1, 1), Random(1))
    while world.run.status.state is not State.FAILED:
        world.advance()
        refuse(world, WANTS_LIMITS)
        world.step()
        assert world.passes < MANY_PASSES
    began = parse_time(world.run.status.started_at)
    assert began is not None
    assert world.now - began < timedelta(seconds=20)
    (first, *_) = world.run.status.servers or []
    assert first.reason == "PodRefused"
    assert WANTS_LIMITS in (first.message or "")
    assert 'Write resources: {cpu: "1", memory: 512Mi}' in (first.message or "")
    assert "server s0, server s1, generator" in (first.message or "")


@pytest.mark.parametrize(
    ("words", "both"),
    [
        # A LimitRange for whole pods: one for containers gives them what is missing.
        ("maximum ephemeral-storage usage per Pod is 4Gi. No limit is specified", False),
        (f"[maximum memory usage per Pod is 4Gi. No limit is specified, {EPHEMERAL}]", True),
    ],
)
def test_who_bounds_ephemeral_storage_is_told_that_no_run_can_say_it(
    words: str, both: bool
) -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    while world.run.status.state is not State.FAILED:
        world.advance()
        refuse(world, f'pods "x" is forbidden: {words}')
        world.step()
        assert world.passes < MANY_PASSES
    (first, *_) = world.run.status.servers or []
    message = first.message or ""
    assert first.reason == "PodRefused"
    assert "No run says ephemeral-storage: a LimitRange" in message
    assert ("Write resources: {cpu: " in message) is both


def test_a_check_whose_pods_are_refused_says_to_the_end_where_the_reason_stands() -> None:
    world = World(spec_of(2, 1, 1), Random(3))
    world.dead = {"Job"}
    said: set[str] = set()

    def ends(world: World) -> bool:
        said.update(
            one.message for one in world.run.status.conditions or [] if one.reason == "PodMissing"
        )
        return over(world)

    until(world, ends)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "PodMissing"
    assert succeeded.message in said
    # Which job it was nobody can ask any more: events stay for an hour.
    assert not [one for one in said if "kubectl describe job demo-verify-s" not in one]
    assert not [one for one in said if "kubectl get events" not in one]


def test_a_tier_without_the_limits_that_a_quota_wants_ends_the_run_at_once() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    while world.run.status.state is not State.FAILED:
        world.advance()
        for name, one in world.deployments.items():
            if name.endswith("-postgres"):
                world.deployments[name] = replace(one, refused_message=WANTS_LIMITS)
        world.pods = {n: pod for n, pod in world.pods.items() if pod.component != "postgres"}
        world.step()
        assert world.passes < MANY_PASSES
    began = parse_time(world.run.status.started_at)
    assert began is not None
    assert world.now - began < timedelta(seconds=20)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "PodRefused"
    assert "for topology.postgres, topology.pgbouncer" in succeeded.message


def test_a_check_that_did_not_get_to_the_database_is_made_again_and_blames_no_server() -> None:
    world, _ = world_with_a_lost_connection("DatabaseNotReachable")
    (job,) = (name for name in world.jobs_started if "-verify-" in name)
    while world.run.status.state is not State.SUCCEEDED:
        assert state_of_first(world)[0] is not ServerState.FAILED
        world.step()
        world.advance()
    assert world.jobs_started.count(job) == 2


def test_a_database_that_is_never_reached_ends_the_run_and_says_so() -> None:
    world, _ = world_with_a_lost_connection("DatabaseNotReachable")
    while not (world.run.status.state and world.run.status.state.terminal):
        for name, pod in list(world.pods.items()):
            if pod.component == "verifier" and not pod.deleting:
                said = {"ok": False, "reason": "DatabaseNotReachable", "message": "no route"}
                end = ContainerView(
                    "verify", exit_code=0, exit_message=json.dumps(said), ended_at=world.now
                )
                world.pods[name] = replace(pod, phase="Succeeded", containers=(end,))
        world.step()
        world.advance()
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert succeeded.reason == "DatabaseNotReachable"
    assert state_of_first(world)[0] is not ServerState.FAILED


AWAY = "HEAD https://harbor.example/v2/mine/manifests/1: 503 Service Unavailable"


def pull_in_vain(
    world: World,
    words: str,
    seconds: float,
    reason: str = "ErrImagePull",
    secret_keys: tuple[tuple[str, str], ...] = (),
    component: str = "server",
) -> timedelta:
    """Have the first server's image not be had for so long; return until when it was tried.

    What the verifier says meanwhile is that nobody answers. With another `reason` it is that for
    which its container is not made.
    """
    world.verdicts["s0"] = {"ok": False, "reason": "NotReachable", "message": "nobody is there"}
    waiting = ContainerView("server", waiting_reason=reason, waiting_message=words)
    began = None
    while began is None or world.now - began <= timedelta(seconds=seconds):
        world.step()
        if over(world) or state_of_first(world)[0] is ServerState.FAILED:
            break
        world.advance()
        for name, one in world.pods.items():
            if one.component == component and one.server == "s0":
                began = began or world.now
                world.pods[name] = replace(
                    one,
                    ready=False,
                    last_started=None,
                    phase="Pending",
                    containers=(waiting,),
                    secret_keys=secret_keys,
                )
        assert world.passes < MANY_PASSES
    world.verdicts.clear()
    assert began is not None
    return world.now - began


def first_and_second(world: World) -> list[tuple[ServerState, str | None]]:
    return [(one.state, one.reason) for one in world.run.status.servers or []]


def test_a_registry_that_is_away_for_a_minute_costs_no_server() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    pull_in_vain(world, AWAY, 60)
    assert state_of_first(world)[0] is ServerState.PENDING
    progress = world.run.status.condition(ConditionType.PROGRESSING)
    assert progress is not None
    assert progress.reason == "ImagePullFailed"
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert first_and_second(world) == [(ServerState.VERIFIED, None)] * 2


def test_a_registry_that_stays_away_costs_the_server_and_not_the_run() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    assert pull_in_vain(world, AWAY, 400) > timedelta(seconds=180)
    assert first_and_second(world)[0] == (ServerState.FAILED, "ImagePullFailed")
    until(world, over)
    assert first_and_second(world)[1] == (ServerState.VERIFIED, None)
    assert len(world.results_written) == 1


def test_an_image_that_a_registry_has_not_is_waited_for_no_longer_than_a_start() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    assert pull_in_vain(world, "registry.example/mine:1: not found", 400) < timedelta(seconds=45)
    assert first_and_second(world)[0] == (ServerState.FAILED, "ImagePullFailed")


NO_LICENCE = ('secret "licence" not found', "CreateContainerConfigError")
LICENCE = (("licence", "laptime-env-LICENCE"),)


def test_a_secret_that_is_not_there_is_said_while_it_can_still_be_made() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    words, reason = NO_LICENCE
    pull_in_vain(world, words, 5, reason, LICENCE)
    assert state_of_first(world)[0] is ServerState.PENDING
    progress = world.run.status.condition(ConditionType.PROGRESSING)
    assert progress is not None
    assert progress.reason == "SecretMissing"


@pytest.mark.parametrize("made_after", [15, 400])
def test_a_secret_that_is_not_there_is_waited_for_no_longer_than_a_start(made_after: float) -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    # Nor does a check say anything meanwhile: it waits for its server.
    world.dead.add("Job")
    words, reason = NO_LICENCE
    tried = pull_in_vain(world, words, made_after, reason, LICENCE)
    in_time = made_after < 30
    assert (state_of_first(world)[0] is ServerState.PENDING) is in_time
    assert (tried > timedelta(seconds=25)) is not in_time
    world.dead.clear()
    until(world, over)
    first = (ServerState.VERIFIED, None) if in_time else (ServerState.FAILED, "SecretMissing")
    assert first_and_second(world) == [first, (ServerState.VERIFIED, None)]
    assert len(world.results_written) == (2 if in_time else 1)


def test_credentials_that_are_never_made_are_named_as_what_is_missing() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    said, reason = 'secret "shop-client" not found', "CreateContainerConfigError"
    keys = (("shop-client", "laptime-authorization"),)
    pull_in_vain(world, said, 400, reason, keys, component="verifier")
    assert first_and_second(world)[0] == (ServerState.FAILED, "SecretMissing")


def test_a_verifier_that_cannot_be_made_for_another_reason_has_failed() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    said, reason = "container has runAsNonRoot", "CreateContainerConfigError"
    pull_in_vain(world, said, 400, reason, component="verifier")
    assert first_and_second(world)[0] == (ServerState.FAILED, "VerifierFailed")


async def test_what_a_run_names_of_a_secret_is_said_where_a_kubelet_does_not_find_it() -> None:
    def without_it(pod: dict[str, Any]) -> None:
        part, container = pod["metadata"]["labels"], pod["spec"]["containers"][0]
        state: dict[str, Any] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        if part["laptime.dev/component"] == "server":
            assert "laptime-env-LICENCE" in json.dumps(container["env"])
            state = {"waiting": dict(zip(("message", "reason"), NO_LICENCE, strict=True))}
        elif part["laptime.dev/component"] != "verifier":
            return
        status = {"name": container["name"], "ready": False, "state": state}
        pod["status"] |= {"phase": "Pending", "conditions": [], "containerStatuses": [status]}

    def said() -> dict[str, Any]:
        (run,) = server.of("BenchmarkRun")
        conditions = (run.get("status") or {}).get("conditions") or []
        found: dict[str, Any] = next(
            (one for one in conditions if one["type"] == "Progressing"), {}
        )
        return found

    server, spec = ApiServer(), spec_of(1, 1, 1).to_wire()
    spec["servers"][0]["env"] = [{"name": "LICENCE", "secret": "licence"}]
    server.add({**run_manifest("licensed"), "spec": spec})
    async with operating(server), working(server) as nodes:
        nodes.admission = without_it
        await eventually(lambda: said().get("reason") == "SecretMissing")
    assert "licence --from-literal=laptime-env-LICENCE='…'" in said()["message"]


def test_a_reset_that_postgres_refuses_ends_the_run_and_blames_no_server() -> None:
    world = World(spec_of(2, 1, 1), Random(1))
    check_finds(world, "ResetFailed")
    until(world, over)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == ("False", "ResetFailed")
    assert first_and_second(world) == [(ServerState.PENDING, None)] * 2


def test_a_reset_that_one_servers_own_schema_is_in_the_way_of_costs_that_server() -> None:
    spec = spec_of(2, 1, 1, topology={"postgres": {"databases": "perServer"}})
    world = World(spec, Random(1))
    check_finds(world, "ResetFailed")
    until(world, over)
    first, second = first_and_second(world)
    assert (first, second[0]) == ((ServerState.FAILED, "ResetFailed"), ServerState.VERIFIED)
    assert len(world.results_written) == 1


def releases(*, takes_back: bool = False, databases: str = "shared") -> World:
    """Return two images on one Postgres, whose answers make rows that nothing takes back."""
    tasks = scenarios()["tasks"]
    assert tasks.data is not None
    assert tasks.data.postgres is not None
    reset = tasks.data.postgres.reset if takes_back else []
    postgres = tasks.data.postgres.model_copy(update={"reset": reset})
    data = tasks.data.model_copy(update={"postgres": postgres})
    images = [{"name": "old", "image": "mine:1"}, {"name": "new", "image": "mine:2"}]
    spec = BenchmarkRunSpec.model_validate(
        {
            "scenario": "tasks",
            "servers": images,
            "topology": {"postgres": {"databases": databases}},
            "loads": [
                {"name": "l", "closed": {"connections": 1, "requests": 9}, "endpoints": ["create"]}
            ],
            "repetitions": 1,
        }
    )
    return World(spec, Random(1), scenario=tasks.model_copy(update={"data": data}))


TAKEN = {
    "ok": False,
    "reason": "WrongStatus",
    "message": "POST /tasks: expected status 201, got 409",
}


@pytest.mark.parametrize(
    ("takes_back", "databases", "refused", "told"),
    [
        (False, "shared", "new", True),
        (True, "shared", "new", False),
        (False, "shared", "old", False),
        (False, "perServer", "new", False),
    ],
)
def test_a_server_that_meets_the_rows_of_another_ones_check_is_told_of_them(
    takes_back: bool, databases: str, refused: str, told: bool
) -> None:
    world = releases(takes_back=takes_back, databases=databases)
    world.verdicts[refused] = TAKEN
    until(world, over)
    (one,) = (one for one in world.run.status.servers or [] if one.name == refused)
    assert one.reason == "WrongStatus"
    assert one.message is not None
    assert one.message.startswith(f"server {refused}: {TAKEN['message']}")
    assert ("had been asked of old before" in one.message) is told
    assert ("no data.postgres.reset" in one.message) is told


def test_a_server_that_is_checked_once_more_is_told_of_the_rows_of_its_own_first_check() -> None:
    world = releases()
    check_finds(world, "TimedOut")
    check_again(world)
    check_finds(world, "WrongStatus")
    check_again(world)
    one, *_ = world.run.status.servers or []
    assert (one.state, one.reason) == (ServerState.FAILED, "WrongStatus")
    assert "had been asked of old before" in (one.message or "")


@pytest.mark.parametrize("takes_back", [True, False])
def test_a_run_whose_rows_stay_says_so_while_it_goes_on(takes_back: bool) -> None:
    world = releases(takes_back=takes_back)
    until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    accepted = world.run.status.condition(ConditionType.ACCEPTED)
    assert accepted is not None
    assert accepted.status == "True"
    assert ("by create (POST) is there for all trials after it" in accepted.message) is (
        not takes_back
    )
