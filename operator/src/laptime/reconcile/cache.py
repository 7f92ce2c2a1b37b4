"""What is known of objects in the API server without asking for them again and again.

News of an object comes by three ways that may overtake each other: a list, a watch, and the answers
to what the operator itself writes. The newest version counts, whichever way it came; so the
operator always sees at least what it has written itself. An answer about an object that was held
brings nothing back once the watch has said that it is gone (`renew`). What was just created is
taken in as the answer has it (`put`): if the watch has told of its end before, until the next list.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

from laptime.kube import Kube, KubeError, Manifest, Page

T = TypeVar("T")

_RETRY_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
# From the begin of one watch to that of the next, where the first is ended at once, and well.
_SHORTEST_SECONDS = 1.0
# One that has gone on for so long was well, however it ended.
_WELL_SECONDS = 10.0
_logger = logging.getLogger("laptime")


class Room:
    """The memory that what is held may take, in one store or in several together."""

    def __init__(
        self,
        whose: str = "",
        most_bytes: float = math.inf,
        too_much: str = "its objects take more than %d bytes, and not all are known: no run has as "
        "many, so look who else gives them its labels",
    ) -> None:
        """Have so many bytes for what is somebody's; without a number there is no end to it.

        `too_much` is what is said once of what has no room, with a place for the number.
        """
        self._whose = whose
        self._too_much = too_much
        self._most = self._left = most_bytes
        self._said = False

    @property
    def left_bytes(self) -> float:
        """How many bytes are left."""
        return self._left

    def size(self, value: object) -> int:
        """Return the bytes that a document takes; where there is no end nobody counts them."""
        if self._left == math.inf:
            return 0
        size, left = 0, [value]
        while left:
            one = left.pop()
            size += sys.getsizeof(one)
            if isinstance(one, dict):
                left.extend(one.values())
            elif isinstance(one, list):
                left.extend(one)
        return size

    def take(self, more_bytes: int) -> bool:
        """Take so many bytes, or give some back; False, and nothing, where they are not there."""
        if more_bytes > self._left:
            if not self._said:
                self._said = True
                _logger.warning(f"%s: {self._too_much}", self._whose, self._most)
            return False
        self._left -= more_bytes
        return True


class Store(Generic[T]):
    """The newest known version of each object of one kind, by its uid."""

    def __init__(
        self,
        keep: Callable[[Manifest], T | None],
        changed: Callable[[str, T | None], None] = lambda uid, kept: None,
        room: Room | None = None,
    ) -> None:
        """Hold of each object what `keep` makes of it; tell `changed` of each change.

        What `keep` makes nothing of is not held. `changed` gets the uid and what is held now, or
        None when the object is gone.
        """
        self._keep = keep
        self._changed = changed
        self._room = room or Room()
        # Version, what is held of it, and how many bytes that takes.
        self._held: dict[str, tuple[int, T | None, int]] = {}
        # What is gone for certain, although older news of it may still be on their way.
        self._buried: set[str] = set()
        self._listings = 0

    def __iter__(self) -> Iterator[T]:
        return iter([kept for _, kept, _ in self._held.values() if kept is not None])

    def __len__(self) -> int:
        return sum(kept is not None for _, kept, _ in self._held.values())

    def get(self, uid: str) -> T | None:
        """Return what is held of an object, or None."""
        held = self._held.get(uid)
        return held[1] if held is not None else None

    def has(self, manifest: Manifest) -> bool:
        """Return whether an object is there, in this very version, as far as is known."""
        held = self._held.get(manifest["metadata"]["uid"])
        return held is not None and held[1] is not None and held[0] == version_of(manifest)

    def put(self, manifest: Manifest) -> None:
        """Take in an object, unless a newer version of it is known."""
        uid, version = manifest["metadata"]["uid"], version_of(manifest)
        held = self._held.get(uid)
        if uid in self._buried or (held is not None and version <= held[0]):
            return
        kept = self._keep(manifest)
        if kept is None and held is None:
            # Of what was never anything to anybody nothing is remembered either.
            return
        size = self._room.size(kept)
        if not self._room.take(size - (held[2] if held is not None else 0)):
            return
        self._held[uid] = (version, kept, size)
        self._changed(uid, kept)

    def renew(self, manifest: Manifest) -> None:
        """Take in the answer to a question about an object that was held when it was asked.

        Of one that is not held any more it was heard meanwhile that it is gone, which is newer than
        any answer; and what is there all the same is heard of by the watch.
        """
        if self.get(manifest["metadata"]["uid"]) is not None:
            self.put(manifest)

    def remove(self, uid: str) -> None:
        """Forget an object that the API server says is gone."""
        if self._listings:
            # A list that was begun before may still have it.
            self._buried.add(uid)
        else:
            self._buried.discard(uid)
        if (held := self._held.pop(uid, None)) is not None:
            self._room.take(-held[2])
            self._changed(uid, None)

    def bury(self, uid: str) -> None:
        """Forget an object that was deleted just now, whatever older news still say of it."""
        self.remove(uid)
        self._buried.add(uid)

    def begin(self) -> None:
        """Know that a list is on its way, page by page."""
        self._listings += 1

    def end(self, seen: Iterable[str] = (), version: int = -1) -> None:
        """Forget what a whole list of this version did not have; without one, nothing.

        What is newer than the list was made after it, so the list says nothing of it.
        """
        self._listings -= 1
        if version < 0:
            return
        there = set(seen)
        self._buried &= there
        for uid in [uid for uid, held in self._held.items() if held[0] <= version]:
            if uid not in there:
                self.remove(uid)


class Watch(Generic[T]):
    """Keeps a store like the API server, by a list and the changes since then."""

    def __init__(
        self,
        kube: Kube,
        store: Store[T],
        kind: str,
        namespace: str | None,
        selector: str = "",
        *,
        seconds: float,
        metadata_only: bool = False,
        from_cache: bool = False,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        """Watch a kind, anew after so many seconds: longer no frozen connection is believed.

        `heard` is called whenever the API server says anything. With `from_cache` it begins with
        what the API server has in its cache, as soon as that is as new as the question.
        """
        self._kube = kube
        self._store = store
        self._where = (kind, namespace, selector)
        self._seconds = seconds
        self._metadata_only = metadata_only
        self._from_cache = from_cache
        self._heard = heard
        self._version = ""
        # The uids of objects that nobody understands.
        self._strange: set[str] = set()
        self._tried = asyncio.Event()
        self.error: KubeError | None = None
        """Why nothing can be heard at the moment; None when all is well."""

    async def first(self) -> None:
        """Wait for the first list.

        Raises:
            KubeError: it failed; it is tried again.
        """
        await self._tried.wait()
        if not self._version and self.error is not None:
            raise self.error

    async def refresh(self) -> None:
        """List everything anew: what is known then is at least as new as this call.

        Raises:
            KubeError: it failed.
        """
        await self._take_in(self._kube.pages(*self._where, metadata_only=self._metadata_only))

    async def _take_in(self, pages: AsyncIterator[Page]) -> None:
        seen: set[str] = set()
        version = ""
        whole = False
        self._store.begin()
        try:
            async for page in pages:
                version = page.resource_version
                self._heard()
                for manifest in page.items:
                    seen.add(manifest["metadata"]["uid"])
                    self._put(manifest)
            whole = True
            self._strange &= seen
        finally:
            self._store.end(seen, number_of(version) if whole else -1)
        if number_of(version) >= number_of(self._version):
            self._version = version

    def _put(self, manifest: Manifest) -> None:
        """Take in an object; one that nobody understands keeps no other from being heard of."""
        metadata = manifest["metadata"]
        try:
            self._store.put(manifest)
            self._strange.discard(metadata["uid"])
        except Exception:
            # It is heard of again with each list, and said once.
            if metadata["uid"] not in self._strange:
                self._strange.add(metadata["uid"])
                _logger.exception(
                    "%s %s/%s is not understood, and left out",
                    self._where[0], metadata.get("namespace"), metadata.get("name"),
                )  # fmt: skip

    async def run(self) -> None:
        """Go on for ever, whatever happens to connections and to the API server."""
        failures = 0
        while True:
            began = math.inf
            try:
                if not self._version:
                    if self._from_cache:
                        await self._take_in(self._kube.cached(*self._where))
                        # Whatever is asked for after this one must be newer than what is known.
                        self._from_cache = False
                    else:
                        await self.refresh()
                self.error = None
                self._tried.set()
                began = _now()
                await self._follow()
                failures = 0
                # A proxy, or an API server on its way down, may end each of them at once.
                await asyncio.sleep(began + _SHORTEST_SECONDS - _now())
            except KubeError as error:
                if _now() - began >= _WELL_SECONDS and not error.timed_out:
                    # A balancer that cuts what is silent for a while does so again and again.
                    failures = 0
                if error.expired:
                    # What happened since is forgotten; or the cache is cut off, and stays behind.
                    self._version = ""
                    self._from_cache = False
                elif not (error.status == 0 and failures == 0):
                    # A connection that ends is no news; one that cannot be made is.
                    _logger.warning("cannot watch %s: %s", self._where[0], error)
                self.error = error
                self._tried.set()
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
                failures += 1
            except Exception:
                # An object that nobody understands must not end the watch of all others.
                _logger.exception("watching %s failed", self._where[0])
                self._version = ""
                await asyncio.sleep(_RETRY_SECONDS[-1])

    async def _follow(self) -> None:
        async for type_, manifest in self._kube.watch(
            *self._where,
            since=self._version,
            seconds=self._seconds,
            metadata_only=self._metadata_only,
        ):
            self.error = None
            self._heard()
            version = str(manifest["metadata"].get("resourceVersion") or "")
            if type_ == "DELETED":
                self._strange.discard(manifest["metadata"]["uid"])
                self._store.remove(manifest["metadata"]["uid"])
            elif type_ != "BOOKMARK":
                self._put(manifest)
            if number_of(version) > number_of(self._version):
                self._version = version


def _now() -> float:
    return asyncio.get_running_loop().time()


def version_of(manifest: Manifest) -> int:
    """Return the resource version of an object: the newer of two versions has the higher one.

    So the conventions of Kubernetes have it since 1.35, and so it has always been.
    """
    return number_of(str(manifest["metadata"].get("resourceVersion")))


def number_of(version: str) -> int:
    """Return a resource version, of an object or of a list, as what tells older from newer."""
    return int(version) if version.isdecimal() else 0
