"""What the generator says, as the figures of one trial."""

from laptime.measure.altered import UNALTERED, Altered, altered
from laptime.measure.figures import (
    failed_trial,
    latency_histogram,
    lateness_histogram,
    measured_phase,
    right_answers_by_second,
    trial_result,
    uncorrected_histogram,
)
from laptime.measure.generator import (
    CUT_SHORT,
    GeneratorError,
    GeneratorResult,
    cut_short,
    parse_generator_output,
    parse_payload,
)
from laptime.measure.histogram import Histogram, HistogramError
from laptime.measure.images import SCRIPT, of_the_same_bits
from laptime.measure.kept import kept_payload
from laptime.measure.merge import merge_results
from laptime.measure.placement import on_the_same_nodes
from laptime.measure.profile_output import ProfileProblem, parse_profile_output
from laptime.measure.schema import on_their_schemas
from laptime.measure.script import checks_together, exceptions_together, hosts_together
from laptime.measure.script_metrics import bound_of, keeps_bound, merged_metrics, shown_metrics
from laptime.measure.stacks import parse_stacks
from laptime.measure.validity import Judgement, doubted, error_reason, judge_pods
from laptime.measure.watched import watched_result

__all__ = [
    "CUT_SHORT",
    "SCRIPT",
    "UNALTERED",
    "Altered",
    "GeneratorError",
    "GeneratorResult",
    "Histogram",
    "HistogramError",
    "Judgement",
    "ProfileProblem",
    "altered",
    "bound_of",
    "checks_together",
    "cut_short",
    "doubted",
    "error_reason",
    "exceptions_together",
    "failed_trial",
    "hosts_together",
    "judge_pods",
    "keeps_bound",
    "kept_payload",
    "latency_histogram",
    "lateness_histogram",
    "measured_phase",
    "merge_results",
    "merged_metrics",
    "of_the_same_bits",
    "on_the_same_nodes",
    "on_their_schemas",
    "parse_generator_output",
    "parse_payload",
    "parse_profile_output",
    "parse_stacks",
    "right_answers_by_second",
    "shown_metrics",
    "trial_result",
    "uncorrected_histogram",
    "watched_result",
]
