"""The results that a run left in the cluster, or that somebody kept in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laptime.api.status import ConditionType
from laptime.cli.mistakes import Mistake
from laptime.cli.options import program_name, where
from laptime.report import Report, Results, ResultsError, read_results
from laptime.report.document import JSON_FILE

if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

__all__ = ["JSON_FILE", "Stored", "stored_document", "stored_results"]


@dataclass(frozen=True)
class Stored:
    """A results.json, and the report that it was made from."""

    results: Results
    report: Report


def stored_document(cluster: Cluster, found: Run) -> str:
    """Return the results of a run as they are stored; Mistake when it has none yet."""
    table = f"{program_name()} report {found.name} --output table"
    there = where(cluster, found.namespace)
    if found.spec is not None and found.spec.verify_only:
        raise Mistake(
            f"{found.name} only verified its servers, so there is nothing to report. What they "
            f"answered: {table} --stored FOLDER{there}"
        )
    stored = found.status.results_config_map
    if stored is None and found.over:
        ended = found.status.condition(ConditionType.SUCCEEDED)
        why = f": {ended.reason}: {ended.message}" if ended else ""
        raise Mistake(
            f"{found.name} is over ({found.status.state}) and has no report{why}\n"
            f"What is known of it: {table}{there}"
        )
    if stored is None or not found.over:
        # That of before its failed trials were asked for again has other figures than its status.
        state = f"state {found.status.state or 'unknown'}"
        if found.asks_again:
            state = "its failed trials are asked for again"
        raise Mistake(
            f"{found.name} has no report yet ({state}): it is written when the run is over. Its "
            f"figures so far: {table}{there}"
        )
    files = cluster.stored(found).files
    if JSON_FILE not in files:
        raise Mistake(f"ConfigMap {stored} has no {JSON_FILE}")
    return files[JSON_FILE]


def stored_results(cluster: Cluster, found: Run) -> Stored:
    """Return the results of a run; Mistake when there are none that can be read."""
    text = stored_document(cluster, found)
    try:
        return Stored(*read_results(text, found.spec))
    except ResultsError as error:
        raise Mistake(f"Cannot read the results of {found.name}: {error}") from error


def results_of_file(path: Path) -> Stored:
    """Return the results that a file holds; Mistake when it holds none."""
    try:
        return Stored(*read_results(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise Mistake(f"Cannot read {path}: {reason}") from error
    except ResultsError as error:
        raise Mistake(f"{path} is no results.json: {error}") from error
