#!/usr/bin/env python3
"""Build Laptime's images, with docker, podman or buildah, whichever works here.

usage:
  images/build.py [NAME...]               build what changed; the archives are in the cache
  images/build.py list                    every image, whether it is up to date, its size
  images/build.py push REGISTRY [NAME...] build and push to REGISTRY/<name>:<version>, or --tag TAG
  images/build.py fetch NAME REFERENCE    bring an image that others build into the cache as NAME

With --platform linux/arm64 for that platform, and not for this machine's; with
--platform linux/amd64,linux/arm64 for both, which push sends under one name.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from imagebuild import platforms
from imagebuild.base import ensure_all_imported, ensure_archive, ensure_imported, recorded_key
from imagebuild.catalog import TEST_ONLY, Image, ImageError, discover, select, snapshot
from imagebuild.engines import Engine, engine_at, find_engine, for_platform
from imagebuild.host import write_secrets
from imagebuild.progress import Progress
from imagebuild.store import Store, default_cache

ROOT = Path(__file__).resolve().parent.parent
# Part of every content key: raise it when the way of building changes what is built.
RECIPE = "1"
TAG = re.compile(r"[A-Za-z0-9_][-._A-Za-z0-9]{0,127}")
RETRY_PAUSES_SECONDS = (10, 30, 60)
TRANSIENT = re.compile(
    r"429|50[234] |Too Many Requests|Temporary failure|timed? ?out|Connection (reset|refused)",
    re.IGNORECASE,
)


class Builder:
    """Builds images with one engine, for its platform, into one store."""

    def __init__(self, root: Path, cache: Path, engine: Engine) -> None:
        self.root = root
        self.engine = engine
        self.platform = engine.platform
        self.store = Store.of(cache, self.platform)
        self.logs = cache / "logs" / self.store.folder.relative_to(cache / "images")
        self.logs.mkdir(parents=True, exist_ok=True)
        # Stages that compile are this machine's, whatever they compile for.
        self.native = (
            Builder(root, cache, replace(engine, platform=None)) if self.platform else self
        )

    def base_key(self, refresh: bool) -> str:
        """What identifies the base image; makes it where no registry is used."""
        if not self.engine.makes_base:
            return self.engine.name
        if self.native is not self:
            self.native.base_key(refresh)
        log = self.logs / "image-base.log"
        title = f"base image{self._for_platform}"

        def run(command: list[str], environment: dict[str, str]) -> bool:
            with log.open("w") as file, Progress(title, log) as progress:
                built = self._run_patiently(command, file, log, environment)
                progress.result = "built" if built else f"failed, see {log}"
            return built

        with self.store.locked("base"):
            return ensure_archive(self.store.folder, refresh, run, self.platform)

    @property
    def _for_platform(self) -> str:
        """What is said behind a title where it is not this machine's platform."""
        return f" for {platforms.architecture(self.platform)}" if self.platform else ""

    def content_key(self, image: Image, context: Path, base_key: str) -> str:
        """Copy the image's files to `context`; returns what its archive must be marked with."""
        inputs = snapshot(self.root, image, context)
        parts = [RECIPE, base_key, image.reference, inputs]
        parts += [self.platform] if self.platform else []
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def build(self, images: list[Image], refresh: bool, force: bool) -> None:
        """Build those of `images` whose content changed. Raises ImageError."""
        base_key = self.base_key(refresh)
        for number, image in enumerate(images, start=1):
            title = f"[{number}/{len(images)}] {image.name}{self._for_platform}"
            with (
                self.store.locked(image.name),
                tempfile.TemporaryDirectory(prefix="laptime-image-") as folder,
            ):
                context = Path(folder) / "context"
                key = self.content_key(image, context, base_key)
                self.store.record(self.root, image.name, key)
                if self.store.key(image.name) == key and not force:
                    print(f"{title:<28} up to date", flush=True)
                    continue
                secrets = Path(folder) / "secrets"
                secrets.mkdir(mode=0o700)
                build = self.engine.build_command(
                    context,
                    context / image.dockerfile,
                    image.reference,
                    image.version,
                    write_secrets(secrets),
                    fresh=force,
                )
                self._build_one(image, title, build, key, base_key)

    def _build_one(
        self, image: Image, title: str, build: list[str], key: str, base_key: str
    ) -> None:
        log = self.logs / f"image-{image.name}.log"
        archive = self.store.temporary(image.name)
        commands = [build, self.engine.save_command(image.reference, archive)]
        with log.open("w") as file, Progress(title, log) as progress:
            if self.engine.makes_base:
                self._import_base(base_key, file)
            for command in commands:
                if not self._run_patiently(command, file, log):
                    raise ImageError(
                        f"{image.name} could not be built; end of {log}:\n{_tail(log, 30)}"
                    )
            self.store.put(image.name, archive, key)
            progress.result = f"built, {self.store.archive(image.name).stat().st_size / 1e6:.0f} MB"

    def _import_base(self, key: str, log: IO[str]) -> None:
        """Have the engine know the base image, for another platform that of this machine too."""
        store, native = self.store, self.native.store
        if self.platform is None:
            with store.locked("base"):
                ensure_imported(store.folder, key, self.engine, log)
            return
        with native.locked("base"), store.locked("base"):
            bases = {
                platforms.native(): (native.folder, recorded_key(native.folder)),
                self.platform: (store.folder, key),
            }
            ensure_all_imported(bases, self.engine, log)

    def _run_patiently(
        self,
        command: list[str],
        file: IO[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> bool:
        """Run `command`, again after a pause when a registry or mirror had a bad moment."""
        for pause_seconds in (*RETRY_PAUSES_SECONDS, None):
            if self.engine.run(command, file, environment) == 0:
                return True
            if pause_seconds is None or not TRANSIENT.search(_tail(log, 30)):
                return False
            file.write(f"\nSTEP 1/1: waiting {pause_seconds} s, then trying again\n")
            file.flush()
            time.sleep(pause_seconds)
        return False

    def push(
        self, images: list[Image], registry: str, insecure: bool, tag: str | None = None
    ) -> None:
        """Send the archives of `images` to a registry, as `pushed_as` names them.

        Raises ImageError.
        """
        for image in images:
            target = pushed_as(image, registry, tag)
            log = self.logs / f"push-{image.name}.log"
            commands = self.engine.push_commands(
                self.store.archive(image.name), image.reference, target, insecure
            )
            self._push_one(image, target, log, commands)

    def push_with(
        self,
        others: list[Builder],
        images: list[Image],
        registry: str,
        insecure: bool,
        tag: str | None = None,
    ) -> None:
        """Send `images` as `push` does, and under the same names those of `others`."""
        builders = [self, *others]
        for image in images:
            target = pushed_as(image, registry, tag)
            log = self.logs / f"push-{image.name}.log"
            archives = [(one.engine, one.store.archive(image.name)) for one in builders]
            commands = self.engine.push_all_commands(archives, image.reference, target, insecure)
            self._push_one(image, target, log, commands)

    def _push_one(self, image: Image, target: str, log: Path, commands: list[list[str]]) -> None:
        with log.open("w") as file, Progress(f"push {image.name}", log) as progress:
            for command in commands:
                if not self._run_patiently(command, file, log):
                    raise ImageError(f"{target} could not be pushed:\n{_tail(log, 10)}")
            progress.result = target

    def fetch(self, name: str, reference: str) -> bool:
        """Bring `reference` from its registry to the archive `name`, unless it is there.

        Returns False, after some seconds at most, where no registry is in reach. Raises ImageError
        when it was in reach and the image did not arrive.
        """
        with self.store.locked(name):
            if self.store.key(name) == reference:
                return True
            log = self.logs / f"fetch-{name}.log"
            with log.open("w") as file:
                if not self.engine.reaches(reference, file):
                    return False
                archive = self.store.temporary(name)
                with Progress(f"fetch {name}", log) as progress:
                    for command in self.engine.fetch_commands(reference, archive):
                        if not self._run_patiently(command, file, log):
                            raise ImageError(f"{reference} did not arrive:\n{_tail(log, 10)}")
                    self.store.put(name, archive, reference)
                    progress.result = reference
        return True

    def show(self, images: list[Image]) -> None:
        """Print a table of `images`: state, size and reference."""
        base_key = recorded_key(self.store.folder) if self.engine.makes_base else self.engine.name
        for image in images:
            with tempfile.TemporaryDirectory(prefix="laptime-image-") as folder:
                key = self.content_key(image, Path(folder), base_key)
            known = self.store.key(image.name)
            state = "up to date" if known == key else "outdated" if known else "not built"
            size = f"{self.store.archive(image.name).stat().st_size / 1e6:.0f} MB" if known else "-"
            print(f"{image.name:<24} {state:<12}{size:>8}  {image.reference}{self._for_platform}")


def pushed_as(image: Image, registry: str, tag: str | None) -> str:
    """Return what an image is called in a registry: by its version, or by a tag of one's own."""
    return f"{registry.rstrip('/')}/{image.name}:{tag or image.version}"


def _tail(log: Path, lines: int) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line. `list`, `push` and `fetch` stand in the place of the first image name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="%(prog)s"
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--engine", help="docker, podman or buildah (default: the first that works)"
    )
    parser.add_argument(
        "--platform",
        metavar="PLATFORM[,PLATFORM]",
        help=f"of {', '.join(platforms.KNOWN)} (default: this machine's)",
    )
    parser.add_argument("--force", action="store_true", help="build all steps of all images again")
    parser.add_argument("--refresh-base", action="store_true", help="make the base image again")
    parser.add_argument("--tag", help="push under this tag (default: the version)")
    parser.add_argument("--insecure", action="store_true", help="push over plain HTTP")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    options = parse(arguments)
    # As after Ctrl-C: what is being built is stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    commands = (["list"], ["push"], ["fetch"])
    command = options.names[0] if options.names[:1] in commands else "build"
    names: list[str] = options.names if command == "build" else options.names[1:]
    started = time.monotonic()
    try:
        if command == "push" and not names:
            raise ImageError("say where to: images/build.py push REGISTRY [NAME...]")
        if options.tag is not None and command != "push":
            raise ImageError("--tag is for push: elsewhere images are called by their version")
        if options.tag is not None and not TAG.fullmatch(options.tag):
            raise ImageError(f"--tag {options.tag}: write letters, digits, _, . and - alone")
        wanted = platforms.parse(options.platform)
        if command == "fetch":
            if options.platform is not None:
                raise ImageError("fetch knows no --platform: it is for this machine")
            return fetch(names, options.engine)
        registry = names.pop(0) if command == "push" else ""
        images = select(discover(ROOT), names)
        if command == "push" and not names:
            images = [image for image in images if image.name not in TEST_ONLY]
        cache = default_cache()
        if shutil.disk_usage(ROOT).free < 3e9:
            print("warning: less than 3 GB of disk are free", file=sys.stderr)
        engine = find_engine(cache, options.engine)
        if command == "list":
            for platform in wanted:
                Builder(ROOT, cache, engine_at(engine, platform)).show(images)
            return 0
        builders = [Builder(ROOT, cache, for_platform(engine, platform)) for platform in wanted]
        for builder in builders:
            builder.build(images, options.refresh_base, options.force)
        if command == "push" and len(builders) == 1:
            builders[0].push(images, registry, options.insecure, options.tag)
        elif command == "push":
            builders[0].push_with(builders[1:], images, registry, options.insecure, options.tag)
    except ImageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for builder in builders:
        print(f"{len(images)} images in {builder.store.folder}, {time.monotonic() - started:.1f} s")
    return 0


def fetch(words: list[str], engine: str | None) -> int:
    """Bring an image that others build into the cache; 1 where no registry is in reach."""
    if len(words) != 2:
        raise ImageError("say as what, and which: images/build.py fetch NAME REFERENCE")
    cache = default_cache()
    name, reference = words
    if Builder(ROOT, cache, find_engine(cache, engine)).fetch(name, reference):
        return 0
    print(f"{reference}: no image registry is in reach", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
