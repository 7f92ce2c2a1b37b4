"""What the control arm says: the baseline a second time, which differs by chance alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

from laptime.analysis.comparing import POWER, Comparison
from laptime.analysis.distributions import student_quantile
from laptime.analysis.logs import Logs, has_no_end, left_open
from laptime.analysis.looks import looks_of
from laptime.analysis.repeated import compared_by, factor_of, logs_of, scores
from laptime.analysis.rows import Cell
from laptime.analysis.statistics import (
    CONFIDENCE,
    ERRORS,
    NOTICEABLE_RATIO,
    claim_confidence,
    half_width,
    interval_of_logs,
    paired_logs,
)
from laptime.api.results import ControlResult
from laptime.api.spec import BenchmarkRunSpec


def control_results(
    spec: BenchmarkRunSpec, cells: Mapping[tuple[str, str], Cell]
) -> tuple[ControlResult, ...]:
    """Return for each load what the control says; nothing without one, or before it is measured."""
    name = spec.control_name
    if name is None:
        return ()
    found = []
    looks = looks_of(spec)
    results = [one for cell in cells.values() for one in cell.results]
    for load in spec.loads:
        control, baseline = (cells.get((one, load.name)) for one in (name, spec.baseline_name))
        if control is None or baseline is None:
            continue
        metric = compared_by(spec, load, results)
        logs = {
            server: logs_of(cell.counted, metric)
            for server, cell in ((name, control), (spec.baseline_name, baseline))
        }
        known = scores(logs, metric)
        one, other = (known.get(server, Logs({})) for server in (name, spec.baseline_name))
        pairs = paired_logs(one, other)
        comparison = Comparison({name: one, spec.baseline_name: other}, looks)
        # None without a pair, and of two that were measured apart.
        ratio = comparison.factors(spec.baseline_name).get(name)
        if ratio is not None:
            found.append(
                ControlResult(
                    load=load.name,
                    compared_by=metric,
                    factor=factor_of(ratio, metric),
                    differs=comparison.can_be_told_apart(name, spec.baseline_name),
                    smallest_detectable=None
                    if has_no_end(one, other)
                    else smallest_detectable(
                        pairs, left_open(one, other), looks.errors_of((one, other))
                    ),
                )
            )
    return tuple(found)


def smallest_detectable(
    logs: list[float], within: float = 0.0, errors: float = ERRORS
) -> float | None:
    """Return the smallest difference that comparisons like this one find with a power of 80 %.

    As a share: 0.02 is 2 %. None below two repetitions. The minimum detectable effect is the
    standard error times the t that a claim asks for (97.5 %, or more in few repetitions) plus
    t(80 %), with n - 1 degrees of freedom (H. S. Bloom, Minimum Detectable Effects, Evaluation
    Review 19(5), 1995); the interval's half-width is the standard error times t(97.5 %), whichever
    way it was found. A claim may be wrong in the share `errors` of runs. `within` is what the
    figures leave open (a logarithm): a claim asks for more than that, too, and for more than what
    counts as a difference.
    """
    if len(logs) < 2:
        return None
    half = math.log1p(half_width(interval_of_logs(logs)) or 0.0)
    degrees = len(logs) - 1
    claimed = student_quantile(degrees, 0.5 + claim_confidence(len(logs), errors=errors) / 2)
    shown = student_quantile(degrees, 0.5 + CONFIDENCE / 2)
    error = half / shown
    asked = max(claimed * error, within, math.log(NOTICEABLE_RATIO))
    return math.expm1(asked + student_quantile(degrees, POWER) * error)
