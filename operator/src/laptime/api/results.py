"""Figures of one trial and of all trials together, as they are stored and shown."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.attempts import Fault, LostAttempt, attempt_name
from laptime.api.base import Reading, TolerantModel
from laptime.api.causes import LimitedBy
from laptime.api.evidence import TierEvidence
from laptime.api.interval import Interval as Interval
from laptime.api.isolation import Isolation
from laptime.api.metrics import Metric
from laptime.api.script import ScriptFigures
from laptime.api.usage import RowUsage, TrialUsage


class TrialOutcome(StrEnum):
    """How a trial ended."""

    MEASURED = "Measured"
    FAILED = "Failed"


class Validity(StrEnum):
    """Whether a figure can be trusted."""

    VALID = "valid"
    DOUBTFUL = "doubtful"
    INVALID = "invalid"


class ResponseTimes(TolerantModel):
    """Exact percentiles over all requests, in seconds (HDR histogram, 3 significant digits).

    A request without a right answer counts as slower than all others. A percentile that falls on
    one is null: there is no time in which so many requests had a right answer.
    """

    min_seconds: float | None = Field(None, description="The fastest right answer.")
    mean_seconds: float = Field(description="Arithmetic mean of the right answers.")
    p50_seconds: float | None = Field(
        None, description="Half of all requests had a right answer within it; null: they had not."
    )
    p80_seconds: float | None = Field(None, description="The same for 80 %.")
    p90_seconds: float | None = Field(None, description="The same for 90 %.")
    p99_seconds: float | None = Field(None, description="The same for 99 %.")
    p999_seconds: float | None = Field(None, description="The same for 99.9 %.")
    max_seconds: float = Field(description="The slowest right answer.")


class Latency(ResponseTimes):
    """Exact percentiles of right answers alone, in seconds: there is always one."""

    p50_seconds: float = Field(description="Half of the answers were at least as fast.")
    p80_seconds: float = Field(description="80 % of the answers were at least as fast.")
    p90_seconds: float = Field(description="90 % of the answers were at least as fast.")
    p99_seconds: float = Field(description="99 % of the answers were at least as fast.")
    p999_seconds: float = Field(description="99.9 % of the answers were at least as fast.")


class Saturation(TolerantModel):
    """What a search for the highest rate found, in requests per second."""

    low_rate: float = Field(description="Highest rate that met the objective; 0: none did.")
    high_rate: float | None = Field(
        None, description="Lowest rate that missed it; None: the highest rate tried was met."
    )
    breaking_rate: float | None = Field(
        None,
        description="Lowest rate tried at which fewer requests were completed than arrived; None: "
        "at every rate all were.",
    )
    p99_objective_seconds: float = Field(description="Largest p99 that meets the objective.")
    error_rate_objective: float = Field(
        description="Largest share of requests without a right answer that meets it; 0.001: 0.1 %."
    )


class Figures(TolerantModel):
    """What one trial measured in its measured phase; warm-up is never in it."""

    requests: int = Field(description="Requests issued in the measured phase.")
    errors: int = Field(description="Requests without a right answer in time.")
    errors_by_kind: dict[str, int] = Field(default_factory=dict)
    window_seconds: float = Field(description="Length of the measured phase.")
    requests_per_second: float = Field(
        description="Right answers completed within the window, divided by its length."
    )
    within_share: Reading | None = Field(
        None,
        description="Closed loads: the standard error of that by the trial's own seconds, as a "
        "share of it. None below 8 whole seconds and in results of older versions: not known.",
    )
    bytes_received: int = 0
    latency: ResponseTimes | None = Field(None, description="None when no answer was right.")
    server_time: Latency | None = Field(
        None, description="The server's share of right answers: request sent to first byte."
    )
    uncorrected_latency: ResponseTimes | None = Field(
        None,
        description="Open loads: from the moment a request was really sent. `latency` is from the "
        "moment it was due, which is what users see.",
    )
    lateness_p99_seconds: float | None = Field(
        None, description="Open loads: from due to sent, 99th percentile."
    )
    saturation: Saturation | None = Field(
        None, description="Of a search; the other figures are those at its `lowRate`."
    )


class NetworkPath(TolerantModel):
    """The network between generators and servers in a trial, as the generators' kernels saw it."""

    round_trip_seconds: Reading | None = Field(
        None,
        description="The shortest time until a server's kernel had acknowledged something: no "
        "answer can come sooner.",
    )
    segments_sent: int = Field(
        0,
        description="TCP segments with requests in them, as far as connections were looked at: of "
        "those that are made for each request every 16th.",
    )
    segments_sent_again: int = Field(
        0, description="Of them, and of first ones of connections: those that were sent again."
    )
    segments_out_of_order: int = Field(
        0, description="Received after later ones: they were late, or were lost and sent again."
    )


