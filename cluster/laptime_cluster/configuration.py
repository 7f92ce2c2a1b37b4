"""Configuration files of the daemons."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from laptime_cluster.certificates import (
    certificate_path,
    key_path,
    kubeconfig_path,
    kubelet_certificate,
)
from laptime_cluster.layout import (
    API_ADDRESS,
    API_HOST,
    AUDITED_USER,
    CNI_PLUGINS,
    DNS_PORT,
    DNS_SERVICE_ADDRESS,
    FAMILIES,
    HAS_IPV6,
    SHARED_CPUS,
    pause_image,
)
from laptime_cluster.places import CONTROL, Node

COREFILE = CONTROL.config / "Corefile"
SCHEDULER = CONTROL.config / "scheduler.json"
AUDIT_POLICY = CONTROL.config / "audit.json"

_QUICK_CLIENT = {"qps": 100, "burst": 200}


def containerd_file(node: Node) -> Path:
    """Where the configuration of a node's containerd is."""
    return node.config / "containerd.toml"


def kubelet_file(node: Node) -> Path:
    """Where the configuration of a node's kubelet is."""
    return node.config / "kubelet.json"


def kube_proxy_file(node: Node) -> Path:
    """Where the configuration of a node's kube-proxy is."""
    return node.config / "kube-proxy.json"


def _cni_folder(node: Node) -> Path:
    return node.config / "cni"


def _pod_resolver(node: Node) -> Path:
    return node.config / "pod-resolv.conf"


def write_all(nodes: Sequence[Node]) -> None:
    """Write every configuration file anew."""
    for path, text in files(nodes).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files(nodes: Sequence[Node]) -> Mapping[Path, str]:
    """Path and content of every configuration file."""
    found = {
        COREFILE: _corefile(),
        SCHEDULER: _as_json(_scheduler()),
        **({AUDIT_POLICY: _as_json(_audit_policy())} if AUDITED_USER else {}),
    }
    for node in nodes:
        found |= _files_of(node)
    return found


def _files_of(node: Node) -> Mapping[Path, str]:
    return {
        containerd_file(node): _containerd(node),
        _cni_folder(node) / "10-laptime.conflist": _as_json(_cni(node)),
        kubelet_file(node): _as_json(_kubelet(node)),
        kube_proxy_file(node): _as_json(_kube_proxy(node)),
        # Empty on purpose: pods ask CoreDNS, and nobody else could be reached.
        _pod_resolver(node): "",
    }


def _as_json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _containerd(node: Node) -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE a score cannot be lowered, and need not be.
    return f"""version = 2
root = "{node.containerd_root}"
state = "{node.run}/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{node.containerd_socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_image()}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{_cni_folder(node)}"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


# To look for others with a pod's address takes up to two seconds, for which `ptp` waits. The kernel
# is told not to before there is the link; `tuning` wants another plugin before it.
_ADDRESSES_AT_ONCE = (
    {"type": "loopback"},
    {
        "type": "tuning",
        "sysctl": {
            "net.ipv6.conf.all.accept_dad": "0",
            "net.ipv6.conf.default.accept_dad": "0",
        },
    },
)


def _cni(node: Node) -> Mapping[str, object]:
    # A routed pair per pod instead of a bridge: traffic between pods passes the rules of kube-proxy
    # also in kernels without bridge netfilter, and a pod starts with one plugin call less.
    pair = {
        "type": "ptp",
        "mtu": 1500,
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.state / "cni" / "networks"),
            "ranges": [[{"subnet": pods}] for pods in node.pod_ranges],
            "routes": [{"dst": family.everywhere} for family in FAMILIES],
        },
    }
    return {
        "cniVersion": "1.0.0",
        "name": "laptime",
        "plugins": [*(_ADDRESSES_AT_ONCE if HAS_IPV6 else ()), pair],
    }


def _corefile() -> str:
    # There is nowhere to forward to, so any other name does not exist.
    return f"""cluster.local:{DNS_PORT} in-addr.arpa:{DNS_PORT} ip6.arpa:{DNS_PORT} {{
    bind {API_ADDRESS}
    errors
    cache 5
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig_path("coredns")}
        pods insecure
        ttl 5
    }}
}}
.:{DNS_PORT} {{
    bind {API_ADDRESS}
    errors
    ready {API_HOST}:8181
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"""


def _kubelet(node: Node) -> Mapping[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificate_path("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate_path(kubelet_certificate(node))),
        "tlsPrivateKeyFile": str(key_path(kubelet_certificate(node))),
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failSwapOn": False,
        "failCgroupV1": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE_ADDRESS],
        "resolvConf": str(_pod_resolver(node)),
        "volumePluginDir": str(node.state / "kubelet" / "volume-plugins"),
        "maxPods": 110,
        # The quickest start of a pod.
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        "syncFrequency": "10s",
        # Images cannot be pulled again, so nothing may remove them.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "512Mi",
            "imagefs.available": "512Mi",
            "nodefs.inodesFree": "1%",
        },
        # Five minutes by default: what has filled a disk of tests is gone sooner.
        "evictionPressureTransitionPeriod": "30s",
        **_reservations(node),
        **({"cpuManagerPolicy": "static"} if SHARED_CPUS else {}),
    }


def _reservations(node: Node) -> Mapping[str, object]:
    """What is not for pods: the memory that other nodes have, and CPUs that none has alone.

    The kubelet takes all of the machine for its own.
    """
    reserved = {}
    if node.reserved_share:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        reserved["memory"] = f"{round(total * node.reserved_share) >> 20}Mi"
    if SHARED_CPUS:
        # It keeps the next whole number of CPUs for all, and takes no more than this from them.
        reserved["cpu"] = f"{1000 * SHARED_CPUS - 900}m"
    return {"systemReserved": reserved} if reserved else {}


def _kube_proxy(node: Node) -> Mapping[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": node.address,
        "metricsBindAddress": "127.0.0.1:10249",
        "healthzBindAddress": "127.0.0.1:10256",
        "hostnameOverride": node.name,
        "clusterCIDR": ",".join(family.pod_range for family in FAMILIES),
        "clientConnection": {"kubeconfig": str(kubeconfig_path("kube-proxy")), **_QUICK_CLIENT},
        # A new pod is reachable through its Service after at most this time.
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
        # Limits of the kernel are not the business of a throw-away node.
        "conntrack": {
            "maxPerCore": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _scheduler() -> Mapping[str, object]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig_path("scheduler")), **_QUICK_CLIENT},
    }


def _audit_policy() -> Mapping[str, object]:
    # One line for each request of this user, and nothing of what was in it.
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [AUDITED_USER]}, {"level": "None"}],
    }
