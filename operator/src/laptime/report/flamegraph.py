"""A flame graph as SVG: who called whom, and how much of the CPU each function and its calls took.

It runs no script and is made of nothing but the numbers and the escaped names of functions, since
those come from servers that nobody vouches for. A function's name and share show when the pointer
rests on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from laptime.api.profile import Profile
from laptime.measure import parse_stacks

MAX_BYTES = 400_000
"""Of a picture: it is stored in a ConfigMap, which holds 1 MiB at most, beside its stacks."""

_WIDTH = 1200
_ROW = 17
_TOP = 30
# Of the small letters, on average; what is longer than its box is cut.
_LETTER = 6.6
_NARROWEST = 0.5


@dataclass
class _Frame:
    """A function as called along one way, with what it called."""

    samples: int = 0
    calls: dict[str, _Frame] = field(default_factory=dict)

    def add(self, stack: tuple[str, ...], samples: int) -> None:
        frame = self
        frame.samples += samples
        for name in stack:
            frame = frame.calls.setdefault(name, _Frame())
            frame.samples += samples


def profile_picture(profile: Profile) -> str:
    """Return the flame graph of a profile as SVG.

    Raises:
        ValueError: what it has are no folded stacks.
    """
    return flame_graph(f"{profile.server} under {profile.load}", parse_stacks(profile.folded))


def flame_graph(title: str, stacks: Mapping[tuple[str, ...], int]) -> str:
    """Return the picture, with the outermost functions at the bottom.

    What is narrower than half a pixel of 1200 is left out; where the text would have more than
    `MAX_BYTES`, what is wider too.
    """
    root = _Frame()
    for stack, samples in stacks.items():
        root.add(stack, samples)
    narrowest = _NARROWEST
    while len((picture := _picture(title, root, narrowest)).encode()) > MAX_BYTES:
        narrowest *= 1.5
    return picture


def _picture(title: str, root: _Frame, narrowest: float) -> str:
    scale = _WIDTH / max(1, root.samples)
    boxes: list[str] = []
    rows = 1 + max((row for _, _, row, _ in _placed(root, scale, narrowest)), default=0)
    height = _TOP + rows * _ROW
    for name, x, row, frame in _placed(root, scale, narrowest):
        width = frame.samples * scale
        share = f"{100 * frame.samples / root.samples:.1f} %"
        hint = escape(f"{name} ({frame.samples} samples, {share})")
        y = height - (row + 1) * _ROW
        box = (
            f"<g><title>{hint}</title>"
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 1}" '
            f'fill="{_colour(name)}"/>'
        )
        letters = int((width - 6) / _LETTER)
        if letters >= 3:
            shown = name if len(name) <= letters else name[: letters - 1] + "…"
            box += f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(shown)}</text>'
        boxes.append(box + "</g>")
    said = escape(f"{title}: {root.samples} samples of the CPU")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{said}" font-family="monospace" font-size="11" fill="#000000">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="4" y="18" font-size="14">{said}</text>\n' + "\n".join(boxes) + "\n</svg>\n"
    )


def _placed(root: _Frame, scale: float, narrowest: float) -> list[tuple[str, float, int, _Frame]]:
    """Return name, left edge, row and frame of what is wide enough to be seen."""
    found: list[tuple[str, float, int, _Frame]] = []
    waiting = [(root, 0.0, 0)]
    while waiting:
        frame, x, row = waiting.pop()
        # By name and not by size: pictures of two servers can be laid side by side.
        for name, call in sorted(frame.calls.items()):
            width = call.samples * scale
            if width >= narrowest:
                found.append((name, x, row, call))
                waiting.append((call, x, row + 1))
            x += width
    return found


def _colour(name: str) -> str:
    """Return a warm colour, light enough for black letters; always the same for a name."""
    number = zlib.crc32(name.encode())
    return f"hsl({10 + number % 45} {70 + number // 64 % 25}% {66 + number // 4096 % 12}%)"
