"""One colour, dash and marker per server, the same in every chart; light and dark.

The hues are near those of Okabe and Ito (https://jfly.uni-koeln.de/color/). No two are equally
bright, the first four least of all, so that they can be told apart on grey paper too, and by people
with any kind of colour blindness: the hues alone, all as bright, cannot. Each has a contrast of at
least 3:1 against its background (WCAG 2.2, 1.4.11), the light ones against that of Grafana's dark
panels as well, which have the same. Dashes and markers say the same without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LIGHT_SURFACE = "#ffffff"
DARK_SURFACE = "#161b22"
LIGHT_SERVERS = ("#2a62ca", "#c38666", "#4b7e65", "#9c749d", "#8b7c0e", "#8b8b8b")
DARK_SERVERS = ("#6a7db3", "#ffbf80", "#4ea695", "#f490da", "#b9a729", "#dfe1e1")

_DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "solid",
    (0, (5, 2)),
    (0, (1, 2)),
    (0, (5, 2, 1, 2)),
    (0, (8, 3, 2, 3, 2, 3)),
    (0, (2, 4)),
)
_MARKERS = ("o", "s", "^", "v", "P", "X", "p")

# Colours that Matplotlib writes into a drawing, to be replaced by variables of the style sheet.
INK = "#010201"
MUTED = "#010202"
GRID = "#010203"
SURFACE = "#010204"
_PLACEHOLDERS = {INK: "--ink", MUTED: "--muted", GRID: "--grid", SURFACE: "--surface"}
_SERVER = "#0203{:02x}"


@dataclass(frozen=True)
class Look:
    """How one server is drawn."""

    colour: str
    """A placeholder, replaced by the variable of the style sheet."""
    dash: str | tuple[int, tuple[int, ...]]
    marker: str
    variable: str
    """Name of the variable, such as `--server-0`."""


def look(servers: Sequence[str], server: str) -> Look:
    """Return the look of a server by its place among all servers of the run."""
    place = servers.index(server)
    number = place % len(LIGHT_SERVERS)
    return Look(
        _SERVER.format(number),
        _DASHES[place // len(LIGHT_SERVERS) % len(_DASHES)],
        _MARKERS[place % len(_MARKERS)],
        f"--server-{number}",
    )


def variables_for(placeholder: str) -> str | None:
    """Return the variable that a colour of a drawing stands for; None for any other colour."""
    if placeholder in _PLACEHOLDERS:
        return _PLACEHOLDERS[placeholder]
    for number in range(len(LIGHT_SERVERS)):
        if placeholder == _SERVER.format(number):
            return f"--server-{number}"
    return None


def server_variables(colours: Sequence[str]) -> str:
    """Return the declarations of the servers' colours for a style sheet."""
    return "".join(f"--server-{number}:{colour};" for number, colour in enumerate(colours))
