"""What a set-up can do, and what more of each resource would give, by a model of its own.

A closed circuit: so many users, each of which asks again as soon as it has its answer. A request
takes, one after the other and one inside the other, what the reference server and the tiers before
and behind it take: a place at HAProxy, a slot, a wait, a CPU, a connection, a place in PgBouncer's
pool, a statement. All times are fixed, so the throughput is counted by playing it through, without
any formula that could be wrong where two resources are nearly alike.

The server's threads do more than to burn: one takes a request in before that waits for a slot, and
one has to read the answer of the database while connection and slot are still held. So whoever
burns holds up those whose statement is over, and connections of a busy thread are held for longer
than its statements take: more threads shorten that, and more connections fill the time.

Real times vary. Where a statement ends about when somebody else burns, or two resources end at one
rate, a millisecond decides what more of either gives: there the model may be far off, and no pair
in series rests on it (draws.py).

It knows nothing of Laptime: neither readings nor rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from laptime.api.causes import Cause

SERVER_SECONDS = 0.0003
"""CPU time of a request at the reference server without `BURN`; likewise the following ones. A
third of it before the request has a slot, one until the statement is sent, one when it is over:
nobody measured the parts, and all of it is so short that it matters little how it is cut."""
POSTGRES_SECONDS = 0.0002
PGBOUNCER_SECONDS = 0.00008
HAPROXY_SECONDS = 0.00012
GENERATOR_SECONDS = 0.00006
NODE_CPUS = 2
ROW_SECONDS = 0.00000008
"""CPU time of Postgres for a row that it makes and counts."""
TIMER_SECONDS = 0.0008
"""By how much a wait is longer than it was asked for: of a timer of Go as of `pg_sleep`."""
_WARM = 400
_COUNTED = 1600


@dataclass(frozen=True)
class SetUp:
    """What a request takes and how much there is of it. Times in seconds, CPU in cores."""

    users: int
    burn: float = 0.0
    """CPU time in the server."""
    hold: float = 0.0
    """Without any CPU, in a slot."""
    pause: float = 0.0
    """Without any CPU, in a statement."""
    rows: int = 0
    lock: bool = False
    """Whether the pause is in a lock that every statement takes."""
    threads: int = 1
    server_cpu: float | None = None
    processes: int = 1
    """Above 1: each of one thread, and the first has all connections but one for each other."""
    apart: bool = False
    """What the server does beside burning needs none of the threads that burn."""
    slots: int | None = None
    connections: int = 40
    pool: int | None = None
    cap: int | None = None
    postgres_cpu: float | None = None
    pgbouncer_cpu: float | None = None
    haproxy_cpu: float | None = None
    generator_cpu: float | None = None
    node_cpus: float = NODE_CPUS
    upstream: float = 0.0
    """What an upstream takes before the answer."""
    rate: float | None = None
    """Requests per second of an open load."""


def throughput(it: SetUp) -> float:
    """Return the answers per second that a set-up gives.

    A limit of CPU bounds the mean: what runs goes at full speed until the quota of a period is used
    up, and the periods are short beside a trial.
    """
    most = min(_by_cpu(it))
    if it.rate is not None:
        return min(it.rate, most, _circuit(replace(it, rate=None)))
    return min(most, _circuit(it))


MORE: dict[Cause, Callable[[SetUp], SetUp]] = {
    Cause.SERVER_CPU: lambda it: replace(
        it, threads=2 * it.threads, server_cpu=_twice(it.server_cpu)
    ),
    Cause.SERVER_CONCURRENCY: lambda it: replace(it, slots=_twice_of(it.slots)),
    Cause.UNEVEN_WORKERS: lambda it: (
        replace(it, processes=1, threads=it.processes, apart=True) if it.processes > 1 else it
    ),
    Cause.PGBOUNCER_POOL: lambda it: replace(it, pool=_twice_of(it.pool)),
    Cause.DATABASE_CONNECTIONS: lambda it: replace(it, connections=2 * it.connections),
    Cause.POSTGRES_CPU: lambda it: replace(it, postgres_cpu=_twice(it.postgres_cpu)),
    Cause.POSTGRES_LOCKS: lambda it: replace(it, pause=it.pause / 2 if it.lock else it.pause),
    Cause.HAPROXY_CAP: lambda it: replace(it, cap=_twice_of(it.cap)),
    Cause.PGBOUNCER_CPU: lambda it: replace(it, pgbouncer_cpu=_twice(it.pgbouncer_cpu)),
    Cause.HAPROXY_CPU: lambda it: replace(it, haproxy_cpu=_twice(it.haproxy_cpu)),
    Cause.UPSTREAM: lambda it: replace(it, upstream=it.upstream / 2),
    Cause.GENERATOR: lambda it: replace(it, generator_cpu=_twice(it.generator_cpu)),
    Cause.NODE: lambda it: replace(it, node_cpus=2 * it.node_cpus),
    Cause.OFFERED_LOAD: lambda it: replace(
        it, users=2 * it.users, rate=2 * it.rate if it.rate is not None else None
    ),
}
"""What more of each resource means: twice as much of it, or half as long."""


def gain(it: SetUp, *causes: Cause) -> float:
    """Return how many times as good a set-up is with more of these resources at once."""
    better = it
    for cause in causes:
        better = MORE[cause](better)
    return throughput(better) / throughput(it)


def _twice(cores: float | None) -> float | None:
    return None if cores is None else 2 * cores


def _twice_of(places: int | None) -> int | None:
    return None if places is None else 2 * places


def _by_cpu(it: SetUp) -> Iterator[float]:
    """Yield the most requests per second that each CPU allows."""
    server = it.burn + SERVER_SECONDS
    postgres = POSTGRES_SECONDS + it.rows * ROW_SECONDS
    if it.server_cpu is not None:
        yield it.server_cpu / server
    for cores, cost in (
        (it.postgres_cpu, postgres),
        (it.pgbouncer_cpu, PGBOUNCER_SECONDS),
        (it.haproxy_cpu, HAPROXY_SECONDS),
        (it.generator_cpu, GENERATOR_SECONDS),
    ):
        if cores is not None:
            yield cores / cost
    tiers = PGBOUNCER_SECONDS * (it.pool is not None) + HAPROXY_SECONDS * (it.cap is not None)
    yield it.node_cpus / (server + postgres + GENERATOR_SECONDS + tiers)


class _Places:
    """A resource of so many places, first come first served; None: any number."""

    def __init__(self, places: int | None) -> None:
        self.free = places
        self.waiting: deque[_Asking] = deque()


@dataclass(eq=False)
class _Asking:
    """A user on his way, and the places that he takes next."""

    way: Iterator[_Step]
    wanted: tuple[_Places, ...] = ()


_Step = float | tuple[_Places, ...] | _Places | None
"""What a user does: wait for so long, take places, give one back, or be done with a request."""


def _circuit(it: SetUp) -> float:
    """Play a closed circuit through and return the answers per second in its steady state."""
    if it.processes > 1:
        # The first process has all users but one for each other, who have theirs to themselves.
        # Each burns on its main thread, and does all else on another one.
        each = replace(it, processes=1, threads=1, apart=True)
        others = it.processes - 1
        first = _circuit(replace(each, users=max(1, it.users - others)))
        return first + others * _circuit(replace(each, users=1))
    cap, slots, cpu = _Places(it.cap), _Places(it.slots), _Places(it.threads)
    other = _Places(None) if it.apart else cpu
    connections, pool = _Places(it.connections), _Places(it.pool)
    lock = _Places(1 if it.lock else None)
    statement, postgres = POSTGRES_SECONDS + it.rows * ROW_SECONDS, _Places(NODE_CPUS)
    part = SERVER_SECONDS / 3

    def user() -> Iterator[_Step]:
        while True:
            yield (cap,)
            yield from _computed(part, other)
            yield (slots,)
            yield _waited(it.hold) + _waited(it.upstream)
            yield from _computed(it.burn + part, cpu)
            yield connections, pool, lock
            yield _waited(it.pause)
            yield lock
            yield (postgres,)
            yield statement
            yield from (postgres, pool)
            yield from _computed(part, other)
            yield from (connections, slots, cap)
            yield None

    return _played([user() for _ in range(it.users)])


def _computed(seconds: float, thread: _Places) -> Iterator[_Step]:
    """Yield the steps of whoever computes for so long.

    Nobody makes way: Go asks for that after 10 ms at the earliest, which is about a whole burn.
    """
    yield (thread,)
    yield seconds
    yield thread


def _waited(seconds: float) -> float:
    return seconds + TIMER_SECONDS if seconds else 0.0


def _played(users: list[Iterator[_Step]]) -> float:
    """Return how many requests per second these users have answered."""
    now, done, began, order = 0.0, 0, 0.0, count()
    pending = [(0.0, next(order), _Asking(one)) for one in users]
    while pending and done < _WARM + _COUNTED:
        now, _, one = heappop(pending)
        ready = deque([one])
        while ready:
            one = ready.popleft()
            while _taken(one):
                step = next(one.way)
                if isinstance(step, tuple):
                    one.wanted = step
                elif isinstance(step, _Places):
                    ready.extend(_given_back(step))
                elif step is None:
                    done += 1
                    began = now if done == _WARM else began
                else:
                    heappush(pending, (now + step, next(order), one))
                    break
    return (done - _WARM) / (now - began)


def _taken(one: _Asking) -> bool:
    """Have a user take the places that he wants; return whether he has them all, or he waits."""
    while one.wanted:
        place = one.wanted[0]
        if place.free == 0:
            place.waiting.append(one)
            return False
        if place.free is not None:
            place.free -= 1
        one.wanted = one.wanted[1:]
    return True


def _given_back(place: _Places) -> list[_Asking]:
    """Return who gets a place that is given back: the first who waits for it, or nobody."""
    if place.waiting:
        one = place.waiting.popleft()
        one.wanted = one.wanted[1:]
        return [one]
    if place.free is not None:
        place.free += 1
    return []
