"""What is run to prove a change, and what must be there before it: a graph of make targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter


class PartsError(Exception):
    """A part that does not exist, or parts that wait for each other; its text says which."""


@dataclass(frozen=True)
class Part:
    """One make target that is run as a whole.

    A `check` says something about the change; the others only bring what checks need. A `quiet`
    part reads figures or times: nothing else runs beside it.
    """

    name: str
    needs: tuple[str, ...] = ()
    check: bool = True
    quiet: bool = False
    after: tuple[str, ...] = ()
    """Parts that it comes after when they are run too, and whose failure is not its business."""
    always: bool = False
    """It tidies up: it is run whatever became of the parts before it, once those were begun."""
    place: float = 1.0
    """How much of a place among those at a time it takes: less where it mostly waits."""
    reads: tuple[str, ...] = ()
    """Paths (git's pathspecs, from the top) on which its outcome depends; none: on all files."""
    behind: bool = False
    """It computes and waits for nothing: it has the processor time that others leave, beside any
    that is not quiet, and takes no place. One of these runs at a time."""


def by_name(parts: Iterable[Part]) -> dict[str, Part]:
    """Return the parts by name.

    Raises:
        PartsError: a part needs one that does not exist, or parts wait for each other.
    """
    found = {part.name: part for part in parts}
    for part in found.values():
        for need in (*part.needs, *part.after):
            if need not in found:
                raise PartsError(f"{part.name} needs {need}, which is no part")
    try:
        TopologicalSorter(
            {part.name: (*part.needs, *part.after) for part in found.values()}
        ).prepare()
    except CycleError as error:
        raise PartsError(f"these parts wait for each other: {error.args[1]}") from error
    return found


def select(parts: Mapping[str, Part], wanted: Iterable[str]) -> dict[str, Part]:
    """Return the parts whose names begin with one of `wanted`, and all that they need.

    All parts when nothing is wanted. What tidies up after one of them belongs to it.

    Raises:
        PartsError: no part is called so.
    """
    prefixes = list(wanted)
    if not prefixes:
        return dict(parts)
    chosen: set[str] = set()
    for prefix in prefixes:
        named = {name for name in parts if name == prefix or name.startswith(f"{prefix}-")}
        if not named:
            raise PartsError(f"there is no part {prefix!r}; there are: {', '.join(parts)}")
        chosen |= named
    open_ends = list(chosen)
    while open_ends:
        for need in parts[open_ends.pop()].needs:
            if need not in chosen:
                chosen.add(need)
                open_ends.append(need)
    chosen |= {
        part.name for part in parts.values() if part.always and chosen.intersection(part.needs)
    }
    return {name: part for name, part in parts.items() if name in chosen}
