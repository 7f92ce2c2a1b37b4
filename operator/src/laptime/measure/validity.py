"""When the figures of a trial can be trusted. Pure.

Doubtful figures stand with their reasons; invalid ones are about something else than the work that
was asked for. What each rule rests on is written in docs/measurement.md, "Validity"; its words are
in the closed list of doubts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from laptime.api import doubts
from laptime.api.doubts import Said
from laptime.api.loads import Load
from laptime.api.results import Figures, ResponseTimes, TrialResult, Validity
from laptime.api.script import MORE_CHECKS, CheckResult, ScriptFigures
from laptime.api.script_load import Checks
from laptime.api.server import Server
from laptime.api.side_services import SIDE_PREFIX
from laptime.api.usage import NodeUsage, TrialUsage
from laptime.measure.altered import Altered
from laptime.measure.generator import GeneratorPhase, GeneratorSearch, GeneratorSecond
from laptime.measure.histogram import Histogram
from laptime.plan import ALONE, WithinSessions, seconds_at_a_rate, too_short

MAX_ERROR_RATE = 0.001
"""More errors than this share make a figure doubtful."""
DOUBTFUL_CHECKS = 0.001
INVALID_CHECKS = 0.01
"""A check of a script that fails in more than this share of its answers."""
INVALID_EXCEPTIONS = 0.01
"""A script that threw in more than this share of its iterations did not do its work."""
MAX_GENERATOR_SHARE = 0.9
"""A generator that uses this share of its CPU may have been the limit itself."""
MAX_STOLEN_SHARE = 0.01
MAX_STOOD_STILL_SECONDS = 0.5
"""The agent counts what lasted for a second or longer; of that, so much may have been before or
after what was measured, and says little about it."""
MAX_OTHERS_SHARE = 0.25
"""Of a node's CPUs. Daemons of a small node use a tenth of it and more; a quarter is somebody's
work, and takes CPUs, caches and clock from what is measured."""
MAX_TRACKED_SHARE = 0.9
"""Of the entries that a node has for connections. It is read once a second: in between a load that
opens a connection for each request goes from here to full."""
MAX_THROTTLED_SHARE = 0.01
MAX_RATE_DEVIATION = 0.005
MAX_STATEMENT_DEVIATION = 0.02

NO_PORT = "port"
"""The kind of error of a request whose generator had no port left to connect from."""

_HISTOGRAM_WIDTH = 0.001
_LITTLE_MARGIN = 0.02
_DRAWS_OFF = 4 / math.sqrt(3)
"""Four standard deviations of a sum of times that are drawn evenly, in roots of their number and in
how far the longest is from their mean."""
_LATE_SHARE = 0.1
_LATE_SECONDS = 0.001
_DRIFT = 0.05
_DRIFT_ERRORS = 3.0
_DRIFT_SECONDS = 8
_CHECKS_NAMED = 3
_TIERS = {
    "postgres": "Postgres",
    "pgbouncer": "PgBouncer",
    "haproxy": "HAProxy",
    "delay": "the delay",
    "upstream": "the upstream",
}


@dataclass(frozen=True)
class Judgement:
    """How far figures can be trusted, and why not further."""

    validity: Validity
    reasons: tuple[Said, ...] = ()

    @staticmethod
    def of(doubtful: Iterable[Said | None], invalid: Iterable[Said | None] = ()) -> Judgement:
        """Return the judgement that follows from reasons; None is no reason."""
        worst = tuple(reason for reason in invalid if reason)
        reasons = worst + tuple(reason for reason in doubtful if reason)
        if worst:
            return Judgement(Validity.INVALID, reasons)
        return Judgement(Validity.DOUBTFUL if reasons else Validity.VALID, reasons)

    def and_also(self, other: Judgement) -> Judgement:
        """Return both together: the worse validity, the reasons of both."""
        order = (Validity.VALID, Validity.DOUBTFUL, Validity.INVALID)
        worse = max(self.validity, other.validity, key=order.index)
        return Judgement(worse, (*self.reasons, *other.reasons))


def doubted(result: TrialResult, judgement: Judgement) -> TrialResult:
    """Return a result with one judgement more."""
    if not judgement.reasons:
        return result
    known = Judgement(result.validity, tuple(map(Said, result.validity_reasons)))
    both = known.and_also(judgement)
    return result.model_copy(
        update={"validity": both.validity, "validity_reasons": list(both.reasons)}
    )


def judge_answers(figures: Figures, script: ScriptFigures | None = None) -> Judgement:
    """Judge by what came back: whether anything did, and how many errors.

    A script may ask by other protocols than those whose requests are counted, such as WebSocket;
    one that only asked others than the server measured nothing of it.
    """
    if script is not None and script.iterations and not figures.requests and not script.other_hosts:
        return Judgement.of([doubts.NO_REQUEST.says()])
    late = figures.requests - figures.errors
    if figures.latency is not None and figures.requests_per_second <= 0 and late > 0:
        return Judgement(Validity.INVALID, (doubts.ALL_TOO_LATE.says(late=late),))
    if figures.latency is None or figures.requests_per_second <= 0:
        most = max(figures.errors_by_kind.items(), key=lambda kind: kind[1], default=None)
        why = f", mostly {most[0]} ({most[1]} of {figures.requests} requests)" if most else ""
        return Judgement(Validity.INVALID, (doubts.NO_RIGHT_ANSWER.says(mostly=why),))
    return Judgement.of([error_reason(figures.requests, figures.errors)])


def error_reason(requests: int, errors: int) -> Said | None:
    """Return why so many errors make a figure doubtful; None when there are few enough."""
    if not requests or errors / requests <= MAX_ERROR_RATE:
        return None
    return doubts.ERRORS.says(share=errors / requests)


def judge_script(script: ScriptFigures, load: Load | None) -> Judgement:
    """Judge by what a script says itself: its checks, its warm-up, whether it ran as it meant to.

    Each check is judged by itself: one that never holds must not be hidden by a hundred that
    always do. And all of them together: many that fail seldom must not hide each other.
    """
    doubtful: list[Said | None] = []
    wrong: list[Said | None] = []
    if load is None or load.script is None or load.script.checks is Checks.JUDGE:
        failed = [one for one in script.checks if one.failed_share > DOUBTFUL_CHECKS]
        worst = [one for one in failed if one.failed_share > INVALID_CHECKS]
        wrong += _failed_checks(worst)
        doubtful += _failed_checks([one for one in failed if one not in worst])
        answers, share = _wrong_answers(script)
        if share > INVALID_CHECKS and not worst:
            wrong.append(_answers_wrong(script, answers, share))
        elif share > DOUBTFUL_CHECKS and not failed:
            doubtful.append(_answers_wrong(script, answers, share))
    count = sum(one.iterations for one in script.exceptions)
    if count:
        thrown = doubts.THROWN.says(
            count=count,
            iterations=max(script.iterations, count),
            message=script.exceptions[0].message,
        )
        often = count > INVALID_EXCEPTIONS * script.iterations
        (wrong if often else doubtful).append(thrown)
    if not script.warmup_named:
        doubtful.append(doubts.NO_WARMUP.says())
    if script.aborted:
        doubtful.append(doubts.ENDED_EARLY.says())
    if script.dropped_iterations:
        due = script.iterations + script.dropped_iterations
        doubtful.append(doubts.ITERATIONS_DROPPED.says(dropped=script.dropped_iterations, due=due))
    return Judgement.of(doubtful, wrong)


def _wrong_answers(script: ScriptFigures) -> tuple[int, float]:
    """Return of how many answers, and which share of them (0 … 1), failed any check.

    How many answers there were k6 does not say: at least as many as the check that was asked most
    often had. So the share is an upper bound of that of all answers, and where a check is asked
    once in each iteration also of the share of iterations with a wrong answer.
    """
    asked = [one.passed + one.failed for one in script.checks if one.name != MORE_CHECKS]
    answers = max(asked, default=0)
    return answers, min(1.0, script.wrong_answers / answers) if answers else 0.0


def _answers_wrong(script: ScriptFigures, answers: int, share: float) -> Said:
    failing = [one.name for one in script.checks if one.failed]
    names = ", ".join(f"'{name}'" for name in failing[:_CHECKS_NAMED])
    if len(failing) > _CHECKS_NAMED:
        names += f" and {len(failing) - _CHECKS_NAMED} more"
    return doubts.ANSWERS_WRONG.says(
        wrong=script.wrong_answers, answers=answers, share=share, names=names
    )


def _failed_checks(checks: Sequence[CheckResult]) -> list[Said]:
    said = [
        doubts.CHECK_FAILED.says(
            name=one.name,
            failed=one.failed,
            answers=one.passed + one.failed,
            share=one.failed_share,
        )
        for one in checks[:_CHECKS_NAMED]
    ]
    if len(checks) > _CHECKS_NAMED:
        said.append(doubts.MORE_CHECKS_FAILED.says(count=len(checks) - _CHECKS_NAMED))
    return said


def judge_generator(
    figures: Figures,
    phase: GeneratorPhase,
    cores: float,
    share: float,
    load: Load | None,
    thinking: tuple[float, float] = (0.0, 0.0),
    unread: float = 0.0,
    within: WithinSessions = ALONE,
) -> Judgement:
    """Judge by what the generator says of itself: whether it sent the load that was asked for.

    `cores` is the CPU time of all generators divided by the length of the measured phase, `share`
    how much of its CPU the busiest one used, `thinking` the mean and the longest think time, in
    seconds, `unread` the seconds from an answer's arrival to its reading, of all together, `within`
    what users think between the steps of the load's sessions.
    """
    doubtful = [_no_head_room(share), _no_port(figures)]
    if load is not None and figures.latency is not None:
        doubtful += [
            _breaks_littles_law(figures, cores, load, thinking, unread),
            _rate_not_held(figures, load, within),
            _sessions_too_long(load, within),
            _late(figures, phase, load, within),
            _searched_by_thinkers(figures, load, within),
            _not_steady(phase.seconds, figures.window_seconds) if load.closed else None,
        ]
    return Judgement.of(doubtful)


def judge_search(search: GeneratorSearch) -> Judgement:
    """Judge by how a search went: whether it found the server's own limit."""
    if not search.low:
        return Judgement.of([], [doubts.NO_RATE.says()])
    return Judgement.of(
        [
            None if search.high else doubts.NO_UPPER_END.says(rate=search.low),
            doubts.SEARCHED_LATE.says(rate=search.high) if search.late else None,
            doubts.RESTLESS.says(steps=search.restless) if search.restless else None,
        ]
    )


