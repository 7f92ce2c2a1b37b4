"""Reading the file that `laptime run` is given."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from laptime.api import API_VERSION, KIND, SCENARIO_KIND
from laptime.cli.mistakes import Mistake

_CONFIG_MAP = "ConfigMap"
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_APPLICABLE = {(API_VERSION, KIND), (API_VERSION, SCENARIO_KIND), ("v1", _CONFIG_MAP)}
Document = dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """One BenchmarkRun, and the scenarios and ConfigMaps that stand beside it in the file."""

    run: Document
    config_maps: tuple[Document, ...]
    scenarios: tuple[Document, ...] = ()

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.run["metadata"]["name"])

    def named(self, name: str) -> Manifest:
        """Return the same with another name of the run."""
        run = {**self.run, "metadata": {**self.run["metadata"], "name": name}}
        return replace(self, run=run)

    @property
    def namespace(self) -> str | None:
        """The namespace that the file names, if it does."""
        namespace = self.run["metadata"].get("namespace")
        return None if namespace is None else str(namespace)


def read_manifest(path: Path) -> Manifest:
    """Return what the YAML (or JSON) file holds; `-` is the standard input.

    Raises:
        Mistake: no such file, no YAML, not exactly one BenchmarkRun, another kind or one object
            twice in it.
    """
    name, text = _text(path)
    return parse_manifest(text, name)


def read_documents(path: Path) -> dict[str, list[Document]]:
    """Return what a file holds by kind: runs, scenarios and ConfigMaps, of each as many as it has.

    Raises:
        Mistake: no such file, no YAML, another kind or one object twice in it.
    """
    name, text = _text(path)
    return parse_documents(text, name)


def source_of(path: Path) -> str:
    """Return how messages name a file; `-` is the standard input, which can be read once."""
    return "the standard input" if str(path) == "-" else str(path)


def _text(path: Path) -> tuple[str, str]:
    name = source_of(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise Mistake(f"Cannot read {name}: {reason}") from error
    return name, text


def parse_manifest(text: str, source: str) -> Manifest:
    """Return what the text holds; `source` names it in messages.

    Raises:
        Mistake: as for `read_manifest`.
    """
    return manifest_of(parse_documents(text, source), source)


def manifest_of(found: Mapping[str, list[Document]], source: str) -> Manifest:
    """Return what was found by kind as one run and what stands beside it.

    Raises:
        Mistake: not exactly one BenchmarkRun.
    """
    runs = found[KIND]
    if len(runs) != 1:
        raise Mistake(
            f"{source} holds {len(runs) or 'no'} {KIND}{'s' if len(runs) != 1 else ''}: "
            "give a file with exactly one"
        )
    return Manifest(runs[0], tuple(found[_CONFIG_MAP]), tuple(found[SCENARIO_KIND]))


def parse_documents(text: str, source: str) -> dict[str, list[Document]]:
    """Return what the text holds by kind; `source` names it in messages.

    Raises:
        Mistake: as for `read_documents`.
    """
    documents = _parsed(text, source)
    found: dict[str, list[Document]] = {kind: [] for _, kind in _APPLICABLE}
    seen: set[tuple[str, str]] = set()
    for document in documents:
        _check_document(document, source)
        kind, name = document["kind"], document["metadata"]["name"]
        # Whatever namespace stands there, all are applied in that of the run.
        if (kind, name) in seen:
            raise Mistake(f"{source}: {kind} {name} stands there twice: write it once")
        seen.add((kind, name))
        found[kind].append(document)
    return found


def read_any(path: Path) -> list[Any]:
    """Return the documents of a file, whatever they are about.

    Raises:
        Mistake: no such file, no YAML.
    """
    name, text = _text(path)
    return parse_any(text, name)


def parse_any(text: str, source: str) -> list[Any]:
    """Return the documents of a text, whatever they are about; a date stays the text that it is.

    Raises:
        Mistake: it is no YAML.
    """
    if text.lstrip()[:1] == "{":
        # A recording has megabytes, and all of it is JSON.
        with contextlib.suppress(ValueError):
            return [json.loads(text)]
    return _parsed(text, source)


class _WithoutDates(yaml.SafeLoader):
    """Reads what JSON has: no dates, as kubectl does, and no key but a text, and that once.

    A key is the text that stands there: whoever wrote `on` is told of `on`.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return a mapping as it stands there; of two values of a key one would be lost."""
        # Here, since what is merged into it (<<) comes later, and may be written otherwise.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for place, (key, value) in enumerate(node.value):
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value} stands there twice: write it once",
                    problem_mark=key.start_mark,
                )
            seen.add(key.value)
            if key.tag != _MERGE:
                # Another node: an anchor at the key is of what it was.
                text = yaml.ScalarNode(_TEXT, key.value, key.start_mark, key.end_mark)
                node.value[place] = (text, value)
        return node


_WithoutDates.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _parsed(text: str, source: str) -> list[Any]:
    try:
        return [one for one in yaml.load_all(text, Loader=_WithoutDates) if one is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise Mistake(f"{source}{where} is not YAML: {problem}") from error


def _check_document(document: Any, source: str) -> None:
    if not isinstance(document, dict) or "kind" not in document:
        raise Mistake(f"{source} is not a Kubernetes manifest: it has no kind")
    kind = (str(document.get("apiVersion")), str(document["kind"]))
    if kind not in _APPLICABLE:
        raise Mistake(
            f"{source} holds {kind[1]} ({kind[0]}): laptime applies {KIND} and "
            f"{SCENARIO_KIND} ({API_VERSION}) and {_CONFIG_MAP} (v1); use kubectl for anything else"
        )
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise Mistake(f"{source}: {kind[1]} has no metadata.name")
    name = metadata["name"]
    if not isinstance(name, str):
        raise Mistake(f"{source}: the metadata.name of {kind[1]} is {name}, no text: quote it")
    if kind[1] == _CONFIG_MAP:
        for field in ("data", "binaryData"):
            _check_texts(document.get(field) or {}, field, f"{source}: {_CONFIG_MAP} {name}")


def _check_texts(content: Any, field: str, what: str) -> None:
    if not isinstance(content, dict):
        raise Mistake(f"{what}: its {field} are no texts by key")
    for key, text in content.items():
        if text is None:
            # So the API server takes it.
            content[key] = ""
        elif not isinstance(text, str):
            raise Mistake(f"{what}: {field}[{key!r}] is no text: write it after a |, or quote it")
