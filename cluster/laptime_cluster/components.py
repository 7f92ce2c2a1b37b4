"""The daemons of each place and their command lines, in the order in which they start."""

import sys
from collections.abc import Sequence

from laptime_cluster import configuration
from laptime_cluster.certificates import (
    certificate_path,
    key_path,
    kubeconfig_path,
    kubelet_certificate,
)
from laptime_cluster.layout import (
    API_ADDRESS,
    API_PORT,
    AUDITED_USER,
    COREDNS_BIN,
    FAMILIES,
    KUBERNETES_BIN,
    SOURCE,
)
from laptime_cluster.places import CONTROL, Node
from laptime_cluster.processes import Daemon

_ETCD_URL = "http://127.0.0.1:2379"
_ETCD_PEER_URL = "http://127.0.0.1:2380"

_SERVICE_RANGES = ",".join(family.service_range for family in FAMILIES)
_AUDIT = (
    (
        f"--audit-policy-file={configuration.AUDIT_POLICY}",
        f"--audit-log-path={CONTROL.logs}/audit.log",
    )
    if AUDITED_USER
    else ()
)

ETCD = Daemon(
    "etcd",
    CONTROL,
    (
        "etcd",
        f"--data-dir={CONTROL.state}/etcd",
        f"--listen-client-urls={_ETCD_URL}",
        f"--advertise-client-urls={_ETCD_URL}",
        f"--listen-peer-urls={_ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={_ETCD_PEER_URL}",
        f"--initial-cluster=default={_ETCD_PEER_URL}",
        # The cluster is thrown away with its machine: nothing is worth a disk flush.
        "--unsafe-no-fsync",
        "--log-outputs=stderr",
        "--log-level=warn",
    ),
)
API_SERVER = Daemon(
    "kube-apiserver",
    CONTROL,
    (
        f"{KUBERNETES_BIN}/kube-apiserver",
        f"--etcd-servers={_ETCD_URL}",
        f"--advertise-address={API_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={certificate_path('apiserver')}",
        f"--tls-private-key-file={key_path('apiserver')}",
        f"--client-ca-file={certificate_path('ca')}",
        f"--kubelet-certificate-authority={certificate_path('ca')}",
        f"--kubelet-client-certificate={certificate_path('apiserver-kubelet-client')}",
        f"--kubelet-client-key={key_path('apiserver-kubelet-client')}",
        # The name of the node is in no DNS; logs and exec go to its address.
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key_path('service-account')}",
        f"--service-account-signing-key-file={key_path('service-account')}",
        f"--service-cluster-ip-range={_SERVICE_RANGES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--requestheader-client-ca-file={certificate_path('front-proxy-ca')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={certificate_path('front-proxy-client')}",
        f"--proxy-client-key-file={key_path('front-proxy-client')}",
        "--allow-privileged=true",
        "--profiling=false",
        *_AUDIT,
    ),
)
CONTROLLER_MANAGER = Daemon(
    "kube-controller-manager",
    CONTROL,
    (
        f"{KUBERNETES_BIN}/kube-controller-manager",
        f"--kubeconfig={kubeconfig_path('controller-manager')}",
        "--bind-address=127.0.0.1",
        f"--service-account-private-key-file={key_path('service-account')}",
        f"--root-ca-file={certificate_path('ca')}",
        "--use-service-account-credentials",
        f"--service-cluster-ip-range={_SERVICE_RANGES}",
        "--leader-elect=false",
        # It makes this folder, by default a fixed one of the machine that `down` must not remove.
        f"--flex-volume-plugin-dir={CONTROL.state}/volume-plugins",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        "--node-monitor-period=1s",
        "--concurrent-deployment-syncs=10",
        "--concurrent-replicaset-syncs=10",
        "--concurrent-job-syncs=10",
        "--concurrent-gc-syncs=20",
        "--profiling=false",
    ),
)
SCHEDULER = Daemon(
    "kube-scheduler",
    CONTROL,
    (
        f"{KUBERNETES_BIN}/kube-scheduler",
        f"--config={configuration.SCHEDULER}",
        "--bind-address=127.0.0.1",
    ),
)
COREDNS = Daemon("coredns", CONTROL, (f"{COREDNS_BIN}/coredns", f"-conf={configuration.COREFILE}"))

BEFORE_API = (ETCD, API_SERVER)
AFTER_API = (CONTROLLER_MANAGER, SCHEDULER, COREDNS)
OF_CONTROL = BEFORE_API + AFTER_API


def containerd(node: Node) -> Daemon:
    """The daemon that the kubelet of a node has its containers made by."""
    command = ("containerd", f"--config={configuration.containerd_file(node)}", "--log-level=warn")
    return Daemon("containerd", node, command)


def of_kubelet(node: Node) -> tuple[Daemon, ...]:
    """The daemons of a node that talk to the API server."""
    return (
        Daemon(
            "kubelet",
            node,
            (
                f"{KUBERNETES_BIN}/kubelet",
                f"--config={configuration.kubelet_file(node)}",
                f"--kubeconfig={kubeconfig_path(kubelet_certificate(node))}",
                f"--root-dir={node.state}/kubelet",
                f"--cert-dir={node.state}/pki",
                f"--hostname-override={node.name}",
                f"--node-ip={','.join(node.addresses)}",
            ),
        ),
        Daemon(
            "kube-proxy",
            node,
            (f"{KUBERNETES_BIN}/kube-proxy", f"--config={configuration.kube_proxy_file(node)}"),
        ),
        Daemon(
            "network-policies",
            node,
            # Of Python's own interpreter: whatever runs `up` can run it.
            (sys.executable, str(SOURCE / "cluster.py"), "enforce-policies", node.name),
        ),
    )


def of_node(node: Node) -> tuple[Daemon, ...]:
    """All daemons of a node."""
    return (containerd(node), *of_kubelet(node))


def every(nodes: Sequence[Node]) -> tuple[Daemon, ...]:
    """All daemons of a cluster with these nodes."""
    return (*OF_CONTROL, *(daemon for node in nodes for daemon in of_node(node)))
