"""What the feeders of a scenario hold. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laptime.api.feeders import Feeder, NumberRange
from laptime.catalog.tables import glance_at, table_of
from laptime.catalog.templates import Value


@dataclass(frozen=True)
class Column:
    """One value of each row of a feeder, under its name in templates."""

    feeder: str
    cells: Sequence[str] | NumberRange
    """Numbers may stand anywhere."""

    @property
    def first(self) -> Value:
        """The value of the first row."""
        return self.cells.first if isinstance(self.cells, NumberRange) else self.cells[0]


def columns_of(feeder: Feeder) -> dict[str, Column]:
    """Return the values that a feeder gives, by their names in templates.

    Raises:
        ValueError: its table is none; the message says what to write.
    """
    if feeder.range is not None:
        return {feeder.name: Column(feeder.name, feeder.range)}
    if feeder.csv is None:
        return {feeder.name: Column(feeder.name, feeder.values or [""])}
    table = table_of(feeder.csv)
    return {
        f"{feeder.name}.{name}": Column(feeder.name, table.column(name)) for name in table.columns
    }


def rows_of(feeder: Feeder) -> int:
    """Return how many rows a feeder has; ValueError as `columns_of`."""
    if feeder.range is not None:
        return feeder.range.last - feeder.range.first + 1
    if feeder.csv is None:
        return len(feeder.values or [])
    return glance_at(feeder.csv).rows


def first_values(feeders: Sequence[Feeder]) -> dict[str, Value]:
    """Return what stands in checks: the first row of each feeder; ValueError as `columns_of`."""
    values: dict[str, Value] = {}
    for feeder in feeders:
        if feeder.csv is not None:
            row = glance_at(feeder.csv).first
            values |= {f"{feeder.name}.{name}": cell for name, cell in row.items()}
        else:
            values |= {name: column.first for name, column in columns_of(feeder).items()}
    return values
