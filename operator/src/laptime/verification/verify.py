"""Asks a server for what its scenario promises, and says whether the answers are right.

Runs as `laptime verify` in a Job beside the server, since only there the server can be reached.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx
from pydantic import Field, ValidationError, model_validator

from laptime.api.answers import CheckedAnswer
from laptime.api.base import TolerantModel
from laptime.api.loads import Protocol
from laptime.catalog import Check
from laptime.verification.answers import shown
from laptime.verification.judge import Judge, said
from laptime.verification.mask import Mask
from laptime.verification.verdict import Verdict, Wrong

if TYPE_CHECKING:
    from laptime.verification.statement_counter import Witness

ENVIRONMENT_VARIABLE = "LAPTIME_VERIFY"
AUTHORIZATION_VARIABLE = "LAPTIME_AUTHORIZATION"
CERTIFICATES_VARIABLE = "SSL_CERT_FILE"
_DATABASE_VARIABLE = "DATABASE_URL"
TERMINATION_LOG = Path("/dev/termination-log")

_POLL_SECONDS = 0.05
_HEALTH_SECONDS = 10.0
_TAKEN_SECONDS = 2.0


class Task(TolerantModel):
    """What is to be verified."""

    target: str = Field(description="Such as http://demo-server-axum:8080.")
    health_path: str | None = Field(
        "/healthz",
        description="What answers 200 when it serves; null: a connection is enough.",
    )
    health_target: str | None = Field(
        None,
        description="Where that is asked instead, over HTTP/1.1, such as "
        "http://demo-server-own:9001: of the target any answer to GET / is enough then.",
    )
    wait_seconds: float = Field(30.0, description="How long the server may take to be healthy.")
    checks: list[Check] = Field(
        description="At least one, but where health_target is: without one it is only waited for."
    )
    values: dict[str, str | int] = Field(
        default_factory=dict, description="What stands for the values of feeders."
    )
    bodies: list[str] = Field(
        default_factory=list,
        description="Checks whose answers have a body though nothing else says so: loads ask it.",
    )
    upstream_url: str | None = Field(None, description="What the server's upstream answers at.")
    reset: Path | None = Field(
        None,
        description="A file with the statements that bring the database to its first state, which "
        "run once the server is healthy, before anything is checked.",
    )
    schema_query: str | None = Field(
        None,
        description="What the database is asked for its schema, before anything is checked and "
        "once all was right: statements of one message, the last of which has one text.",
    )
    counts: bool = Field(
        True, description="Whether statements are counted, where there is a database."
    )
    protocols: list[Protocol] = Field(
        default_factory=lambda: [Protocol.HTTP1],
        description="All checks are asked over each of them.",
        min_length=1,
    )
    show_answers: bool = Field(
        False,
        description="Print each answer beside what was expected, and ask on after a wrong one.",
    )

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.checks and self.health_target is None:
            raise ValueError("checks: there is none")
        return self


def main(
    environment: Mapping[str, str] = os.environ,
    termination_log: Path = TERMINATION_LOG,
    reset: Callable[[Path], None] | None = None,
) -> int:
    """Verify what the environment says, print the verdict, return the exit code.

    0 when it could judge, whatever the judgement; 2 when the task itself cannot be read. `reset` is
    given the file of the task, if it has one, and raises Wrong where it cannot bring the database
    to its first state.
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
        verdict = _verify_on_schema(task, environment, reset)
    print(verdict.to_json(), flush=True)
    try:
        termination_log.write_text(verdict.to_json(), "utf-8")
    except OSError as error:
        # Outside a pod there is none; the verdict has been printed.
        print(f"no termination log: {error.strerror}", flush=True)
    return code


def _verify_on_schema(
    task: Task, environment: Mapping[str, str], reset: Callable[[Path], None] | None
) -> Verdict:
    """Return the verdict with the schema, if all was right and the database can be asked for it.

    Servers make tables with their first requests too, and a reset may drop them: what there was
    before the first check is what there is before a trial, or else what there is now.
    """
    found: list[str | None] = []

    def ask() -> None:
        url = environment.get(_DATABASE_VARIABLE)
        if task.schema_query is not None and url is not None:
            from laptime.verification.schema import database_schema

            found.append(database_schema(url, task.schema_query))

    def prepare() -> None:
        if task.reset is not None and reset is not None:
            reset(task.reset)
        ask()

    verdict = _verify_counting(task, environment, prepare)
    if verdict.ok:
        ask()
    known = [one for one in dict.fromkeys(found) if one is not None]
    if not verdict.ok or None in found or not known:
        return verdict
    return replace(verdict, schema=",".join(known))


