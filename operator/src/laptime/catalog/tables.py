"""Tables of feeders, as CSV (RFC 4180). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from laptime.api.feeders import Csv

_CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^",\n]*)')
_COLUMN = re.compile("[A-Za-z_][-_0-9A-Za-z]*")


@dataclass(frozen=True)
class Table:
    """Texts in rows, under the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column; ValueError if there is none of that name."""
        number = self.columns.index(name)
        return [row[number] for row in self.rows]


def csv_text(source: Csv) -> str:
    """Return the text of a table as the generator reads it, whichever editor has written it."""
    return source.content.removeprefix("\ufeff").replace("\r\n", "\n")


@dataclass(frozen=True)
class Glance:
    """What is asked of a table in each pass over a run."""

    first: dict[str, str]
    """The first row, by the names of the columns."""
    rows: int


# The tables themselves would fill the memory of an operator with many runs.
@lru_cache(maxsize=8)
def glance_at(source: Csv) -> Glance:
    """Return the first row and the number of rows of a table; ValueError as `table_of`."""
    table = table_of(source)
    return Glance(dict(zip(table.columns, table.rows[0], strict=True)), len(table.rows))


def table_of(source: Csv) -> Table:
    """Return the table of a feeder.

    Raises:
        ValueError: it is none; the message says what to write.
    """
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    for line, cells in _lines(csv_text(source)):
        if not columns:
            columns = _columns(cells)
        elif len(cells) == len(columns):
            rows.append(tuple(cells))
        else:
            raise ValueError(
                f"line {line} has {_cells(len(cells))}, the first line has {len(columns)}: write "
                "one for each column, and what holds a comma in quotation marks"
            )
    if not columns:
        raise ValueError("it is empty: write the names of the columns in its first line")
    if not rows:
        raise ValueError("no row follows the names of the columns: write at least one")
    return Table(columns, tuple(rows))


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty."""
    at, line = 0, 1
    while at < len(text):
        if text[at] == "\n":
            at, line = at + 1, line + 1
            continue
        cells: list[str] = []
        first = line
        while True:
            found = _CELL.match(text, at)
            assert found is not None, "it matches nothing at all, too"
            quoted, plain = found.groups()
            cells.append(plain if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            line += found[0].count("\n")
            if at < len(text) and text[at] not in ",\n":
                raise ValueError(
                    f"line {line} is no CSV: write a cell with a quotation mark in quotation "
                    'marks, and twice what it has of them, such as "a ""b"""'
                )
            if at == len(text) or text[at] == "\n":
                break
            at += 1
        yield first, cells


def _columns(cells: list[str]) -> tuple[str, ...]:
    # Where nobody has written them this is a row, which may be secret.
    names = tuple(cell.strip() for cell in cells)
    for number, name in enumerate(names, start=1):
        if not _COLUMN.fullmatch(name) or name in names[: number - 1]:
            raise ValueError(
                f"column {number} has no name of its own: write different names of letters, "
                "digits, '_' and '-' in the first line"
            )
    return names


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"
