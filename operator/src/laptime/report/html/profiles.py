"""The flame graphs of a run, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.api.profile import Profile
from laptime.report.flamegraph import profile_picture


@dataclass(frozen=True)
class ShownProfile:
    """A profile in words, and its picture."""

    server: str
    load: str
    svg: str
    """Made here of escaped names; empty when there is a problem."""
    problem: str


def shown_profiles(profiles: Sequence[Profile]) -> list[ShownProfile]:
    """Return the profiles with pictures that are made anew from their stacks.

    The pictures that are stored beside the stacks are not used: whoever may write ConfigMaps could
    have put anything into them.
    """
    return [_shown(profile) for profile in profiles]


def _shown(profile: Profile) -> ShownProfile:
    svg, problem = "", profile.problem
    if not problem:
        try:
            svg = profile_picture(profile)
        except ValueError as error:
            problem = f"its stacks cannot be read: {error}"
    return ShownProfile(profile.server, profile.load, svg, problem)
