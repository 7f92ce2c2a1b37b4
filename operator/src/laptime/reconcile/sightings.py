"""Since when things are known, by a clock of the operator's own that nobody sets.

Times in objects are set by the API server and by kubelets, whose clocks may differ from the
operator's by minutes. How long something has lasted is therefore counted from the moment in which
it was first seen; and not by the time of day, which is set, and jumps where the machine slept. An
operator that has just started counts anew: it waits longer, and blames nobody too early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from laptime.api.status import RunStatus
from laptime.reconcile.views import PodView, WorkloadView, format_time, parse_time

GAP_SECONDS = 60.0
"""A run is looked at every few seconds. After a longer gap the cluster had nobody to work for."""


class AtWork:
    """For how long a run has been looked at without a gap.

    Steps of a run begin at times that are stored in its status, and are over after so long. The
    time in which no operator was there, or no API server, is no time in which they made no
    progress; nor is that by which a clock was set.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = self._last_wall = 0.0

    def look(self, now: float, wall: float) -> float:
        """Return the seconds until now, which is the time of a clock that nobody sets.

        `wall` is that of the clock that times are stored by: where it went on otherwise it was set,
        or the machine slept.
        """
        passed, by_wall = now - self._last, wall - self._last_wall
        if self._since is None or passed > GAP_SECONDS or abs(by_wall - passed) > GAP_SECONDS:
            self._since = now
        self._last, self._last_wall = now, wall
        return now - self._since

    @property
    def since(self) -> float | None:
        """When that began, by the clock that nobody sets; None: nobody has looked yet."""
        return self._since


def without_absence(status: RunStatus, now: datetime, at_work_seconds: float) -> RunStatus:
    """Return a status whose turn has none of the time in which nobody worked on the run.

    `at_work_seconds` is for how long somebody has until now, without a gap. What was before is
    known by its last sign of life, the begin of a step, and a gap beyond that: a run of which the
    operator is started again and again has some of its turn counted each time, and an end. Where
    only a clock was set, the time at work is known already.
    """
    since = parse_time(status.turn_started_at)
    if since is None:
        return status
    last = max(since, parse_time(status.step_started_at) or since)
    before = (last - since).total_seconds() + GAP_SECONDS
    if now >= since and (now - since).total_seconds() - at_work_seconds <= before:
        return status
    used = (status.used_seconds or 0.0) + max(0.0, before - at_work_seconds)
    begin = format_time(now - timedelta(seconds=at_work_seconds))
    return status.model_copy(update={"turn_started_at": begin, "used_seconds": round(used, 1)})


class Sightings:
    """When each thing about the objects of a run was first seen."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], float] = {}

    def look(
        self,
        pods: Iterable[PodView],
        jobs: Iterable[WorkloadView],
        now: datetime,
        moment: float,
    ) -> tuple[tuple[PodView, ...], tuple[WorkloadView, ...]]:
        """Return the views with what is counted from now on, and forget what is gone.

        `moment` is now by a clock that nobody sets, in seconds. What the views have are times that
        are so long ago from `now`, whatever time of day it was then.
        """
        before, self._first = self._first, {}

        def first(*what: object) -> datetime:
            since = self._first.setdefault(what, before.get(what, moment))
            return now - timedelta(seconds=moment - since)

        def seen(pod: PodView) -> PodView:
            me = (pod.name, pod.uid)
            running = pod.running_since
            return replace(
                pod,
                known_since=first(*me),
                known_running_since=running and first(*me, "runs", running),
                deleting_since=pod.deleting_since and first(*me, "ends"),
                containers=tuple(
                    replace(one, ended_at=first(*me, one.name, one.ended_at))
                    if one.ended_at
                    else one
                    for one in pod.containers
                ),
            )

        known_jobs = (replace(job, known_since=first("Job", job.name, job.created)) for job in jobs)
        return tuple(map(seen, pods)), tuple(known_jobs)
