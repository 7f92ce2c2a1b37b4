"""What the Makefile does to what is not Laptime's: folders, containers, images, and releases."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from laptime_cluster.layout import SOURCE

TOOLS = (
    *("bash", "make", "cat", "sed", "cut", "sha256sum", "du", "grep", "sort", "xargs", "chmod"),
    *("rm", "id", "ls", "mkdir", "touch", "umount", "dirname", "basename", "head", "nproc"),
    *("find", "readlink", "rmdir"),
)
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder with the programs of a machine that has no container engine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def make(tools: Path, tmp_path: Path) -> Make:
    def run(*words: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": str(tools), "HOME": str(tmp_path), "LAPTIME_CACHE": str(cache)}
        return subprocess.run(
            ["make", *words],
            cwd=SOURCE.parent,
            env=own | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_folder_that_was_there_before_the_cache_is_not_removed(
    make: Make, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").touch()
    # Whatever uses the cache.
    make("--dry-run", "unit-rust", cache=tmp_path / "data")
    refused = make("clean-cache", cache=tmp_path / "data")
    assert refused.returncode != 0
    assert f"{tmp_path}/data has no .laptime-cache" in refused.stderr
    assert (tmp_path / "data" / "precious").exists()


@pytest.mark.parametrize("was_there", [True, False])
def test_a_cache_that_make_began_is_removed(make: Make, tmp_path: Path, was_there: bool) -> None:
    cache = tmp_path / "large-disk"
    if was_there:
        cache.mkdir()
    make("help", cache=cache)
    assert cache.exists() == was_there
    make("--dry-run", "unit-rust", cache=cache)
    (cache / "images").mkdir()
    assert make("clean-cache", cache=cache).returncode == 0
    assert not cache.exists()


def test_the_usual_cache_is_removed_also_where_an_earlier_version_made_it(
    make: Make, tmp_path: Path
) -> None:
    cache = tmp_path / ".cache" / "laptime"
    (cache / "images").mkdir(parents=True)
    assert make("clean-cache", cache=cache).returncode == 0
    assert not cache.exists()


def test_a_link_to_a_larger_disk_stays_and_what_is_there_goes(make: Make, tmp_path: Path) -> None:
    disk, cache = tmp_path / "large-disk", tmp_path / "cache"
    disk.mkdir()
    cache.symlink_to(disk)
    make("--dry-run", "unit-rust", cache=cache)
    (disk / "images").mkdir()
    assert make("clean-cache", cache=cache).returncode == 0
    assert cache.is_symlink()
    assert list(disk.iterdir()) == []
    # What is begun there anew can be removed as well.
    make("--dry-run", "unit-rust", cache=cache)
    assert make("clean-cache", cache=cache).returncode == 0


def test_what_nothing_builds_again_stays(make: Make, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    make("--dry-run", "unit-rust", cache=cache)
    for folder in ("images", "proof"):
        (cache / folder).mkdir()
    (cache / "proof/journal.jsonl").write_text("{}\n")
    for _ in range(2):
        done = make("clean-cache", cache=cache)
        assert done.returncode == 0
        assert f"kept: when each check passed (make standing), in {cache}/proof" in done.stdout
        assert (cache / "proof/journal.jsonl").read_text() == "{}\n"
        assert not (cache / "images").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("buildah"), reason="needs root and buildah"
)
def test_containers_and_images_without_a_name_of_others_stay(
    make: Make, tools: Path, tmp_path: Path
) -> None:
    configuration = tmp_path / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/graph"\nrunroot = "{tmp_path}/run"\n'
    )
    own = {"CONTAINERS_STORAGE_CONF": str(configuration)}
    (tmp_path / "file").touch()

    def buildah(*words: str) -> str:
        return subprocess.check_output(["buildah", *words], env=os.environ | own, text=True)

    def build(instructions: str, *options: str) -> str:
        (tmp_path / "Dockerfile").write_text(instructions)
        file = f"--file={tmp_path}/Dockerfile"
        words = ("bud", "--quiet", "--pull=never", "--layers", *options, file, str(tmp_path))
        return buildah(*words).strip()

    assert f'"GraphRoot": "{tmp_path}/graph"' in buildah("info")
    base = "docker.io/library/debian:trixie-slim"
    build("FROM scratch\nLABEL dev.laptime.base=key\n", f"--tag={base}")
    compiled = f"FROM {base} AS one\nCOPY file /b\nFROM {base}\nCOPY --from=one /b /c\n"
    build(compiled, "--tag=docker.io/laptime/server:1")
    unnamed = build("FROM scratch\nCOPY file /precious\n")
    containers = {buildah("from", one).strip() for one in (base, unnamed)}
    # One with a name of somebody else's, and one that only a container of ours has.
    alike = build("FROM scratch\nCOPY file /d\n", "--tag=docker.io/laptime/alike:1")
    buildah("tag", alike, "docker.io/mine/my-server:7")
    containers.add(buildah("from", "docker.io/mine/my-server:7").strip())
    build("FROM scratch\nCOPY file /e\n", "--tag=docker.io/laptime/started:1")
    buildah("from", "docker.io/laptime/started:1")
    assert len(buildah("images", "--all", "--quiet").split()) == 6

    (tools / "buildah").symlink_to(str(shutil.which("buildah")))
    assert make("clean-cache", cache=tmp_path / "cache", **own).returncode == 0
    there = buildah("containers", "--noheading", "--format={{.ContainerName}}").split()
    assert set(there) == containers
    images = buildah("images", "--all", "--no-trunc", "--noheading", "--format={{.Name}} {{.ID}}")
    # The base is as Docker's own to whoever else builds on that name.
    names = [line.split()[0] for line in images.splitlines()]
    kept = ["<none>", "docker.io/library/debian", "docker.io/mine/my-server"]
    assert sorted(names) == kept
    assert unnamed in images


def test_a_release_on_a_cluster_of_ones_own_keeps_its_values_and_its_runs(
    make: Make, tmp_path: Path
) -> None:
    def recipe(*words: str) -> str:
        return make("--dry-run", "demo", *words, cache=tmp_path / "cache").stdout

    kept, again = "--reset-then-reuse-values", "laptime run examples/users-quick.yaml"
    for registry in ((), ("REGISTRY=registry.example",)):
        own = recipe("KUBECONFIG=/dev/null", *registry)
        assert again in own
        assert kept in own
        assert "--again" not in own
    # What is pulled is what the release has, which is known to Helm alone.
    asked = recipe("KUBECONFIG=/dev/null")
    assert "docker.io/laptime" not in asked
    assert "--dry-run=server" in asked
    embedded = recipe()
    assert kept not in embedded
    assert "--again" in embedded
