"""The daemons of the cluster as processes: start them, and tell which of them live."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from laptime_cluster import cgroups
from laptime_cluster.layout import NAME
from laptime_cluster.namespaces import inside
from laptime_cluster.places import Node, Place


@dataclass(frozen=True)
class Daemon:
    """A program that runs in the namespaces of its place for as long as the cluster does."""

    name: str
    place: Place
    argv: tuple[str, ...]

    def __str__(self) -> str:
        """Return what to call it: each node has daemons of the same names."""
        return f"{self.name} of {self.place.name}" if isinstance(self.place, Node) else self.name

    @property
    def log(self) -> Path:
        """Where it writes what it has to say."""
        return self.place.logs / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        """Where its process id is."""
        return self.place.pids / self.name


def start(daemon: Daemon) -> None:
    """Start a daemon, detached from this program; its output goes to its log."""
    daemon.log.parent.mkdir(parents=True, exist_ok=True)
    daemon.pid_file.parent.mkdir(parents=True, exist_ok=True)
    with open(daemon.log, "ab") as log:
        process = subprocess.Popen(
            inside(daemon.place, daemon.argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                # One of the daemons is this program.
                "LAPTIME_CLUSTER_NAME": NAME,
                # Less garbage collection: memory is cheap here, processor time is not.
                "GOGC": "200",
            },
            start_new_session=True,
            preexec_fn=lambda: cgroups.enter(daemon.place),
        )
    daemon.pid_file.write_text(str(process.pid), encoding="utf-8")


def is_alive(daemon: Daemon) -> bool:
    """Whether the daemon runs: its recorded process is there, in our control group, no zombie."""
    try:
        process = Path("/proc", daemon.pid_file.read_text(encoding="utf-8"))
        groups = (process / "cgroup").read_text(encoding="utf-8")
        state = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return f"/{daemon.place.cgroup}/" in groups and state not in "ZX"


def dead(daemons: Sequence[Daemon]) -> list[str]:
    """Those of the daemons that do not run."""
    return [str(daemon) for daemon in daemons if not is_alive(daemon)]


def last_words(daemon: Daemon, lines: int = 15) -> str:
    """The end of a daemon's log, for the message that says why it does not run."""
    try:
        with open(daemon.log, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 8192))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return "(it left no log)"
    return "\n".join(text.splitlines()[-lines:])


def was_started(daemon: Daemon) -> bool:
    """Whether this cluster has started the daemon already."""
    return daemon.pid_file.exists()
