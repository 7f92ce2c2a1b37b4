"""For which platforms images are built, and whether their programs run here."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import pytest

import build
from build import RECIPE, Builder
from conftest import PretendingEngine
from imagebuild import platforms
from imagebuild.base import bootstrap_command
from imagebuild.catalog import Image, ImageError, discover, snapshot
from imagebuild.engines import Engine, engine_at

OTHER = next(name for name in platforms.KNOWN if name != platforms.native())


@pytest.fixture
def tiny(project: Path) -> list[Image]:
    return [discover(project)["tiny"]]


@pytest.fixture
def foreign(project: Path, engine: PretendingEngine) -> Builder:
    """A builder for a platform that is not this machine's."""
    return Builder(project, engine.cache, engine_at(engine, OTHER))


def command(engine: Engine) -> list[str]:
    return engine.build_command(
        Path("context"), Path("Dockerfile"), "laptime/tiny:1", "1", {}, fresh=False
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, [platforms.native()]),
        ("linux/arm64", ["linux/arm64"]),
        ("linux/amd64,linux/arm64", ["linux/amd64", "linux/arm64"]),
        ("linux/arm64, linux/amd64,linux/arm64", ["linux/arm64", "linux/amd64"]),
    ],
)
def test_platforms_are_parted_by_commas(text: str | None, names: list[str]) -> None:
    assert platforms.parse(text) == names


@pytest.mark.parametrize("text", ["arm64", "linux/riscv64", "linux/amd64,linux/arm", ""])
def test_an_unknown_platform_is_answered_with_what_to_write(text: str) -> None:
    with pytest.raises(ImageError, match="write linux/amd64 or linux/arm64"):
        platforms.parse(text)


def test_the_command_line_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--platform", "linux/arm", "list"]) == 1
    assert "'linux/arm'; write linux/amd64" in capsys.readouterr().err


def test_what_others_build_is_brought_for_this_machine_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert build.main(["--platform", OTHER, "fetch", "name", "registry.example/one:1"]) == 1
    assert "fetch knows no --platform" in capsys.readouterr().err


def test_programs_of_this_machine_run_on_it() -> None:
    assert platforms.runs_here(platforms.native())


def test_the_program_that_is_tried_is_one_of_its_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run(words: list[str], **options: object) -> None:
        program = next(Path(word) for word in reversed(words) if Path(word).exists())
        program = program / "program" if program.is_dir() else program
        seen.append(struct.unpack_from("<H", program.read_bytes(), 18)[0])
        raise OSError(8, "Exec format error")

    monkeypatch.setattr("subprocess.run", run)
    assert not platforms.runs_here("linux/arm64")
    assert seen == [platforms.elf_machine("linux/arm64")] == [183]


def test_where_nothing_emulates_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "runs_here", lambda name: False)
    monkeypatch.setattr(platforms, "install", lambda *packages: None)
    monkeypatch.setattr(platforms, "_settings", lambda qemu: None)
    with pytest.raises(ImageError, match=r"do not run on this machine.*install qemu-user-static"):
        platforms.ensure_runs_here(OTHER)


@pytest.mark.parametrize("flags", ["OPF", "OP"])
def test_an_emulator_is_registered_for_folders_that_have_no_file_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setattr(platforms, "BINFMT", tmp_path)
    (tmp_path / "qemu-aarch64").write_text("disabled\n")
    platforms._register(f":qemu-aarch64:M::\\x7f:\\xff:/usr/bin/qemu:{flags}")
    assert (tmp_path / "register").read_text().endswith("/usr/bin/qemu:OPF")
    assert (tmp_path / "qemu-aarch64").read_text() == "-1"


def test_what_is_cached_for_this_machine_keeps_its_place_and_its_key(
    project: Path, engine: PretendingEngine, tiny: list[Image], tmp_path: Path
) -> None:
    builder = Builder(project, engine.cache, engine_at(engine, platforms.native()))
    builder.build(tiny, refresh=False, force=False)
    inputs = snapshot(project, tiny[0], tmp_path / "context")
    parts = [RECIPE, "docker", "docker.io/laptime/tiny:1.2.3", inputs]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    assert (engine.cache / "images/tiny.digest").read_text() == key + "\n"
    assert (engine.cache / "images/tiny.tar").exists()


