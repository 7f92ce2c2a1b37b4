"""A placement: on which nodes, and how, the administrator lets the pods of a run be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from laptime.api.base import TolerantModel, rule, rules

MAX_PLACEMENT_NAME_LENGTH = 40

PlacementName = Annotated[
    str,
    Field(
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "must be the name of a placement of Laptime's chart: lower-case letters, digits "
                "and '-', such as isolated",
            ),
            minLength=1,
            maxLength=MAX_PLACEMENT_NAME_LENGTH,
        )
    ),
]


class Nodes(StrEnum):
    """On which of the nodes that it may use a run measures."""

    FIXED = "fixed"
    ROTATE = "rotate"
    ANY = "any"


class RunPlacement(TolerantModel):
    """The placement that a run was begun with: it has no other until its end."""

    name: str = Field(description="Its name in Laptime's chart.")
    rules: str | None = Field(
        None,
        description="Stands for what the chart said of it: two runs with the same had the same "
        "rules.",
    )
    lane: str | None = Field(
        None,
        description="The lane that the run has: while it measures no other run does in it. None: "
        "no other run is measured anywhere.",
    )

    @property
    def said(self) -> str:
        """Its name, and its lane where it has one."""
        return f"{self.name}, lane {self.lane}" if self.lane is not None else self.name
