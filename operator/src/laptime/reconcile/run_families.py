"""The families of the metrics of runs: their names, their labels, what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

_LONGEST_TEXT = 2000
"""Characters of a label: no sentence of a run is longer."""
_RUN = ("namespace", "run")
_ROW = (*_RUN, "server", "load", "position")
_TABLE = (*_ROW, "place")
"""Of a row in the table of results, and its place there, from 1."""
_TRIAL = (*_RUN, "trial", "server", "load", "repetition", "position")
_FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "laptime_run_info",
        "1 for each run; factor, validity and verdict are empty until the run is over. The "
        "verdict of one that came to no result, or that is not understood, says why.",
        (*_RUN, "scenario", "state", "baseline", "fastest", "factor", "validity", "verdict"),
    ),
    ("laptime_run_created_timestamp_seconds", "When the run was made.", _RUN),
    ("laptime_run_started_timestamp_seconds", "When the run got its turn.", _RUN),
    ("laptime_run_finished_timestamp_seconds", "When the run was over.", _RUN),
    (
        "laptime_run_progress_ratio",
        "Share of the trials that are over; with verifyOnly of the servers that are checked.",
        _RUN,
    ),
    ("laptime_run_trials", "Trials of the run in all.", _RUN),
    ("laptime_run_trials_completed", "Trials of the run that are over.", _RUN),
    ("laptime_run_trials_failed", "Trials that are over and measured nothing.", _RUN),
    ("laptime_run_objectives_missed", "Objectives of the run that were missed.", _RUN),
    ("laptime_run_remaining_seconds", "Estimate of the time left.", _RUN),
    (
        "laptime_run_isolation",
        "1 for whether the run had its nodes for itself: quiet, shared, disturbed or notKnown, "
        "by its worst trial; why is there when the run is over.",
        (*_RUN, "isolation", "why"),
    ),
    (
        "laptime_run_server_info",
        "1 for each server, with its place in the spec from 1, the image that it ran, which "
        "bits that was, and, when the run is over, the nodes that it was measured on.",
        (*_RUN, "server", "position", "image", "digest", "nodes"),
    ),
    ("laptime_run_current_trial", "1 for the trial that is set up or measured now.", _TRIAL),
    (
        "laptime_run_cpu_limit_cores",
        "CPU limit of each pod of a component; none where the spec sets none.",
        (*_RUN, "component", "server", "position"),
    ),
    (
        "laptime_doubtful_runs_in_a_row",
        "How many of the newest runs with results are not valid, until the first that is.",
        ("namespace", "scenario"),
    ),
    ("laptime_trial_info", "1 for each trial that the results so far ask for.", _TRIAL),
    ("laptime_trial_started_timestamp_seconds", "First measured request.", _TRIAL),
    ("laptime_trial_finished_timestamp_seconds", "Last measured response.", _TRIAL),
    (
        "laptime_trial_requests_per_second",
        "Right answers a second in the measured phase of the trial.",
        _TRIAL,
    ),
    (
        "laptime_trial_outcome",
        "1 for the outcome and validity of a trial that is over.",
        (*_TRIAL, "outcome", "validity"),
    ),
    (
        "laptime_trial_seconds_complete",
        "1 when Prometheus had every second of a measured trial at its end, 0 when it lacked some.",
        _TRIAL,
    ),
    ("laptime_result_trials", "Measured trials behind a row.", _TABLE),
    ("laptime_result_errors_ratio", "Errors divided by requests.", _TABLE),
    ("laptime_result_rank", "Rank under this load; equals share one.", _TABLE),
    (
        "laptime_result_latency_seconds",
        "Percentiles over the repetitions, as the table of results has them, +Inf: failed; "
        "with low and high end of its 95 % interval where it has one.",
        (*_TABLE, "quantile", "bound"),
    ),
    ("laptime_result_cpu_cores", "CPU of the server, mean of the repetitions.", _TABLE),
    ("laptime_result_memory_bytes", "Highest working set of the server.", _TABLE),
    (
        "laptime_result_limited_by",
        "1 for the cause that limited a row; evidence is there when the run is over.",
        (*_TABLE, "cause", "evidence"),
    ),
    (
        "laptime_result_state",
        "1 for the state and validity of a row; doubts are there when the run is over.",
        (*_TABLE, "state", "validity", "doubts"),
    ),
    (
        "laptime_result_objective",
        "1 for each objective and each threshold of a script, with what came of it; what was "
        "measured is there when the run is over.",
        (*_RUN, "server", "load", "position", "bound", "outcome", "measured"),
    ),
    (
        "laptime_result_tie",
        "1 for each two servers that a load of a run that is over does not tell apart, with "
        "what it would cost to do so.",
        (*_RUN, "load", "servers", "compared_by", "cost"),
    ),
    (
        "laptime_result_iterations",
        "Iterations of a script in all repetitions: ended, or dropped for want of a VU.",
        (*_ROW, "outcome"),
    ),
    (
        "laptime_result_check_answers",
        "Answers of a check of a script in all repetitions: passed or failed.",
        (*_ROW, "check", "outcome"),
    ),
    ("laptime_result_check_rate", "Share of its answers that were right.", (*_ROW, "check")),
    *(
        (
            name,
            f"{what}, over all repetitions: the estimate, low and high end of its 95 % interval.",
            (*_ROW, "metric", "figure", "unit", "bound"),
        )
        for name, what in (
            (
                "laptime_result_script_value",
                "A figure of a metric of a script, in k6's unit, of a counter each second",
            ),
            ("laptime_result_script_factor", "That figure divided by the baseline's"),
        )
    ),
    *(
        (
            name,
            f"{what}, over all repetitions: the estimate, low and high end of its 95 % interval, 0 "
            "or +Inf for one that a search did not find.",
            (*_TABLE, "bound"),
        )
        for name, what in (
            ("laptime_result_requests_per_second", "Right answers a second"),
            (
                "laptime_result_factor",
                "Throughput, or the compared latency, divided by the baseline's",
            ),
        )
    ),
)
"""Names, what they say, and their labels."""

_Sample = tuple[str, tuple[str, ...], float]


class Samples(list[_Sample]):
    """Samples of one run: the names of their families, the texts of their labels, their values."""

    def add(self, name: str, labels: Iterable[str], value: float | None) -> None:
        """Add a sample; None: there is none."""
        if value is not None:
            self.append((name, tuple(text[:_LONGEST_TEXT] for text in labels), float(value)))


class Families:
    """The metric families of one scrape."""

    def __init__(self) -> None:
        self._families = {
            name: GaugeMetricFamily(name, help_, labels=list(labels))
            for name, help_, labels in _FAMILIES
        }

    def take(self, samples: Iterable[_Sample]) -> None:
        """Add samples to their families."""
        for name, labels, value in samples:
            self._families[name].add_metric(list(labels), value)

    def all(self) -> Iterator[GaugeMetricFamily]:
        """Yield all families, also those without a sample."""
        yield from self._families.values()
