"""The images for linux/arm64, run on whatever machine this is: by QEMU where it has no such CPU.

`make arm64` builds them and runs this. How fast they are says nothing: an emulator is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from containers import Container, Root, Roots, answers, free_port, get, run_container
from tiers import Database, Run, start_bouncer, start_database

from imagebuild import platforms
from imagebuild.catalog import discover
from imagebuild.engines import Engine, find_engine, for_platform
from imagebuild.store import Store, default_cache
from laptime.catalog import scenarios
from servers import kinds, path_of

PLATFORM = "linux/arm64"
# Of a database, and of none.
ASKED = ("users", "hello")
PATIENT_SECONDS = 240
IMAGES = os.environ.get("LAPTIME_ARM64_IMAGES", "").split()
"""What was built."""

pytestmark = pytest.mark.skipif(
    not IMAGES, reason="emulates a CPU for minutes: make arm64 builds the images and runs this"
)


@pytest.fixture(scope="session")
def engine() -> Engine:
    return for_platform(find_engine(default_cache()), PLATFORM)


@pytest.fixture(scope="session")
def store(engine: Engine) -> Store:
    return Store.of(default_cache(), engine.platform)


@pytest.fixture(scope="session")
def roots(engine: Engine) -> Iterator[Roots]:
    with ExitStack() as on_exit:
        yield Roots(on_exit, engine)


@pytest.fixture(scope="session")
def arm64(engine: Engine, store: Store, roots: Roots) -> Run:
    """Runs an image by its short name; see `run_container`."""
    images = discover(Path(__file__).parents[3])

    def start(image: str, **options: object) -> AbstractContextManager[Container]:
        assert store.key(image), f"{image} is not built for {PLATFORM}: make arm64"
        return run_container(engine, store, roots, image, images[image].version, **options)  # type: ignore[arg-type]

    return start


@pytest.fixture(scope="session")
def database(arm64: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Postgres with the data of one scenario: those of all take an emulator many minutes."""
    seed = "\n".join(sql for _, sql in scenarios()[ASKED[0]].init_sql)
    folder = tmp_path_factory.mktemp("postgres")
    with start_database(arm64, folder, free_port(), seed) as database:
        seconds = database.container.wait_until(lambda: is_open(database), PATIENT_SECONDS)
        print(f"postgres: ready after {seconds:.1f} s")
        yield database


def is_open(database: Database) -> bool:
    """Whether it answers; an emulator would take its time to start a program that asks."""
    time.sleep(0.5)
    with contextlib.suppress(psycopg.Error):
        return database.query("SELECT 1") == "1"
    return False


def machine_of(file: Path) -> int | None:
    """The CPU that an ELF file is for; None for what is no ELF file."""
    with file.open("rb") as opened:
        head = opened.read(20)
    return struct.unpack_from("<H", head, 18)[0] if head[:4] == b"\x7fELF" else None


def programs_of(root: Root) -> Iterator[Path]:
    """What the image starts first, and what reads that, if it is a script."""
    variables = dict(line.split("=", 1) for line in root.config["Env"])
    folders = variables.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    word = root.config["Entrypoint"][0]
    found = shutil.which(word, path=":".join(root.folder + folder for folder in folders))
    program = inside(root, word if "/" in word else str(found).removeprefix(root.folder))
    yield program
    with program.open("rb") as opened:
        first = opened.readline()
    if first.startswith(b"#!"):
        yield inside(root, first[2:].split()[0].decode())


def inside(root: Root, path: str) -> Path:
    """The file that `path` leads to in an image, links and all."""
    for _ in range(20):
        file = Path(root.folder + path)
        if not file.is_symlink():
            return file
        path = str(Path(path).parent / file.readlink())
    raise OSError(f"{path} leads nowhere")


def output_of(container: Container) -> str:
    """What a program says until it ends well."""
    code = container.wait(PATIENT_SECONDS)
    assert code == 0, container.output
    return container.output


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_in_an_image_is_for_another_cpu(roots: Roots, store: Store, image: str) -> None:
    root = roots.of(store.archive(image))
    assert root.architecture == "arm64"
    wanted = platforms.elf_machine(PLATFORM)
    assert wanted in {machine_of(file) for file in programs_of(root)}
    files = (file for file in Path(root.folder).rglob("*") if file.is_file())
    machines = {file: machine_of(file) for file in files if not file.is_symlink()}
    assert {file: one for file, one in machines.items() if one not in (None, wanted)} == {}


