"""servers, scenarios, completion, and what programs read of run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.catalog import presets, scenarios
from laptime.cli.kubectl_completion import kubectl_completions

Laptime = Callable[..., tuple[int, str, str]]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"


def test_every_server_and_scenario_is_listed(laptime: Laptime) -> None:
    _, out, _ = laptime("servers")
    assert all(name in out for name in presets())
    _, out, _ = laptime("scenarios")
    assert all(name in out for name in scenarios())


def test_programs_get_them_as_json_or_yaml(laptime: Laptime) -> None:
    _, out, _ = laptime("servers", "-o", "json")
    assert [one["name"] for one in json.loads(out)] == list(presets())
    _, out, _ = laptime("scenarios", "-o", "yaml")
    assert [one["name"] for one in yaml.safe_load(out)] == list(scenarios())


def test_servers_of_one_scenario(laptime: Laptime) -> None:
    _, out, _ = laptime("servers", "--scenario", "users", "-o", "json")
    assert {"users"} <= {scenario for one in json.loads(out) for scenario in one["scenarios"]}
    code, _, err = laptime("servers", "--scenario", "nope")
    assert code == 1
    assert "There is no scenario nope. There is: " in err


def test_run_prints_nothing_but_a_document_for_programs(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, finished_status: Any
) -> None:
    fake.statuses = [{}, {"state": "Running"}, finished_status]
    code, out, err = laptime("run", manifest_file, "-o", "json", "--kubeconfig", kubeconfig)
    assert code == 0
    assert json.loads(out)["status"]["fastest"] == "axum"
    assert "demo: Running" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(laptime: Laptime, shell: str) -> None:
    code, out, _ = laptime("completion", shell)
    assert code == 0
    assert "_LAPTIME_COMPLETE" in out


def test_the_script_is_one_that_bash_understands(laptime: Laptime, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    _, out, _ = laptime("completion", "bash")
    (tmp_path / "script").write_text(out)
    subprocess.run([bash, "-n", str(tmp_path / "script")], check=True)


def test_kubectl_is_told_the_commands() -> None:
    *words, directive = kubectl_completions(["rep"]).splitlines()
    assert words == ["report"]
    assert directive == ":4"


def test_kubectl_is_told_the_names_of_runs(fake: Any, kubeconfig: Path) -> None:
    watch = ["watch", "--kubeconfig", str(kubeconfig)]
    fake.put(f"{RUN}/demo", {})
    fake.put(f"{RUN}/detail", {})
    fake.put(f"{RUN}/other", {})
    assert kubectl_completions([*watch, "de"]).splitlines() == ["demo", "detail", ":4"]
    assert kubectl_completions([*watch, ""]).splitlines()[:-1] == ["demo", "detail", "other"]


def test_without_a_cluster_files_may_follow(
    unreachable_kubeconfig: Path,
) -> None:
    watch = ["watch", "--kubeconfig", str(unreachable_kubeconfig)]
    assert kubectl_completions([*watch, "de"]) == ":0"
    assert kubectl_completions(["run", "exam"]) == ":0"
