"""Configuration files of the daemons."""

import json
from collections.abc import Mapping
from pathlib import Path

from laptime_cluster.certificates import certificate_path, key_path, kubeconfig_path
from laptime_cluster.layout import (
    AUDITED_USER,
    CGROUP,
    CNI_PLUGINS,
    CONFIG,
    CONTAINERD_SOCKET,
    DNS_PORT,
    DNS_SERVICE_ADDRESS,
    NODE_ADDRESS,
    NODE_NAME,
    POD_RANGE,
    POD_RANGE_OF_NODE,
    RUN,
    STATE,
    pause_image,
)

CNI_FOLDER = CONFIG / "cni"
CONTAINERD = CONFIG / "containerd.toml"
CONTAINERD_ROOT = STATE / "containerd"
COREFILE = CONFIG / "Corefile"
KUBELET = CONFIG / "kubelet.json"
KUBE_PROXY = CONFIG / "kube-proxy.json"
SCHEDULER = CONFIG / "scheduler.json"
AUDIT_POLICY = CONFIG / "audit.json"
POD_RESOLVER = CONFIG / "pod-resolv.conf"

_QUICK_CLIENT = {"qps": 100, "burst": 200}


def write_all() -> None:
    """Write every configuration file anew."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> Mapping[Path, str]:
    """Path and content of every configuration file."""
    return {
        CONTAINERD: _containerd(),
        CNI_FOLDER / "10-laptime.conflist": _as_json(_cni()),
        COREFILE: _corefile(),
        KUBELET: _as_json(_kubelet()),
        KUBE_PROXY: _as_json(_kube_proxy()),
        SCHEDULER: _as_json(_scheduler()),
        **({AUDIT_POLICY: _as_json(_audit_policy())} if AUDITED_USER else {}),
        # Empty on purpose: pods ask CoreDNS, and nobody else could be reached.
        POD_RESOLVER: "",
    }


def _as_json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _containerd() -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE a score cannot be lowered, and need not be.
    return f"""version = 2
root = "{CONTAINERD_ROOT}"
state = "{RUN}/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_image()}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{CNI_FOLDER}"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def _cni() -> Mapping[str, object]:
    # A routed pair per pod instead of a bridge: traffic between pods passes the rules of kube-proxy
    # also in kernels without bridge netfilter, and a pod starts with one plugin call less.
    return {
        "cniVersion": "1.0.0",
        "name": "laptime",
        "plugins": [
            {
                "type": "ptp",
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(STATE / "cni" / "networks"),
                    "ranges": [[{"subnet": POD_RANGE_OF_NODE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def _corefile() -> str:
    # There is nowhere to forward to, so any other name does not exist.
    return f"""cluster.local:{DNS_PORT} in-addr.arpa:{DNS_PORT} ip6.arpa:{DNS_PORT} {{
    bind {NODE_ADDRESS}
    errors
    cache 5
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig_path("coredns")}
        pods insecure
        ttl 5
    }}
}}
.:{DNS_PORT} {{
    bind {NODE_ADDRESS}
    errors
    ready {NODE_ADDRESS}:8181
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"""


def _kubelet() -> Mapping[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificate_path("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate_path("kubelet")),
        "tlsPrivateKeyFile": str(key_path("kubelet")),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failSwapOn": False,
        "failCgroupV1": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE_ADDRESS],
        "resolvConf": str(POD_RESOLVER),
        "volumePluginDir": str(STATE / "kubelet" / "volume-plugins"),
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
    }


def _kube_proxy() -> Mapping[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": NODE_ADDRESS,
        "metricsBindAddress": "127.0.0.1:10249",
        "healthzBindAddress": "127.0.0.1:10256",
        "hostnameOverride": NODE_NAME,
        "clusterCIDR": POD_RANGE,
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