@pytest.mark.parametrize(
    ("image", "arguments", "words"),
    [
        ("k6", ["version"], "linux/arm64"),
        ("operator", ["--help"], "Usage: laptime"),
        ("agent", ["--help"], "usage: "),
        ("haproxy", ["-v"], "HAProxy version 3"),
        ("pgbouncer", ["--version"], "PgBouncer 1.24"),
        ("prometheus", ["--version"], "linux/arm64"),
        ("exporter", ["-help"], "usage: exporter"),
    ],
)
def test_a_program_runs(arm64: Run, image: str, arguments: list[str], words: str) -> None:
    if image not in IMAGES:
        pytest.skip("not built")
    with arm64(image, arguments=arguments) as container:
        assert words in output_of(container)


def test_postgres_is_one_for_arm64(database: Database) -> None:
    assert database.query("SELECT 1") == "1"
    assert "aarch64" in database.query("SELECT version()")


def test_pgbouncer_passes_queries_on(arm64: Run, database: Database, tmp_path: Path) -> None:
    if "pgbouncer" not in IMAGES:
        pytest.skip("not built")
    with start_bouncer(arm64, database, tmp_path) as bouncer:
        assert "aarch64" in bouncer.query("SELECT version()")


@pytest.mark.parametrize("image", [image for image in IMAGES if image.startswith("server-")])
def test_a_server_answers(arm64: Run, database: Database, image: str) -> None:
    kind = next(kind for kind in kinds() if kind.image == image)
    scenario = next(one for one in kind.scenarios if one.name in ASKED)
    port = free_port()
    variables = {"PORT": str(port), "DATABASE_URL": database.url, **kind.environment}
    with arm64(image, environment=variables) as container:
        seconds = container.wait_until(lambda: answers(port), PATIENT_SECONDS)
        print(f"{image}: healthy after {seconds:.1f} s")
        status, body = get(port, path_of(scenario.requests[0]), PATIENT_SECONDS)
    assert status == 200
    assert body


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry, Debian's, that has nothing yet; its address."""
    address = f"localhost:{free_port()}"
    settings, log = tmp_path / "config.yml", tmp_path / "log"
    settings.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f'http: {{addr: "{address}"}}\n'
    )
    with (
        log.open("wb") as output,
        subprocess.Popen(
            ["docker-registry", "serve", settings], stdout=output, stderr=output
        ) as it,
    ):
        port = int(address.partition(":")[2])
        while not answers(port, "/v2/"):
            assert it.poll() is None, log.read_text()
        yield address
        it.terminate()


def asked(address: str, path: str) -> dict[str, Any]:
    """A document that a registry has under `path`."""
    kinds = (
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
    )
    request = urllib.request.Request(
        f"http://{address}/v2/{path}", headers={"Accept": ", ".join(kinds)}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def test_one_name_in_a_registry_stands_for_both_platforms(registry: str) -> None:
    root = Path(__file__).parents[3]
    name = "haproxy"
    command = [sys.executable, root / "images/build.py", f"--platform={','.join(platforms.KNOWN)}"]
    subprocess.run([*command, "push", f"{registry}/laptime", name], check=True)
    repository = f"laptime/{name}"
    version = discover(root)[name].version
    listed = asked(registry, f"{repository}/manifests/{version}")["manifests"]
    pairs = [f"{one['platform']['os']}/{one['platform']['architecture']}" for one in listed]
    assert pairs == list(platforms.KNOWN)
    for entry in listed:
        manifest = asked(registry, f"{repository}/manifests/{entry['digest']}")
        config = asked(registry, f"{repository}/blobs/{manifest['config']['digest']}")
        assert config["architecture"] == entry["platform"]["architecture"]
        assert config["config"]["Entrypoint"] == ["haproxy"]
