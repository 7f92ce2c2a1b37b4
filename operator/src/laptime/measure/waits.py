"""What connections waited for inside Postgres, by kind. Pure.

Postgres says for each connection what it waits for, `Type:Event` (PostgreSQL documentation, "The
Cumulative Statistics System", pg_stat_activity). Statements wait for each other (locks), for files,
or for the write-ahead log; other waits are a statement's own (`pg_sleep`) or the server's (Client).
Names of events have had other capitals since Postgres 17 (`WALSync`, now `WalSync`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from laptime.api.causes import Cause
from laptime.api.evidence import DatabaseEvidence

_SAYS = {
    Cause.POSTGRES_LOCKS: "a lock",
    Cause.POSTGRES_IO: "a file",
    Cause.POSTGRES_WAL: "the write-ahead log",
}
# What is a kind of wait although its type does not say so.
_EVENTS = {
    "ipc:bufferio": Cause.POSTGRES_IO,
    "ipc:procarraygroupupdate": Cause.POSTGRES_LOCKS,
    "ipc:xactgroupupdate": Cause.POSTGRES_LOCKS,
    "timeout:spindelay": Cause.POSTGRES_LOCKS,
}
_SHOWN = 0.05
_STEPS = 60


@dataclass(frozen=True)
class Wait:
    """The connections that waited for one kind of thing: means over the window."""

    cause: Cause
    connections: float
    events: Mapping[str, float]
    """The same by `Type:Event`, largest first."""

    @property
    def said(self) -> str:
        """What they waited for: `a lock (Lock:tuple 3.2, Lock:transactionid 0.9)`."""
        shown = [f"{name} {mean:.1f}" for name, mean in self.events.items() if mean >= _SHOWN]
        return f"{_SAYS[self.cause]} ({', '.join(shown)})"


def waits_by_kind(database: DatabaseEvidence) -> list[Wait]:
    """Return what connections that ran a statement waited for, the most frequent kind first."""
    kinds: dict[Cause, dict[str, float]] = {}
    for name, mean in sorted(database.waits.items(), key=lambda one: -one[1]):
        cause = _kind(name)
        if cause is not None:
            kinds.setdefault(cause, {})[name] = mean
    found = [Wait(cause, sum(events.values()), events) for cause, events in kinds.items()]
    return sorted(found, key=lambda one: -one.connections)


def one_lock_in_use(holders: float, waiting: float) -> float:
    """Return the share of the time in which one lock is taken that all of those who wait want.

    Of `holders` customers `waiting` are in its queue on average, the one that has it not counted.
    The finite-source queue M/M/1//N: D. Gross and C. M. Harris, Fundamentals of Queueing Theory,
    "Finite-Source Queues". Times that vary less than exponential ones make it more than this.
    """
    customers = round(holders)
    if waiting <= 0:
        return 0.0
    if waiting >= customers - 1:
        return 1.0
    low, high = 0.0, 1.0
    # How long it is kept, as a part of that and the time between: the queue grows with it.
    for _ in range(_STEPS):
        middle = (low + high) / 2
        _, queue = _finite_source(customers, middle / (1.0 - middle))
        low, high = (middle, high) if queue < waiting else (low, middle)
    return _finite_source(customers, low / (1.0 - low))[0]


def _finite_source(customers: int, demand: float) -> tuple[float, float]:
    """Return the utilisation and the mean queue of a single server, whoever is served left out."""
    weights = [1.0]
    for present in range(1, customers + 1):
        weights.append(weights[-1] * (customers - present + 1) * demand)
        if weights[-1] > 1e200:
            weights = [weight / 1e200 for weight in weights]
    total = sum(weights)
    busy = 1.0 - weights[0] / total
    present_mean = sum(number * weight for number, weight in enumerate(weights)) / total
    return busy, present_mean - busy


def _kind(name: str) -> Cause | None:
    name = name.lower()
    type_, _, event = name.partition(":")
    if name in _EVENTS:
        return _EVENTS[name]
    if type_ in ("io", "lwlock") and event.startswith("wal"):
        return Cause.POSTGRES_WAL
    if type_ in ("lock", "lwlock"):
        return Cause.POSTGRES_LOCKS
    return Cause.POSTGRES_IO if type_ == "io" else None
