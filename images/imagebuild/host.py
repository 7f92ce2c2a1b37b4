"""Settings of this machine that a build needs and an image must not contain.

Each becomes a build secret, a file that one RUN instruction can mount and no layer keeps. The
Dockerfiles mount them with `--mount=type=secret`, which is silently empty-handed when a machine
has no such setting. Proxies (http_proxy ...) need nothing: the engines pass them on themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

# Where Debian's and Fedora's families keep certificates that an administrator has added.
CERTIFICATE_FOLDERS = (
    Path("/usr/local/share/ca-certificates"),
    Path("/etc/pki/ca-trust/source/anchors"),
)
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy")
CARGO_TABLES = ("source", "registry", "registries", "http", "net")
GO_KEYS = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE")


def write_secrets(folder: Path) -> dict[str, Path]:
    """Write the settings that exist to files below `folder`; returns the files by secret id.

    The ids: `ca` (PEM certificates), `pip` (pip.conf), `cargo` (config.toml), `go` (go/env).
    """
    contents = {
        "ca": _certificates(),
        "pip": _pip(),
        "cargo": _cargo(),
        "go": _go(),
    }
    secrets = {}
    for name, content in contents.items():
        if content:
            secrets[name] = folder / name
            secrets[name].touch(mode=0o600)
            secrets[name].write_text(content, encoding="utf-8")
    return secrets


def _certificates() -> str:
    files = [
        file
        for folder in CERTIFICATE_FOLDERS
        if folder.is_dir()
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".crt", ".pem") and file.is_file()
    ]
    return "".join(file.read_text(encoding="utf-8").strip() + "\n" for file in files)


def _pip() -> str:
    """The index settings of pip, wherever they come from (files or environment)."""
    values: dict[str, str] = {}
    for line in _output(["python3", "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in PIP_KEYS:
            values[key] = value.strip("'\"").replace("\\n", " ")
    lines = [f"{key} = {value}\n" for key, value in sorted(values.items())]
    return "[global]\n" + "".join(lines) if lines else ""


def _cargo() -> str:
    """The tables of cargo's configuration that say where crates come from."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for file in (home / "config.toml", home / "config"):
        if file.is_file():
            settings = tomllib.loads(file.read_text(encoding="utf-8"))
            tables = {key: settings[key] for key in CARGO_TABLES if key in settings}
            return "\n".join(_toml_lines((), tables))
    return ""


def _toml_lines(path: tuple[str, ...], table: dict[str, object]) -> list[str]:
    """TOML for nested tables of strings, numbers and booleans."""
    lines = []
    plain = {key: value for key, value in table.items() if isinstance(value, (str, bool, int))}
    if plain and path:
        lines.append("[" + ".".join(_toml_string(part) for part in path) + "]")
    for key, setting in plain.items():
        text = _toml_string(setting) if isinstance(setting, str) else str(setting).lower()
        lines.append(f"{_toml_string(key)} = {text}")
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _toml_lines((*path, key), value)
    return lines


def _toml_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _go() -> str:
    """The settings of Go modules on this machine."""
    if shutil.which("go") is None:
        return ""
    values = [_output(["go", "env", key]).strip() for key in GO_KEYS]
    return "".join(f"{key}={value}\n" for key, value in zip(GO_KEYS, values, strict=True) if value)


def _output(command: list[str]) -> str:
    """What a command prints, or nothing when it fails or does not exist."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
