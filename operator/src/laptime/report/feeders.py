"""What results and reports say of the feeders of a scenario: all but their rows. Pure.

What feeders hold may be secret (passwords and tokens belong there), and results and reports are
made to be sent around. The run itself keeps it, in its namespace: what is measured again by `retry`
is the same work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from laptime.api.base import TolerantModel
from laptime.api.feeders import Csv, Feeder
from laptime.catalog import Scenario, document_of, rows_of
from laptime.catalog.tables import glance_at


class FeederKept(TolerantModel):
    """What is known of a feeder whose rows are left out."""

    name: str = Field(description="Its name in templates.")
    columns: list[str] = Field(
        default_factory=list, description="The columns of a table; of a list of values none."
    )
    rows: int = Field(description="How many rows, or values.")
    sha256: str = Field(
        description="SHA-256 of the table as it was written; of a list: of its values, each with a "
        "line feed behind it."
    )


def feeders_kept(scenario: Scenario) -> tuple[FeederKept, ...]:
    """Return what is known of the feeders that `without_rows` empties; ValueError of no table."""
    return tuple(_kept(one) for one in scenario.feeders if _holds(one) is not None)


def without_rows(scenario: Scenario) -> Scenario:
    """Return a scenario whose feeders hold nothing but ranges of numbers."""
    emptied = [
        one.model_copy(update={"csv": one.csv and Csv(), "values": None})
        for one in scenario.feeders
    ]
    return scenario.model_copy(update={"feeders": emptied})


def document_to_fill(
    scenario: Scenario, namespace: str, kept: Sequence[FeederKept]
) -> dict[str, Any]:
    """Return the BenchmarkScenario of one without rows, with a place for those of each feeder.

    Tables are taken from a ConfigMap, which is waited for. An empty list of values is refused.
    """
    document = document_of(scenario, namespace)
    empty = {one.name for one in kept}
    for feeder in document["spec"].get("feeders", []):
        if feeder["name"] not in empty:
            continue
        if "csv" in feeder:
            feeder["csv"] = {"configMap": {"name": _tables(scenario), "key": _file(feeder["name"])}}
        else:
            feeder["values"] = []
    return document


def what_to_fill(scenario: Scenario, namespace: str, kept: Sequence[FeederKept]) -> Iterator[str]:
    """Yield in lines what belongs into `document_to_fill`."""
    for one in kept:
        what = f"{_file(one.name)}, columns {', '.join(one.columns)}" if one.columns else "values"
        of = "SHA-256" if one.columns else "SHA-256 of a line each"
        yield f"- {one.name}: {what}; rows: {one.rows:,}; {of}: {one.sha256}"
    if files := [f"--from-file={_file(one.name)}" for one in kept if one.columns]:
        made = f"kubectl create configmap {_tables(scenario)} -n {namespace}"
        yield f"Tables by {made} {' '.join(files)}"


def _kept(feeder: Feeder) -> FeederKept:
    return FeederKept(
        name=feeder.name,
        columns=list(glance_at(feeder.csv).first) if feeder.csv is not None else [],
        rows=rows_of(feeder),
        sha256=hashlib.sha256((_holds(feeder) or "").encode()).hexdigest(),
    )


def _holds(feeder: Feeder) -> str | None:
    """Return what a feeder holds; None where that is nothing, or a range of numbers."""
    if feeder.csv is not None:
        return feeder.csv.text
    return None if feeder.values is None else "".join(f"{one}\n" for one in feeder.values)


def _tables(scenario: Scenario) -> str:
    return f"{scenario.name}-tables"


def _file(feeder: str) -> str:
    return f"{feeder}.csv"
