"""Start and stop the cluster, from whatever state the machine is in."""

import os
import shutil
import time
from collections.abc import Callable, Sequence

from laptime_cluster import (
    addons,
    api,
    builds,
    certificates,
    cgroups,
    components,
    configuration,
    disks,
    health,
    images,
    locks,
    namespaces,
    packages,
    pause,
    places,
    processes,
    store,
)
from laptime_cluster.commands import ClusterError
from laptime_cluster.layout import (
    ADMIN_KUBECONFIG,
    CACHE,
    CGROUP,
    CONTROL_CPUS,
    DISK,
    FAMILY,
    FAMILY_FILE,
    FINGERPRINT,
    OWNER_MARK,
    RUN,
    STATE,
    WANTED_FAMILY,
)
from laptime_cluster.places import CONTROL, Node
from laptime_cluster.processes import Daemon
from laptime_cluster.progress import say

_PATIENCE_SECONDS = 45
_DOWN_FIRST = "or give up all that is in the cluster by `down`, then `up`"
_MINIMUM_FREE_BYTES = 3 << 30
_BUILD_FREE_BYTES = 8 << 30


def up(count: int | None = None) -> None:
    """Start the cluster unless it is healthy already; leftovers of an earlier one are removed.

    `count` is how many nodes it is to have; where nobody says, as many as the earlier one, or one.
    Raises ClusterError where a healthy one has another number, where any has addresses of another
    family, and where a control plane works and a node does not.
    """
    _require_root()
    if count is not None and not 1 <= count <= places.MOST_NODES:
        raise ClusterError(f"a cluster has 1 to {places.MOST_NODES} nodes, not {count}")
    if WANTED_FAMILY not in (None, FAMILY):
        raise ClusterError(
            f"the cluster there is has the addresses {FAMILY}, not {WANTED_FAMILY}: `down` first"
        )
    with locks.exclusively(STATE.parent, "`up` or `down`"):
        if _is_healthy():
            there = len(places.nodes())
            if count not in (None, there):
                raise ClusterError(
                    f"the cluster is up with {there} nodes, not {count}: `down` first"
                )
            if health.is_current():
                say(f"the cluster is up; {health.summary()}")
            else:
                say("the cluster is up, but from another configuration; `down`, then `up` renew it")
            return
        _require_disk()
        _cpus_of_control()
        _build_node()
        pause_archive = images.describe(pause.archive())
        count = count or len(places.nodes()) or 1
        _clean("removing what is left of an earlier cluster")
        store.refresh()
        try:
            _start(count, pause_archive)
        except (ClusterError, OSError):
            _say_dead_daemons()
            raise
    say(f"the cluster is up; {health.summary()}")
    say(f"export KUBECONFIG={ADMIN_KUBECONFIG}")


def build() -> None:
    """Install and build all that `up` starts, so that it can start at once."""
    _require_root()
    with locks.exclusively(STATE.parent, "`up` or `down`"):
        _require_disk()
        _build_node()


def _build_node() -> None:
    packages.install_missing()
    for program in builds.NODE_BUILDS:
        builds.ensure(program)
    builds.ensure_kubectl()


def down() -> None:
    """Stop the cluster and leave nothing of it but the cache, and packages."""
    _require_root()
    with locks.exclusively(STATE.parent, "`up` or `down`"):
        packages.remove_policy()
        if not _clean("stopping the cluster"):
            say("no cluster to stop")
        else:
            say("the cluster is down")


def _is_healthy() -> bool:
    """Whether a complete cluster runs and works.

    On a busy machine it may be slow to answer; it is not given up for that as long as its daemons
    live, since starting afresh loses everything in it. Nor is it for nodes that were stopped,
    frozen or cut off, or that do not get ready: ClusterError says which while its API server
    answers.
    """
    if not FINGERPRINT.exists():
        return False
    deadline = time.monotonic() + _PATIENCE_SECONDS
    answered = False
    while not _has_died():
        if api.is_ready():
            answered = True
            if outages := health.outages():
                raise ClusterError(f"{'; '.join(outages)}; {_DOWN_FIRST}")
        problems = health.problems()
        if not problems:
            return True
        if time.monotonic() > deadline:
            if answered:
                raise ClusterError(
                    f"{'; '.join(problems)}; `stop NODE` and `start NODE` start a node anew; "
                    f"{_DOWN_FIRST}"
                )
            return False
        say(f"waiting for the cluster that runs: {'; '.join(problems)}")
        time.sleep(2)
    return False


def _has_died() -> bool:
    """Whether the control plane, or a daemon of a node that was not stopped, runs no more."""
    of_nodes = [one for one in _started() if one.place != CONTROL]
    return bool(processes.dead((*components.OF_CONTROL, *of_nodes)))


