"""What `make examples` does with a cluster, on one that is made up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import run
from made_up import measured
from measured import Measured

from laptime.api import API_VERSION, KIND
from laptime.api.status import RunStatus
from laptime.cli.cluster_access import Cluster
from laptime.cli.manifest_file import Manifest
from laptime.cli.runs import Run
from laptime.report import to_json
from laptime.report.archive import Archive

NAMES = ("users", "sleep")
NODE: dict[str, Any] = {
    "metadata": {"name": "host-7"},
    "status": {
        "capacity": {"cpu": "2", "memory": "8388608Ki"},
        "nodeInfo": {
            "architecture": "amd64",
            "kernelVersion": "6.12.0",
            "kubeletVersion": "v1.34.4",
        },
    },
}


class FakeCluster:
    """A cluster in which every run is over at once."""

    namespace = "default"
    chosen = ""

    def __init__(self, outcome: Measured, *, failing: str = "", there: str = "") -> None:
        self.outcome = outcome
        self.failing = failing
        self.runs = {there: self._run(there)} if there else {}
        self.annotations: dict[str, dict[str, str]] = {}
        self.calls: list[str] = []

    def run(self, namespace: str, name: str) -> Run | None:
        return self.runs.get(name)

    def apply_file(self, namespace: str, manifest: Manifest, run: dict[str, Any]) -> Run:
        name = run["metadata"]["name"]
        assert name not in self.runs
        self.calls.append(f"apply {name}")
        self.runs[name] = self._run(name)
        self.annotations[name] = run["metadata"].get("annotations", {})
        return self.runs[name]

    def delete_run(self, found: Run) -> None:
        self.calls.append(f"delete {found.name}")
        del self.runs[found.name]

    def kubectl_json(self, *arguments: str) -> Any:
        if arguments == ("get", "nodes"):
            return {"items": [NODE]}
        *what, name = arguments
        assert what == ["get", "benchmarkrun"]
        metadata: dict[str, Any] = {"name": name, "uid": self.runs[name].uid}
        if name in self.annotations:
            metadata["annotations"] = self.annotations[name]
        return {"metadata": metadata}

    def stored(self, run: Run) -> Archive:
        return Archive({"results.json": to_json(self.outcome.report)})

    def _run(self, name: str) -> Run:
        failed = name == self.failing
        status = {
            "state": "Failed" if failed else "Succeeded",
            "startedAt": "2026-11-21T10:00:00Z",
            "finishedAt": "2026-11-21T10:03:10Z",
            "resultsConfigMap": f"{name}-results",
            "conditions": [
                {
                    "type": "Succeeded",
                    "status": "False" if failed else "True",
                    "reason": "Unschedulable" if failed else "Measured",
                    "message": "no room",
                    "lastTransitionTime": "2026-11-21T10:03:10Z",
                }
            ],
        }
        return Run(name, "default", f"uid-{name}", False, None, RunStatus.model_validate(status))


def manifests() -> list[Manifest]:
    return [
        Manifest({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}, ())
        for name in NAMES
    ]


def measure(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, folder: Path | None = None, **more: bool
) -> int:
    monkeypatch.setattr(Cluster, "connect", lambda: cluster)
    monkeypatch.setattr(run, "kubectl_json", cluster.kubectl_json)
    options = {"keep": False, "again": False, **more}
    return run.measure(manifests(), 60.0, folder=folder, **options)


def test_benchmarks_run_one_after_the_other_and_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = FakeCluster(measured())
    assert measure(monkeypatch, cluster) == 0
    assert cluster.calls == ["apply users", "delete users", "apply sleep", "delete sleep"]
    out = capsys.readouterr().out
    assert re.search(r"users +axum +closed +10.0x \(9.90 to 10.1\) +25.1x +yes +server CPU", out)
    assert "2 of 2 benchmarks measured, 0 things are missing" in out


def test_a_run_of_the_name_that_was_made_here_is_deleted_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster(measured())
    assert measure(monkeypatch, cluster, keep=True) == 0
    cluster.calls.clear()
    assert measure(monkeypatch, cluster, keep=True) == 0
    assert cluster.calls == ["delete users", "apply users", "delete sleep", "apply sleep"]


def test_a_run_of_somebody_else_is_left_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever tries Laptime applies these very files, to the same namespace."""
    cluster = FakeCluster(measured(), there="users")
    assert measure(monkeypatch, cluster) == 1
    assert cluster.calls == ["apply sleep", "delete sleep"]
    assert "users" in cluster.runs
    out = capsys.readouterr().out
    assert "MISSING users: namespace default has a run of that name that was not made here" in out
    assert "kubectl delete br users -n default" in out


def test_a_run_of_the_name_is_deleted_whoever_made_it_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster(measured(), there="sleep")
    assert measure(monkeypatch, cluster, keep=True, again=True) == 0
    assert cluster.calls == ["apply users", "delete sleep", "apply sleep"]


def test_the_others_go_on_when_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = FakeCluster(measured(), failing="users")
    assert measure(monkeypatch, cluster) == 1
    assert cluster.calls == ["apply users", "apply sleep", "delete sleep"]
    out = capsys.readouterr().out
    assert "MISSING users: the run ended as Failed: Unschedulable: no room" in out
    assert "1 of 2 benchmarks measured" in out


def test_what_is_incomplete_stays_and_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = FakeCluster(measured(trials=2))
    assert measure(monkeypatch, cluster, tmp_path) == 1
    assert cluster.calls == ["apply users", "apply sleep"]
    assert list(tmp_path.iterdir()) == []
    assert "MISSING users, axum, closed: 2 of 3 trials measured" in capsys.readouterr().out


def test_documents_name_no_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index = tmp_path / run.INDEX
    index.write_text("<!-- index: make examples writes it -->\n<!-- end of the index -->\n")
    assert measure(monkeypatch, FakeCluster(measured()), tmp_path) == 0
    text = (tmp_path / "users.md").read_text()
    assert "on node" in text
    assert "host-7" not in text
    assert "- Machine: 2 cores (amd64), 8.0 GiB of memory, Linux 6.12.0" in text
    assert "| [users](users.md) |" in index.read_text()


def test_a_run_that_takes_too_long_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(measured())
    monkeypatch.setattr(Cluster, "connect", lambda: cluster)
    assert run.measure(manifests()[:1], -1.0, keep=False, again=False, folder=None) == 1
    assert cluster.calls == ["apply users", "delete users"]
