"""A run as the command line sees it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from laptime.api import GROUP
from laptime.api.experiment import ABOUT_ANNOTATION, EXPLAINS_LABEL
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus, State
from laptime.cli.mistakes import NewerVersion

CHECKS_ANNOTATION = f"{GROUP}/checks-run"
_STATES = frozenset(State)


@dataclass(frozen=True)
class Run:
    """A BenchmarkRun as the cluster has it."""

    name: str
    namespace: str
    uid: str
    deleting: bool
    spec: BenchmarkRunSpec | None
    """None when a newer version wrote it and this one cannot read it."""
    status: RunStatus
    created: str = ""
    """When it was applied, RFC 3339."""
    explains: str | None = None
    """Of an experiment: the uid of the run that it is about."""
    checks: str | None = None
    """Of one that `verify` made: the name of the run whose servers it checks."""
    about: str | None = None
    """Of an experiment: `run/server`, the names of both; None: an earlier version made it."""

    @property
    def over(self) -> bool:
        """Whether the run has ended, and nobody waits for it to measure again."""
        return self._ended and not self.asks_again

    @property
    def asks_again(self) -> bool:
        """Whether it has ended, and the operator has not seen yet that its trials are retried."""
        if not self._ended or self.spec is None or self.spec.cancel:
            return False
        return self.spec.retry > (self.status.retries or 0)

    @property
    def _ended(self) -> bool:
        return self.status.state is not None and self.status.state.terminal


class UnreadStatus(NewerVersion):
    """The status of a run has something in it that this version does not know."""

    def __init__(self, run: Run) -> None:
        """Take the run, with nothing in its status but a state that is known, if it is."""
        super().__init__(run.name)
        self.run = run


def parse_run(found: Any) -> Run:
    """Return a run from the object that the API server sent.

    Raises:
        UnreadStatus: a newer version wrote its status.
    """
    metadata = found["metadata"]
    annotations = metadata.get("annotations") or {}
    try:
        spec = BenchmarkRunSpec.model_validate(found.get("spec") or {}).with_control()
    except ValidationError:
        spec = None
    wrote = found.get("status") or {}
    unread: ValidationError | None = None
    try:
        status = RunStatus.model_validate(wrote)
    except ValidationError as error:
        unread = error
        status = RunStatus(state=State(wrote["state"]) if wrote.get("state") in _STATES else None)
    run = Run(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
        spec=spec,
        status=status,
        created=metadata.get("creationTimestamp", ""),
        explains=(metadata.get("labels") or {}).get(EXPLAINS_LABEL),
        checks=annotations.get(CHECKS_ANNOTATION),
        about=annotations.get(ABOUT_ANNOTATION),
    )
    if unread is not None:
        raise UnreadStatus(run) from unread
    return run