def _no_head_room(share: float) -> Said | None:
    if share < MAX_GENERATOR_SHARE:
        return None
    return doubts.GENERATOR_BUSY.says(share=share)


def _no_port(figures: Figures) -> Said | None:
    lost = figures.errors_by_kind.get(NO_PORT, 0)
    return doubts.NO_PORT.says(lost=lost, requests=figures.requests) if lost else None


def _breaks_littles_law(
    figures: Figures, cores: float, load: Load, thinking: tuple[float, float], unread: float
) -> Said | None:
    """Compare the connections with throughput times mean response and think time.

    In a closed load each connection always has a request under way, or a user who thinks, but for
    the time until the generator reads an answer that is there, which it counts, and what it needs
    until the next request, which its CPU time bounds. At the end requests and thoughts reach beyond
    the window, or connections have none left: by one response time and one think time at most.
    Where think times are drawn, their mean is off by chance.
    """
    latency, window = figures.latency, figures.window_seconds
    connections = load.users
    if load.closed is None or not connections or latency is None or window <= 0:
        return None
    if figures.errors > MAX_ERROR_RATE * figures.requests:
        return None
    answers, (mean, longest) = figures.requests - figures.errors, thinking
    busy = (answers * latency.mean_seconds + figures.requests * mean) / window
    at_the_end = (latency.max_seconds + longest) / window
    between = cores / connections + unread / window / connections
    by_chance = _DRAWS_OFF * (longest - mean) * math.sqrt(figures.requests) / window / connections
    allowed = at_the_end + by_chance + _LITTLE_MARGIN + _HISTOGRAM_WIDTH
    if 1.0 - between - allowed <= busy / connections <= 1.0 + allowed:
        return None
    time = "time and think time" if longest else "time"
    return doubts.LITTLES_LAW.says(connections=connections, time=time, busy=busy)


