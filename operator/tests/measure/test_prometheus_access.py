"""A Prometheus with authentication and a CA of its own: real TLS, real files, and what is said."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from laptime.measure.prometheus_access import Authentication, PrometheusAccess
from laptime.measure.prometheus_http import PrometheusClient
from laptime.measure.promql import PrometheusError
from laptime.reconcile.settings import SettingsError, load_settings
from tests.private_ca import Authority, as_in_python_3_13
from tests.serving import served

SECRET = "s3cr3t-t0ken"
ANSWER = {"status": "success", "data": {"resultType": "matrix", "result": []}}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "ours")


class Prometheus(ThreadingHTTPServer):
    """Answers over TLS whoever sends what it expects."""

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # The handshake is for the connection's own thread.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self.expected: str | None = f"Bearer {SECRET}"
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, json.dumps(ANSWER).encode())
        self.refusal: tuple[int, bytes] = (401, b"Unauthorized")
        self.asked: list[dict[str, str]] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not trust the certificate ends the handshake."""


class Handler(BaseHTTPRequestHandler):
    server: Prometheus

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append({name.lower(): value for name, value in self.headers.items()})
        status, headers, body = self.server.answer
        if self.headers["authorization"] != self.server.expected:
            status, headers, body = self.server.refusal[0], {}, self.server.refusal[1]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


@contextmanager
def running(certificate: Path) -> Iterator[tuple[Prometheus, str]]:
    """Yield a Prometheus with that certificate, and its address."""
    prometheus = Prometheus(certificate)
    with served(prometheus) as port:
        yield prometheus, f"https://localhost:{port}"


@pytest.fixture
def prometheus(authority: Authority) -> Iterator[tuple[Prometheus, str]]:
    with running(authority.server("localhost")) as found:
        yield found


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Path:
    """What the chart mounts."""
    (tmp_path / "token").write_text(f"{SECRET}\n")
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    return tmp_path


def access(url: str, files: Path, kind: str = "bearer", **more: Any) -> PrometheusAccess:
    secret = "prometheus-client" if kind in ("basic", "bearer") else ""
    said = {
        "auth": {"type": kind, "existingSecret": secret, "audience": ""},
        "tls": {"configMap": "prometheus-ca", "secret": "", "key": "ca.crt"},
        **more,
    }
    return PrometheusAccess.from_wire(url, said, files)


async def ask(asked: PrometheusAccess) -> object:
    async with aclosing(PrometheusClient(asked)) as client:
        return await client.query("/api/v1/query", {"query": "up"})


async def why_not(asked: PrometheusAccess) -> str:
    with pytest.raises(PrometheusError) as refused:
        await ask(asked)
    return str(refused.value)


async def test_the_token_is_sent_and_one_that_is_replaced_is_used_at_once(
    prometheus: tuple[Prometheus, str], files: Path
) -> None:
    server, url = prometheus
    async with aclosing(PrometheusClient(access(url, files))) as client:
        assert await client.query("/", {}) == ANSWER
        server.expected = "Bearer another"
        with pytest.raises(PrometheusError) as refused:
            await client.query("/", {})
        assert str(refused.value) == (
            f"{url} answers 401: it does not take the token in Secret prometheus-client: put what "
            'is valid there; it is used within two minutes; it says "Unauthorized"'
        )
        (files / "token").write_text("another")
        assert await client.query("/", {}) == ANSWER


async def test_username_and_password_are_sent_as_basic_authentication(
    prometheus: tuple[Prometheus, str], files: Path
) -> None:
    server, url = prometheus
    server.expected = "Basic " + base64.b64encode(b"laptime:p:ss w\xc3\xb6rd").decode()
    (files / "username").write_text("laptime")
    (files / "password").write_text("p:ss wörd\n")
    assert await ask(access(url, files, "basic")) == ANSWER
    (files / "password").write_text("old")
    said = await why_not(access(url, files, "basic"))
    assert "it does not take the username and password in Secret prometheus-client" in said
    (files / "username").write_text("lap:time")
    assert "username in Secret prometheus-client has a colon" in await why_not(
        access(url, files, "basic")
    )


