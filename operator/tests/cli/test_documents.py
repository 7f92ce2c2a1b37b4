"""The documents: runs in them are valid, the index has all of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.cli.manifest_file import parse_manifest
from laptime.cli.own_schemas import violations

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_RUN = re.compile(r"^```yaml\n(apiVersion: laptime\.dev/.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


RUNS = [(page, text) for page in PAGES for text in _RUN.findall(page.read_text())]


def test_there_are_runs_in_the_documents() -> None:
    assert {_named(page) for page, _ in RUNS} >= {
        "README.md",
        "docs/first-run.md",
        "docs/servers.md",
    }


@pytest.mark.parametrize(("page", "text"), RUNS, ids=[_named(page) for page, _ in RUNS])
def test_a_run_that_is_shown_is_valid(page: Path, text: str) -> None:
    assert violations(parse_manifest(text, _named(page)).run) == ([], True)


def test_the_command_for_docker_hub_renames_each_image_that_is_built_here() -> None:
    page = (DOCS / "first-run.md").read_text()
    (command,) = re.findall(r"^ *(sed .*) >docker-hub.yaml$", page, re.MULTILINE)
    said = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, check=True).stdout

    def repositories(images: dict[str, Any]) -> dict[str, str]:
        every = {**images, **images["servers"]}
        return {name: one["repository"] for name, one in every.items() if "repository" in one}

    values = yaml.safe_load((ROOT / "charts" / "laptime" / "values.yaml").read_text())["images"]
    usual = {name: one for name, one in values.items() if isinstance(one, dict)}
    assert repositories(yaml.safe_load(said)["images"]) == {
        name: one.replace("laptime/", "ME/")
        for name, one in repositories(usual).items()
        if one.startswith("laptime/")
    }


def test_without_the_plugin_the_archive_is_read_by_the_name_that_the_status_has() -> None:
    """Another run's of the same name may stand there, of before a restore."""
    page = (DOCS / "storage.md").read_text()
    (command,) = re.findall(r"^(kubectl get cm .*?) \| ", page, re.MULTILINE)
    kubectl = 'kubectl() { if [ "$2" = br ]; then echo shop-results-0a1b; else echo "$2 $3"; fi; }'
    said = subprocess.run(["bash", "-c", f"{kubectl}\n{command}"], capture_output=True, check=True)
    assert said.stdout.decode().split() == ["cm", "shop-results-0a1b"]


def test_the_index_has_every_document() -> None:
    """A folder is listed by itself or by its own index."""
    index = DOCS / "README.md"
    linked = {(DOCS / link).resolve() for link in _LINK.findall(index.read_text())}
    missing = [
        _named(page)
        for page in PAGES
        if page not in (index, ROOT / "README.md")
        and not {page, page.parent, page.parent / "README.md"} & linked
    ]
    assert missing == []
