"""Reading the file that `laptime run` is given."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from laptime.api import API_VERSION, KIND
from laptime.cli.mistakes import Mistake

_APPLICABLE = {(API_VERSION, KIND), ("v1", "ConfigMap")}


@dataclass(frozen=True)
class Manifest:
    """One BenchmarkRun and the ConfigMaps (k6 scripts) that stand beside it in the file."""

    run: dict[str, Any]
    config_maps: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.run["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """The namespace that the file names, if it does."""
        namespace = self.run["metadata"].get("namespace")
        return None if namespace is None else str(namespace)


def read_manifest(path: Path) -> Manifest:
    """Return what the YAML (or JSON) file holds; `-` is the standard input.

    Raises:
        Mistake: no such file, no YAML, not exactly one BenchmarkRun, another kind in it.
    """
    name = "the standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise Mistake(f"Cannot read {name}: {reason}") from error
    return parse_manifest(text, name)


def parse_manifest(text: str, source: str) -> Manifest:
    """Return what the text holds; `source` names it in messages.

    Raises:
        Mistake: as for `read_manifest`.
    """
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise Mistake(f"{source}{where} is not YAML: {problem}") from error
    runs: list[dict[str, Any]] = []
    config_maps: list[dict[str, Any]] = []
    for document in documents:
        _check_document(document, source)
        (runs if document["kind"] == KIND else config_maps).append(document)
    if len(runs) != 1:
        raise Mistake(
            f"{source} holds {len(runs) or 'no'} {KIND}{'s' if len(runs) != 1 else ''}: "
            "give a file with exactly one"
        )
    return Manifest(run=runs[0], config_maps=tuple(config_maps))


def _check_document(document: Any, source: str) -> None:
    if not isinstance(document, dict) or "kind" not in document:
        raise Mistake(f"{source} is not a Kubernetes manifest: it has no kind")
    kind = (str(document.get("apiVersion")), str(document["kind"]))
    if kind not in _APPLICABLE:
        raise Mistake(
            f"{source} holds {kind[1]} ({kind[0]}): laptime applies {KIND} ({API_VERSION}) and "
            "ConfigMap (v1); use kubectl for anything else"
        )
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise Mistake(f"{source}: {kind[1]} has no metadata.name")
