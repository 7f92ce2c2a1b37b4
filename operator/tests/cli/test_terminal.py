"""Whatever stands in a cluster, `laptime` moves neither the terminal nor the page it writes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.text import Text

from laptime.cli.display import LiveDisplay
from laptime.cli.printing import PlainConsole
from tests.attacks import ATTACKS, harmless
from tests.cli.test_report_commands import store
from tests.report.html_tree import parse
from tests.serving import served

Laptime = Callable[..., tuple[int, str, str]]
RUN = "/apis/laptime.dev/v1alpha1/namespaces/team/benchmarkruns/demo"
RESULTS = "/api/v1/namespaces/team/configmaps/demo-results"
ALL = [pytest.param(text, id=what) for what, text in ATTACKS.items()]
EVERYTHING = " ".join(ATTACKS.values())
# Colours and the like, as Rich writes them itself.
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def tampered(fake: Any) -> Any:
    """A run of which somebody has changed all that is stored."""
    store(fake)
    status = fake.objects[RUN]["status"]
    status["verdict"] = EVERYTHING
    status["progress"] = {"completed": 1, "total": 2, "percent": 50, "text": EVERYTHING}
    status["baseline"] = status["fastest"] = EVERYTHING
    status["conditions"] = [
        {"type": type_, "status": "False", "reason": EVERYTHING, "message": EVERYTHING,
         "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type_ in ("Succeeded", "TiersReady")
    ]  # fmt: skip
    status["servers"] = [
        {"name": EVERYTHING, "state": "Failed", "reason": EVERYTHING, "message": EVERYTHING}
    ]
    for row in status["results"]:
        row |= {"server": EVERYTHING, "reason": EVERYTHING, "message": EVERYTHING}
        row["validityReasons"] = [EVERYTHING]
    data = fake.objects[RESULTS]["data"]
    document = json.loads(data["results.json"])
    for of_load in (document["rows"], document["trials"], document["objectives"]):
        for one in of_load:
            one["load"] = one["load"].replace("closed", EVERYTHING)
            one["server"] = one["server"].replace("axum-again", EVERYTHING)
    document["spec"]["loads"][0]["name"] = EVERYTHING
    document["spec"]["servers"][3]["name"] = EVERYTHING
    document["environment"] = {EVERYTHING: EVERYTHING}
    document["verdict"] = EVERYTHING
    # As raw as JSON lets it be.
    half, escaped = "\ud83c", "\\ud83c"
    text = json.dumps(document, ensure_ascii=False)
    data["results.json"] = text.replace(half, escaped)
    return fake


@pytest.mark.parametrize(
    "command",
    [
        ("watch", "demo"),
        ("watch", "demo", "-o", "json"),
        ("watch", "demo", "-o", "yaml"),
        ("report", "demo", "-o", "table"),
        ("report", "demo", "-o", "json"),
        ("report", "demo", "-o", "markdown"),
        ("report", "demo", "-o", "csv"),
        ("compare", "demo", "demo"),
        ("compare", "demo", "demo", "-o", "json"),
        ("compare", "demo", "demo", "-o", "markdown"),
    ],
    ids=" ".join,
)
def test_a_command_prints_nothing_that_moves_a_terminal(
    command: tuple[str, ...], laptime: Laptime, tampered: Any, kubeconfig: Path
) -> None:
    code, out, err = laptime(*command, "--kubeconfig", kubeconfig)
    assert out or err
    assert code in (0, 1, 2, 3)
    assert harmless(out)
    assert harmless(err)


def test_a_refusal_of_the_api_server_moves_nothing(
    laptime: Laptime, fake: Any, kubeconfig: Path
) -> None:
    for status in (403, 422, 500):
        cause = {"field": EVERYTHING, "message": EVERYTHING}
        fake.refuse = (status, {"message": EVERYTHING, "details": {"causes": [cause]}})
        code, out, err = laptime("watch", "demo", "--kubeconfig", kubeconfig)
        assert code == 1
        assert harmless(out + err)


def test_files_are_as_harmless_as_the_screen(
    laptime: Laptime, tampered: Any, kubeconfig: Path, tmp_path: Path
) -> None:
    for suffix in ("md", "json", "csv"):
        file = tmp_path / f"demo.{suffix}"
        laptime("report", "demo", "-f", file, "--kubeconfig", kubeconfig)
        assert harmless(file.read_text())
    json.loads((tmp_path / "demo.json").read_text())


@pytest.mark.parametrize("attack", ALL)
def test_only_rich_itself_colours_and_moves(attack: str) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=True, width=400)
    console.print(Text(f"a {attack} b", "bold red"))
    console.print(f"a {attack} b", markup=False)
    written = out.getvalue()
    assert "\x1b[1;31m" in written
    assert harmless(_STYLE.sub("", written))


SAID = "app.py:100: in main :smiley:"


def test_words_of_others_are_no_names_of_pictures(
    laptime: Laptime, fake: Any, kubeconfig: Path, manifest: dict[str, Any], finished_status: Any
) -> None:
    objective = {"server": "axum", "load": "closed", "metric": "p99", "bound": "p99 at most 5ms"}
    outcome = {"outcome": "missed", "reason": "Missed", "measured": SAID, "message": SAID}
    finished_status["results"][0]["message"] = SAID
    finished_status["objectives"] = [objective | outcome]
    crashed = {"name": "axum", "state": "Failed", "reason": "CrashLoop", "message": SAID}
    fake.put(RUN, {"spec": manifest["spec"], "status": {}})
    fake.statuses = [{}, {"state": "Running", "servers": [crashed]}, finished_status]
    _, out, _ = laptime("watch", "demo", "--kubeconfig", kubeconfig)
    # The warning, the note below the table, and twice in the objective.
    assert " ".join(out.split()).count(SAID) == 4
    _, _, err = laptime("watch", SAID, "--kubeconfig", kubeconfig)
    assert SAID in err


def test_a_warning_above_the_bars_is_as_it_was_said() -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=True, width=200)
    with LiveDisplay(console, "demo") as display:
        display.warn(SAID)
    assert SAID in out.getvalue()


@pytest.mark.filterwarnings("ignore:constrained_layout")
def test_a_page_of_tampered_results_has_no_element_or_attribute_of_theirs(
    laptime: Laptime, tampered: Any, kubeconfig: Path, tmp_path: Path
) -> None:
    file = tmp_path / "demo.html"
    code, _, err = laptime("report", "demo", "-f", file, "--kubeconfig", kubeconfig)
    assert (code, err) == (0, f"Wrote {file}\n")
    assert harmless(file.read_text())
    page = parse(file.read_text())
    assert "alert(1)" in page.text  # it is there, as text
    for element in page.iter():
        assert element.tag not in ("script", "img", "iframe", "object", "embed", "base", "form")
        for name, value in element.attributes.items():
            assert not name.startswith("on"), (element.tag, name)
            if name in ("href", "src", "xlink:href"):
                assert value.startswith(("#", "data:,")), value
            if name == "style":
                assert "evil.example" not in value
                assert "position" not in value
    assert all("evil.example" not in style.text for style in page.all("style"))


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_what_servers_answered_to_a_check_moves_nothing(
    output: str, laptime: Laptime, fake: Any, kubeconfig: Path, manifest_file: Path
) -> None:
    said = dict.fromkeys(("check", "request", "expected", "answered", "said"), EVERYTHING)
    labels = {
        "laptime.dev/run-uid": "uid-2",
        "laptime.dev/component": "answers",
        "laptime.dev/server": "axum",
    }
    fake.put(
        "/api/v1/namespaces/team/configmaps/demo-verify-answer-axum",
        {
            "metadata": {"labels": labels},
            "data": {"answers.jsonl": json.dumps({**said, "right": False})},
        },
    )
    problem = {"reason": EVERYTHING, "message": EVERYTHING}
    ended = {"type": "Succeeded", "status": "False", **problem, "lastTransitionTime": "x"}
    fake.statuses = [
        {
            "state": "Failed",
            "servers": [
                {"name": one, "state": "Failed", **problem} for one in ("axum", "x\x1b[2J")
            ],
            "progress": {"completed": 1, "total": 2, "percent": 50, "text": EVERYTHING},
            "conditions": [ended],
        }
    ]
    code, out, err = laptime("verify", manifest_file, "-o", output, "--kubeconfig", kubeconfig)
    assert code == 1
    assert "all is well" in out
    assert harmless(out)
    assert harmless(err)


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_what_an_address_answers_to_a_check_moves_nothing(
    output: str, laptime: Laptime, tmp_path: Path
) -> None:
    spec = {
        "requests": [{"name": "hi", "path": "/hi"}],
        "checks": [{"name": "hi", "path": "/hi", "expected": {"hello": "world"}}],
    }
    api = {"apiVersion": "laptime.dev/v1alpha1"}
    scenario = {"kind": "BenchmarkScenario", "metadata": {"name": "hostile"}, "spec": spec}
    run = {
        "kind": "BenchmarkRun",
        "metadata": {"name": "demo"},
        "spec": {"scenario": "hostile", "servers": []},
    }
    file = tmp_path / "hostile.yaml"
    file.write_text(yaml.safe_dump_all([api | scenario, api | run]))
    # As JSON text, and raw.
    for text in (json.dumps({"hello": EVERYTHING}), EVERYTHING):
        sent = text.encode(errors="surrogatepass")

        class Hostile(BaseHTTPRequestHandler):
            answer = sent

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json; \x9b2J\x1b[2J")
                self.send_header("Content-Length", str(len(self.answer)))
                self.end_headers()
                self.wfile.write(self.answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        with served(ThreadingHTTPServer(("127.0.0.1", 0), Hostile)) as port:
            address = f"http://127.0.0.1:{port}"
            code, out, err = laptime("verify", file, "--address", address, "-o", output)
        assert code == 1
        assert "WrongAnswer" in out or "Unreadable" in out or "NotJson" in out, out
        assert harmless(out)
        assert harmless(err)


def _hostile_openapi(text: str) -> dict[str, Any]:
    answer = {"200": {"description": text, "content": {text: {"schema": {"type": "string"}}}}}
    parameter = {"name": text, "in": "query", "required": True, "schema": {"type": text}}
    operation = {
        "operationId": text,
        "summary": text,
        "tags": [text],
        "parameters": [parameter],
        "responses": answer,
    }
    plain = {"responses": {"200": {"description": text}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": text, "version": text, "description": text},
        "servers": [{"url": "/api", "description": text}],
        "paths": {f"/{text}": {"get": operation}, "/fine": {"get": plain}},
        "components": {"securitySchemes": {text: {"type": text}}},
        "security": [{text: []}],
    }


def _hostile_url(text: str) -> dict[str, Any]:
    return {**_hostile_openapi(text), "servers": [{"url": f"http://{text}/"}]}


def _hostile_har(text: str) -> dict[str, Any]:
    def entry(path: str, host: str) -> dict[str, Any]:
        pairs = [{"name": text, "value": text}, {"name": "accept", "value": text}]
        content = {"mimeType": text, "text": text}
        return {
            "comment": text,
            "request": {
                "method": "POST",
                "url": f"https://{host}{path}",
                "headers": pairs,
                "cookies": pairs,
                "postData": {"mimeType": text, "text": text},
            },
            "response": {"status": 200, "headers": pairs, "cookies": pairs, "content": content},
        }

    entries = [
        entry("/fine", "shop.example"),
        entry(f"/{text}", "shop.example"),
        entry("/", f"other.example{text}"),
    ]
    return {"log": {"version": "1.2", "creator": {"name": text}, "entries": entries}}


def _hostile_testrun(text: str) -> dict[str, Any]:
    spec = {
        "parallelism": 1,
        "script": {"configMap": {"name": "fine", "file": "main.js"}},
        "arguments": f"--tag {text} -e A={text}",
        "runner": {"env": [{"name": text, "value": text}], "image": text},
        text: text,
    }
    return {
        "apiVersion": "k6.io/v1alpha1",
        "kind": "TestRun",
        "metadata": {"name": "sample", "labels": {text: text}},
        "spec": spec,
    }


@pytest.mark.parametrize("attack", ALL)
@pytest.mark.parametrize("kind", [_hostile_openapi, _hostile_url, _hostile_har, _hostile_testrun])
def test_what_a_scenario_is_made_from_moves_nothing_and_leaves_no_comment(
    kind: Callable[[str], dict[str, Any]], attack: str, laptime: Laptime, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(kind(attack)))
    code, out, err = laptime("init", "--from", file)
    assert harmless(out)
    assert harmless(err)
    assert code in (0, 1)
    assert out or err
    if code == 0:
        # Nothing of it became a document, or a key, of its own.
        documents = [one for one in yaml.safe_load_all(out) if one]
        assert [one["kind"] for one in documents][-1:] == ["BenchmarkRun"]
        assert len(documents) == (1 if kind is _hostile_testrun else 2)
        known = {"apiVersion", "kind", "metadata", "spec"}
        assert all(one.keys() == known for one in documents)
