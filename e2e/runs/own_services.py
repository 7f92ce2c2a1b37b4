"""What somebody else has in the namespace of a run: Deployments, Services, a server with TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

# The end of a program that says what `Handler` answers: its pod has a `certificate` at /tls.
OVER_TLS = """
import socket
Handler.log_message = lambda *said: None
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/ca.crt", "/tls/key.pem")
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 # and IPv4 too
server = Server(("", 8443), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def deployment(name: str, container: dict[str, Any], volumes: list[Any]) -> dict[str, Any]:
    """Return a Deployment of one container at the restricted level, whose pods have `app: name`."""
    labels = {"app": name}
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": False,
                    "terminationGracePeriodSeconds": 0,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 10001,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "volumes": volumes,
                    "containers": [
                        {
                            "name": "main",
                            "imagePullPolicy": "IfNotPresent",
                            "securityContext": restricted,
                            **container,
                        }
                    ],
                },
            },
        },
    }


def service(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Service."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def certificate(folder: Path, host: str) -> dict[str, str]:
    """Return a certificate of a host that vouches for itself, and its key."""
    key, certificate = folder / "key.pem", folder / "ca.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=shop", "-addext", f"subjectAltName=DNS:{host}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return {"key.pem": key.read_text(), "ca.crt": certificate.read_text()}
