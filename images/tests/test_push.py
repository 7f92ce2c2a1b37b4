"""Pushing to a real registry protocol with the engine of this machine."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build import Builder
from imagebuild import platforms
from imagebuild.catalog import Image, discover
from imagebuild.engines import Engine, engine_at, find_engine


class Registry(http.server.BaseHTTPRequestHandler):
    """As much of the registry protocol as a push needs; blobs and manifests in memory."""

    protocol_version = "HTTP/1.1"
    blobs: dict[str, bytes]
    manifests: dict[str, bytes]
    upload: bytearray

    def answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def do_GET(self) -> None:
        manifest = self.manifests.get(self.path)
        if manifest is None:
            self.answer(200 if self.path == "/v2/" else 404)
            return
        kind = json.loads(manifest)["mediaType"]
        self.answer(200, Content_Length=str(len(manifest)), Content_Type=kind)
        self.wfile.write(manifest)

    def do_HEAD(self) -> None:
        digest = self.path.rpartition("/")[2]
        size = str(len(self.blobs.get(digest, b"")))
        self.answer(200 if digest in self.blobs else 404, Content_Length=size)

    def do_POST(self) -> None:
        self.upload.clear()
        self.answer(202, Location=f"{self.path.rstrip('/')}/one")

    def do_PATCH(self) -> None:
        self.upload += self.body()
        self.answer(202, Location=self.path, Range=f"0-{len(self.upload) - 1}")

    def do_PUT(self) -> None:
        body = self.body()
        if "/manifests/" in self.path:
            self.manifests[self.path] = body
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
        else:
            self.upload += body
            digest = "sha256:" + hashlib.sha256(self.upload).hexdigest()
            self.blobs[digest] = bytes(self.upload)
        self.answer(201, Location=self.path, Docker_Content_Digest=digest)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[http.server.HTTPServer]:
    Registry.blobs, Registry.manifests, Registry.upload = {}, {}, bytearray()
    server = http.server.HTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def write_archive(file: Path, reference: str, platform: str) -> None:
    """An image of one layer with one file, in docker's archive format."""
    file.parent.mkdir(parents=True, exist_ok=True)
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("hello"), io.BytesIO())
    diff_id = "sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": platforms.architecture(platform),
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    parts = {
        "config.json": json.dumps(config).encode(),
        "layer.tar": layer.getvalue(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(file, "w") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """What pushes here; it leaves no notes of another platform's mounts."""
    engine = find_engine(tmp_path / "cache")
    yield engine
    for platform in platforms.KNOWN:
        for word in engine_at(engine, platform).client:
            if word.startswith("--runroot="):
                shutil.rmtree(word.partition("=")[2], ignore_errors=True)


@pytest.mark.parametrize("platform", platforms.KNOWN)
def test_push_sends_the_archive_under_the_registry_s_name(
    project: Path, engine: Engine, registry: http.server.HTTPServer, platform: str
) -> None:
    engine = engine_at(engine, platform)
    image: Image = discover(project)["tiny"]
    builder = Builder(project, engine.cache, engine)
    reference = engine.archived_reference(image.reference)
    write_archive(builder.store.archive(image.name), reference, platform)
    # A registry on this machine may speak plain HTTP, as with docker.
    builder.push([image], f"127.0.0.1:{registry.server_port}/team/", insecure=False)
    (path, text) = next(iter(Registry.manifests.items()))
    assert re.fullmatch(r"/v2/team/tiny/manifests/1\.2\.3", path)
    manifest = json.loads(text)
    stored = {manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}
    assert stored <= Registry.blobs.keys()
    config = json.loads(Registry.blobs[manifest["config"]["digest"]])
    assert config["architecture"] == platforms.architecture(platform)


def test_one_name_stands_for_the_images_of_all_platforms(
    project: Path, engine: Engine, registry: http.server.HTTPServer
) -> None:
    image = discover(project)["tiny"]
    builders = [Builder(project, engine.cache, engine_at(engine, name)) for name in platforms.KNOWN]
    for name, builder in zip(platforms.KNOWN, builders, strict=True):
        reference = builder.engine.archived_reference(image.reference)
        write_archive(builder.store.archive(image.name), reference, name)
    target = f"127.0.0.1:{registry.server_port}/team"
    builders[0].push_with(builders[1:], [image], target, insecure=False)
    listed = json.loads(Registry.manifests["/v2/team/tiny/manifests/1.2.3"])["manifests"]
    pairs = [entry["platform"] for entry in listed]
    assert [f"{one['os']}/{one['architecture']}" for one in pairs] == list(platforms.KNOWN)
    for entry, name in zip(listed, platforms.KNOWN, strict=True):
        text = Registry.manifests[f"/v2/team/tiny/manifests/{entry['digest']}"]
        config = Registry.blobs[json.loads(text)["config"]["digest"]]
        assert json.loads(config)["architecture"] == platforms.architecture(name)
