"""Attempts of a trial: one of them counts, the others were lost to what was not the server's."""

from __future__ import annotations

import re
from enum import StrEnum

from pydantic import Field

from laptime.api.base import TolerantModel

MOST_ATTEMPTS = 3
"""So often a trial is tried at most."""


_ATTEMPT = re.compile(r"(?<=\d)-attempt-\d+$")


class Fault(StrEnum):
    """Whose fault it was that an attempt measured nothing."""

    SERVER = "server"
    """What the server itself did. Counts against it, and is not tried again."""
    RUN = "run"
    """What the run asks for, such as a load that cannot be sent: again it would be the same."""
    GENERATOR = "generator"
    TIER = "tier"
    NODE = "node"
    """A node or its kubelet."""
    CLUSTER = "cluster"
    """The scheduler, a registry, the network, a cluster that is full, somebody who deletes pods."""
    PARTNER = "partner"
    """What was measured at the same time came to nothing."""

    @property
    def repeated(self) -> bool:
        """Whether the attempt is made again: it says nothing of the server."""
        return self not in (Fault.SERVER, Fault.RUN)


class LostAttempt(TolerantModel):
    """An attempt of a trial that measured nothing and was made again."""

    trial: str = Field(description="Name of the trial.")
    attempt: int = Field(description="Which attempt of it, from 1.")
    fault: Fault = Field(description="Whose fault it was; never the server's.")
    reason: str = Field(description="CamelCase: what happened.")
    message: str = Field("", description="The same for people.")
    lost_at: str = Field(description="When it was given up, RFC 3339.")


def attempt_name(trial: str, attempt: int) -> str:
    """Return the name that Job and pods of an attempt have; the first is called like its trial."""
    return trial if attempt == 1 else f"{trial}-attempt-{attempt}"


def trial_of(name: str) -> str:
    """Return the name of the trial that an attempt of this name is of."""
    return _ATTEMPT.sub("", name)
