"""From what a generator said to the figures of one trial."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from laptime.api import doubts
from laptime.api.attempts import Fault
from laptime.api.loads import Load
from laptime.api.results import (
    Figures,
    NetworkPath,
    Saturation,
    TrialOutcome,
    TrialResult,
    Validity,
)
from laptime.api.script import ScriptFigures
from laptime.api.text import shown, told_apart
from laptime.catalog import Request
from laptime.measure.batches import error_share
from laptime.measure.by_design import think_times
from laptime.measure.generator import (
    GeneratorCost,
    GeneratorEndpoint,
    GeneratorPhase,
    GeneratorResult,
    GeneratorSearch,
    GeneratorSecond,
)
from laptime.measure.histogram import Histogram, HistogramError
from laptime.measure.script import script_figures
from laptime.measure.statements import expected_statements, most_in_flight, statements_of_work
from laptime.measure.validity import (
    Judgement,
    judge_answers,
    judge_generator,
    judge_script,
    judge_search,
    judge_statements,
)
from laptime.plan import SentSession, Trial, within_sessions

NOT_MEASURED = ("warmup", "setup", "teardown")
"""Phases that are in no figure of a server; the last two are those of a script."""
MAX_ENDPOINTS = 50
"""Figures of their own for this many requests of a scenario or script, the most used ones."""
_MOST_SECONDS = 86_400


def trial_result(
    trial: Trial,
    result: GeneratorResult,
    load: Load | None = None,
    requests: Sequence[Request] = (),
    generator_cpus: float | None = None,
    sessions: Sequence[SentSession] = (),
) -> TrialResult:
    """Return the figures of a trial; a result that cannot be used makes a failed trial.

    `load` is what the generator was told to send, `requests` are those of the scenario and
    `sessions` those that the load sends: they are what the figures are judged by. `generator_cpus`
    is the limit of each generator's pod in cores; None without one.
    """
    if result.trial and result.trial != trial.name:
        return failed_trial(
            trial,
            "ResultOfAnotherTrial",
            f"the generator answered for {result.trial[:80]} and not for {trial.name}",
        )
    phase = measured_phase(result)
    if phase is None:
        return failed_trial(
            trial, "NothingMeasured", "the generator's result has no phase but the warm-up"
        )
    try:
        figures = _figures_of_phase(phase, result, load)
        endpoints = {
            name: _figures_of_endpoint(endpoint, phase) for name, endpoint in _most_used(phase)
        }
        share = generator_share(result, generator_cpus)
        script = (
            script_figures(result.script, phase.dropped_iterations, result.warnings)
            if result.script
            else None
        )
        judgement = _judged(
            figures, endpoints, phase, result, script, share, load, requests, sessions
        )
    except HistogramError as error:
        return failed_trial(
            trial, "ResultGarbled", f"a histogram of the generator cannot be read: {error}"
        )
    return TrialResult(
        trial=trial.name,
        ordinal=trial.ordinal,
        server=trial.server,
        load=trial.load,
        repetition=trial.repetition,
        beside=trial.beside,
        outcome=TrialOutcome.MEASURED,
        validity=judgement.validity,
        validity_reasons=list(judgement.reasons),
        database_schema=result.database_schema,
        started_at=_rfc3339(phase.first_request_at),
        finished_at=_rfc3339(phase.last_response_at),
        figures=figures,
        endpoints=endpoints,
        generator_cpu_seconds=sum(cost.cpu_seconds for cost in result.costs),
        generator_wall_seconds=max(cost.wall_seconds for cost in result.costs),
        generator_share=share,
        network=_network(result.costs),
        # Those of a search are of all its steps, the requests those of one.
        statements=None
        if result.statements is None or result.search is not None
        else statements_of_work(result.statements),
        script=script,
    )


def _network(costs: Iterable[GeneratorCost]) -> NetworkPath | None:
    """Return what all generators saw of the network; None where none says anything."""
    known = [one for one in costs if one.segments_sent or one.round_trip_seconds is not None]
    if not known:
        return None
    trips = [one.round_trip_seconds for one in known if one.round_trip_seconds is not None]
    return NetworkPath(
        round_trip_seconds=min(trips, default=None),
        segments_sent=sum(one.segments_sent for one in known),
        segments_sent_again=sum(one.segments_sent_again for one in known),
        segments_out_of_order=sum(one.segments_out_of_order for one in known),
    )


def failed_trial(
    trial: Trial, reason: str, message: str, fault: Fault | None = None
) -> TrialResult:
    """Return the result of a trial that measured nothing; `reason` is CamelCase."""
    return TrialResult(
        trial=trial.name,
        ordinal=trial.ordinal,
        server=trial.server,
        load=trial.load,
        repetition=trial.repetition,
        beside=trial.beside,
        outcome=TrialOutcome.FAILED,
        reason=reason,
        message=message[:1000],
        fault=fault,
        validity=Validity.INVALID,
        validity_reasons=[doubts.FAILED.says(reason=reason)],
    )


def measured_phase(result: GeneratorResult) -> GeneratorPhase | None:
    """Return everything that is measured as one phase; None when there is nothing of it.

    A k6 script may have several scenarios: their counts are added, and the window is from the
    first request of all to the last response of all.
    """
    phases = [phase for name, phase in sorted(result.phases.items()) if name not in NOT_MEASURED]
    used = [phase for phase in phases if phase.requests or phase.dropped_iterations] or phases
    if len(used) <= 1:
        return used[0] if used else None
    errors: dict[str, int] = {}
    endpoints: dict[str, GeneratorEndpoint] = {}
    for number, phase in enumerate(used):
        for kind, count in phase.errors.items():
            errors[kind] = errors.get(kind, 0) + count
        for name, endpoint in phase.endpoints.items():
            endpoints[name if name not in endpoints else f"{name} ({number + 1})"] = endpoint
    return GeneratorPhase(
        first_request_at=min(
            (phase.first_request_at for phase in used if phase.requests), default=0.0
        ),
        last_response_at=max(phase.last_response_at for phase in used),
        requests=sum(phase.requests for phase in used),
        responses=sum(phase.responses for phase in used),
        completed_in_window=sum(_completed(phase) for phase in used),
        errors=errors,
        bytes_received=sum(phase.bytes_received for phase in used),
        dropped_iterations=sum(phase.dropped_iterations for phase in used),
        lateness=_merged(phase.lateness for phase in used).encode()
        if any(phase.lateness for phase in used)
        else "",
        endpoints=endpoints,
        seconds=_on_one_clock(used),
    )


def right_answers_by_second(phase: GeneratorPhase) -> dict[int, int]:
    """Return how many right answers ended in each whole second of a phase, by its number.

    The last second is left out where the phase ends within it.
    """
    window = _window(phase)
    return {
        second.t: max(0, second.requests - second.errors)
        for second in phase.seconds
        if second.t + 1 <= window + 1e-6
    }


def latency_histogram(phase: GeneratorPhase) -> Histogram:
    """Return the response times of all endpoints of a phase together.

    Raises:
        HistogramError: one of them cannot be read.
    """
    return _merged(endpoint.latency for endpoint in phase.endpoints.values())


def uncorrected_histogram(phase: GeneratorPhase) -> Histogram:
    """Return the response times from sent and not from due; empty but for open loads.

    Raises:
        HistogramError: one of them cannot be read.
    """
    return _merged(endpoint.uncorrected_latency for endpoint in phase.endpoints.values())


def lateness_histogram(phase: GeneratorPhase) -> Histogram:
    """Return how long after they were due requests were sent; empty but for open loads.

    Raises:
        HistogramError: it cannot be read.
    """
    return _decode(phase.lateness)


def _on_one_clock(phases: Sequence[GeneratorPhase]) -> list[GeneratorSecond]:
    """Return the seconds of several phases, counted from the start of the first of them."""
    began = [phase.first_request_at for phase in phases if phase.requests]
    requests: Counter[int] = Counter()
    errors: Counter[int] = Counter()
    for phase in phases:
        shift = round(phase.first_request_at - min(began)) if phase.requests else 0
        for second in phase.seconds:
            requests[second.t + shift] += second.requests
            errors[second.t + shift] += second.errors
    return [GeneratorSecond(t=t, requests=requests[t], errors=errors[t]) for t in sorted(requests)]


def _most_used(phase: GeneratorPhase) -> list[tuple[str, GeneratorEndpoint]]:
    # A script can make a name for each request: what is stored must stay small.
    by_use = sorted(phase.endpoints.items(), key=lambda item: -item[1].requests)
    kept = {told_apart(name): endpoint for name, endpoint in by_use[:MAX_ENDPOINTS]}
    return sorted(kept.items(), key=lambda item: item[0])


def _found(search: GeneratorSearch | None) -> Saturation | None:
    if search is None:
        return None
    return Saturation(
        low_rate=search.low,
        high_rate=search.high or None,
        breaking_rate=search.breaking or None,
        p99_objective_seconds=search.p99_seconds,
        error_rate_objective=search.error_rate,
    )


def _figures_of_phase(phase: GeneratorPhase, result: GeneratorResult, load: Load | None) -> Figures:
    # A request that was due and never sent had no answer in time either. How many requests an
    # iteration of a script would have sent nobody knows.
    dropped = 0 if result.script else phase.dropped_iterations
    kinds = {**phase.errors, "dropped": dropped}
    failed = sum(kinds.values())
    window = _window(phase)
    server_time = _merged(one.server_time for one in phase.endpoints.values())
    return Figures(
        requests=phase.requests + dropped,
        errors=failed,
        errors_by_kind={shown(kind): count for kind, count in sorted(kinds.items()) if count},
        window_seconds=window,
        requests_per_second=_completed(phase) / window if window > 0 else 0.0,
        within_share=error_share(_every_second(phase)) if load and load.closed else None,
        bytes_received=phase.bytes_received,
        latency=latency_histogram(phase).response_times(failed),
        server_time=server_time.latency(),
        uncorrected_latency=uncorrected_histogram(phase).response_times(failed),
        lateness_p99_seconds=lateness_histogram(phase).quantile_seconds(0.99)
        if phase.lateness
        else None,
        saturation=_found(result.search),
    )


def _every_second(phase: GeneratorPhase) -> list[int]:
    """Return the right answers of each whole second, also of those in which nothing ended."""
    known, whole = right_answers_by_second(phase), int(_window(phase) + 1e-6)
    # A generator may say anything: no load takes a day.
    return [known.get(t, 0) for t in range(whole)] if whole <= _MOST_SECONDS else []


def _figures_of_endpoint(endpoint: GeneratorEndpoint, phase: GeneratorPhase) -> Figures:
    window = _window(phase)
    right = max(0, endpoint.requests - endpoint.errors)
    if endpoint.completed_in_window is not None:
        completed = float(endpoint.completed_in_window)
    else:
        # Answers that came after the window are known for the whole phase only: each endpoint
        # takes its share of them.
        all_right = sum(max(0, one.requests - one.errors) for one in phase.endpoints.values())
        completed = _completed(phase) * right / all_right if all_right else 0.0
    failed = endpoint.errors + endpoint.dropped
    return Figures(
        requests=endpoint.requests + endpoint.dropped,
        errors=failed,
        window_seconds=window,
        requests_per_second=completed / window if window > 0 else 0.0,
        latency=_decode(endpoint.latency).response_times(failed),
        server_time=_decode(endpoint.server_time).latency(),
        uncorrected_latency=_decode(endpoint.uncorrected_latency).response_times(failed),
    )


def _window(phase: GeneratorPhase) -> float:
    if phase.window_seconds is not None:
        return phase.window_seconds
    return max(0.0, phase.last_response_at - phase.first_request_at)


def _completed(phase: GeneratorPhase) -> int:
    if phase.completed_in_window is not None:
        return phase.completed_in_window
    return max(0, phase.requests - sum(phase.errors.values()))


def _merged(texts: Iterable[str]) -> Histogram:
    return Histogram.merged(_decode(text) for text in texts)


def _decode(text: str) -> Histogram:
    return Histogram.decode(text) if text else Histogram()


def _judged(
    figures: Figures,
    endpoints: Mapping[str, Figures],
    phase: GeneratorPhase,
    result: GeneratorResult,
    script: ScriptFigures | None,
    share: float,
    load: Load | None,
    requests: Sequence[Request],
    sessions: Sequence[SentSession],
) -> Judgement:
    answers = judge_answers(figures, script)
    if script is not None:
        answers = answers.and_also(judge_script(script, load))
    thinking = (0.0, 0.0) if load is None else think_times(load, endpoints, requests)
    said = judge_generator(
        figures,
        phase,
        result.cores,
        share,
        load,
        thinking,
        result.unread_seconds,
        within_sessions(sessions),
    )
    if figures.latency is None:
        # Why nothing came back may be the generator's doing.
        return answers.and_also(said)
    if answers.validity is Validity.INVALID:
        return answers
    if result.search is not None:
        answers = answers.and_also(judge_search(result.search))
        if answers.validity is Validity.INVALID:
            return answers
    judgement = answers.and_also(said)
    if load is None or result.statements is None or result.search is not None:
        return judgement
    ran = statements_of_work(result.statements)
    right = figures.requests - figures.errors
    expected = expected_statements(requests, endpoints, load)
    return judgement.and_also(
        judge_statements(ran, figures.requests, right, expected, most_in_flight(load))
    )


def generator_share(result: GeneratorResult, cpus: float | None = None) -> float:
    """Return the share (0 … 1) of its CPU that the busiest generator used in the measured phase.

    `cpus` is the limit of each generator's pod in cores; None without one.
    """
    return max(_share(cost, cpus or math.inf) for cost in result.costs)


def _share(cost: GeneratorCost, limit: float) -> float:
    """Return the share of its CPU that one generator used.

    The higher of two: all its threads against all cores it may use, and its busiest thread
    against one core, since a load of one thread cannot use a second core. A pod's limit may be
    less than either: Go rounds it up to whole cores, and to two at least.
    """
    available = cost.wall_seconds * min(cost.max_procs, limit)
    whole = cost.cpu_seconds / available if available > 0 else 0.0
    return min(1.0, max(whole, cost.busiest_thread / min(1.0, limit)))


def _rfc3339(unix_seconds: float) -> str | None:
    if not 0 < unix_seconds < 1e11:
        return None
    moment = datetime.fromtimestamp(unix_seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
