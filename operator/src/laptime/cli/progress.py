"""What a run is doing now, as the progress bar needs it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from laptime.api.attempts import trial_of
from laptime.api.conditions import NORMAL_REASONS
from laptime.api.results import ResultRow
from laptime.api.status import (
    Condition,
    ConditionStatus,
    ConditionType,
    RunStatus,
    ServerState,
    State,
)
from laptime.cli.runs import Run
from laptime.plan import order_of, plan_profiles, plan_trials

# The headline and the table say these; Progressing repeats the reason of another condition.
_SAID_AT_THE_END = {
    ConditionType.SUCCEEDED,
    ConditionType.OBJECTIVES_MET,
    ConditionType.PROGRESSING,
}
_UNDER_WAY = (State.VERIFYING, State.RUNNING, State.FINISHING)


@dataclass(frozen=True)
class View:
    """One look at a run."""

    state: str
    completed: int
    """Trials that are over, or servers that are checked."""
    total: int
    """Those in all; 0 while that is not known."""
    position: float
    """Completed trials and the estimated share of the current one."""
    current: str
    """What is being measured, in words; empty between trials."""
    remaining_seconds: float | None
    rows: tuple[ResultRow, ...] = ()
    """What is measured so far."""
    repetitions: int = 0
    """Trials that each row will have; 0 while that is not known, or the results decide it."""
    counted: str = "trials"
    """What is counted: a run that only verifies has servers and no trials."""
    to_begin: bool = False
    """It waits or deploys, for nobody knows how long; the time left is of what comes then."""

    @property
    def all_measured(self) -> bool:
        """Whether nothing is left but to sum up."""
        over = self.total > 0 and self.completed >= self.total
        return not self.to_begin and (over or self.state == State.FINISHING)

    @property
    def share(self) -> str:
        """How many are over, of how many: `7/15 trials`; empty while that is not known."""
        return f"{self.completed}/{self.total} {self.counted}" if self.total else ""


class Tracker:
    """Turns looks at a run into views; between two updates of the status the time runs on."""

    def __init__(self) -> None:
        self._said: tuple[int, int | None] | None = None
        self._said_at = 0.0
        self._completed = 0
        self._completed_at = 0.0

    def view(self, run: Run, now: float, turns_before: int | None = None) -> View:
        """Return what is to be shown at `now` (seconds of a monotonic clock).

        `turns_before` says of a run that is queued how many come before it, where that is known.
        """
        status = run.status
        progress = status.progress
        completed = progress.completed if progress else 0
        total = progress.total if progress else 0
        said = (completed, progress.remaining_seconds if progress else None)
        if said != self._said:
            if self._said is None or completed != self._completed:
                self._completed, self._completed_at = completed, now
            self._said, self._said_at = said, now
        if not run.status.current_trial:
            # Deploying and verifying take time too, but are no part of the first trial.
            self._completed_at = now
        to_begin = status.state not in _UNDER_WAY
        if to_begin:
            # The time left does not pass while nothing is measured.
            self._said_at = now
        remaining = None if said[1] is None else max(0.0, said[1] - (now - self._said_at))
        return View(
            state=_state(run, turns_before),
            completed=completed,
            total=total,
            position=completed + self._share_of_current(now, completed, total, remaining),
            current=describe_trial(run),
            remaining_seconds=remaining,
            rows=tuple(status.results or ()),
            repetitions=run.spec.repetitions if run.spec and not run.spec.by_results else 0,
            counted="servers" if run.spec and run.spec.verify_only else "trials",
            to_begin=to_begin,
        )

    def _share_of_current(
        self, now: float, completed: int, total: int, remaining: float | None
    ) -> float:
        spent = now - self._completed_at
        if remaining is None or completed >= total or spent <= 0:
            return 0.0
        each = (spent + remaining) / (total - completed)
        return min(0.95, spent / each) if each > 0 else 0.0


def _state(run: Run, turns_before: int | None) -> str:
    said = None if run.asks_again else run.status.state
    state = str(said or "Waiting for the operator")
    if turns_before is None:
        return state
    if turns_before == 0:
        return state
    return f"{state}: at least {turns_before} run{'s' if turns_before > 1 else ''} before it"


def describe_trial(run: Run) -> str:
    """Return the current trial as `axum, closed, repetition 2 of 5`; empty when there is none."""
    status, spec = run.status, run.spec
    if spec is None or status.seed is None or not status.current_trial:
        return ""
    current = trial_of(status.current_trial)
    beside = trial_of(status.current_beside or "")
    trials = plan_trials(run.name, spec, status.seed, spec.most_repetitions, order_of(status))
    for trial in trials:
        if trial.name == current:
            load = f", {trial.load}" if len(spec.loads) > 1 else ""
            at_most = "at most " if spec.by_results else ""
            of = f"{at_most}{spec.most_repetitions}"
            lost = sum(one.trial == current for one in status.lost_attempts or [])
            again = f", attempt {lost + 1}" if lost else ""
            servers = " and ".join(one.server for one in trials if one.name in (current, beside))
            return f"{servers}{load}, repetition {trial.repetition} of {of}{again}"
    for profile in plan_profiles(run.name, spec):
        if profile.name == status.current_trial:
            return f"profile of {profile.server}"
    return ""


def warnings(status: RunStatus) -> list[str]:
    """Return what has gone wrong so far, one sentence each, the same text every time."""
    out = [server for server in status.servers or [] if server.state is ServerState.FAILED]
    said = [
        f"{condition.type} is False: {condition.reason}: {condition.message}"
        for condition in status.conditions or []
        if _is_alarm(condition)
        # Each server that is out has a sentence of its own.
        and not (out and condition.type == ConditionType.SERVERS_VERIFIED)
    ]
    said += [f"{server.name} is out: {server.reason}: {server.message}" for server in out]
    return said


def _is_alarm(condition: Condition) -> bool:
    return (
        condition.status is ConditionStatus.FALSE
        and condition.reason not in NORMAL_REASONS
        and condition.type not in _SAID_AT_THE_END
    )
