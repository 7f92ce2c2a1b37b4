"""Tables of newest values: their columns, how these look, and by what rows are sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards.meanings import UNBOUNDED, UNREACHED
from laptime_dashboards.panel_defaults import (
    DATA_SOURCE,
    FULL,
    absent,
    newest,
    numbers,
    thresholds,
    transformation,
    words,
)

_WRAPPED = {"custom.wrapText": True}
"""Of a column with names or sentences."""

_LONGEST = {"custom.cellOptions": {"type": "auto", "wrapText": True}}
"""Of one column of a table. Grafanas before 12.2 read this alone: they wrap what does not fit, and
make a row as high as the text needs that it has in the last column with this, hidden or not."""

HIDDEN = {"custom.hidden": True, "custom.hideFrom": {"viz": True}}
"""Of a column to sort by, or for a link alone. Newer Grafanas read the second of the two. Older
ones leave the column out and sort no table by it: its rows are sorted before that (`in_order`)."""

EMPTY = "-"
"""What a cell without a value says; a table's own text for no data would stand in each of them."""

THREE_DIGITS = "none"
"""Unit of a figure in a table: where no decimals are asked for it has three digits, or all before
the point, as in the report. `locale` has three decimals then."""

FACTOR_UNIT, FACTOR_DECIMALS = "locale", 5
"""Of a factor beside the ends of its interval: one that is not 1 says so, however close it is, and
one far below keeps its digits. Zeros at the end are left out."""

OF_RESPONSE_TIMES = (
    "Where the rate of requests is fixed, factors are of response times: below 1 is faster."
)
"""Beside each column of factors, whose direction they do not tell themselves."""


def rows(
    title: str,
    description: str,
    no_data: str,
    columns: Sequence[Column],
    *,
    joined: bool = True,
    width: int = FULL,
    height: int = 9,
) -> table.Panel:
    """Return a table of the newest values. The queries' labels and values are its columns.

    Columns without a query are labels; those with one get the letter of their place as reference.
    One without a title is not shown.
    All rows with the same labels become one when `joined`.
    """
    asked = _with_queries(columns)
    if joined and len(asked) > 1 and any(one.title for one in asked):
        # Without rows it has columns of values still, and Grafana says nothing then from 12.2 on.
        description = f"{description} Where it has no rows: {no_data}."
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit("short")
        .no_value(absent(no_data))
        .height(height)
        .span(width)
        .cell_height(common.TableCellHeight.SM)
        .thresholds(thresholds())
    )
    names: dict[str, str] = {}
    hidden: dict[str, bool] = {"Time": True}
    for letter, column in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", asked, strict=False):
        assert column.expr is not None
        panel.with_target(newest(column.expr, ref=letter))
        field = f"Value #{letter}" if joined and len(asked) > 1 else "Value"
        if column.title:
            names[field] = column.title
        else:
            hidden[field] = True
    for column in columns:
        if column.label is not None and column.title:
            names[column.label] = column.title
        elif column.label is not None:
            hidden[column.label] = True
    order = {field: place for place, field in enumerate(_fields_in_order(columns, names))}
    if joined:
        panel.with_transformation(transformation("merge", {}))
    for column in columns:
        if column.label is not None and column.number:
            panel.with_transformation(numbers(column.label))
    panel.with_transformation(
        transformation(
            "organize",
            {"excludeByName": hidden, "renameByName": names, "indexByName": order},
        )
    )
    for column in columns:
        if column.title:
            panel.override_by_name(
                column.title,
                [
                    dashboard_models.DynamicConfigValue(id_val=key, value=value)
                    for key, value in column.properties.items()
                ],
            )
    return panel


class Column:
    """One column of a table: a label of its queries, or the value of one of them."""

    def __init__(
        self,
        title: str,
        *,
        label: str | None = None,
        expr: str | None = None,
        number: bool = False,
        longest: bool = False,
        unit: str | None = None,
        decimals: int | None = None,
        width: int | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        """With `number` a label is sorted as one: 10 comes after 9.

        Names and sentences are wrapped; words with a colour are known, and their columns as wide.
        `longest` is the one of a table whose text needs the most lines: older Grafanas make rows
        as high as that.
        """
        self.title = title
        self.number = number
        self.label = label
        self.expr = expr
        named = label is not None and not number and "custom.cellOptions" not in (more or {})
        wanted: dict[str, object | None] = {
            "unit": unit,
            "decimals": decimals,
            "custom.width": width,
            "noValue": EMPTY,
            **(_WRAPPED if named else {}),
            **(_LONGEST if longest else {}),
            **(more or {}),
        }
        self.properties = {key: value for key, value in wanted.items() if value is not None}


def _with_queries(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.expr is not None]


def _fields_in_order(columns: Sequence[Column], names: Mapping[str, str]) -> list[str]:
    by_title = {title: field for field, title in names.items()}
    return [by_title[column.title] for column in columns if column.title in by_title]


def sorted_by(title: str, *, newest_first: bool = False) -> common_builders.TableSortByFieldState:
    """Return the wish that a table be sorted by a column that is shown.

    Upwards, unless newest come first. What is equal stays in the order of the rows.
    """
    return common_builders.TableSortByFieldState().display_name(title).desc(newest_first)


FAILED: Mapping[str, object] = {"mappings": words(UNREACHED)}
"""What a column of response times has beside its unit."""


NO_END: Mapping[str, object] = {"mappings": words(UNBOUNDED)}
"""What a column of high ends has beside its unit."""


def coloured_words(meanings: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """Return what a column of a table has whose values are told by text and colour."""
    return {"mappings": words(meanings), "custom.cellOptions": {"type": "color-text"}}