def _verify_counting(
    task: Task, environment: Mapping[str, str], prepare: Callable[[], None]
) -> Verdict:
    database_url, client = environment.get(_DATABASE_VARIABLE), Client.of(environment)
    show = _print_answer if task.show_answers else None
    if database_url is None or not task.counts:
        return verify(task, client=client, show=show)
    # Loaded only where it is needed: the driver takes longer to load than many a check.
    from laptime.verification.statement_counter import postgres_witness

    try:
        with postgres_witness(database_url) as counter:
            return verify(task, counter=counter, client=client, show=show, prepare=prepare)
    except Wrong as wrong:
        return wrong.verdict


def _print_answer(answer: CheckedAnswer) -> None:
    print(answer.to_line(), flush=True)


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

    def mask(self) -> Mask:
        """Return what hides the credentials, which an answer may repeat."""
        mask = Mask()
        # The whole header, then its last word: the token without its scheme.
        for secret in (self.authorization or "", *(self.authorization or "").split()[-1:]):
            mask.hide(secret, "(credentials)")
        return mask

    def trusts(self) -> ssl.SSLContext | bool:
        """Return whom to trust.

        Raises:
            Wrong: there are no certificates in the file.
        """
        if self.certificates is None:
            return True
        try:
            context = ssl.create_default_context(cafile=str(self.certificates))
        except (OSError, ssl.SSLError) as error:
            raise Wrong(
                "CertificatesUnreadable",
                f"the ConfigMap that tls names has no certificates that can be read: {said(error)}",
            ) from error
        # As the generator, which is none of Python's: 3.13 refuses many a private CA.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


NOBODY = Client()
"""Asks without credentials."""


def verify(
    task: Task,
    transport: httpx.BaseTransport | None = None,
    counter: Witness | None = None,
    client: Client = NOBODY,
    show: Callable[[CheckedAnswer], None] | None = None,
    prepare: Callable[[], None] | None = None,
) -> Verdict:
    """Wait until the server is healthy, go through the checks, and return the verdict.

    `prepare` is called once in between: what it brings back may be in a table that the server makes
    as it starts for the first time.

    `transport` stands in for the network where there is none. With a counter the statements of
    each request are counted too. `show` is told each answer, and all that can be asked is asked
    then; else the first wrong answer is the last.
    """
    over, mask = "", client.mask()
    for name, value in task.values.items():
        mask.hide_fed(name, value)
    try:
        trusted = client.trusts()
        for number, protocol in enumerate(task.protocols):
            with _asking(task, client, trusted, protocol, transport) as asking:
                over = _WORDS[protocol] if len(task.protocols) > 1 else ""
                _wait_over(asking, task, protocol, client, trusted)
                if number == 0 and prepare is not None:
                    prepare()
                judge = Judge(asking, task.upstream_url, counter, task.values, mask, task.bodies)
                _go_through(judge, task.checks, show, over)
    except Wrong as wrong:
        message = mask.text(wrong.verdict.message)
        if over and wrong.verdict.reason != "WrongProtocol":
            message = f"over {over}: {message}"
        return replace(wrong.verdict, message=message)
    except Exception:
        # The end of its last words stands in the status too.
        raise RuntimeError(mask.text(traceback.format_exc())) from None
    count = len(task.checks)
    said = f"{count} {'check' if count == 1 else 'checks'} passed"
    if task.protocols != [Protocol.HTTP1]:
        said += f", over {' and '.join(_WORDS[one] for one in task.protocols)}"
    return Verdict(True, "AnswersRight", said)


_WORDS = {Protocol.HTTP1: "HTTP/1.1", Protocol.HTTP2: "HTTP/2"}


def _asking(
    task: Task,
    client: Client,
    trusted: ssl.SSLContext | bool,
    protocol: Protocol,
    transport: httpx.BaseTransport | None = None,
) -> httpx.Client:
    second = protocol is Protocol.HTTP2
    # No proxies of the environment: the server is next door.
    asking = httpx.Client(
        base_url=task.target,
        trust_env=False,
        transport=transport,
        headers=client.headers(),
        verify=trusted,
        http2=second,
        # With TLS the server chooses; without it HTTP/2 is spoken at once.
        http1=not second or task.target.startswith("https:"),
    )
    # A user of a load sends the fields and the cookies that he is told to, and no others: asked for
    # by httpx itself, answers would be compressed here and not under load.
    for name in ("accept", "accept-encoding"):
        del asking.headers[name]
    asking.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
    return asking


