"""Whose turn it is, and how much of a turn anybody may have: the administrator's word. Pure.

Whoever may write runs cannot occupy the cluster: namespaces take turns by the time that they had,
and one run may not be larger than its namespace's caps. Runs in different lanes, which are sets of
nodes, have their turns at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from laptime.api.durations import format_duration, parse_duration
from laptime.api.egress import Destination
from laptime.api.resources import Resources, quantity, thousandths
from laptime.api.side_services import SideService
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.topology import SIZED_TIERS, Delay, HAProxy, PgBouncer, Postgres, Upstream
from laptime.plan import USUAL_RATE, plan_trials, remaining_seconds
from laptime.reconcile.queue import Card

CAP_EXCEEDED = "CapExceeded"
EVERYBODY = "*"
_WINDOW = timedelta(hours=24)
"""Time that a namespace had longer ago counts no more: nobody waits for ever to be even."""

_Range = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Caps:
    """The largest run of a namespace; None: no cap."""

    trials: int | None = None
    duration_seconds: float | None = None
    """Estimated before, and counted while the run has the lane."""
    servers: int | None = None
    generators: int | None = None
    cpu: float | None = None
    """Cores that the pods of one trial have together; under it each pod has to say how many."""
    memory: float | None = None
    """The same in bytes."""
    egress: tuple[str, ...] | None = None
    """Ranges of addresses and namespaces, within which all must be that `spec.egress` names."""

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> Caps:
        """Return the caps that the chart's values say.

        Raises:
            ValueError: a field is unknown, or has no such form.
        """
        found = dict(document)
        if "duration" in found:
            found["duration_seconds"] = parse_duration(str(found.pop("duration")))
        unknown = sorted(set(found) - {one.name for one in fields(cls)})
        if unknown:
            raise ValueError(f"unknown caps: {', '.join(unknown)}")
        for name in ("cpu", "memory"):
            if name in found:
                found[name] = quantity(str(found[name]))
        if "egress" in found:
            found["egress"] = tuple(str(one) for one in found["egress"])
            for one in found["egress"]:
                _network(one)
        return cls(**found)


@dataclass(frozen=True)
class Turns:
    """What the administrator says of namespaces with runs; `*` is every other one."""

    priorities: Mapping[str, int] = field(default_factory=dict)
    caps: Mapping[str, Caps] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> Turns:
        """Return what the chart's value `runs` says.

        Raises:
            ValueError: something has not the form that the chart's schema asks for.
        """
        caps = {name: Caps.from_wire(one) for name, one in (document.get("caps") or {}).items()}
        return cls({**(document.get("priorities") or {})}, caps)

    def priority(self, namespace: str) -> int:
        """Return the priority of a namespace's runs; a higher one comes first."""
        return self.priorities.get(namespace, self.priorities.get(EVERYBODY, 0))

    def caps_of(self, namespace: str) -> Caps:
        """Return the caps of a namespace's runs."""
        return self.caps.get(namespace) or self.caps.get(EVERYBODY) or Caps()


Lanes = Callable[[Card], Sequence[str]]
"""Which lanes a run may have; none: no other run may be measured beside it."""


@dataclass(frozen=True)
class Turn:
    """A run that is measured, or may be now."""

    card: Card
    lane: str | None
    """None: while it has its turn no other run has one."""


def next_in_turn(
    cards: Collection[Card],
    at_work: Sequence[Turn],
    had: Mapping[str, float],
    turns: Turns,
    lanes: Lanes,
) -> Turn | None:
    """Return whose turn it is beside those at work; `had` is the time that namespaces had.

    One that is active goes on until it is over; one that is cancelled only has to be finished. Then
    the highest priority counts, then the namespace that had the least time of the last day, of
    those that had as much the one with the fewest runs at work, and in a namespace who came first.

    Who has no lane waits until all others are over, and nobody who comes after it begins meanwhile:
    else it would wait for ever. One that is cancelled deploys nothing more, and waits for nobody.
    Nor does one that is held though it is deleted: what it has goes, before its lane is anybody's.
    """
    uids = {one.card.uid for one in at_work}
    held = next((one for one in cards if one.held and one.uid not in uids), None)
    if held is not None:
        return Turn(held, held.lane)
    busy = {one.lane for one in at_work}
    if None in busy:
        return None
    many = Counter(one.card.namespace for one in at_work)

    def place(card: Card) -> tuple[bool, bool, int, float, int, str, str, str]:
        return (
            not card.active,
            not card.cancel,
            -turns.priority(card.namespace),
            had.get(card.namespace, 0.0),
            many[card.namespace],
            card.created,
            card.namespace,
            card.name,
        )

    for card in sorted((one for one in cards if one.waits and one.uid not in uids), key=place):
        possible = lanes(card)
        if not possible:
            ends = card.cancel and not card.active
            return None if busy and not ends else Turn(card, None)
        free = next((lane for lane in possible if lane not in busy), None)
        if free is not None:
            return Turn(card, free)
    return None


