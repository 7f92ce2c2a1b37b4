"""As whom a Prometheus is asked, and whose certificates are trusted.

Credentials and certificates are files that the chart mounts (docs/watching.md). They are read for
each question: what is replaced there is used without a restart.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from laptime.measure.promql import PrometheusError
from laptime.verification.mask import Mask

FILES = Path("/var/run/secrets/laptime.dev/prometheus")
"""Where the chart mounts what is asked with: token, or username and password; ca.crt."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LABEL_NAME = re.compile(r"([A-Za-z]|_[A-Za-z0-9])[A-Za-z0-9_]*")
_OURS = frozenset(("authorization", "content-length", "content-type", "host", "transfer-encoding"))


class Authentication(StrEnum):
    """With what a Prometheus is told who asks."""

    NOTHING = ""
    BASIC = "basic"
    BEARER = "bearer"
    SERVICE_ACCOUNT = "serviceAccount"


@dataclass(frozen=True)
class PrometheusAccess:
    """Where a Prometheus is and how it is asked.

    Raises:
        ValueError: the parts contradict each other; the message names the values of the chart, and
            shows none that may be secret.
    """

    url: str
    authentication: Authentication = Authentication.NOTHING
    secret: str = ""
    """Name of the Secret with the credentials; here only to be named in messages."""
    authorities: str | None = None
    """Where the trusted certificates are from, in words; None: those that everybody trusts."""
    headers: Mapping[str, str] = field(default_factory=dict)
    matchers: Mapping[str, str] = field(default_factory=dict)
    """Labels of all series that are asked for, where it has those of other clusters too."""
    files: Path = FILES

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError:
            parts = urlsplit("")
        if "@" in parts.netloc:
            raise ValueError(
                "prometheus.url has credentials in it, which would be shown wherever it is: put "
                "username and password into a Secret, and name it in prometheus.auth"
            )
        if parts.query or parts.fragment:
            raise ValueError(
                "prometheus.url has a ? or a #: write the address before /api/v1 alone, such as "
                "https://mimir.example/prometheus"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "prometheus.url is no address: write one such as "
                "https://prometheus.monitoring.svc:9090"
            )
        if parts.scheme == "http" and self.authentication is not Authentication.NOTHING:
            raise ValueError(
                "prometheus.url begins with http://, by which everybody on the way can read the "
                "credentials of prometheus.auth: write an https:// address"
            )
        if parts.scheme == "http" and self.authorities is not None:
            raise ValueError(
                "prometheus.tls is for an https:// address, and prometheus.url begins with http://"
            )
        named = self.authentication in (Authentication.BASIC, Authentication.BEARER)
        if named != bool(self.secret):
            raise ValueError(
                "prometheus.auth: basic and bearer need an existingSecret, and nothing else has one"
            )
        for name, value in self.headers.items():
            if name.lower() in _OURS or not _HEADER_NAME.fullmatch(name):
                raise ValueError(
                    f"prometheus.headers: {name!r} cannot be written there; credentials belong in "
                    "a Secret, which prometheus.auth names"
                )
            if not (value.isascii() and value.isprintable() and value == value.strip()):
                raise ValueError(
                    f"prometheus.headers: the value of {name} is not one line of plain ASCII"
                )
        for name, value in self.matchers.items():
            if not _LABEL_NAME.fullmatch(name):
                raise ValueError(
                    f"prometheus.matchers: {name!r} is not the name of a label: write letters, "
                    "digits and _, no digit first and no __"
                )
            if not value:
                raise ValueError(
                    f"prometheus.matchers: {name} has no value: write the one that the series of "
                    "this cluster have, or leave it out"
                )

    @classmethod
    def from_wire(
        cls, url: str, document: Mapping[str, Any], files: Path = FILES
    ) -> PrometheusAccess:
        """Return what the chart's value `prometheus` says: its auth, tls, headers and matchers.

        Raises:
            ValueError: a field is unknown, has no such form, or contradicts another one.
        """
        auth, tls = dict(document.get("auth") or {}), dict(document.get("tls") or {})
        kind, secret = auth.pop("type", ""), auth.pop("existingSecret", "")
        # The audience is in the token already.
        auth.pop("audience", None)
        sources = [("ConfigMap", tls.pop("configMap", "")), ("Secret", tls.pop("secret", ""))]
        named = [f"{what} {name}" for what, name in sources if name]
        key = tls.pop("key", "ca.crt")
        headers, matchers = (
            {str(name): str(value) for name, value in (document.get(key) or {}).items()}
            for key in ("headers", "matchers")
        )
        known = {"auth", "tls", "headers", "matchers"}
        unknown = sorted({*document} - known | {*auth} | {*tls})
        if unknown:
            raise ValueError(f"unknown fields: {', '.join(unknown)}")
        if kind not in list(Authentication):
            kinds = ", ".join(one for one in Authentication if one)
            raise ValueError(f"prometheus.auth.type is none of {kinds}")
        if len(named) > 1:
            raise ValueError("prometheus.tls: write a configMap or a secret, not both")
        authorities = f"key {key} of {named[0]}" if named else None
        return cls(url, Authentication(kind), str(secret), authorities, headers, matchers, files)

    def identity(self) -> Identity:
        """Return as whom the next question is asked.

        Raises:
            PrometheusError: the credentials are missing, empty, or cannot be sent.
        """
        match self.authentication:
            case Authentication.NOTHING:
                return Identity(dict(self.headers))
            case Authentication.BASIC:
                username, password = self._read("username"), self._read("password")
                if ":" in username:
                    raise PrometheusError(
                        f"the username in Secret {self.secret} has a colon, which basic "
                        "authentication cannot have"
                    )
                word = base64.b64encode(f"{username}:{password}".encode()).decode()
                return self._identity("Basic", word, password)
            case _:
                token = self._read("token")
                if not re.fullmatch(r"[!-~]+", token):
                    raise PrometheusError(
                        f"{self._where('token')} is no token: it has spaces, line breaks or "
                        "characters beyond ASCII in it; write the token and nothing else"
                    )
                return self._identity("Bearer", token)

    def _identity(self, scheme: str, word: str, *more: str) -> Identity:
        return Identity(
            {**self.headers, "Authorization": f"{scheme} {word}"},
            (f"{scheme} {word}", word, *more),
        )

    def _where(self, key: str) -> str:
        if self.authentication is Authentication.SERVICE_ACCOUNT:
            return "the token of the operator's service account"
        return f"the key {key} of Secret {self.secret}"

    def _read(self, key: str) -> str:
        try:
            text = (self.files / key).read_text("utf-8").strip()
        except FileNotFoundError:
            raise PrometheusError(
                f"{self._where(key)} is not there (the operator has no file {self.files / key}): "
                "make it in the operator's namespace; it is found within two minutes"
            ) from None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise PrometheusError(f"{self._where(key)} cannot be read: {why}") from None
        if not text:
            raise PrometheusError(f"{self._where(key)} is empty: write what Prometheus expects")
        return text

    def certificates(self) -> bytes | None:
        """Return the trusted certificates (PEM); None: those that everybody trusts.

        Raises:
            PrometheusError: they are not there.
        """
        if self.authorities is None:
            return None
        try:
            return self._authorities_file.read_bytes()
        except OSError as error:
            raise PrometheusError(
                f"{self.authorities}, which prometheus.tls names, is not there or cannot be read "
                f"({error.strerror}): it belongs in the operator's namespace"
            ) from None

    def trusts(self) -> ssl.SSLContext | bool:
        """Return whom to trust, as httpx takes it.

        Raises:
            PrometheusError: there are no certificates in the file.
        """
        if self.authorities is None:
            return True
        try:
            context = ssl.create_default_context(cafile=str(self._authorities_file))
        except (OSError, ssl.SSLError):
            raise PrometheusError(
                f"{self.authorities}, which prometheus.tls names, has no certificates in PEM: "
                "write those of the CA that signed Prometheus' own"
            ) from None
        # Python 3.13 refuses certificates of many a private CA, for extensions that neither
        # Prometheus nor Grafana ask for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    @property
    def _authorities_file(self) -> Path:
        return self.files / "ca.crt"

    def refused(self, status: int) -> str:
        """Return what to do about an answer 401 (unknown) or 403 (not allowed), in words."""
        unknown = status == 401
        match self.authentication:
            case Authentication.NOTHING:
                return (
                    "it asks for credentials or for the header of a tenant: write prometheus.auth "
                    "or prometheus.headers of the chart"
                )
            case Authentication.SERVICE_ACCOUNT if unknown:
                return (
                    "it does not take the token of the operator's service account: write the "
                    "audience that it expects in prometheus.auth.audience"
                )
            case Authentication.SERVICE_ACCOUNT:
                return (
                    "the operator's service account may not ask it: bind a role to it that may, "
                    "on OpenShift cluster-monitoring-view"
                )
        what = "token" if self.authentication is Authentication.BEARER else "username and password"
        if unknown:
            return (
                f"it does not take the {what} in Secret {self.secret}: put what is valid there; "
                "it is used within two minutes"
            )
        return (
            f"who has the {what} in Secret {self.secret} may not ask it: allow it, or put other "
            "credentials there"
        )

    def distrusted(self, error: ssl.SSLCertVerificationError) -> str:
        """Return what is wrong with the certificate that was shown, and what to do, in words."""
        why = error.verify_message.rstrip(".")
        if error.verify_code in _OTHER_NAME:
            return f"{why}: write a host name in prometheus.url that its certificate has"
        if error.verify_code in _UNKNOWN_AUTHORITY:
            if self.authorities is None:
                return (
                    "its certificate is of a CA that is not known: name the CA's own in "
                    f"prometheus.tls ({why})"
                )
            return (
                f"its certificate is of no CA in {self.authorities}: put the certificate of its "
                f"CA there ({why})"
            )
        return f"its certificate is not valid ({why})"


# X509_V_ERR_* of OpenSSL.
_OTHER_NAME = frozenset((62, 64))
_UNKNOWN_AUTHORITY = frozenset((2, 18, 19, 20, 21))


@dataclass(frozen=True)
class Identity:
    """The header fields of one question, and what of them nobody may be shown."""

    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def mask(self, text: str) -> str:
        """Return what Prometheus said, without the credentials that it may repeat."""
        mask = Mask()
        for secret in self.secrets:
            mask.hide(secret, "(credentials)")
        return mask.text(text)
