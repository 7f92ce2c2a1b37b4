"""However a run ends, nothing that it started goes on, and its clusters are taken down."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROOF = Path(__file__).resolve().parents[1]
RUN = """
import signal
import sys
from pathlib import Path
import prove
from laptime_proof import catalogue, turn
from laptime_proof.parts import Part
# As in a terminal, also where the tests run under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
prove.ROOT = turn.MACHINE = Path.cwd()
prove.CACHE = prove.ROOT / "cache"
up = Part("up", check=False)
slow = Part("slow", needs=("up",))
catalogue.TEST = (up, slow, Part("down", needs=("up",), after=("slow",), always=True, check=False))
print("begins", flush=True)
sys.exit(prove.main(["test"]))
"""
MAKEFILE = """
.ONESHELL:
up:
slow:
\t@trap 'sleep 0.1' EXIT
\tsleep 600 & echo $$! >other
\techo $$$$ >slow
\tsleep 600
down:
\t@touch tidied
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a terminal of its own, whose slow part has begun."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROOF), "MAKEFLAGS": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert until(lambda: (tmp_path / "slow").exists() and (tmp_path / "slow").read_text())
    yield process
    process.kill()
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]


def until(happens: Callable[[], object], seconds: float = 30.0) -> bool:
    """Wait until something is so; returns whether it came to be."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.05)
    return False


def over(file: Path) -> bool:
    """Return whether the process whose id is in a file is dead, or nobody but its parent has it."""
    try:
        status = Path(f"/proc/{file.read_text().strip()}/stat").read_text()
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_who_closes_the_terminal_ends_it_as_who_interrupts_it(
    run: subprocess.Popen[str], tmp_path: Path, number: int
) -> None:
    assert run.stdout
    # Nobody reads any more what is said.
    run.stdout.close()
    run.send_signal(number)
    assert run.wait(30) == 1
    assert over(tmp_path / "slow")
    assert over(tmp_path / "other")
    assert (tmp_path / "tidied").exists()


def test_what_a_killed_run_had_started_does_not_go_on(
    run: subprocess.Popen[str], tmp_path: Path
) -> None:
    run.kill()
    assert until(lambda: over(tmp_path / "slow") and over(tmp_path / "other"))


def test_a_run_ends_with_the_make_that_began_it(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"all:\n\t@{sys.executable} run.py\n")
    main = PROOF.joinpath("prove.py").read_text().partition('if __name__ == "__main__":')[2]
    began = "def main(_):\n    Path('child').write_text(f'{os.getpid()}\\n')\n    signal.pause()\n"
    (tmp_path / "run.py").write_text(f"from prove import *\nimport signal\n{began}if True:{main}")
    environment = {**os.environ, "PYTHONPATH": str(PROOF), "MAKEFLAGS": ""}
    with subprocess.Popen(["make"], cwd=tmp_path, env=environment) as make:
        assert until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
        make.kill()
    assert until(lambda: over(tmp_path / "child"))
