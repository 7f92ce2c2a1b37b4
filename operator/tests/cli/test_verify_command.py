"""`laptime verify`: what it asks the cluster for, what it shows, and what it leaves."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from laptime.api.answers import CheckedAnswer
from laptime.api.spec import BenchmarkRunSpec
from laptime.cli.display import LineDisplay
from laptime.cli.main import run_command
from laptime.cli.mistakes import Mistake
from laptime.cli.own_schemas import violations
from laptime.cli.progress import Tracker
from laptime.cli.runs import parse_run
from laptime.cli.verify_command import checking
from laptime.cli.verify_job import bring_back
from laptime.verification.verdict import Wrong
from tests.cli.api_servers import Answer, Asked, Orders, serving
from tests.verification.http2_server import http2_server

Laptime = Callable[..., tuple[int, str, str]]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo-verify"
RIGHT = CheckedAnswer(
    check="list", request="GET /", expected="200", answered='200\n{"a": 1}', right=True
)
WRONG = RIGHT.model_copy(
    update={"check": "one", "answered": "404", "right": False, "said": "WrongStatus: GET /: no"}
)
DESK: dict[str, Any] = {
    "apiVersion": "laptime.dev/v1alpha1",
    "kind": "BenchmarkScenario",
    "metadata": {"name": "desk"},
    "spec": {
        "requests": [{"name": "front", "path": "/"}],
        "checks": [{"name": "front", "path": "/", "contentType": "application/json"}],
    },
}


def status(state: str, **servers: str) -> dict[str, Any]:
    said = {"reason": "WrongStatus", "message": "server axum: GET /: no"}
    return {
        "state": state,
        "servers": [
            {"name": name, "state": one, **(said if one == "Failed" else {})}
            for name, one in servers.items()
        ],
    }


def answers_of(fake: Any, server: str, *answers: CheckedAnswer) -> None:
    """Store answers as the operator does; the run is the next object, and has the uid after it."""
    name = f"demo-verify-answer-{server}"
    labels = {"laptime.dev/run-uid": "uid-3", "laptime.dev/component": "answers"}
    text = "\n".join(one.to_line() for one in answers)
    fake.put(
        f"/api/v1/namespaces/team/configmaps/{name}",
        {
            "metadata": {"labels": {**labels, "laptime.dev/server": server}},
            "data": {"answers.jsonl": text},
        },
    )


def test_answers_are_shown_and_the_run_is_deleted(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    answers_of(fake, "fastapi", RIGHT)
    answers_of(fake, "axum", RIGHT, WRONG)
    fake.statuses = [
        status("Verifying", fastapi="Pending"),
        status("Failed", fastapi="Verified", axum="Failed"),
    ]
    code, out, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert (code, err) == (1, "")
    assert "fastapi: all 1 answers are right" in out
    assert "axum: 1 of 2 answers are right. WrongStatus: server axum: GET /: no" in out
    assert "WRONG" in out
    assert '{"a": 1}' in out
    assert RUN not in fake.objects
    (applied,) = fake.applied
    assert applied["spec"]["verifyOnly"] is True


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", RUN),
        ("GET", "/api/v1/namespaces/team/configmaps?"),
        ("DELETE", RUN),
    ],
)
def test_right_answers_are_right_when_the_cluster_was_out_of_reach(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, method: str, path: str
) -> None:
    answers_of(fake, "fastapi", RIGHT)
    answers_of(fake, "axum", RIGHT)
    fake.statuses = [status("Succeeded", fastapi="Verified", axum="Verified")]
    fake.lose(3, method, path)
    code, out, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 0, err
    assert "axum: all 1 answers are right" in out
    assert err.endswith("the API server answers 429; trying again\n")
    assert RUN not in fake.objects


@pytest.mark.parametrize(("found", "code"), [("Verified", 0), ("Failed", 1)])
def test_answers_are_shown_to_who_may_not_delete_the_check(
    found: str,
    code: int,
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers_of(fake, "fastapi", RIGHT)
    answers_of(fake, "axum", RIGHT if found == "Verified" else WRONG)
    fake.statuses = [status("Succeeded", fastapi="Verified", axum=found)]
    answer = fake.answer

    def forbidden(method: str, path: str, body: bytes) -> Any:
        refused = {"kind": "Status", "message": "benchmarkruns is forbidden"}
        return (403, refused) if method == "DELETE" else answer(method, path, body)

    monkeypatch.setattr(fake, "answer", forbidden)
    said = laptime("verify", manifest_file, "--kubeconfig", kubeconfig, "-o", "json")
    assert said[0] == code
    assert [one["right"] for one in json.loads(said[1])] == [True, code == 0]
    assert "Could not delete BenchmarkRun demo-verify: not allowed." in said[2]
    delete = f"kubectl delete br demo-verify -n team --kubeconfig {kubeconfig}"
    assert f"demo-verify stays. Delete it:  {delete}\n" in said[2]


@pytest.mark.parametrize(("found", "code"), [("Verified", 0), ("Failed", 1)])
def test_the_verdict_is_said_to_who_may_not_read_the_answers(
    found: str, code: int, laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    fake.statuses = [status("Succeeded", fastapi="Verified", axum=found)]
    fake.may_list_results = False
    said = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert said[0] == code
    assert "fastapi: all answers are right\n" in said[1]
    wrong = "axum: WrongStatus: server axum: GET /: no\n"
    assert (wrong if code else "axum: all answers are right\n") in said[1]
    assert "The answers cannot be shown: Could not read the results of demo-verify" in said[2]
    assert RUN not in fake.objects


def test_who_interrupts_the_deletion_of_a_check_is_told_how_it_is_done(
    laptime: Laptime,
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    fake.statuses = [status("Succeeded", fastapi="Verified", axum="Verified")]
    monkeypatch.setattr("laptime.cli.cluster_access.Cluster.delete_run", interrupt)
    code, out, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 130
    assert "axum: all answers are right" in out
    assert "demo-verify stays. Delete it:  kubectl delete br demo-verify -n team" in err


def test_it_is_kept_where_that_is_asked_for(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    answers_of(fake, "other", RIGHT)
    answers_of(fake, "axum", RIGHT)
    fake.statuses = [status("Succeeded", axum="Verified")]
    command = ("verify", manifest_file, "--kubeconfig", kubeconfig, "--keep", "--server", "axum")
    code, out, _ = laptime(*command, "-o", "json")
    assert code == 0
    assert json.loads(out) == [{"server": "axum", "right": True, "answers": [RIGHT.to_wire()]}]
    assert RUN in fake.objects
    assert [one["name"] for one in fake.applied[0]["spec"]["servers"]] == ["axum"]


def test_a_run_of_that_name_that_measures_stays(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    manifest = yaml.safe_load(manifest_file.read_text())
    fake.put(RUN, manifest)
    code, _, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo-verify is there already, and measures" in err
    assert RUN in fake.objects


def test_a_check_that_somebody_wrote_stays_and_one_of_this_command_is_replaced(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    made = checking(yaml.safe_load(manifest_file.read_text()), [])
    over = made | {"status": status("Succeeded", axum="Verified")}
    fake.put(RUN, over | {"metadata": {"name": "demo-verify"}})
    command = ("verify", manifest_file, "--kubeconfig", kubeconfig)
    code, _, err = laptime(*command)
    assert code == 1
    assert "demo-verify is there already, and was not made by `verify` for demo" in err
    assert RUN in fake.objects

    fake.put(RUN, over)
    answers_of(fake, "other", RIGHT)
    answers_of(fake, "axum", RIGHT)
    fake.statuses = [status("Succeeded", axum="Verified", other="Verified")]
    assert laptime(*command)[0] == 0
    assert len(fake.applied) == 1


def test_answers_to_the_questions_of_another_scenario_are_not_shown(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    manifest = yaml.safe_load(manifest_file.read_text())
    manifest["spec"]["scenario"] = "desk"
    manifest_file.write_text(yaml.safe_dump_all([DESK, manifest]))
    answers_of(fake, "axum", RIGHT)
    fake.statuses = [status("Succeeded", axum="Verified") | {"scenarioHash": "of somebody else"}]
    code, out, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo-verify checked other work than that of its file: The scenario" in err
    assert "answers are right" not in out
    assert RUN not in fake.objects


def test_what_goes_on_is_counted_in_servers(manifest: dict[str, Any]) -> None:
    metadata = {"name": "demo-verify", "namespace": "team", "uid": "u"}
    progress = {"state": "Verifying", "progress": {"completed": 1, "total": 2}}
    made = parse_run({**checking(manifest, []), "metadata": metadata, "status": progress})
    assert Tracker().view(made, 0.0).share == "1/2 servers"
    out = io.StringIO()
    LineDisplay(Console(file=out), "demo-verify").show(Tracker().view(made, 0.0))
    assert "Verifying, 1/2 servers" in out.getvalue()


@pytest.mark.parametrize("state", [None, "Queued", "Verifying", "Suspended"])
def test_a_check_that_is_not_over_stays_and_nothing_is_applied(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path, state: str | None
) -> None:
    made = checking(yaml.safe_load(manifest_file.read_text()), [])
    made["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z"
    fake.put(RUN, made | {"status": {"state": state}})
    code, _, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "demo-verify is there already, and checks since 2026-01-02T03:04:05Z" in err
    assert "wait until it is over, or delete it:  kubectl delete br demo-verify -n team" in err
    assert fake.objects[RUN]["metadata"]["uid"] == "uid-1"
    assert fake.applied == []


def test_a_check_that_is_over_is_replaced(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    made = checking(yaml.safe_load(manifest_file.read_text()), [])
    fake.put(RUN, made | {"status": {"state": "Failed"}})
    fake.status_of_new = status("Succeeded", fastapi="Verified", axum="Verified")
    code, _, err = laptime("verify", manifest_file, "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert len(fake.applied) == 1


def test_long_names_that_differ_at_the_end_are_checked_by_different_runs(
    manifest: dict[str, Any],
) -> None:
    names = set()
    for end in ("one", "two"):
        manifest["metadata"]["name"] = f"a-name-that-is-as-long-as-it-{end}"
        names.add(checking(manifest, [])["metadata"]["name"])
    assert len(names) == 2
    assert {len(name) for name in names} == {35}


def test_what_is_applied_is_a_run_that_the_api_server_takes(manifest: dict[str, Any]) -> None:
    manifest["metadata"]["name"] = "a-name-that-is-as-long-as-it-may-be"
    manifest["spec"] |= {
        "baseline": "axum",
        "control": True,
        "objectives": [{"server": "axum", "load": "closed", "metric": "p99", "atMost": "5ms"}],
    }
    made = checking(manifest, ["fastapi"])
    assert violations(made) == ([], True)
    assert made["metadata"]["name"] == "a-name-that-is-as-l-a9972340-verify"
    with pytest.raises(Mistake, match="there is no server flask; there is fastapi, axum"):
        checking(manifest, ["flask"])


NOT_FOR_A_CHECK = {
    # How much is measured, in which order, and what is made of the figures.
    *("baseline", "precision", "stopWhen", "smallestDifference", "maxRepetitions", "budget"),
    *("control", "seed", "objectives"),
    # Where each trial goes, and with which other one; a check has none.
    *("nodes", "pairing"),
    # What was asked of the run while it was there.
    *("suspend", "cancel", "retry"),
    # The command deletes it, once it has read the answers.
    "ttlSecondsAfterFinished",
    "verifyOnly",
}


def test_a_check_has_all_of_its_run_that_servers_are_deployed_by(manifest: dict[str, Any]) -> None:
    aliases = {field.alias or name for name, field in BenchmarkRunSpec.model_fields.items()}
    assert aliases >= NOT_FOR_A_CHECK
    servers = manifest["spec"]["servers"]
    said = {name: f"the run's {name}" for name in aliases} | {"servers": servers}
    made = checking({**manifest, "spec": said}, [])["spec"]
    assert made.pop("verifyOnly") is True
    assert made == {name: said[name] for name in aliases - NOT_FOR_A_CHECK}


def test_a_run_of_private_images_under_caps_is_checked_as_it_says(manifest: dict[str, Any]) -> None:
    manifest["spec"] |= {
        "placement": "isolated",
        "generator": {"parallelism": 2, "resources": {"cpu": "1", "memory": "256Mi"}},
        "imagePullSecrets": [{"name": "regcred"}],
    }
    made = checking(manifest, [])
    assert violations(made) == ([], True)
    assert made["spec"].items() >= manifest["spec"].items()


def test_a_run_of_as_many_trials_as_may_be_can_be_checked(manifest: dict[str, Any]) -> None:
    manifest["spec"] |= {
        "servers": [{"name": f"s{n}", "preset": "axum-sqlx"} for n in range(32)],
        "loads": [
            {"name": f"l{n}", "closed": {"connections": 10, "duration": "5s"}} for n in range(15)
        ],
        "repetitions": 4,
    }
    assert violations(manifest) == ([], True)
    assert violations(checking(manifest, [])) == ([], True)


def written(folder: Path, *documents: dict[str, Any]) -> Path:
    file = folder / "it.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_an_address_is_checked_from_here(
    laptime: Laptime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).parent / "openapi" / "orders.yaml"
    assert run_command(["init", "--from", str(source)]) == 0
    file = tmp_path / "orders.yaml"
    file.write_text(capsys.readouterr().out)

    class Forgetful(Orders):
        def __call__(self, asked: Asked) -> Answer:
            return Answer(404) if asked.method == "PATCH" else super().__call__(asked)

    with serving(Orders()) as address:
        code, out, _ = laptime("verify", file, "--address", address)
        assert (code, f"{address}: all 10 answers are right" in out) == (0, True)
    with serving(Forgetful()) as address:
        code, out, _ = laptime("verify", file, "--address", address, "-o", "json")
    assert code == 1
    (said,) = json.loads(out)
    assert "expected status 200, got 404" in said["message"]
    shown = {one["check"]: one for one in said["answers"]}
    assert [name for name, one in shown.items() if not one["right"]] == ["update-order"]
    login = shown["login-auth-token-post"]
    assert login["answered"].startswith('200 application/json\n{"access_token": "{{token}}"')
    assert login["expected"] == (
        "200 application/json\nmeets: object with access_token, token_type\nhas {{token}}"
    )
    assert shown["read-order"]["request"] == "GET /orders/{{orderId}}"


@pytest.mark.parametrize("loads", [["http1"], ["http2"], ["http1", "http2"]])
def test_an_address_is_checked_over_what_the_loads_speak(
    loads: list[str], laptime: Laptime, manifest: dict[str, Any], tmp_path: Path
) -> None:
    (load,) = manifest["spec"]["loads"]
    manifest["spec"]["loads"] = [{**load, "name": one, "protocol": one} for one in loads]
    manifest["spec"]["scenario"] = "desk"
    file = written(tmp_path, DESK, manifest)
    both = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    with http2_server(
        lambda _: (200, "application/json", b"{}"), http1=both + b"Connection: close\r\n\r\n{}"
    ) as address:
        code, out, _ = laptime("verify", file, "--address", address)
    assert (code, f"all {len(loads)} answers are right" in out) == (0, True), out
    with serving(lambda _: Answer(json={})) as address:
        code, out, _ = laptime("verify", file, "--address", address)
    second = "http2" in loads
    assert code == int(second), out
    lacks = (
        "WrongProtocol: it answers over HTTP/1.1, and does not answer over HTTP/2: have the server"
    )
    assert (lacks in out.replace("\n", " ")) is second


def test_an_address_that_has_nothing_but_what_is_checked_speaks_http2_all_the_same(
    laptime: Laptime, manifest: dict[str, Any], tmp_path: Path
) -> None:
    def answer(path: str) -> tuple[int, str, bytes]:
        if path == "/":
            raise OSError("it lets go")
        return 200, "application/json", b"{}"

    (load,) = manifest["spec"]["loads"]
    manifest["spec"] |= {"loads": [{**load, "protocol": "http2"}], "scenario": "desk"}
    inner = json.loads(json.dumps(DESK).replace('"/"', '"/inner"'))
    with http2_server(answer) as address:
        code, out, _ = laptime("verify", written(tmp_path, inner, manifest), "--address", address)
    assert code == 0, out


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "localhost",
        "http://localhost:http",
        "http://[::1",
        "http://localhost:99999",
        "http://",
        "ftp://localhost",
        "http://xn--a",
        "",
    ],
)
def test_an_address_that_is_none_is_a_mistake(
    laptime: Laptime, manifest_file: Path, address: str
) -> None:
    code, out, err = laptime("verify", manifest_file, "--address", address)
    assert (code, out) == (1, "")
    assert "write --address http://HOST:PORT, such as http://localhost:8080" in err


def test_what_cannot_be_verified_is_a_mistake(
    laptime: Laptime, manifest_file: Path, tmp_path: Path, manifest: dict[str, Any]
) -> None:
    code, _, err = laptime("verify")
    assert (code, "Which run?" in err) == (1, True)
    code, _, err = laptime("verify", manifest_file, "--address", "http://x", "--keep")
    assert (code, "leave --address out" in err) == (1, True)
    manifest["spec"]["scenario"] = "nobodys"
    code, _, err = laptime("verify", written(tmp_path, manifest), "--address", "http://x")
    assert (code, "scenario nobodys is not in the file" in err) == (1, True)


def test_in_a_job_the_rows_are_brought_back_as_before_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    file = tmp_path / "reset.json"
    file.write_text('["SELECT 1"]')
    with pytest.raises(Wrong) as raised:
        bring_back(file)
    verdict = raised.value.verdict
    assert verdict.reason == "DatabaseNotReachable"
    assert verdict.message.startswith("the database could not be reset: ")