def _rate_not_held(figures: Figures, load: Load, within: WithinSessions) -> Said | None:
    if load.open is None or load.measured_seconds is None:
        return None
    due = load.open.rate * load.measured_seconds
    # One request is due at the start, and sessions are whole: by as much the number may be off.
    if abs(figures.requests - due) <= max(within.most_steps, MAX_RATE_DEVIATION * due):
        return None
    held = figures.requests / load.measured_seconds
    return doubts.RATE_NOT_HELD.says(due=held, rate=load.open.rate)


def _sessions_too_long(load: Load, within: WithinSessions) -> Said | None:
    """Say that a rate was hardly there at any time, which runs of older versions may ask for."""
    seconds = seconds_at_a_rate(load)
    if seconds is None or not too_short(load, within):
        return None
    return doubts.SESSIONS_TOO_LONG.says(behind=within.behind_seconds, seconds=seconds)


def _late(
    figures: Figures, phase: GeneratorPhase, load: Load, within: WithinSessions
) -> Said | None:
    """Say when requests were late, and not because the server kept all connections busy."""
    latency = figures.latency
    if load.paced is None or load.users is None or latency is None or not phase.lateness:
        return None
    p99 = _p99_or_slowest(latency)
    late = Histogram.decode(phase.lateness).quantile_seconds(0.99)
    if late < _LATE_SECONDS or late <= _LATE_SHARE * p99:
        return None
    # From sent: a request that is late has no connection yet. Older generators do not say it.
    sent = figures.uncorrected_latency or latency
    hung = figures.errors_by_kind.get("timeout", 0) / figures.requests * load.timeout_seconds
    if load.open is not None:
        in_flight = figures.requests_per_second * (sent.mean_seconds + hung)
    else:
        # Connections may have been short at the highest rate alone, where answers took longest.
        in_flight = load.paced.highest_rate * (_p99_or_slowest(sent) + hung)
    thinking = load.paced.highest_rate * within.thinking_seconds
    if thinking > load.users / 2:
        return doubts.THINKERS.says(taken=min(thinking, load.users), users=load.users)
    if in_flight + thinking > load.users / 2:
        return None
    return doubts.GENERATOR_LATE.says(late=1e3 * late, p99=1e3 * p99)


