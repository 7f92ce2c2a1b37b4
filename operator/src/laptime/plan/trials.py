"""The trials of a run and their order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from laptime.api.spec import BenchmarkRunSpec

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
    run_name: str, spec: BenchmarkRunSpec, seed: int, repetitions: int | None = None
) -> tuple[Trial, ...]:
    """Return all trials of so many repetitions (the spec's) in the order in which they run.

    Each repetition is a block with every (server, load) once, so that a slow drift of the machine
    hits all servers alike; within a block the order is shuffled, so that no server always follows
    the same other one. The order depends on nothing but spec and seed, and more repetitions only
    add to its end. A run that only verifies has none.
    """
    if spec.verify_only:
        return ()
    pairs = [(server.name, load.name) for server in spec.servers for load in spec.loads]
    digits = max(3, len(str(len(pairs) * spec.most_repetitions)))
    trials: list[Trial] = []
    for repetition in range(1, (repetitions or spec.first_look) + 1):
        for server, load in _shuffled(pairs, seed, repetition):
            ordinal = len(trials) + 1
            name = f"{run_name}-trial-{ordinal:0{digits}d}"
            trials.append(Trial(name, ordinal, server, load, repetition))
    return tuple(trials)


def _shuffled(pairs: list[tuple[str, str]], seed: int, repetition: int) -> list[tuple[str, str]]:
    # Ordered by a hash and not by random.shuffle, whose order may differ between Python versions:
    # an operator of a new version must go on with the same plan.
    def rank(pair: tuple[str, str]) -> bytes:
        return hashlib.sha256(f"{seed}/{repetition}/{pair[0]}/{pair[1]}".encode()).digest()

    return sorted(pairs, key=rank)
