"""What leads out of a run is found in a script's sources, and nothing else is taken for it."""

from __future__ import annotations

import base64
import io
import json
import resource
import tarfile
import time
from typing import Any

import pytest

from laptime.api.egress import Destination
from laptime.api.script_load import ScriptLoad
from laptime.plan import may_reach, script_leads
from laptime.plan.script_sources import MOST_CHARACTERS, MOST_LEADS
from tests.slow import within

JSLIB = "https://jslib.k6.io/k6-utils/1.4.0/index.js"


def said(source: str, beside: dict[str, str] | None = None, **script: Any) -> list[str]:
    load = ScriptLoad.model_validate({"configMap": "mine", **script})
    config_map = {"data": {"script.js": source, **(beside or {})}}
    leads = script_leads(load, [config_map], ["run-"])
    return [str(one) for one in (*leads.imports, *leads.names)]


@pytest.mark.parametrize(
    "statement",
    [
        f"import {{ randomItem }} from '{JSLIB}';",
        f'import{{randomItem}}from"{JSLIB}"',
        f"import '{JSLIB}';",
        f"export * from '{JSLIB}';",
        f"import {{\n  uuid,\n}} from\n  '{JSLIB}';",
    ],
)
def test_a_module_from_elsewhere_is_named_with_its_line(statement: str) -> None:
    line = 2 + statement.count("\n")
    assert said(f"import http from 'k6/http';\n{statement}\n") == [
        f"script.js:{line} imports {JSLIB}"
    ]


def test_short_forms_that_k6_had_are_modules_from_elsewhere() -> None:
    assert said("import x from 'github.com/some/where.js';") == [
        "script.js:1 imports github.com/some/where.js"
    ]


def test_what_is_no_code_imports_nothing() -> None:
    assert (
        said(
            f"// import x from '{JSLIB}';\n"
            f"/* import x from '{JSLIB}'; it's */\n"
            f"import type {{ Options }} from '{JSLIB}';\n"
            "const quote = text.replace(/['\"`]/g, '');  // as in https://example.org/doc\n"
            f"const told = `\n// import x from '{JSLIB}'`;\n"
            "import http from 'k6/http';\nimport one from './one.js';\n"
        )
        == []
    )


def test_what_a_script_may_load_or_ask_is_named_and_imported_by_nobody() -> None:
    found = said(
        f"const x = __ENV.LOCAL ? require('./x.js') : require('{JSLIB}');\n"
        "http.get('http://other.example:8080/list?x=1');\n"
        "http.get(`https://user:word@secured.example/${id}`);\n"
        "ws.connect('wss://chat.example/talk', {}, talk);\n"
        "client.connect('grpc.example:50051', { plaintext: true });\n"
        "const ADDRESS = __ENV.ADDRESS || '127.0.0.1:10000'; const at = '10:30';\n"
        "http.get('http://other.example:8080/again');\n"
    )
    assert found == [
        "script.js:1 names https://jslib.k6.io",
        "script.js:2 names http://other.example:8080",
        "script.js:3 names https://secured.example",
        "script.js:4 names wss://chat.example",
        "script.js:5 names grpc.example:50051",
        "script.js:6 names 127.0.0.1:10000",
    ]


def test_many_hosts_hide_no_module() -> None:
    named = "".join(f"get('http://h{number}.example');\n" for number in range(100))
    found = said(f"{named}import '{JSLIB}';")
    assert found[0] == f"script.js:101 imports {JSLIB}"
    assert len(found) == 1 + MOST_LEADS


def test_what_the_run_says_is_no_stranger() -> None:
    source = (
        "const BASE_URL = __ENV.BASE_URL || 'https://test-api.k6.io';\n"
        "http.get(`${__ENV.TARGET}/`); http.get(`http://${__ENV.HOST}/`);\n"
        "http.get('http://run-server-axum:8080/'); http.get('http://other.example/');"
    )
    env = [
        {"name": "BASE_URL", "value": "$(TARGET)"},
        {"name": "OTHER", "value": "http://other.example"},
    ]
    assert said(source, env=env) == []
    assert said(source) == [
        "script.js:1 names https://test-api.k6.io",
        "script.js:3 names http://other.example",
    ]


def test_only_what_k6_would_load_is_read() -> None:
    beside = {
        "one.js": "export * from '/scripts/two.ts';",
        "two.ts": f"import {{ x }} from '{JSLIB}';",
        "unused.js": "import x from 'https://nobody.example/x.js';",
        "data.json": '["https://nobody.example"]',
    }
    source = "import one from './one.js';\nconst data = open('./data.json');"
    assert said(source, beside) == [f"two.ts:1 imports {JSLIB}"]


