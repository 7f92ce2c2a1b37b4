"""A kubelet that stands still in the middle of a run costs time, and no server anything."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .harness import AXUM, POSTGRES_ALONE, TWIN, Cluster, condition, light, run_manifest

FROZEN_SECONDS = 60.0


def kubelet_of(kubeconfig: str) -> int:
    """Return the process of the embedded cluster's kubelet."""
    file = Path("/run") / Path(kubeconfig).parent.name / "laptime" / "pids" / "kubelet"
    if not file.is_file():
        pytest.skip("the kubelet is not a process of the embedded cluster")
    return int(file.read_text())


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Have a process stand still, and go on whatever happens here."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def generator_runs(cluster: Cluster, run: str) -> bool:
    """Whether a trial is being measured, and no pod of an earlier one still ends."""
    generators = cluster.items("pods", f"laptime.dev/run={run},laptime.dev/component=generator")
    servers = cluster.items("pods", f"laptime.dev/run={run},laptime.dev/component=server")
    return len(servers) == 1 and any(one["status"]["phase"] == "Running" for one in generators)


@pytest.mark.parametrize("when", ["measuring", "between trials", "verifying"])
def test_a_kubelet_that_stands_still_costs_no_server_a_trial(
    cluster: Cluster, kubeconfig: str, when: str
) -> None:
    pid = kubelet_of(kubeconfig)
    # Long enough for the node to be taken for dead while it is measured.
    seconds = 90 if when == "measuring" else 2
    run = cluster.apply(
        run_manifest(
            "frozen",
            [AXUM] if when == "measuring" else [TWIN, AXUM],
            loads=light(f"{seconds}s", warmup="1s"),
            topology=POSTGRES_ALONE,
            repetitions=1,
            startupTimeout="15s",
        )
    )
    state = "Verifying" if when == "verifying" else "Running"
    cluster.wait(run, state, lambda s: s.get("state") == state, 90)
    if when == "measuring":
        cluster.wait(run, "a generator alone", lambda _: generator_runs(cluster, run), 60)
    elif when == "between trials":
        done = lambda s: (s.get("progress") or {}).get("completed", 0) >= 1  # noqa: E731
        cluster.wait(run, "its first trial", done, 60)
    with frozen(pid):
        time.sleep(FROZEN_SECONDS)
    status = cluster.wait_end(run, 420)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    rows = status["results"]
    assert [(row["trials"], row["failedTrials"]) for row in rows] == [(1, 0)] * len(rows)
    assert condition(status, "ServersVerified")["status"] == "True"
    results = [one for _, one in sorted(cluster.documents(run).items())]
    assert len(results) == len(rows)
    for result in results:
        print(result["trial"], result["attempt"], result.get("lostAttempts"))
        assert all(one["fault"] != "server" for one in result.get("lostAttempts", []))
    if when == "measuring":
        # The node controller took the node for dead, so that its pods were out of their Services.
        assert results[0]["attempt"] == 2
        assert results[0]["lostAttempts"][0]["reason"] == "NodeLost"
    if when == "verifying":
        said = [one for one in cluster.items("events", "") if one["involvedObject"]["name"] == run]
        assert "NodeSilent" in {one["reason"] for one in said}, said
