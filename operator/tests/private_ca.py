"""Certificates as many a private CA makes them, without the extensions Python 3.13 asks for."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.serving import served


def as_in_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have default contexts refuse such certificates, as they do in the images."""
    usual = ssl.create_default_context

    def strict(*arguments: Any, **more: Any) -> ssl.SSLContext:
        context = usual(*arguments, **more)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


class Authority:
    """A CA, and the certificates that it signs."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        config = folder / f"{name}.cnf"
        config.write_text(
            f"[req]\ndistinguished_name = n\nprompt = no\nx509_extensions = ca\n"
            f"[n]\nCN = {name}\n[ca]\nbasicConstraints = CA:TRUE\nsubjectKeyIdentifier = none\n"
            "authorityKeyIdentifier = none\n"
        )
        openssl("req", "-x509", "-config", config, *self._new_key(self._key, self.certificate))

    def server(self, host: str, days: int = 2) -> Path:
        """Return a file with a certificate for a host name, and its key."""
        key, request, signed = (
            self._folder / f"{self._name}-{host}{days}.{end}" for end in ("key", "csr", "crt")
        )
        names = self._folder / f"{host}.ext"
        names.write_text(f"subjectAltName = DNS:{host}\nsubjectKeyIdentifier = none\n")
        openssl("req", "-subj", f"/CN={host}", *self._new_key(key, request))
        openssl(
            *("x509", "-req", "-in", request, "-out", signed, "-days", str(days)),
            *("-CA", self.certificate, "-CAkey", self._key, "-extfile", names),
            *("-CAserial", self._folder / f"{self._name}.srl", "-CAcreateserial"),
        )
        together = self._folder / f"{self._name}-{host}{days}.pem"
        together.write_text(signed.read_text() + key.read_text())
        return together

    @staticmethod
    def _new_key(key: Path, out: Path) -> tuple[str | Path, ...]:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        return (*curve, "-keyout", key, "-out", out)


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


@contextmanager
def tls_server(certificate: Path) -> Iterator[str]:
    """Yield the address of a server with that certificate, which answers everybody `{}`."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    with served(httpd) as port:
        yield f"https://localhost:{port}"


def kubeconfig(file: Path, server: str, authority: Authority) -> Path:
    """Write a kubeconfig of a cluster with that address and CA, and return its path."""
    cluster = {"server": server, "certificate-authority": str(authority.certificate)}
    file.write_text(
        json.dumps(
            {
                "current-context": "one",
                "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
                "clusters": [{"name": "one", "cluster": cluster}],
                "users": [{"name": "one", "user": {"token": "s3cr3t"}}],
            }
        )
    )
    return file
