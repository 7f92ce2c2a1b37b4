"""What Grafana makes of the answers to a panel's queries before it draws them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Series:
    """A series of an answer: its labels, and its samples as Unix seconds and values."""

    labels: dict[str, str]
    samples: list[tuple[float, float]]


Answers = Mapping[str, Sequence[Series]]
"""What the queries of a panel brought, by their letters."""
Row = dict[str, Any]
_Frames = list[tuple[str, list[Row]]]
"""Rows, and the letter of the query that brought them."""


def rows(panel: dict[str, Any], answers: Answers) -> list[Row]:
    """Return the rows of a table, or those that an XY chart draws, by the names of their fields.

    Dates are Unix seconds; labels that tell the lines of a chart apart are fields as well.
    """
    several = len(panel["targets"]) > 1
    frames: _Frames = [
        (
            letter,
            [
                {"Time": at, **one.labels, f"Value #{letter}" if several else "Value": value}
                for one in series
                for at, value in one.samples
            ],
        )
        for letter, series in answers.items()
    ]
    for step in panel.get("transformations") or []:
        wanted = re.compile(step.get("filter", {}).get("options", "").strip("/"))
        others = [one for one in frames if not wanted.search(one[0])]
        taken = [one for one in frames if wanted.search(one[0])]
        # What a step is not of stands before what it is of.
        frames = [*others, *_STEPS[step["id"]](taken, step["options"])]
    dates = {
        rule["matcher"]["options"]
        for rule in panel["fieldConfig"]["overrides"]
        for one in rule["properties"]
        if one["id"] == "unit" and one["value"].startswith(("time:", "dateTime"))
    }
    return [
        {field: value / 1000 if field in dates else value for field, value in row.items()}
        for row in _rows(frames)
    ]


def name(legend: str, labels: Mapping[str, str]) -> str:
    """Return what a line is called by the legend of its query."""
    return re.sub(r"{{(\w+)}}", lambda one: labels.get(one[1], ""), legend)


def _rows(frames: _Frames) -> list[Row]:
    return [row for _, frame in frames for row in frame]


def _merge(frames: _Frames, _: Any) -> _Frames:
    """Make one row of those that have the same in all fields that all frames have.

    As far as nothing else of them differs.
    """
    filled = [frame for _, frame in frames if frame]
    fields = [set(itertools.chain(*frame)) for frame in filled]
    shared = sorted(set.intersection(*fields)) if fields else []
    merged: dict[tuple[Any, ...], list[Row]] = {}
    for row in itertools.chain(*filled):
        beside = merged.setdefault(tuple(row.get(field, "") for field in shared), [])
        fitting = [
            other
            for other in beside
            if all(other.get(field, value) == value for field, value in row.items())
        ]
        for other in fitting:
            other.update(row)
        if not fitting:
            beside.append(dict(row))
    return [("", [row for alike in merged.values() for row in alike])]


def _organize(frames: _Frames, options: dict[str, Any]) -> _Frames:
    hidden, names = options["excludeByName"], options["renameByName"]
    return [
        (
            letter,
            [
                {
                    names.get(field, field): value
                    for field, value in row.items()
                    if field not in hidden
                }
                for row in frame
            ],
        )
        for letter, frame in frames
    ]


def _numbers(frames: _Frames, options: dict[str, Any]) -> _Frames:
    for one in options["conversions"]:
        for row in _rows(frames):
            if one["targetField"] in row:
                row[one["targetField"]] = float(row[one["targetField"]])
    return frames


def _calculate(frames: _Frames, options: dict[str, Any]) -> _Frames:
    for place, row in enumerate(_rows(frames)):
        if options["mode"] == "index":
            row[options["alias"]] = place
        elif options["mode"] == "reduceRow":
            assert options["reduce"]["reducer"] == "max"
            found = [row[field] for field in options["reduce"]["include"] if field in row]
            if found:
                row[options["alias"]] = max(found)
        else:
            binary = options["binary"]
            assert (options["mode"], binary["operator"]) == ("binary", "-")
            if binary["right"] in row:
                row[options["alias"]] = float(binary["left"]) - row[binary["right"]]
    return frames


def _filter(frames: _Frames, options: dict[str, Any]) -> _Frames:
    assert (options["type"], options["match"]) == ("exclude", "any")
    assert all(one["config"]["id"] == "isNull" for one in options["filters"])
    needed = [one["fieldName"] for one in options["filters"]]
    return [
        (letter, [row for row in frame if all(field in row for field in needed)])
        for letter, frame in frames
    ]


def _sort(frames: _Frames, options: dict[str, Any]) -> _Frames:
    (wanted,) = options["sort"]
    field = wanted["field"]

    def key(row: Row) -> tuple[bool, Any]:
        return field in row, row.get(field, 0)

    return [(letter, sorted(frame, key=key, reverse=wanted["desc"])) for letter, frame in frames]


def _as_they_are(frames: _Frames, _: Any) -> _Frames:
    """Of what makes labels of fields."""
    return frames


_STEPS: dict[str, Callable[[_Frames, Any], _Frames]] = {
    "merge": _merge,
    "organize": _organize,
    "convertFieldType": _numbers,
    "calculateField": _calculate,
    "filterByValue": _filter,
    "sortBy": _sort,
    "partitionByValues": _as_they_are,
}
