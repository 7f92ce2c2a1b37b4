"""Settings of the machine reach the build as secrets."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from imagebuild import host


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any setting; its (empty) folder of certificates is returned."""
    monkeypatch.setattr(host, "CERTIFICATE_FOLDERS", (tmp_path / "certificates",))
    monkeypatch.setattr(host, "_output", lambda command: "")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    (tmp_path / "certificates").mkdir()
    (tmp_path / "cargo").mkdir()
    (tmp_path / "secrets").mkdir()
    return tmp_path


def test_no_settings_are_no_secrets(bare: Path) -> None:
    assert host.write_secrets(bare / "secrets") == {}


def test_certificates_are_joined(bare: Path) -> None:
    (bare / "certificates" / "a.crt").write_text("one\n\n")
    (bare / "certificates" / "b.crt").write_text("two")
    secrets = host.write_secrets(bare / "secrets")
    assert secrets["ca"].read_text() == "one\ntwo\n"
    assert secrets["ca"].stat().st_mode & 0o077 == 0


def test_pip_keeps_the_index_and_leaves_local_paths(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = "global.index-url='https://mirror.example/simple'\n:env:.find-links='/opt/wheels'\n"
    monkeypatch.setattr(host, "_output", lambda command: listing if "pip" in command else "")
    text = host.write_secrets(bare / "secrets")["pip"].read_text()
    assert text == "[global]\nindex-url = https://mirror.example/simple\n"


def test_cargo_keeps_the_sources_and_leaves_the_build_settings(bare: Path) -> None:
    (bare / "cargo" / "config.toml").write_text(
        '[build]\nrustc-wrapper = "sccache"\n'
        '[source.crates-io]\nreplace-with = "mirror"\n'
        '[source.mirror]\nregistry = "sparse+https://mirror.example/"\n[net]\nretry = 5\n'
    )
    text = host.write_secrets(bare / "secrets")["cargo"].read_text()
    assert tomllib.loads(text) == {
        "source": {
            "crates-io": {"replace-with": "mirror"},
            "mirror": {"registry": "sparse+https://mirror.example/"},
        },
        "net": {"retry": 5},
    }


def test_go_keeps_the_settings_of_the_machine(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"GOPROXY": "https://mirror.example", "GOSUMDB": "sum.golang.org"}
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/go")
    monkeypatch.setattr(host, "_output", lambda command: values.get(command[-1], ""))
    assert host.write_secrets(bare / "secrets")["go"].read_text() == (
        "GOPROXY=https://mirror.example\nGOSUMDB=sum.golang.org\n"
    )