def test_another_platforms_images_are_kept_apart(
    project: Path, engine: PretendingEngine, foreign: Builder, tiny: list[Image]
) -> None:
    native = Builder(project, engine.cache, engine)
    native.build(tiny, refresh=False, force=False)
    foreign.build(tiny, refresh=False, force=False)
    foreign.build(tiny, refresh=False, force=False)
    assert engine.ran == ["build", "save"] * 2
    folder = engine.cache / "images" / OTHER.replace("/", "-")
    assert (folder / "tiny.tar").read_text() == "archive 4"
    assert native.store.archive("tiny").read_text() == "archive 2"
    assert foreign.store.key("tiny") not in ("", native.store.key("tiny"))


def test_the_table_names_another_platform(
    foreign: Builder, tiny: list[Image], capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.build(tiny, refresh=False, force=False)
    foreign.show(tiny)
    line = capsys.readouterr().out.splitlines()[-1]
    assert "up to date" in line
    assert line.endswith(f"tiny:1.2.3 for {platforms.architecture(OTHER)}")


@pytest.mark.parametrize("name", ["docker", "podman", "buildah"])
def test_a_build_for_this_machine_says_no_platform(tmp_path: Path, name: str) -> None:
    engine = Engine(name, tmp_path)  # type: ignore[arg-type]
    assert engine.client == [name]
    assert not [word for word in command(engine) if "PLATFORM" in word.upper()]
    assert command(engine_at(engine, platforms.native())) == command(engine)


@pytest.mark.parametrize("name", ["podman", "buildah"])
def test_what_is_built_for_another_platform_is_out_of_the_way(tmp_path: Path, name: str) -> None:
    engine = engine_at(Engine(name, tmp_path), OTHER)  # type: ignore[arg-type]
    words = command(engine)
    assert f"--root={tmp_path}/storage/{OTHER.replace('/', '-')}" in words[:3]
    assert f"--platform={OTHER}" in words
    assert f"--build-arg=BUILDPLATFORM={platforms.native()}" in words
    assert engine.save_command("laptime/tiny:1", Path("a.tar"))[:3] == words[:3]


def test_docker_has_a_name_for_each_platform(tmp_path: Path) -> None:
    engine = engine_at(Engine("docker", tmp_path), OTHER)
    name = f"laptime/tiny:1-{platforms.architecture(OTHER)}"
    assert f"--tag={name}" in command(engine)
    assert engine.save_command("laptime/tiny:1", Path("a.tar"))[-1] == name
    loaded, tagged, _ = engine.push_commands(Path("a.tar"), "laptime/tiny:1", "there/tiny:1", False)
    assert loaded[1] == "load"
    assert tagged[2:] == [name, "there/tiny:1"]


def test_compilers_keep_what_they_did_for_all_platforms(tmp_path: Path) -> None:
    native = Engine("buildah", tmp_path)
    for _ in range(2):
        other = replace(native, platform=OTHER).environment()["TMPDIR"]
    own = Path(native.environment()["TMPDIR"])
    assert own != Path(other)
    (own / "buildah-cache/root/go").mkdir()
    assert (Path(other) / "buildah-cache/root/go").is_dir()
    assert not (Path(other) / "buildah-cache/var").exists()


def test_the_base_is_made_of_the_platforms_packages() -> None:
    words = bootstrap_command(Path("-"), OTHER)
    assert f"--architectures={platforms.architecture(OTHER)}" in words
    assert not [word for word in bootstrap_command(Path("-")) if "arch" in word.split("=")[0]]


def test_a_stage_after_one_that_compiles_says_its_platform() -> None:
    # Buildah has it from the stage before it: the image would be of this machine's packages.
    root = Path(__file__).parents[2]
    for image in discover(root).values():
        lines = (root / image.dockerfile).read_text(encoding="utf-8").splitlines()
        stages = [line.split() for line in lines if line.startswith("FROM ")]
        names = {words[-1] for words in stages if words[-2] == "AS"}
        if any(words[1] == "--platform=$BUILDPLATFORM" for words in stages):
            plain = {words[1] for words in stages if not words[1].startswith("--platform=")}
            assert plain <= {"scratch", *names}, image.dockerfile
