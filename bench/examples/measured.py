"""One published benchmark as measured here, beside the published figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from laptime.analysis import wording
from laptime.analysis.published_order import OrderComparison, compare_order
from laptime.api.results import ResultRow
from laptime.api.spec import BenchmarkRunSpec
from laptime.report import Report

HEADINGS = (
    "benchmark", "server", "load", "factor (95 %)", "published", "same order",
    "limited by (suspected)",
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """What came out of a benchmark."""

    name: str
    report: Report
    seconds: float
    """From the operator's start of the run to its end."""

    @property
    def spec(self) -> BenchmarkRunSpec:
        """What was asked for."""
        return self.report.spec

    @property
    def rows(self) -> Sequence[ResultRow]:
        """One per server and load."""
        return self.report.summary.rows

    @cached_property
    def orders(self) -> dict[str, OrderComparison]:
        """The published order beside the measured one, by load; loads without one are left out."""
        published = self.report.published
        if published is None:
            return {}
        found = {
            load.name: compare_order(published, self.spec, load.name, self.report.trials)
            for load in self.spec.loads
        }
        return {load: order for load, order in found.items() if order is not None}


def table_lines(measured: Measured) -> list[tuple[str, ...]]:
    """Return a line per server and load, as many cells as `HEADINGS`."""
    return [
        (
            measured.name,
            row.server,
            row.load,
            factor_of(row, measured.spec.baseline_name),
            published_factor_of(row),
            same_order(measured, row.load),
            wording.cause(row.limited_by.cause) if row.limited_by else "-",
        )
        for row in measured.rows
    ]


def factor_of(row: ResultRow, baseline: str) -> str:
    """Return the measured factor with its interval, in words."""
    if row.factor is None:
        return "-"
    return "1x (baseline)" if row.server == baseline else wording.factor(row.factor)


def published_factor_of(row: ResultRow) -> str:
    """Return the published factor; `-` where there is none."""
    factor = row.published_factor
    return "-" if factor is None else f"{wording.number(factor)}x"


def same_order(measured: Measured, load: str) -> str:
    """Return `yes`, `no` or `undecided`; `-` where the source has no order."""
    order = measured.orders.get(load)
    return "-" if order is None else str(order.agreement)


def order_notes(measured: Measured) -> list[str]:
    """Return a sentence for each load whose order is not for sure the published one."""
    return [
        f"{measured.name}, {load}: {order.text}"
        for load, order in measured.orders.items()
        if order.contrary or order.undecided
    ]


def problems(measured: Measured) -> list[str]:
    """Return what is missing: trials that were not measured or kept, rows without a figure."""
    rows = {(row.server, row.load): row for row in measured.rows}
    repetitions = measured.spec.first_look
    found = []
    if measured.orders and not measured.report.trials:
        found.append(f"{measured.name}: its trials did not fit into results.json, so no order")
    for load in measured.spec.loads:
        for server in measured.spec.servers:
            what = f"{measured.name}, {server.name}, {load.name}"
            row = rows.get((server.name, load.name))
            if row is None:
                found.append(f"{what}: there is no row")
                continue
            why = f" ({row.reason}: {row.message})" if row.reason else ""
            if row.trials < repetitions:
                found.append(f"{what}: {row.trials} of {repetitions} trials measured{why}")
            if row.requests_per_second is None or row.factor is None:
                found.append(f"{what}: no figure{why}")
    return found
