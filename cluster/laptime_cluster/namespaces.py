"""The network and the mount namespace of the node.

The network namespace keeps every load inside the machine: a veth pair leads to the host, and no
route leads anywhere else. The mount namespace keeps the hundreds of mounts of a node away from the
host: they vanish with the last process of the cluster, however it dies.
"""

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

from laptime_cluster import cgroups
from laptime_cluster.commands import ClusterError, run
from laptime_cluster.layout import (
    DNS_SERVICE_ADDRESS,
    HOST_ADDRESS,
    HOST_LINK,
    LINK_PREFIX_LENGTH,
    MOUNT_NAMESPACE,
    NAME,
    NAMESPACE_FILES,
    NETWORK_NAMESPACE,
    NODE_ADDRESS,
    NODE_LINK,
    OWNER_MARK,
    RUN,
    SERVICE_RANGE,
    STATE,
)

# Places that containerd, CNI and the kubelet cannot be told to move: inside the mount namespace
# each is a folder of ours.
_MOVED: tuple[tuple[Path, Path], ...] = (
    (RUN / "containerd-shims", Path("/run/containerd")),
    (STATE / "cni", Path("/var/lib/cni")),
    (STATE / "kubelet", Path("/var/lib/kubelet")),
    (STATE / "log" / "pods", Path("/var/log/pods")),
    (STATE / "log" / "containers", Path("/var/log/containers")),
)
_NOWHERE = "nowhere0"
_LINK_RANGE = ip_network(f"{HOST_ADDRESS}/{LINK_PREFIX_LENGTH}", strict=False)
_CREATED = STATE / "created-folders.json"

# Load without keep-alive leaves one tracked connection per request behind; with the default of two
# minutes in TIME_WAIT the table of the kernel (262,144 entries) is full after half a minute.
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "5",
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait": "10",
    "net/netfilter/nf_conntrack_tcp_timeout_fin_wait": "10",
    "net/netfilter/nf_conntrack_tcp_be_liberal": "1",
}


def inside(argv: Sequence[str | Path]) -> list[str]:
    """The command line that runs `argv` in both namespaces.

    `ip netns exec` would mount a new /sys, where the kubelet finds no cgroups.
    """
    enter = ["nsenter", f"--mount={MOUNT_NAMESPACE}", f"--net={NETWORK_NAMESPACE}", "--"]
    return [*enter, *(str(word) for word in argv)]


def inside_network(argv: Sequence[str | Path]) -> list[str]:
    """The command line that runs `argv` in the network namespace, with the files of the host."""
    return ["nsenter", f"--net={NETWORK_NAMESPACE}", "--", *(str(word) for word in argv)]


def create_network() -> None:
    """Make the network namespace and the links of the node."""
    _refuse_overlap()
    _prepare_folder_of_files()
    # Not `ip netns add`: that leaves a mount at /run/netns behind.
    NETWORK_NAMESPACE.touch()
    run(["unshare", f"--net={NETWORK_NAMESPACE}", "true"])
    commands = (
        "link set lo up",
        f"link add {HOST_LINK} type veth peer name {NODE_LINK}",
        f"link set {HOST_LINK} alias {NAME}",
        f"link set {HOST_LINK} netns {os.getpid()}",
        f"address add {NODE_ADDRESS}/{LINK_PREFIX_LENGTH} dev {NODE_LINK}",
        f"link set {NODE_LINK} up",
        # Addresses of Services need a route before kube-proxy's rules see the packet: into a bridge
        # that has no ports. Everything else is "unreachable" at once, instead of after a wait.
        f"link add {_NOWHERE} type bridge",
        f"link set {_NOWHERE} up",
        f"route add {SERVICE_RANGE} dev {_NOWHERE} src {NODE_ADDRESS}",
        "route add unreachable default",
    )
    for command in commands:
        run(inside_network(["ip", *command.split()]))
    run(["ip", "address", "add", f"{HOST_ADDRESS}/{LINK_PREFIX_LENGTH}", "dev", HOST_LINK])
    run(["ip", "link", "set", HOST_LINK, "up"])
    script = "; ".join(
        f"if [ -e /proc/sys/{key} ]; then echo {value} > /proc/sys/{key}; fi"
        for key, value in _SETTINGS.items()
    )
    run(inside_network(["sh", "-c", script]))


