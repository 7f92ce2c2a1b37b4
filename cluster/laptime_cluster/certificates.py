"""Certificate authorities, certificates and kubeconfigs of one start of the cluster."""

import base64
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from laptime_cluster.commands import run
from laptime_cluster.layout import (
    ADMIN_KUBECONFIG,
    API_URL,
    FAMILIES,
    NAME,
    PKI,
)
from laptime_cluster.places import Node

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650")


@dataclass(frozen=True)
class Certificate:
    """A certificate to issue: the subject is who its holder is to the API server."""

    name: str
    common_name: str
    organisation: str = ""
    authority: str = "ca"
    alternative_names: tuple[str, ...] = ()


_API_SERVER_NAMES = (
    "IP:127.0.0.1",
    *(f"IP:{family.api_address}" for family in FAMILIES),
    *(f"IP:{family.first_service_address}" for family in FAMILIES),
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local",
)
_CERTIFICATES = (
    Certificate("apiserver", "kube-apiserver", alternative_names=_API_SERVER_NAMES),
    Certificate("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
    Certificate("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
    Certificate("admin", "kubernetes-admin", "system:masters"),
    Certificate("controller-manager", "system:kube-controller-manager"),
    Certificate("scheduler", "system:kube-scheduler"),
    Certificate("kube-proxy", "system:kube-proxy"),
    Certificate("coredns", "system:coredns"),
)
_WITH_KUBECONFIG = ("admin", "controller-manager", "scheduler", "kube-proxy", "coredns")


def certificate_path(name: str) -> Path:
    """Where the certificate of that name is."""
    return PKI / f"{name}.crt"


def key_path(name: str) -> Path:
    """Where the private key of that name is."""
    return PKI / f"{name}.key"


def kubeconfig_path(name: str) -> Path:
    """Where the kubeconfig of that component is; the administrator's has a place of its own."""
    return ADMIN_KUBECONFIG if name == "admin" else PKI / f"{name}.kubeconfig"


def kubelet_certificate(node: Node) -> str:
    """The name of the certificate of a node's kubelet."""
    return f"kubelet-{node.name}"


def _of_kubelet(node: Node) -> Certificate:
    return Certificate(
        kubelet_certificate(node),
        f"system:node:{node.name}",
        "system:nodes",
        alternative_names=(*(f"IP:{one}" for one in node.addresses), f"DNS:{node.name}"),
    )


def issue_all(nodes: Sequence[Node]) -> None:
    """Make every key, certificate and kubeconfig anew: nothing of an earlier start is kept."""
    PKI.mkdir(mode=0o700, parents=True)
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(_issue_authority, ("ca", "front-proxy-ca")))
        service_accounts = pool.submit(_make_service_account_key)
        list(pool.map(_issue, (*_CERTIFICATES, *map(_of_kubelet, nodes))))
        service_accounts.result()
    for name in (*_WITH_KUBECONFIG, *map(kubelet_certificate, nodes)):
        _write_kubeconfig(name)


def _openssl_request(arguments: Sequence[str | Path]) -> None:
    run(["openssl", "req", "-x509", *_NEW_KEY, *arguments])


def _issue_authority(name: str) -> None:
    _openssl_request(
        [
            *("-subj", f"/CN={NAME}-{name}"),
            *("-addext", "keyUsage=critical,keyCertSign,digitalSignature"),
            *("-keyout", key_path(name), "-out", certificate_path(name)),
        ]
    )


def _issue(certificate: Certificate) -> None:
    subject = f"/CN={certificate.common_name}"
    if certificate.organisation:
        subject = f"/O={certificate.organisation}{subject}"
    arguments: list[str | Path] = [
        *("-CA", certificate_path(certificate.authority)),
        *("-CAkey", key_path(certificate.authority)),
        *("-subj", subject),
        *("-addext", "basicConstraints=critical,CA:false"),
        *("-addext", "keyUsage=critical,digitalSignature"),
        *("-addext", "extendedKeyUsage=serverAuth,clientAuth"),
        *("-keyout", key_path(certificate.name), "-out", certificate_path(certificate.name)),
    ]
    if certificate.alternative_names:
        arguments += ["-addext", f"subjectAltName={','.join(certificate.alternative_names)}"]
    _openssl_request(arguments)


def _make_service_account_key() -> None:
    """An elliptic key signs service-account tokens much faster than RSA."""
    run(
        [
            *("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"),
            *("-out", key_path("service-account")),
        ]
    )


def _write_kubeconfig(name: str) -> None:
    def embedded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [
            {
                "name": NAME,
                "cluster": {
                    "server": API_URL,
                    "certificate-authority-data": embedded(certificate_path("ca")),
                },
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": embedded(certificate_path(name)),
                    "client-key-data": embedded(key_path(name)),
                },
            }
        ],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": name}}],
    }
    path = kubeconfig_path(name)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
