"""One reason that a condition, a server, a trial or an objective can have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from laptime.api.attempts import Fault


class Blame(Enum):
    """Who answers for a trial that came to nothing, where the reason alone does not say it."""

    PART = auto()
    """The part whose container did it: server, generator or tier."""
    GENERATOR = auto()
    """The generator; where a script of the user's runs in it, it is the run."""


@dataclass(frozen=True)
class Reason:
    """A word for programs, and what it tells people. The texts are Markdown."""

    name: str
    """CamelCase, as conditions have it."""
    meaning: str
    advice: str
    """What to do."""
    blame: Fault | Blame | None = None
    """Who answers for a trial that came to nothing so; none: no trial ends so."""
    once_well: bool = False
    """They do when such a pod has come up before in the run; else it is what the run asks for."""
    normal: bool = False
    """A condition is False for it although nothing is wrong: not yet, or over."""


@dataclass(frozen=True)
class Section:
    """Reasons of one kind, with what is to be known of all of them (Markdown)."""

    title: str
    about: str
    reasons: tuple[Reason, ...]
