"""A part of an OpenAPI document, with its references followed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import referencing
import yaml
from referencing.exceptions import NoSuchResource, Unresolvable

from laptime.cli.manifest_file import parse_any
from laptime.cli.mistakes import Mistake

_LONGEST_CHAIN = 20
_SUFFIXES = (".json", ".yaml", ".yml")
# Beside a reference these say something about the place, and not what is allowed there.
_ANNOTATIONS = {
    *("$ref", "summary", "description", "title", "deprecated", "readOnly", "writeOnly"),
    *("default", "example", "examples", "externalDocs"),
}
Resolver = Any
"""referencing's own class is private."""


class CannotMake(ValueError):
    """Something of a document cannot be made into a request; the message says why."""


@dataclass(frozen=True)
class Node:
    """A value of a document; a missing one is None, and has no children."""

    value: Any
    resolver: Resolver
    target: int | None = None
    """Stands for what it refers to: the same for two that refer to the same; None: to nothing."""
    name: str = ""
    """The last part of the reference."""

    def __getitem__(self, key: str | int) -> Node:
        """Return a child; one that is not there has the value None.

        Raises:
            CannotMake: a reference leads nowhere.
        """
        if isinstance(self.value, dict):
            return self._child(self.value.get(key))
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            return self._child(self.value[key])
        return Node(None, self.resolver)

    def __bool__(self) -> bool:
        """Whether it is there."""
        return self.value is not None

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    @property
    def is_mapping(self) -> bool:
        """Whether it has children by name."""
        return isinstance(self.value, dict)

    def names(self) -> list[str]:
        """Return the names of its children."""
        return list(self.value) if isinstance(self.value, dict) else []

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield its children by name."""
        if isinstance(self.value, dict):
            for key in self.value:
                yield key, self[key]

    def each(self) -> Iterator[Node]:
        """Yield the items of a list."""
        if isinstance(self.value, list):
            for one in self.value:
                yield self._child(one)

    def text(self, key: str) -> str:
        """Return a child that is text; empty if there is none."""
        value = self[key].value
        return value if isinstance(value, str) else ""

    def _child(self, value: Any) -> Node:
        node = Node(value, self.resolver)
        for _ in range(_LONGEST_CHAIN):
            reference = node.value.get("$ref") if isinstance(node.value, dict) else None
            if not isinstance(reference, str):
                return node
            beside = {key: one for key, one in node.value.items() if key != "$ref"}
            if set(beside) - _ANNOTATIONS:
                both = {"allOf": [{"$ref": reference}, beside]}
                return Node(both, node.resolver)
            found = _looked_up(node.resolver, reference)
            if beside and isinstance(found.value, dict):
                found = replace(found, value={**found.value, **beside})
            node = found
        raise CannotMake(f"the reference {value['$ref']} leads in a circle")


def _looked_up(resolver: Resolver, reference: str) -> Node:
    try:
        found = resolver.lookup(reference)
    except (Unresolvable, LookupError, TypeError, ValueError) as error:
        outside = reference.startswith(("http://", "https://"))
        raise CannotMake(
            f"the reference {reference} "
            + ("leads to another machine: bundle the document into one file" if outside else
               "leads nowhere")
        ) from error  # fmt: skip
    return Node(found.contents, found.resolver, id(found.contents), reference.rpartition("/")[2])


def path_of(url: str, where: str) -> str:
    """Return the path of a URL; `where` is the place in the document.

    Raises:
        Mistake: it is none.
    """
    try:
        return urlsplit(url).path
    except ValueError as error:
        raise Mistake(f"{where}: {url!r} is no URL: {error}") from error


def follow_all(
    node: Node, seen: dict[int, Any] | None = None, above: frozenset[int] = frozenset()
) -> None:
    """Follow each reference in a node.

    Raises:
        CannotMake: one leads nowhere; a value contains itself, as an alias of YAML can make it.
    """
    if not isinstance(node.value, dict | list):
        return
    # Values are known by their ids, and kept, so that no other value gets the id of one.
    seen = {} if seen is None else seen
    own = id(node.value) if node.target is None else node.target
    if own in seen:
        return
    if node.target is not None:
        # A reference may lead to what it stands in.
        seen[own], above = node.value, frozenset()
    elif own in above:
        raise CannotMake("a value contains itself by an alias of YAML: refer to it by $ref")
    for one in (*(child for _, child in node.items()), *node.each()):
        follow_all(one, seen, above | {own})
    seen[own] = node.value


def root_of(document: Any, file: Path | None = None) -> Node:
    """Return a document as a node; what it refers to in files of its folder is read.

    `file` is where it was read from; None: nowhere, and it can refer to itself alone.
    """
    folder = file.resolve().parent if file is not None else None

    @functools.cache
    def retrieve(uri: str) -> referencing.Resource[Any]:
        try:
            url = urlsplit(uri)
            path = Path(unquote(url.path)).resolve()
        except ValueError as error:
            raise NoSuchResource(uri) from error
        # A document of somebody else must not make us read whatever this user can.
        if url.scheme != "file" or folder is None or not path.is_relative_to(folder):
            raise NoSuchResource(uri)
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or path.suffix.lower() not in _SUFFIXES:
            raise NoSuchResource(uri)
        try:
            (contents,) = parse_any(path.read_text("utf-8"), str(path))
        except (OSError, ValueError, Mistake, RecursionError, yaml.YAMLError) as error:
            raise NoSuchResource(uri) from error
        return referencing.Resource.opaque(contents)

    base = file.resolve().as_uri() if file is not None else ""
    whole = referencing.Resource.opaque(document)
    # Its fields are made by attrs, which mypy does not see through.
    empty: Any = referencing.Registry
    registry = empty(retrieve=retrieve).with_resource(base, whole)
    return Node(document, registry.resolver(base_uri=base))
