"""Folded stacks, the text that profilers and flame graphs have in common. Pure.

A line for each stack: its functions from the outermost one on, divided by `;`, then a space and its
number of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from laptime.api.text import plain

Stack = tuple[str, ...]

OTHERS: Stack = ("(stacks that were too rare to be kept)",)
_DEEPEST = 200
_LONGEST_NAME = 200


def parse_stacks(folded: str) -> dict[Stack, int]:
    """Return the samples of each stack.

    Whoever wrote the text is not trusted: what is too deep or too long for a picture is cut.

    Raises:
        ValueError: a line is no folded stack; the message quotes it.
    """
    stacks: Counter[Stack] = Counter()
    for line in folded.split("\n"):
        line = line.strip()
        if not line:
            continue
        names, _, count = line.rpartition(" ")
        if not names or not count.isascii() or not count.isdigit() or len(count) > 12:
            raise ValueError(f"not a stack and its number of samples: {line[:100]!r}")
        frames = (_readable(name) for name in names.split(";", _DEEPEST)[:_DEEPEST])
        stacks[tuple(frame for frame in frames if frame)] += int(count)
    return {stack: count for stack, count in stacks.items() if stack and count}


def fold_stacks(stacks: Mapping[Stack, int], max_bytes: int) -> str:
    """Return the text, the most frequent stacks first; those that do not fit become one."""
    lines: list[str] = []
    size, left = 0, sum(stacks.values())
    # Room for the last line, whatever its number.
    room = max_bytes - len(_line(OTHERS, left).encode())
    for stack, count in sorted(stacks.items(), key=lambda item: (-item[1], item[0])):
        line = _line(stack, count)
        size += len(line.encode())
        if size > room:
            return "".join([*lines, _line(OTHERS, left)])
        lines.append(line)
        left -= count
    return "".join(lines)


def _line(stack: Stack, count: int) -> str:
    return f"{';'.join(stack)} {count}\n"


def _readable(name: str) -> str:
    return plain(name.strip()[:_LONGEST_NAME])
