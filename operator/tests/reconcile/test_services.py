"""A Service that is there already is driven and checked, and stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from laptime.api.attempts import Fault
from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.service import Service
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, ServerState, State
from laptime.manifests.context import Network, Target
from laptime.reconcile.actions import Apply, Create, Delete
from laptime.reconcile.decide import asked_again
from laptime.reconcile.service_view import selector_of, service_view
from laptime.reconcile.views import ContainerView, PodView, TargetView, format_time

from .api_server import ApiServer
from .nodes import Nodes, working
from .simulated_cluster import START
from .test_controller import operating, reason, run_manifest, state, until
from .test_decide import run_to_the_end
from .test_scenarios import message
from .world import World

SHOP = Service(name="shop", port=8080)
SERVERS: list[dict[str, Any]] = [
    {"name": "mine", "service": {"name": "shop", "port": 8080}},
    {"name": "other", "preset": "axum-sqlx"},
]


# ---- where it leads to


def service(**spec: Any) -> dict[str, Any]:
    port = {"name": "web", "port": 8080, "targetPort": "http", "protocol": "TCP"}
    return {
        "metadata": {"name": "shop", "namespace": "bench", "uid": "5e", "resourceVersion": "7"},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.7",
            "selector": {"app": "shop", "tier": "web"},
            "ports": [{"name": "dns", "port": 8080, "protocol": "UDP"}, port],
            **spec,
        },
    }


def behind(name: str = "shop-1", **changes: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "labels": {"app": "shop", "tier": "web", **changes.pop("labels", {})},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **changes.pop("metadata", {}),
        },
        "spec": {"containers": [{"name": "app", "image": "shop:1"}], **changes.pop("spec", {})},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "app", "restartCount": 3, "imageID": "shop@sha256:1"}],
            **changes,
        },
    }


@pytest.mark.parametrize("wanted", [SHOP, Service(name="shop", port_name="web")])
def test_a_service_leads_to_the_port_of_its_pods_by_number_and_by_name(wanted: Service) -> None:
    view = service_view(wanted, "bench", service(), [behind("shop-2"), behind()])
    assert view.refused is None
    assert view.target == Target(8080, "http", {"app": "shop", "tier": "web"})
    assert [pod.name for pod in view.pods] == ["shop-1", "shop-2"]
    assert view.words == {
        "service=shop/5e/7",
        "behind=shop-1/uid-of-shop-1/3",
        "behind=shop-2/uid-of-shop-2/3",
    }
    assert selector_of(service()) == "app=shop,tier=web"


def test_a_port_without_a_target_is_that_of_the_pods_too() -> None:
    view = service_view(SHOP, "bench", service(ports=[{"port": 8080}]))
    assert view.target is not None
    assert view.target.pod_port == 8080


def test_pods_that_end_or_ended_are_not_behind_it() -> None:
    gone = [
        behind("ends", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        behind("ended", phase="Succeeded"),
        behind("evicted", phase="Failed"),
    ]
    assert service_view(SHOP, "bench", service(), gone).pods == ()


def test_labels_of_strangers_mean_nothing() -> None:
    lying = {
        "laptime.dev/component": "generator",
        "laptime.dev/trial": "demo-trial-001",
        "batch.kubernetes.io/job-completion-index": "first",
    }
    (pod,) = service_view(SHOP, "bench", service(), [behind(labels=lying)]).pods
    assert (pod.component, pod.trial, pod.index) == ("", None, 0)


def _labelled(**metadata: Any) -> dict[str, Any]:
    found = service()
    return {**found, "metadata": {**found["metadata"], **metadata}}


@pytest.mark.parametrize(
    ("manifest", "pods", "why", "says"),
    [
        (None, [], "ServiceMissing", "there is no Service shop in namespace bench: create it"),
        (
            _labelled(deletionTimestamp="2026-01-01T00:00:00Z"),
            [],
            "ServiceMissing",
            "is being deleted: create it anew",
        ),
        (
            service(type="ExternalName", externalName="example.org", selector=None),
            [],
            "ServiceRefused",
            "to example.org (ExternalName): write a Service with a selector of pods in namespace",
        ),
        # As the API server's own has it.
        (service(selector=None), [], "ServiceRefused", "has no selector, so its endpoints are"),
        (service(selector={}), [], "ServiceRefused", "has no selector, so its endpoints are"),
        (service(clusterIP="None"), [], "ServiceRefused", "has no address of its own"),
        (
            _labelled(labels={"laptime.dev/run-uid": "6f1c"}),
            [],
            "ServiceRefused",
            "belongs to a run, whose pods come and go: name a Service of your own",
        ),
        (
            _labelled(ownerReferences=[{"kind": "BenchmarkRun", "uid": "6f1c"}]),
            [],
            "ServiceRefused",
            "belongs to a run",
        ),
        (
            service(selector={"app": "shop", "laptime.dev/run": "demo"}),
            [],
            "ServiceRefused",
            "belongs to a run",
        ),
        (
            service(),
            [behind(), behind("demo-server-x", labels={"laptime.dev/run-uid": "6f1c"})],
            "ServiceRefused",
            "selects pod demo-server-x of a run: write a selector that matches none of Laptime's",
        ),
        (
            service(),
            [behind(spec={"hostNetwork": True})],
            "ServiceRefused",
            "selects pod shop-1, which is in the network of its node (hostNetwork)",
        ),
        (
            service(ports=[{"port": 80}, {"port": 81, "name": "admin"}]),
            [],
            "ServicePortMissing",
            "Service shop has no TCP port 8080; it has 80, 81 (admin): write one of these as port",
        ),
        (
            service(ports=[{"port": 8080, "protocol": "UDP"}]),
            [],
            "ServicePortMissing",
            "has no TCP port 8080; it has none",
        ),
    ],
)
def test_what_leads_elsewhere_is_refused_with_what_to_write(
    manifest: dict[str, Any] | None, pods: list[dict[str, Any]], why: str, says: str
) -> None:
    view = service_view(SHOP, "bench", manifest, pods)
    assert view.target is None
    assert view.refused is not None
    assert view.refused[0] == why
    assert says in view.refused[1]


# ---- a run that drives one


def spec_of(repetitions: int = 2, servers: list[dict[str, Any]] | None = None) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": SERVERS if servers is None else servers,
            "topology": {"postgres": {}},
            "loads": [{"name": "l", "closed": {"connections": 2, "duration": "2s"}}],
            "repetitions": repetitions,
        }
    )


def pod_behind(name: str = "shop-1", **changes: Any) -> PodView:
    made = PodView(name, "", START, uid=f"uid-of-{name}", phase="Running", ready=True, image="s:1")
    return replace(made, **changes)


STEADY = TargetView(
    "shop", "5e/7", Target(8080, 8080, {"app": "shop"}), pods=(pod_behind(), pod_behind("shop-2"))
)


def world_of(seed: int = 3, network: Network | None = None, **more: Any) -> World:
    world = World(spec_of(**more), Random(seed), network=network)
    world.targets = {"mine": STEADY}
    return world


def until_true(world: World, true: Callable[[World], bool]) -> None:
    while not true(world):
        world.step()
        world.advance()
        assert world.passes < 1000, world.run.status


def measuring_mine(world: World) -> bool:
    """Whether the generator of a trial of the Service runs."""
    trials = {one.name: one.server for one in world.trials}
    return any(
        pod.component == "generator" and pod.phase == "Running" and trials.get(pod.trial) == "mine"
        for pod in world.pods.values()
        if pod.trial is not None
    )


def results_of(world: World, server: str = "mine") -> list[TrialResult]:
    found = [one for one in world.observe().results.values() if one.server == server]
    return sorted(found, key=lambda one: one.ordinal)


def server_of(world: World, name: str = "mine") -> tuple[ServerState, str | None]:
    found = {one.name: (one.state, one.reason) for one in world.run.status.servers or []}
    return found.get(name, (ServerState.PENDING, None))


def test_it_is_checked_and_measured_and_nothing_of_it_is_touched() -> None:
    world = world_of(network=Network())
    policies: set[str] = set()
    while not (world.run.status.state and world.run.status.state.terminal):
        for action in world.step().actions:
            match action:
                case Apply(manifest) | Create(manifest):
                    assert manifest["metadata"]["name"].startswith("demo")
                    assert manifest["kind"] not in ("Deployment", "Service") or (
                        "mine" not in manifest["metadata"]["name"]
                    )
                case Delete(_, name):
                    assert name.startswith("demo")
        policies |= set(world.policies)
        world.advance()
        assert world.passes < 1000
    assert world.run.status.state is State.SUCCEEDED
    assert "demo-verify-mine" in world.jobs_started
    assert [one.attempt for one in results_of(world)] == [1, 1]
    assert [one.attempt for one in results_of(world, "other")] == [1, 1]
    assert policies == {"demo-network", "demo-to-mine"}
    assert not world.policies


def test_its_policy_is_there_before_its_first_job() -> None:
    world = world_of(network=Network())
    while "demo-verify-mine" not in world.jobs_started:
        world.step()
        assert ("demo-verify-mine" in world.jobs_started) == ("demo-to-mine" in world.policies)
        world.advance()


def test_a_run_of_services_alone_needs_no_pods_but_its_drivers() -> None:
    world = World(
        BenchmarkRunSpec.model_validate(
            {**spec_of().to_wire(), "servers": SERVERS[:1], "topology": {}}
        ),
        Random(1),
    )
    world.targets = {"mine": STEADY}
    components: set[str] = set()
    while not (world.run.status.state and world.run.status.state.terminal):
        world.step()
        world.advance()
        components |= {pod.component for pod in world.pods.values()}
    assert world.run.status.state is State.SUCCEEDED
    assert components == {"verifier", "generator"}


def _restarted() -> tuple[PodView, ...]:
    again = pod_behind("shop-2")
    return pod_behind(), replace(again, containers=(ContainerView("app", restarts=1),))


DISTURBANCES: dict[str, tuple[TargetView, str]] = {
    "a container is started again": (
        replace(STEADY, pods=_restarted()),
        "started again or replaced: shop-2",
    ),
    "another pod takes the name of one": (
        replace(STEADY, pods=(pod_behind(), pod_behind("shop-2", uid="another"))),
        "started again or replaced: shop-2",
    ),
    "an autoscaler adds one": (
        replace(STEADY, pods=(*STEADY.pods, pod_behind("shop-3"))),
        "new: shop-3",
    ),
    "one is evicted": (replace(STEADY, pods=STEADY.pods[:1]), "gone: shop-2"),
    "a rollout replaces all": (
        replace(STEADY, pods=(pod_behind("shop-8"), pod_behind("shop-9"))),
        "gone: shop-1, shop-2; new: shop-8, shop-9",
    ),
    "the Service is written": (replace(STEADY, version="5e/8"), "the Service itself was changed"),
    "the Service is made anew": (replace(STEADY, version="6a/9"), "the Service itself was changed"),
}


@pytest.mark.parametrize("case", DISTURBANCES)
def test_what_changes_while_it_is_measured_makes_the_attempt_be_repeated(case: str) -> None:
    changed, says = DISTURBANCES[case]
    world = world_of()
    until_true(world, measuring_mine)
    world.targets = {"mine": changed}
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    first, second = results_of(world)
    assert [one.reason for one in first.lost_attempts] == ["ServiceUnsteady"]
    assert first.lost_attempts[0].fault is Fault.CLUSTER
    assert says in first.lost_attempts[0].message
    assert (first.attempt, second.attempt) == (2, 1)
    assert first.outcome is TrialOutcome.MEASURED


def test_what_never_stays_as_it_is_has_no_figures_and_the_others_have() -> None:
    world = world_of(repetitions=3)
    passes = 0
    while not (world.run.status.state and world.run.status.state.terminal):
        passes += 1
        world.targets = {"mine": replace(STEADY, version=f"5e/{passes}")}
        world.step()
        world.advance()
        assert world.passes < 1000
    assert all(one.outcome is TrialOutcome.FAILED for one in results_of(world))
    assert {one.reason for one in results_of(world)} == {"ServiceUnsteady"}
    assert all(one.outcome is TrialOutcome.MEASURED for one in results_of(world, "other"))


def test_a_selector_that_is_changed_ends_the_server_and_not_the_run() -> None:
    world = world_of(repetitions=4)
    until_true(world, lambda world: len(results_of(world)) == 1)
    elsewhere = Target(8080, 8080, {"app": "another"})
    world.targets = {"mine": replace(STEADY, version="5e/8", target=elsewhere)}
    run_to_the_end(world)
    measured, *later = results_of(world)
    assert measured.outcome is TrialOutcome.MEASURED
    assert {one.reason for one in later} == {"ServiceChanged"}
    # Twice in a row: then nobody tries any more.
    assert len(later) == 2
    assert "leads elsewhere than when its answers were checked" in (later[0].message or "")
    assert len(results_of(world, "other")) == 4


def test_where_it_led_to_is_known_to_an_operator_started_anew_and_after_a_retry() -> None:
    world = world_of(servers=SERVERS[:1])
    until_true(world, lambda world: server_of(world)[0] is ServerState.VERIFIED)
    stored = world.run.status
    assert STEADY.target is not None
    assert [one.leads_to for one in stored.servers or []] == [STEADY.target.fingerprint]
    world.targets = {"mine": replace(STEADY, target=Target(8080, 8080, {"app": "another"}))}
    run_to_the_end(world)
    again = replace(world.run, spec=world.run.spec.model_copy(update={"retry": 1}))
    known = asked_again(again, world.now)
    assert [one.leads_to for one in known.servers or []] == [STEADY.target.fingerprint]


def test_a_service_without_a_ready_pod_is_waited_for_and_then_out() -> None:
    starting = tuple(replace(pod, ready=False) for pod in STEADY.pods)
    world = world_of()
    world.targets = {"mine": replace(STEADY, pods=starting)}
    until_true(world, lambda world: world.run.status.state is State.VERIFYING)
    since = world.now
    until_true(world, lambda world: server_of(world)[0] is ServerState.FAILED)
    assert timedelta(seconds=25) < world.now - since < timedelta(seconds=45)
    assert server_of(world)[1] == "ServiceNotReady"
    assert "demo-verify-mine" not in world.jobs_started
    run_to_the_end(world)
    assert len(results_of(world, "other")) == 2


def test_a_service_that_comes_in_time_is_checked() -> None:
    world = world_of()
    world.targets = {"mine": TargetView("shop", refused=("ServiceMissing", "there is none"))}
    until_true(world, lambda world: world.run.status.state is State.VERIFYING)
    progressing = world.run.status.condition("Progressing")
    world.targets = {"mine": STEADY}
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert progressing is not None
    assert progressing.reason in ("ServiceMissing", "Verifying", "Deploying")


def test_one_that_leads_elsewhere_is_out_at_once() -> None:
    world = world_of()
    world.targets = {"mine": TargetView("shop", "5e/7", refused=("ServiceRefused", "leads out"))}
    until_true(world, lambda world: world.run.status.state is State.VERIFYING)
    began = world.now
    until_true(world, lambda world: server_of(world)[0] is ServerState.FAILED)
    assert world.now - began < timedelta(seconds=10)
    assert server_of(world) == (ServerState.FAILED, "ServiceRefused")


def test_one_that_is_away_for_a_while_is_measured_when_it_is_back() -> None:
    world = world_of()
    until_true(world, lambda world: len(results_of(world)) == 1)
    world.targets = {"mine": TargetView("shop", refused=("ServiceMissing", "there is none"))}
    for _ in range(5):
        world.step()
        world.advance()
    world.targets = {"mine": replace(STEADY, version="6a/9")}
    run_to_the_end(world)
    assert world.run.status.state is State.SUCCEEDED
    assert all(one.outcome is TrialOutcome.MEASURED for one in results_of(world))


def test_restarts_of_before_the_run_are_nobodys_business() -> None:
    old = tuple(
        replace(pod, containers=(ContainerView("app", restarts=5, ready=True, running=True),))
        for pod in STEADY.pods
    )
    world = world_of()
    world.targets = {"mine": replace(STEADY, pods=old)}
    run_to_the_end(world)
    assert [one.lost_attempts for one in results_of(world)] == [[], []]


def test_the_images_of_all_its_containers_are_known() -> None:
    pods = tuple(
        replace(
            pod,
            containers=(
                ContainerView("app", image_id=f"shop@sha256:{pod.name[-1]}"),
                ContainerView("sidecar", image_id="mesh@sha256:9"),
            ),
        )
        for pod in STEADY.pods
    )
    world = world_of()
    world.targets = {"mine": replace(STEADY, pods=pods)}
    run_to_the_end(world)
    known = "mesh@sha256:9 and shop@sha256:1 and shop@sha256:2"
    assert {one.images["server"] for one in results_of(world)} == {known}


# ---- the operator, on an API server


def on_the_server(server: ApiServer, **spec: Any) -> dict[str, Any]:
    made = service(**spec)
    metadata = {"name": "shop", "namespace": "default"}
    return server.add({"apiVersion": "v1", "kind": "Service", **made, "metadata": metadata})


def pod_on_the_server(server: ApiServer, name: str = "shop-1") -> dict[str, Any]:
    pod = behind(name)
    metadata = {"name": name, "namespace": "default", "labels": pod["metadata"]["labels"]}
    return server.add({"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata})


def run_of(name: str = "demo") -> dict[str, Any]:
    manifest = run_manifest(name)
    spec = {
        **spec_of(1, SERVERS[:1]).to_wire(),
        "topology": {},
    }
    return {**manifest, "spec": spec}


async def test_the_operator_drives_a_service_of_the_namespace_and_asks_for_no_more_rights() -> None:
    server = ApiServer()
    there = on_the_server(server)
    pod = pod_on_the_server(server)
    server.add(run_of())
    async with working(server), operating(server):
        await until(lambda: state(server, "demo") == "Succeeded", 30.0)
    assert server.get("Service", "default", "shop") == there
    assert server.get("Pod", "default", "shop-1") == pod
    touched = [
        (verb, path)
        for verb, path in server.requests
        if verb in ("patch", "delete", "create") and "shop" in path
    ]
    assert touched == []
    asked = {path.split("?")[0].split("/")[-1] for _, path in server.requests}
    assert not {"endpoints", "endpointslices", "secrets"} & asked


async def test_a_change_of_its_pods_is_heard_of_while_it_is_measured() -> None:
    server = ApiServer()
    on_the_server(server)
    pod_on_the_server(server)
    server.add(run_of())

    def attempt(number: int) -> Callable[[], Any]:
        name = "demo-trial-001" if number == 1 else f"demo-trial-001-attempt-{number}"
        return lambda: server.get("Job", "default", name)

    async with operating(server):
        async with working(server):
            await until(attempt(1), 20.0)
        # Nobody works now: the attempt does not end.
        server.remove("Pod", "default", "shop-1")
        pod_on_the_server(server, "shop-2")
        await until(lambda: lost_attempts(server) == ["ServiceUnsteady"], 20.0)
        async with working(server):
            await until(attempt(2), 40.0)


async def test_no_figure_is_stored_on_what_a_frozen_watch_says() -> None:
    server = ApiServer()
    on_the_server(server)
    pod_on_the_server(server)
    server.add(run_of())
    nodes = Nodes(server)

    def generator_is_followed() -> bool:
        if not nodes.generators_started:
            nodes.step()
        return any("/log" in path and "trial-001" in path for _, path in server.requests)

    async with operating(server):
        await until(generator_is_followed, 20.0)
        server.frozen = True
        server.remove("Pod", "default", "shop-1")
        pod_on_the_server(server, "shop-2")
        nodes.step()  # Now there is a result.
        await until(lambda: lost_attempts(server) == ["ServiceUnsteady"], 20.0)
    assert server.get("ConfigMap", "default", "demo-trial-001") is None


async def test_a_selector_that_changes_is_followed_before_the_run_rests_on_it() -> None:
    server = ApiServer()
    on_the_server(server, selector={"app": "nobody"})
    pod_on_the_server(server)
    server.add(run_of())
    async with working(server), operating(server):
        await until(lambda: reason(server, "demo", "Progressing") == "ServiceNotReady", 20.0)
        assert "its selector app=nobody matches none" in message(server)
        server.change("Service", "default", "shop", spec=service()["spec"])
        await until(lambda: state(server, "demo") == "Succeeded", 30.0)


def lost_attempts(server: ApiServer) -> list[str]:
    found = server.get("BenchmarkRun", "default", "demo") or {}
    return [one["reason"] for one in (found.get("status") or {}).get("lostAttempts") or []]


async def test_what_it_leads_to_outside_is_said_within_seconds() -> None:
    server = ApiServer()
    on_the_server(server, type="ExternalName", externalName="example.org", selector=None)
    server.add(run_of())
    async with working(server), operating(server):
        await until(lambda: reason(server, "demo", "ServersVerified") == "ServiceRefused", 10.0)
        assert "example.org (ExternalName)" in message(server, "ServersVerified")
        await until(lambda: state(server, "demo") == "Failed", 20.0)


# ---- certificates in a ConfigMap

WITH_CERTIFICATES: list[dict[str, Any]] = [
    {
        "name": "mine",
        "service": {"name": "shop", "port": 8080, "tls": {"configMap": "ca", "key": "ca.crt"}},
    },
    SERVERS[1],
]
THERE = {"ca": frozenset({"ca.crt"})}


def without_certificates(seconds: float, state: State = State.RUNNING) -> World:
    """Return a run whose ConfigMap is away for so long, in the middle of this state."""
    world = world_of(servers=WITH_CERTIFICATES, repetitions=4)
    world.scripts = dict(THERE)
    until_true(world, lambda world: world.run.status.state is state)
    # Older than what is missing is waited for.
    world.now += timedelta(seconds=60)
    until_true(world, lambda world: world.run.status.state is state)
    world.scripts = {"ca": None}
    since = world.now
    world.step()
    assert world.run.status.state is state
    progressing = world.run.status.condition(ConditionType.PROGRESSING)
    assert progressing is not None
    assert progressing.reason == "ConfigMapMissing"
    while (world.now - since).total_seconds() < seconds:
        world.advance()
        world.step()
    world.scripts = dict(THERE)
    run_to_the_end(world)
    return world


@pytest.mark.parametrize("state", [State.VERIFYING, State.RUNNING])
@pytest.mark.parametrize("seconds", [0, 20])
def test_a_config_map_that_is_replaced_in_mid_run_is_waited_for(
    seconds: float, state: State
) -> None:
    world = without_certificates(seconds, state)
    assert world.run.status.state is State.SUCCEEDED
    assert len(results_of(world)) == 4
    assert not any(one.lost_attempts for one in results_of(world))


def test_a_config_map_that_does_not_come_back_in_mid_run_ends_it() -> None:
    world = without_certificates(45)
    succeeded = world.run.status.condition(ConditionType.SUCCEEDED)
    assert succeeded is not None
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "ConfigMapMissing")


def test_a_config_map_is_waited_for_where_the_run_waits_for_something_else_already() -> None:
    world = world_of(servers=WITH_CERTIFICATES, repetitions=4)
    world.scripts = dict(THERE)
    until_true(world, lambda world: world.run.status.state is State.VERIFYING)
    # A pod that cannot be placed is waited for longer than a ConfigMap is.
    status, long_ago = world.run.status, format_time(world.now)
    waits = [
        one.model_copy(
            update={
                "status": ConditionStatus.FALSE,
                "reason": "Unschedulable",
                "last_transition_time": long_ago,
            }
        )
        if one.type == ConditionType.PROGRESSING
        else one
        for one in status.conditions or []
    ]
    world.run = replace(world.run, status=status.model_copy(update={"conditions": waits}))
    for _ in range(2):
        world.now += timedelta(seconds=50)
        world._at_work.look(*(2 * [world.now.timestamp()]))
    world.scripts = {"ca": None}
    world.step()
    world.step()
    assert world.run.status.state is State.VERIFYING
    world.scripts = dict(THERE)
    run_to_the_end(world)
    assert len(results_of(world)) == 4
