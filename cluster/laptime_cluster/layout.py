"""Names, addresses, versions and paths of the cluster: whatever two modules must agree on."""

import hashlib
import os
from pathlib import Path

DEFAULT_NAME = "laptime-cluster"
NAME = os.environ.get("LAPTIME_CLUSTER_NAME") or DEFAULT_NAME
"""Another name is another cluster beside the first, with folders and addresses of its own."""
AUDITED_USER = os.environ.get("LAPTIME_CLUSTER_AUDIT") or None
"""Whose requests the API server writes into its audit log; nobody's: there is none."""
DISK = os.environ.get("LAPTIME_CLUSTER_DISK") or None
"""How large a disk of its own each node has, such as "8G"; None: that of the machine."""
SHARED_CPUS = int(os.environ.get("LAPTIME_CLUSTER_SHARED_CPUS") or 0)
"""How many CPUs of each node all pods share: its kubelet gives the others out, each to one alone.

0: they share all of them.
"""
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
RUN = Path("/run") / NAME
"""Sockets, process ids and the persistent mount namespace; `down` removes it."""
PKI = STATE / "pki"
ADMIN_KUBECONFIG = STATE / "admin.kubeconfig"
NODES = STATE / "nodes.json"
"""Which nodes there are, for all commands that come after `up`."""
FINGERPRINT = STATE / "fingerprint"
NAMESPACE_FILES = RUN / "namespaces"

# Only the link to the host needs addresses that no other cluster has: all else is inside.
LINK_PREFIX_LENGTH = 30
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
HOST_ADDRESS = f"10.203.{_NUMBER >> 6}.{(_NUMBER & 63) * 4 + 1}"
API_ADDRESS = f"10.203.{_NUMBER >> 6}.{(_NUMBER & 63) * 4 + 2}"
"""Of the API server and of CoreDNS, for the machine and for the nodes."""
NODE_PREFIX_LENGTH = 24
CONTROL_ADDRESS = "10.204.0.1"
"""Of the control plane in the network of the nodes, which is a bridge there."""
POD_RANGE = "10.201.0.0/16"
SERVICE_RANGE = "10.202.0.0/16"
FIRST_SERVICE_ADDRESS = "10.202.0.1"
DNS_SERVICE_ADDRESS = "10.202.0.10"
API_PORT = 6443
API_URL = f"https://{API_ADDRESS}:{API_PORT}"
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
