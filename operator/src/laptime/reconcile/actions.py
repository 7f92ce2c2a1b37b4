"""What a decision can ask for, and the decision itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laptime.api.status import RunStatus
from laptime.plan import Trial


@dataclass(frozen=True)
class Apply:
    """Make an object so by server-side apply."""

    manifest: dict[str, Any]


@dataclass(frozen=True)
class Create:
    """Create an object unless one of that name exists: it is never changed and never doubled."""

    manifest: dict[str, Any]


@dataclass(frozen=True)
class CreateDatabaseSecret:
    """Create the Secret of the database with a new random password, unless this operator has."""

    owner_uid: str
    """Of the ConfigMap that it goes with, and is called by."""


@dataclass(frozen=True)
class CreateServicesSecret:
    """Create the Secret with new random passwords of services, unless this operator has."""

    owner_uid: str
    """Of the ConfigMap that it goes with, and is called by."""


@dataclass(frozen=True)
class Delete:
    """Delete an object and what it owns, if it exists."""

    kind: str
    name: str


@dataclass(frozen=True)
class Resize:
    """Give a running pod's container so much CPU, as request and limit."""

    name: str
    container: str
    cpu: str


@dataclass(frozen=True)
class Fold:
    """Make the archive of the run so: these files, and all results that are stored by then."""

    files: dict[str, str]


Action = Apply | Create | CreateDatabaseSecret | CreateServicesSecret | Delete | Resize | Fold


@dataclass(frozen=True)
class Decision:
    """What to do now, what to say, and when to look again at the latest."""

    status: RunStatus
    actions: tuple[Action, ...] = ()
    requeue_seconds: float | None = None
    trials: tuple[Trial, ...] = ()
    """All that the run needs as far as its results tell, in their order."""
