"""What a profile of a server says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Where the CPU of a server was under a load, or why nobody knows."""

    server: str
    load: str
    folded: str = ""
    """A line for each stack: its functions from the outermost one on, divided by `;`, and its
    number of samples. Empty when there is a problem."""
    problem: str = ""
    """CamelCase reason and message; empty when the profile was taken."""
