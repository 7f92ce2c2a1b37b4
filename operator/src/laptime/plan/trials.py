"""The trials of a run and their order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import Order
from laptime.plan.order import orders

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


def seed_of(spec: BenchmarkRunSpec, uid: str) -> int:
    """Return the seed of the order of the trials: the spec's, or one made from the run's uid."""
    if spec.seed is not None:
        return spec.seed
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % (_MAX_SEED + 1)


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
    rule: order_of(). A run that only verifies has no trials.
    """
    if spec.verify_only:
        return ()
    pairs = [(server.name, load.name) for server in spec.servers for load in spec.loads]
    digits = max(3, len(str(len(pairs) * spec.most_repetitions)))
    blocks = orders(pairs, seed, repetitions or spec.first_look, order)
    trials: list[Trial] = []
    for repetition, block in enumerate(blocks, 1):
        for server, load in block:
            ordinal = len(trials) + 1
            name = f"{run_name}-trial-{ordinal:0{digits}d}"
            trials.append(Trial(name, ordinal, server, load, repetition))
    return tuple(trials)
