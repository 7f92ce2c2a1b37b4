"""From a Matplotlib figure to an SVG that takes part in the page: its colours, fonts and names."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from laptime.report.html.palette import GRID, INK, MUTED, variables_for

_POINTS_PER_INCH = 72
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12,
    # A name with two dollars is a name and no formula.
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "axes.unicode_minus": False,
    "path.simplify": True,
}
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


@contextmanager
def canvas(width: int, height: int, name: str) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of that many CSS pixels with one pair of axes, in the style of the page.

    `name` seeds what Matplotlib would else draw at random, so that equal data makes equal text.
    """
    with matplotlib.rc_context():
        # Not those of a matplotlibrc of the user.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_SETTINGS, "svg.hashsalt": name})
        figure = Figure(
            figsize=(width / _POINTS_PER_INCH, height / _POINTS_PER_INCH),
            dpi=_POINTS_PER_INCH,
            layout="constrained",
        )
        yield figure, figure.add_subplot()


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Return the figure as an `svg` element for HTML.

    `name` makes its ids unique within the page; `title` and `description` are read to those who do
    not see it. Must be called within `canvas`.
    """
    file = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Not savefig: it draws everything twice, first to lay it out, which drawing does by itself.
    drawing: Any = FigureCanvasSVG(figure)  # it has no types
    drawing.print_svg(file, metadata=nothing)
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # The style sheet in it would hold for the whole page.
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        _join(element, name)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, id=f"{name}-{'title' if not place else 'description'}")
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _join(element: ElementTree.Element, name: str) -> None:
    """Make an element one of HTML: no namespaces, ids of its own, colours of the page."""
    element.tag = _local(element.tag)
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        local = _local(key)
        if local == "id":
            value = f"{name}-{value}"
        elif local == "href":
            value = f"#{name}-{value.removeprefix('#')}"
        else:
            value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
            value = _COLOUR.sub(_themed, value)
        element.set(local, value)


def _themed(match: re.Match[str]) -> str:
    variable = variables_for(match[0])
    return f"var({variable})" if variable else match[0]


def _local(name: str) -> str:
    return name.rpartition("}")[2]