def _wait_over(
    asking: httpx.Client,
    task: Task,
    protocol: Protocol,
    client: Client,
    trusted: ssl.SSLContext | bool,
) -> None:
    """Return when the server can be asked over a protocol.

    Raises:
        Wrong: it cannot in time.
    """
    path, patience = task.health_path, task.wait_seconds
    if path is not None and task.health_target is not None:
        deadline = time.monotonic() + patience
        with _asking(task, client, trusted, Protocol.HTTP1) as apart:
            wait_until_healthy(apart, patience, f"{task.health_target}{path}")
        path, patience = None, max(0.1, round(deadline - time.monotonic(), 1))
        if protocol is Protocol.HTTP1:
            _wait_until_taken(task.target, patience)
    if path is None:
        wait_until_connected(task.target, patience)
        if protocol is Protocol.HTTP2:
            with _asking(task, client, trusted, Protocol.HTTP1) as older:
                if _lacks_http2(asking, older):
                    raise _wrong_protocol(task, "it answers over HTTP/1.1")
    elif protocol is Protocol.HTTP2:
        with _asking(task, client, trusted, Protocol.HTTP1) as older:
            _wait_for_http2(asking, older, task, path)
    else:
        wait_until_healthy(asking, patience, path)


def _wait_for_http2(asking: httpx.Client, older: httpx.Client, task: Task, path: str) -> None:
    """Return when a server is healthy over HTTP/2, which over HTTP/1.1 it may be all the time.

    Raises:
        Wrong: it is not in time, or over HTTP/1.1 alone.
    """
    if task.target.startswith("https:"):
        spoken = wait_until_healthy(asking, task.wait_seconds, path) == "HTTP/2"
    else:
        spoken = _healthy_first(asking, older, task, path)
    if not spoken:
        raise _wrong_protocol(task, f"GET {path} answers 200 over HTTP/1.1")


def _lacks_http2(asking: httpx.Client, older: httpx.Client) -> bool:
    """Whether a server answers over HTTP/1.1 what it does not answer over HTTP/2."""
    try:
        # Its body may be long, and says nothing.
        with asking.stream("GET", "/") as answer:
            return answer.http_version != "HTTP/2"
    except httpx.ConnectError:
        # Such as a certificate that nobody trusts: the first check says so.
        return False
    except httpx.HTTPError:
        # It may answer nothing under this path, or slowly, and all that it is checked for.
        try:
            with older.stream("GET", "/"):
                return True
        except httpx.HTTPError:
            return False


def _wrong_protocol(task: Task, does: str) -> Wrong:
    instead = "speak h2c, with prior knowledge"
    if task.target.startswith("https:"):
        instead = "choose h2 by ALPN"
    return Wrong(
        "WrongProtocol",
        f"{does}, and does not answer over HTTP/2: have the server {instead}, or write "
        "protocol: http1",
    )


def _healthy_first(asking: httpx.Client, older: httpx.Client, task: Task, path: str) -> bool:
    """Return once a server is healthy over either protocol, and whether it is over HTTP/2.

    Raises:
        Wrong: it is over neither in time.
    """
    deadline = time.monotonic() + task.wait_seconds
    while True:
        found = _health(asking, path, deadline)
        if isinstance(found, str):
            return True
        if isinstance(_health(older, path, deadline), str):
            # It may have come up between the two.
            return isinstance(_health(asking, path, deadline), str)
        if time.monotonic() + _POLL_SECONDS >= deadline:
            raise Wrong(found.reason, f"{found.message} (waited {task.wait_seconds:g}s)")
        time.sleep(_POLL_SECONDS)


def wait_until_connected(target: str, wait_seconds: float) -> None:
    """Return when a connection can be made to the host and port of a URL.

    Raises:
        Wrong: none could be made in time.
    """
    url = httpx.URL(target)
    port = url.port or (443 if url.scheme == "https" else 80)
    deadline = time.monotonic() + wait_seconds
    while True:
        patience = min(_HEALTH_SECONDS, max(deadline - time.monotonic(), 0.05))
        try:
            socket.create_connection((url.host, port), patience).close()
            return
        except OSError as error:
            if time.monotonic() + _POLL_SECONDS >= deadline:
                message = f"{target}: {error} (waited {wait_seconds:g}s)"
                raise Wrong("NotReachable", message) from error
        time.sleep(_POLL_SECONDS)