class TrialResult(TolerantModel):
    """The stored result of one trial (server, load, repetition); written exactly once."""

    trial: str
    ordinal: int = Field(description="Place in the order of the trials, from 1.")
    server: str
    load: str
    repetition: int = Field(description="From 1.")
    beside: str | None = Field(
        None, description="The attempt that was measured at the same time, with `pairing: duet`."
    )
    outcome: TrialOutcome
    reason: str | None = Field(None, description="CamelCase; why a trial failed.")
    message: str | None = None
    fault: Fault | None = Field(None, description="Whose fault it was that a trial failed.")
    retry: int = Field(0, description="The value of `spec.retry` that it was measured for.")
    attempt: int = Field(1, description="Which attempt this is, from 1.")
    lost_attempts: list[LostAttempt] = Field(
        default_factory=list, description="The attempts before it, lost to no fault of the server."
    )
    images: dict[str, str] = Field(
        default_factory=dict,
        description="What ran, by its part (server, generator, the tiers), and what was taken out "
        "of images (script, data.postgres.seed[0]): the image ID that the kubelet says. Empty in "
        "results of older versions.",
    )
    nodes: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Where it ran, by its part: the names of the nodes, for generators one each in "
        "the order of their indices. "
        "Empty in results of older versions.",
    )
    validity: Validity = Validity.VALID
    validity_reasons: list[str] = Field(default_factory=list)
    database_schema: str | None = Field(
        None,
        description="Stands for what was defined in the database (tables, indexes, functions) "
        "before the load began. None where nobody knows, as in results of older versions.",
    )
    started_at: str | None = Field(None, description="First measured request, RFC 3339.")
    finished_at: str | None = Field(None, description="Last measured response, RFC 3339.")
    figures: Figures | None = None
    endpoints: dict[str, Figures] = Field(
        default_factory=dict, description="The same per request of the scenario, by its name."
    )
    generator_cpu_seconds: Reading | None = None
    generator_wall_seconds: Reading | None = None
    generator_share: Reading | None = Field(
        None, description="Share (0 … 1) of its CPU that the busiest generator used."
    )
    network: NetworkPath | None = Field(
        None,
        description="The network between generators and servers; None where nobody knows, as of "
        "scripts and in results of older versions.",
    )
    statements: int | None = Field(
        None, description="Statements that Postgres ran in the measured phase."
    )
    usage: TrialUsage | None = Field(
        None, description="What each part of the run used; None when nobody watched."
    )
    tiers: TierEvidence | None = Field(
        None, description="What the tiers said: queues, pools, waits; None when nobody watched."
    )
    seconds_missing: str | None = Field(
        None,
        description="What Prometheus lacks of the trial's seconds, which dashboards draw; None: "
        "nothing, or nobody asked.",
    )
    isolation: Isolation | None = Field(
        None,
        description="Whether it had its nodes for itself. None in results of older versions: then "
        "it is not known.",
    )
    limited_by: LimitedBy | None = None
    script: ScriptFigures | None = Field(
        None, description="What a script of one's own says; None for the other loads."
    )

    @property
    def attempt_name(self) -> str:
        """Name of the attempt that counts, which its Job and its pods have."""
        return attempt_name(self.trial, self.attempt)

    @property
    def lost(self) -> bool:
        """Whether it measured nothing, in all attempts, by no fault of the server."""
        return self.fault is not None and self.fault.repeated

    @property
    def has_rate(self) -> bool:
        """Whether it has a throughput of the work that was asked for, which an invalid one has not.

        What is invalid stands in the results and counts nowhere else.
        """
        return (
            self.figures is not None
            and self.figures.requests_per_second > 0
            and self.validity is not Validity.INVALID
        )


class TrialReadings(TolerantModel):
    """What was read of the pods in the window of a measured trial; stored beside its result."""

    trial: str
    usage: TrialUsage
    tiers: TierEvidence
    seconds_missing: str | None = Field(
        None, description="What Prometheus lacks of the trial's seconds; None: nothing."
    )


