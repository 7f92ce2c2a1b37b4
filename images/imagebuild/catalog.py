"""Which images there are, and exactly which files each of them is made of.

An image is a folder with a Dockerfile: `images/<name>/`, or one somewhere below `images/servers/`,
which is named `server-<preset>` after its folder. `bench/servers/<language>/` is `book-<language>`:
what the servers are measured against. `examples/<example>/<part>/` is `example-<example>-<part>`.
Every Dockerfile is built with the root of the repository as its context.
"""

from __future__ import annotations

import fnmatch
import hashlib
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

REPOSITORY = "docker.io/laptime"
SERVER_PREFIX = "server-"
BOOK_PREFIX = "book-"
EXAMPLE_PREFIX = "example-"
# Built like the others, and pushed only when named.
TEST_ONLY = frozenset({"faulty", "load-script", "reference"})


class ImageError(Exception):
    """Something the person at the keyboard can put right; its text says what."""


@dataclass(frozen=True)
class Image:
    """One image: its short name, its version and its Dockerfile (relative to the root)."""

    name: str
    version: str
    dockerfile: PurePosixPath

    @property
    def reference(self) -> str:
        """The full name that manifests use, `docker.io/laptime/<name>:<version>`."""
        return f"{REPOSITORY}/{self.name}:{self.version}"


def discover(root: Path) -> dict[str, Image]:
    """All images below `root` by name, sorted: databases and proxies, counterparts, examples."""
    version = (root / "VERSION").read_text(encoding="utf-8").strip()
    images = {}
    for path in sorted((root / "images").glob("*/Dockerfile")):
        images[path.parent.name] = path
    servers = (root / "images" / "servers").rglob("Dockerfile")
    for path in sorted(servers, key=lambda path: path.parent.name):
        images[SERVER_PREFIX + path.parent.name] = path
    for path in sorted((root / "bench" / "servers").glob("*/Dockerfile")):
        images[BOOK_PREFIX + path.parent.name] = path
    for path in sorted((root / "examples").glob("*/*/Dockerfile")):
        images[f"{EXAMPLE_PREFIX}{path.parent.parent.name}-{path.parent.name}"] = path
    return {
        name: Image(name, version, PurePosixPath(path.relative_to(root)))
        for name, path in images.items()
    }


def select(images: dict[str, Image], names: list[str]) -> list[Image]:
    """The images called `names`; all when the list is empty, but those of benchmarks and examples.

    Raises ImageError for a name that does not exist.
    """
    unknown = [name for name in names if name not in images]
    if unknown:
        raise ImageError(f"no image is called {unknown[0]!r}; there are: {', '.join(images)}")
    usual = [name for name in images if not name.startswith((BOOK_PREFIX, EXAMPLE_PREFIX))]
    return [images[name] for name in names or usual]


def snapshot(root: Path, image: Image, target: Path) -> str:
    """Copy what `image` is made of from `root` to `target`, a new build context.

    Returns the SHA-256 of the copy (paths, executable bits, contents), so that what is hashed is
    what is built even while somebody edits the files. Raises ImageError for a missing source.
    """
    digest = hashlib.sha256()
    ignored = _ignore_patterns(root)
    sources = _copied_paths((root / image.dockerfile).read_text(encoding="utf-8"))
    files = {image.dockerfile}
    for source in sources:
        found = _expand(root, source, ignored)
        if not found:
            raise ImageError(f"{image.dockerfile} copies {source}, which does not exist")
        files |= found
    for file in sorted(files):
        copy = target / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, copy)
        executable = bool(copy.stat().st_mode & 0o100)
        digest.update(f"{file}\0{executable}\0{copy.stat().st_size}\0".encode())
        digest.update(copy.read_bytes())
    return digest.hexdigest()


def _copied_paths(dockerfile: str) -> set[str]:
    """The sources of all COPY and ADD instructions and bind mounts that read the context."""
    sources: set[str] = set()
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction.upper() in ("COPY", "ADD"):
            words = shlex.split(rest)
            flags = [word for word in words if word.startswith("--")]
            if not any(flag.startswith("--from=") for flag in flags):
                sources.update(word for word in words[:-1] if not word.startswith("--"))
        elif instruction.upper() == "RUN":
            for word in rest.split():
                if not word.startswith("--mount="):
                    break
                options = dict(
                    part.partition("=")[::2] for part in word.removeprefix("--mount=").split(",")
                )
                if options.get("type", "bind") == "bind" and "from" not in options:
                    sources.add(options.get("source", options.get("src", ".")))
    return sources


def _expand(root: Path, source: str, ignored: list[str]) -> set[PurePosixPath]:
    """The files that `source` (a file, folder or glob, relative to `root`) stands for."""
    matches = [root] if source in (".", "./") else list(root.glob(source.strip("/")))
    files = [
        file
        for match in matches
        for file in (match.rglob("*") if match.is_dir() else [match])
        if file.is_file()
    ]
    relative = {PurePosixPath(file.relative_to(root)) for file in files}
    return {file for file in relative if not _is_ignored(file, ignored)}


def _ignore_patterns(root: Path) -> list[str]:
    """The patterns of .dockerignore, which all have the one form that `_is_ignored` knows."""
    file = root / ".dockerignore"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for pattern in patterns:
        if not pattern.startswith("**/") or "/" in pattern[3:]:
            raise ImageError(f".dockerignore: write {pattern!r} as '**/NAME'")
    return [pattern[3:] for pattern in patterns]


def _is_ignored(file: PurePosixPath, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(part, pattern) for part in file.parts for pattern in patterns)