def _wait_until_taken(target: str, wait_seconds: float) -> None:
    """Return when a server itself takes a request, or nobody is going to find out whether it does.

    As in images/k6/internal/readiness/taken.go: HAProxy and a delay take connections for a server
    that is not there. Nothing is asked of one beyond TLS, before which neither stands.

    Raises:
        Wrong: it takes no connections in time, or HAProxy says that nobody is there.
    """
    url = httpx.URL(target)
    deadline = time.monotonic() + wait_seconds
    wait_until_connected(target, wait_seconds)
    while url.scheme == "http" and (missing := _not_taken(url.host, url.port or 80)) is not None:
        if time.monotonic() + _POLL_SECONDS >= deadline:
            if missing is _CLOSED:
                # So does a server that has no use for `/`.
                return
            raise Wrong("NotReachable", f"{target}: {missing} (waited {wait_seconds:g}s)")
        time.sleep(_POLL_SECONDS)


_CLOSED = "GET / got no answer"


def _not_taken(host: str, port: int) -> str | None:
    """Ask once; return why the server itself did not take the request, None where it did."""
    connection = http.client.HTTPConnection(host, port, timeout=_TAKEN_SECONDS)
    try:
        connection.connect()
    except OSError as error:
        # It has served before, or its health port alone does.
        return f"it takes no connection: {error}"
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        if answer.status not in (502, 503):
            return None
        status = f"{answer.status} {answer.reason}"
        page = f"<html><body><h1>{status}</h1>".encode()
        if answer.read(len(page)) != page:
            # The server's own answer may be any.
            return None
        # It has closed the connection, or nobody is there.
        return _CLOSED if answer.status == 502 else f"GET /: HAProxy says {status}"
    except TimeoutError:
        # It has it, and answers later.
        return None
    except OSError:
        return _CLOSED
    except http.client.HTTPException:
        # An answer of another kind, as of a server that speaks HTTP/2 alone.
        return None
    finally:
        connection.close()


def _go_through(
    judge: Judge,
    checks: Sequence[Check],
    show: Callable[[CheckedAnswer], None] | None,
    over: str,
) -> None:
    """Judge the answers to all checks; `over` says by what they were asked, where that matters.

    Raises:
        Wrong: with the first thing that is not right.
    """
    first: Wrong | None = None
    for check in checks:
        wrong: Wrong | None = None
        try:
            judge.judge(check)
        except Wrong as error:
            wrong = error
        if show is not None:
            answer = shown(check, judge, wrong.verdict if wrong else None)
            if over:
                answer = answer.model_copy(update={"request": f"{answer.request} ({over})"})
            show(answer)
        first = first or wrong
        # A server that answers nothing any more would take the time of each check.
        if wrong is not None and (show is None or (judge.asked and not judge.heard)):
            break
    if first is not None:
        raise first


def wait_until_healthy(client: httpx.Client, wait_seconds: float, path: str = "/healthz") -> str:
    """Return when a server is healthy, and the version of HTTP in which it says so.

    Raises:
        Wrong: it is not in time.
    """
    deadline = time.monotonic() + wait_seconds
    seen: Verdict | None = None
    while True:
        found = _health(client, path, deadline)
        if isinstance(found, str):
            return found
        # A status once seen says more than the connection refused after it.
        if seen is None or seen.reason == "NotReachable" or found.reason == "NotReady":
            seen = found
        if time.monotonic() + _POLL_SECONDS >= deadline:
            raise Wrong(seen.reason, f"{seen.message} (waited {wait_seconds:g}s)")
        time.sleep(_POLL_SECONDS)


def _health(client: httpx.Client, path: str, deadline: float) -> Verdict | str:
    """Ask once whether a server is healthy; return the version of HTTP, or what it says instead."""
    patience = min(_HEALTH_SECONDS, max(deadline - time.monotonic(), 0.05))
    try:
        # Its body is nobody's business: one without an end would fill the memory.
        with client.stream("GET", path, timeout=patience) as response:
            if response.status_code == 200:
                return response.http_version
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Verdict(False, "NotReachable", f"GET {path}: {said(error)}")
    return Verdict(False, "NotReady", f"GET {path} answers {response.status_code}, expected 200")