class LatencyFigure(TolerantModel):
    """A response time of a row over its repetitions, compared as throughput is."""

    seconds: Interval | None = Field(
        None,
        description="What the repetitions are around, in seconds; null: it fell among the requests "
        "without a right answer, in `failed` of them. Without ends where the repetitions have "
        "too few answers each: then it is that of all of them together.",
    )
    failed: int = Field(
        0, description="Repetitions in which it fell among the requests without a right answer."
    )
    factor: Interval | None = Field(
        None, description="Divided by the baseline's, paired by repetition; less is faster."
    )
    rank: int | None = Field(None, description="As the row's `rank`, by this figure.")


class LatencyFigures(TolerantModel):
    """The response times of a row over its repetitions."""

    mean: LatencyFigure | None = Field(None, description="Arithmetic mean of the right answers.")
    p50: LatencyFigure | None = Field(None, description="Median of all requests.")
    p90: LatencyFigure | None = Field(None, description="90th percentile of all requests.")
    p99: LatencyFigure | None = Field(None, description="99th percentile of all requests.")
    p999: LatencyFigure | None = Field(None, description="99.9th percentile of all requests.")

    def of(self, metric: Metric) -> LatencyFigure | None:
        """Return the figure of that name; None where there is none."""
        found: LatencyFigure | None = getattr(self, metric.value, None)
        return found


class RowState(StrEnum):
    """State of one row of the result table."""

    PENDING = "Pending"
    MEASURED = "Measured"
    PARTIAL = "Partial"
    FAILED = "Failed"


class ResultRow(TolerantModel):
    """One row of the result table: a server under a load, over all its repetitions."""

    server: str = Field(description="Name of the server.")
    load: str = Field(description="Name of the load.")
    state: RowState = Field(description="How much of it was measured.")
    reason: str | None = Field(None, description="CamelCase: why something is missing.")
    message: str | None = Field(None, description="The same for people.")
    trials: int = Field(
        0, description="Measured trials; those that are invalid are not in the figures."
    )
    failed_trials: int = Field(0, description="Trials that measured nothing.")
    lost_attempts: int | None = Field(
        None,
        description="Attempts that were lost to nodes, tiers, generators or the cluster, and made "
        "again; left out where there are none.",
    )
    requests: int = Field(0, description="Requests of all measured trials.")
    errors: int = Field(0, description="Those without a right answer in time.")
    error_rate: float | None = Field(None, description="Errors divided by requests.")
    requests_per_second: Interval | None = Field(
        None,
        description="Right answers per second: geometric mean of the repetitions, from 8 on (with "
        "`stopWhen` later) their Hodges-Lehmann estimate. Of a search: the middle, by ratio, "
        "between the rate that was met and the one that was missed; the interval is never narrower "
        "than what lies between, and has no upper end where no rate was missed.",
    )
    latency: ResponseTimes | None = Field(
        None, description="From the histograms of all repetitions, merged without loss."
    )
    latency_figures: LatencyFigures | None = Field(
        None, description="The same response times as figures with intervals, factors and ranks."
    )
    uncorrected_latency: ResponseTimes | None = Field(
        None, description="Open loads: the same from the moment a request was really sent."
    )
    uncorrected_figures: LatencyFigures | None = Field(
        None,
        description="Open loads: `uncorrectedLatency` as figures with intervals, found as "
        "`latencyFigures` are: what differs between the two is the wait. Without factors and "
        "ranks.",
    )
    lateness_p99_seconds: float | None = Field(
        None, description="Open loads: from due to sent, 99th percentile of all repetitions."
    )
    saturation: Saturation | None = Field(
        None,
        description="Of a search: the lowest `lowRate`, the highest `highRate` and the lowest "
        "`breakingRate` of all repetitions.",
    )
    compared_by: Metric = Field(
        Metric.REQUESTS_PER_SECOND,
        description="The figure that `factor` and `rank` are about: throughput, or a response time "
        "where the load's rate is fixed.",
    )
    factor: Interval | None = Field(
        None,
        description="That figure divided by the baseline's, paired by repetition.",
    )
    published_factor: float | None = Field(
        None, description="The factor that the published benchmark reports."
    )
    published_missing: str | None = Field(
        None,
        description="Why `publishedFactor` is missing, where the baseline has one under this load.",
    )
    validity: Validity | None = Field(None, description="Whether the figures can be trusted.")
    validity_reasons: list[str] = Field(
        default_factory=list, description="Why they are doubtful or invalid."
    )
    rank: int | None = Field(
        None,
        description="Under this load: one more than the number of servers that are better by that "
        "figure for sure, and above their ranks. Servers that share a rank cannot be told apart.",
    )
    limited_by: LimitedBy | None = Field(None, description="The cause in most repetitions.")
    usage: RowUsage | None = Field(None, description="None when nobody watched.")
    statements_per_request: float | None = Field(
        None, description="Statements of the database for each right answer."
    )
    script: ScriptFigures | None = Field(
        None, description="What a script of one's own says; None for the other loads."
    )

    def response_time(self, metric: Metric) -> LatencyFigure | None:
        """Return a response time over the repetitions; None where there is none.

        Of a row that does not have it as a figure, it is that of all repetitions together, without
        an interval.
        """
        if self.latency_figures is not None:
            return self.latency_figures.of(metric)
        return self._together(self.latency, metric)

    def due_and_sent(self, metric: Metric) -> tuple[LatencyFigure | None, LatencyFigure | None]:
        """Return a response time from due, and from sent: one kind of estimate for both.

        Of a row that does not have both as figures, as those of older versions, both are those of
        all repetitions together: the first may then be another one than `response_time` says.
        """
        if self.latency_figures is not None and self.uncorrected_figures is not None:
            return self.latency_figures.of(metric), self.uncorrected_figures.of(metric)
        return (
            self._together(self.latency, metric),
            self._together(self.uncorrected_latency, metric),
        )

    def _together(self, times: ResponseTimes | None, metric: Metric) -> LatencyFigure | None:
        if times is None:
            return None
        seconds: float | None = getattr(times, f"{metric.value}_seconds")
        # One repetition may be enough for it to fall among requests that failed: nobody knows.
        return LatencyFigure(seconds=None if seconds is None else Interval(value=seconds))


