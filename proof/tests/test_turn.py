"""Two runs of parts on one machine come one after the other."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import prove
import pytest
from laptime_proof import catalogue, turn
from laptime_proof.parts import Part

HOLDS = "import fcntl, os, sys, time; d = os.open(sys.argv[1], os.O_RDONLY); \
fcntl.flock(d, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"


@contextmanager
def another(machine: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another run, which has the turn until it is killed."""
    folder.mkdir()
    command = [sys.executable, "-c", HOLDS, str(machine)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Makefile").write_text("good:\n\t@touch ran\n")
    monkeypatch.setattr(prove, "ROOT", tmp_path)
    monkeypatch.setattr(prove, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(catalogue, "TEST", (Part("good"),))
    return tmp_path


def test_a_second_run_names_the_first_and_ends_where_that_goes_on(
    checkout: Path,
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(turn, "WAIT_SECONDS", 1.0)
    with another(machine, checkout / "other") as first:
        assert prove.main(["test"]) == 2
    said = capsys.readouterr()
    named = f"another `make test` or `make prove`, process {first.pid} in {checkout}/other"
    assert f"waiting for {named}, 1 s at most" in said.out
    assert f"error: {named} is still running after 1 s" in said.err
    assert not (checkout / "ran").exists()


def test_whoever_is_killed_has_the_turn_no_more(
    checkout: Path, machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with another(machine, checkout / "other") as first:
        first.kill()
        first.wait()
        assert prove.main(["test"]) == 0
    assert "waiting" not in capsys.readouterr().out
    assert (checkout / "ran").exists()


def test_nothing_that_a_part_started_keeps_the_turn(checkout: Path) -> None:
    (checkout / "Makefile").write_text("good:\n\t@sleep 600 >/dev/null 2>&1 & echo $$! >left\n")
    assert prove.main(["test"]) == 0
    try:
        (checkout / "Makefile").write_text("good:\n\t@touch ran\n")
        assert prove.main(["test"]) == 0
    finally:
        subprocess.run(["kill", (checkout / "left").read_text().strip()], check=True)
    assert (checkout / "ran").exists()