def _p99_or_slowest(latency: ResponseTimes) -> float:
    """Return the p99; where so many requests failed that there is none, the slowest answer's."""
    return latency.max_seconds if latency.p99_seconds is None else latency.p99_seconds


def _searched_by_thinkers(figures: Figures, load: Load, within: WithinSessions) -> Said | None:
    """Say that a search may have ended where users who think had the connections."""
    found = figures.saturation
    if found is None or load.users is None:
        return None
    thinking = (found.high_rate or found.low_rate) * within.thinking_seconds
    if thinking <= load.users / 2:
        return None
    return doubts.THINKERS.says(taken=min(thinking, load.users), users=load.users)


def _not_steady(seconds: Sequence[GeneratorSecond], window: float) -> Said | None:
    """Compare the first quarter of the whole seconds with the rest.

    A slow beginning is a server that was still warming up; no warm-up mends a fast one.

    The noise of one second is taken from neighbouring seconds (von Neumann's successive
    differences), so that a trend does not hide itself.
    """
    counts = [one.requests - one.errors for one in seconds if one.t + 1 <= window]
    if len(counts) < _DRIFT_SECONDS:
        return None
    first, rest = counts[: len(counts) // 4], counts[len(counts) // 4 :]
    begins, goes_on = sum(first) / len(first), sum(rest) / len(rest)
    if goes_on <= 0:
        return None
    steps = [(after - before) ** 2 for before, after in pairwise(counts)]
    noise = math.sqrt(sum(steps) / (2 * len(steps)))
    error = noise * math.sqrt(1 / len(first) + 1 / len(rest))
    difference = begins - goes_on
    if abs(difference) <= max(_DRIFT * goes_on, _DRIFT_ERRORS * error):
        return None
    kind = doubts.WARMING_UP if difference < 0 else doubts.SLOWING_DOWN
    return kind.says(seconds=len(first), by=abs(difference) / goes_on)


def judge_statements(
    ran: float | None, requests: int, right: int, expected: float | None, connections: int
) -> Judgement:
    """Judge by the statements that the database ran, against those that the work needs.

    `expected` is per request; `connections` is how many requests may have been counted on one side
    of the ends of the phase and not on the other. Fewer statements than right answers need is
    other work than was asked for; errors may have cost statements without a right answer.
    """
    if ran is None or expected is None or right <= 0:
        return Judgement(Validity.VALID)
    margin = 1 + MAX_STATEMENT_DEVIATION
    figures = {"ran": ran / right, "expected": expected}
    if ran < (right - connections) * expected / margin:
        return Judgement.of([], [doubts.FEWER_STATEMENTS.says(**figures)])
    if ran > (requests + connections) * expected * margin + connections:
        return Judgement.of([doubts.MORE_STATEMENTS.says(**figures)])
    return Judgement(Validity.VALID)


def judge_usage(usage: TrialUsage | None) -> Judgement:
    """Judge by what the pods used. That a server is held back by its limit is a result."""
    if usage is None:
        return Judgement(Validity.VALID)
    doubtful: list[Said | None] = []
    for part in usage.components:
        throttled = part.throttled_share or 0.0
        if throttled < MAX_THROTTLED_SHARE:
            continue
        if part.component == "generator":
            doubtful.append(doubts.GENERATOR_HELD_BACK.says(share=throttled))
        elif (tier := _tier(part.component)) is not None:
            doubtful.append(doubts.TIER_HELD_BACK.says(tier=tier, share=throttled))
    doubtful += [said for node in usage.nodes for said in node_doubts(node)]
    doubtful += [tracking_doubt(node) for node in usage.nodes]
    return Judgement.of(doubtful)


def node_doubts(node: NodeUsage) -> list[Said]:
    """Return what says that a node was not there for the trial alone."""
    said = []
    stolen = node.stolen_share or 0.0
    if stolen > MAX_STOLEN_SHARE:
        said.append(doubts.STOLEN_TIME.says(share=stolen, node=node.node))
    still = node.stood_still_seconds or 0.0
    if still > MAX_STOOD_STILL_SECONDS:
        said.append(doubts.STOOD_STILL.says(seconds=still, node=node.node))
    others = node.others_cores or 0.0
    if node.cpus and others > MAX_OTHERS_SHARE * node.cpus:
        figures = {"cores": others, "cpus": node.cpus, "node": node.node}
        said.append(doubts.NEIGHBOURS.says(**figures))
    return said


def tracking_doubt(node: NodeUsage) -> Said | None:
    """Return what says that a node had no room to keep track of connections, or hardly any.

    None where nobody told: that a load opens many connections is no reading. A table that has room
    drops packets too, where two of a connection that is new come at once, as those of DNS do.
    """
    tracking = node.connection_tracking
    if tracking is None:
        return None
    share, lost = tracking.full_share, tracking.lost
    if share is None:
        return doubts.TRACKING_LOST.says(node=node.node, lost=lost) if lost else None
    if share <= MAX_TRACKED_SHARE:
        return None
    return doubts.TRACKING_FULL.says(node=node.node, share=share, lost=lost)


def _tier(component: str) -> str | None:
    """Return what a tier is called whose CPU limit matters; None: it is none of them."""
    if component.startswith(SIDE_PREFIX):
        return f"service {component.removeprefix(SIDE_PREFIX)}"
    return _TIERS.get(component)


def judge_pods(pods: Iterable[tuple[str, Altered]]) -> Judgement:
    """Judge by what the cluster made of the pods of a trial: what each is of, what differs.

    What an older version of Laptime has made does not say what was asked for.
    """
    found = (said for what, one in pods for said in _pod_doubts(what, one))
    return Judgement.of(dict.fromkeys(found))


def _pod_doubts(what: str, pod: Altered) -> list[Said]:
    said = []
    if pod.added:
        names = [f"{'init ' * (one in pod.prepares)}container {one}" for one in pod.added]
        said.append(doubts.CONTAINER_ADDED.says(containers=" and ".join(names), what=what))
    if pod.limits:
        said.append(doubts.LIMIT_ADDED.says(what=what, limits=" and ".join(pod.limits)))
    for has, asked in pod.resources:
        said.append(doubts.OTHER_RESOURCES.says(what=what, has=has, asked=asked))
    for container, image, asked in pod.images:
        part = what if container == pod.main else f"container {container} of {what}"
        said.append(doubts.IMAGE_REPLACED.says(what=part, image=image, asked=asked))
    return said


def judge_server(server: Server) -> Judgement:
    """Judge by what nobody knows of a Service that Laptime does not deploy."""
    if server.service is None:
        return Judgement(Validity.VALID)
    name = server.service.name
    return Judgement.of([doubts.NOT_FRESH.says(service=name), doubts.SHARED.says(service=name)])
