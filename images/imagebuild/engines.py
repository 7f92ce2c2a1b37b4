"""The programs that can build an image: docker, podman or buildah."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal, get_args

from imagebuild import platforms
from imagebuild.catalog import ImageError
from imagebuild.packages import install

BASE_REFERENCE = "docker.io/library/debian:trixie-slim"

BASE_LABEL = "dev.laptime.base"
"""Has the content key of a base image that was made here."""
# Where no registry is in reach a connection often hangs instead of failing.
PROBE_SECONDS = 8

EngineName = Literal["docker", "podman", "buildah"]
_MAKES_BASE = ("mmdebstrap", "debian-archive-keyring")
_STOP_SECONDS = 10


@dataclass(frozen=True)
class Engine:
    """A working container engine.

    `makes_base` tells whether the base image is one that `imagebuild.base` makes from Debian's
    packages. Buildah always builds on that, podman where it has none and reaches no registry that
    has it, and docker never: it does not tell what its builder has.

    `platform` is one that is not this machine's, as `linux/arm64`. What buildah and podman keep of
    it has a place of its own: a name has no room for two images, and buildah takes a layer of the
    same instructions for the same, whatever it was built for.
    """

    name: EngineName
    cache: Path
    makes_base: bool = False
    platform: str | None = None

    @property
    def client(self) -> list[str]:
        """The first words of this engine's commands."""
        if self.platform is None or self.name == "docker":
            return [self.name]
        root = (self.cache / "storage" / platforms.folder_name(self.platform)).absolute()
        # What was mounted is forgotten when the machine starts, and so that has to be.
        place = hashlib.sha256(str(root).encode()).hexdigest()[:12]
        own = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        run = Path("/run" if os.geteuid() == 0 else own) / f"laptime-images-{place}"
        return [self.name, f"--root={root}", f"--runroot={run}"]

    def archived_reference(self, reference: str) -> str:
        """The name that an image built as `reference` has in its archive.

        Docker has one image of a name: another platform's would take it from the machine's own.
        """
        if self.platform is None or self.name != "docker":
            return reference
        return f"{reference}-{platforms.architecture(self.platform)}"

    def build_command(
        self,
        context: Path,
        dockerfile: Path,
        reference: str,
        version: str,
        secrets: Mapping[str, Path],
        fresh: bool,
    ) -> list[str]:
        """The command that builds `dockerfile` as `reference`; `secrets` are files by id.

        `fresh` runs every step again, also those whose layers the engine still has.
        """
        if self.name == "buildah":
            command = [*self.client, "bud", "--pull=never", "--isolation=chroot", "--layers"]
        else:
            command = [*self.client, "build"]
        if self.platform is not None:
            command += [f"--platform={self.platform}"]
            if self.name != "docker":
                # They say it to a build for their own platform alone.
                command += [f"--build-arg=BUILDPLATFORM={platforms.native()}"]
        if self.name != "docker":
            # Docker's own archive format keeps the stop signal and the health check.
            command += ["--format=docker"]
        command += [
            "--network=host",
            f"--build-arg=VERSION={version}",
            f"--tag={self.archived_reference(reference)}",
        ]
        command += ["--no-cache"] if fresh else []
        command += [f"--secret=id={name},src={path}" for name, path in secrets.items()]
        return [*command, f"--file={dockerfile}", str(context)]

    def save_command(self, reference: str, archive: Path) -> list[str]:
        """The command that writes `reference` to `archive` in docker's archive format."""
        if self.name == "buildah":
            return [
                *self.client,
                "push",
                "--quiet",
                reference,
                f"docker-archive:{archive}:{reference}",
            ]
        return [*self.client, "save", f"--output={archive}", self.archived_reference(reference)]

    def push_commands(
        self, archive: Path, reference: str, target: str, insecure: bool
    ) -> list[list[str]]:
        """The commands that send `archive` (which holds `reference`) to a registry as `target`.

        `insecure` allows plain HTTP; docker decides that in its daemon's own configuration, and
        allows it of itself for a registry on this machine, which the others do here too.
        """
        if self.name == "docker":
            return [
                ["docker", "load", "--quiet", f"--input={archive}"],
                ["docker", "tag", self.archived_reference(reference), target],
                ["docker", "push", target],
            ]
        tls = _tls(target, insecure)
        if self.name == "podman":
            return [
                [*self.client, "load", "--quiet", f"--input={archive}"],
                [*self.client, "push", tls, reference, target],
            ]
        return [
            [*self.client, "pull", "--quiet", f"docker-archive:{archive}"],
            [*self.client, "push", tls, reference, f"docker://{target}"],
        ]

    def push_all_commands(
        self, images: Sequence[tuple[Engine, Path]], reference: str, target: str, insecure: bool
    ) -> list[list[str]]:
        """The commands that send one image for several platforms to a registry, under one name.

        `images` are the engines that built it, each for its platform, and their archives. Docker
        can list only what is in the registry: there each is called `target`-arm64 or so as well.
        """
        if self.name == "docker":
            commands, parts = [], []
            for engine, archive in images:
                platform = engine.platform or platforms.native()
                parts.append(f"{target}-{platforms.architecture(platform)}")
                commands += engine.push_commands(archive, reference, parts[-1], insecure)
            plain = ["--insecure"] if insecure or _is_here(target) else []
            return [
                *commands,
                ["docker", "manifest", "create", "--amend", *plain, target, *parts],
                ["docker", "manifest", "push", "--purge", *plain, target],
            ]
        name = f"localhost/laptime-push-{os.getpid()}:{len(images)}"
        return [
            [*self.client, "manifest", "create", name],
            *(
                [*self.client, "manifest", "add", name, f"docker-archive:{one}"]
                for _, one in images
            ),
            [
                *self.client,
                *("manifest", "push", "--all", "--rm", "--format=v2s2", _tls(target, insecure)),
                *(name, f"docker://{target}"),
            ],
        ]

    def reaches(self, reference: str, log: IO[str] | int = subprocess.DEVNULL) -> bool:
        """Whether the registry of `reference` is in reach and has it; known after some seconds."""
        # Docker's client knows no other transport and no name for this one.
        transport = "" if self.name == "docker" else "docker://"
        probe = [*self.client, "manifest", "inspect", f"{transport}{reference}"]
        try:
            return self.run(probe, log, timeout_seconds=PROBE_SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False

    def base_label(self, reference: str = BASE_REFERENCE) -> str | None:
        """The content key that the base image of buildah or podman, `reference`, was made with.

        Empty for one that came from a registry, None where there is no base image.
        """
        inspect, config = [*self.client, "image", "inspect"], ".Config"
        if self.name == "buildah":
            inspect, config = [*self.client, "inspect", "--type=image"], ".Docker.Config"
        labels = f'{{{{index {config}.Labels "{BASE_LABEL}"}}}}'
        asked = subprocess.run(
            [*inspect, f"--format={labels}", reference],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode != 0:
            return None
        # What is said of a label that is not there differs between engines.
        return asked.stdout.strip().replace("<no value>", "")

    def fetch_commands(self, reference: str, archive: Path) -> list[list[str]]:
        """The commands that bring `reference` from its registry to `archive`."""
        return [[self.name, "pull", "--quiet", reference], self.save_command(reference, archive)]

    def run(
        self,
        command: list[str],
        log: IO[str] | int,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> int:
        """Run a command with its output going to `log`; returns the exit code.

        `environment` is added to the engine's own. Whoever is stopped in between (SystemExit,
        KeyboardInterrupt, TimeoutExpired) stops the command and all that it started first.
        """
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**self.environment(), **(environment or {})},
            start_new_session=True,
        )
        try:
            return process.wait(timeout_seconds)
        except BaseException:
            _stop_group(process)
            raise

    def environment(self) -> dict[str, str]:
        """The environment of this engine's commands."""
        environment = dict(os.environ)
        if self.name == "docker":
            environment["DOCKER_BUILDKIT"] = "1"
        else:
            environment["TMPDIR"] = str(self._cache_mounts())
        return environment

    def _cache_mounts(self) -> Path:
        """Buildah and podman keep the cache mounts of RUN below their temporary directory.

        Apt has lists and a lock for one architecture there. What compilers keep serves all of them.
        """
        own = self.cache / "build-cache"
        if self.platform is None:
            own.mkdir(parents=True, exist_ok=True)
            return own
        folder = self.cache / f"build-cache-{platforms.folder_name(self.platform)}"
        mounts = folder / "buildah-cache"
        mounts.mkdir(parents=True, exist_ok=True)
        for shared in ("root", "target"):
            place = own / "buildah-cache" / shared
            place.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                (mounts / shared).symlink_to(place.absolute())
        return folder


def _is_here(target: str) -> bool:
    """Whether a registry is on this machine, where it may speak plain HTTP."""
    return target.startswith(("localhost:", "127.0.0.1:"))


def _tls(target: str, insecure: bool) -> str:
    return f"--tls-verify={'false' if insecure or _is_here(target) else 'true'}"


def engine_at(engine: Engine, platform: str) -> Engine:
    """The engine as it builds for `platform`, whether or not programs of it run here."""
    return engine if platform == platforms.native() else replace(engine, platform=platform)


def for_platform(engine: Engine, platform: str) -> Engine:
    """The engine as it builds for `platform`, whose programs run here from now on.

    Raises ImageError where they cannot.
    """
    # Docker's builder may be another machine, or a virtual one with emulators of its own.
    if platform != platforms.native() and engine.name != "docker":
        platforms.ensure_runs_here(platform)
    return engine_at(engine, platform)


def find_engine(cache: Path, wanted: str | None = None) -> Engine:
    """The engine called `wanted`, or the first that works of docker, podman and buildah.

    Installs what is missing with apt where this is a Debian run by root: buildah when nothing
    works, mmdebstrap when the base image has to be made. Raises ImageError when there is no way to
    build an image.
    """
    names = get_args(EngineName)
    if wanted is not None and wanted not in names:
        raise ImageError(f"no engine is called {wanted!r}; choose one of {', '.join(names)}")
    for name in names:
        if wanted in (None, name) and _works(name):
            return Engine(name, cache, makes_base=_must_make_base(name, cache))
    if wanted in (None, "buildah"):
        install("buildah", *_MAKES_BASE)
        if _works("buildah"):
            return Engine("buildah", cache, makes_base=True)
    raise ImageError(
        f"{wanted or 'no container engine'} does not work here: start docker or podman,"
        " or install buildah and mmdebstrap and be root"
    )


def _must_make_base(name: EngineName, cache: Path) -> bool:
    """Whether the base image is our own or has to be. Raises ImageError when it cannot be made."""
    if name != "podman":
        return name == "buildah"
    engine = Engine(name, cache)
    here = engine.base_label()
    if here is not None:
        return here != ""
    if engine.reaches(BASE_REFERENCE):
        return False
    if shutil.which("mmdebstrap") is None:
        install(*_MAKES_BASE)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise ImageError(
            f"{name} works, but it has no {BASE_REFERENCE} and reaches no registry that has it:"
            f" {name} pull {BASE_REFERENCE}, or install mmdebstrap and be root to have it made"
        )
    return True


def _stop_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: a compiler that it started would go on for minutes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _works(name: EngineName) -> bool:
    """Whether the engine is installed, running and usable by this user."""
    if shutil.which(name) is None:
        return False
    if name == "buildah" and (os.geteuid() != 0 or shutil.which("mmdebstrap") is None):
        return False
    try:
        probe = subprocess.run([name, "info"], capture_output=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0
