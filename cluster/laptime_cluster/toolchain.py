"""The Go command that builds the node: the machine's own, or one from the Go module proxy."""

import base64
import hashlib
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from laptime_cluster import locks
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import CACHE
from laptime_cluster.progress import say, ticking

# Go 1.21 is the first that fetches the exact toolchain a go.mod asks for by itself.
_OLDEST = (1, 21)
_CANDIDATES = ("/usr/local/go/bin", "/usr/lib/go/bin")

# What is fetched when the machine has no Go: the version, and what sum.golang.org knows of it.
_VERSION = "1.26.8"
_HASHES = {
    "amd64": "ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=",
    "arm64": "sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=",
}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def go() -> Path:
    """Path of a usable `go`. Raises ClusterError when there is none and none can be fetched."""
    found = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", ""), *_CANDIDATES)))
    if found is not None and _is_recent(run([found, "version"])):
        return Path(found)
    folder = CACHE / f"go-{_VERSION}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with locks.exclusively(CACHE, "fetching Go"):
            if not folder.exists():
                _fetch(folder)
    return folder / "bin" / "go"


def _is_recent(version: str) -> bool:
    match = re.search(r"go(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= _OLDEST


def _fetch(folder: Path) -> None:
    """Fetch, check and unpack the toolchain, which the proxy offers as the zip of a module."""
    architecture = _ARCHITECTURES.get(os.uname().machine)
    if architecture is None:
        raise ClusterError(
            f"Go {_OLDEST[0]}.{_OLDEST[1]} or newer is needed to build the node: "
            "https://go.dev/doc/install"
        )
    version = f"v0.0.1-go{_VERSION}.linux-{architecture}"
    address = f"{_proxy()}/golang.org/toolchain/@v/{version}.zip"
    say(f"fetching Go {_VERSION} (70 MB), since this machine has none that is new enough")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".go-") as partial:
        archive = Path(partial, "go.zip")
        try:
            with (
                ticking(lambda: "still fetching Go"),
                urllib.request.urlopen(address, timeout=60) as response,
                archive.open("wb") as file,
            ):
                shutil.copyfileobj(response, file)
        except (urllib.error.URLError, TimeoutError) as error:
            raise ClusterError(
                f"Go could not be fetched from {address}: {error}; "
                "install it by hand: https://go.dev/doc/install"
            ) from error
        unpack(archive, f"golang.org/toolchain@{version}/", _HASHES[architecture], Path(partial))
        Path(partial, "tree").replace(folder)


def unpack(archive: Path, prefix: str, expected: str, target: Path) -> None:
    """Unpack the zip of a module to `target/tree`, when its content is the expected one.

    The hash is Go's "h1": of the sorted list of all files with the hash of each.
    https://pkg.go.dev/golang.org/x/mod/sumdb/dirhash
    """
    total = hashlib.sha256()
    with zipfile.ZipFile(archive) as content:
        names = sorted(content.namelist())
        for name in names:
            digest = hashlib.sha256(content.read(name)).hexdigest()
            total.update(f"{digest}  {name}\n".encode())
        found = base64.b64encode(total.digest()).decode()
        if found != expected:
            raise ClusterError(f"{prefix} has the hash h1:{found}, not h1:{expected}: not used")
        tree = target / "tree"
        for name in names:
            inside = name.removeprefix(prefix)
            path = tree / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read(name))
            # A module zip knows no modes; these are the programs of the toolchain.
            if inside.startswith(("bin/", "pkg/tool/")):
                path.chmod(0o755)


def _proxy() -> str:
    """The first proxy of GOPROXY, as the go command would use it; ClusterError without one."""
    for word in re.split(r"[,|]", os.environ.get("GOPROXY", "")):
        if word.strip() not in ("", "direct", "off"):
            return word.strip().rstrip("/")
    raise ClusterError(
        "Go is needed to build the node, and this machine has none that is new enough: install it "
        "(https://go.dev/doc/install), or set GOPROXY to a Go module proxy to fetch it from"
    )
