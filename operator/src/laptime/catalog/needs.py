"""What a request needs before it can be sent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from laptime.api.scenario import Exchange
from laptime.catalog.templates import names_in, templates_of


def values_of(exchange: Exchange) -> list[str]:
    """Return the names of all values in a request; ValueError where a template cannot be read."""
    found = (name for _, _, template in templates_of(exchange) for name in names_in(template))
    return list(dict.fromkeys(found))


def missing_capture(steps: Sequence[Exchange], feeders: Collection[str]) -> tuple[str, str] | None:
    """Return the first step that needs what none before it captures, and the name of that value.

    Raises:
        ValueError: a template cannot be read.
    """
    captured: set[str] = set()
    for step in steps:
        for name in values_of(step):
            if name.partition(".")[0] not in feeders and name not in captured:
                return step.name, name
        captured |= {one.name for one in step.captures}
    return None