class ControlResult(TolerantModel):
    """The baseline against itself under a load: what differs is chance."""

    load: str = Field(description="Name of the load.")
    compared_by: Metric = Field(
        Metric.REQUESTS_PER_SECOND, description="The figure that it is about."
    )
    factor: Interval = Field(description="The control's figure divided by the baseline's.")
    differs: bool = Field(description="Whether they were told apart, which is a false positive.")
    smallest_detectable: float | None = Field(
        None, description="Difference that such a comparison finds four times of five; 0.02: 2 %."
    )


class Tie(TolerantModel):
    """Two servers that a load does not tell apart, and what it would cost to do so."""

    load: str = Field(description="Name of the load.")
    servers: list[str] = Field(description="Names of both.")
    compared_by: Metric = Field(
        Metric.REQUESTS_PER_SECOND, description="The figure that it is about."
    )
    difference: float = Field(
        description="If they differ by this share or more, four of five runs would find it."
    )
    repetitions: int | None = Field(
        None,
        description="About so many more of them would: by the noise of this run. None: more than a "
        "run may have.",
    )
    seconds: float | None = Field(None, description="How long these take, if it is known.")


class TrialLength(TolerantModel):
    """Shorter trials, which would find the same differences in throughput in less time."""

    load: str = Field(description="Name of the load.")
    seconds: float = Field(description="How long each trial would measure.")
    repetitions: int = Field(description="How many of them that would take.")
    instead_of_seconds: float = Field(description="How long each trial of this run measured.")
    instead_of_repetitions: int = Field(description="How many it was reckoned from.")
    time_share: float = Field(
        description="The time that it would take, with all that lies around trials, as a share of "
        "what they took."
    )


class Outcome(StrEnum):
    """What came of an objective."""

    MET = "met"
    MISSED = "missed"
    NOT_KNOWN = "notKnown"


class ObjectiveResult(TolerantModel):
    """One objective and what came of it."""

    server: str = Field(description="Name of the server.")
    load: str = Field(description="Name of the load.")
    metric: str = Field(description="Which figure.")
    bound: str = Field(description="The bound in words, such as 'p99 at most 5ms'.")
    measured: str = Field(description="What was measured, or why nothing was.")
    outcome: Outcome = Field(
        description="Whether the bound was kept: met, missed, or notKnown where the figures do "
        "not say it for sure."
    )
    reason: str = Field(description="CamelCase: why it is so.")
    message: str | None = Field(None, description="The same for people, where it is not known.")
