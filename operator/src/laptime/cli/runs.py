"""A run as the command line sees it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from laptime.api.experiment import EXPLAINS_LABEL
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import RunStatus
from laptime.cli.mistakes import NewerVersion


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

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.status.state is not None and self.status.state.terminal


def parse_run(found: Any) -> Run:
    """Return a run from the object that the API server sent.

    Raises:
        NewerVersion: its status has something in it that this version does not know.
    """
    metadata = found["metadata"]
    try:
        spec = BenchmarkRunSpec.model_validate(found.get("spec") or {}).with_control()
    except ValidationError:
        spec = None
    try:
        status = RunStatus.model_validate(found.get("status") or {})
    except ValidationError as error:
        raise NewerVersion(metadata["name"]) from error
    return Run(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
        spec=spec,
        status=status,
        created=metadata.get("creationTimestamp", ""),
        explains=(metadata.get("labels") or {}).get(EXPLAINS_LABEL),
    )
