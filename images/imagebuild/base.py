"""The base image `debian:trixie-slim`, made from Debian's packages where no registry is used."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from imagebuild.catalog import ImageError
from imagebuild.engines import BASE_LABEL, BASE_REFERENCE, Engine

SUITE = "trixie"
# What the official slim image leaves out too.
DPKG_OPTIONS = (
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/groff/*",
    "path-exclude=/usr/share/lintian/*",
)
# A fixed time makes the archive depend on the packages' contents alone: making it again from the
# same packages gives the same digest, and no image is rebuilt.
TIMESTAMP = "1735689600"
MAX_AGE_SECONDS = 30 * 24 * 3600.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def mirrors(apt: Path = Path("/etc/apt")) -> list[str]:
    """The sources of the suite at the Debian mirrors that this machine uses itself.

    An empty list, on a machine that is no Debian, leaves the choice to mmdebstrap.
    """
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("#")]
    addresses = [
        word.rstrip("/")
        for line in lines
        if line.startswith(("deb ", "URIs:"))
        for word in line.split()
        if word.startswith(("http://", "https://"))
    ]
    packages = next((one for one in addresses if one.endswith("/debian")), None)
    security = next((one for one in addresses if one.endswith("/debian-security")), None)
    found = []
    if packages:
        found += [f"deb {packages} {SUITE} main", f"deb {packages} {SUITE}-updates main"]
    if packages and security:
        found.append(f"deb {security} {SUITE}-security main")
    return found


def bootstrap_command(archive: Path) -> list[str]:
    """The command that makes the root file system as a tar archive."""
    options = [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    return [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--format=tar",
        f"--keyring={keys}",
        *options,
        SUITE,
        str(archive),
        *mirrors(),
    ]


def ensure_archive(
    images: Path, refresh: bool, run: Callable[[list[str], dict[str, str]], bool]
) -> str:
    """Make `images`/base.tar unless a recent one exists; returns its content key.

    The key is the recipe's and the archive's SHA-256. An archive older than 30 days is made again
    (security updates); when that fails, the old one stays in use. `run` executes a command with
    additional environment variables and tells whether it succeeded. Raises ImageError.
    """
    archive, digest = images / "base.tar", images / "base.digest"
    recipe = hashlib.sha256("\0".join(bootstrap_command(Path("-"))).encode()).hexdigest()[:16]
    known = recorded_key(images)
    usable = archive.exists() and known.startswith(recipe)
    if usable and not refresh and time.time() - archive.stat().st_mtime < MAX_AGE_SECONDS:
        return known
    fresh = images / f"base.tar.{os.getpid()}.new"
    try:
        if not run(bootstrap_command(fresh), {"SOURCE_DATE_EPOCH": TIMESTAMP}):
            if usable:
                return known
            raise ImageError("mmdebstrap could not make the base image")
        with fresh.open("rb") as file:
            key = f"{recipe}-{hashlib.file_digest(file, 'sha256').hexdigest()}"
        digest.unlink(missing_ok=True)
        fresh.replace(archive)
        write_atomically(digest, key + "\n")
    finally:
        fresh.unlink(missing_ok=True)
    return key


def recorded_key(images: Path) -> str:
    """The content key of the archive that was made last; empty when there is none."""
    digest = images / "base.digest"
    return digest.read_text(encoding="utf-8").strip() if digest.exists() else ""


def ensure_imported(images: Path, key: str, engine: Engine, log: IO[str]) -> None:
    """Put the archive into the engine's storage as the base image, unless it is there."""

    def ask(*arguments: str) -> str:
        result = subprocess.run(
            [engine.name, *arguments],
            env=engine.environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise ImageError(f"{engine.name} {arguments[0]} failed while importing the base image")
        return result.stdout.strip()

    if engine.base_label() == key:
        return
    archive = str(images / "base.tar")
    if engine.name != "buildah":
        changes = ("CMD bash", f"ENV PATH={PATH}", f"LABEL {BASE_LABEL}={key}")
        ask("import", *(f"--change={one}" for one in changes), archive, BASE_REFERENCE)
        return
    container = ask("from", "scratch")
    try:
        ask("add", "--quiet", container, archive, "/")
        ask("config", "--cmd=bash", f"--env=PATH={PATH}", f"--label={BASE_LABEL}={key}", container)
        ask(
            "commit",
            "--quiet",
            "--format=docker",
            f"--timestamp={TIMESTAMP}",
            container,
            BASE_REFERENCE,
        )
    finally:
        ask("rm", container)


def write_atomically(file: Path, text: str) -> None:
    """Write `text` so that the file is either complete or as it was, whatever happens."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