def _start(count: int, pause_archive: images.Archive) -> None:
    say("creating namespaces, control groups and certificates")
    STATE.mkdir(mode=0o711)
    OWNER_MARK.touch()
    FAMILY_FILE.write_text(FAMILY, encoding="utf-8")
    RUN.mkdir(mode=0o711)
    nodes = places.record(count, cgroups.machine_cpus())
    cgroups.create(CONTROL, _cpus_of_control())
    # With all that it runs from now on: who removes the folders after this program was killed
    # finds what still writes into them.
    cgroups.enter(CONTROL)
    for node in nodes:
        cgroups.create(node, node.cpus)
    namespaces.create_networks(nodes)
    namespaces.create_mount_points()
    for node in nodes:
        if DISK:
            disks.create(node, DISK)
        namespaces.create_mounts(node)
    certificates.issue_all(nodes)
    configuration.write_all(nodes)
    for node in nodes:
        store.provide(node.containerd_root)
    say("starting etcd, containerd and the API server")
    _start_daemons((*components.BEFORE_API, *map(components.containerd, nodes)))
    for node in nodes:
        wait_for(f"containerd of {node.name}", node.containerd_socket.exists, 30)
        images.import_archive(pause_archive, images.containerd_of(node))
    wait_for("the API server", api.is_ready, 120)
    say("starting controller manager, scheduler, kubelet, kube-proxy and CoreDNS")
    of_nodes = [daemon for node in nodes for daemon in components.of_kubelet(node)]
    _start_daemons((*components.AFTER_API, *of_nodes))
    wait_for("the DNS Service", _are_addons_applied, 60)
    for node in nodes:
        await_node(node)
    wait_for("the default service account", health.has_default_service_account, 60)
    FINGERPRINT.write_text(health.fingerprint(), encoding="utf-8")


def await_node(node: Node, since: float = 0.0) -> None:
    """Wait until a node is ready, as it has said since a Unix time, and names resolve there."""
    wait_for(f"the node {node.name}", lambda: health.is_node_open(node, since), 90)
    wait_for(f"CoreDNS on {node.name}", lambda: health.is_dns_answering(node), 60)


def _are_addons_applied() -> bool:
    addons.apply_all()
    return True


def _start_daemons(daemons: Sequence[Daemon]) -> None:
    for daemon in daemons:
        processes.start(daemon)


def wait_for(what: str, is_there: Callable[[], bool], timeout_seconds: float) -> None:
    """Poll until something is there; a daemon that dies meanwhile ends the wait at once."""
    deadline = time.monotonic() + timeout_seconds
    while not _holds(is_there):
        if dead := processes.dead(_started()):
            raise ClusterError(f"{', '.join(dead)} stopped while {what} was awaited")
        if time.monotonic() > deadline:
            raise ClusterError(f"{what} did not get ready within {timeout_seconds:.0f} s")
        time.sleep(0.1)
    say(f"{what} is ready")


def _holds(condition: Callable[[], bool]) -> bool:
    """A condition that cannot be told does not hold yet: the API server is just starting."""
    try:
        return condition()
    except (OSError, ClusterError):
        return False


def _started() -> list[Daemon]:
    return [one for one in components.every(places.nodes()) if processes.was_started(one)]


def _say_dead_daemons() -> None:
    for daemon in _started():
        if not processes.is_alive(daemon):
            say(f"last words of {daemon}:\n{processes.last_words(daemon)}")


def _clean(announcement: str) -> bool:
    """Remove whatever there is of a cluster; returns whether there was anything."""
    ours = cgroups.process_ids()
    folders = [path for path in (STATE, RUN) if path.exists()]
    if not (ours or folders or namespaces.has_link()):
        cgroups.remove()
        return False
    # The mark is made before all else of a cluster and removed after it.
    if not OWNER_MARK.exists():
        _refuse(
            [
                *(str(path) for path in folders if path == RUN or any(path.iterdir())),
                *([f"the control group {CGROUP}"] if ours else []),
            ]
        )
    say(announcement)
    if strangers := namespaces.strangers(ours):
        say(f"processes {strangers} are in the cluster's network namespace and are left to run")
    cgroups.kill_all()
    namespaces.remove()
    cgroups.remove()
    return True


def _refuse(unmarked: Sequence[str]) -> None:
    """Raise ClusterError where there is anything that has our name and not our mark."""
    if unmarked:
        raise ClusterError(
            f"{' and '.join(unmarked)} is in use by something else, and this program would remove "
            "it; set LAPTIME_CLUSTER_NAME to another name (or, where it is what is left of a "
            f"cluster, make the file {OWNER_MARK})"
        )


def _require_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError("the embedded cluster needs root (namespaces, control groups): use sudo")


def _cpus_of_control() -> tuple[int, ...] | None:
    """Return the CPUs that the control plane is to have; None: all of them."""
    if CONTROL_CPUS is None:
        return None
    there = cgroups.machine_cpus()
    try:
        wanted = cgroups.parse_cpus(CONTROL_CPUS)
    except ValueError:
        wanted = ()
    if not wanted or not set(wanted) <= set(there):
        raise ClusterError(
            f"LAPTIME_CLUSTER_CONTROL_CPUS is {CONTROL_CPUS!r}; it can be CPUs of this machine, "
            f"which has {','.join(map(str, there))}, such as {there[0]}"
        )
    return wanted


def _require_disk() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    needs = [(STATE.parent, _MINIMUM_FREE_BYTES)]
    if not all(build.is_done() for build in builds.NODE_BUILDS):
        needs.append((CACHE, _BUILD_FREE_BYTES))
    for folder, needed in needs:
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise ClusterError(
                f"the disk is too full: {folder} has {free / 2**30:.1f} GiB left, "
                f"{needed >> 30} GiB are needed"
            )
