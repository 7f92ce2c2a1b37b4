"""What the cluster adds to the pods of a run is said in the trials that it took part in."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any

import pytest

from laptime.api.attempts import Fault
from laptime.api.results import Validity
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.manifests.undisturbed import pod_template
from laptime.measure import Altered
from laptime.reconcile.diagnose import diagnose
from laptime.reconcile.fault import whose_fault
from laptime.reconcile.held import OF_KIND, held
from laptime.reconcile.kubelets import Kubelets
from laptime.reconcile.views import ContainerView, PodView, WorkloadView, pod_view

from .api_server import ApiServer, Object, serving
from .nodes import Nodes, working
from .simulated_cluster import START
from .test_controller import operating, run_manifest, state, until
from .test_deadlines import in_state, measuring, over
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .test_folding import stored
from .test_side_services import MOCK, STORE, scenario
from .test_side_services import spec as with_services
from .world import World

COMPONENT = "laptime.dev/component"


def mesh(pod: Object) -> None:
    """Add a proxy to servers, whatever they ask for, and limit generators, as a LimitRange does."""
    component = pod["metadata"]["labels"][COMPONENT]
    if component == "server":
        proxy = {"name": "istio-proxy", "image": "istio/proxyv2"}
        pod["spec"]["containers"].insert(0, proxy)
    if component == "generator":
        pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "100m"}


ADDED = (
    "the cluster added container istio-proxy to the pod of server s0: what it does there is in the "
    "figures"
)
LIMITED = "the cluster limits the generator to 100m of CPU, and nobody asked for a limit"


async def finished(
    server: ApiServer, name: str, admission: Any, spec: Object | None = None
) -> list[Object]:
    server.add({**run_manifest(name), "spec": spec or spec_of(1, 1, 2).to_wire()})
    async with operating(server), working(server) as nodes:
        nodes.admission = admission
        await until(lambda: state(server, name) == "Succeeded")
    trials: list[Object] = json.loads(stored(server, name).files["results.json"])["trials"]
    return trials


async def test_a_proxy_and_a_limit_are_said_in_each_trial_and_in_the_status() -> None:
    server = ApiServer()
    trials = await finished(server, "meshed", mesh)
    for trial in trials:
        assert trial["validity"] == Validity.DOUBTFUL
        assert {ADDED, LIMITED} <= set(trial["validityReasons"])
        # The image of the server is that of its own container.
        assert trial["images"]["server"] == "sync@sha256:1"
    (row,) = server.objects["BenchmarkRun", "default", "meshed"]["status"]["results"]
    assert row["validity"] == Validity.DOUBTFUL
    # Reports are made of the rows as these are.
    for said in (ADDED, LIMITED):
        assert f"{said} (in 2 of 2 repetitions)" in row["validityReasons"]


async def test_a_shell_beside_the_database_is_said_from_the_trial_on_in_which_it_came() -> None:
    server = ApiServer()
    begun: list[str] = []

    def attach(pod: Object) -> None:
        if pod["metadata"]["labels"][COMPONENT] != "generator":
            return
        begun.append(pod["metadata"]["name"])
        for one in server.of("Pod"):
            # Its pods are there since before the first trial.
            if len(begun) == 2 and one["metadata"]["labels"][COMPONENT] == "postgres":
                shell = {"name": "debugger", "image": "busybox"}
                changed = {**one["spec"], "ephemeralContainers": [shell]}
                server.change("Pod", "default", one["metadata"]["name"], spec=changed)

    trials = await finished(server, "looked-into", attach)
    said = "the cluster added container debugger to the pod of Postgres: what it does there is in "
    assert [any(one.startswith(said) for one in trial["validityReasons"]) for trial in trials] == [
        False,
        True,
    ]


async def test_a_cluster_that_changes_nothing_is_not_spoken_of() -> None:
    trials = await finished(ApiServer(), "plain", lambda _: None)
    assert not [one for trial in trials for one in trial["validityReasons"] if "cluster" in one]


async def test_quantities_with_a_point_are_no_doubt_however_the_api_server_keeps_them() -> None:
    kept = {"0.7": "700m", "1.4Gi": "1503238553600m"}
    found: list[str] = []

    def keep(pod: Object) -> None:
        for container in pod["spec"]["containers"]:
            for said in container["resources"].values():
                found.extend(text for text in said.values() if text in kept)
                said.update({what: kept.get(text, text) for what, text in said.items()})

    resources = {"cpu": "0.7", "memory": "1.4Gi"}
    document = spec_of(1, 1, 2, generator={"resources": resources}).to_wire()
    document["servers"][0]["resources"] = resources
    trials = await finished(ApiServer(), "points", keep, document)
    # Two pods of each, with both as a limit and as a request; the check has a third server.
    assert len(found) >= 16
    assert not [one for trial in trials for one in trial["validityReasons"] if "cluster" in one]


async def test_pods_that_an_older_version_made_are_not_doubted() -> None:
    def older(pod: Object) -> None:
        mesh(pod)
        del pod["metadata"]["annotations"]

    trials = await finished(ApiServer(), "older", older)
    assert not [one for trial in trials for one in trial["validityReasons"] if "cluster" in one]


def crashing(name: str) -> PodView:
    """Return a pod of a server of which one container ends again and again."""
    pod = pod_template({COMPONENT: "server"}, {"containers": [OWN]})
    return pod_view(
        {
            "metadata": {
                **pod["metadata"],
                "name": "demo-server-mine-1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"containers": [OWN, {"name": "istio-proxy", "image": "proxyv2"}]},
            "status": {
                "containerStatuses": [
                    {
                        "name": name,
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 255, "message": "no certificate"}},
                    }
                ]
            },
        }
    )


OWN = {"name": "server", "image": "mine:1", "resources": {}}


@pytest.mark.parametrize(
    ("name", "reason", "fault"),
    [
        ("istio-proxy", "AddedContainerFailed", Fault.CLUSTER),
        ("server", "CrashLoop", Fault.SERVER),
    ],
)
def test_no_server_answers_for_a_container_that_is_not_its_own(
    name: str, reason: str, fault: Fault
) -> None:
    problem = diagnose("server mine", [crashing(name)], datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    assert problem is not None
    assert (problem.reason, problem.fatal) == (reason, True)
    assert "no certificate" in problem.message
    assert ("container istio-proxy to the pod of server mine" in problem.message) == (
        name == "istio-proxy"
    )
    assert whose_fault(problem.reason, problem.part) is fault


class Meshed(World):
    """A cluster that puts a proxy and what prepares it into each pod of a Job.

    The proxy goes on when the Job's own container has ended, so that neither pod nor Job ever does,
    until the deadline of the Job passes.
    """

    slow_servers = False
    """Whether each server's image is pulled for a minute and a half."""

    def create(self, manifest: Object) -> None:
        super().create(manifest)
        if manifest["kind"] == "Job":
            self._made[manifest["metadata"]["name"]] = manifest["spec"]

    @cached_property
    def _made(self) -> dict[str, Object]:
        return {}

    def _follow_job(self, name: str, job: WorkloadView) -> None:
        if job.failed_reason is not None:
            return
        super()._follow_job(name, job)
        job = self.jobs[name]
        age = (self.now - job.created).total_seconds()
        over = job.complete or job.failed_reason is not None
        if over or age < self._made[name].get("activeDeadlineSeconds", math.inf):
            return
        self.jobs[name] = replace(job, failed_reason="DeadlineExceeded", failed_message="too long")
        for pod in job.own(self.pods.values()):
            self.pods[pod.name] = replace(pod, deleting_since=self.now)

    def _run_pod(self, pod: PodView) -> None:
        if self.slow_servers and pod.component == "server" and pod.age(self.now) < 90:
            pulling = ContainerView("main", waiting_reason="ContainerCreating")
            self.pods[pod.name] = replace(pod, containers=(pulling,))
            return
        servers = [one for one in self.pods.values() if one.component == "server"]
        if self.slow_servers and pod.component == "verifier" and not any(s.ready for s in servers):
            waits = ContainerView("verify", ready=True, running=True, running_since=self.now)
            self.pods[pod.name] = replace(pod, phase="Running", containers=(waits,))
            return
        if not pod.ended:
            super()._run_pod(pod)
        found = self.pods[pod.name]
        if found.deleting or found.owner not in self.jobs or not found.containers:
            return
        before = ContainerView("istio-init", exit_code=0)
        proxy = ContainerView("istio-proxy", ready=True, running=True, running_since=self.now)
        over = found.phase == "Succeeded"
        self.pods[pod.name] = replace(
            found,
            phase="Running" if over else found.phase,
            # So a kubelet says of a pod of which one container has ended.
            ready=found.ready and not over,
            once=True,
            altered=Altered(main="k6", added=(before.name, proxy.name), prepares=(before.name,)),
            containers=(before, *found.own, proxy),
        )


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_proxy_that_outlives_each_job_keeps_no_run_from_its_end(parallelism: int) -> None:
    world = Meshed(spec_of(2, 1, 2, generator={"parallelism": parallelism}), Random(1))
    world_until(world, measuring)
    # Each counts against a quota for pods, whatever it still does.
    assert not [pod for pod in world.observe().pods_of("verifier") if pod.live]
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    results = world.observe().results.values()
    assert len(results) == 4
    assert not any(one.lost_attempts for one in results)
    said = "and container istio-proxy to the pod of the generator"
    assert all(said in " ".join(one.validity_reasons) for one in results)


