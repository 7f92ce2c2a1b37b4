"""Images of the nodes: archives from the cache go into containerd when they changed."""

import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import IMAGES, SOURCE
from laptime_cluster.places import Node
from laptime_cluster.progress import say, ticking

_KEY_LABEL = "laptime.dev/archive-key"
_PINNED_LABEL = "io.cri-containerd.pinned=pinned"
_UNPACKED_PER_ARCHIVE_BYTE = 4
_MINIMUM_FREE_BYTES = 1 << 30
_INDEXES = frozenset({"manifest.json", "index.json"})


@dataclass(frozen=True)
class Containerd:
    """A containerd: where it listens, and the folder on whose disk it unpacks."""

    socket: Path
    folder: Path


def containerd_of(node: Node) -> Containerd:
    """The containerd of a node."""
    return Containerd(node.containerd_socket, node.state)


@dataclass(frozen=True)
class Archive:
    """An image archive: its file, the references it holds, and what its content is known by."""

    path: Path
    references: tuple[str, ...]
    key: str


def control(
    containerd: Containerd, arguments: Sequence[str | Path], timeout_seconds: float = 570.0
) -> str:
    """Run containerd's own client in the namespace that the kubelet uses."""
    command = ["ctr", "--address", containerd.socket, "--namespace", "k8s.io", *arguments]
    return run(command, timeout_seconds=timeout_seconds)


def every() -> list[Path]:
    """The files of all image archives in the cache."""
    return [path for path in sorted(IMAGES.glob("[!.]*.tar")) if _is_image(path)]


def paths(names: Iterable[str]) -> list[Path]:
    """The files of those of the named archives that are in the cache."""
    return [path for name in names if (path := IMAGES / f"{name}.tar").is_file()]


def load(node: Node, names: Sequence[str]) -> list[str]:
    """Import the named archives of the cache that changed. When none is named, all of them but
    those that another checkout has built since this one did.

    Returns the names that were imported. Raises ClusterError when an archive is not there, names
    no image, is a named one that another checkout has built since this one did, or does not fit on
    the disk.
    """
    containerd = containerd_of(node)
    archives = [describe(path) for path in [_path(name) for name in names] or every()]
    for archive in filter(_is_of_another, archives):
        text = f"another checkout has built its own {archive.path} since this one did"
        if names:
            raise ClusterError(f"{text}: images/build.py {archive.path.stem} builds it again")
        say(f"passing over an image: {text}")
    archives = [archive for archive in archives if not _is_of_another(archive)]
    known = _known_keys(containerd)
    wanted = [
        archive
        for archive in archives
        if any(known.get(reference) != archive.key for reference in archive.references)
    ]
    for archive in wanted:
        import_archive(archive, containerd)
    return [archive.path.stem for archive in wanted]


def _is_of_another(archive: Archive) -> bool:
    """Whether an archive is not what images/build.py of this checkout wanted last."""
    checkout = hashlib.sha256(str(SOURCE.parent).encode()).hexdigest()[:16]
    record = IMAGES / f".of-{checkout}" / archive.path.stem
    return record.exists() and record.read_text(encoding="utf-8").strip() != archive.key


def _is_image(path: Path) -> bool:
    """Whether a file of the cache is an image; their base lies there as a plain tree."""
    with tarfile.open(path) as archive:
        return not _INDEXES.isdisjoint(archive.getnames())


def _path(name: str) -> Path:
    path = IMAGES / f"{name.removesuffix('.tar')}.tar"
    if not path.is_file():
        there = [other.stem for other in sorted(IMAGES.glob("[!.]*.tar"))]
        raise ClusterError(f"there is no image archive {path}; built so far: {there or 'none'}")
    return path


def describe(path: Path) -> Archive:
    """Read which images an archive holds; docker and OCI archives alike."""
    try:
        references = tuple(_references(path))
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise ClusterError(f"{path} is no image archive: {error}") from error
    if not references:
        raise ClusterError(f"{path} holds no image with a name")
    digest = path.with_suffix(".digest")
    if digest.is_file():
        key = digest.read_text(encoding="utf-8").strip()
    else:
        status = path.stat()
        key = f"{status.st_size}-{status.st_mtime_ns}"
    return Archive(path, references, re.sub(r"[^A-Za-z0-9.:_-]", "-", key)[:200])


def _references(path: Path) -> Iterable[str]:
    with tarfile.open(path) as archive:
        names = archive.getnames()
        if "manifest.json" in names:
            for image in _read(archive, "manifest.json"):
                yield from (_full(tag) for tag in image["RepoTags"] or ())
            return
        for manifest in _read(archive, "index.json")["manifests"]:
            annotations = manifest.get("annotations", {})
            name = annotations.get("io.containerd.image.name") or annotations.get(
                "org.opencontainers.image.ref.name", ""
            )
            # A bare tag does not say which image it is of.
            if ":" in name:
                yield _full(name)


def _read(archive: tarfile.TarFile, name: str) -> Any:
    member = archive.extractfile(name)
    if member is None:
        raise ValueError(f"{name} is no file")
    return json.load(member)


def _full(reference: str) -> str:
    """The reference as containerd spells it."""
    first, slash, _ = reference.partition("/")
    if not slash:
        return f"docker.io/library/{reference}"
    if "." in first or ":" in first or first == "localhost":
        return reference
    return f"docker.io/{reference}"


def _known_keys(containerd: Containerd) -> dict[str, str]:
    """Reference and archive key of every image in a node."""
    keys = {}
    for line in control(containerd, ["images", "list"]).splitlines()[1:]:
        match = re.search(rf"{re.escape(_KEY_LABEL)}=([^,\s]+)", line)
        if match is not None:
            keys[line.split()[0]] = match[1]
    return keys


def import_archive(archive: Archive, containerd: Containerd) -> None:
    """Import one archive, unpacked, so that the first pod of the image starts at once."""
    size = archive.path.stat().st_size
    free = shutil.disk_usage(containerd.folder).free
    if free < size * _UNPACKED_PER_ARCHIVE_BYTE + _MINIMUM_FREE_BYTES:
        raise ClusterError(
            f"the disk of {containerd.folder} is too full for {archive.path.name}: "
            f"{free >> 20} MiB are left"
        )
    say(f"loading {', '.join(archive.references)} ({size / 1e6:.0f} MB)")
    with ticking(lambda: f"still loading {archive.path.name}"):
        control(containerd, ["images", "import", archive.path])
        there = set(control(containerd, ["images", "list", "--quiet"]).split())
        for reference in archive.references:
            if reference not in there:
                raise ClusterError(f"{archive.path} was imported, yet {reference} is not there")
            label = f"{_KEY_LABEL}={archive.key}"
            control(containerd, ["images", "label", reference, label, _PINNED_LABEL])
