"""The programs that the distribution installs are what they are called."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SCRIPTS: dict[str, str] = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]

SAID = {
    "laptime": ("servers", "fastapi-sync"),
    "kubectl-laptime": ("servers", "fastapi-sync"),
    "kubectl_complete-laptime": ("rep", "report\n:4\n"),
}
"""A word that each is asked, and what it says among other things."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_that_is_installed_does_what_it_is_called(name: str) -> None:
    word, answer = SAID[name]
    module, _, function = SCRIPTS[name].partition(":")
    # What an installer writes into the file of this name.
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    command = [sys.executable, "-c", program, word]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert answer in ended.stdout


def test_kubectl_finds_its_plugin_and_who_completes_it() -> None:
    """By these names: kubectl-laptime for `kubectl laptime`, and the other for its words."""
    assert set(SCRIPTS) == set(SAID)
