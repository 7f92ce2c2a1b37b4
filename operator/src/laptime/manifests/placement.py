"""Placements: what the administrator says of where the pods of a run go, by three parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from laptime.api.placement import MAX_PLACEMENT_NAME_LENGTH, RunPlacement
from laptime.manifests.objects import Component, Manifest, content_hash

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_RULES: Mapping[str, type] = {
    "nodeSelector": dict,
    "tolerations": list,
    "affinity": dict,
    "runtimeClassName": str,
    "priorityClassName": str,
    "schedulerName": str,
}
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_FIELDS = ("description", "default", "namespaces", "lanes")


class PlacedPart(StrEnum):
    """The parts of a run that a placement tells apart, as the chart names them."""

    SERVERS = "servers"
    TIERS = "tiers"
    GENERATORS = "generators"


_GENERATORS = frozenset(
    {Component.GENERATOR, Component.PROFILER, Component.VERIFIER, Component.PATH_GENERATOR}
)
_SERVERS = frozenset({Component.SERVER, Component.PATH_SERVER, Component.ASKER})


def part_of(component: Component | str) -> PlacedPart:
    """Return the part that the pods of a component belong to.

    Whoever sends requests is a generator, whatever for, and what stands for a server is one.
    Services around a server, and what resets them, are components of their own: they are tiers, as
    all else is that is not a server.
    """
    if component in _GENERATORS:
        return PlacedPart.GENERATORS
    return PlacedPart.SERVERS if component in _SERVERS else PlacedPart.TIERS


@dataclass(frozen=True)
class Placement:
    """One placement of the chart."""

    name: str
    rules: Mapping[PlacedPart, Manifest] = field(default_factory=dict)
    """Fields of a pod's spec; a part that says nothing has none."""
    namespaces: frozenset[str] = frozenset()
    """Whose runs may use it; empty: all that may run."""
    default: bool = False
    """Whether runs have it that name none and may use it."""
    lanes: Mapping[str, Mapping[PlacedPart, Manifest]] = field(default_factory=dict)
    """Sets of nodes, any of which will do: what each says beside `rules`, by the lane's name."""
    lane: str | None = None
    """The lane whose rules it has; None: it has no lanes, or none was chosen yet."""

    @classmethod
    def from_wire(cls, name: str, document: Mapping[str, Any] | None) -> Placement:
        """Return the placement that the chart's values say.

        Raises:
            ValueError: it has not the form that the chart's schema asks for.
        """
        if not _NAME.fullmatch(name) or len(name) > MAX_PLACEMENT_NAME_LENGTH:
            raise ValueError(f"{name!r} is not the name of a placement")
        said = document or {}
        unknown = sorted(set(said) - {*PlacedPart, *_FIELDS})
        if unknown:
            raise ValueError(f"placement {name}: unknown fields: {', '.join(unknown)}")
        rules = {part: _rules(f"{name}.{part}", said.get(part) or {}) for part in PlacedPart}
        namespaces: Sequence[str] = said.get("namespaces") or []
        if isinstance(namespaces, str):
            raise ValueError(f"placement {name}: namespaces must be a list")
        return cls(
            name,
            rules,
            frozenset(namespaces),
            said.get("default") is True,
            _lanes(name, said.get("lanes") or {}),
        )

    def in_lane(self, lane: str | None) -> Placement:
        """Return what it is in one of its lanes, whose word on a field is the last.

        Raises:
            KeyError: it has no such lane.
        """
        if lane is None:
            return self
        own = self.lanes[lane]
        rules = {part: {**said, **own.get(part, {})} for part, said in self.rules.items()}
        return replace(self, rules=rules, lane=lane)

    def open_to(self, namespace: str) -> bool:
        """Return whether runs of a namespace may use it."""
        return not self.namespaces or namespace in self.namespaces

    def of(self, component: Component | str) -> Manifest:
        """Return what it says of the pods of a component, as fields of their spec."""
        return self.rules.get(part_of(component), {})

    @property
    def pin(self) -> RunPlacement:
        """What a run that begins with it remembers."""
        said = {str(part): dict(rules) for part, rules in self.rules.items() if rules}
        return RunPlacement(name=self.name, rules=content_hash(said), lane=self.lane)


def _lanes(
    name: str, said: Mapping[str, Mapping[str, Any] | None]
) -> Mapping[str, Mapping[PlacedPart, Manifest]]:
    found: dict[str, Mapping[PlacedPart, Manifest]] = {}
    for lane, parts in said.items():
        where = f"{name}.lanes.{lane}"
        if not _NAME.fullmatch(lane) or len(lane) > MAX_PLACEMENT_NAME_LENGTH:
            raise ValueError(f"placement {name}: {lane!r} is not the name of a lane")
        if unknown := sorted(set(parts or {}) - set(PlacedPart)):
            raise ValueError(f"placement {where}: unknown fields: {', '.join(unknown)}")
        found[lane] = {
            part: _rules(f"{where}.{part}", (parts or {}).get(part) or {}) for part in PlacedPart
        }
    return found


def _rules(where: str, said: Mapping[str, Any]) -> Manifest:
    unknown = sorted(set(said) - set(_RULES))
    if unknown:
        raise ValueError(f"placement {where}: unknown fields: {', '.join(unknown)}")
    for key, value in said.items():
        if value is not None and not isinstance(value, _RULES[key]):
            raise ValueError(f"placement {where}.{key} is {value!r}")
    affinity = said.get("affinity") or {}
    if unknown := sorted(set(affinity) - set(_AFFINITIES)):
        raise ValueError(f"placement {where}.affinity: unknown fields: {', '.join(unknown)}")
    # What is empty says nothing.
    return {key: value for key, value in said.items() if value}
