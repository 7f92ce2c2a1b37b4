"""What a person or an image installs with Laptime is what it loads."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

OPERATOR = Path(__file__).resolve().parents[1]


def test_each_library_of_the_package_is_imported_by_it() -> None:
    project = tomllib.loads((OPERATOR / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = {re.split(r"[\[<>=~ ]", line)[0] for group in groups for line in group} - {"laptime"}
    distributions = packages_distributions()
    imported = {
        found.lower().replace("_", "-")
        for file in (OPERATOR / "src").rglob("*.py")
        for module in re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.M)
        for found in distributions.get(module, [])
    }
    assert len(asked) > 10
    assert asked - imported == set()
