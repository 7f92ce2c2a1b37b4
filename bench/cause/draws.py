"""Set-ups drawn by a seed: each for a cause, with a second resource that is more or less near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from math import ceil
from random import Random

from cause.model import (
    GENERATOR_SECONDS,
    HAPROXY_SECONDS,
    MORE,
    PGBOUNCER_SECONDS,
    POSTGRES_SECONDS,
    ROW_SECONDS,
    SERVER_SECONDS,
    SetUp,
    gain,
)

from laptime.api.causes import Cause

WORTH = 1.05
"""More of a resource that gives less is none that limits: as `laptime explain` has it."""
BORDER = 0.02
"""The model is no more exact than that: how often it comes to it is counted beside."""

TRIED = (
    Cause.SERVER_CPU,
    Cause.DATABASE_CONNECTIONS,
    Cause.PGBOUNCER_POOL,
    Cause.HAPROXY_CAP,
    Cause.POSTGRES_CPU,
    Cause.PGBOUNCER_CPU,
    Cause.HAPROXY_CPU,
    Cause.UPSTREAM,
)
"""Of which an experiment can give the reference server more."""
NOT_TRIED = (
    Cause.SERVER_CONCURRENCY,
    Cause.POSTGRES_LOCKS,
    Cause.UNEVEN_WORKERS,
    Cause.GENERATOR,
    Cause.NODE,
    Cause.OFFERED_LOAD,
)
"""Slots and processes of the reference server are no field of a run; the others all arms share."""
IN_SERIES = "pair"
"""Two in series, of which neither alone gives anything: a kind of its own, made to be one."""
WANTED: Mapping[str, int] = {
    **{one.value: 11 for one in TRIED},
    **{one.value: 2 for one in NOT_TRIED},
    IN_SERIES: 10,
}
"""How many set-ups of each cause, and of pairs."""

_INNER = (Cause.DATABASE_CONNECTIONS, Cause.PGBOUNCER_POOL, Cause.POSTGRES_CPU, Cause.SERVER_CPU)
_OUTER = (Cause.SERVER_CONCURRENCY, Cause.HAPROXY_CAP)
_IN_SERIES = (
    (Cause.DATABASE_CONNECTIONS, Cause.PGBOUNCER_POOL),
    (Cause.HAPROXY_CAP, Cause.DATABASE_CONNECTIONS),
    (Cause.HAPROXY_CAP, Cause.PGBOUNCER_POOL),
    (Cause.SERVER_CONCURRENCY, Cause.PGBOUNCER_POOL),
)
"""Outer and inner places that can be in series so that it shows. Not slots of the server that are
as many as its connections, or as HAProxy lets through: nobody counts who waits for them, so all
readings are the same with them and without, and to name them would be a guess."""
_BOTH_END = 0.2
"""Share of other set-ups whose second resource ends where the first one does."""


def lacking(had: Iterable[str]) -> list[str]:
    """Return what is still wanted, each kind as often as it lacks, of those that there are."""
    left = Counter(WANTED)
    left.subtract(Counter(had))
    return [kind for kind in WANTED for _ in range(left[kind])]


def next_kind(seed: str, number: int, had: Iterable[str]) -> str:
    """Return for what the set-up of that number is drawn: something that lacks; else anything.

    Seeds follow commits, so an order of all by the seed alone would leave some kinds out where
    a count goes over several.
    """
    return Random(f"{seed} {number} kind").choice(lacking(had) or lacking(()))


def drawn(seed: str, number: int, kind: str) -> SetUp:
    """Return the set-up of that number and kind: one that, as the model has it, the kind limits.

    By itself, or by pairs of which neither alone does. Where a cause limits only together with
    another one by chance, as a CPU and places can that end at one rate, it is drawn again: such a
    pair rests on times that never vary. Where they do, each waits for the other now and then, and
    more of either gives something.
    """
    dice = Random(f"{seed} {number}")
    while True:
        if kind == IN_SERIES:
            outer, inner = dice.choice(_IN_SERIES)
            it, wanted = _in_series(dice, outer, inner), frozenset([outer, inner])
        else:
            cause = Cause(kind)
            it, wanted = _PLAIN.get(cause, _with_a_second)(dice, cause), frozenset([cause])
        if wanted in limits(it):
            return it


def limits(it: SetUp) -> list[frozenset[Cause]]:
    """Return what limits a set-up: causes more of which give WORTH, or pairs if no single does."""
    there = [one for one, more in MORE.items() if more(it) != it]
    single = [frozenset([one]) for one in there if gain(it, one) >= WORTH]
    if single:
        return single
    return [frozenset(pair) for pair in combinations(there, 2) if gain(it, *pair) >= WORTH]


def _in_series(dice: Random, outer: Cause, inner: Cause) -> SetUp:
    """Return a set-up of as many outer places as inner ones, each held for nearly the same time.

    Who has an outer one finds an inner one free, so more of these give nothing, however long
    anything takes. By Little's law N places that are held for T give N / T at most: more of the
    outer ones give no more than the ratio of the times, of which the outer one is longer by what
    server and tiers compute and by the ways between them, about a millisecond, beside a statement
    of 35 ms and more that needs no CPU. Nothing else is near: twice as many of both are at most
    half as many as the users, and use less than a quarter of the CPU.
    """
    places = {outer: dice.randint(2, 6)}
    places[inner] = places[outer]
    return SetUp(
        users=dice.randint(24, 48),
        pause=dice.uniform(0.035, 0.06),
        slots=places.get(Cause.SERVER_CONCURRENCY),
        connections=places.get(Cause.DATABASE_CONNECTIONS, 40),
        pool=places.get(Cause.PGBOUNCER_POOL),
        cap=places.get(Cause.HAPROXY_CAP),
    )


def _with_a_second(dice: Random, cause: Cause) -> SetUp:
    """Return a set-up that one resource limits to some rate, and another to one that is near."""
    rate = dice.uniform(50, 180)
    others = [one for one in (*_INNER, *_OUTER) if one is not cause]
    second = dice.choice(others)
    near = 1.0 if dice.random() < _BOTH_END else 1.05 * (2.4 / 1.05) ** dice.random()
    it = SetUp(
        users=dice.randint(20, 48),
        burn=0.15 / rate * dice.random(),
        hold=dice.choice([0.0, dice.uniform(0.005, 0.025)]),
        pause=dice.uniform(0.006, 0.03),
    )
    # Those inside first: what is around them is held while they are waited for.
    first_inner = sorted([(cause, rate), (second, rate * near)], key=lambda one: one[0] in _OUTER)
    for what, most in first_inner:
        it = _bounded(it, what, most, dice)
    return it


def _bounded(it: SetUp, what: Cause, rate: float, dice: Random) -> SetUp:
    """Return a set-up of which one resource allows about so many requests per second."""
    taken = it.hold + it.burn + it.pause + SERVER_SECONDS + POSTGRES_SECONDS
    places = max(1, ceil(rate * it.pause - 0.5))
    match what:
        case Cause.DATABASE_CONNECTIONS:
            return replace(it, connections=places)
        case Cause.PGBOUNCER_POOL:
            return replace(it, pool=places)
        case Cause.POSTGRES_CPU:
            cores = round(dice.uniform(0.2, 0.6), 2)
            rows = max(0, round((cores / rate - POSTGRES_SECONDS) / ROW_SECONDS))
            return replace(it, postgres_cpu=cores, rows=rows)
        case Cause.SERVER_CPU if dice.random() < 0.5:
            return replace(it, burn=1 / rate - SERVER_SECONDS)
        case Cause.SERVER_CPU:
            cores = round(dice.uniform(0.2, 0.6), 2)
            return replace(it, burn=cores / rate - SERVER_SECONDS, server_cpu=cores, threads=2)
        case Cause.SERVER_CONCURRENCY:
            return replace(it, slots=max(1, ceil(rate * taken - 0.5)))
        case Cause.HAPROXY_CAP:
            return replace(it, cap=max(1, ceil(rate * taken - 0.5)))
        case _:
            raise ValueError(what)


def _lock(dice: Random, _: Cause) -> SetUp:
    return SetUp(
        users=dice.randint(12, 32),
        pause=dice.uniform(0.008, 0.03),
        lock=True,
        connections=dice.choice([3, 5, 8, 40]),
    )


def _uneven(dice: Random, _: Cause) -> SetUp:
    each = dice.uniform(0.01, 0.02)
    return SetUp(users=dice.randint(10, 24), burn=each, hold=each, processes=2)


def _upstream(dice: Random, _: Cause) -> SetUp:
    return SetUp(users=dice.randint(4, 12), upstream=round(dice.uniform(0.02, 0.08), 3), threads=2)


def _tier_cpu(dice: Random, cause: Cause) -> SetUp:
    """Return a set-up in which a part has CPU for some hundred requests per second."""
    rate, users = dice.uniform(250, 600), dice.randint(12, 32)
    match cause:
        case Cause.PGBOUNCER_CPU:
            cores = round(rate * PGBOUNCER_SECONDS, 3)
            return SetUp(users, pool=25, pgbouncer_cpu=max(0.01, cores))
        case Cause.HAPROXY_CPU:
            cores = round(rate * HAPROXY_SECONDS, 3)
            return SetUp(users, cap=100, haproxy_cpu=max(0.01, cores))
        case _:
            return SetUp(users, generator_cpu=max(0.01, round(rate * GENERATOR_SECONDS, 3)))


def _node(dice: Random, _: Cause) -> SetUp:
    return SetUp(users=16, burn=dice.uniform(0.003, 0.008), threads=16)


def _offered(dice: Random, _: Cause) -> SetUp:
    if dice.random() < 0.5:
        return SetUp(users=64, rate=round(dice.uniform(30, 300)), pause=dice.uniform(0.002, 0.01))
    hold = dice.uniform(0.01, 0.04)
    return SetUp(users=dice.randint(1, 3), hold=hold, slots=dice.choice([None, 4, 8]))


_PLAIN: Mapping[Cause, Callable[[Random, Cause], SetUp]] = {
    Cause.POSTGRES_LOCKS: _lock,
    Cause.UNEVEN_WORKERS: _uneven,
    Cause.UPSTREAM: _upstream,
    Cause.PGBOUNCER_CPU: _tier_cpu,
    Cause.HAPROXY_CPU: _tier_cpu,
    Cause.GENERATOR: _tier_cpu,
    Cause.NODE: _node,
    Cause.OFFERED_LOAD: _offered,
}
