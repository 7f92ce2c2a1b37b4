"""The published figures behind a scenario, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from laptime.analysis import wording
from laptime.api.results import ResultRow
from laptime.catalog import Published, PublishedMeasurement

HEADINGS = ("preset", "workers", "requests/s", "p50", "p99", "p99.9", "factor")


@dataclass(frozen=True)
class PublishedTable:
    """The figures under one load."""

    shape: str
    lines: tuple[tuple[str, ...], ...]
    """One server each, as many cells as `HEADINGS`."""
    order: tuple[str, ...] = ()
    """Presets, fastest first, where no figures are published."""


def published_tables(published: Published) -> list[PublishedTable]:
    """Return a table per published load."""
    return [
        PublishedTable(_shape(measurement), tuple(_lines(measurement)), tuple(measurement.order))
        for measurement in published.measurements
    ]


def missing_said(rows: Sequence[ResultRow]) -> list[str]:
    """Return why rows of a load have no published factor beside them, a sentence for each why."""
    by_why: dict[str, list[str]] = {}
    for row in rows:
        if row.published_missing is not None:
            by_why.setdefault(row.published_missing, []).append(row.server)
    return [
        f"No published factor beside {wording.listing(servers)}: {why}."
        for why, servers in by_why.items()
    ]


def _shape(measurement: PublishedMeasurement) -> str:
    load = measurement.load
    if load.closed is not None:
        keep = "with" if load.closed.keep_alive else "without"
        shape = f"closed, {load.closed.connections} connections {keep} keep-alive"
    else:
        shape = f"open, {load.open.rate:,} requests/s" if load.open else "unknown"
    return shape if load.endpoints is None else f"{shape}, {' or '.join(load.endpoints)}"


def _lines(measurement: PublishedMeasurement) -> Iterator[tuple[str, ...]]:
    for one in measurement.servers:
        milliseconds = (one.p50_ms, one.p99_ms, one.p999_ms)
        yield (
            one.preset,
            "any" if one.any_workers else str(one.workers),
            _rate(one.requests_per_second),
            *(wording.latency(ms / 1e3) if ms is not None else "-" for ms in milliseconds),
            f"{wording.number(one.factor)}x" if one.factor is not None else "-",
        )


def _rate(requests_per_second: float | None) -> str:
    if requests_per_second is None:
        return "-"
    return (
        f"{requests_per_second:,.2f}" if requests_per_second < 10 else f"{requests_per_second:,.0f}"
    )
