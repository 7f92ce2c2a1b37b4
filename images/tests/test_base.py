"""When the base image is made, and when the old one stays in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from imagebuild.base import MAX_AGE_SECONDS, ensure_archive, mirrors
from imagebuild.catalog import ImageError


class Bootstrap:
    """Stands in for mmdebstrap: writes `content`, or fails when there is none."""

    def __init__(self) -> None:
        self.content: str | None = "packages of today"
        self.calls = 0

    def __call__(self, command: list[str], environment: dict[str, str]) -> bool:
        self.calls += 1
        assert environment.keys() == {"SOURCE_DATE_EPOCH"}
        archive = Path(next(word for word in command if ".tar." in word))
        archive.write_text(self.content or "half")
        return self.content is not None


def grow_old(images: Path) -> None:
    then = time.time() - MAX_AGE_SECONDS - 1
    os.utime(images / "base.tar", (then, then))


def test_made_once_and_kept(tmp_path: Path) -> None:
    bootstrap = Bootstrap()
    key = ensure_archive(tmp_path, False, bootstrap)
    assert ensure_archive(tmp_path, False, bootstrap) == key
    assert bootstrap.calls == 1


def test_the_same_packages_keep_the_key(tmp_path: Path) -> None:
    bootstrap = Bootstrap()
    key = ensure_archive(tmp_path, False, bootstrap)
    grow_old(tmp_path)
    assert ensure_archive(tmp_path, False, bootstrap) == key
    assert bootstrap.calls == 2
    bootstrap.content = "packages of tomorrow"
    assert ensure_archive(tmp_path, True, bootstrap) != key


def test_an_old_one_is_better_than_none(tmp_path: Path) -> None:
    bootstrap = Bootstrap()
    key = ensure_archive(tmp_path, False, bootstrap)
    grow_old(tmp_path)
    bootstrap.content = None
    assert ensure_archive(tmp_path, False, bootstrap) == key
    assert (tmp_path / "base.tar").read_text() == "packages of today"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["base.digest", "base.tar"]


def test_none_is_an_error(tmp_path: Path) -> None:
    bootstrap = Bootstrap()
    bootstrap.content = None
    with pytest.raises(ImageError, match="mmdebstrap"):
        ensure_archive(tmp_path, False, bootstrap)
    assert list(tmp_path.iterdir()) == []


def test_the_base_comes_from_the_mirrors_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "debian.sources").write_text(
        "Types: deb\nURIs: http://mirror.example/debian/\nSuites: bookworm\n\n"
        "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n"
    )
    assert mirrors(tmp_path) == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main",
    ]
    (folder / "debian.sources").write_text("Types: deb\nURIs: http://elsewhere.example/ubuntu\n")
    assert mirrors(tmp_path) == []
