"""The exporters beside the tiers: only where Prometheus watches, and never in their way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from laptime.manifests.context import ImageSet
from laptime.manifests.secret import secret_name
from laptime.manifests.tiers import tier_objects
from tests.manifests.runs import IMAGES, PASSWORD, context

IMAGE = "docker.io/laptime/exporter:1"


def containers(tier: str, image: str | None) -> list[dict[str, Any]]:
    ctx = replace(context("full"), images=replace(IMAGES, exporter=image))
    (deployment,) = (
        one
        for one in tier_objects(ctx)
        if one["kind"] == "Deployment" and one["metadata"]["name"] == f"demo-{tier}"
    )
    found: list[dict[str, Any]] = deployment["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("tier", ["postgres", "pgbouncer"])
def test_it_stands_behind_its_tier(tier: str) -> None:
    first, exporter = containers(tier, IMAGE)
    assert first["name"] == tier
    assert exporter["image"] == IMAGE
    assert exporter["args"] == [tier]
    assert exporter["ports"] == [{"name": "metrics", "containerPort": 9187, "protocol": "TCP"}]
    assert exporter["resources"]["requests"] == exporter["resources"]["limits"]
    assert "startupProbe" not in exporter
    assert exporter["securityContext"] == first["securityContext"]


@pytest.mark.parametrize("tier", ["postgres", "pgbouncer"])
def test_it_has_the_password_from_the_secret_only(tier: str) -> None:
    exporter = containers(tier, IMAGE)[1]
    (password,) = (one for one in exporter["env"] if one["name"] == "POSTGRES_PASSWORD")
    assert password["valueFrom"]["secretKeyRef"] == {
        "name": secret_name(context()),
        "key": "password",
    }
    assert PASSWORD not in str(exporter)


@pytest.mark.parametrize("tier", ["postgres", "pgbouncer", "haproxy"])
def test_without_an_image_there_is_none(tier: str) -> None:
    (only,) = containers(tier, None)
    assert only["name"] == tier


def test_haproxy_has_an_endpoint_of_its_own() -> None:
    (only,) = containers("haproxy", IMAGE)
    assert {"name": "metrics", "containerPort": 8404, "protocol": "TCP"} in only["ports"]


@pytest.mark.parametrize(("document", "expected"), [(IMAGE, IMAGE), ("", None), (None, None)])
def test_the_chart_says_whether_there_is_one(document: str | None, expected: str | None) -> None:
    wire: dict[str, Any] = {
        name: "x" for name in ("postgres", "pgbouncer", "haproxy", "generator", "operator")
    }
    wire["servers"] = {"axum-sqlx": "x"}
    if document is not None:
        wire["exporter"] = document
    assert ImageSet.from_wire(wire).exporter == expected
