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
from laptime.api.status import ConditionStatus, ConditionType, State
from laptime.api.storage import STORED_VERSION
from laptime.reconcile.views import parse_time

KEEP_ANNOTATION = f"{GROUP}/keep"
NOT_ENABLED = "NamespaceNotEnabled"


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
    deadline: datetime | None = None
    """When it has had its time to live after its end."""
    finished: datetime | None = None
    """When it was over."""
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
        over = self.state is not None and self.state.terminal
        return not (over or self.deleting or self.refused or self.newer)


def card_of(manifest: dict[str, Any]) -> Card:
    """Return the card of a BenchmarkRun, whatever version of Laptime wrote it."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    status = manifest.get("status") or {}
    said = status.get("state")
    storage = status.get("storage") or {}
    folding = storage.get("folded") is False
    return Card(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        created=metadata["creationTimestamp"],
        state=State(said) if said in set(State) else None,
        refused=_refused(status),
        deleting="deletionTimestamp" in metadata,
        deadline=_deadline(spec.get("ttlSecondsAfterFinished"), status.get("finishedAt")),
        finished=_time(status.get("finishedAt")),
        kept=(metadata.get("annotations") or {}).get(KEEP_ANNOTATION) == "true",
        archive=status.get("resultsConfigMap") if folding else None,
        stored_version=storage.get("version", 1),
    )


def _refused(status: dict[str, Any]) -> str | None:
    for condition in status.get("conditions") or []:
        if condition.get("type") == ConditionType.ACCEPTED:
            false = condition.get("status") == ConditionStatus.FALSE
            return str(condition.get("reason")) if false else None
    return None


def _time(text: Any) -> datetime | None:
    return parse_time(text) if isinstance(text, str) else None


def _deadline(seconds: Any, finished_at: Any) -> datetime | None:
    finished = _time(finished_at)
    if finished is None or not isinstance(seconds, int | float):
        return None
    return finished + timedelta(seconds=seconds)


def next_in_turn(cards: Iterable[Card]) -> Card | None:
    """Return the run that has the lane or gets it now: first come, first served.

    One that is active keeps the lane until it is over, so it comes first.
    """
    return min((card for card in cards if card.waits), key=_place, default=None)


def turns_before(card: Card, cards: Iterable[Card]) -> int:
    """Return how many runs have their turn before one that waits; the one at work is one of them.

    Nobody writes it down: a run that ends would change it for all others.
    """
    return sum(1 for other in cards if other.waits and _place(other) < _place(card))


def _place(card: Card) -> tuple[bool, str, str, str]:
    active = card.state is not None and card.state.active
    return not active, card.created, card.namespace, card.name
