"""Makes the package beside this folder importable, and keeps tests out of the machine's turn."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from laptime_proof import turn


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of the test's own: whoever runs it has the turn of this one."""
    monkeypatch.setattr(turn, "MACHINE", tmp_path)
    return tmp_path
