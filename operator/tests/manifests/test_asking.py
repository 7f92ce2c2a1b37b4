"""Who asks what a tag stands for: nothing of the image runs, and its node pulls only if told to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laptime.api.server import Server
from laptime.manifests.asking import asking_job
from laptime.manifests.context import PullPolicy
from laptime.manifests.objects import Manifest
from laptime.manifests.server import server_deployment
from tests.manifests.runs import IMAGES, context

IMAGE = "registry.example/own:1.2"
PINNED = f"registry.example/own@sha256:{'0a' * 32}"


def asked(registry: bool) -> tuple[Manifest, Manifest]:
    ctx = context("bare")
    job = asking_job(ctx, ctx.spec.server("own"), registry=registry)
    pod = job["spec"]["template"]["spec"]
    ((carrier,), (container,)) = pod["initContainers"], pod["containers"]
    return carrier, container


def test_only_who_asks_the_registry_pulls_what_the_node_has() -> None:
    for registry, policy in ((False, "IfNotPresent"), (True, "Always")):
        carrier, container = asked(registry)
        assert (container["image"], container["imagePullPolicy"]) == (IMAGE, policy)
        assert carrier["imagePullPolicy"] == "IfNotPresent"


def test_nothing_of_the_image_runs() -> None:
    carrier, container = asked(registry=True)
    assert carrier["image"] == IMAGES.generator
    (command,) = container["command"]
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    assert mounts[command.rpartition("/")[0]]["readOnly"] is True
    assert "env" not in container


def test_the_pods_of_a_server_name_the_digest_that_is_known() -> None:
    ctx = replace(context("bare"), digests={"own": PINNED})
    for trial in (None, "demo-verify-own", "demo-trial-001"):
        pod = server_deployment(ctx, ctx.spec.server("own"), trial)["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert (container["image"], container["imagePullPolicy"]) == (PINNED, "IfNotPresent")


@pytest.mark.parametrize(
    ("server", "policy", "expected"),
    [
        ({"image": "mine:main"}, "IfNotPresent", True),
        ({"image": "mine"}, "Always", True),
        ({"image": PINNED}, "IfNotPresent", False),
        ({"image": "mine:main"}, "Never", False),
        # Ours have the version of Laptime for a tag, which is not moved.
        ({"preset": "axum-sqlx"}, "IfNotPresent", False),
        ({"service": {"name": "shop", "port": 80}}, "IfNotPresent", False),
    ],
)
def test_only_images_of_ones_own_that_are_named_by_a_tag_are_asked_for(
    server: dict[str, object], policy: PullPolicy, expected: bool
) -> None:
    images = replace(IMAGES, pull_policy=policy)
    assert images.by_tag(Server.model_validate({"name": "a", **server})) is expected
