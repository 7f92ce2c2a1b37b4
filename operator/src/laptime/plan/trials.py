"""The trials of a run and their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Order
from laptime.plan.order import Treatment, orders

_MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class Trial:
    """One measurement: a server under a load, for the given time."""

    name: str
    ordinal: int
    """Place in the order of the trials, from 1."""
    server: str
    load: str
    repetition: int
    """From 1."""
    beside: str | None = None
    """Name of the trial that is measured at the same time; None: it is alone."""
    leads: bool = True
    """Whether the generators of the trial beside it meet at those of this one."""
    retry: int = 0
    """How often failed trials of its run had been asked for again before."""

    @property
    def meeting(self) -> str:
        """What this trial and the one beside it have in common: the name of the one that leads."""
        return self.name if self.leads or self.beside is None else self.beside


def seed_of(spec: BenchmarkRunSpec, uid: str) -> int:
    """Return the seed of the order of the trials: the spec's, or one made from the run's uid."""
    if spec.seed is not None:
        return spec.seed
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % (_MAX_SEED + 1)


def feeder_seed(uid: str, trial: Trial) -> int:
    """Return the seed of what feeders draw at random for a server whose data nobody brings back.

    No other attempt of the trial, also where it is asked for again, and no other trial of this run
    or of one that repeats it, draws the same: what is there once would be there already. It is
    below 2^53.
    """
    text = f"{uid}/{trial.name}" + (f"/{trial.retry}" if trial.retry else "")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 11


def plan_trials(
    run_name: str,
    spec: BenchmarkRunSpec,
    seed: int,
    repetitions: int | None = None,
    order: Order = Order.BALANCED,
) -> tuple[Trial, ...]:
    """Return all trials of so many repetitions (the spec's) in the order in which they run.

    Each repetition is a block with every (server, load) once, so that a slow drift of the machine
    hits all servers alike; in which order follows from the rule (see order.py), the spec and the
    seed alone, and more repetitions only add to its end. A run that was begun goes on by its own
    rule: order_of(). A run that only verifies has no trials. In a duet the two servers under a load
    follow each other, the one first that the order has first: it is made first, and leads.
    """
    if spec.verify_only:
        return ()
    pairs = tuple((server.name, load.name) for server in spec.servers for load in spec.loads)
    digits = max(3, len(str(len(pairs) * spec.most_repetitions)))
    many = repetitions or spec.first_look
    return _planned(f"{run_name}-trial-", digits, pairs, spec.duet, seed, many, order)


# A run is planned several times in each look at it, and may have thousands of trials.
@lru_cache(maxsize=8)
def _planned(
    prefix: str,
    digits: int,
    pairs: tuple[Treatment, ...],
    duet: bool,
    seed: int,
    repetitions: int,
    order: Order,
) -> tuple[Trial, ...]:
    blocks = orders(pairs, seed, repetitions, order)
    trials: list[Trial] = []
    for repetition, block in enumerate(blocks, 1):
        for server, load in _by_load(block) if duet else block:
            ordinal = len(trials) + 1
            name = f"{prefix}{ordinal:0{digits}d}"
            trials.append(Trial(name, ordinal, server, load, repetition))
    if not duet:
        return tuple(trials)
    return tuple(
        replace(one, beside=other.name, leads=one is first)
        for first, second in _pairs(trials)
        for one, other in ((first, second), (second, first))
    )


def _by_load(block: Sequence[Treatment]) -> list[Treatment]:
    """Return a repetition with the servers under each load side by side."""
    loads = list(dict.fromkeys(load for _, load in block))
    return sorted(block, key=lambda one: loads.index(one[1]))


def _pairs(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    return zip(trials[::2], trials[1::2], strict=True)
