"""Following a run to its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from laptime.api import KIND
from laptime.api.status import State
from laptime.cli.display import Display
from laptime.cli.mistakes import Mistake, NewerVersion, NotAllowed, Unreachable
from laptime.cli.patience import PATIENCE_SECONDS, patiently
from laptime.cli.progress import Tracker, warnings
from laptime.cli.runs import Run, UnreadStatus
from laptime.cli.signals import INTERRUPTED

POLL_SECONDS = 0.5
_MOST_POLL_SECONDS = 5.0
"""Between two looks at a run that has waited for long: of a queue hundreds may be watched."""
_SHARE_OF_WAITING = 0.1
"""Of the time that a run has waited: so much later is seen that it goes on."""
_SILENT_OPERATOR_SECONDS = 10.0
_COUNT_SECONDS = 10.0
_COUNT_SECONDS_PER_TURN = 1.0
"""Whoever counts lists all runs that are not over; and a turn takes longer than that."""
_WAITING = (None, State.QUEUED, State.SUSPENDED)

OPERATOR_HINT = (
    "No sign of the operator yet. Is it running?  "
    "kubectl get deployments,pods -A "
    "-l app.kubernetes.io/name=laptime,app.kubernetes.io/component=operator"
)


class NotOver(Mistake):
    """A run took longer than somebody would wait for it."""


LEFT = (*INTERRUPTED, NotOver, NewerVersion, NotAllowed, Unreachable)
"""What ends the looking at a run, which may go on."""


def goes_on(ended: BaseException) -> bool:
    """Whether a run goes on, by what ended the looking at it."""
    return not (isinstance(ended, UnreadStatus) and ended.run.over)


def follow(
    fetch: Callable[[], Run | None],
    display: Display,
    before: Callable[[Run], int | None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    *,
    longest: float = math.inf,
    chosen: str = "",
) -> Run:
    """Show the run until it is over, and return it as it is then.

    `before` is asked now and then how many runs have their turn before one that is queued. A
    cluster that cannot be reached for a while is waited for. `chosen` are the options of kubectl
    that choose it.

    Raises:
        Mistake: the run was deleted, or the cluster was out of reach for two minutes.
        NotOver: it is not over after `longest` seconds.
        UnreadStatus: a newer version wrote its status.
    """
    tracker = Tracker()
    shown: set[str] = set()
    uid: str | None = None
    turns: int | None = None
    started = count_at = waits_since = clock()

    def warn_once(text: str) -> None:
        if text not in shown:
            shown.add(text)
            display.warn(text)

    while True:
        # Whoever would wait no longer than that does not do so for the cluster either.
        patience = min(PATIENCE_SECONDS, started + longest - clock())
        run = patiently(fetch, warn_once, clock, sleep, longest=patience)
        now = clock()
        if run is None or (uid is not None and run.uid != uid):
            raise Mistake(f"The {KIND} was deleted while it was followed.")
        uid = run.uid
        for text in warnings(run.status):
            warn_once(text)
        if (
            run.status.state is None or run.asks_again
        ) and now - started > _SILENT_OPERATOR_SECONDS:
            warn_once(f"{OPERATOR_HINT}{chosen}")
        if run.status.state is not State.QUEUED:
            turns, count_at = None, now
        elif now >= count_at:
            turns = before(run)
            count_at = now + max(_COUNT_SECONDS, _COUNT_SECONDS_PER_TURN * (turns or 0))
        view = tracker.view(run, now, turns)
        display.show(view)
        if run.over:
            return run
        if now - started >= longest:
            said = ", ".join(filter(None, (view.state, view.share)))
            raise NotOver(f"{run.name} is not over yet: {said}")
        if run.status.state not in _WAITING and not run.asks_again:
            waits_since = now
        pause = min(_MOST_POLL_SECONDS, _SHARE_OF_WAITING * (now - waits_since))
        sleep(min(max(POLL_SECONDS, pause), longest - (now - started)))
