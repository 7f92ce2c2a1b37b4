"""What `up` and `down` refuse to do, with a message that says why."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from laptime_cluster import cgroups, cli, lifecycle
from laptime_cluster.commands import ClusterError


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
    monkeypatch.setattr(lifecycle, "RUN", tmp_path / "run")
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


NAME = "laptime-refused"


def _cluster(
    command: str, family: str = "ipv4", name: str = NAME
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program for a cluster that there is not."""
    own = {"LAPTIME_CLUSTER_NAME": name, "LAPTIME_CLUSTER_FAMILY": family}
    return subprocess.run(
        [sys.executable, "cluster.py", command],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_folder_of_sockets_of_someone_else_is_not_removed() -> None:
    folder = Path("/run", NAME)
    folder.mkdir()
    try:
        (folder / "precious").touch()
        refused = _cluster("down")
        assert refused.returncode == 1
        assert f"error: {folder} is in use by something else" in refused.stderr
        assert f"/var/lib/{NAME}/.laptime-cluster" in refused.stderr
        assert (folder / "precious").exists()
    finally:
        shutil.rmtree(folder)


def test_processes_in_a_control_group_of_someone_else_are_not_killed() -> None:
    group = cgroups.hierarchies()[-1] / NAME
    group.mkdir()
    try:
        with subprocess.Popen(["sleep", "60"]) as precious:
            try:
                (group / "cgroup.procs").write_text(str(precious.pid))
                refused = _cluster("down")
                assert refused.returncode == 1
                assert f"error: the control group {NAME} is in use" in refused.stderr
                with pytest.raises(subprocess.TimeoutExpired):
                    precious.wait(0.2)
            finally:
                precious.kill()
    finally:
        _remove_group(group)


def _remove_group(group: Path) -> None:
    """Remove a control group, which for a moment has what was killed in it."""
    deadline = time.monotonic() + 5
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("name", ["k3s", "netns", "system.slice", "laptime/../k3s", "../laptime"])
def test_a_name_that_may_be_someone_elses_is_refused_in_one_line(name: str) -> None:
    # A command that would do no harm.
    refused = _cluster("status", name=name)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: LAPTIME_CLUSTER_NAME is {name!r}; it can be laptime and any of a-z, 0-9 and - "
        "behind it, such as laptime-2\n"
    )


def test_a_cluster_that_an_earlier_version_started_under_another_name_can_be_stopped() -> None:
    name = NAME.removeprefix("laptime-")
    folder = Path("/var/lib", name)
    folder.mkdir()
    try:
        assert _cluster("down", name=name).returncode == 1
        (folder / ".laptime-cluster").touch()
        stopped = _cluster("down", name=name)
        assert stopped.returncode == 0, stopped.stderr
        assert not folder.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert _cluster("status", name=name).returncode == 1


def test_addresses_that_there_are_not_are_refused_in_one_line() -> None:
    refused = _cluster("up", "ipv5")
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: LAPTIME_CLUSTER_FAMILY is 'ipv5'; it can be ipv4, ipv6, dual\n"
    )


def test_a_number_of_cpus_that_is_none_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAPTIME_CLUSTER_SHARED_CPUS", "two")
    refused = _cluster("status", "ipv4")
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: LAPTIME_CLUSTER_SHARED_CPUS is 'two'; it can be a number such as 1\n"
    )


@pytest.mark.parametrize("cpus", ["one", "0-9", "4000", ","])
def test_cpus_of_the_control_plane_that_there_are_not_are_refused(
    monkeypatch: pytest.MonkeyPatch, cpus: str
) -> None:
    monkeypatch.setattr(lifecycle, "CONTROL_CPUS", cpus)
    monkeypatch.setattr(cgroups, "machine_cpus", lambda: (0, 1))
    with pytest.raises(ClusterError, match="which has 0,1, such as 0"):
        lifecycle._cpus_of_control()


def test_the_control_plane_can_have_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "CONTROL_CPUS", "1")
    monkeypatch.setattr(cgroups, "machine_cpus", lambda: (0, 1))
    assert lifecycle._cpus_of_control() == (1,)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_link_of_another_cluster_with_the_same_number_is_left_alone(family: str) -> None:
    number = 1 + int.from_bytes(hashlib.sha256(NAME.encode()).digest()[:4]) % (2**14 - 1)
    link = f"laptime{number}"
    address = {
        "ipv4": f"10.203.{number >> 6}.{(number & 63) * 4 + 1}/30",
        "ipv6": f"fd6c:10:203:{number:x}::1/64",
    }[family]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    ip("link", "add", link, "type", "bridge")
    try:
        ip("link", "set", link, "alias", "another-cluster")
        ip("address", "add", address, "dev", link)
        assert _cluster("down").returncode == 0
        refused = _cluster("up", family)
        assert refused.returncode == 1
        assert f"which {link} of this machine uses" in refused.stderr
        assert "set LAPTIME_CLUSTER_NAME to another name" in refused.stderr
        assert _cluster("down").returncode == 0
        assert Path(f"/sys/class/net/{link}").exists()
        assert not Path("/var/lib", NAME).exists()
    finally:
        ip("link", "delete", link)
