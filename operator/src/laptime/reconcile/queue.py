"""All runs of the cluster, as far as anybody needs them who does not measure them. Pure.

There may be thousands, so of each only a card is kept: whose turn it is and when it has had its
time follows from those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from laptime.api import GROUP
from laptime.api.spec import LEAST_TTL_SECONDS
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.api.storage import STORED_VERSION
from laptime.reconcile.views import parse_time

KEEP_ANNOTATION = f"{GROUP}/keep"
NOT_ENABLED = "NamespaceNotEnabled"
_STATES = frozenset(State)
_LONGEST_NAME = 253
_HIGHEST_COUNT = 2**63
_MOST_SECONDS = 1e10
"""Some centuries."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is remembered of a run."""

    namespace: str
    name: str
    uid: str
    created: str
    """RFC 3339: times of the API server are ordered like their texts."""
    state: State | None = None
    refused: str | None = None
    """Reason why it is not accepted; None when it is, or when nobody has looked yet."""
    deleting: bool = False
    suspend: bool = False
    """Whether it shall pause; one that is active has the lane until it does."""
    cancel: bool = False
    started: bool = False
    """Whether it ever had the lane."""
    wish: str | None = None
    """The placement that it asks for."""
    lane: str | None = None
    """The lane that it was begun with."""
    used_seconds: float = 0.0
    """For how long it had the lane, as far as its turns are over."""
    turn_started: datetime | None = None
    """When the turn began that is not over."""
    retry: int = 0
    retries: int = 0
    """How often its failed trials shall be, and were asked for again."""
    deadline: datetime | None = None
    """When it has had its time to live after its end."""
    finished: datetime | None = None
    """When it was over, and so the last of its turns; None while it goes on."""
    kept: bool = False
    """Whether somebody has said that it is to be kept, whatever the limits of its namespace."""
    archive: str | None = None
    """Of a run that is over: the archive that has what is still stored singly beside it."""
    stored_version: int = 1

    @property
    def newer(self) -> bool:
        """Whether a newer version of Laptime has worked on it: this one leaves it as it is."""
        return self.stored_version > STORED_VERSION

    @property
    def waits(self) -> bool:
        """Whether it may have the lane: it is neither over nor being deleted nor refused."""
        return not (self.over or self.deleting or self.refused or self.rests or self.newer)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state is not None and self.state.terminal

    @property
    def active(self) -> bool:
        """Whether it has the lane."""
        return self.state is not None and self.state.active

    @property
    def held(self) -> bool:
        """Whether it is deleted in its turn and still there: somebody's finalizer holds it."""
        return self.deleting and self.active and not self.newer

    @property
    def rests(self) -> bool:
        """Whether it pauses, until that is taken back or it is cancelled."""
        return self.suspend and not self.cancel and not self.active

    @property
    def ends(self) -> bool:
        """Whether it is over before it began: it never had the lane, and is cancelled."""
        return self.cancel and not self.started and self.state in (None, State.QUEUED)

    @property
    def asks_again(self) -> bool:
        """Whether it is over, and its failed trials are asked for again."""
        return self.over and not self.cancel and self.retry > self.retries

    @property
    def news(self) -> bool:
        """Whether its status does not say yet what it waits for."""
        if self.active or self.over:
            return self.asks_again
        return self.ends or self.state is not (State.SUSPENDED if self.rests else State.QUEUED)


def card_of(manifest: dict[str, Any]) -> Card:
    """Return the card of a BenchmarkRun, whatever version of Laptime, or whoever else, wrote it.

    What is not of its kind is taken for left out: all runs are known by their cards, and none may
    keep the others from being known.
    """
    metadata, spec, status = (
        manifest["metadata"],
        _part(manifest, "spec"),
        _part(manifest, "status"),
    )
    said = status.get("state")
    storage = _part(status, "storage")
    folding = storage.get("folded") is False
    return Card(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        created=metadata["creationTimestamp"],
        state=State(said) if isinstance(said, str) and said in _STATES else None,
        refused=_refused(status),
        deleting="deletionTimestamp" in metadata,
        suspend=spec.get("suspend") is True,
        cancel=spec.get("cancel") is True,
        started="startedAt" in status,
        wish=_text(spec.get("placement")),
        lane=_text(_part(status, "placement").get("lane")),
        used_seconds=_used(status),
        turn_started=parse_time(status.get("turnStartedAt")),
        retry=_count(spec.get("retry")),
        retries=_count(status.get("retries")),
        deadline=_deadline(spec.get("ttlSecondsAfterFinished"), status.get("finishedAt")),
        finished=parse_time(status.get("finishedAt")),
        kept=_part(metadata, "annotations").get(KEEP_ANNOTATION) == "true",
        archive=_text(status.get("resultsConfigMap")) if folding else None,
        stored_version=_count(storage.get("version")) or 1,
    )


def _part(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    """Return a name; of one that is longer than any in Kubernetes, the beginning."""
    return value[:_LONGEST_NAME] if isinstance(value, str) else None


def _count(value: Any) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool)
    return max(0, min(value, _HIGHEST_COUNT)) if fits else 0


def _refused(status: dict[str, Any]) -> str | None:
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == ConditionType.ACCEPTED:
            false = condition.get("status") == ConditionStatus.FALSE
            return str(condition.get("reason"))[:_LONGEST_NAME] if false else None
    return None


def _used(status: dict[str, Any]) -> float:
    """Return the seconds that a run had; of one that an older version ended, all since its start.

    Also while it pauses. Never less than nothing: its namespace would be before all others.
    """
    used = status.get("usedSeconds")
    if used is not None:
        fits = isinstance(used, int | float) and 0 <= used <= _MOST_SECONDS
        return float(used) if fits else 0.0
    begin, end = parse_time(status.get("startedAt")), parse_time(status.get("finishedAt"))
    return max(0.0, (end - begin).total_seconds()) if begin is not None and end is not None else 0.0


def _deadline(seconds: Any, finished_at: Any) -> datetime | None:
    finished = parse_time(finished_at)
    if finished is None or not isinstance(seconds, int | float):
        return None
    if not abs(seconds) <= _MOST_SECONDS:
        # Nobody waits for it any more then; nor for what is no number.
        return None
    return finished + timedelta(seconds=max(seconds, LEAST_TTL_SECONDS))


def turns_before(card: Card, cards: Iterable[Card]) -> int:
    """Return how many runs at least have their turn before one that waits.

    One at work is one of them, and those of its namespace and placement that came first:
    namespaces take turns by what the administrator says, and runs have lanes by it, which is
    nobody else's to know. Nobody writes it down: a run that ends would change it for all others.
    """
    others = [other for other in cards if other.waits and other.uid != card.uid]
    at_work = any(other.active for other in others)

    def is_before(other: Card) -> bool:
        alike = (other.namespace, other.wish) == (card.namespace, card.wish)
        return alike and (other.created, other.name) < (card.created, card.name)

    # In lanes that are others' any number may be at work: one of them has to end before it begins.
    return at_work + sum(1 for other in others if not other.active and is_before(other))
