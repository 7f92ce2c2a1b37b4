"""What a real Prometheus said of a real pod, against what the pod's kernel counted.

Recorded by `LAPTIME_RECORD=operator/tests/measure/recorded pytest e2e/test_watching.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from laptime.api.usage import Source
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import TrialWindow
from laptime.measure.timeseries import Window

RECORDED = json.loads((Path(__file__).parent / "recorded" / "agent.json").read_text())
TRUTH = RECORDED["truth"]
UID = "6f1c"


async def replay(path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Give the recorded answer to exactly this query.

    With the uid of the run: it was recorded of an agent that did not tell it.
    """
    (found,) = (one for one in RECORDED["answers"] if one["query"] == parameters["query"])
    data = found["answer"]["data"]
    result = [
        {**one, "metric": {**one["metric"], "run_uid": UID}} if "run" in one["metric"] else one
        for one in data["result"]
    ]
    return {**found["answer"], "data": {**data, "result": result}}


async def test_the_figures_are_those_of_the_kernel() -> None:
    window = Window(TRUTH["start"], TRUTH["end"])
    wanted = TrialWindow(RECORDED["namespace"], RECORDED["run"], UID, RECORDED["trial"], window)
    usage = await trial_usage(replay, wanted)
    assert usage.source is Source.AGENT
    assert usage.complete
    assert usage.resolution_seconds == pytest.approx(0.2, abs=0.01)
    (work,) = usage.components
    assert (work.component, work.server, work.pods) == ("server", "work", 1)
    assert work.cpu_seconds == pytest.approx(TRUTH["cpu"], rel=0.02)
    assert work.cores_mean == pytest.approx(TRUTH["cpu"] / window.seconds, rel=0.02)
    assert work.memory_peak_bytes == pytest.approx(TRUTH["memory"], rel=0.02)
    assert work.cores_peak == pytest.approx(TRUTH["burst"], rel=0.15)
    # It wrote nothing to a disk and had room.
    assert (work.disk_waiting_share, work.memory_waiting_share) == (0.0, 0.0)
    (node,) = usage.nodes
    assert node.cpus == 2
    assert node.stolen_share is not None
    assert 0.0 <= node.stolen_share < 1.0
    assert node.busy_share is not None
    assert node.busy_share >= TRUTH["cpu"] / window.seconds / 2
    # All that was busy and not the pod, but for interrupts.
    assert node.others_cores is not None
    busy = node.busy_share * node.cpus
    # It was recorded of an agent that did not tell of other pods, which is not the same as none.
    assert (node.other_pods_cores, node.neighbours, node.cpu_waiting_share) == (None, None, None)
    assert node.connection_tracking is None
    assert 0.0 <= node.others_cores <= busy - TRUTH["cpu"] / window.seconds + 0.03