async def test_headers_of_tenants_are_sent_beside_it(
    prometheus: tuple[Prometheus, str], files: Path
) -> None:
    server, url = prometheus
    await ask(access(url, files, headers={"X-Scope-OrgID": "bench"}))
    assert server.asked[0]["x-scope-orgid"] == "bench"
    assert server.asked[0]["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        ("", 401, "asks for credentials or for the header of a tenant: write prometheus.auth"),
        ("", 403, "write prometheus.auth or prometheus.headers"),
        ("bearer", 403, "who has the token in Secret prometheus-client may not ask it"),
        ("serviceAccount", 401, "write the audience that it expects in prometheus.auth.audience"),
        ("serviceAccount", 403, "on OpenShift cluster-monitoring-view"),
    ],
)
async def test_a_refusal_says_what_to_write(
    prometheus: tuple[Prometheus, str], files: Path, kind: str, status: int, says: str
) -> None:
    server, url = prometheus
    server.expected, server.refusal = "nobody", (status, b"no org id")
    said = await why_not(access(url, files, kind))
    assert said.startswith(f"{url} answers {status}: ")
    assert says in said
    assert said.endswith('; it says "no org id"')
    # A page of a proxy says nothing, and JSON of a proxy is no answer of Prometheus.
    server.refusal = (status, b"<html>Log in</html>")
    assert "it says" not in await why_not(access(url, files, kind))
    server.refusal = (status, json.dumps({"status": "error", "error": "no"}).encode())
    assert says in await why_not(access(url, files, kind))


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (None, "the key token of Secret prometheus-client is not there"),
        ("", "the key token of Secret prometheus-client is empty"),
        (" \n", "is empty"),
        ("two\nlines", "has spaces, line breaks or characters beyond ASCII"),
        ("Bearer twice", "write the token and nothing else"),
        ("tökén", "characters beyond ASCII"),
    ],
)
async def test_a_token_that_cannot_be_sent_is_not(
    prometheus: tuple[Prometheus, str], files: Path, token: str | None, says: str
) -> None:
    server, url = prometheus
    (files / "token").unlink()
    if token is not None:
        (files / "token").write_text(token)
    said = await why_not(access(url, files))
    assert said.startswith(f"{url} cannot be asked: ")
    assert says in said
    assert not (token or "").strip() or str(token) not in said
    assert server.asked == []


@pytest.mark.parametrize("status", [200, 400, 401, 500])
async def test_a_server_that_repeats_the_credentials_has_nobody_told_them(
    prometheus: tuple[Prometheus, str], files: Path, status: int
) -> None:
    server, url = prometheus
    server.expected = "Basic " + base64.b64encode(b"laptime:swordfish").decode()
    (files / "username").write_text("laptime")
    (files / "password").write_text("swordfish")
    repeated = f"wrong header Authorization: {server.expected} of laptime/swordfish"
    document = {"status": "error", "errorType": "bad_data", "error": repeated}
    for body in (json.dumps(document).encode(), repeated.encode()):
        server.answer = (status, {}, body)
        try:
            said = str(await ask(access(url, files, "basic")))
        except PrometheusError as error:
            said = str(error)
        assert "(credentials)" in said
        assert "swordfish" not in said
        assert server.expected.split()[1] not in said


async def test_a_ca_that_is_not_known_is_named_and_nothing_was_sent(
    prometheus: tuple[Prometheus, str], files: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server, url = prometheus
    other = Authority(tmp_path_factory.mktemp("other"), "theirs")
    (files / "ca.crt").write_bytes(other.certificate.read_bytes())
    said = await why_not(access(url, files))
    assert "is of no CA in key ca.crt of ConfigMap prometheus-ca" in said
    assert "put the certificate of its CA there" in said
    nobodys = await why_not(access(url, files, tls={}))
    assert "its certificate is of a CA that is not known" in nobodys
    assert "name the CA's own in prometheus.tls" in nobodys
    assert server.asked == []


async def test_a_ca_that_is_replaced_is_trusted_at_once_and_the_old_one_no_longer(
    prometheus: tuple[Prometheus, str],
    files: Path,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    _, url = prometheus
    other = Authority(tmp_path_factory.mktemp("other"), "theirs")
    async with aclosing(PrometheusClient(access(url, files))) as client:
        assert await client.query("/", {}) == ANSWER
        (files / "ca.crt").write_bytes(other.certificate.read_bytes())
        with pytest.raises(PrometheusError, match="is of no CA in"):
            await client.query("/", {})
        both = other.certificate.read_bytes() + authority.certificate.read_bytes()
        (files / "ca.crt").write_bytes(both)
        assert await client.query("/", {}) == ANSWER


async def test_a_certificate_for_another_name_is_refused_with_both_names(
    authority: Authority, files: Path
) -> None:
    with running(authority.server("prometheus.example")) as (server, url):
        said = await why_not(access(url, files))
    assert "certificate is not valid for 'localhost'" in said
    assert "write a host name in prometheus.url that its certificate has" in said
    assert server.asked == []


async def test_a_certificate_that_has_expired_is_called_so(
    authority: Authority, files: Path
) -> None:
    with running(authority.server("localhost", days=0)) as (_, url):
        assert "certificate is not valid (certificate has expired)" in await why_not(
            access(url, files)
        )


async def test_a_private_ca_need_not_have_what_python_3_13_asks_for(
    prometheus: tuple[Prometheus, str], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_in_python_3_13(monkeypatch)
    assert await ask(access(prometheus[1], files)) == ANSWER


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "key service-ca.crt of ConfigMap prometheus-ca, which prometheus.tls names, is not"),
        ("", "has no certificates in PEM"),
        ("no certificate", "has no certificates in PEM"),
    ],
)
async def test_certificates_that_cannot_be_read(files: Path, text: str | None, says: str) -> None:
    (files / "ca.crt").unlink()
    if text is not None:
        (files / "ca.crt").write_text(text)
    tls = {"configMap": "prometheus-ca", "key": "service-ca.crt"}
    assert says in await why_not(access("https://localhost:1", files, tls=tls))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_another_address_gets_no_credentials(
    authority: Authority, prometheus: tuple[Prometheus, str], files: Path, status: int
) -> None:
    server, url = prometheus
    with running(authority.server("localhost")) as (other, elsewhere):
        location = elsewhere.replace("//", f"//laptime:{SECRET}@") + f"/login?token={SECRET}"
        server.answer = (status, {"location": location}, b"")
        said = await why_not(access(url, files))
    assert other.asked == []
    assert said == (
        f"{url} sends on to {elsewhere}, which is not followed: write the address that answers "
        "itself in prometheus.url"
    )


CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("https://user:hunter2@prometheus.example", {}, "has credentials in it"),
    ("https://hunter2@prometheus.example", {}, "has credentials in it"),
    ("https://prometheus.example/?token=hunter2", {}, "has a [?] or a #"),
    ("https:user:hunter2@prometheus.example", {}, "is no address"),
    ("prometheus.example:hunter2", {}, "is no address"),
    ("https://prometheus.example:hunter2", {}, "is no address"),
    (
        "http://prometheus.example",
        {"auth": {"type": "bearer", "existingSecret": "s"}},
        "begins with http://, by which everybody on the way can read the credentials",
    ),
    ("http://prometheus.example", {"tls": {"configMap": "ca"}}, "tls is for an https:// address"),
    ("https://prometheus.example", {"auth": {"type": "basic"}}, "need an existingSecret"),
    ("https://prometheus.example", {"auth": {"existingSecret": "s"}}, "nothing else has one"),
    ("https://prometheus.example", {"auth": {"type": "hunter2"}}, "none of basic, bearer, service"),
    ("https://prometheus.example", {"tls": {"configMap": "a", "secret": "b"}}, "not both"),
    ("https://prometheus.example", {"headers": {"Authorization": "hunter2"}}, "'Authorization'"),
    ("https://prometheus.example", {"headers": {"X y": "hunter2"}}, "'X y' cannot be written"),
    ("https://prometheus.example", {"headers": {"X": "hunter2\r\nY: 1"}}, "one line of plain"),
    ("https://prometheus.example", {"token": "hunter2"}, "unknown fields: token"),
    ("https://prometheus.example", {"auth": ["hunter2"]}, "LAPTIME_PROMETHEUS_ACCESS"),
]


@pytest.mark.parametrize(("url", "said", "says"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused_at_start_and_not_repeated(
    url: str, said: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _environment(monkeypatch, tmp_path, url, json.dumps(said))
    with pytest.raises(SettingsError, match=says) as refused:
        load_settings()
    assert "LAPTIME_PROMETHEUS_URL" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_the_settings_are_what_the_chart_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _environment(monkeypatch, tmp_path, "http://prometheus.example:9090/", "")
    assert load_settings().prometheus == PrometheusAccess("http://prometheus.example:9090/")
    said = {
        "auth": {"type": "serviceAccount", "existingSecret": "", "audience": "thanos"},
        "tls": {"configMap": "", "secret": "ca", "key": "tls.crt"},
        "headers": {"X-Scope-OrgID": "bench"},
        "matchers": {"cluster": "east"},
    }
    _environment(monkeypatch, tmp_path, "https://prometheus.example", json.dumps(said))
    assert load_settings().prometheus == PrometheusAccess(
        "https://prometheus.example",
        Authentication.SERVICE_ACCOUNT,
        authorities="key tls.crt of Secret ca",
        headers={"X-Scope-OrgID": "bench"},
        matchers={"cluster": "east"},
    )
    _environment(monkeypatch, tmp_path, "", "")
    assert load_settings().prometheus is None


def test_no_identity_shows_what_it_is_made_of(files: Path) -> None:
    identity = access("https://prometheus.example", files).identity()
    assert identity.headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(identity)


def _environment(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str, said: str) -> None:
    images = ("operator", "postgres", "pgbouncer", "haproxy", "generator")
    document = {**dict.fromkeys(images, "image"), "servers": {"axum": "image"}}
    (folder / "images.json").write_text(json.dumps(document))
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(folder / "images.json"))
    monkeypatch.setenv("LAPTIME_PROMETHEUS_URL", url)
    monkeypatch.setenv("LAPTIME_PROMETHEUS_ACCESS", said)
