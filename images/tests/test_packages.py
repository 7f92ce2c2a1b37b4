"""What a build installs takes nothing of somebody's away."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from imagebuild.packages import install


def test_nothing_is_removed_for_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command))
    install("buildah", "mmdebstrap")
    assert [command[2] for command in asked] == ["update", "install"]
    assert "--no-remove" in asked[1]
    assert asked[1][-2:] == ["buildah", "mmdebstrap"]
