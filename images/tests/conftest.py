"""A small project with one image, and an engine that only pretends to build."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from imagebuild.engines import Engine

DOCKERFILE = """
FROM scratch
COPY --chmod=0755 images/tiny/run.sh \\
    library/ /opt/
COPY --from=elsewhere /not/here /opt/
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of a repository with the image `tiny` and the server `one`."""
    root = tmp_path / "project"
    for file, text in {
        "VERSION": "1.2.3\n",
        ".dockerignore": "# comment\n**/__pycache__\n**/*.log\n",
        "images/tiny/Dockerfile": DOCKERFILE,
        "images/tiny/run.sh": "#!/bin/sh\n",
        "images/servers/one/Dockerfile": "FROM scratch\n",
        "library/code.py": "x = 1\n",
        "library/deep/more.py": "y = 2\n",
        "library/__pycache__/code.pyc": "compiled",
        "library/build.log": "noise",
        "README.md": "not part of an image\n",
    }.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@dataclass(frozen=True)
class PretendingEngine(Engine):
    """Writes an archive where it is told to save one; fails or dies on request."""

    ran: list[str] = field(default_factory=list)
    outcomes: list[int | type[BaseException]] = field(default_factory=list)

    def run(self, command: list[str], log: IO[str], environment: object = None) -> int:
        """Record the command's verb and pretend."""
        self.ran.append(command[1])
        outcome = self.outcomes.pop(0) if self.outcomes else 0
        if not isinstance(outcome, int):
            raise outcome
        if outcome:
            log.write("429 Too Many Requests\n" if outcome == 75 else "it is broken\n")
            log.flush()
        for argument in command:
            if argument.startswith("--output="):
                Path(argument.removeprefix("--output=")).write_text(f"archive {len(self.ran)}")
        return outcome


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendingEngine:
    """A docker that builds nothing, on a machine without settings of its own."""
    monkeypatch.setattr("build.write_secrets", lambda folder: {})
    return PretendingEngine("docker", tmp_path / "cache")
