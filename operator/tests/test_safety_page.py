"""Each attack that docs/safety.md lists is tried by the test that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "safety.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and "::" in line]
NAMED = re.findall(r"`(\S+\.py)::(test_\w+)`", PAGE)


def test_each_row_names_one_test() -> None:
    assert len(ROWS) == len(NAMED) > 40
    assert all(row.count("::") == 1 for row in ROWS)


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED}))
def test_what_the_page_names_is_there_and_not_skipped(path: str) -> None:
    found = {
        node.name: [ast.unparse(one) for one in node.decorator_list]
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name in (name for at, name in NAMED if at == path):
        assert name in found, f"docs/safety.md names {path}::{name}, which is not there"
        assert not any("skip" in one for one in found[name])
