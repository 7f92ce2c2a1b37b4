"""What a k6 script of a user's own says beside the figures of its requests.

Names are those of the script, shown: without control characters and not longer than a line.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.base import TolerantModel
from laptime.api.interval import Interval

ITERATIONS = "iterations"
"""k6's counter of them, by which servers are compared as well where a script rests."""


MORE_CHECKS = "all further checks"
"""What stands for the checks beyond those that are kept by name."""


class ComparedBy(StrEnum):
    """Which figure says which server is faster under a script."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"


class CheckResult(TolerantModel):
    """One check of a script: how often it held and how often it did not."""

    name: str = Field(description="Its name, after that of its group: 'group::name'.")
    passed: int = Field(0, description="How often it held.")
    failed: int = Field(0, description="How often it did not.")
    rate: float | None = Field(
        None, description="Share (0 … 1) of its answers that were right; null: there were none."
    )

    @property
    def failed_share(self) -> float:
        """Share (0 … 1) of its answers that were wrong; 0 for none."""
        total = self.passed + self.failed
        return self.failed / total if total else 0.0


class ExceptionResult(TolerantModel):
    """One exception that ended iterations of a script."""

    message: str = Field(description="In k6's words, with where it was thrown.")
    iterations: int = Field(0, description="How many it ended.")


class OtherHost(TolerantModel):
    """Requests of a script to another host than the target; in no figure of the server."""

    host: str = Field(description="Host and port.")
    requests: int = Field(0, description="Requests sent there.")
    errors: int = Field(0, description="Those without a right answer.")


class ThresholdResult(TolerantModel):
    """One threshold of a script, reckoned by k6 over all but the warm-up."""

    metric: str = Field(description="Of k6 or the script, with the tags of a sub-metric.")
    expression: str = Field(description="As the script has it, such as 'p(95)<200'.")
    contains: str = Field("default", description="k6's unit: default, time (ms) or data (bytes).")
    met: bool | None = Field(
        None,
        description="Whether it was met; of a row with repetitions: by where the whole interval "
        "lies. null: not known, since no sample came or the interval reaches across the bound.",
    )
    measured: Interval | None = Field(
        None,
        description="What it was compared with; of a row: what the repetitions are around, with "
        "the interval.",
    )
    low: float | None = Field(None, description="What it was compared with; of a row: least.")
    high: float | None = Field(None, description="What it was compared with; of a row: most.")
    repetitions: int = Field(1, description="In which it was reckoned.")
    missed: int = Field(0, description="Repetitions that missed it.")
    without_samples: int = Field(
        0, description="Of a row: repetitions in which no sample of its metric came."
    )


class MetricFigure(TolerantModel):
    """One figure of a metric over the repetitions of a row, compared as throughput is."""

    name: str = Field(
        description="k6's word for it: rate (of a counter: each second), value, avg, med, p(90), "
        "p(95) or p(99)."
    )
    estimate: Interval = Field(description="What the repetitions are around, in k6's unit.")
    factor: Interval | None = Field(
        None,
        description="Divided by the baseline's, paired by repetition; null where one of the two "
        "is not above 0 in each repetition.",
    )


class ScriptMetric(TolerantModel):
    """A metric of k6's or the script's own, in k6's units; of a row: all repetitions that count."""

    name: str = Field(description="As in k6, such as 'group_duration{group:::browse}'.")
    type: str = Field(description="counter, gauge, rate or trend.")
    contains: str = Field("default", description="k6's unit: default, time (ms) or data (bytes).")
    samples: int = Field(0, description="How often something was added.")
    value: float = Field(
        description="Of a counter the sum, of a gauge the last value, of a rate the share of "
        "samples that are not 0, of a trend the mean."
    )
    min: float | None = Field(None, description="Of a gauge or a trend: the least value.")
    max: float | None = Field(None, description="Of a gauge or a trend: the largest value.")
    p50: float | None = Field(None, description="Of a trend: the median, to 0.1 %.")
    p90: float | None = Field(None, description="Of a trend: 90th percentile, to 0.1 %.")
    p95: float | None = Field(None, description="Of a trend: 95th percentile, to 0.1 %.")
    p99: float | None = Field(None, description="Of a trend: 99th percentile, to 0.1 %.")
    figures: list[MetricFigure] = Field(
        default_factory=list, description="Of a row: what is compared of it, with intervals."
    )

    def figure(self, name: str) -> MetricFigure | None:
        """Return the figure of that name; None where there is none."""
        return next((one for one in self.figures if one.name == name), None)


class ScriptFigures(TolerantModel):
    """What a script says, its warm-up left out; of a row: all repetitions together."""

    warmup_named: bool = Field(
        description="Whether the warm-up has a time (`script.warmup`) or a scenario of its name."
    )
    executors: list[str] = Field(default_factory=list, description="k6's executors that ran.")
    iterations: int = Field(0, description="Iterations that came to their end.")
    iteration_seconds: float = Field(0.0, description="Time that they took, all together.")
    seconds: float = Field(
        0.0, description="How long all that counts took; counters are divided by it."
    )
    compared_by: ComparedBy = Field(
        ComparedBy.THROUGHPUT,
        description="latency where iterations arrive at a rate of their own or virtual users "
        "pause: throughput then says how long they rest.",
    )
    dropped_iterations: int = Field(
        0, description="Iterations that were due and had no VU to run them."
    )
    aborted: bool = Field(False, description="Whether one of its thresholds ended it early.")
    checks_passed: int = Field(0, description="Answers of all checks that were right.")
    checks_failed: int = Field(0, description="Answers of all checks that were wrong.")
    wrong_answers: int = Field(
        0,
        description="Answers (calls of check()) that failed any check, each counted once.",
    )
    checks: list[CheckResult] = Field(
        default_factory=list, description="Check by check; those that failed most come first."
    )
    exceptions: list[ExceptionResult] = Field(
        default_factory=list,
        description="What iterations ended with before their time; the most frequent first.",
    )
    thresholds: list[ThresholdResult] = Field(
        default_factory=list, description="The thresholds of the script's options."
    )
    other_hosts: list[OtherHost] = Field(
        default_factory=list, description="Requests that went to others than the target."
    )
    metrics: list[ScriptMetric] = Field(
        default_factory=list,
        description="k6's metrics and the script's own, by name; the status has those that say "
        "more than the row.",
    )
    warnings: list[str] = Field(
        default_factory=list, description="What was too much to be kept, in words."
    )

    @property
    def iterations_figure(self) -> MetricFigure | None:
        """Iterations a second over the repetitions of a row; None where nobody counted."""
        counted = next((one for one in self.metrics if one.name == ITERATIONS), None)
        return counted.figure("rate") if counted is not None else None
