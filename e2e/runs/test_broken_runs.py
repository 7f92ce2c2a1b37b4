"""What only shows at run time becomes a condition in seconds, and the run ends or goes on."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .harness import (
    AXUM,
    POSTGRES_ALONE,
    Cluster,
    condition,
    light,
    may_run,
    namespace_for_runs,
    operator_pids,
    over,
    run_manifest,
)

SECONDS_TO_SAY_SO = 30


def faulty(fault: str, **more: Any) -> dict[str, Any]:
    """Return a server that goes wrong in this way (see images/faulty)."""
    return {
        "image": "docker.io/laptime/faulty:0.1.0",
        "env": [{"name": "FAULT", "value": fault}],
        **more,
    }


OWN: dict[str, Any] = {
    "name": "own",
    "image": "docker.io/laptime/server-fastapi-sync:0.1.0",
    "port": 8080,
}
# A server that cannot work, the reason that must be given for it, and words that must be said.
BROKEN: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "image-missing": (
        {"image": "docker.io/laptime/there-is-no-such-image:1"},
        "ImagePullFailed",
        ("there-is-no-such-image", "cannot be pulled"),
    ),
    "never-ready": (faulty("never-ready"), "NotReady", ("never-ready", "/healthz")),
    "wrong-value": (
        faulty("wrong-value"),
        "WrongAnswer",
        ("41", "somebody@example.com", "@example.com"),
    ),
    "wrong-order": (faulty("wrong-order"), "WrongAnswer", ("user_id",)),
    # That it is told so by a Secret is what shows that its value got there.
    "missing-field": (
        faulty("none", env=[{"name": "FAULT", "secret": "fault"}]),
        "WrongAnswer",
        ("username",),
    ),
    "missing-statement": (
        faulty("none"),
        "StatementMissing",
        ("expected 1, the database saw 0",),
    ),
    "crash-loop": (
        faulty("crash-at-start"),
        "CrashLoop",
        ("exit code 1", "the fault was asked for"),
    ),
    "out-of-memory": (
        faulty("memory", resources={"memory": "64Mi"}),
        "OutOfMemory",
        ("resources.memory",),
    ),
    "does-not-fit": (
        {"preset": "axum-sqlx", "resources": {"cpu": "500"}},
        "Unschedulable",
        ("Insufficient cpu",),
    ),
    "secret-missing": (
        {"preset": "axum-sqlx", "env": [{"name": "LICENCE", "secret": "licence"}]},
        "SecretMissing",
        (
            'secret "licence" not found',
            "kubectl create secret generic licence --from-literal=laptime-env-LICENCE=",
        ),
    ),
}


@dataclass(frozen=True)
class Seen:
    """What a run with a preset, an image of one's own and all the broken ones came to."""

    status: dict[str, Any]
    seconds: dict[str, float]
    """How long after the verdict on the server before it each broken one was named."""


@pytest.fixture(scope="module")
def seen(kubectl: Any, reader: Any, operator: str) -> Iterator[Seen]:
    """Measure them together, once: servers are verified one after the other."""
    with namespace_for_runs(reader) as name:
        cluster = Cluster(kubectl, reader, name)
        servers = [
            {"name": "good", "preset": "axum-sqlx"},
            OWN,
            *({"name": name, **server} for name, (server, _, _) in BROKEN.items()),
        ]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fault"}}
        cluster.apply({**secret, "stringData": {"laptime-env-FAULT": "missing-field"}})
        # One pair is compared: a machine that stands still is much of a second.
        loads = [{"name": "closed", "closed": {"connections": 4, "duration": "4s"}, "warmup": "1s"}]
        parts = {"loads": loads, "repetitions": 1, "startupTimeout": "15s", "baseline": "good"}
        run = cluster.apply(run_manifest("broken", servers, **parts))
        judged: dict[str, float] = {}

        def watch(status: dict[str, Any]) -> bool:
            for server in status.get("servers") or []:
                if server["state"] in ("Verified", "Failed"):
                    judged.setdefault(server["name"], time.monotonic())
            return over(status)

        status = cluster.wait(run, "its end", watch, 400)
        assert set(judged) == {"good", "own", *BROKEN}, json.dumps(status, indent=1)
        ordered = sorted(judged, key=lambda name: judged[name])
        assert ordered[:2] == ["good", "own"]
        seconds = {
            later: judged[later] - judged[earlier] for earlier, later in itertools.pairwise(ordered)
        }
        yield Seen(status, seconds)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_server_is_named_in_time(seen: Seen, case: str) -> None:
    _, reason, words = BROKEN[case]
    (server,) = (one for one in seen.status["servers"] if one["name"] == case)
    assert (server["state"], server["reason"]) == ("Failed", reason)
    assert all(word in server["message"] for word in words), server["message"]
    (row,) = (one for one in seen.status["results"] if one["server"] == case)
    assert (row["state"], row["reason"]) == ("Failed", reason)
    print(f"{case}: said after {seen.seconds[case]:.1f} s")
    assert seen.seconds[case] < SECONDS_TO_SAY_SO


def test_the_others_are_measured_and_the_run_says_what_failed(seen: Seen) -> None:
    assert seen.status["state"] == "Failed"
    (good,) = (one for one in seen.status["results"] if one["server"] == "good")
    assert good["state"] == "Measured"
    succeeded = condition(seen.status, "Succeeded")
    assert succeeded["status"] == "False"
    assert succeeded["reason"] == "ServersFailed"
    said = ("image-missing", "cannot be pulled", "never-ready", "/healthz")
    assert all(word in succeeded["message"] for word in said), succeeded["message"]


