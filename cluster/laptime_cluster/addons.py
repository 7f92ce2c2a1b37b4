"""Objects every cluster has: the DNS Service in front of CoreDNS, and what CoreDNS may read."""

from collections.abc import Mapping

from laptime_cluster import api
from laptime_cluster.layout import API_ADDRESS, DNS_PORT, DNS_SERVICE_ADDRESS, FAMILIES

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NAME = "system:coredns"


def apply_all() -> None:
    """Create the objects, or bring them back to what they should be."""
    for path, content in _objects().items():
        api.apply(path, content)


def _objects() -> Mapping[str, Mapping[str, object]]:
    labels = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
    protocols = ("UDP", "TCP")
    return {
        f"{_RBAC}/clusterroles/{_NAME}": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": _NAME},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["endpoints", "services", "pods", "namespaces"],
                    "verbs": ["list", "watch"],
                },
                {
                    "apiGroups": ["discovery.k8s.io"],
                    "resources": ["endpointslices"],
                    "verbs": ["list", "watch"],
                },
            ],
        },
        f"{_RBAC}/clusterrolebindings/{_NAME}": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _NAME},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": _NAME,
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _NAME}],
        },
        "/api/v1/namespaces/kube-system/services/kube-dns": {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
            # No selector: CoreDNS is a process of the control plane, and the slice below names it.
            "spec": {
                "clusterIP": DNS_SERVICE_ADDRESS,
                "ports": [
                    {"name": f"dns-{protocol.lower()}", "port": 53, "protocol": protocol}
                    for protocol in protocols
                ],
            },
        },
        "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns": {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "kube-dns",
                "namespace": "kube-system",
                "labels": {**labels, "kubernetes.io/service-name": "kube-dns"},
            },
            "addressType": f"IPv{FAMILIES[0].version}",
            "endpoints": [{"addresses": [API_ADDRESS], "conditions": {"ready": True}}],
            "ports": [
                {"name": f"dns-{protocol.lower()}", "port": DNS_PORT, "protocol": protocol}
                for protocol in protocols
            ],
        },
    }
