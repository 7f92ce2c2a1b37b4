"""What `laptime init` makes of something else, and in words what it does not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]
PLACEHOLDER = "write-it-here"
"""Stands where a value is still to be written."""


@dataclass
class Translation:
    """A run, mostly with its scenario, and what of the source is not in them."""

    run: Document = field(default_factory=dict)
    scenario: Document | None = None
    """None: the source says nothing of the work."""
    health_path: str | None = None
    """What a server of it answers 200 to; None: the source does not say."""
    notes: list[str] = field(default_factory=list)
    """What was taken from where, as far as it is not plain."""
    left_out: list[str] = field(default_factory=list)
    """Part by part, with the reason and what to write instead."""
    to_write: list[str] = field(default_factory=list)
    """What the source does not know and a run needs."""