def test_beside_such_a_proxy_wrong_answers_are_the_servers_and_no_lost_node() -> None:
    world = Meshed(spec_of(2, 1, 1), Random(1))
    said = "GET / is 500 and should be 200"
    world.verdicts["s1"] = {"ok": False, "reason": "WrongAnswer", "message": said}
    world_until(world, over)
    (wrong,) = (one for one in world.run.status.servers or [] if one.name == "s1")
    assert (wrong.reason, wrong.message) == ("WrongAnswer", f"server s1: {said}")
    assert len(world.observe().results) == 1


@pytest.mark.parametrize("service", [MOCK, STORE])
def test_beside_such_a_proxy_a_reset_is_over_when_its_own_container_is(service: Object) -> None:
    world = Meshed(with_services(repetitions=2), Random(1), scenario=scenario(service))
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED


def test_beside_such_a_proxy_a_reset_that_is_done_has_no_deadline() -> None:
    world = Meshed(with_services(repetitions=2), Random(1), scenario=scenario(STORE))
    world.slow_servers = True
    world_until(world, over)
    assert world.run.status.state is State.SUCCEEDED
    assert not any(one.lost_attempts for one in world.observe().results.values())


def test_beside_such_a_proxy_a_reset_that_fails_says_so() -> None:
    world = Meshed(with_services(), Random(1), scenario=scenario(STORE))
    world.reset_verdicts = [{"exit": 3, "ok": False, "message": "no such table"}]
    world_until(world, over)
    ended = world.run.status.condition(ConditionType.SUCCEEDED)
    assert ended is not None
    assert ended.reason == "ServiceResetFailed"
    assert "no such table" in ended.message