class Used:
    """For how long runs of each namespace had the lane in the last day, deleted ones too."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}
        # When it was heard of what a run had used by then.
        self._heard: dict[str, datetime] = {}
        # When it was over, whose it was, and how long, of time that no run says.
        self._unsaid: list[tuple[datetime, str, float]] = []

    def add(self, namespace: str, seconds: float, now: datetime) -> None:
        """Count time of a namespace that no status says, and that is over now."""
        self._unsaid.append((now, namespace, seconds))

    def see(self, uid: str, card: Card | None, now: datetime) -> None:
        """Take in what is known of a run now; None: it is gone, and its time still counts.

        That of a turn that goes on is known to whoever works on it; with the run it is over, and
        when it is deleted, whoever holds it then. Nobody knows who worked on it before this process
        has heard of it.
        """
        before = self._cards.get(uid)
        known = card or before
        if known is None or not (known.used_seconds or known.turn_started):
            return
        if before is not None and before.deleting and before.finished is not None:
            return
        if (card is None or card.deleting) and known.finished is None:
            used = _seconds_until(known, self._heard.get(uid, now), now)
            known = replace(known, used_seconds=used, turn_started=None, finished=now)
        if before is not None and known.used_seconds < before.used_seconds:
            # It was asked for again, and is counted anew beside what it had until then.
            of_before = f"{uid}/{before.retries}"
            self._cards[of_before], self._heard[of_before] = before, self._heard[uid]
        if before is None or before.used_seconds != known.used_seconds:
            self._heard[uid] = now
        self._cards[uid] = known

    def seconds(
        self, now: datetime, going_on: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return the time of each namespace; `going_on` is that of the turns that go on."""
        had = dict(going_on or {})
        self._unsaid = [one for one in self._unsaid if now - one[0] < _WINDOW]
        for _, namespace, seconds in self._unsaid:
            had[namespace] = had.get(namespace, 0.0) + seconds
        for uid, card in list(self._cards.items()):
            # One that waits, or is over, has had its turns until then.
            had_until = self._heard[uid] if card.turn_started is None else now
            if now - min(card.finished or had_until, had_until) < _WINDOW:
                had[card.namespace] = had.get(card.namespace, 0.0) + card.used_seconds
            elif card.finished is not None:
                del self._cards[uid], self._heard[uid]
        return had


def _seconds_until(card: Card, heard: datetime, now: datetime) -> float:
    """Return for how many seconds a run had the lane, the turn that goes on included."""
    if card.turn_started is None:
        return card.used_seconds
    return card.used_seconds + max(0.0, (now - max(card.turn_started, heard)).total_seconds())


def cap_exceeded(
    spec: BenchmarkRunSpec, namespace: str, turns: Turns, services: Sequence[SideService] = ()
) -> str | None:
    """Return which cap of its namespace a run exceeds, and who may change it; None: none.

    `services` are those of its scenario, once that is known.
    """
    caps = turns.caps_of(namespace)
    repetition = plan_trials("run", spec, 0, 1)
    pods = _pods(spec, services)
    cpu, memory = (_asked(pods, what) for what in ("cpu", "memory"))
    over = [
        _over("trials", len(repetition) * spec.most_repetitions, caps.trials),
        _over("servers", len(spec.servers), caps.servers),
        _over("generators", generators_at_once(spec), caps.generators),
        _over("cores in the pods of a trial", cpu, caps.cpu),
        _over("MiB of memory in the pods of a trial", memory / 2**20, _mebi(caps.memory)),
    ]
    if caps.duration_seconds is not None:
        one = remaining_seconds(spec, repetition, {})
        over.append(_takes_longer(spec, one, caps.duration_seconds))
    bounded = {"cpu": caps.cpu, "memory": caps.memory}
    over += [_unknown(pods, what) for what, most in bounded.items() if most is not None]
    over.append(_leads_out(spec.egress, caps.egress))
    said = [one for one in over if one]
    if not said:
        return None
    return f"{'; '.join(said)}. {how_to_change(namespace)}"


def generators_at_once(spec: BenchmarkRunSpec) -> int:
    """Return how many generators send load at the same time."""
    return spec.generator.parallelism * (2 if spec.duet else 1)


def how_to_change(namespace: str) -> str:
    """Return who may change the caps of a namespace."""
    return (
        f"Ask for less, or split the run; the caps of namespace {namespace} are in runs.caps of "
        "Laptime's chart, which the cluster's administrator may change"
    )


def _over(what: str, asked: float, most: float | None) -> str | None:
    if most is None or asked <= most:
        return None
    return f"it asks for {asked:g} {what}, and may have {most:g}"


