"""Run other programs, and turn their failures into messages a person can act on."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class ClusterError(Exception):
    """Something that keeps the cluster from working; the message says what to do about it."""


def run(
    argv: Sequence[str | Path],
    *,
    check: bool = True,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_seconds: float | None = None,
) -> str:
    """Run a program to its end and return its standard output.

    Raises ClusterError with the program's own words when it fails (unless `check` is false),
    does not exist, or takes longer than `timeout_seconds`.
    """
    words = [str(word) for word in argv]
    try:
        result = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environment) if environment is not None else None,
            cwd=cwd,
            timeout=timeout_seconds,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"the program {words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(words)} took longer than {timeout_seconds} s") from error
    if check and result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip())[-2000:]
        raise ClusterError(f"{' '.join(words)} failed with code {result.returncode}: {said}")
    return result.stdout