def test_an_own_image_takes_part_like_a_preset(seen: Seen) -> None:
    (own,) = (one for one in seen.status["results"] if one["server"] == "own")
    assert own["state"] == "Measured"
    assert own["factor"]["value"] < 1


def test_a_missing_script_is_named_with_the_command_that_makes_it(cluster: Cluster) -> None:
    load = {"name": "own", "script": {"configMap": "no-such-script", "key": "load.js"}}
    began = time.monotonic()
    run = cluster.apply(run_manifest("scriptless", [AXUM], loads=[load], startupTimeout="5s"))
    cluster.wait(
        run,
        "ConfigMapMissing",
        lambda s: condition(s, "TiersReady").get("reason") == "ConfigMapMissing",
        SECONDS_TO_SAY_SO,
    )
    status = cluster.wait_end(run, 60)
    assert condition(status, "Succeeded")["reason"] == "ConfigMapMissing"
    assert (
        "kubectl create configmap no-such-script --from-file=load.js"
        in (condition(status, "Succeeded")["message"])
    )
    assert time.monotonic() - began < 60


def test_an_object_that_is_refused_ends_the_run_which_can_be_asked_again(cluster: Cluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-jobs"}}
    cluster.apply({**quota, "spec": {"hard": {"count/jobs.batch": "0"}}})
    try:
        run = cluster.apply(
            run_manifest(
                "refused",
                [AXUM],
                loads=light(),
                topology=POSTGRES_ALONE,
                repetitions=1,
                startupTimeout="15s",
            )
        )
        status = cluster.wait_end(run, 90)
    finally:
        cluster.delete("resourcequota", "no-jobs")
    succeeded = condition(status, "Succeeded")
    assert (succeeded["status"], succeeded["reason"]) == ("False", "ObjectRefused")
    assert "exceeded quota: no-jobs" in succeeded["message"], succeeded["message"]
    assert f"Job {run}-" in succeeded["message"]
    # The quota is gone: what failed is asked for again.
    cluster.wish(run, retry=1)
    cluster.wait(run, "its second turn", lambda s: s.get("retries") == 1, 30)
    status = cluster.wait_end(run, 90)
    assert status["state"] == "Succeeded", json.dumps(status, indent=1)
    assert [row["trials"] for row in status["results"]] == [1]


def test_a_killed_generator_is_named_and_its_trial_is_repeated(cluster: Cluster) -> None:
    loads = light("6s", warmup="1s")
    run = cluster.apply(
        run_manifest("lost", [AXUM], loads=loads, topology=POSTGRES_ALONE, repetitions=2)
    )
    first = f"{run}-trial-001"
    deadline = time.monotonic() + 60
    while not [
        pod
        for pod in cluster.items("pods", f"laptime.dev/trial={first}")
        if pod["metadata"]["labels"]["laptime.dev/component"] == "generator"
        and pod["status"]["phase"] == "Running"
    ]:
        assert time.monotonic() < deadline, cluster.status(run)
        time.sleep(0.2)
    time.sleep(1.5)
    cluster.kill_pods(f"laptime.dev/trial={first},laptime.dev/component=generator")
    status = cluster.wait_end(run, 120)
    documents = cluster.documents(run)
    results = [documents[f"{run}-trial-{n:03d}"] for n in (1, 2)]
    assert [result["outcome"] for result in results] == ["Measured", "Measured"]
    assert [result["attempt"] for result in results] == [2, 1]
    (lost,) = results[0]["lostAttempts"]
    assert lost["reason"] in ("GeneratorLost", "PodDeleted"), lost
    assert status["state"] == "Succeeded"
    (row,) = status["results"]
    assert (row["state"], row["trials"], row["lostAttempts"]) == ("Measured", 2, 1)


def test_a_namespace_without_the_role_binding_is_told_how_to_get_it(
    kubectl: Any, operator: str, cluster: Cluster
) -> None:
    kubectl("delete", "rolebinding", "laptime", "-n", cluster.namespace)
    deadline = time.monotonic() + 30
    while may_run(cluster.reader, cluster.namespace):
        assert time.monotonic() < deadline, "the operator may still do all in the namespace"
        time.sleep(0.05)
    run = cluster.apply(
        run_manifest("not-enabled", [AXUM], loads=light(), topology=POSTGRES_ALONE, repetitions=1)
    )
    status = cluster.wait(
        run,
        "NamespaceNotEnabled",
        lambda s: condition(s, "Accepted").get("reason") == "NamespaceNotEnabled",
        SECONDS_TO_SAY_SO,
    )
    command = condition(status, "Accepted")["message"].split("with: kubectl ")[1].split()
    kubectl(*command)
    assert cluster.wait_end(run, 120)["state"] == "Succeeded"


def test_an_operator_without_work_uses_almost_no_cpu() -> None:
    found = operator_pids()
    if not found:
        pytest.skip("the operator's process is not on this machine")

    def cpu_ticks() -> int:
        total = 0
        for pid in found:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total

    before = cpu_ticks()
    time.sleep(10)
    assert cpu_ticks() - before < 100, "more than 10 % of a core while nothing is to do"
