"""How far trials had their nodes for themselves."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.base import Reading, TolerantModel


class Quietness(StrEnum):
    """How far nodes were there for a trial alone, from best to worst."""

    QUIET = "quiet"
    """Others used next to nothing."""
    NOT_KNOWN = "notKnown"
    SHARED = "shared"
    """Others used something, and too little for a doubt."""
    DISTURBED = "disturbed"
    """Others, or the hypervisor, took so much that the figures are doubtful."""


class Isolation(TolerantModel):
    """Whether a trial had its nodes for itself, by the worst of them; of a run its worst trial."""

    word: Quietness = Field(
        description="`quiet`: others used at most 5 % of the node's CPUs. `shared`: more, and too "
        "little for a doubt. `disturbed`: others or the hypervisor took so much that there is a "
        "doubt about the trial. `notKnown`: nobody told; it is worse than `quiet`."
    )
    message: str | None = Field(None, description="Why it is not quiet, for people.")
    trial: str | None = Field(None, description="Of a run: the trial that this is of.")
    trials_not_known: int | None = Field(
        None, description="Of a run: measured trials of which it is not known; left out: none."
    )
    cpu_speed_spread: Reading | None = Field(
        None,
        description="Of a run: by how much the speed of the CPUs varied between trials of one "
        "server under one load: the standard deviation of the logarithms of `probeSeconds`, all "
        "servers and loads together, of the node that varied most. None: not known, or too few "
        "trials.",
    )
    node: str | None = Field(None, description="The node that the figures are of.")
    cpus: int | None = Field(None, description="How many CPUs it has.")
    others_cores: Reading | None = Field(
        None, description="As `othersCores` of the usage of the node."
    )
    other_pods_cores: Reading | None = Field(
        None, description="As `otherPodsCores` of the usage of the node."
    )
    stolen_share: Reading | None = Field(
        None, description="As `stolenShare` of the usage of the node."
    )
