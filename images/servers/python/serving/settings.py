"""What the environment says (the contract of docs/servers.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Settings:
    """One field per environment variable of the same name in capitals.

    A plain dataclass, because no server should carry a library that only its settings need.
    """

    port: int = 8080
    workers: int = 1
    threads: int = 1
    access_log: bool = False
    database_url: str | None = None
    database_connections: int = 5
    database_prepared_statements: bool = True
    upstream_url: str | None = None
    profile_port: int | None = None
    pod_ip: str = ""

    @property
    def host(self) -> str:
        """All addresses of the pod, of the family that it has."""
        return "::" if ":" in self.pod_ip else "0.0.0.0"

    @property
    def sqlite_file(self) -> Path | None:
        """The file of `sqlite:///folder/file.db`, absolute; None when the URL is another one."""
        if self.database_url is None:
            return None
        url = urlsplit(self.database_url)
        return Path(unquote(url.path)) if url.scheme == "sqlite" else None

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables; raises ValueError that names one with a value it cannot have."""
        return cls(
            port=_whole_number(variables, "PORT", 8080),
            workers=_whole_number(variables, "WORKERS", 1),
            threads=_whole_number(variables, "THREADS", 1),
            access_log=_truth(variables, "ACCESS_LOG", False),
            database_url=variables.get("DATABASE_URL") or None,
            database_connections=_whole_number(variables, "DATABASE_CONNECTIONS", 5),
            database_prepared_statements=_truth(variables, "DATABASE_PREPARED_STATEMENTS", True),
            upstream_url=variables.get("UPSTREAM_URL") or None,
            profile_port=(
                _whole_number(variables, "PROFILE_PORT", 1)
                if variables.get("PROFILE_PORT")
                else None
            ),
            pod_ip=variables.get("POD_IP") or "",
        )


def _whole_number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {text!r}")
    return int(text)


def _truth(variables: Mapping[str, str], name: str, default: bool) -> bool:
    text = (variables.get(name) or str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} must be true or false, not {text!r}")
    return text == "true"
