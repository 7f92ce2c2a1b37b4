"""What an image is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from imagebuild.catalog import ImageError, discover, select, snapshot


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_every_dockerfile_is_an_image(project: Path) -> None:
    images = discover(project)
    assert list(images) == ["tiny", "server-one"]
    assert images["server-one"].reference == "docker.io/laptime/server-one:1.2.3"


def test_a_server_may_stand_in_the_folder_of_its_language(project: Path) -> None:
    folder = project / "images/servers/language/another"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    assert list(discover(project)) == ["tiny", "server-another", "server-one"]


def test_a_counterpart_of_a_benchmark_is_built_when_it_is_named(project: Path) -> None:
    folder = project / "bench/servers/language"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    images = discover(project)
    assert list(images) == ["tiny", "server-one", "book-language"]
    assert [image.name for image in select(images, [])] == ["tiny", "server-one"]
    assert [image.name for image in select(images, ["book-language"])] == ["book-language"]


def test_a_part_of_an_example_is_built_when_it_is_named(project: Path) -> None:
    folder = project / "examples/cache-in-front/redis"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    images = discover(project)
    assert list(images) == ["tiny", "server-one", "example-cache-in-front-redis"]
    assert [image.name for image in select(images, [])] == ["tiny", "server-one"]


def test_the_context_holds_what_is_copied_and_nothing_else(project: Path, tmp_path: Path) -> None:
    snapshot(project, discover(project)["tiny"], tmp_path / "context")
    assert files(tmp_path / "context") == {
        "images/tiny/Dockerfile",
        "images/tiny/run.sh",
        "library/code.py",
        "library/deep/more.py",
    }


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("images/tiny/Dockerfile", True),
        ("images/tiny/run.sh", True),
        ("library/deep/more.py", True),
        ("library/new.py", True),
        ("library/build.log", False),
        ("README.md", False),
    ],
)
def test_the_digest_changes_with_what_is_built(
    project: Path, tmp_path: Path, file: str, changes: bool
) -> None:
    image = discover(project)["tiny"]
    before = snapshot(project, image, tmp_path / "before")
    with (project / file).open("a") as changed:
        changed.write("# changed\n")
    assert (snapshot(project, image, tmp_path / "after") != before) == changes


def test_the_digest_sees_an_executable_bit(project: Path, tmp_path: Path) -> None:
    image = discover(project)["tiny"]
    before = snapshot(project, image, tmp_path / "before")
    (project / "images/tiny/run.sh").chmod(0o755)
    assert snapshot(project, image, tmp_path / "after") != before


def test_bind_mounts_of_the_context_count(project: Path, tmp_path: Path) -> None:
    (project / "images/tiny/Dockerfile").write_text(
        "FROM scratch\n"
        "RUN --mount=type=cache,target=/cache --mount=type=bind,source=library,target=/l true\n"
    )
    snapshot(project, discover(project)["tiny"], tmp_path / "context")
    assert "library/code.py" in files(tmp_path / "context")


def test_a_missing_source_is_named(project: Path, tmp_path: Path) -> None:
    (project / "images/tiny/run.sh").unlink()
    with pytest.raises(ImageError, match=r"tiny/Dockerfile copies images/tiny/run\.sh"):
        snapshot(project, discover(project)["tiny"], tmp_path / "context")


def test_an_unknown_image_is_answered_with_the_known_ones(project: Path) -> None:
    with pytest.raises(ImageError, match=r"'tyni'.*tiny, server-one"):
        select(discover(project), ["tyni"])


def test_an_ignore_pattern_of_another_form_is_refused(project: Path, tmp_path: Path) -> None:
    (project / ".dockerignore").write_text("library/deep\n")
    with pytest.raises(ImageError, match=r"\*\*/NAME"):
        snapshot(project, discover(project)["tiny"], tmp_path / "context")


def test_the_dockerfiles_of_this_repository_can_be_read(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    images = discover(root)
    assert {"operator", "postgres", "pgbouncer", "haproxy", "k6"} < images.keys()
    for image in images.values():
        assert len(snapshot(root, image, tmp_path / image.name)) == 64


def test_the_servers_in_rust_share_their_build_stage() -> None:
    # An engine keeps the layers of a stage and runs an equal one once, for all of the servers.
    dockerfiles = list((Path(__file__).parents[1] / "servers/rust").glob("*/Dockerfile"))
    texts = [file.read_text(encoding="utf-8") for file in dockerfiles]
    stages = {text[text.index("FROM ") : text.index("FROM ", text.index("RUN "))] for text in texts}
    assert len(texts) >= 4
    assert len(stages) == 1


def test_the_servers_in_python_share_their_stages() -> None:
    # Up to what each runs with: what is above the first file of its own, an engine runs once.
    files = (Path(__file__).parents[1] / "servers").glob("*/Dockerfile")
    texts = {file.parent.name: file.read_text(encoding="utf-8") for file in files}
    of_python = {name: text for name, text in texts.items() if "python3-venv" in text}
    stages = {
        text[text.index("FROM ") : text.index("ENV PATH=")].replace(f"servers/{name}/", "")
        for name, text in of_python.items()
    }
    assert len(of_python) >= 8
    assert len(stages) == 1


def test_what_is_compiled_by_go_shares_what_compiles_it() -> None:
    files = [*(Path(__file__).parents[1]).rglob("Dockerfile")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    of_go = [text for text in texts if "golang-go" in text]
    stages = {
        "\n".join(
            line
            for line in text[text.index("FROM ") : text.index("COPY ")].splitlines()
            if not line.startswith("#")
        )
        for text in of_go
    }
    assert len(of_go) >= 7
    assert len(stages) == 1
