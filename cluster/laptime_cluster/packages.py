"""Debian packages of the node: install what is missing, and start no service of the host."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import CNI_PLUGINS
from laptime_cluster.progress import say, ticking

NEEDED: tuple[tuple[str, str], ...] = (
    ("etcd", "etcd-server"),
    ("containerd", "containerd"),
    ("runc", "runc"),
    (str(CNI_PLUGINS / "ptp"), "containernetworking-plugins"),
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("openssl", "openssl"),
    ("gcc", "gcc"),
    ("/usr/include/stdlib.h", "libc6-dev"),
    ("git", "git"),
    ("/etc/ssl/certs/ca-certificates.crt", "ca-certificates"),
)
"""What a machine must have: a program (or file) and the package that brings it."""
_POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = (
    "#!/bin/sh\n# Of the embedded cluster of Laptime while it installs packages.\nexit 101\n"
)


def _is_there(thing: str) -> bool:
    if thing.startswith("/"):
        return Path(thing).exists()
    return shutil.which(thing) is not None


def missing(needed: Iterable[tuple[str, str]] = NEEDED) -> list[str]:
    """The packages whose programs this machine does not have."""
    return [package for thing, package in needed if not _is_there(thing)]


def install_missing(needed: Sequence[tuple[str, str]] = NEEDED) -> None:
    """Install the missing packages. Raises ClusterError when there is no apt-get to do it with."""
    wanted = missing(needed)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(
            f"this machine has no apt-get; install what is in these Debian packages: {wanted}"
        )
    say(f"installing {' '.join(wanted)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A policy of ours may be left from an `up` that was killed; anyone else's stays as it is.
    forbids = not _POLICY.exists() or _POLICY.read_text(encoding="utf-8") == _POLICY_TEXT
    if forbids:
        # Debian starts a service as soon as its package is there; 101 means "not allowed to".
        _POLICY.write_text(_POLICY_TEXT, encoding="utf-8")
        _POLICY.chmod(0o755)
    try:
        with ticking(lambda: "still installing packages"):
            # Finishes what a killed installation began, without which nothing can be installed.
            run(["dpkg", "--configure", "-a"], environment=environment)
            run(["apt-get", "update", "-qq"], environment=environment)
            run(
                ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
                environment=environment,
            )
    finally:
        if forbids:
            _POLICY.unlink()
    still = missing(needed)
    if still:
        raise ClusterError(f"the packages {still} were installed, yet their programs are not there")
