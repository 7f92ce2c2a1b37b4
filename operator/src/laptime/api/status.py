"""What the operator says about a run: the status of a BenchmarkRun."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.base import TolerantModel
from laptime.api.results import ControlResult, ObjectiveResult, ResultRow


class State(StrEnum):
    """Where a run is, as `kubectl get br` shows it."""

    QUEUED = "Queued"
    DEPLOYING = "Deploying"
    VERIFYING = "Verifying"
    RUNNING = "Running"
    FINISHING = "Finishing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def terminal(self) -> bool:
        """Whether the run is over."""
        return self in (State.SUCCEEDED, State.FAILED)

    @property
    def active(self) -> bool:
        """Whether the run has the lane: it may start pods."""
        return self not in (State.QUEUED, State.SUCCEEDED, State.FAILED)


class ConditionType(StrEnum):
    """The conditions of a run."""

    ACCEPTED = "Accepted"
    TIERS_READY = "TiersReady"
    SERVERS_VERIFIED = "ServersVerified"
    PROGRESSING = "Progressing"
    SUCCEEDED = "Succeeded"
    OBJECTIVES_MET = "ObjectivesMet"


class ConditionStatus(StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(TolerantModel):
    """One condition, as the Kubernetes API conventions define it."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: str


class Progress(TolerantModel):
    """How far a run is."""

    completed: int = Field(0, description="Trials that are over.")
    total: int = Field(0, description="Trials in all.")
    percent: int = 0
    remaining_seconds: int | None = Field(None, description="Estimate of the time left.")
    text: str = Field("", description="The same for people, such as '7/15, 1m20s left'.")


class ServerState(StrEnum):
    """What is known of a server's answers."""

    PENDING = "Pending"
    VERIFIED = "Verified"
    FAILED = "Failed"


class ServerStatus(TolerantModel):
    """One server: whether its answers were right, or why it is out."""

    name: str
    state: ServerState
    reason: str | None = None
    message: str | None = None
    image: str | None = None


class RunStatus(TolerantModel):
    """The status of a BenchmarkRun."""

    observed_generation: int | None = None
    state: State | None = None
    verdict: str | None = Field(None, description="The result in a sentence.")
    seed: int | None = Field(None, description="Seed of the order of the trials.")
    baseline: str | None = None
    queue_position: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    progress: Progress | None = None
    current_trial: str | None = None
    fastest: str | None = None
    fastest_factor: str | None = Field(
        None, description="Its factor against the baseline, such as '25.1x'."
    )
    servers: list[ServerStatus] | None = None
    results: list[ResultRow] | None = None
    objectives: list[ObjectiveResult] | None = None
    control: list[ControlResult] | None = Field(
        None, description="What the control arm says of this cluster, load by load."
    )
    results_config_map: str | None = Field(
        None, description="ConfigMap with everything: results.json and report.md."
    )
    conditions: list[Condition] | None = None

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type, or None."""
        for condition in self.conditions or []:
            if condition.type == type_:
                return condition
        return None
