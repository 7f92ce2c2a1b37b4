"""Ctrl-C and other signals, in a terminal and in a pipe: the program as it is installed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.cli.signals import end_as_by_ctrl_c

# What a shell starts in the background ignores SIGINT, and so does all that it starts: a test run,
# too; with nohup SIGHUP. In a terminal nothing does.
PROGRAM = [
    sys.executable,
    "-c",
    "from signal import *; signal(SIGINT, default_int_handler);"
    "signal(SIGTERM, SIG_DFL); signal(SIGHUP, SIG_DFL);"
    "from laptime.cli.main import main; main()",
]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"
GOES_ON = {
    "state": "Running",
    "seed": 7,
    "currentTrial": "demo-trial-004",
    "progress": {"completed": 3, "total": 10, "remainingSeconds": 80},
}


def _environment(home: Path, keys: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    return kept | {"HOME": str(home), "TMPDIR": str(keys), "TERM": "xterm", "COLUMNS": "120"}


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


@contextmanager
def _following(
    command: list[str], output: int, ours: int, home: Path, keys: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, and yield it once it follows the run."""
    environment = _environment(home, keys)
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    os.close(output)
    try:
        assert "3/10 " in _read_until(ours, "3/10 ")
        yield process
    finally:
        process.kill()
        process.wait()


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
    followed = [*PROGRAM, command, what, "--kubeconfig", str(kubeconfig)]
    with _following(followed, output, ours, tmp_path, tmp_path) as process:
        process.send_signal(signal.SIGINT)
        said = _read_until(ours, "\0")
        os.close(ours)
        assert process.wait() == 130
    last = said.replace("\r\n", "\n").split("The run goes on in the cluster.")[1]
    there = f"--kubeconfig {kubeconfig}"
    assert f"Come back:  laptime watch demo {there}\n" in last
    assert f"End it:      laptime cancel demo {there}\n" in last
    assert "Traceback" not in said
    assert RUN in fake.objects, "the run must go on"
    assert "DELETE" not in [method for method, _ in fake.requests]


AUTHENTICATION = "client.authentication.k8s.io/v1"


@pytest.fixture
def keys(kubeconfig: Path, tmp_path: Path) -> Path:
    """The folder for temporary files, where the client puts the private key of the kubeconfig.

    A plugin gives it: one that stands in the kubeconfig itself is for a server with TLS.
    """
    status = {"clientCertificateData": "certificate", "clientKeyData": "private key"}
    answer = {"apiVersion": AUTHENTICATION, "kind": "ExecCredential", "status": status}
    plugin = {"apiVersion": AUTHENTICATION, "command": "echo", "args": [json.dumps(answer)]}
    written = yaml.safe_load(kubeconfig.read_text())
    written["users"][0]["user"] = {"exec": plugin}
    kubeconfig.write_text(yaml.safe_dump(written))
    folder = tmp_path / "keys"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("command", ["run", "watch", "verify"])
def test_a_job_that_is_cancelled_leaves_no_key_and_says_what_goes_on(
    command: str,
    sent: signal.Signals,
    code: int,
    fake: Any,
    kubeconfig: Path,
    keys: Path,
    manifest: Any,
    manifest_file: Path,
    tmp_path: Path,
) -> None:
    if command != "verify":
        fake.put(RUN, {"spec": manifest["spec"], "status": GOES_ON})
    fake.statuses = [GOES_ON]
    what = "demo" if command == "watch" else str(manifest_file)
    ours, output = os.pipe()
    followed = [*PROGRAM, command, what, "--kubeconfig", str(kubeconfig)]
    with _following(followed, output, ours, tmp_path, keys) as process:
        assert "private key" in [file.read_text() for file in keys.iterdir()]
        process.send_signal(sent)
        said = _read_until(ours, "\0")
        assert process.wait() == code
    assert list(keys.iterdir()) == []
    back = "Delete it:  kubectl delete br demo-verify" if command == "verify" else "Come back:  "
    assert "oes on in the cluster. " + back in said
    assert "Traceback" not in said
    assert "DELETE" not in [method for method, _ in fake.requests]


def test_a_terminal_that_is_closed_leaves_no_key(
    fake: Any, kubeconfig: Path, keys: Path, manifest: Any, tmp_path: Path
) -> None:
    fake.put(RUN, {"spec": manifest["spec"], "status": GOES_ON})
    fake.statuses = [GOES_ON]
    ours, output = pty.openpty()
    followed = [*PROGRAM, "watch", "demo", "--kubeconfig", str(kubeconfig)]
    with _following(followed, output, ours, tmp_path, keys) as process:
        os.close(ours)
        # The terminal sends one to the shell's jobs, and the shell another one.
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        assert process.wait() == 129
    assert list(keys.iterdir()) == []


def test_what_is_started_to_outlive_its_terminal_does_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        end_as_by_ctrl_c()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
