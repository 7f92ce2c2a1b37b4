"""The base image `debian:trixie-slim`, made from Debian's packages where no registry is used."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from imagebuild.catalog import ImageError
from imagebuild.engines import BASE_LABEL, BASE_REFERENCE, Engine
from imagebuild.platforms import architecture

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


def bootstrap_command(archive: Path, platform: str | None = None) -> list[str]:
    """The command that makes the root file system as a tar archive.

    `platform` is one that is not this machine's.
    """
    options = [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    # That its programs run here was tried before, and needs no package arch-test.
    foreign = [f"--architectures={architecture(platform or '')}", "--skip=check/qemu"]
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    return [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--format=tar",
        *([] if platform is None else foreign),
        f"--keyring={keys}",
        *options,
        SUITE,
        str(archive),
        *mirrors(),
    ]


def ensure_archive(
    images: Path,
    refresh: bool,
    run: Callable[[list[str], dict[str, str]], bool],
    platform: str | None = None,
) -> str:
    """Make `images`/base.tar unless a recent one exists; returns its content key.

    The key is the recipe's and the archive's SHA-256. An archive older than 30 days is made again
    (security updates); when that fails, the old one stays in use. `run` executes a command with
    additional environment variables and tells whether it succeeded. `platform` is one that is not
    this machine's. Raises ImageError.
    """
    archive, digest = images / "base.tar", images / "base.digest"
    recipe = hashlib.sha256("\0".join(bootstrap_command(Path("-"), platform)).encode()).hexdigest()[
        :16
    ]
    known = recorded_key(images)
    usable = archive.exists() and known.startswith(recipe)
    if usable and not refresh and time.time() - archive.stat().st_mtime < MAX_AGE_SECONDS:
        return known
    fresh = images / f"base.tar.{os.getpid()}.new"
    try:
        if not run(bootstrap_command(fresh, platform), {"SOURCE_DATE_EPOCH": TIMESTAMP}):
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
    if engine.base_label() != key:
        _import(images / "base.tar", key, engine, log, BASE_REFERENCE)


def ensure_all_imported(
    bases: Mapping[str, tuple[Path, str]], engine: Engine, log: IO[str]
) -> None:
    """Put archives for several platforms into the engine's storage, as one base image: their list.

    `bases` are their folders and content keys by platform. A stage that compiles is built on this
    machine's, all others on that of the platform that is built for.
    """
    names = {platform: f"localhost/laptime-base:{architecture(platform)}" for platform in bases}
    old = [name for name in bases if engine.base_label(names[name]) != bases[name][1]]
    listed = _run(engine, log, "manifest", "exists", BASE_REFERENCE, may_fail=True) is not None
    if listed:
        found = json.loads(_run(engine, log, "manifest", "inspect", BASE_REFERENCE) or "{}")
        # Whoever was killed may have left a list of some of them.
        if not old and len(found["manifests"]) == len(bases):
            return
        _run(engine, log, "manifest", "rm", BASE_REFERENCE)
    for platform in old:
        images, key = bases[platform]
        _import(images / "base.tar", key, engine, log, names[platform], platform)
    _run(engine, log, "manifest", "create", BASE_REFERENCE)
    for name in names.values():
        _run(engine, log, "manifest", "add", BASE_REFERENCE, f"containers-storage:{name}")


def _import(
    archive: Path,
    key: str,
    engine: Engine,
    log: IO[str],
    reference: str,
    platform: str | None = None,
) -> None:
    """Make an image of a root file system. Raises ImageError."""
    arch = [] if platform is None else [f"--arch={architecture(platform)}"]
    if engine.name != "buildah":
        changes = ("CMD bash", f"ENV PATH={PATH}", f"LABEL {BASE_LABEL}={key}")
        options = [*arch, *(f"--change={one}" for one in changes)]
        _run(engine, log, "import", *options, str(archive), reference)
        return
    container = _run(engine, log, "from", *arch, "scratch") or ""
    try:
        _run(engine, log, "add", "--quiet", container, str(archive), "/")
        settings = ["--cmd=bash", f"--env=PATH={PATH}", f"--label={BASE_LABEL}={key}", *arch]
        _run(engine, log, "config", *settings, container)
        _run(
            engine,
            log,
            "commit",
            "--quiet",
            "--format=docker",
            f"--timestamp={TIMESTAMP}",
            container,
            reference,
        )
    finally:
        _run(engine, log, "rm", container)


def _run(engine: Engine, log: IO[str], *arguments: str, may_fail: bool = False) -> str | None:
    """What the engine answers; None where it failed and may. Raises ImageError where it may not."""
    result = subprocess.run(
        [*engine.client, *arguments],
        env=engine.environment(),
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        check=False,
    )
    if result.returncode == 0:
        return result.stdout.strip()
    if may_fail:
        return None
    raise ImageError(f"{engine.name} {arguments[0]} failed while importing the base image")


def write_atomically(file: Path, text: str) -> None:
    """Write `text` so that the file is either complete or as it was, whatever happens."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
