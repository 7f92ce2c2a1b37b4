"""The toolchain is used only when it is what the checksum database knows."""

import zipfile
from pathlib import Path

import pytest

from laptime_cluster import toolchain
from laptime_cluster.commands import ClusterError

PREFIX = "golang.org/toolchain@v0.0.1-go1.0.0.linux-amd64/"
# echo of the algorithm by other means: sha256sum of both files, sorted by name, hashed again.
HASH = "dVVc2+iQdF68ofsXEIl4/pEZgVxxwS9kpYeBffRsH9Q="


def _zip(folder: Path) -> Path:
    path = folder / "go.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{PREFIX}bin/go", "program\n")
        archive.writestr(f"{PREFIX}VERSION", "go1.0.0\n")
    return path


def test_the_expected_content_is_unpacked_and_programs_can_run(tmp_path: Path) -> None:
    toolchain.unpack(_zip(tmp_path), PREFIX, HASH, tmp_path)
    assert (tmp_path / "tree" / "VERSION").read_text() == "go1.0.0\n"
    assert (tmp_path / "tree" / "bin" / "go").stat().st_mode & 0o777 == 0o755


def test_any_other_content_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{PREFIX}bin/extra", "")
    with pytest.raises(ClusterError, match="not used"):
        toolchain.unpack(path, PREFIX, HASH, tmp_path)
    assert not (tmp_path / "tree").exists()
