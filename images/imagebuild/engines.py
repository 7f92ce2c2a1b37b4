"""The programs that can build an image: docker, podman or buildah."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, get_args

from imagebuild.catalog import ImageError

BASE_REFERENCE = "docker.io/library/debian:trixie-slim"

EngineName = Literal["docker", "podman", "buildah"]
_STOP_SECONDS = 10


@dataclass(frozen=True)
class Engine:
    """A working container engine.

    Docker and podman pull the base image from its registry. Buildah is used where neither works
    and builds without a registry, on a base image that `imagebuild.base` has made.
    """

    name: EngineName
    cache: Path

    @property
    def makes_base(self) -> bool:
        """Whether the base image comes from Debian's packages instead of a registry."""
        return self.name == "buildah"

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
            command = ["buildah", "bud", "--pull=never", "--isolation=chroot", "--layers"]
        else:
            command = [self.name, "build"]
        if self.name != "docker":
            # Docker's own archive format keeps the stop signal and the health check.
            command += ["--format=docker"]
        command += ["--network=host", f"--build-arg=VERSION={version}", f"--tag={reference}"]
        command += ["--no-cache"] if fresh else []
        command += [f"--secret=id={name},src={path}" for name, path in secrets.items()]
        return [*command, f"--file={dockerfile}", str(context)]

    def save_command(self, reference: str, archive: Path) -> list[str]:
        """The command that writes `reference` to `archive` in docker's archive format."""
        if self.name == "buildah":
            return [
                "buildah",
                "push",
                "--quiet",
                reference,
                f"docker-archive:{archive}:{reference}",
            ]
        return [self.name, "save", f"--output={archive}", reference]

    def push_commands(
        self, archive: Path, reference: str, target: str, insecure: bool
    ) -> list[list[str]]:
        """The commands that send `archive` (which holds `reference`) to a registry as `target`.

        `insecure` allows plain HTTP; docker decides that in its daemon's own configuration.
        """
        if self.name == "docker":
            return [
                ["docker", "load", "--quiet", f"--input={archive}"],
                ["docker", "tag", reference, target],
                ["docker", "push", target],
            ]
        tls = [f"--tls-verify={'false' if insecure else 'true'}"]
        if self.name == "podman":
            return [
                ["podman", "load", "--quiet", f"--input={archive}"],
                ["podman", "push", *tls, reference, target],
            ]
        return [
            ["buildah", "pull", "--quiet", f"docker-archive:{archive}"],
            ["buildah", "push", *tls, reference, f"docker://{target}"],
        ]

    def probe_command(self, reference: str) -> list[str]:
        """The command that succeeds when the registry of `reference` is in reach and has it."""
        # Docker's client knows no other transport and no name for this one.
        transport = "" if self.name == "docker" else "docker://"
        return [self.name, "manifest", "inspect", f"{transport}{reference}"]

    def fetch_commands(self, reference: str, archive: Path) -> list[list[str]]:
        """The commands that bring `reference` from its registry to `archive`."""
        return [[self.name, "pull", "--quiet", reference], self.save_command(reference, archive)]

    def run(
        self, command: list[str], log: IO[str], environment: Mapping[str, str] | None = None
    ) -> int:
        """Run a command with its output going to `log`; returns the exit code.

        `environment` is added to the engine's own. Whoever is stopped in between (SystemExit,
        KeyboardInterrupt) stops the command and all that it started first.
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
            return process.wait()
        except BaseException:
            _stop_group(process)
            raise

    def environment(self) -> dict[str, str]:
        """The environment of this engine's commands."""
        environment = dict(os.environ)
        if self.name == "docker":
            environment["DOCKER_BUILDKIT"] = "1"
        else:
            # Buildah and podman keep the cache mounts of RUN below their temporary directory.
            directory = self.cache / "build-cache"
            directory.mkdir(parents=True, exist_ok=True)
            environment["TMPDIR"] = str(directory)
        return environment


def find_engine(cache: Path, wanted: str | None = None) -> Engine:
    """The engine called `wanted`, or the first that works of docker, podman and buildah.

    Installs buildah and mmdebstrap with apt when nothing works and this is a Debian run by root.
    Raises ImageError when there is no way to build an image.
    """
    names = get_args(EngineName)
    if wanted is not None and wanted not in names:
        raise ImageError(f"no engine is called {wanted!r}; choose one of {', '.join(names)}")
    for name in names:
        if wanted in (None, name) and _works(name):
            return Engine(name, cache)
    if wanted in (None, "buildah") and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = ["buildah", "mmdebstrap", "debian-archive-keyring"]
        print(f"installing {' '.join(packages)}", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            subprocess.run(
                ["apt-get", "--quiet=2", *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        if _works("buildah"):
            return Engine("buildah", cache)
    raise ImageError(
        f"{wanted or 'no container engine'} does not work here: start docker or podman,"
        " or install buildah and mmdebstrap and be root"
    )


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
