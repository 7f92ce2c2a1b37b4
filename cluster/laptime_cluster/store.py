"""What containerd made of the images, kept from one cluster to the next.

Unpacking is most of the time that a cluster needs before it can be used. So it is done once, by a
containerd of its own in the cache, and a new cluster gets hard links to all files: layers and blobs
are never written again, only the databases are, and those are copied.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from laptime_cluster import images
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import CACHE
from laptime_cluster.progress import say

STORE = CACHE / "containerd"
_ROOT = STORE / "root"
_SOCKET = STORE / "containerd.sock"
_CONTENT = STORE / "content.json"
"""By archive the key that it had; not there while the rest may be half written."""
_WANTED = CACHE / "containerd-images.json"
"""Names of all archives that any cluster had loaded."""
_DATABASES = "*/*.db"
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0


def want(names: Sequence[str]) -> None:
    """Have these archives in the clusters that are started from now on."""
    wanted = _read(_WANTED)
    if not set(names) <= set(wanted):
        _write(_WANTED, dict.fromkeys(sorted({*wanted, *names}), ""))


def refresh() -> None:
    """Unpack the wanted archives that are new or have changed, where nothing else writes meanwhile.

    What cannot be kept is not kept: a cluster can load everything itself.
    """
    archives = {path.stem: images.describe(path) for path in images.paths(_read(_WANTED))}
    version = run(["containerd", "--version"]).strip()
    known = _read(_CONTENT)
    if known.pop("containerd", version) != version or not known:
        shutil.rmtree(STORE, ignore_errors=True)
        known = {}
    changed = [name for name, archive in archives.items() if known.get(name) != archive.key]
    if not changed:
        return
    STORE.mkdir(mode=0o700, parents=True, exist_ok=True)
    _CONTENT.unlink(missing_ok=True)
    try:
        with _containerd():
            for name in changed:
                images.import_archive(archives[name], images.Containerd(_SOCKET, STORE))
    except (ClusterError, OSError) as error:
        say(f"unpacked images are not kept: {error}")
        shutil.rmtree(STORE, ignore_errors=True)
        return
    keys = {name: archives[name].key for name in changed}
    _write(_CONTENT, {**known, **keys, "containerd": version})


def provide(root: Path) -> None:
    """Make the folder of a node's containerd, with all images that are kept."""
    if not _read(_CONTENT):
        return
    try:
        run(["cp", "--archive", "--link", _ROOT, root])
        for database in root.glob(_DATABASES):
            copy = database.with_suffix(".copy")
            shutil.copy2(database, copy)
            os.replace(copy, database)
    except (ClusterError, OSError) as error:
        # On another file system than the cache, say.
        say(f"images are loaded anew: {error}")
        shutil.rmtree(root, ignore_errors=True)


def _with_us() -> tuple[str, ...]:
    """What ends a program when this one is killed: nothing may write into a folder made anew.

    The kernel tells of a death only who has asked for it before: so who the parent is, is looked
    at after asking.
    """
    if_we_live = f'[ "$PPID" = {os.getpid()} ] && exec "$@"'
    return ("setpriv", "--pdeathsig", "KILL", "sh", "-c", if_we_live, "sh")


@contextmanager
def _containerd() -> Iterator[None]:
    """Run a containerd that does nothing but unpack."""
    config = STORE / "config.toml"
    config.write_text(
        f"""version = 2
root = "{_ROOT}"
state = "{STORE}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.native", "io.containerd.snapshotter.v1.zfs"]

[grpc]
  address = "{_SOCKET}"
""",
        encoding="utf-8",
    )
    _SOCKET.unlink(missing_ok=True)
    with (
        open(STORE / "log", "wb") as log,
        subprocess.Popen(
            # What it mounts goes with it, however it ends.
            [*_with_us(), "unshare", "--mount", "--propagation=private", "--kill-child", "--fork",
             "containerd", f"--config={config}", "--log-level=warn"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):  # fmt: skip
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _SOCKET.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ClusterError(f"containerd did not start: see {STORE}/log")
                time.sleep(0.05)
            yield
            # In order, so that all is in its databases.
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"containerd did not stop in {_STOP_SECONDS:.0f} s") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, content: dict[str, str]) -> None:
    half = path.with_suffix(".half")
    half.write_text(json.dumps(content), encoding="utf-8")
    os.replace(half, path)