async def test_of_a_pod_that_is_over_beside_such_a_proxy_no_kubelet_is_asked() -> None:
    server = ApiServer()
    done = ContainerView("k6", exit_code=0)
    proxy = ContainerView("istio-proxy", ready=True, running=True)
    over_ = PodView("g-1", "generator", START, node="node-1", phase="Running", once=True)
    over_ = replace(over_, altered=Altered(added=("istio-proxy",)), containers=(done, proxy))
    goes_on = replace(over_, name="g-2", containers=(replace(done, exit_code=None), proxy))
    async with serving(server) as kube:
        kubelets = Kubelets(kube, lambda: None)
        kubelets.look("default", [over_, goes_on], START + timedelta(minutes=1))
        await until(lambda: server.requests)
        kubelets.close()
    assert [path for _, path in server.requests] == ["/api/v1/namespaces/default/pods/g-2/log"]


@pytest.mark.parametrize(("policy", "ended"), [("Never", True), ("Always", False)])
def test_a_pod_of_a_job_is_over_with_its_own_container(policy: str, ended: bool) -> None:
    pod = pod_template({COMPONENT: "generator"}, {"containers": [OWN]})
    metadata = {**pod["metadata"], "name": "g-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    containers = [OWN, {"name": "istio-proxy", "image": "proxyv2"}]
    running: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    done = {"name": "server", "ready": False, "state": {"terminated": {"exitCode": 0}}}
    proxy = {"name": "istio-proxy", "ready": True, "state": running}
    manifest = {
        "metadata": metadata,
        "spec": {"restartPolicy": policy, "containers": containers},
        "status": {"phase": "Running", "containerStatuses": [done, proxy]},
    }
    view = pod_view(held(manifest, OF_KIND["Pod"]))
    assert (view.ended, view.marked_unready) == (ended, not ended)


TIERS = ("postgres", "pgbouncer", "haproxy")


@pytest.mark.parametrize("component", ["server", *TIERS])
def test_two_pods_are_not_measured_as_the_one_that_a_run_asks_for(component: str) -> None:
    """A policy that gives all Deployments two replicas; both would be behind one Service."""
    world = World(spec_of(2, 1, 2), Random(1))
    world.doubled = {component}
    world_until(world, over)
    assert world.jobs_started == []
    ended = world.run.status.condition(ConditionType.SUCCEEDED)
    assert ended is not None
    assert (ended.status, ended.reason) == (ConditionStatus.FALSE, "ReplicasChanged")
    assert "has 2 pods where the run has one: demo-" in ended.message


@pytest.mark.parametrize("component", ["server", *TIERS])
def test_a_pod_that_an_autoscaler_adds_in_mid_trial_loses_the_attempt(component: str) -> None:
    world = World(spec_of(2, 1, 2), Random(1))
    world_until(world, measuring)
    world.doubled = {component}
    world_until(world, lambda world: world.run.status.lost_attempts)
    (lost,) = world.run.status.lost_attempts or []
    assert (lost.reason, lost.fault) == ("ReplicasChanged", Fault.CLUSTER)


def test_a_tier_that_somebody_has_scaled_to_none_is_said_to_be() -> None:
    """As by what takes the pods of all Deployments away at night."""
    world = World(spec_of(2, 1, 2), Random(1))
    world_until(world, measuring)

    def at_night(world: World) -> bool:
        if tier := world.deployments.get("demo-postgres"):
            world.deployments["demo-postgres"] = replace(tier, replicas=0)
        return over(world)

    world_until(world, at_night)
    ended = world.run.status.condition(ConditionType.SUCCEEDED)
    assert ended is not None
    assert ended.reason == "ReplicasChanged"
    assert "Deployment demo-postgres has `replicas: 0`, and not by Laptime" in ended.message


async def test_no_figure_is_stored_on_what_a_frozen_watch_says_of_a_tier() -> None:
    """Postgres was killed in mid-trial, and the server hid it: it had no error."""
    server = ApiServer()
    server.add(run_manifest("demo"))
    nodes = Nodes(server)

    def generator_is_followed() -> bool:
        if not nodes.generators_started:
            nodes.step()
        return any("/log" in path and "trial-001" in path for _, path in server.requests)

    def lost() -> list[str]:
        status = (server.get("BenchmarkRun", "default", "demo") or {}).get("status", {})
        return [one["reason"] for one in status.get("lostAttempts") or []]

    async with operating(server):
        await until(generator_is_followed, 20.0)
        server.frozen = True
        (postgres,) = (
            one for one in server.of("Pod") if one["metadata"]["labels"][COMPONENT] == "postgres"
        )
        status = deepcopy(postgres["status"])
        status["containerStatuses"][0] |= {
            "restartCount": 1,
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
        }
        server.change("Pod", "default", postgres["metadata"]["name"], status=status)
        nodes.step()  # Now there is a result.
        await until(lambda: lost() == ["TierRestarted"], 20.0)
    assert server.get("ConfigMap", "default", "demo-trial-001") is None


@pytest.mark.parametrize("reached", [State.VERIFYING, State.RUNNING])
def test_pods_of_a_run_that_an_older_version_began_are_not_made_anew(reached: State) -> None:
    """Its templates have other labels, so that the hashes of all objects are other ones."""
    world = World(spec_of(2, 1, 3), Random(1))
    world_until(world, in_state(reached))
    older = {name: replace(one, manifest_hash="older") for name, one in world.deployments.items()}
    world.deployments.update(older)

    def tiers() -> set[str]:
        return {pod.name for name in TIERS for pod in world.observe().pods_of(name)}

    before = tiers()
    assert len(before) == len(TIERS)
    while world.run.status.state in (State.VERIFYING, State.RUNNING):
        assert tiers() == before
        world.step()
        world.advance()
    assert len(world.observe().results) == 6
    assert not any(one.lost_attempts for one in world.observe().results.values())
