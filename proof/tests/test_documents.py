"""The documents: links lead somewhere, and the table of third-party libraries has all of them.

Links lead into every folder, so that this is a test of a part that reads all of them.
"""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
OURS = {"laptime"}


def _python() -> set[str]:
    names: set[str] = set()
    for file in ROOT.glob("*/pyproject.toml"):
        project = tomllib.loads(file.read_text())
        groups = [
            project["project"].get("dependencies", []),
            *project["project"].get("optional-dependencies", {}).values(),
            *project.get("dependency-groups", {}).values(),
        ]
        names |= {re.split(r"[\[<>=~ ]", line)[0] for group in groups for line in group}
    for file in (ROOT / "images").rglob("requirements.in"):
        lines = [line for line in file.read_text().splitlines() if line and line[0] != "#"]
        names |= {re.split(r"[\[<>=~ ]", line)[0] for line in lines}
    return names - OURS


def _go() -> set[str]:
    names: set[str] = set()
    for file in [*ROOT.glob("images/**/go.mod"), *ROOT.glob("cluster/go/coredns/go.mod")]:
        for line in file.read_text().splitlines():
            found = re.match(r"(?:require )?\t?([a-z][a-z0-9.-]+\.[a-z]+/\S+) v\S+$", line)
            if found:
                names.add(found[1])
    return names


def _rust() -> set[str]:
    names: set[str] = set()
    for file in (ROOT / "images/servers/rust").rglob("Cargo.toml"):
        crate = tomllib.loads(file.read_text())
        for group in ("dependencies", "dev-dependencies"):
            wanted = crate.get(group, {}).items()
            names |= {name for name, how in wanted if "path" not in how}
    return names - {"serving", "tasks-store"}


def test_every_library_has_its_reason() -> None:
    page = (ROOT / "docs/dependencies.md").read_text()
    npm = json.loads((ROOT / "e2e/report/package.json").read_text())["dependencies"]
    wanted = _python() | _go() | _rust() | set(npm)
    assert len(wanted) > 60
    missing = {
        name for name in wanted if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)
    }
    # Of one project on GitHub several modules stand in one row by their last name.
    missing = {name for name in missing if not re.search(rf"[ |]{name.split('/')[-1]}[ ,]", page)}
    assert not missing


def _anchors(page: Path) -> set[str]:
    """Return the anchors that a forge gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if re.match("[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), link