def archived(**members: str) -> dict[str, Any]:
    content = io.BytesIO()
    # As Go's archive/tar writes long names.
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        # k6 writes the script once more under its own name.
        member = tarfile.TarInfo("file/home/me/load.js")
        member.type, member.linkname = tarfile.LNKTYPE, "data"
        archive.addfile(member)
    return {"binaryData": {"script.tar": base64.b64encode(content.getvalue()).decode()}}


def test_an_archive_of_k6_has_the_modules_that_it_imports() -> None:
    config_map = archived(
        **{
            "metadata.json": json.dumps({"filename": "file:///home/me/load.js"}),
            "data": f"import x from '{JSLIB}';\nhttp.get('http://other.example/');",
            "file__home__me__lib.js": "export const u = 'https://lib.example';",
            "file__home__me__urls.csv": "'http://data.example'",
        }
    )
    load = ScriptLoad.model_validate({"configMap": "mine", "key": "script.tar"})
    leads = script_leads(load, [config_map])
    assert leads.imports == ()
    assert [str(one) for one in leads.names] == [
        "load.js:2 names http://other.example",
        "lib.js:1 names https://lib.example",
    ]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_module_with_a_long_name_is_read_from_an_archive(form: int) -> None:
    content = io.BytesIO()
    long = f"file/home/{'very/' * 20}{'long' * 20}.js"
    texts = {"metadata.json": "{}", "file/home": "", long: "get('http://lib.example');"}
    with tarfile.open(fileobj=content, mode="w", format=form) as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.REGTYPE if text else tarfile.DIRTYPE
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    assert hosts_of(content.getvalue()) == ["lib.example"]


def header(name: str, size: int = 0, kind: bytes = b"0", linked: str = "") -> bytes:
    """Return a header of a tar; a size may be one that `tarfile` does not write."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, linked
    block = bytearray(made.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = (size % 2**96 | 2**95).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def hosts_of(content: bytes, memory: int | None = None) -> list[str]:
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    load = ScriptLoad.model_validate({"configMap": "mine", "key": "script.tar"})
    binary = {"script.tar": base64.b64encode(content).decode()}
    leads = script_leads(load, [{"binaryData": binary}])
    return [one.host for one in (*leads.imports, *leads.names)]


HOLE = b"22 GNU.sparse.map=0,0\n30 GNU.sparse.size=8589934592\n"
DEEP = b"[" * 400_000


@pytest.mark.parametrize(
    "about",
    [
        header("hole", len(HOLE), b"x") + padded(HOLE) + header("metadata.json"),
        header("metadata.json") + header("x", -512),
        header("metadata.json", 2**80),
        header("metadata.json", len(DEEP)) + padded(DEEP),
        header("metadata.json", kind=b"2", linked="metadata.json"),
        header("metadata.json", kind=b"1", linked="metadata.json"),
        b"".join(header("x", kind=b"x") for _ in range(1500)) + header("metadata.json"),
    ],
    ids=["hole", "less than nothing", "huge", "deep", "loop", "hard loop", "many headers"],
)
def test_an_archive_that_no_k6_wrote_is_read_as_text_in_bounded_time_and_memory(
    about: bytes,
) -> None:
    source = b"import x from 'https://a.example/x.js';\n"
    content = about + header("data", len(source)) + padded(source) + bytes(1024)
    assert within(60, hosts_of, content, memory=512 * 2**20) == ["a.example"]


def test_what_is_no_archive_is_read_as_text() -> None:
    content = base64.b64encode(b"import x from 'https://a.example/x.js'; \xff").decode()
    load = ScriptLoad.model_validate({"configMap": "mine", "key": "script.tar"})
    leads = script_leads(load, [{"binaryData": {"script.tar": content}}])
    assert [one.host for one in leads.imports] == ["a.example"]


@pytest.mark.parametrize(
    "piece",
    ["/*", "'\\", '"', "`\\", "(/[", "import from ", "a/b ", "'https://a.example' ", "\n(/x", "= "],
)
def test_no_text_makes_reading_slow(piece: str) -> None:
    source = piece * (MOST_CHARACTERS // len(piece) + 1)
    load = ScriptLoad.model_validate({"configMap": "mine"})
    began = time.process_time()
    leads = script_leads(load, [{"data": {"script.js": source}}])
    assert time.process_time() - began < 5
    assert not leads.whole


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("203.0.113.7:8080", True),
        ("203.0.113.7", True),
        ("203.0.114.7", False),
        ("shop.payments.svc.cluster.local:80", True),
        ("shop.payments", True),
        ("shop.other.svc", False),
        ("payments.example.org", False),
        ("shop", False),
        ("[::1]:80", False),
    ],
)
def test_the_run_names_the_way_to_a_host(host: str, reached: bool) -> None:
    egress = [Destination(cidr="203.0.113.0/24"), Destination(namespace="payments")]
    assert may_reach(host, egress) is reached
