"""A benchmark every night: a Job of the example makes its run, and ends as the run says."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from conftest import ROOT

from .harness import POSTGRES_ALONE, Cluster, condition, run_manifest
from .test_stop_when import holding

EXAMPLE = ROOT / "examples" / "nightly" / "nightly.yaml"
NEXT_LEAP_DAY = "0 0 29 2 *"
SECONDS = 300
LOADS = [{"name": "closed", "closed": {"connections": 4, "duration": "2s"}, "warmup": "500ms"}]


@dataclass(frozen=True)
class Ended:
    """A Job that is over."""

    condition: str
    exit_code: int
    log: str


def objects(namespace: str, image: str, run: dict[str, Any]) -> str:
    """Return the objects of the example, for another namespace, image and run."""
    found = list(yaml.safe_load_all(EXAMPLE.read_text()))
    of_kind = {one["kind"]: one for one in found}
    for one in found:
        one["metadata"]["namespace"] = namespace
    of_kind["RoleBinding"]["subjects"][0]["namespace"] = namespace
    of_kind["ConfigMap"]["data"]["run.yaml"] = json.dumps(run)
    cron = of_kind["CronJob"]["spec"]
    cron["schedule"] = NEXT_LEAP_DAY
    cron["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = image
    text: str = yaml.safe_dump_all(found)
    return text


def tonight(cluster: Cluster, image: str, job: str, run: dict[str, Any]) -> Ended:
    """Apply the example with a run, start a Job of it by hand, and wait for its end."""
    cluster.kubectl("apply", "-f", "-", stdin=objects(cluster.namespace, image, run))
    of_it = (job, "--from=cronjob/nightly", "-n", cluster.namespace)
    cluster.kubectl("create", "job", *of_it)
    deadline = time.monotonic() + SECONDS
    while True:
        said = cluster.get("job", job)["status"].get("conditions") or []
        ends = {one["type"] for one in said if one["status"] == "True"} & {"Complete", "Failed"}
        if ends:
            break
        if time.monotonic() > deadline:
            seen = cluster.kubectl.run("get", "br,jobs,pods,events", "-n", cluster.namespace)
            pytest.fail(f"Job {job} is not over after {SECONDS} s\n{seen.stdout}")
        time.sleep(0.5)
    (pod,) = cluster.items("pods", f"batch.kubernetes.io/job-name={job}")
    (container,) = pod["status"]["containerStatuses"]
    log = cluster.kubectl("logs", pod["metadata"]["name"], "-n", cluster.namespace)
    return Ended(ends.pop(), container["state"]["terminated"]["exitCode"], log)


def nightly(release: int, main: int, at_least: str) -> dict[str, Any]:
    """Return a run of two servers that hold each request for so many milliseconds."""
    objective = {"server": "main", "load": "closed", "metric": "requestsPerSecond"}
    return run_manifest(
        "nightly",
        [holding("release", release), holding("main", main)],
        topology=POSTGRES_ALONE,
        loads=LOADS,
        repetitions=3,
        baseline="release",
        objectives=[{**objective, "atLeast": at_least}],
    )


def test_the_job_completes_when_main_is_as_good_and_fails_when_it_is_worse(
    cluster: Cluster, image: str
) -> None:
    good = tonight(cluster, image, "good", nightly(100, 20, at_least="1"))
    assert (good.condition, good.exit_code) == ("Complete", 0), good.log
    status = cluster.status("good")
    assert status["state"] == "Succeeded"
    assert condition(status, "ObjectivesMet")["status"] == "True"
    assert {row["trials"] for row in status["results"]} == {3}

    # By hand a Job has the name that it is given, and so has its run: both are there in the end.
    bad = tonight(cluster, image, "bad", nightly(20, 100, at_least="1000000"))
    assert (bad.condition, bad.exit_code) == ("Failed", 2), bad.log
    assert "Worse than release: main under closed, throughput 0." in bad.log
    status = cluster.status("bad")
    assert status["state"] == "Succeeded"
    assert condition(status, "ObjectivesMet")["status"] != "True"
    assert "requestsPerSecond at least 1000000" in bad.log
    assert cluster.status("good")["state"] == "Succeeded"
