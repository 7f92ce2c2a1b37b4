"""The pause image: one static program, packed as an image archive without any container tool."""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from laptime_cluster.commands import run
from laptime_cluster.layout import IMAGES, SOURCE, pause_image

_PROGRAM = SOURCE / "pause" / "pause.c"


def archive() -> Path:
    """Path of the image's archive, built when the cache does not hold this very program yet."""
    key = hashlib.sha256(_PROGRAM.read_bytes() + pause_image().encode()).hexdigest()[:16]
    path = IMAGES / f".pause-{key}.tar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_bytes(_image(_compile()))
        partial.replace(path)
    return path


def _compile() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "pause")
        run(["gcc", "-static", "-Os", "-s", "-Wall", "-Wextra", "-o", program, _PROGRAM])
        return program.read_bytes()


def _image(program: bytes) -> bytes:
    """A docker archive with one layer."""
    layer = _tar({"pause": (program, 0o755)})
    config = {
        "architecture": "arm64" if os.uname().machine == "aarch64" else "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "pause.c"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [pause_image()], "Layers": ["layer.tar"]}]
    return _tar(
        {
            "layer.tar": (layer, 0o644),
            "config.json": (json.dumps(config).encode(), 0o644),
            "manifest.json": (json.dumps(manifest).encode(), 0o644),
        }
    )


def _tar(content: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive_file:
        for name, (data, mode) in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = mode
            archive_file.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
