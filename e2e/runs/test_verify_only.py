"""`laptime verify`: servers are deployed and checked, answers are shown, nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laptime.cli.main import run_command

from . import strangers
from .harness import AXUM, POSTGRES_ALONE, Cluster, condition, run_manifest

GO = "docker.io/laptime/server-go-nethttp:0.1.0"


def test_answers_are_shown_beside_what_was_expected_and_nothing_stays(
    cluster: Cluster, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers: list[dict[str, Any]] = [AXUM, {"name": "other", "image": GO, "port": 8080}]
    manifest = run_manifest("shop", servers, topology=POSTGRES_ALONE)
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(manifest))
    asked = ("verify", str(file), "-n", cluster.namespace, "--kubeconfig", kubeconfig)

    theirs = strangers.make(cluster, "ConfigMap", "shop-verify-answer-axum")
    assert run_command([*asked, "--keep", "-o", "json"]) == 1
    right, wrong = json.loads(capsys.readouterr().out)
    assert (right["server"], right["right"]) == ("axum", True)
    assert all(one["right"] for one in right["answers"])
    assert '"user_id"' in right["answers"][0]["answered"]
    assert (wrong["server"], wrong["right"]) == ("other", False)
    assert wrong["answers"][0]["expected"].startswith("200 application/json")
    assert wrong["answers"][0]["answered"].startswith("404")

    status = cluster.status("shop-verify")
    assert condition(status, "Succeeded")["reason"] == "ServersFailed"
    assert condition(status, "ServersVerified")["reason"] == "WrongStatus"
    assert "results" not in status
    left = {one for one in cluster.left_of("shop-verify") if not one.startswith("ConfigMap/")}
    assert left == set()
    assert not cluster.documents("shop-verify")
    cluster.wait_folded("shop-verify")
    assert cluster.left_of("shop-verify") == {"ConfigMap/shop-verify-results"}
    strangers.untouched(cluster, theirs)

    # It takes the place of the one before it, and goes when it is done.
    assert run_command([*asked, "--server", "axum"]) == 0
    assert "axum: all " in capsys.readouterr().out
    assert cluster.left_of("shop-verify") == set()
