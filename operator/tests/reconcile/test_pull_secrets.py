"""Where a pod cannot pull, the message says which of its pull Secrets is not there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from laptime.reconcile.diagnose import diagnose
from laptime.reconcile.pull_secrets import PullSecrets
from laptime.reconcile.views import PodView, pod_view

from .api_server import ApiServer, serving

LATER = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def pod(*secrets: str, reason: str = "ErrImagePull") -> PodView:
    """Return a pod of a server whose image cannot be had."""
    waiting = {"reason": reason, "message": "401 Unauthorized"}
    return pod_view(
        {
            "metadata": {
                "name": "demo-server-mine-1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"laptime.dev/component": "server"},
            },
            "spec": {
                "containers": [{"name": "server", "image": "private.example/mine:1"}],
                "imagePullSecrets": [{"name": name} for name in secrets],
                "nodeName": "n1",
            },
            "status": {
                "containerStatuses": [
                    {
                        "name": "server",
                        "image": "private.example/mine:1",
                        "state": {"waiting": waiting},
                    }
                ]
            },
        }
    )


def secret(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
    }


def message(one: PodView) -> str:
    problem = diagnose("server mine", [one], LATER)
    assert problem is not None
    assert (problem.reason, problem.fatal) == ("ImagePullFailed", False)
    assert "(private.example/mine:1) cannot be pulled: 401 Unauthorized" in problem.message
    return problem.message


async def test_a_secret_that_is_missing_is_named_and_nothing_is_stored_to_find_out() -> None:
    server = ApiServer()
    server.add(secret("chart"))
    async with serving(server) as kube:
        (one,) = await PullSecrets().look(kube, "default", [pod("chart", "regcred")])
    assert one.missing_secrets == ("regcred",)
    assert "There is no Secret regcred in the run's namespace" in message(one)
    assert "kubectl create secret docker-registry regcred" in message(one)
    assert [name for kind, _, name in server.objects if kind == "Secret"] == ["chart"]
    assert {verb for verb, path in server.requests if "secrets" in path} == {"create"}


async def test_secrets_that_are_there_are_named_as_what_it_is_pulled_with() -> None:
    server = ApiServer()
    server.add(secret("regcred"))
    async with serving(server) as kube:
        (one,) = await PullSecrets().look(kube, "default", [pod("regcred")])
    assert one.missing_secrets == ()
    assert "one of the Secrets with which it is pulled is for its registry: regcred" in message(one)


async def test_where_nobody_may_ask_nothing_is_said_of_it() -> None:
    server = ApiServer()
    server.forbidden.add("default")
    async with serving(server) as kube:
        (one,) = await PullSecrets().look(kube, "default", [pod("regcred")])
    assert one.missing_secrets == ()


async def test_pods_that_get_on_cost_no_question_and_others_one_in_a_while() -> None:
    server, known = ApiServer(), PullSecrets()
    async with serving(server) as kube:
        await known.look(kube, "default", [pod("regcred", reason="ContainerCreating")])
        assert server.requests == []
        for _ in range(3):
            await known.look(kube, "default", [pod("regcred"), pod("regcred")])
    assert len(server.requests) == 1


def test_without_any_it_says_where_one_is_named() -> None:
    assert "a private registry needs a Secret in spec.imagePullSecrets" in message(pod())
