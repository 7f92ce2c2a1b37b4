"""What OpenShift's restricted-v2 does to pods, as a mutating webhook; run beside the API server.

It refuses a pod that says a user or a group of volumes outside of the namespace's range, or wants a
folder of the host, and gives all others the first user of the range. Their group stays 0. Pods of
the account that is named may be as they are, as when an administrator has granted it another one.

usage: openshift_admission.py CERTIFICATE KEY LOG ACCOUNT
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

FIRST_USER, USERS = 1000650000, 10000
_KINDS = ("containers", "initContainers")


def admit(pod: dict[str, Any], exempt: str) -> tuple[str | None, list[dict[str, Any]]]:
    """Return why a pod is refused, if it is; and else how it is changed, as a JSON patch."""
    spec = pod["spec"]
    if spec.get("serviceAccountName") == exempt:
        return None, []
    own = spec.get("securityContext") or {}
    wrong = [
        f"{key}: Invalid value: {own[key]}" for key in ("runAsUser", "fsGroup") if _out(own, key)
    ]
    wrong += [
        f"{kind}[{index}].securityContext.runAsUser: Invalid value"
        for kind in _KINDS
        for index, one in enumerate(spec.get(kind) or [])
        if _out(one.get("securityContext") or {}, "runAsUser")
    ]
    wrong += [f"volumes: {one['name']}" for one in spec.get("volumes") or [] if "hostPath" in one]
    if wrong:
        return (
            "unable to validate against any security context constraint: provider restricted-v2: "
            f"{'; '.join(wrong)}: must be in the ranges: [{FIRST_USER}, {FIRST_USER + USERS - 1}]"
        ), []
    patch = [
        {"op": "add", "path": "/spec/securityContext", "value": {**own, "fsGroup": FIRST_USER}}
    ]
    patch += [
        {
            "op": "add",
            "path": f"/spec/{kind}/{index}/securityContext",
            "value": {**(one.get("securityContext") or {}), "runAsUser": FIRST_USER},
        }
        for kind in _KINDS
        for index, one in enumerate(spec.get(kind) or [])
    ]
    return None, patch


def _out(said: dict[str, Any], key: str) -> bool:
    return said.get(key) is not None and not 0 <= said[key] - FIRST_USER < USERS


def serve(certificate: str, key: str, log: Path, exempt: str) -> None:
    """Answer reviews for ever, on a port that is said first; each pod is a line of the log."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = review["request"]
            refused, patch = admit(asked["object"], exempt)
            with log.open("a") as lines:
                labels = asked["object"]["metadata"].get("labels") or {}
                line = {"namespace": asked["namespace"], "labels": labels, "refused": refused}
                lines.write(f"{json.dumps(line)}\n")
            answer: dict[str, Any] = {"uid": asked["uid"], "allowed": refused is None}
            if refused is not None:
                answer["status"] = {"code": 403, "message": refused}
            if patch:
                encoded = base64.b64encode(json.dumps(patch).encode()).decode()
                answer |= {"patchType": "JSONPatch", "patch": encoded}
            body = json.dumps({**review, "request": None, "response": answer}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