def _prepare_folder_of_files() -> None:
    """The file of a mount namespace can only lie on a mount that is not shared with it.

    `-n` keeps the mount program from taking notes in /run/mount.
    """
    NAMESPACE_FILES.mkdir()
    run(["mount", "-n", "--bind", NAMESPACE_FILES, NAMESPACE_FILES])
    run(["mount", "-n", "--make-private", NAMESPACE_FILES])


def _refuse_overlap() -> None:
    """Another use of the addresses on the host would make the API server unreachable."""
    for link in json.loads(run(["ip", "-json", "address"])):
        for address in link.get("addr_info", ()):
            if address.get("family") == "inet":
                used = ip_network(f"{address['local']}/{address['prefixlen']}", strict=False)
                if used.overlaps(_LINK_RANGE):
                    raise ClusterError(
                        f"the cluster needs the addresses {_LINK_RANGE}, which {link['ifname']} of "
                        f"this machine uses ({used}); set LAPTIME_CLUSTER_NAME to another name"
                    )


def has_link() -> bool:
    """Whether this very cluster has a link to the host."""
    try:
        alias = Path(f"/sys/class/net/{HOST_LINK}/ifalias").read_text(encoding="utf-8")
    except OSError:
        return False
    return alias.strip() == NAME


def create_mounts() -> None:
    """Make the mount namespace, where the fixed places of the daemons are folders of ours."""
    MOUNT_NAMESPACE.touch()
    created = [str(target) for _, target in _MOVED if not target.exists()]
    _CREATED.write_text(json.dumps(created), encoding="utf-8")
    # Containers may ask for propagation of mounts, which needs shared ones; "slave" first, so that
    # the host sees none of them.
    script = ["mount -n --make-rshared /"]
    for source, target in _MOVED:
        source.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        script.append(f"mount -n --bind {source} {target}")
    if Path("/etc/resolv.conf").exists():
        resolver = STATE / "resolv.conf"
        # Names outside are refused by CoreDNS at once, so pulling an absent image fails in no time.
        resolver.write_text(f"nameserver {DNS_SERVICE_ADDRESS}\n", encoding="utf-8")
        script.append(f"mount -n --bind {resolver} /etc/resolv.conf")
    run(
        [
            *("unshare", f"--mount={MOUNT_NAMESPACE}", "--propagation", "slave"),
            *("sh", "-ec", "\n".join(script)),
        ]
    )


def strangers(ours: set[int]) -> list[int]:
    """Processes in the network namespace that are not of the cluster, such as someone's shell."""
    try:
        inode = NETWORK_NAMESPACE.stat().st_ino
    except OSError:
        return []
    if inode == Path("/proc/self/ns/net").stat().st_ino:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in ours:
            with contextlib.suppress(OSError):
                if (entry / "ns" / "net").stat().st_ino == inode:
                    found.append(int(entry.name))
    return found


def remove() -> None:
    """Remove both namespaces, all mounts below our folders, and folders made for mounting."""
    created = _created_folders()
    _unmount_all()
    if has_link():
        run(["ip", "link", "delete", HOST_LINK], check=False)
    for folder in (RUN, STATE):
        _delete(folder)
    # Removing a folder also removes what another cluster has mounted there in its own namespace.
    if not cgroups.of_other_clusters():
        for folder in created:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _created_folders() -> list[Path]:
    try:
        names = json.loads(_CREATED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    known = {target for _, target in _MOVED}
    return [Path(name) for name in names if Path(name) in known]


def _unmount_all() -> None:
    """Unmount the newest first; a busy mount is detached, since its users are dead or dying."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    for line in reversed(lines):
        point = line.split()[4].encode().decode("unicode_escape")
        if any(point == str(root) or point.startswith(f"{root}/") for root in (RUN, STATE)):
            run(["umount", "-n", "--lazy", point], check=False)


def _delete(folder: Path) -> None:
    """Delete a folder, never crossing into a mount that could not be unmounted."""
    if not folder.exists():
        return
    device = folder.stat().st_dev
    for path, names, _ in os.walk(folder):
        for name in names:
            status = os.lstat(Path(path, name))
            if stat.S_ISDIR(status.st_mode) and status.st_dev != device:
                raise ClusterError(f"{Path(path, name)} is still a mount; unmount it and try again")
    # The mark that it is ours goes last: what is left half removed can be removed the next time.
    for entry in folder.iterdir():
        if entry.name != OWNER_MARK.name:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.rmtree(folder)
