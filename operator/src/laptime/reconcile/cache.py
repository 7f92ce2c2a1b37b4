"""What is known of objects in the API server without asking for them again and again.

News of an object comes by three ways that may overtake each other: a list, a watch, and the answers
to what the operator itself writes. The newest version counts, whichever way it came; so the
operator always sees at least what it has written itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from laptime.kube import Manifest

T = TypeVar("T")


class Store(Generic[T]):
    """The newest known version of each object of one kind, by its uid."""

    def __init__(
        self,
        keep: Callable[[Manifest], T],
        changed: Callable[[str, T | None], None] = lambda uid, kept: None,
    ) -> None:
        """Hold of each object what `keep` makes of it; tell `changed` of each change.

        `changed` gets the uid and what is held now, or None when the object is gone.
        """
        self._keep = keep
        self._changed = changed
        self._held: dict[str, tuple[int, T]] = {}
        # What was deleted by the operator itself: older news of it may still be on their way.
        self._buried: set[str] = set()

    def __iter__(self) -> Iterator[T]:
        return iter([kept for _, kept in self._held.values()])

    def __len__(self) -> int:
        return len(self._held)

    def get(self, uid: str) -> T | None:
        """Return what is held of an object, or None."""
        held = self._held.get(uid)
        return held[1] if held is not None else None

    def put(self, manifest: Manifest) -> None:
        """Take in an object, unless a newer version of it is known."""
        uid, version = manifest["metadata"]["uid"], version_of(manifest)
        held = self._held.get(uid)
        if uid in self._buried or (held is not None and version <= held[0]):
            return
        kept = self._keep(manifest)
        self._held[uid] = (version, kept)
        self._changed(uid, kept)

    def remove(self, uid: str) -> None:
        """Forget an object that the API server says is gone."""
        self._buried.discard(uid)
        if self._held.pop(uid, None) is not None:
            self._changed(uid, None)

    def bury(self, uid: str) -> None:
        """Forget an object that was deleted just now, whatever older news still say of it."""
        self.remove(uid)
        self._buried.add(uid)

    def settle(self, seen: Iterable[str], version: int) -> None:
        """Forget what a whole list of this version did not have.

        What is newer than the list was made after it, so the list says nothing of it.
        """
        there = set(seen)
        self._buried &= there
        for uid in [uid for uid, held in self._held.items() if held[0] <= version]:
            if uid not in there:
                self.remove(uid)


def version_of(manifest: Manifest) -> int:
    """Return the resource version of an object: the newer of two versions has the higher one.

    So the conventions of Kubernetes have it since 1.35, and so it has always been.
    """
    text = str(manifest["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdecimal() else 0
