"""Debian packages of the node: install what is missing, and have none of their services start."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
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
_INSTALLS = "LAPTIME_CLUSTER_INSTALLS"
# Whoever else installs packages may start their services, also where it was left by an `up` that
# was killed. 101 means "not allowed to".
_POLICY_TEXT = f"""#!/bin/sh
# Of the embedded cluster of Laptime while it installs packages.
[ -z "${_INSTALLS}" ] || exit 101
"""
# Of earlier versions, which an `up` that was killed may have left: it forbids for good.
_POLICY_TEXTS = (
    _POLICY_TEXT,
    """#!/bin/sh
# Of the embedded cluster of Laptime while it installs packages.
exit 101
""",
)
_DPKG_LOCKS = (Path("/var/lib/dpkg/lock-frontend"), Path("/var/lib/dpkg/lock"))
_UNITS = (Path("/lib/systemd/system"), Path("/usr/lib/systemd/system"))
_STARTED_UNITS = (".service", ".socket", ".timer", ".path")
_SCRIPTS = Path("/etc/init.d")


def _is_there(thing: str) -> bool:
    if thing.startswith("/"):
        return Path(thing).exists()
    return shutil.which(thing) is not None


def missing(needed: Iterable[tuple[str, str]] = NEEDED) -> list[str]:
    """The packages whose programs this machine does not have."""
    return [package for thing, package in needed if not _is_there(thing)]


def install_missing(needed: Sequence[tuple[str, str]] = NEEDED) -> None:
    """Install the missing packages, and have nothing of them start, now or with the machine.

    Raises ClusterError when there is no apt-get to do it with.
    """
    remove_policy()
    wanted = missing(needed)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(
            f"this machine has no apt-get; install what is in these Debian packages: {wanted}"
        )
    say(f"installing {' '.join(wanted)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", _INSTALLS: "yes"}
    # Anyone else's stays as it is.
    if not _POLICY.exists():
        # Debian starts a service as soon as its package is there.
        _POLICY.write_text(_POLICY_TEXT, encoding="utf-8")
        _POLICY.chmod(0o755)
    try:
        with ticking(lambda: "still installing packages"):
            # Finishes what a killed installation began, without which nothing can be installed.
            run(["dpkg", "--configure", "-a"], environment=environment)
            run(["apt-get", "update", "-qq"], environment=environment)
            # What stands in the way of these is somebody's: nothing is removed for them.
            install = ["apt-get", "install", "-y", "--no-install-recommends", "--no-remove"]
            planned = _planned(run([*install, "--simulate", *wanted], environment=environment))
            before = _installed()
            try:
                run([*install, "-qq", *wanted], environment=environment)
            finally:
                # Somebody else may have installed others meanwhile.
                _disable_services({one for one in _installed() - before if _name(one) in planned})
    finally:
        remove_policy()
    still = missing(needed)
    if still:
        raise ClusterError(f"the packages {still} were installed, yet their programs are not there")


def remove_policy() -> None:
    """Remove our policy, which may be left from an `up` that was killed.

    Its apt-get goes on, and would start services: that one is waited for.
    """
    if not _POLICY.exists() or _POLICY.read_text(encoding="utf-8") not in _POLICY_TEXTS:
        return
    with ExitStack() as held:
        for path in _DPKG_LOCKS:
            lock = held.enter_context(path.open("ab"))
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for apt-get or dpkg in another process")
                fcntl.lockf(lock, fcntl.LOCK_EX)
        _POLICY.unlink()


def _installed() -> set[str]:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${binary:Package}\\n"]
    lines = run(query).splitlines()
    return {line.split()[1] for line in lines if line.startswith("installed ")}


def _planned(simulated: str) -> set[str]:
    """Return the names of what apt-get says that it would install: `Inst NAME (VERSION ...)`."""
    lines = [line.split() for line in simulated.splitlines()]
    return {_name(words[1]) for words in lines if words[:1] == ["Inst"]}


def _name(package: str) -> str:
    """Return a package's name without its architecture, which stands behind some of them."""
    return package.partition(":")[0]


def _disable_services(packages: set[str]) -> None:
    """Have no service of these packages start with the machine: each was enabled by its package."""
    if not packages:
        return
    files = map(Path, run(["dpkg-query", "--listfiles", *sorted(packages)]).splitlines())
    units, scripts = [], []
    for path in files:
        # One that is a link is another name.
        if path.parent in _UNITS and path.suffix in _STARTED_UNITS and not path.is_symlink():
            units.append(path.name)
        elif path.parent == _SCRIPTS:
            scripts.append(path.name)
    if units and shutil.which("systemctl") is not None:
        run(["systemctl", "disable", *units])
    for script in scripts:
        run(["update-rc.d", script, "disable"])
