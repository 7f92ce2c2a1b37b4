"""The daemons of the node as processes: start them, and tell which of them live."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from laptime_cluster import cgroups
from laptime_cluster.layout import CGROUP, LOGS, NAME, PIDS
from laptime_cluster.namespaces import inside


@dataclass(frozen=True)
class Daemon:
    """A program that runs in the namespaces of the node for as long as the cluster does."""

    name: str
    argv: tuple[str, ...]


def log_path(name: str) -> Path:
    """Where a daemon writes what it has to say."""
    return LOGS / f"{name}.log"


def start(daemon: Daemon) -> None:
    """Start a daemon, detached from this program; its output goes to its log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    PIDS.mkdir(parents=True, exist_ok=True)
    with open(log_path(daemon.name), "ab") as log:
        process = subprocess.Popen(
            inside(daemon.argv),
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
            preexec_fn=cgroups.enter,
        )
    (PIDS / daemon.name).write_text(str(process.pid), encoding="utf-8")


def is_alive(name: str) -> bool:
    """Whether the daemon runs: its recorded process is there, in our control group, no zombie."""
    try:
        process = Path("/proc", (PIDS / name).read_text(encoding="utf-8"))
        in_our_group = f"/{CGROUP}/" in (process / "cgroup").read_text(encoding="utf-8")
        state = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return in_our_group and state not in "ZX"


def dead(names: Sequence[str]) -> list[str]:
    """Those of the named daemons that do not run."""
    return [name for name in names if not is_alive(name)]


def last_words(name: str, lines: int = 15) -> str:
    """The end of a daemon's log, for the message that says why it does not run."""
    try:
        with open(log_path(name), "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 8192))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return "(it left no log)"
    return "\n".join(text.splitlines()[-lines:])


def was_started(name: str) -> bool:
    """Whether this cluster has started the daemon already."""
    return (PIDS / name).exists()