def _takes_longer(spec: BenchmarkRunSpec, repetition: float, most: float) -> str | None:
    """Return that a run takes longer than it may, with what that was reckoned from; None: it fits.

    `repetition` and `most` are seconds. With a budget no repetition begins after it.
    """
    seconds, counted = spec.most_repetitions * repetition, f"{spec.most_repetitions} repetitions"
    if spec.by_results:
        counted = f"all {counted}: maxRepetitions and budget make them fewer"
    if spec.budget_seconds is not None:
        least = spec.first_look * repetition
        bounded = max(least, spec.budget_seconds + repetition)
        if bounded < seconds:
            seconds = bounded
            counted = (
                f"the {spec.first_look} repetitions that it has at least"
                if least == bounded
                else f"its budget of {spec.budget}, and the repetition that began before its end"
            )
    if seconds <= most:
        return None
    if any(load.closed is not None and load.closed.requests for load in spec.loads):
        counted += f"; requests of loads without a duration at {USUAL_RATE:,.0f}/s"
    return (
        f"it takes about {format_duration(seconds)} ({counted}), and may take "
        f"{format_duration(most)}"
    )


def _leads_out(asked: Sequence[Destination], allowed: tuple[str, ...] | None) -> str | None:
    """Return which destinations of a run are in none that its namespace may name."""
    if allowed is None:
        return None
    ranges = [one for one in map(_network, allowed) if one is not None]
    beyond = [
        one.cidr or str(one.namespace)
        for one in asked
        if one.namespace not in allowed and not any(_within(one.cidr, wide) for wide in ranges)
    ]
    if not beyond:
        return None
    return f"its egress names {', '.join(beyond)}, and may name {', '.join(allowed) or 'nothing'}"


def _within(cidr: str | None, wide: _Range) -> bool:
    narrow = _network(cidr) if cidr is not None else None
    if isinstance(narrow, IPv4Network) and isinstance(wide, IPv4Network):
        return narrow.subnet_of(wide)
    if isinstance(narrow, IPv6Network) and isinstance(wide, IPv6Network):
        return narrow.subnet_of(wide)
    return False


def _network(text: str) -> _Range | None:
    """Return a range of addresses, or None of the name of a namespace.

    Raises:
        ValueError: it is to be a range, and is none.
    """
    return ip_network(text, strict=False) if "/" in text else None


def _mebi(memory: float | None) -> float | None:
    return None if memory is None else memory / 2**20


@dataclass(frozen=True)
class _Pods:
    """Pods of one trial that are alike; of servers there is one of all at a time, or two."""

    title: str
    resources: Resources | None
    count: int = 1
    one_of: bool = False

    def said(self, what: str) -> str | None:
        return getattr(self.resources, what) if self.resources is not None else None

    def asked(self, what: str) -> int:
        """Return how many thousandths of a resource they have together."""
        text = self.said(what)
        return self.count * thousandths(str(text)) if text is not None else 0


def without_resources(spec: BenchmarkRunSpec, services: Sequence[SideService]) -> list[str]:
    """Return the parts of a run whose pods have no limits, of CPU or of memory, since it says none.

    All other containers of a run have limits always.
    """
    pods = _pods(spec, services, delays_too=True)
    return [one.title for one in pods if None in (one.said("cpu"), one.said("memory"))]


def _pods(
    spec: BenchmarkRunSpec, services: Sequence[SideService], *, delays_too: bool = False
) -> list[_Pods]:
    """Return the pods of a trial that say how much they have: tiers, a server, generators.

    Caps have never asked it of delays, which are counted where they say it.
    """
    topology = spec.topology
    tiers: dict[str, Postgres | PgBouncer | HAProxy | Upstream | Delay | None] = {}
    for name in SIZED_TIERS:
        # In the trials of a server with a limit of its own a tier has that one.
        seen = (topology.tier(name), *(spec.topology_of(one).tier(name) for one in spec.deployed))
        tiers[name] = max((one for one in seen if one is not None), key=_cores, default=None)
    tiers["upstream"] = topology.upstream
    delay = topology.delay
    if delay is not None and (delays_too or delay.resources is not None):
        tiers["delay"] = delay
    return [
        *(_Pods(f"topology.{name}", one.resources) for name, one in tiers.items() if one),
        *(_Pods(f"{one.title} of the scenario", one.resources) for one in services),
        *(
            _Pods(f"server {one.name}", one.resources, one_of=not spec.duet)
            for one in spec.deployed
        ),
        _Pods("generator", spec.generator.resources, generators_at_once(spec)),
    ]


def _cores(tier: Postgres | PgBouncer | HAProxy) -> float:
    cpu = tier.resources.cpu if tier.resources is not None else None
    return quantity(cpu) if cpu is not None else 0.0


def _asked(pods: Sequence[_Pods], what: str) -> float:
    """Return how much of a resource the pods of one trial have together, as far as they say it."""
    together = sum(one.asked(what) for one in pods if not one.one_of)
    together += max((one.asked(what) for one in pods if one.one_of), default=0)
    # Thousandths, since a sum of floats may be over a cap that it is equal to.
    return together / 1000


def _unknown(pods: Sequence[_Pods], what: str) -> str | None:
    """Return who does not say how much he has, and so would have whatever is free."""
    silent = [one.title for one in pods if one.said(what) is None]
    if not silent:
        return None
    example = "500m" if what == "cpu" else "256Mi"
    return (
        f"there is a cap on {what}, and it does not say how much {', '.join(silent)} may have: "
        f"write resources: {{{what}: {example}}} there, with what it needs"
    )
