"""Packages of Debian that a build needs and that are installed when they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess


def install(*packages: str) -> None:
    """Install packages where this is a Debian run by root; whoever needs them looks for them."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"installing {' '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", "--quiet=2", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
