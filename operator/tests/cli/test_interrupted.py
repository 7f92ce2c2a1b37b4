"""Ctrl-C in a terminal and in a pipe: the program as it is installed, a real signal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# What a shell starts in the background ignores SIGINT, and so does all that it starts: a test run,
# too. In a terminal nothing does.
PROGRAM = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from laptime.cli.main import main; main()",
]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"
GOES_ON = {
    "state": "Running",
    "seed": 7,
    "currentTrial": "demo-trial-004",
    "progress": {"completed": 3, "total": 10, "remainingSeconds": 80},
}


def _environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    return kept | {"HOME": str(home), "TERM": "xterm", "COLUMNS": "120"}


def _read_until(file: int, wanted: str) -> str:
    """Return what the program wrote; it ends at the wanted words, or when the program did."""
    said = b""
    while wanted.encode() not in said:
        try:
            part = os.read(file, 65536)
        except OSError:
            # A terminal whose last writer is gone.
            break
        if not part:
            break
        said += part
    return said.decode(errors="replace")


def _interrupted(command: list[str], output: int, ours: int, home: Path) -> tuple[int, str]:
    """Run a command, interrupt it while it follows the run; return exit code and all it wrote."""
    environment = _environment(home)
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    os.close(output)
    said = _read_until(ours, "3/10 trials")
    assert "3/10 trials" in said
    process.send_signal(signal.SIGINT)
    said += _read_until(ours, "\0")
    os.close(ours)
    return process.wait(), said


@pytest.mark.parametrize("command", ["run", "watch"])
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_ctrl_c_ends_the_looking_and_says_what_goes_on(
    command: str,
    terminal: bool,
    fake: Any,
    kubeconfig: Path,
    manifest: Any,
    manifest_file: Path,
    tmp_path: Path,
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": GOES_ON})
    fake.statuses = [GOES_ON]
    what = str(manifest_file) if command == "run" else "demo"
    ours, output = pty.openpty() if terminal else os.pipe()
    code, said = _interrupted(
        [*PROGRAM, command, what, "--kubeconfig", str(kubeconfig)], output, ours, tmp_path
    )
    assert code == 130
    last = said.replace("\r\n", "\n").split("The run goes on in the cluster.")[1]
    there = f"--kubeconfig {kubeconfig}"
    assert f"Come back:  laptime watch demo {there}\n" in last
    assert f"End it:      laptime cancel demo {there}\n" in last
    assert "Traceback" not in said
    assert RUN in fake.objects, "the run must go on"
    assert "DELETE" not in [method for method, _ in fake.requests]
