"""The example of a run every night: its run is valid, its pod restricted, its rights the least."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.api.spec import MAX_RUN_NAME_LENGTH, BenchmarkRunSpec
from laptime.catalog import scenarios
from laptime.cli.manifest_file import Manifest, parse_manifest
from laptime.plan import misfits
from laptime.plan.estimate import remaining_seconds
from laptime.plan.trials import plan_trials

Laptime = Callable[..., tuple[int, str, str]]
Right = tuple[str, str]
"""Resource with its group, and verb."""

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "nightly"
DOCUMENTS = {one["kind"]: one for one in yaml.safe_load_all((FOLDER / "nightly.yaml").read_text())}
CRON: dict[str, Any] = DOCUMENTS["CronJob"]
JOB = CRON["spec"]["jobTemplate"]["spec"]
POD = JOB["template"]["spec"]
(CONTAINER,) = POD["containers"]
TEXT: str = DOCUMENTS["ConfigMap"]["data"]["run.yaml"]
# What a CronJob puts behind its name: the minutes since 1970.
NAME = f"{CRON['metadata']['name']}-29411130"
RUNS = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns"


def manifest() -> Manifest:
    return parse_manifest(TEXT, "run.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def command(file: Path, kubeconfig: Path) -> list[str]:
    """What the pod runs, with the file and the cluster of the test."""
    words = {"/etc/nightly/run.yaml": str(file), "$(RUN)": NAME}
    assert words.keys() <= {*CONTAINER["args"]}
    return [*(words.get(one, one) for one in CONTAINER["args"]), "--kubeconfig", str(kubeconfig)]


def finished(**of_main: Any) -> dict[str, Any]:
    """Return the status of a run that succeeded, in which `main` is like the release."""
    row = {
        "load": "closed",
        "state": "Measured",
        "trials": 8,
        "requestsPerSecond": {"value": 900, "low": 890, "high": 910},
        "factor": {"value": 1, "low": 0.99, "high": 1.01},
        "validity": "valid",
    }
    ended = {"status": "True", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "state": "Succeeded",
        "baseline": "release",
        "results": [{**row, "server": "release"}, {**row, "server": "main", **of_main}],
        "conditions": [
            {**ended, "type": "Succeeded", "reason": "Completed"},
            {**ended, "type": "ObjectivesMet", "reason": "ObjectivesMet"},
        ],
    }


def test_the_run_is_valid(laptime: Laptime, file: Path) -> None:
    code, out, err = laptime("validate", file)
    assert (code, err) == (0, "")
    assert out.startswith("nightly is valid.")


def test_the_run_fits_its_scenario_and_takes_as_long_as_the_page_says() -> None:
    spec = BenchmarkRunSpec.model_validate(manifest().run["spec"])
    assert misfits(spec, scenarios()[spec.scenario]) == []
    # Without a server beside it that is the same tonight, nothing says how the machine was.
    assert [one.name for one in spec.servers] == ["release", "main"]
    assert spec.baseline_name == "release"
    assert {one.server for one in spec.objectives} == {"main"}
    seconds = remaining_seconds(spec, plan_trials(NAME, spec, 1), {})
    (minutes,) = re.findall(r"takes about (\d+) minutes", (FOLDER / "README.md").read_text())
    assert 0.8 * int(minutes) <= seconds / 60 <= 1.2 * int(minutes)
    # Its turn comes after those of others, too.
    assert seconds < 4 * 3600 < JOB["activeDeadlineSeconds"]
    assert "4h" in CONTAINER["args"]


def test_the_images_of_the_example_are_exchanged_by_the_command_of_its_page() -> None:
    (pattern, put) = re.findall(r"sed 's,(.*?),(.*?),'", (FOLDER / "README.md").read_text())[0]
    servers = yaml.safe_load(re.sub(pattern, put, TEXT))["spec"]["servers"]
    assert servers == [{"name": one, "preset": "go-nethttp"} for one in ("release", "main")]


def test_each_night_has_a_name_of_its_own() -> None:
    assert len(NAME) <= MAX_RUN_NAME_LENGTH
    (variable,) = CONTAINER["env"]
    assert variable["name"] == "RUN"
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.labels['batch.kubernetes.io/job-name']"


def test_the_image_is_the_one_of_the_chart() -> None:
    chart = ROOT / "charts" / "laptime"
    images = yaml.safe_load((chart / "values.yaml").read_text())["images"]
    version = yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]
    repository = images["operator"]["repository"]
    assert CONTAINER["image"] == f"{images['registry']}/{repository}:{version}"


def test_the_pod_is_restricted() -> None:
    assert POD["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & POD.keys()
    assert not {"initContainers", "ephemeralContainers"} & POD.keys()
    assert POD["volumes"] == [{"name": "run", "configMap": {"name": "nightly"}}]
    assert all(one["readOnly"] for one in CONTAINER["volumeMounts"])
    # No shell reads these words: they are the arguments of the image's own command.
    assert "command" not in CONTAINER


def test_the_objects_belong_together() -> None:
    namespaces = {one["metadata"]["namespace"] for one in DOCUMENTS.values()}
    (subject,) = DOCUMENTS["RoleBinding"]["subjects"]
    assert namespaces == {subject["namespace"]}
    account = DOCUMENTS["ServiceAccount"]["metadata"]["name"]
    assert account == subject["name"] == POD["serviceAccountName"]
    assert DOCUMENTS["RoleBinding"]["roleRef"]["name"] == DOCUMENTS["Role"]["metadata"]["name"]
    assert DOCUMENTS["ConfigMap"]["metadata"]["name"] == "nightly"
    # A policy for pods that fail has this condition.
    assert POD["restartPolicy"] == "Never"


def test_a_night_that_fails_is_no_second_run_and_keeps_no_other_away() -> None:
    assert JOB["backoffLimit"] == 0
    assert CRON["spec"]["concurrencyPolicy"] == "Forbid"
    late = CRON["spec"]["startingDeadlineSeconds"]
    assert late + JOB["activeDeadlineSeconds"] < 24 * 3600
    assert JOB["activeDeadlineSeconds"] < JOB["ttlSecondsAfterFinished"] < 24 * 3600


def granted() -> set[Right]:
    """Return what the Role gives."""
    return {
        (f"{resource}.{group}", verb)
        for rule in DOCUMENTS["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def documented() -> set[Right]:
    """Return what the page says that `laptime run` needs."""
    page = (ROOT / "docs" / "scheduled.md").read_text()
    section = page.partition("## What it may do")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith("| `run` |")]
    group, resource, verbs = (cell.strip() for cell in row.split("|")[2:5])
    return {(f"{resource}.{group}", verb) for verb in verbs.split(", ")}


def needed(method: str, path: str, *, there: bool) -> set[Right]:
    """Return the rights that an API server asks for; `there`: whether the object is."""
    where = path.partition("?")[0]
    found = re.fullmatch(r"/apis/([^/]+)/[^/]+/(?:namespaces/team/)?([^/]+)(/[^/]+)?", where)
    assert found, path
    of_one = {"GET": ["get"], "PATCH": ["patch"] if there else ["patch", "create"]}
    verbs = of_one[method] if found[3] else {"GET": ["list"], "POST": ["create"]}[method]
    return {(f"{found[2]}.{found[1]}", verb) for verb in verbs}


class Guard:
    """Has an API server refuse what the Role does not allow, as one with RBAC does."""

    def __init__(self, fake: Any) -> None:
        self.used: set[Right] = set()
        self.refused: list[str] = []
        self._answer = fake.answer
        self._objects = fake.objects
        fake.answer = self

    def __call__(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        where = path.partition("?")[0]
        asked = needed(method, path, there=where in self._objects)
        # A Role says nothing about the whole cluster.
        if "/namespaces/" not in where or not asked <= granted():
            self.refused.append(where)
            return 403, {"kind": "Status", "message": f"{where} is forbidden"}
        self.used |= asked
        found: tuple[int, Any] = self._answer(method, path, body)
        return found


def test_the_role_is_exactly_what_the_command_asks_for(
    laptime: Laptime, fake: Any, command: list[str]
) -> None:
    guard = Guard(fake)
    running = {"state": "Running", "progress": {"completed": 0, "total": 32}}
    fake.statuses = [{}, {"state": "Queued"}, running, finished()]
    code, out, err = laptime(*command)
    assert (code, err) == (0, "")
    assert f"{NAME}: Succeeded" in out
    assert guard.used == granted() == documented()
    # How many runs come before it is asked in the whole cluster, and can do without an answer.
    assert {*guard.refused} == {"/apis/laptime.dev/v1alpha1/benchmarkruns"}
    stored = fake.objects[f"{RUNS}/{NAME}"]
    assert stored["metadata"]["labels"] == {"series": "nightly"}


def test_a_pod_that_takes_the_place_of_another_one_follows_its_run(
    laptime: Laptime, fake: Any, command: list[str]
) -> None:
    running = {"state": "Running", "progress": {"completed": 9, "total": 32}}
    fake.statuses = [running]
    code, *_ = laptime(*command, "--timeout", "1ms")
    assert code == 1
    fake.statuses = [running, finished()]
    (uid,) = {one["metadata"]["uid"] for one in fake.objects.values()}
    code, *_ = laptime(*command)
    assert code == 0
    assert [one["metadata"]["uid"] for one in fake.objects.values()] == [uid]


@pytest.mark.parametrize("worse", [True, False])
def test_the_job_fails_when_it_is_worse_or_misses_an_objective(
    worse: bool, laptime: Laptime, fake: Any, command: list[str]
) -> None:
    slower = {"value": 0.9, "low": 0.87, "high": 0.93}
    status = finished(**({"factor": slower} if worse else {}))
    status["conditions"][1]["status"] = "True" if worse else "False"
    fake.statuses = [status]
    code, out, _ = laptime(*command)
    assert code == 2
    assert ("Worse than release: main under closed" in out) is worse
