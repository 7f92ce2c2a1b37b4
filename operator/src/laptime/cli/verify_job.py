"""`laptime verify` in a Job of a run: whatever loads it, the same is done.

The image of the operator begins here, without the other commands: they take longer to load than
many a check.
"""

from __future__ import annotations

from pathlib import Path

from laptime.verification import verify


def main() -> int:
    """Check what the environment says, and return the exit code (`verification.verify.main`)."""
    return verify.main(reset=bring_back)


def bring_back(file: Path) -> None:
    """Run the statements of a file on the database of the run.

    Raises:
        Wrong: that cannot be done.
    """
    # Loaded only where there is something to bring back.
    from laptime.measure.prepare import prepare_database
    from laptime.verification.verdict import Wrong

    if problem := prepare_database(file):
        raise Wrong(problem.reason, problem.message)
