"""Which placement a run has: what it asks for, and what the administrator lets it have. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laptime.api.placement import RunPlacement
from laptime.manifests.placement import Placement


class NotPlaced(Exception):
    """A run cannot have the placement that it should have: a reason, and what to write instead."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Placements:
    """All placements that the administrator has named."""

    by_name: Mapping[str, Placement] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> Placements:
        """Return what the chart's value `placements` says.

        Raises:
            ValueError: something has not the form that the chart's schema asks for.
        """
        found = {name: Placement.from_wire(name, one) for name, one in document.items()}
        defaults = sorted(one.name for one in found.values() if one.default)
        if len(defaults) > 1:
            raise ValueError(f"{' and '.join(defaults)} are both the default: there can be one")
        return cls(found)

    def lanes_of(self, wish: str | None, namespace: str) -> Sequence[str]:
        """Return the lanes that a run may have which has not begun; none: it has no lane.

        Then it is measured while no other run is, since nobody knows on which nodes its pods are.
        """
        try:
            found = self.chosen(wish, namespace, None, begun=False)
        except NotPlaced:
            return ()
        return sorted(found.lanes) if found is not None else ()

    def chosen(
        self,
        wish: str | None,
        namespace: str,
        begun_with: RunPlacement | None,
        *,
        begun: bool,
        lane: str | None = None,
    ) -> Placement | None:
        """Return the placement of a run; None: it has none.

        `wish` is what its spec says, and `lane` the lane that it gets. A run that has begun
        (`begun`) keeps what it was `begun_with`, also where that is none: a default that came
        later is not its own.

        Raises:
            NotPlaced: there is no such placement, or its namespace may not use it, or it is not
                any more what the run was begun with.
        """
        name = begun_with.name if begun_with is not None else wish
        if name is None:
            default = None if begun else self._default(namespace)
            return default.in_lane(lane) if default is not None else None
        placement = self.by_name.get(name)
        if placement is None:
            raise NotPlaced("PlacementMissing", self._missing(name, namespace))
        if not placement.open_to(namespace):
            raise NotPlaced("PlacementNotAllowed", self._not_allowed(name, namespace))
        if begun_with is None:
            return placement.in_lane(lane)
        if begun_with.lane is not None and begun_with.lane not in placement.lanes:
            raise _changed(name, f"has no lane {begun_with.lane} now")
        if begun_with.lane is None and placement.lanes:
            raise _changed(name, "has lanes now")
        found = placement.in_lane(begun_with.lane)
        if begun_with.rules not in (None, found.pin.rules):
            raise _changed(name, "says something else now")
        return found

    def _default(self, namespace: str) -> Placement | None:
        found = (one for one in self.by_name.values() if one.default and one.open_to(namespace))
        return next(found, None)

    def _missing(self, name: str, namespace: str) -> str:
        return (
            f"there is no placement {name}: {self._what_to_write(namespace)}. The cluster's "
            "administrator names placements in placements of Laptime's chart"
        )

    def _not_allowed(self, name: str, namespace: str) -> str:
        return (
            f"runs of namespace {namespace} may not use placement {name}: "
            f"{self._what_to_write(namespace)}. The cluster's administrator allows it in "
            f"placements.{name}.namespaces of Laptime's chart"
        )

    def _what_to_write(self, namespace: str) -> str:
        """Return what a run may say; of placements that are not its own it learns nothing."""
        names = _listed(one.name for one in self.by_name.values() if one.open_to(namespace))
        if not names:
            return f"there is none for runs of namespace {namespace}, so leave spec.placement out"
        return f"write one of these in spec.placement, or leave it out: {names}"


def _changed(name: str, how: str) -> NotPlaced:
    return NotPlaced(
        "PlacementChanged",
        f"placement {name} is not any more what the run was begun with: the chart's "
        f"placements.{name} {how}. Apply the run under another name",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
