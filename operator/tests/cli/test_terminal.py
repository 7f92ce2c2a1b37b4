"""Whatever stands in a cluster, `laptime` moves neither the terminal nor the page it writes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from laptime.cli.printing import PlainConsole
from tests.attacks import ATTACKS, harmless
from tests.cli.test_report_commands import store
from tests.report.html_tree import parse

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
