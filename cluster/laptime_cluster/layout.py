"""Names, addresses, versions and paths of the cluster: whatever two modules must agree on."""

import hashlib
import os
import re
import sys
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

DEFAULT_NAME = "laptime-cluster"
NAME = os.environ.get("LAPTIME_CLUSTER_NAME") or DEFAULT_NAME
"""Another name is another cluster beside the first, with folders and addresses of its own."""
AUDITED_USER = os.environ.get("LAPTIME_CLUSTER_AUDIT") or None
"""Whose requests the API server writes into its audit log; nobody's: there is none."""
DISK = os.environ.get("LAPTIME_CLUSTER_DISK") or None
"""How large a disk of its own each node has, such as "8G"; None: that of the machine."""
_SHARED_CPUS = os.environ.get("LAPTIME_CLUSTER_SHARED_CPUS") or "0"
if not (_SHARED_CPUS.isascii() and _SHARED_CPUS.isdigit()):
    sys.exit(
        f"error: LAPTIME_CLUSTER_SHARED_CPUS is {_SHARED_CPUS!r}; it can be a number such as 1"
    )
SHARED_CPUS = int(_SHARED_CPUS)
"""How many CPUs of each node all pods share: its kubelet gives the others out, each to one alone.

0: they share all of them.
"""
CONTROL_CPUS = os.environ.get("LAPTIME_CLUSTER_CONTROL_CPUS") or None
"""Which CPUs the control plane may use, such as "0"; None: all that the nodes have."""
FIRST_NODE = "laptime"
"""The name of the first node; the others are called `laptime-2`, `laptime-3`."""

KUBERNETES_VERSION = "v1.34.4"
COREDNS_VERSION = "v1.15.0"
HELM_VERSION = "v4.3.1"

SOURCE = Path(__file__).resolve().parent.parent
"""The folder `cluster/` of the checkout."""
CACHE = Path(os.environ.get("LAPTIME_CACHE") or Path.home() / ".cache" / "laptime")
"""Binaries and image archives; survives `down` and is shared by all checkouts."""
BIN = CACHE / "bin"
IMAGES = CACHE / "images"
KUBERNETES_BIN = BIN / f"kubernetes-{KUBERNETES_VERSION}"
COREDNS_BIN = BIN / f"coredns-{COREDNS_VERSION}"
HELM_BIN = BIN / f"helm-{HELM_VERSION}"

STATE = Path("/var/lib") / NAME
"""All files of a cluster, on disk; `down` removes it."""
OWNER_MARK = STATE / ".laptime-cluster"
"""Says that the folder is of this program, which removes it without asking."""
# An earlier version took any name; what it started under one can be stopped.
_STARTED = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", NAME) and OWNER_MARK.exists()
if not (re.fullmatch(r"laptime[a-z0-9-]*", NAME) or _STARTED):
    # Folders and control groups of that name are removed, with all that runs in them.
    sys.exit(
        f"error: LAPTIME_CLUSTER_NAME is {NAME!r}; it can be laptime and any of a-z, 0-9 and - "
        "behind it, such as laptime-2"
    )
RUN = Path("/run") / NAME
"""Sockets, process ids and the persistent mount namespace; `down` removes it."""
PKI = STATE / "pki"
ADMIN_KUBECONFIG = STATE / "admin.kubeconfig"
NODES = STATE / "nodes.json"
"""Which nodes there are, for all commands that come after `up`."""
FINGERPRINT = STATE / "fingerprint"
NAMESPACE_FILES = RUN / "namespaces"

_LINKS = 2**14
"""So many links of four addresses each are in 10.203.0.0/16."""
_NUMBER = (
    0
    if NAME == DEFAULT_NAME
    else 1 + int.from_bytes(hashlib.sha256(NAME.encode()).digest()[:4]) % (_LINKS - 1)
)
HOST_LINK = f"laptime{_NUMBER}"
"""Its alias is the cluster's name: two names may have one number."""
HOST_PEER = "host0"
"""The other end of that link, in the control plane."""


