"""When an image is built, and what a failure or a kill leaves behind."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

import build
from build import Builder
from conftest import PretendingEngine
from imagebuild.catalog import Image, ImageError, discover
from imagebuild.engines import find_engine


@pytest.fixture
def builder(project: Path, engine: PretendingEngine) -> Builder:
    return Builder(project, engine.cache, engine)


@pytest.fixture
def tiny(project: Path) -> list[Image]:
    return [discover(project)["tiny"]]


def test_builds_once(builder: Builder, engine: PretendingEngine, tiny: list[Image]) -> None:
    builder.build(tiny, refresh=False, force=False)
    builder.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build", "save"]
    assert builder.store.archive("tiny").read_text() == "archive 2"


def test_builds_again_when_something_changed(
    builder: Builder, engine: PretendingEngine, tiny: list[Image], project: Path
) -> None:
    builder.build(tiny, refresh=False, force=False)
    (project / "library/code.py").write_text("x = 2\n")
    builder.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build", "save"] * 2


def test_what_another_checkout_has_built_since_is_known(
    builder: Builder, engine: PretendingEngine, tiny: list[Image], tmp_path: Path
) -> None:
    """All have one store, where the last one's image is under the name of all of them."""
    (name,) = (image.name for image in tiny)
    assert not builder.store.is_of_another(builder.root, name)
    builder.build(tiny, refresh=False, force=False)
    assert not builder.store.is_of_another(builder.root, name)
    builder.store.put(name, archive_of_another(builder, name), "another-key")
    assert builder.store.is_of_another(builder.root, name)
    # A checkout that never wanted it has nothing to say of it.
    assert not builder.store.is_of_another(tmp_path / "elsewhere", name)
    builder.build(tiny, refresh=False, force=False)
    assert not builder.store.is_of_another(builder.root, name)


def archive_of_another(builder: Builder, name: str) -> Path:
    """Return an archive that another checkout is about to put into the store."""
    file = builder.store.temporary(name)
    file.write_bytes(b"another")
    return file


def test_builds_again_for_another_version(
    builder: Builder, engine: PretendingEngine, tiny: list[Image], project: Path
) -> None:
    builder.build(tiny, refresh=False, force=False)
    (project / "VERSION").write_text("1.2.4\n")
    builder.build([discover(project)["tiny"]], refresh=False, force=False)
    assert engine.ran == ["build", "save"] * 2


def test_builds_again_when_the_archive_is_gone(
    builder: Builder, engine: PretendingEngine, tiny: list[Image]
) -> None:
    builder.build(tiny, refresh=False, force=False)
    builder.store.archive("tiny").unlink()
    builder.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build", "save"] * 2


@pytest.mark.parametrize("died_at", [0, 1])
def test_a_killed_build_leaves_the_old_image_in_place(
    builder: Builder, engine: PretendingEngine, tiny: list[Image], project: Path, died_at: int
) -> None:
    builder.build(tiny, refresh=False, force=False)
    key = builder.store.key("tiny")
    (project / "library/code.py").write_text("x = 2\n")
    engine.outcomes[:] = [0] * died_at + [KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        builder.build(tiny, refresh=False, force=False)
    assert builder.store.key("tiny") == key
    assert builder.store.archive("tiny").read_text() == "archive 2"
    builder.build(tiny, refresh=False, force=False)
    assert builder.store.key("tiny") not in ("", key)


def test_an_archive_without_its_digest_is_not_used(builder: Builder, tiny: list[Image]) -> None:
    builder.build(tiny, refresh=False, force=False)
    (builder.store.folder / "tiny.digest").unlink()
    assert builder.store.key("tiny") == ""


def test_a_failed_build_shows_the_end_of_its_log(
    builder: Builder, engine: PretendingEngine, tiny: list[Image]
) -> None:
    engine.outcomes[:] = [1]
    with pytest.raises(ImageError, match="it is broken"):
        builder.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build"]
    assert builder.store.key("tiny") == ""


@pytest.mark.parametrize(("failures", "succeeds"), [(2, True), (3, False)])
def test_a_busy_mirror_is_asked_again(
    builder: Builder,
    engine: PretendingEngine,
    tiny: list[Image],
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    succeeds: bool,
) -> None:
    monkeypatch.setattr(build, "RETRY_PAUSES_SECONDS", (0, 0))
    engine.outcomes[:] = [75] * failures
    with contextlib.nullcontext() if succeeds else pytest.raises(ImageError, match="Too Many"):
        builder.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build"] * 3 + ["save"] * succeeds


def test_the_table_tells_what_is_outdated(
    builder: Builder, tiny: list[Image], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder.show(tiny)
    builder.build(tiny, refresh=False, force=False)
    builder.show(tiny)
    (project / "library/code.py").write_text("x = 2\n")
    builder.show(tiny)
    table = capsys.readouterr().out
    assert [state for state in ("not built", "up to date", "outdated") if state in table] == [
        "not built",
        "up to date",
        "outdated",
    ]


def test_the_first_word_of_each_line_of_the_table_is_the_name(
    builder: Builder, tiny: list[Image], capsys: pytest.CaptureFixture[str]
) -> None:
    """So that names can be handed on, to a registry that has to be told them before."""
    long = replace(tiny[0], name="server-starlette-asyncpg")
    builder.show([*tiny, long])
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["tiny", long.name]


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="'kaniko'; choose one of docker, podman, buildah"):
        find_engine(tmp_path, "kaniko")


def test_push_needs_a_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["push"]) == 1
    assert "push REGISTRY" in capsys.readouterr().err


def test_what_is_pushed_may_have_a_tag_of_its_own() -> None:
    image = Image("operator", "0.1.0", PurePosixPath("images/operator/Dockerfile"))
    here = "registry.example/laptime"
    assert build.pushed_as(image, f"{here}/", None) == f"{here}/operator:0.1.0"
    assert build.pushed_as(image, here, "3f2a9c1") == f"{here}/operator:3f2a9c1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["push", "registry.example", "--tag", "a/b"], "--tag a/b: write letters, digits"),
        (["operator", "--tag", "1"], "--tag is for push"),
    ],
)
def test_a_tag_that_is_none_is_refused_before_anything_is_built(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build.main(words) == 1
    assert says in capsys.readouterr().err


def test_a_build_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    script = (
        "import io, signal, sys\n"
        "from pathlib import Path\n"
        "from imagebuild.engines import Engine\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"engine = Engine('docker', Path({str(tmp_path)!r}))\n"
        f"engine.run(['sh', '-c', 'sleep 600 & echo $! > {noted}; wait'], sys.stderr)\n"
    )
    folder = Path(build.__file__).parent
    with subprocess.Popen([sys.executable, "-c", script], cwd=folder) as builder:
        while not (noted.exists() and noted.read_text().endswith("\n")):
            assert builder.poll() is None
            time.sleep(0.02)
        builder.terminate()
        assert builder.wait() == 143
    # It was killed, and dies once it has a CPU; without that it would be there for ten minutes.
    deadline = time.monotonic() + 60
    while is_alive(noted.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: str) -> bool:
    """Whether a process is neither gone nor dead and waiting to be reaped."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
