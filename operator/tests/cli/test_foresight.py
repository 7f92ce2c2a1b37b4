"""What `validate --server` says of what a run would find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.report.sample import SPEC

from .test_report_commands import Laptime, store

RUNS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    spec: dict[str, Any] = {
        "scenario": SPEC.scenario,
        "servers": [{"name": name, "preset": "axum-sqlx"} for name in ("first", "second", "third")],
        "loads": [
            {"name": "closed", "closed": {"connections": 4, "duration": "6s", "keepAlive": True}}
        ],
        "topology": {"postgres": {}},
        "repetitions": 5,
    }
    file = tmp_path / "run.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "laptime.dev/v1alpha1",
                "kind": "BenchmarkRun",
                "metadata": {"name": "next"},
                "spec": spec,
            }
        )
    )
    return file


def said(laptime: Laptime, file: Path, kubeconfig: Path) -> str:
    code, out, err = laptime("validate", file, "--server", "-n", "team", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    return " ".join(out.split())


def test_it_says_what_more_repetitions_would_find(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    text = said(laptime, asked, kubeconfig)
    found = re.search(
        r"By the noise of demo \(([\d.]+)% between repetitions\), 5 repetitions find differences "
        r"in throughput four times of five from ([\d.]+)% on \(about \S+\), 10 do from ([\d.]+)% "
        r"on \(about \S+\), 20 do from ([\d.]+)% on \(about \S+\)\.",
        text,
    )
    assert found, text
    noise, few, more, most = map(float, found.groups())
    assert noise > 0
    assert few > more > most > 0


def test_where_no_run_tells_it_says_so(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    fake.put(f"{RUNS}/failed", {"spec": SPEC.to_wire(), "status": {"state": "Failed"}})
    fake.put(f"{RUNS}/queued", {"spec": SPEC.to_wire()})
    assert (
        "How small a difference in throughput it would find is not known: no earlier run in "
        "namespace team compares servers by that in several repetitions."
    ) in said(laptime, asked, kubeconfig)


def test_noise_of_other_work_is_taken_where_there_is_no_other_and_called_that(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    store(fake)
    document = yaml.safe_load(asked.read_text())
    document["spec"]["placement"] = "isolated"
    asked.write_text(yaml.safe_dump(document))
    text = said(laptime, asked, kubeconfig)
    assert "between repetitions, of other work or in another placement)" in text


def test_only_the_names_of_runs_are_listed(
    fake: Any, laptime: Laptime, asked: Path, kubeconfig: Path
) -> None:
    for number in range(45):
        fake.put(f"{RUNS}/old-{number:02}", {"spec": SPEC.to_wire(), "status": {}})
    store(fake)
    said(laptime, asked, kubeconfig)
    read = [path for method, path in fake.requests if method == "GET" and "/old-" in path]
    assert len(read) <= 30
