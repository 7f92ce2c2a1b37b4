"""The cache of built images: `<name>.tar` beside `<name>.digest`, which names its content.

The digest file is written last and removed first, so an archive without one is never used: a build
that is killed at any moment leaves at worst an image to be built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from imagebuild.base import write_atomically
from imagebuild.platforms import folder_name


def default_cache() -> Path:
    """The folder of all of Laptime's caches, `$LAPTIME_CACHE` or `~/.cache/laptime`."""
    return Path(os.environ.get("LAPTIME_CACHE") or Path.home() / ".cache" / "laptime")


class Store:
    """The archives below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(cls, cache: Path, platform: str | None) -> Self:
        """The one for the machine's own platform, or for another one."""
        return cls(cache / "images" / (folder_name(platform) if platform else ""))

    def archive(self, name: str) -> Path:
        """Where the image called `name` is kept, in docker's archive format."""
        return self.folder / f"{name}.tar"

    def key(self, name: str) -> str:
        """The content key of the archive of `name`; empty when there is no usable one."""
        digest = self._digest(name)
        if not digest.exists() or not self.archive(name).exists():
            return ""
        return digest.read_text(encoding="utf-8").strip()

    def temporary(self, name: str) -> Path:
        """A file in the same folder to write a new archive to, empty of an earlier attempt."""
        file = self.folder / f".{name}.new.tar"
        file.unlink(missing_ok=True)
        return file

    def put(self, name: str, archive: Path, key: str) -> None:
        """Make `archive`, a file from `temporary`, the archive of `name` with content `key`."""
        self._digest(name).unlink(missing_ok=True)
        archive.replace(self.archive(name))
        write_atomically(self._digest(name), key + "\n")

    def record(self, checkout: Path, name: str, key: str) -> None:
        """Remember that the archive of `name` with content `key` is what a checkout wants."""
        file = self._record(checkout, name)
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, key + "\n")

    def is_of_another(self, checkout: Path, name: str) -> bool:
        """Whether the archive of `name` is not what a checkout wanted last: all share this folder,
        and another one may have built its own since."""
        file = self._record(checkout, name)
        return file.exists() and file.read_text(encoding="utf-8").strip() != self.key(name)

    def _record(self, checkout: Path, name: str) -> Path:
        # As laptime_cluster/images.py finds it.
        mark = hashlib.sha256(str(checkout.resolve()).encode()).hexdigest()[:16]
        return self.folder / f".of-{mark}" / name

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Keep other builders of `name` out; a builder that is killed loses its lock."""
        with (self.folder / f".{name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"waiting for another build of {name} to end", flush=True)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _digest(self, name: str) -> Path:
        return self.folder / f"{name}.digest"
