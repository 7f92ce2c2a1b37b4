"""Containers of the built images, run the way a restricted pod runs them.

A user that is none of the image's, of group 0, as OpenShift gives one to each namespace; read-only
root file system, no capability, no new privileges, a writable /tmp, the host's network. That images
run as their own user too, every run on a cluster shows. With docker or podman where they work, else
with runc on buildah's storage.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagebuild.engines import Engine
from imagebuild.store import Store

UID, GID = 54321, 0
FEW_FILES, MANY_FILES = 1024, min(524288, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
"""How many files a process may open, and to how many it may raise that itself: systemd's limits,
which containerd 2 leaves to the pods of a node, as far as this process may hand them on."""


@dataclass(frozen=True)
class Root:
    """What an image has: its files, mounted, and its configuration."""

    folder: str
    config: Mapping[str, Any]
    architecture: str


class Roots:
    """Images of buildah's storage, each mounted once and by all its containers only read.

    What the mounts of a container need as their places, runc makes in it.
    """

    def __init__(self, on_exit: contextlib.ExitStack, engine: Engine) -> None:
        self._on_exit = on_exit
        self._engine = engine
        self._mounted: dict[Path, Root] = {}

    def of(self, archive: Path) -> Root:
        """The image of an archive; it is gone when the stack is closed."""
        if archive not in self._mounted:
            said = self._buildah("from", "--pull=never", f"docker-archive:{archive}")
            working = said.splitlines()[-1]
            self._on_exit.callback(self._buildah, "rm", working)
            image = json.loads(self._buildah("inspect", working))["OCIv1"]
            folder = self._buildah("mount", working)
            self._mounted[archive] = Root(folder, image["config"], image["architecture"])
        return self._mounted[archive]

    def _buildah(self, *arguments: str) -> str:
        command = [*self._engine.client, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"buildah {' '.join(arguments)}: {result.stderr}")
        return result.stdout.strip()


class Container:
    """One running container; made by `run_container`."""

    def __init__(self, name: str, engine: Engine, process: subprocess.Popen[bytes], log: Path):
        self.name = name
        self._client = "runc" if engine.name == "buildah" else engine.name
        self._process = process
        self._log = log
        self.started = time.monotonic()

    @property
    def output(self) -> str:
        """Everything it has written to its standard output and error."""
        return self._log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as the same user."""
        return subprocess.run(
            [self._client, "exec", self.name, *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process."""
        by_name = ["--signal", number.name] if self._client != "runc" else []
        last = [number.name] if self._client == "runc" else []
        subprocess.run([self._client, "kill", *by_name, self.name, *last], check=True)

    def wait(self, seconds: float) -> int:
        """Its exit code; raises subprocess.TimeoutExpired when it does not end in time."""
        return self._process.wait(seconds)

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> float:
        """Poll until `ready()`; returns the seconds since the container's start.

        Raises AssertionError with the container's output when it ends or the time is up.
        """
        while not ready():
            late = time.monotonic() - self.started > seconds
            if late or not self.running:
                reason = f"not ready after {seconds} s" if late else "ended"
                raise AssertionError(f"{self.name} {reason}:\n{self.output}")
            time.sleep(0.01)
        return time.monotonic() - self.started


@contextlib.contextmanager
def run_container(
    engine: Engine,
    store: Store,
    roots: Roots,
    image: str,
    version: str,
    *,
    environment: Mapping[str, str] | None = None,
    files: Mapping[str, Path] | None = None,
    writable: Mapping[str, Path] | None = None,
    arguments: Sequence[str] | None = None,
) -> Iterator[Container]:
    """Run an image and kill it at the end.

    `files` are mounted read-only and `writable` read-write, path in the container first;
    `arguments` stand in the place of the image's own.
    """
    name = f"laptime-image-{uuid.uuid4().hex[:12]}"
    settings = (environment or {}, files or {}, writable or {}, arguments)
    with tempfile.TemporaryDirectory(prefix="laptime-image-") as folder:
        if engine.name == "buildah":
            root = roots.of(store.archive(image))
            command = _prepare_runc(Path(folder), name, root, *settings)
        else:
            reference = engine.archived_reference(f"docker.io/laptime/{image}:{version}")
            command = _docker_command(engine, name, reference, *settings)
        log = Path(folder) / "output"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        container = Container(name, engine, process, log)
        try:
            yield container
        finally:
            if container.running:
                container.signal(signal.SIGKILL)
                process.wait(30)


def _docker_command(
    engine: Engine,
    name: str,
    reference: str,
    environment: Mapping[str, str],
    files: Mapping[str, Path],
    writable: Mapping[str, Path],
    arguments: Sequence[str] | None,
) -> list[str]:
    return [
        *(*engine.client, "run", "--rm", f"--name={name}", "--network=host", "--read-only"),
        *(f"--user={UID}:{GID}", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        f"--ulimit=nofile={FEW_FILES}:{MANY_FILES}",
        *(() if "/tmp" in writable else ("--tmpfs=/tmp",)),
        *(f"--env={key}={value}" for key, value in environment.items()),
        *(f"--volume={source}:{target}:ro" for target, source in files.items()),
        *(f"--volume={source}:{target}" for target, source in writable.items()),
        *([f"--platform={engine.platform}"] if engine.platform else []),
        reference,
        *(arguments or []),
    ]


def _prepare_runc(
    bundle: Path,
    name: str,
    root: Root,
    environment: Mapping[str, str],
    files: Mapping[str, Path],
    writable: Mapping[str, Path],
    arguments: Sequence[str] | None,
) -> list[str]:
    """Write an OCI bundle of the image; returns the command that runs it."""
    config = root.config
    variables = [*config.get("Env", []), *(f"{key}={value}" for key, value in environment.items())]
    mounts = [
        _mount("/proc", "proc", []),
        _mount("/dev", "tmpfs", ["nosuid", "mode=755"]),
        _mount("/dev/shm", "tmpfs", ["nosuid", "nodev", "mode=1777"]),
        _mount("/tmp", "tmpfs", ["nosuid", "nodev", "mode=1777"]),
        *(_mount(target, "bind", ["rbind", "ro"], source) for target, source in files.items()),
        *(_mount(target, "bind", ["rbind", "rw"], source) for target, source in writable.items()),
    ]
    specification = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": UID, "gid": GID},
            "args": [
                *config.get("Entrypoint", []),
                *(config.get("Cmd") or [] if arguments is None else arguments),
            ],
            "env": variables,
            "cwd": config.get("WorkingDir") or "/",
            "capabilities": {},
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": FEW_FILES, "hard": MANY_FILES}],
            "noNewPrivileges": True,
        },
        "root": {"path": root.folder, "readonly": True},
        "hostname": name,
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
            "cgroupsPath": f"/{name}",
        },
    }
    (bundle / "config.json").write_text(json.dumps(specification), encoding="utf-8")
    return ["runc", "run", f"--bundle={bundle}", name]


def _mount(target: str, kind: str, options: Sequence[str], source: Path | None = None) -> object:
    origin = str(source) if source else kind
    return {"destination": target, "type": kind, "source": origin, "options": list(options)}


def writable_folder(folder: Path) -> Path:
    """`folder`, made and owned by the containers' user, as an emptyDir with an fsGroup is."""
    folder.mkdir(parents=True)
    shutil.chown(folder, UID, GID)
    return folder


def _ports() -> Iterator[int]:
    # Below the range from which the kernel gives ports to connections, and for each process of
    # pytest its own: nobody takes the port before the server that it is meant for. One test that
    # somebody runs by hand has other ones than all of them, which may be running beside it.
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")
    first = 20000 + int(worker) % 10 * 1000
    return itertools.cycle(range(first, first + 1000))


_PORTS = _ports()


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on; each call gives another one."""
    for port in itertools.islice(_PORTS, 1000):
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def get(port: int, path: str, seconds: float = 10, host: str = "127.0.0.1") -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own. Raises OSError."""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def answers(port: int, path: str = "/healthz", host: str = "127.0.0.1") -> bool:
    """Whether a request gets the status 200."""
    try:
        return get(port, path, 1, host)[0] == 200
    except (OSError, http.client.HTTPException):
        return False