@dataclass(frozen=True)
class Family:
    """The addresses of a cluster in IPv4 or in IPv6.

    Only the link to the host needs some that no other cluster has: all else is inside.
    """

    version: int
    keyword: str
    """What nftables calls the family."""
    host_address: str
    api_address: str
    """Of the API server and of CoreDNS, for the machine and for the nodes."""
    link_prefix_length: int
    nodes: str
    """How an address in the network of the nodes is made from a number."""
    node_prefix_length: int
    pods: str
    """How the range of a node's pods is made from the node's number."""
    pod_range: str
    services: str
    """How the address of a Service is made from a number."""
    service_range: str
    everywhere: str
    nobody: str
    """An address that nobody has."""

    @property
    def control_address(self) -> str:
        """Of the control plane in the network of the nodes, which is a bridge there."""
        return self.nodes.format(1)

    @property
    def first_service_address(self) -> str:
        """Of the API server's Service."""
        return self.services.format(1)

    @property
    def dns_service_address(self) -> str:
        """Of CoreDNS' Service."""
        return self.services.format(10)


IPV4 = Family(
    version=4,
    keyword="ip",
    host_address=f"10.203.{_NUMBER >> 6}.{(_NUMBER & 63) * 4 + 1}",
    api_address=f"10.203.{_NUMBER >> 6}.{(_NUMBER & 63) * 4 + 2}",
    link_prefix_length=30,
    nodes="10.204.0.{}",
    node_prefix_length=24,
    pods="10.201.{}.0/24",
    pod_range="10.201.0.0/16",
    services="10.202.0.{}",
    service_range="10.202.0.0/16",
    everywhere="0.0.0.0/0",
    nobody="255.255.255.255",
)
_LINK6 = ip_network(f"fd6c:10:203:{_NUMBER:x}::/64")
# The same numbers stand at the same places, also where they are read as hexadecimal ones.
IPV6 = Family(
    version=6,
    keyword="ip6",
    host_address=str(_LINK6[1]),
    api_address=str(_LINK6[2]),
    link_prefix_length=64,
    nodes="fd6c:10:204::{}",
    node_prefix_length=64,
    pods="fd6c:10:201:{}::/64",
    pod_range="fd6c:10:201::/48",
    services="fd6c:10:202::{}",
    service_range="fd6c:10:202::/112",
    everywhere="::/0",
    nobody="100::",
)
_FAMILIES = {"ipv4": (IPV4,), "ipv6": (IPV6,), "dual": (IPV4, IPV6)}
WANTED_FAMILY = os.environ.get("LAPTIME_CLUSTER_FAMILY") or None
"""Which addresses a new cluster is to have; None: those that it had before, or IPv4."""
if WANTED_FAMILY not in (None, *_FAMILIES):
    # Nothing can be imported without addresses: there is nobody yet who would catch an error.
    sys.exit(
        f"error: LAPTIME_CLUSTER_FAMILY is {WANTED_FAMILY!r}; it can be {', '.join(_FAMILIES)}"
    )
FAMILY_FILE = STATE / "family"
"""Which addresses there are, for all commands that come after `up`."""


def _started_family() -> str | None:
    try:
        return FAMILY_FILE.read_text(encoding="utf-8")
    except OSError:
        # An earlier version of this program knew but one, and wrote nothing down.
        return "ipv4" if OWNER_MARK.exists() else None


FAMILY = _started_family() or WANTED_FAMILY or "ipv4"
FAMILIES = _FAMILIES[FAMILY]
"""The first is the one of the API server and of Services that ask for none."""
HAS_IPV6 = IPV6 in FAMILIES
API_ADDRESS = FAMILIES[0].api_address
FIRST_SERVICE_ADDRESS = FAMILIES[0].first_service_address
DNS_SERVICE_ADDRESS = FAMILIES[0].dns_service_address
API_PORT = 6443
API_HOST = f"[{API_ADDRESS}]" if FAMILIES[0].version == 6 else API_ADDRESS
"""As it stands before a port."""
API_URL = f"https://{API_HOST}:{API_PORT}"
DNS_PORT = 53

CGROUP = NAME
"""Parent, in every hierarchy, of the groups of the control plane and of each node."""
CNI_PLUGINS = Path("/usr/lib/cni")


def version() -> str:
    """The version of the project, which is also the tag of its images."""
    return (SOURCE.parent / "VERSION").read_text(encoding="utf-8").strip()


def pause_image() -> str:
    """The image of the process that holds a pod's namespaces."""
    return "docker.io/laptime/pause:1"
