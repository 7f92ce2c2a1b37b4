"""What a script says beside its requests: the generator's words as they can be shown. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from laptime.api.interval import Interval
from laptime.api.script import (
    MORE_CHECKS,
    CheckResult,
    ComparedBy,
    ExceptionResult,
    OtherHost,
    ScriptFigures,
    ThresholdResult,
)
from laptime.api.text import shown, told_apart
from laptime.measure.generator import GeneratorScript, GeneratorThreshold
from laptime.measure.script_metrics import LARGEST, shown_metrics, too_large

MAX_THRESHOLDS = 100
LEAST_REST_SHARE = 0.1
LEAST_REST_SECONDS = 0.005
"""Of an iteration: what is less may be the time that k6 needs for it."""
OVERLAP_RATIO = 1.1
"""Of the time of requests to that of iterations: a little more may be of those that were cut."""
_MAX_EXECUTOR = 40
OTHER_ENDPOINTS = "other"
"""What the generator calls all further names of requests."""
MORE_HOSTS = "all further hosts"
MORE_EXCEPTIONS = "all further exceptions"
MAX_TRACE = 300
"""What is shown of an exception, in characters."""
_LEFT_OUT = re.compile(r"\d+ metrics (?:with numbers beyond \S+ )?are left out\b")
_PARTS_LEFT_OUT = "there are more parts of metrics by scenarios and tags than are kept"
"""How warnings begin that a trial had no room for a metric, or for one of parts of it."""


def script_figures(
    script: GeneratorScript, dropped_iterations: int, warned: Iterable[str] = ()
) -> ScriptFigures:
    """Return what a script says, with names that can be shown; `warned` is what k6 warned of."""
    checks = [
        CheckResult(name=told_apart(name), passed=one.passed, failed=one.failed)
        for name, one in script.checks.items()
    ]
    hosts = [
        OtherHost(host=told_apart(name), requests=one.requests, errors=one.errors)
        for name, one in script.other_hosts.items()
    ]
    warnings = [f"k6 warned: {text}" for text in warned]
    if script.more_checks is not None:
        more = script.more_checks
        checks.append(CheckResult(name=MORE_CHECKS, passed=more.passed, failed=more.failed))
        warnings.append(
            f"more than {len(script.checks)} names of checks: all further ones are counted "
            "together; give checks names that do not change"
        )
    if script.more_hosts is not None:
        others = script.more_hosts
        hosts.append(OtherHost(host=MORE_HOSTS, requests=others.requests, errors=others.errors))
        warnings.append(
            f"more than {len(script.other_hosts)} other hosts: all further ones are counted "
            "together"
        )
    exceptions = [
        ExceptionResult(message=shown(message, MAX_TRACE), iterations=count)
        for message, count in script.exceptions.items()
    ]
    if script.more_exceptions:
        more_thrown = ExceptionResult(message=MORE_EXCEPTIONS, iterations=script.more_exceptions)
        exceptions.append(more_thrown)
    if script.metrics_left_out:
        warnings.append(
            f"{script.metrics_left_out} metrics are left out: {len(script.metrics)} are kept"
        )
    if script.parts_left_out:
        warnings.append(
            f"{_PARTS_LEFT_OUT}: all further ones are left out; give tags values that do not change"
        )
    crowded = sum(
        one.type == "trend" and one.samples > 0 and one.cells is None
        for one in script.metrics.values()
    )
    if crowded:
        warnings.append(
            f"{crowded} trends have more different values than there is room for: they have no "
            "percentiles; round what is added to them, or use fewer"
        )
    large = sorted(told_apart(name) for name, one in script.metrics.items() if too_large(one))
    if large:
        warnings.append(
            f"{len(large)} metrics with numbers beyond {LARGEST:.0e} are left out, such as "
            f"{large[0]}: these are too large to be added up"
        )
    if script.endpoints_left_out:
        warnings.append(
            f"{script.endpoints_left_out} names of requests, the least used ones, are counted "
            f"together as '{OTHER_ENDPOINTS}'; give requests names that do not change"
        )
    if script.seconds_left_out:
        warnings.append("there was no room for the response times of each second: only for all")
    if len(script.thresholds) > MAX_THRESHOLDS:
        warnings.append(f"more than {MAX_THRESHOLDS} thresholds: all further ones are left out")
    together = checks_together(checks)
    failed = sum(one.failed for one in together)
    return ScriptFigures(
        warmup_named=bool(script.warmup),
        executors=[shown(one, _MAX_EXECUTOR) for one in script.executors],
        iterations=script.iterations,
        iteration_seconds=script.iteration_seconds,
        seconds=script.seconds,
        compared_by=_compared_by(script),
        dropped_iterations=dropped_iterations,
        aborted=script.aborted,
        checks_passed=sum(one.passed for one in together),
        checks_failed=failed,
        wrong_answers=failed if script.wrong_answers is None else script.wrong_answers,
        checks=together,
        exceptions=exceptions_together(exceptions),
        thresholds=[_threshold(one) for one in script.thresholds[:MAX_THRESHOLDS]],
        other_hosts=hosts_together(hosts),
        metrics=shown_metrics(script.metrics),
        warnings=warnings,
    )


def may_have_had(script: ScriptFigures, metric: str) -> bool:
    """Return whether a trial without a metric may have had no room for it, or no number."""
    return any(
        _LEFT_OUT.match(said) or ("{" in metric and said.startswith(_PARTS_LEFT_OUT))
        for said in script.warnings
    )


def _compared_by(script: GeneratorScript) -> ComparedBy:
    """Return which figure tells servers apart under this script.

    An iteration that takes longer than its requests rests, but for the time that k6 itself needs.
    Where requests take longer than the iterations that they are of, they were sent side by side
    (http.batch), and whether it rests between them is not known: by response times servers are
    told apart in both cases.
    """
    arrivals = any(kind.endswith("-arrival-rate") for kind in script.executors)
    rest = script.iteration_seconds - script.request_seconds
    rests = (
        script.iterations > 0
        and rest > LEAST_REST_SHARE * script.iteration_seconds
        and rest > LEAST_REST_SECONDS * script.iterations
    )
    beside = script.request_seconds > OVERLAP_RATIO * script.iteration_seconds > 0
    return ComparedBy.LATENCY if arrivals or rests or beside else ComparedBy.THROUGHPUT


def _threshold(said: GeneratorThreshold) -> ThresholdResult:
    counted = said.expression.lstrip().startswith("count")
    # k6 calls a threshold met that no sample has anything to say to: a slip in a tag's name would
    # pass every gate. How often something happened is known without a sample: never.
    known = said.samples > 0 or counted or not said.met
    value = said.value if said.samples or counted else None
    return ThresholdResult(
        metric=told_apart(said.metric),
        expression=told_apart(said.expression),
        contains=shown(said.contains, _MAX_EXECUTOR),
        met=said.met if known else None,
        measured=None if value is None else Interval(value=value),
        low=value,
        high=value,
        missed=0 if said.met else 1,
    )


def checks_together(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the checks with those of one name added up; those that failed most come first."""
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for one in checks:
        passed[one.name] += one.passed
        failed[one.name] += one.failed
    found = [_check(name, passed[name], failed[name]) for name in passed]
    return sorted(found, key=lambda one: (-one.failed_share, one.name))


def _check(name: str, passed: int, failed: int) -> CheckResult:
    answers = passed + failed
    rate = passed / answers if answers else None
    return CheckResult(name=name, passed=passed, failed=failed, rate=rate)


def exceptions_together(exceptions: Iterable[ExceptionResult]) -> list[ExceptionResult]:
    """Return the exceptions with those of one text added up; the most frequent come first."""
    by_text: dict[str, int] = {}
    for one in exceptions:
        by_text[one.message] = by_text.get(one.message, 0) + one.iterations
    ordered = sorted(by_text.items(), key=lambda one: (-one[1], one[0]))
    return [ExceptionResult(message=text, iterations=count) for text, count in ordered]


def hosts_together(hosts: Iterable[OtherHost]) -> list[OtherHost]:
    """Return the hosts with those of one name added up; those that were asked most come first."""
    by_name: dict[str, OtherHost] = {}
    for one in hosts:
        before = by_name.get(one.host, OtherHost(host=one.host))
        by_name[one.host] = OtherHost(
            host=one.host,
            requests=before.requests + one.requests,
            errors=before.errors + one.errors,
        )
    return sorted(by_name.values(), key=lambda one: (-one.requests, one.host))
