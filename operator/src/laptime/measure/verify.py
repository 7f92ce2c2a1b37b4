"""Asks a server for what its scenario promises, and says whether the answers are right.

Runs as `laptime verify` in a Job beside the server, since only there the server can be reached.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from pydantic import Field, ValidationError

from laptime.api.base import TolerantModel
from laptime.catalog import Check
from laptime.measure.judge import Judge, said
from laptime.measure.verdict import Verdict, Wrong

if TYPE_CHECKING:
    from laptime.measure.statement_counter import Witness

ENVIRONMENT_VARIABLE = "LAPTIME_VERIFY"
AUTHORIZATION_VARIABLE = "LAPTIME_AUTHORIZATION"
CERTIFICATES_VARIABLE = "SSL_CERT_FILE"
_DATABASE_VARIABLE = "DATABASE_URL"
TERMINATION_LOG = Path("/dev/termination-log")

_POLL_SECONDS = 0.05
_HEALTH_SECONDS = 10.0


class Task(TolerantModel):
    """What is to be verified."""

    target: str = Field(description="Such as http://demo-server-axum:8080.")
    health_path: str | None = Field(
        "/healthz",
        description="What answers 200 when it serves; null: a connection is enough.",
    )
    wait_seconds: float = Field(30.0, description="How long the server may take to be healthy.")
    checks: list[Check] = Field(min_length=1)
    values: dict[str, str | int] = Field(
        default_factory=dict, description="What stands for the values of feeders."
    )
    upstream_url: str | None = Field(None, description="What the server's upstream answers at.")


def main(
    environment: Mapping[str, str] = os.environ, termination_log: Path = TERMINATION_LOG
) -> int:
    """Verify what the environment says, print the verdict, return the exit code.

    0 when it could judge, whatever the judgement; 2 when the task itself cannot be read.
    """
    code = 0
    try:
        task = Task.model_validate_json(environment.get(ENVIRONMENT_VARIABLE, ""))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        message = f"{ENVIRONMENT_VARIABLE}: {place}: {first['msg']}"
        verdict, code = Verdict(False, "TaskUnreadable", message), 2
    else:
        verdict = _verify_counting(task, environment)
    print(verdict.to_json(), flush=True)
    try:
        termination_log.write_text(verdict.to_json(), "utf-8")
    except OSError as error:
        # Outside a pod there is none; the verdict has been printed.
        print(f"no termination log: {error.strerror}", flush=True)
    return code


def _verify_counting(task: Task, environment: Mapping[str, str]) -> Verdict:
    database_url = environment.get(_DATABASE_VARIABLE)
    if database_url is None:
        return verify(task, client=Client.of(environment))
    # Loaded only where it is needed: the driver takes longer to load than many a check.
    from laptime.measure.statement_counter import postgres_witness

    try:
        with postgres_witness(database_url) as counter:
            return verify(task, counter=counter)
    except Wrong as wrong:
        return wrong.verdict


@dataclass(frozen=True)
class Client:
    """As whom a server is asked, and which certificates vouch for it."""

    authorization: str | None = None
    certificates: Path | None = None
    """A file (PEM); None: those that the machine trusts."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Client:
        """Return what the environment says."""
        known = environment.get(AUTHORIZATION_VARIABLE, "").strip() or None
        trusted = environment.get(CERTIFICATES_VARIABLE)
        return cls(known, Path(trusted) if trusted else None)

    def headers(self) -> dict[str, str]:
        """Return the header fields of every request that does not say otherwise."""
        return {} if self.authorization is None else {"authorization": self.authorization}

    def hidden(self, verdict: Verdict) -> Verdict:
        """Return what is said of a server without the credentials, which its answer may repeat."""
        message = verdict.message
        # The whole header, then its last word: the token without its scheme.
        for secret in (self.authorization or "", *(self.authorization or "").split()[-1:]):
            message = message.replace(secret, "(credentials)") if secret else message
        return replace(verdict, message=message)

    def trusts(self) -> ssl.SSLContext | bool:
        """Return whom to trust.

        Raises:
            Wrong: there are no certificates in the file.
        """
        if self.certificates is None:
            return True
        try:
            return ssl.create_default_context(cafile=str(self.certificates))
        except (OSError, ssl.SSLError) as error:
            raise Wrong(
                "CertificatesUnreadable",
                f"the ConfigMap that tls names has no certificates that can be read: {said(error)}",
            ) from error


NOBODY = Client()
"""Asks without credentials."""


def verify(
    task: Task,
    transport: httpx.BaseTransport | None = None,
    counter: Witness | None = None,
    client: Client = NOBODY,
) -> Verdict:
    """Wait until the server is healthy, go through the checks, and return the verdict.

    `transport` stands in for the network where there is none. With a counter the statements of
    each request are counted too.
    """
    try:
        known, trusted = client.headers(), client.trusts()
    except Wrong as wrong:
        return wrong.verdict
    # No proxies of the environment: the server is next door.
    with httpx.Client(
        base_url=task.target, trust_env=False, transport=transport, headers=known, verify=trusted
    ) as asking:
        # A user of a load sends the cookies that he is told to, and no others.
        asking.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        judge = Judge(asking, task.upstream_url, counter, task.values)
        try:
            if task.health_path is None:
                wait_until_connected(task.target, task.wait_seconds)
            else:
                wait_until_healthy(asking, task.wait_seconds, task.health_path)
            for check in task.checks:
                judge.judge(check)
        except Wrong as wrong:
            return client.hidden(wrong.verdict)
    count = len(task.checks)
    return Verdict(True, "AnswersRight", f"{count} {'check' if count == 1 else 'checks'} passed")


def wait_until_connected(target: str, wait_seconds: float) -> None:
    """Return when a connection can be made to the host and port of a URL.

    Raises:
        Wrong: none could be made in time.
    """
    url = httpx.URL(target)
    deadline = time.monotonic() + wait_seconds
    while True:
        patience = min(_HEALTH_SECONDS, max(deadline - time.monotonic(), 0.05))
        try:
            socket.create_connection((url.host, url.port or 80), patience).close()
            return
        except OSError as error:
            if time.monotonic() + _POLL_SECONDS >= deadline:
                message = f"{target}: {error} (waited {wait_seconds:g}s)"
                raise Wrong("NotReachable", message) from error
        time.sleep(_POLL_SECONDS)


def wait_until_healthy(client: httpx.Client, wait_seconds: float, path: str = "/healthz") -> None:
    """Return when a server is healthy.

    Raises:
        Wrong: it is not in time.
    """
    deadline = time.monotonic() + wait_seconds
    seen = Verdict(False, "NotReachable", "no connection")
    while True:
        left = deadline - time.monotonic()
        try:
            patience = min(_HEALTH_SECONDS, max(left, 0.05))
            # Its body is nobody's business: one without an end would fill the memory.
            with client.stream("GET", path, timeout=patience) as response:
                if response.status_code == 200:
                    return
            seen = Verdict(
                False, "NotReady", f"GET {path} answers {response.status_code}, expected 200"
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # A status once seen says more than the connection refused after it.
            if seen.reason == "NotReachable":
                seen = Verdict(False, "NotReachable", f"GET {path}: {said(error)}")
        if time.monotonic() + _POLL_SECONDS >= deadline:
            raise Wrong(seen.reason, f"{seen.message} (waited {wait_seconds:g}s)")
        time.sleep(_POLL_SECONDS)
