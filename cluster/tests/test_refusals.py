"""What `up` and `down` refuse to do, with a message that says why."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from laptime_cluster import cgroups, cli, lifecycle


def test_without_root_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["up"]) == 1
    assert "needs root" in capsys.readouterr().err


@pytest.fixture
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the program at an empty machine; returns where its state would be."""
    state = tmp_path / "state"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "process_ids", set)
    # A real one may be up beside the tests.
    monkeypatch.setattr(lifecycle, "_is_healthy", lambda: False)
    monkeypatch.setattr(lifecycle, "STATE", state)
    monkeypatch.setattr(lifecycle, "OWNER_MARK", state / ".laptime-cluster")
    monkeypatch.setattr(lifecycle, "CACHE", tmp_path / "cache")
    return state


def test_a_full_disk_is_named_with_what_is_needed(
    no_cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = SimpleNamespace(free=1 << 30)
    monkeypatch.setattr("laptime_cluster.lifecycle.shutil.disk_usage", lambda folder: usage)
    assert cli.main(["up"]) == 1
    assert f"{no_cluster.parent} has 1.0 GiB left, 3 GiB are needed" in capsys.readouterr().err


def test_a_folder_of_someone_else_is_not_removed(
    no_cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    no_cluster.mkdir()
    (no_cluster / "precious").touch()
    assert cli.main(["down"]) == 1
    assert "LAPTIME_CLUSTER_NAME" in capsys.readouterr().err
    assert (no_cluster / "precious").exists()
