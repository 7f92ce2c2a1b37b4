"""validate and the API server agree: each case of the end-to-end tests, judged without a cluster.

`e2e/schema/refused.yaml` is what a real API server was seen to refuse, and what it takes instead.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from laptime.cli.own_schemas import violations

FOLDER = Path(__file__).parents[3] / "e2e" / "schema"
RUN = yaml.safe_load((FOLDER / "run.yaml").read_text())


@dataclass(frozen=True)
class Case:
    place: str
    line: dict[str, Any]

    def run(self, key: str) -> dict[str, Any]:
        return changed({**self.line.get("also", {}), self.place: self.line[key]})

    def __str__(self) -> str:
        return f"{self.place}={self.line['write']!r}"[:60]


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the run with values put at their places; None leaves a field out."""
    result: dict[str, Any] = copy.deepcopy(RUN)
    for place, value in changes.items():
        *parents, last = (int(part) if part.isdigit() else part for part in place.split("."))
        target: Any = result
        for part in parents:
            target = target[part]
        if value is None:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(value)
    return result


def places(line: dict[str, Any]) -> list[str]:
    return line["at"] if isinstance(line["at"], list) else [line["at"]]


CASES = [
    Case(place, line)
    for line in yaml.safe_load((FOLDER / "refused.yaml").read_text())
    for place in places(line)
]


def test_there_are_cases() -> None:
    assert len(CASES) > 80


def test_the_full_run_is_valid() -> None:
    assert violations(RUN) == ([], True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_the_server_refuses_is_refused(case: Case) -> None:
    said, checked = violations(case.run("write"))
    assert checked
    assert said


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.line.get("only_refused")], ids=str
)
def test_what_the_server_takes_is_valid(case: Case) -> None:
    assert violations(case.run("instead")) == ([], True)
