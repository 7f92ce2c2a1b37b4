"""What the comparison of a server with its counterpart says. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pairs import BOOK, OURS, Pair

from laptime.analysis import wording
from laptime.api.results import Interval, ResultRow, Validity

ALIKE = (0.95, 1.05)
"""Ratios between which two servers are as fast as each other."""
HEADINGS = (
    "server", "scenario, endpoint", "requests/s", "by the book", "ratio (95 %)",
    "limited by (suspected; ours, by the book)", "outcome",
)  # fmt: skip


class Verdict(StrEnum):
    """Whether ours is as fast as its counterpart."""

    ALIKE = "alike"
    """The interval is within `ALIKE`."""
    UNDECIDED = "undecided"
    """The interval has ratios on both sides of one of these ends."""
    SLOWER = "SLOWER"
    """The interval is below."""
    FASTER = "FASTER"
    """The interval is above: ours is not what the other one is."""
    NOT_JUDGED = "not judged"
    """Others used too much of the machine."""
    NOT_MEASURED = "NOT MEASURED"


def verdict_of(ratio: Interval) -> Verdict:
    """Return what the 95 % interval of ours over the counterpart's throughput says."""
    if ratio.low is None or ratio.high is None:
        return Verdict.UNDECIDED
    least, most = ALIKE
    if ratio.high < least:
        return Verdict.SLOWER
    if ratio.low > most:
        return Verdict.FASTER
    within = least <= ratio.low and ratio.high <= most
    return Verdict.ALIKE if within else Verdict.UNDECIDED


@dataclass(frozen=True)
class Comparison:
    """A pair as measured."""

    pair: Pair
    ours: ResultRow
    book: ResultRow
    beyond: str = ""
    """What others used beyond the limits of the bench; empty: nothing."""

    @classmethod
    def of(cls, pair: Pair, rows: Sequence[ResultRow], beyond: str = "") -> Comparison:
        """Return the comparison that the two rows of a finished run make."""
        by_server = {row.server: row for row in rows}
        return cls(pair, by_server[OURS], by_server[BOOK], beyond)

    @property
    def problem(self) -> str | None:
        """Why nothing can be said; None when both sides were measured rightly."""
        for row in (self.ours, self.book):
            if row.trials < self.pair.repetitions:
                why = f": {row.reason or 'no reason'}, {row.message or 'no message'}"
                return f"{row.server}: {row.trials} of {self.pair.repetitions} trials measured{why}"
            if row.validity is Validity.INVALID:
                return f"{row.server} is invalid: {'; '.join(row.validity_reasons)}"
        return None if self.ours.factor else "there is no ratio"

    @property
    def verdict(self) -> Verdict:
        """Whether ours is as fast."""
        if self.problem is not None or self.ours.factor is None:
            return Verdict.NOT_MEASURED
        return Verdict.NOT_JUDGED if self.beyond else verdict_of(self.ours.factor)

    @property
    def cells(self) -> tuple[str, ...]:
        """One line of the table, below `HEADINGS`."""
        causes = [
            wording.cause(row.limited_by.cause) if row.limited_by else "-"
            for row in (self.ours, self.book)
        ]
        return (
            f"`{self.pair.preset}`",
            f"`{self.pair.scenario}`, {self.pair.endpoint}",
            _number(self.ours.requests_per_second),
            _number(self.book.requests_per_second),
            _ratio(self.ours.factor),
            ", ".join(dict.fromkeys(causes)),
            str(self.verdict),
        )

    @property
    def doubts(self) -> list[str]:
        """Why a figure may be off, one sentence each."""
        return [
            f"{self.pair.preset}, {row.server}: {reason}"
            for row in (self.ours, self.book)
            if row.validity is Validity.DOUBTFUL
            for reason in row.validity_reasons
        ]


def table(comparisons: Sequence[Comparison]) -> str:
    """Return the comparisons as a table in Markdown."""
    rule = ("---", "---", "---:", "---:", "---:", "---", "---")
    lines = [HEADINGS, rule, *(comparison.cells for comparison in comparisons)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def conclusion(comparisons: Sequence[Comparison]) -> tuple[list[str], bool | None]:
    """Return the figures beside their goals, one a line, and whether all goals are met.

    A goal is missed when ours is slower or faster for sure, or was not measured. Where any is
    undecided or not judged and none is missed it is not known (None): more repetitions would decide
    it, or a quieter machine.
    """
    counts = Counter(comparison.verdict for comparison in comparisons)
    lines = []
    met = bool(comparisons)
    for verdict, text in (
        (Verdict.SLOWER, f"slower for sure: ratio below {ALIKE[0]}"),
        (Verdict.FASTER, f"faster for sure: ratio above {ALIKE[1]}"),
        (Verdict.NOT_MEASURED, "not measured"),
    ):
        good = counts[verdict] == 0
        met &= good
        count = f"{counts[verdict]} of {len(comparisons)}"
        lines.append(f"{text:36} {count:>9}  goal 0: {'met' if good else 'MISSED'}")
    for verdict, text in (
        (Verdict.ALIKE, f"alike for sure: {ALIKE[0]} to {ALIKE[1]}"),
        (Verdict.UNDECIDED, "undecided"),
        (Verdict.NOT_JUDGED, "not judged, for what others used"),
    ):
        lines.append(f"{text:36} {f'{counts[verdict]} of {len(comparisons)}':>9}")
    undecided, noisy = counts[Verdict.UNDECIDED], counts[Verdict.NOT_JUDGED]
    if met and undecided:
        lines.append(f"not judged: more repetitions would decide the {undecided} undecided")
    return lines, None if met and (undecided or noisy) else met


def _number(interval: Interval | None) -> str:
    return wording.number(interval.value) if interval else "-"


def _ratio(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
