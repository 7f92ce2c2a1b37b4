"""What is read from image archives, and the one archive that this package makes itself."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from laptime_cluster import images, pause
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import SOURCE, pause_image


def _archive(path: Path, files: dict[str, object]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            data = json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def test_docker_archive_names_its_images(tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "a.tar",
        {"manifest.json": [{"RepoTags": ["docker.io/laptime/k6:1", "laptime/k6:2", "k6:3"]}]},
    )
    assert images.describe(path).references == (
        "docker.io/laptime/k6:1",
        "docker.io/laptime/k6:2",
        "docker.io/library/k6:3",
    )


def test_oci_archive_names_its_images(tmp_path: Path) -> None:
    name = "registry.example:5000/a/b:1"
    manifest = {"annotations": {"org.opencontainers.image.ref.name": name}}
    path = _archive(tmp_path / "a.tar", {"index.json": {"manifests": [manifest]}})
    assert images.describe(path).references == (name,)


@pytest.mark.parametrize(
    "files",
    [
        {"etc/hostname": "no image"},
        {"manifest.json": [{"RepoTags": None}]},
        {"index.json": {"manifests": [{}]}},
    ],
)
def test_a_file_without_a_named_image_is_refused(tmp_path: Path, files: dict[str, object]) -> None:
    with pytest.raises(ClusterError, match=r"a\.tar"):
        images.describe(_archive(tmp_path / "a.tar", files))


def test_the_digest_beside_an_archive_is_its_key(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.tar", {"manifest.json": [{"RepoTags": ["a/b:1"]}]})
    without = images.describe(path).key
    (tmp_path / "a.digest").write_text("sha256:0123\n", encoding="utf-8")
    assert images.describe(path).key == "sha256:0123" != without


def test_the_pause_image_is_what_its_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pause, "IMAGES", tmp_path)
    path = pause.archive()
    assert images.describe(path).references == (pause_image(),)
    with tarfile.open(path) as archive:

        def content(name: str) -> bytes:
            member = archive.extractfile(name)
            assert member is not None
            return member.read()

        config = json.loads(content("config.json"))
        layer = content("layer.tar")
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as inner:
        assert inner.getmember("pause").mode == 0o755
    assert pause.archive() == path


def test_an_image_of_another_checkout_is_loaded_in_nobodys_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ours", "theirs", "fetched"):
        _archive(tmp_path / f"{name}.tar", {"manifest.json": [{"RepoTags": [f"laptime/{name}:1"]}]})
        (tmp_path / f"{name}.digest").write_text("key\n")
    # As images/build.py records what this checkout wants.
    folder = tmp_path / f".of-{hashlib.sha256(str(SOURCE.parent).encode()).hexdigest()[:16]}"
    folder.mkdir()
    (folder / "ours").write_text("key\n")
    (folder / "theirs").write_text("another\n")
    monkeypatch.setattr(images, "IMAGES", tmp_path)
    monkeypatch.setattr(images, "containerd_of", lambda _: None)
    monkeypatch.setattr(images, "_known_keys", lambda _: {})
    monkeypatch.setattr(images, "import_archive", lambda *_: None)
    node: Any = None
    assert images.load(node, ["ours", "fetched"]) == ["ours", "fetched"]
    with pytest.raises(ClusterError, match=r"another checkout has built its own .*/theirs.tar"):
        images.load(node, ["ours", "theirs"])
    assert images.load(node, []) == ["fetched", "ours"]
    assert "passing over an image: another checkout" in capsys.readouterr().out
