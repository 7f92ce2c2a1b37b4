"""The command itself: what it watches is what it is told, and nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families


@contextmanager
def agent(cgroups: Path, *arguments: str) -> Iterator[str]:
    """Run it beside no API server; yield the address of its metrics."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "laptime_agent", "--node=n1", f"--cgroups={cgroups}"]
    environment = {
        **os.environ,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "POD_UID": "",
        "POD_IP": "",
    }
    with subprocess.Popen(
        [*command, f"--port={port}", *arguments], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield f"http://127.0.0.1:{port}/metrics"
        finally:
            process.kill()


def answer(url: str) -> str:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return str(response.read().decode())
        except OSError:
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.1)


@pytest.mark.parametrize("watched", [[], ["*"], ["team-a", "team-b"]], ids=str)
def test_it_asks_for_the_pods_of_the_namespaces_that_it_is_told(
    tmp_path: Path, watched: list[str]
) -> None:
    """Where runs are allowed in no namespace it has no right to see any pod, and asks for none."""
    (tmp_path / "cgroup.controllers").touch()
    with agent(tmp_path, *(f"--namespace={name}" for name in watched)) as url:
        families = text_string_to_metric_families(answer(url))
        (up,) = (one for one in families if one.name == "laptime_agent_watch_up")
        assert [one.labels["watched"] for one in up.samples] == watched
