"""Which faults are injected, how often, and when: fixed before anything is run. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

OF_EACH_KIND = 8
CRASH_POINTS = 30
"""Writes before which, and after which, the operator is killed."""
LEAST_FAULTS = 200
LEAST_KINDS = 25
MOST_TRIES = 3
"""So often a fault that did not bite is tried, each time at another moment."""
MOST_DELAY_SECONDS = 1.5
IN_TIME = 0.8
"""Of the writes by which a kind can be felt: what did not bite came too late as a rule."""
WHILE_MEASURING = 0.6
"""Share of its writes that a run has done, about, when its last trial begins."""


class Family(StrEnum):
    """Where a fault is."""

    OPERATOR = "operator"
    """Its process."""
    CONNECTION = "connection"
    """Between operator and API server: a proxy."""
    CLUSTER = "cluster"
    """Its daemons, its nodes, other people's objects, pods of the run."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    `blamed` is who may be said to have lost an attempt of a trial; nobody else may, and where it is
    empty none may be lost. `until` is the share of the run's writes by which it can be felt.
    """

    name: str
    family: Family
    what: str
    blamed: frozenset[str] = frozenset()
    count: int = OF_EACH_KIND
    until: float = 1.0


def _operator(name: str, what: str, count: int = OF_EACH_KIND) -> Kind:
    return Kind(name, Family.OPERATOR, what, count=count)


def _connection(name: str, what: str) -> Kind:
    return Kind(name, Family.CONNECTION, what)


def _cluster(name: str, what: str, *blamed: str) -> Kind:
    return Kind(name, Family.CLUSTER, what, frozenset(blamed))


def _pods(name: str, what: str, *blamed: str) -> Kind:
    """Of what only pods can feel that are there, or are to come."""
    return Kind(name, Family.CLUSTER, what, frozenset(blamed), until=WHILE_MEASURING)


KINDS = (
    _operator("killed-before-write", "SIGKILL when the n-th write is asked for", CRASH_POINTS),
    _operator("killed-after-write", "SIGKILL when it was done and not yet answered", CRASH_POINTS),
    _operator("operator-frozen", "SIGSTOP for 5 to 40 s"),
    _connection("answer-cut", "1 to 5 answers break off after the n-th byte"),
    _connection("answer-lost", "1 to 4 writes are done and never answered: connection closed"),
    _connection("watch-cut", "all open watches break off after the n-th byte more"),
    _connection("watch-frozen", "all open watches stay open and say nothing any more"),
    _connection("watch-expired", "watches break off; for 2 to 10 s new ones are too old (410)"),
    _connection("stale-list", "watches break off; for 4 to 15 s lists are 3 to 8 s old"),
    _connection("conflict", "1 to 5 writes are refused with 409"),
    _connection("too-many-requests", "everything is refused with 429 for 3 to 10 s"),
    _connection("server-error", "everything is refused with 500 for 3 to 10 s"),
    _connection("no-answer", "1 or 2 requests are never answered"),
    _connection("slow-answers", "answers are 0.5 to 3 s late for 15 s"),
    _connection("clock-difference", "clocks of API server and node differ by 90 s, either way"),
    _cluster("etcd-frozen", "SIGSTOP for 3 to 20 s", "cluster", "node"),
    _cluster("etcd-killed", "SIGKILL, started again after 1 to 8 s", "cluster", "node"),
    _cluster("api-server-frozen", "SIGSTOP for 3 to 20 s", "cluster", "node"),
    _cluster("api-server-killed", "SIGKILL, started again after 1 to 8 s", "cluster", "node"),
    # A kubelet that starts says of all its pods that they are not ready until it has asked them:
    # nobody can tell that from a tier that is not.
    _cluster("kubelet-frozen", "SIGSTOP for 5 to 60 s", "cluster", "node", "tier"),
    _cluster("kubelet-killed", "SIGKILL, started again after 2 to 20 s", "cluster", "node", "tier"),
    _cluster("containerd-frozen", "SIGSTOP for 5 to 40 s", "cluster", "node"),
    _cluster("containerd-killed", "SIGKILL, started again after 2 to 15 s", "cluster", "node"),
    _pods("scheduler-stopped", "SIGSTOP or SIGKILL for 5 to 40 s", "cluster", "node"),
    _cluster("controllers-stopped", "SIGSTOP or SIGKILL for 5 to 40 s", "cluster", "node"),
    _cluster("rights-taken", "RoleBinding deleted for 3 to 12 s", "cluster"),
    _pods("quota-of-pods", "a quota that leaves room for no pod, for 5 to 20 s", "cluster"),
    # What is folded at the end was made in time: nobody makes a ConfigMap any more then.
    Kind(
        "quota-of-results",
        Family.CLUSTER,
        "a quota that leaves room for no ConfigMap, for 5 to 20 s, and until it was felt",
        until=WHILE_MEASURING,
    ),
    # A generator that finds no server, a server that finds no database: neither is theirs.
    _pods("dns-gone", "CoreDNS killed for 5 to 20 s", "cluster", "node", "generator"),
    _cluster("etcd-full", "etcd takes no more (NOSPACE) for 3 to 15 s", "cluster", "node"),
    # Pods are evicted, logs break off, Postgres cannot write: nothing of it is a server's.
    _cluster(
        "disk-full", "the node's disk is full for 3 to 30 s", "cluster", "node", "tier", "generator"
    ),
    _cluster("watchers-killed", "Prometheus or the node's agent killed"),
    _pods("generator-deleted", "pod of the generator deleted", "cluster", "generator"),
    _pods("server-deleted", "pod of the server deleted", "cluster", "node"),
    _pods("tier-killed", "Postgres, PgBouncer or HAProxy killed or deleted", "tier", "cluster"),
    _pods("node-cordoned", "no pods are scheduled for 5 to 30 s", "cluster", "node"),
    _pods("node-tainted", "all pods are evicted, for 3 to 10 s", "cluster", "node", "tier"),
)
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True)
class Fault:
    """One fault, and the moment at which it comes.

    That is after a share of the writes that an undisturbed run makes, and some seconds later.
    `size` (0 to 1) is how long or how much it is, within what its kind says, `place` (0 to 1) where
    in an answer.
    """

    kind: Kind
    number: int
    """From 0, within its kind."""
    share: float
    delay_seconds: float
    size: float
    place: float

    @property
    def name(self) -> str:
        """What its run is called."""
        return f"{self.kind.name}-{self.number}"

    def between(self, low: float, high: float) -> float:
        """Return the value between two bounds that its size says."""
        return low + (high - low) * self.size

    def count(self, low: int, high: int) -> int:
        """Return the whole number between two bounds, both included, that its size says."""
        return min(high, low + int((high - low + 1) * self.size))

    def write(self, writes: int) -> int:
        """Return which write (from 1) it comes at, of an undisturbed run with so many."""
        return 1 + min(writes - 1, int(self.share * writes))


def plan(seed: str) -> list[Fault]:
    """Return all faults in their order: a round of every kind, shuffled, then the next one."""
    faults = []
    for turn in range(OF_EACH_KIND):
        of_turn = [
            fault(seed, kind, number)
            for kind in KINDS
            for number in range(*(kind.count * one // OF_EACH_KIND for one in (turn, turn + 1)))
        ]
        random.Random(f"{seed} round {turn}").shuffle(of_turn)
        faults += of_turn
    return faults


def fault(seed: str, kind: Kind, number: int, tried: int = 0) -> Fault:
    """Return a fault; its moment is another one for each time that it was tried before.

    The moments of a kind are spread over the whole run: each has its part of it. They come in no
    order: the rounds shall be alike.
    """
    dice = random.Random(f"{seed} {kind.name} {number} {tried}")
    parts = list(range(kind.count))
    random.Random(f"{seed} {kind.name}").shuffle(parts)
    place = (parts[number] + dice.random()) / kind.count if tried == 0 else IN_TIME * dice.random()
    share = kind.until * place
    delay = MOST_DELAY_SECONDS * dice.random()
    return Fault(kind, number, share, delay, size=dice.random(), place=dice.random())
