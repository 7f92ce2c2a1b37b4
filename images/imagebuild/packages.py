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
    # Nothing of somebody's is removed for them: apt-get says what stands in the way.
    install = ["install", "--yes", "--no-install-recommends", "--no-remove", *packages]
    for arguments in (["update"], install):
        subprocess.run(
            ["apt-get", "--quiet=2", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
