"""The network namespaces of the control plane and the nodes, and the nodes' mount namespaces.

The network namespaces keep every load inside the machine: a veth pair leads from the control plane
to the host, others lead from its bridge to each node, and no route leads anywhere else. The mount
namespaces keep the hundreds of mounts of a node away from the host and from other nodes: they
vanish with the last process of the cluster, however it dies.
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
    FAMILIES,
    HAS_IPV6,
    HOST_LINK,
    HOST_PEER,
    NAME,
    NAMESPACE_FILES,
    OWNER_MARK,
    RUN,
    STATE,
)
from laptime_cluster.places import CONTROL, Node, Place, nodes

# Places that containerd, CNI and the kubelet cannot be told to move: inside the mount namespace
# of a node each is a folder of that node.
_FIXED = tuple(
    map(
        Path,
        (
            "/run/containerd",
            "/var/lib/cni",
            "/var/lib/kubelet",
            "/var/log/pods",
            "/var/log/containers",
        ),
    )
)
_ONLINE = Path("/sys/devices/system/cpu/online")
# What a kubelet sets when it starts: no namespace has settings of its own of these.
_OF_THE_MACHINE = tuple(
    Path("/proc/sys", key)
    for key in (
        *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
        *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
    )
)
_BRIDGE = "nodes0"
_NODE_LINK = "node0"
_NOWHERE = "nowhere0"
# All that is not of the cluster is "unreachable" at once, instead of after a wait.
_NO_WAY_OUT = tuple(f"-{family.version} route add unreachable default" for family in FAMILIES)
_CREATED = STATE / "created-folders.json"

_IPV6_SETTINGS = {
    "net/ipv6/conf/all/forwarding": "1",
    # To look for others with an address takes up to two seconds, in which nobody can use it.
    "net/ipv6/conf/all/accept_dad": "0",
    "net/ipv6/conf/default/accept_dad": "0",
}
# Load without keep-alive leaves one tracked connection per request behind; with the default of two
# minutes in TIME_WAIT the table of the kernel (262,144 entries) is full after half a minute.
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    **(_IPV6_SETTINGS if HAS_IPV6 else {}),
    "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "5",
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait": "10",
    "net/netfilter/nf_conntrack_tcp_timeout_fin_wait": "10",
    "net/netfilter/nf_conntrack_tcp_be_liberal": "1",
}


def inside(place: Place, argv: Sequence[str | Path]) -> list[str]:
    """The command line that runs `argv` in the namespaces of a place.

    `ip netns exec` would mount a new /sys, where the kubelet finds no cgroups.
    """
    mount = [] if place.mount_namespace is None else [f"--mount={place.mount_namespace}"]
    return ["nsenter", *mount, *inside_network(place, argv)[1:]]


def inside_network(place: Place, argv: Sequence[str | Path]) -> list[str]:
    """The command line that runs `argv` in the network namespace, with the files of the host."""
    return ["nsenter", f"--net={place.network_namespace}", "--", *(str(word) for word in argv)]


def create_networks(there: Sequence[Node]) -> None:
    """Make the network namespaces, the link to the host, and the network of the nodes."""
    _refuse_overlap()
    _prepare_folder_of_files()
    for place in (CONTROL, *there):
        place.network_namespace.parent.mkdir()
        # Not `ip netns add`: that leaves a mount at /run/netns behind.
        place.network_namespace.touch()
        run(["unshare", f"--net={place.network_namespace}", "true"])
        _apply_settings(place)
    _ip(
        CONTROL,
        "link set lo up",
        f"link add {HOST_LINK} type veth peer name {HOST_PEER}",
        f"link set {HOST_LINK} alias {NAME}",
        f"link set {HOST_LINK} netns {os.getpid()}",
        *(
            f"address add {family.api_address}/{family.link_prefix_length} dev {HOST_PEER}"
            for family in FAMILIES
        ),
        f"link set {HOST_PEER} up",
        f"link add {_BRIDGE} type bridge",
        *_addresses(CONTROL, _BRIDGE),
        f"link set {_BRIDGE} up",
        *(command for node in there for command in _cable(node)),
        # Services, for what the API server calls by their names: kube-proxy is on nodes only.
        *(
            f"route add {family.service_range} via {address}"
            for family, address in zip(FAMILIES, there[0].addresses, strict=True)
        ),
        *_NO_WAY_OUT,
    )
    for node in there:
        _ip(
            node,
            "link set lo up",
            *_addresses(node, _NODE_LINK),
            f"link set {_NODE_LINK} up",
            *(f"route add {one.api_address} via {one.control_address}" for one in FAMILIES),
            *(route for one in there if one != node for route in _routes_to_pods(one)),
            # Addresses of Services need a route before kube-proxy's rules see the packet: into a
            # bridge that has no ports.
            f"link add {_NOWHERE} type bridge",
            f"link set {_NOWHERE} up",
            *(
                f"route add {family.service_range} dev {_NOWHERE} src {address}"
                for family, address in zip(FAMILIES, node.addresses, strict=True)
            ),
            *_NO_WAY_OUT,
        )
    for family in FAMILIES:
        address = f"{family.host_address}/{family.link_prefix_length}"
        at_once = ["nodad"] if family.version == 6 else []
        run(["ip", "address", "add", address, "dev", HOST_LINK, *at_once])
    run(["ip", "link", "set", HOST_LINK, "up"])


def _apply_settings(place: Place) -> None:
    """Set what the kernel has for each network namespace; links that come later inherit it."""
    script = "; ".join(
        f"if [ -e /proc/sys/{key} ]; then echo {value} > /proc/sys/{key}; fi"
        for key, value in _SETTINGS.items()
    )
    run(inside_network(place, ["sh", "-c", script]))


def _addresses(place: Place, link: str) -> tuple[str, ...]:
    """The commands that give a place its addresses in the network of the nodes."""
    return tuple(
        f"address add {address}/{family.node_prefix_length} dev {link}"
        for family, address in zip(FAMILIES, place.addresses, strict=True)
    )


def _routes_to_pods(node: Node) -> tuple[str, ...]:
    """The commands that have others send to a node what is for its pods."""
    return tuple(
        f"route add {pods} via {address}"
        for pods, address in zip(node.pod_ranges, node.addresses, strict=True)
    )


def _cable(node: Node) -> tuple[str, ...]:
    """The commands that join a node to the bridge."""
    there = node.network_namespace
    return (
        f"link add {node.port} type veth peer name {_NODE_LINK} netns {there}",
        f"link set {node.port} master {_BRIDGE}",
        f"link set {node.port} up",
        *_routes_to_pods(node),
    )


def _ip(place: Place, *commands: str) -> None:
    script = "\n".join(f"ip {command}" for command in commands)
    run(inside_network(place, ["sh", "-ec", script]))


def connect(node: Node, connected: bool) -> None:
    """Plug the cable of a node in, or pull it out."""
    _ip(CONTROL, f"link set {node.port} {'up' if connected else 'down'}")


def is_connected(node: Node) -> bool:
    """Whether the cable of a node is plugged in."""
    (link,) = json.loads(run(inside_network(CONTROL, ["ip", "-json", "link", "show", node.port])))
    return "UP" in link["flags"]


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
            if "local" not in address:
                continue
            used = ip_network(f"{address['local']}/{address['prefixlen']}", strict=False)
            for family in FAMILIES:
                needed = ip_network(
                    f"{family.host_address}/{family.link_prefix_length}", strict=False
                )
                if used.version == needed.version and used.overlaps(needed):
                    raise ClusterError(
                        f"the cluster needs the addresses {needed}, which {link['ifname']} of "
                        f"this machine uses ({used}); set LAPTIME_CLUSTER_NAME to another name"
                    )


def has_link() -> bool:
    """Whether this very cluster has a link to the host."""
    try:
        alias = Path(f"/sys/class/net/{HOST_LINK}/ifalias").read_text(encoding="utf-8")
    except OSError:
        return False
    return alias.strip() == NAME


def create_mounts(node: Node) -> None:
    """Make the mount namespace of a node, where the fixed places of its daemons are its folders."""
    assert node.mount_namespace is not None
    node.mount_namespace.touch()
    # Containers may ask for propagation of mounts, which needs shared ones; "slave" first, so that
    # the host sees none of them.
    script = ["mount -n --make-rshared /"]
    for source, target in zip(_own_folders(node), _FIXED, strict=True):
        source.mkdir(parents=True, exist_ok=True)
        script.append(f"mount -n --bind {source} {target}")
    if _ONLINE.exists():
        # A kubelet takes these for its own, and wants all of them for its pods.
        online = node.state / "cpus-online"
        online.write_text(f"{','.join(map(str, node.cpus))}\n", encoding="utf-8")
        script.append(f"mount -n --bind {online} {_ONLINE}")
    script += _settings_of_its_own(node)
    if Path("/etc/resolv.conf").exists():
        resolver = node.state / "resolv.conf"
        # Names outside are refused by CoreDNS at once, so pulling an absent image fails in no time.
        resolver.write_text(f"nameserver {DNS_SERVICE_ADDRESS}\n", encoding="utf-8")
        script.append(f"mount -n --bind {resolver} /etc/resolv.conf")
    run(
        [
            *("unshare", f"--mount={node.mount_namespace}", "--propagation", "slave"),
            *("sh", "-ec", "\n".join(script)),
        ]
    )


def _settings_of_its_own(node: Node) -> list[str]:
    """Commands after which a kubelet sets files of its node, and the machine keeps its values."""
    folder = node.state / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    commands = []
    for setting in filter(Path.exists, _OF_THE_MACHINE):
        (folder / setting.name).write_text(setting.read_text(encoding="utf-8"), encoding="utf-8")
        commands.append(f"mount -n --bind {folder / setting.name} {setting}")
    return commands


def create_mount_points() -> None:
    """Make the folders of the host on which the nodes mount their own."""
    created = [str(target) for target in _FIXED if not target.exists()]
    _CREATED.write_text(json.dumps(created), encoding="utf-8")
    for target in _FIXED:
        target.mkdir(parents=True, exist_ok=True)


def _own_folders(node: Node) -> tuple[Path, ...]:
    """What is mounted at each of the fixed places."""
    return (
        node.run / "containerd-shims",
        node.state / "cni",
        node.state / "kubelet",
        node.logs / "pods",
        node.logs / "containers",
    )


def strangers(ours: set[int]) -> list[int]:
    """Processes in the network namespaces that are not of the cluster, such as someone's shell."""
    inodes = set()
    for place in (CONTROL, *nodes()):
        with contextlib.suppress(OSError):
            inodes.add(place.network_namespace.stat().st_ino)
    # What `up` was killed before it made is a plain file, or the namespace of the host.
    inodes.discard(Path("/proc/self/ns/net").stat().st_ino)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in ours:
            with contextlib.suppress(OSError):
                if (entry / "ns" / "net").stat().st_ino in inodes:
                    found.append(int(entry.name))
    return found


def remove() -> None:
    """Remove all namespaces, all mounts below our folders, and folders made for mounting."""
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
    return [Path(name) for name in names if Path(name) in _FIXED]


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
