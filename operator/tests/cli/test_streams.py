"""What a terminal or a pipe does not take: the program as it is installed, on real pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = [sys.executable, "-c", "from laptime.cli.main import main; main()"]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"


def _environment(home: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    return kept | {"HOME": str(home)} | more


@pytest.fixture
def finished(fake: Any, manifest: Any, finished_status: Any) -> dict[str, Any]:
    """A run that is over; returns its status, which can be changed."""
    finished_status["verdict"] = "axum → the fastest. Łukasz"
    fake.put(RUN, {"spec": manifest["spec"], "status": finished_status})
    return dict(finished_status)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("command", ["watch demo", "watch demo -o json"])
def test_letters_that_a_pipe_does_not_have_change_no_exit_code(
    encoding: str, command: str, finished: Any, kubeconfig: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [*PROGRAM, *command.split(), "--kubeconfig", str(kubeconfig)],
        env=_environment(tmp_path, PYTHONIOENCODING=encoding),
        capture_output=True,
        check=False,
    )
    said = done.stdout.decode(encoding, errors="replace")
    assert "the fastest" in said
    assert "Traceback" not in done.stderr.decode(errors="replace")
    assert done.returncode == 0


@pytest.fixture
def closed() -> Iterator[int]:
    """The end of a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.parametrize("command", ["servers", "servers -o json", "version", "--help"])
def test_a_reader_that_has_seen_enough_makes_no_failure(
    command: str, closed: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [*PROGRAM, *command.split()],
        env=_environment(tmp_path),
        stdout=closed,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "code"), [("watch demo", 2), ("watch demo -o yaml", 2), ("watch nobody", 1)]
)
def test_a_reader_that_has_seen_enough_passes_no_gate(
    command: str, code: int, finished: Any, fake: Any, closed: int, kubeconfig: Path, tmp_path: Path
) -> None:
    missed = {"type": "ObjectivesMet", "status": "False", "reason": "ObjectivesMissed"}
    condition = {**missed, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [*finished["conditions"], condition]
    fake.objects[RUN]["status"] = {**finished, "conditions": conditions}
    done = subprocess.run(
        [*PROGRAM, *command.split(), "--kubeconfig", str(kubeconfig)],
        env=_environment(tmp_path),
        stdout=closed,
        stderr=closed,
        check=False,
    )
    assert done.returncode == code
