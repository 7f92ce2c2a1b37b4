"""Which engine builds, and where its base image comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from build import ROOT, Builder
from imagebuild.catalog import ImageError
from imagebuild.engines import find_engine

# What `podman image inspect` answers: an image that was pulled has no label of ours.
PULLED, OURS, NONE = "echo", "echo 0123-abc", "exit 125"


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, for programs that say what a test wants."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    # No more than a Mac has: `timeout` is not among it.
    for name in ("sleep", "sh"):
        (folder / name).symlink_to(Path("/usr/bin") / name)
    return folder


def says(folder: Path, *, base: str, registry: str) -> None:
    """Make a podman that works, with this base image and this answer of the registry."""
    script = folder / "podman"
    script.write_text(
        f"#!/usr/bin/sh\ncase $1 in info) exit 0 ;; image) {base} ;; manifest) {registry} ;; esac\n"
    )
    script.chmod(0o755)


@pytest.mark.parametrize(
    ("base", "registry", "makes"),
    [(PULLED, "exit 1", False), (OURS, "exit 0", True), (NONE, "exit 0", False)],
    ids=["pulled", "made here before", "to be pulled"],
)
def test_podman_builds_on_what_it_has_or_can_pull(
    podman: Path, tmp_path: Path, base: str, registry: str, makes: bool
) -> None:
    says(podman, base=base, registry=registry)
    engine = find_engine(tmp_path)
    assert (engine.name, engine.makes_base) == ("podman", makes)


def test_without_a_registry_podman_builds_on_debians_packages(podman: Path, tmp_path: Path) -> None:
    says(podman, base=NONE, registry="exit 1")
    (podman / "mmdebstrap").symlink_to("/usr/bin/true")
    if os.geteuid() == 0:
        assert find_engine(tmp_path).makes_base
    else:
        with pytest.raises(ImageError, match="be root"):
            find_engine(tmp_path)


def test_a_registry_that_never_answers_is_out_of_reach(
    podman: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagebuild.engines.PROBE_SECONDS", 0.1)
    says(podman, base=NONE, registry="sleep 60")
    with pytest.raises(ImageError, match="reaches no registry"):
        find_engine(tmp_path)


def test_nothing_is_fetched_where_no_registry_is_in_reach(podman: Path, tmp_path: Path) -> None:
    says(podman, base=PULLED, registry="exit 1")
    assert not Builder(ROOT, tmp_path, find_engine(tmp_path)).fetch("other", "docker.io/other:1")


def test_where_no_base_can_be_had_it_is_said_what_to_do(podman: Path, tmp_path: Path) -> None:
    says(podman, base=NONE, registry="exit 1")
    with pytest.raises(ImageError, match=r"podman pull docker\.io/library/debian.*mmdebstrap"):
        find_engine(tmp_path)
