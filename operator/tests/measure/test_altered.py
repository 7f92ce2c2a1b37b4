"""What a cluster made of a pod is known by what the pod says that was asked for."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from laptime.api.results import Validity
from laptime.manifests.undisturbed import pod_template
from laptime.measure import UNALTERED, altered
from laptime.measure.validity import judge_pods

SERVER = {
    "name": "server",
    "image": "registry.example/own:1.2",
    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
}
PREPARE = {"name": "prepare", "image": "k6:1", "resources": {"requests": {"cpu": "50m"}}}
DIGEST = f"sha256:{64 * '1'}"


def pod(**main: Any) -> dict[str, Any]:
    """Return a pod as a run asks for it."""
    spec = {"containers": [{**SERVER, **main}], "initContainers": [PREPARE]}
    return deepcopy(pod_template({}, spec))


def said(changed: dict[str, Any], what: str = "server axum") -> list[str]:
    return list(judge_pods([(what, altered(changed))]).reasons)


def test_a_pod_as_it_was_asked_for_is_not_doubted() -> None:
    one = altered(pod())
    assert (one.main, one.added, one.limits, one.resources, one.images) == (
        "server",
        (),
        (),
        (),
        (),
    )
    assert judge_pods([("server axum", one)]).validity is Validity.VALID


def test_containers_that_a_mesh_adds_are_named() -> None:
    changed = pod()
    # Istio puts its own first where it holds the others up until it is ready.
    changed["spec"]["containers"].insert(0, {"name": "istio-proxy", "image": "proxyv2"})
    changed["spec"]["initContainers"] += [{"name": "istio-init", "image": "proxyv2"}]
    assert said(changed) == [
        "the cluster added init container istio-init and container istio-proxy to the pod of "
        "server axum: what it does there is in the figures"
    ]
    assert altered(changed).main == "server"
    assert judge_pods([("server axum", altered(changed))]).validity is Validity.DOUBTFUL


def test_an_init_container_that_stays_is_a_container_like_others() -> None:
    changed = pod()
    native = {"name": "istio-proxy", "image": "proxyv2", "restartPolicy": "Always"}
    changed["spec"]["initContainers"].insert(0, native)
    assert said(changed) == [
        "the cluster added container istio-proxy to the pod of server axum: what it does there is "
        "in the figures"
    ]


def test_a_container_that_somebody_attaches_is_named() -> None:
    changed = pod()
    # As kubectl debug does it, at any time; Kubernetes never takes one out of a pod again.
    changed["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "busybox"}]
    assert said(changed) == [
        "the cluster added container debugger to the pod of server axum: what it does there is in "
        "the figures"
    ]


def test_a_limit_that_a_limit_range_sets_is_said_with_its_figures() -> None:
    changed = pod()
    limits = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
    changed["spec"]["containers"][0]["resources"]["limits"] = limits
    assert said(changed, "the generator") == [
        "the cluster limits the generator to 100m of CPU and 128Mi of memory, and nobody asked for "
        "a limit"
    ]


def test_of_two_resources_the_one_that_was_asked_for_is_no_doubt() -> None:
    asked = {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1"}}
    changed = pod(resources=asked)
    changed["spec"]["containers"][0]["resources"]["limits"]["memory"] = "512Mi"
    assert said(changed) == [
        "the cluster limits server axum to 512Mi of memory, and nobody asked for a limit"
    ]


def test_limits_and_requests_of_other_containers_take_nothing_from_the_figures() -> None:
    changed = pod()
    changed["spec"]["initContainers"][0]["resources"]["limits"] = {"cpu": "100m"}
    assert said(changed) == []


@pytest.mark.parametrize(
    ("asked", "has", "words"),
    [
        ("2", {"limits": {"cpu": "500m"}}, ["a CPU limit of 500m, and 2"]),
        ("2", {"limits": {}}, ["no CPU limit, and 2"]),
        ("2", {"requests": {"cpu": "250m"}}, ["a CPU request of 250m, and 2"]),
        ("2", {"requests": {}}, ["no CPU request, and 2"]),
        ("2", {"requests": {"cpu": "2", "memory": "1Gi"}}, ["a memory request of 1Gi, and none"]),
        # Whatever it is, it is not what was asked for.
        ("2", {"limits": {"cpu": "much"}}, ["a CPU limit of much, and 2"]),
    ],
)
def test_resources_that_were_changed_are_said(asked: str, has: Any, words: list[str]) -> None:
    wanted = {"requests": {"cpu": asked}, "limits": {"cpu": asked}}
    changed = pod(resources=wanted)
    changed["spec"]["containers"][0]["resources"].update(has)
    assert said(changed) == [f"the cluster gave server axum {one} was asked for" for one in words]


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1024Gi", "1Ti"),
        ("2000G", "2T"),
        # A part of a byte is kept, to its thousandth.
        ("1.4Gi", "1503238553600m"),
        ("67.9G", "67900M"),
        ("1.1234Gi", "1206241565082m"),
        # Of less than a thousandth a whole one is made.
        ("1.0005", "1001m"),
    ],
)
def test_the_same_amount_is_the_same_however_the_api_server_writes_it(
    asked: str, written: str
) -> None:
    changed = pod(resources={"requests": {"memory": asked}, "limits": {"memory": asked}})
    same = {"requests": {"memory": written}, "limits": {"memory": written}}
    changed["spec"]["containers"][0]["resources"] = same
    assert said(changed) == []


def test_no_number_of_cores_with_a_point_is_taken_for_another_one() -> None:
    # As the API server writes them: 0.7 is 700m.
    different = []
    for thousandths in range(10, 64_001, 10):
        changed = pod(resources={"limits": {"cpu": f"{thousandths / 1000:g}"}})
        limits = {"cpu": f"{thousandths}m" if thousandths % 1000 else f"{thousandths // 1000}"}
        changed["spec"]["containers"][0]["resources"]["limits"] = limits
        different += said(changed)
    assert different == []


def test_a_thousandth_of_a_core_more_is_another_amount() -> None:
    changed = pod(resources={"limits": {"cpu": "1024"}})
    changed["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1024001m"}
    assert said(changed) == [
        "the cluster gave server axum a CPU limit of 1024001m, and 1024 was asked for"
    ]


def test_an_image_from_elsewhere_is_said() -> None:
    changed = pod()
    changed["spec"]["containers"][0]["image"] = "mirror/own:1.2"
    changed["spec"]["initContainers"][0]["image"] = "mirror/k6:1"
    assert said(changed) == [
        "the cluster runs mirror/k6:1 for container prepare of server axum, and k6:1 was asked for",
        "the cluster runs mirror/own:1.2 for server axum, and registry.example/own:1.2 was asked "
        "for",
    ]


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ("registry.example/own:1.2", f"registry.example/own:1.2@{DIGEST}"),
        (f"registry.example/own@{DIGEST}", f"mirror/own@{DIGEST}"),
    ],
)
def test_an_image_that_is_the_same_by_its_digest_is_no_other_one(asked: str, runs: str) -> None:
    changed = pod(image=asked)
    changed["spec"]["containers"][0]["image"] = runs
    assert said(changed) == []


def test_several_generators_say_the_same_once() -> None:
    changed = pod()
    changed["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "100m"}
    one = altered(changed)
    assert len(judge_pods([("the generator", one), ("the generator", one)]).reasons) == 1


def test_of_a_pod_that_does_not_say_what_was_asked_for_nothing_is_said() -> None:
    changed = pod()
    changed["spec"]["containers"].append({"name": "istio-proxy", "image": "proxyv2"})
    del changed["metadata"]["annotations"]
    assert altered(changed) == UNALTERED
    assert said(changed) == []


def test_words_of_strangers_are_made_plain() -> None:
    changed = pod()
    changed["spec"]["containers"].append({"name": "a\x1b[31mb", "image": "x"})
    (words,) = said(changed)
    assert "\x1b" not in words
