"""What the operator says about a run: the status of a BenchmarkRun."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from laptime.api.attempts import LostAttempt
from laptime.api.base import TolerantModel
from laptime.api.images import RunImages
from laptime.api.isolation import Isolation
from laptime.api.node_path import NodePath
from laptime.api.placement import RunPlacement
from laptime.api.results import ControlResult, ObjectiveResult, ResultRow, Tie, TrialLength
from laptime.api.storage import Storage


class State(StrEnum):
    """Where a run is, as `kubectl get br` shows it."""

    QUEUED = "Queued"
    DEPLOYING = "Deploying"
    VERIFYING = "Verifying"
    RUNNING = "Running"
    FINISHING = "Finishing"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def terminal(self) -> bool:
        """Whether the run is over."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)

    @property
    def active(self) -> bool:
        """Whether the run has the lane: it may start pods."""
        return not (self.terminal or self.waiting)

    @property
    def waiting(self) -> bool:
        """Whether nothing of the run is in the cluster but what it has measured so far."""
        return self in (State.QUEUED, State.SUSPENDED)


class Order(StrEnum):
    """By which rule the trials of a run are ordered; a run keeps the one that it began with."""

    BALANCED = "Balanced"
    """Up to four, servers are at each position, and behind each other one, equally often."""
    DRAWN = "Drawn"
    """Each repetition is drawn by itself: of runs that a version before stored version 3 began."""


class ConditionType(StrEnum):
    """The conditions of a run."""

    ACCEPTED = "Accepted"
    TIERS_READY = "TiersReady"
    SERVERS_VERIFIED = "ServersVerified"
    SCRIPTS_SELF_CONTAINED = "ScriptsSelfContained"
    PROGRESSING = "Progressing"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    OBJECTIVES_MET = "ObjectivesMet"
    PROFILED = "Profiled"
    CLEANED_UP = "CleanedUp"


class ConditionStatus(StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(TolerantModel):
    """One condition, as the Kubernetes API conventions define it."""

    type: str = Field(
        description="Accepted, TiersReady, ServersVerified, ScriptsSelfContained, Progressing, "
        "Suspended, Succeeded, ObjectivesMet, Profiled, CleanedUp."
    )
    status: ConditionStatus = Field(description="Whether it holds.")
    reason: str = Field(description="CamelCase, for programs: why it does or does not hold.")
    message: str = Field("", description="The same for people, with what to do.")
    observed_generation: int | None = Field(
        None, description="Generation of the run that it is about."
    )
    last_transition_time: str = Field(description="When status last changed, RFC 3339.")


class Progress(TolerantModel):
    """How far a run is."""

    completed: int = Field(
        0, description="Trials that are over; with `verifyOnly` servers that are checked."
    )
    total: int = Field(0, description="Trials in all; with `verifyOnly` servers.")
    percent: int = Field(0, description="The first of the second, in whole percent.")
    remaining_seconds: int | None = Field(None, description="Estimate of the time left.")
    text: str = Field("", description="The same for people, such as '7/15, 1m20s left'.")

    @classmethod
    def ended(cls, completed: int, total: int) -> Progress:
        """Return that of a run that is over, however much of it was measured."""
        percent = 100 * completed // total if total else 0
        text = f"{completed}/{total}"
        return cls(completed=completed, total=total, percent=percent, text=text)


class ServerState(StrEnum):
    """What is known of a server's answers."""

    PENDING = "Pending"
    VERIFIED = "Verified"
    FAILED = "Failed"


class ServerStatus(TolerantModel):
    """One server: whether its answers were right, or why it is out."""

    name: str = Field(description="Name of the server in the spec.")
    state: ServerState = Field(description="Whether its answers were right.")
    reason: str | None = Field(
        None,
        description="CamelCase: why it is out; while it is Pending, why it is checked once more.",
    )
    message: str | None = Field(None, description="The same in words, with what to do.")
    image: str | None = Field(None, description="The image that its pod ran.")
    image_id: str | None = Field(
        None,
        description="Of an image of one's own which bits it is: those that were checked are those "
        "that are measured. By a digest where it was pulled, and then all pods of the server name "
        "it.",
    )
    tag_unknown: str | None = Field(
        None,
        description="Why nobody knows whether the tag of its image has moved: an older image of "
        "that name may have run.",
    )
    database_schema: str | None = Field(
        None,
        description="Stands for what was defined in the database (tables, indexes, functions) "
        "when its answers were checked: two with a comma between, where its first requests have "
        "changed it.",
    )
    leads_to: str | None = Field(
        None,
        description="Of a Service that Laptime does not deploy: stands for the selector and the "
        "port that it had when its answers were checked.",
    )


class KeptScript(TolerantModel):
    """A ConfigMap of a script as it was when the run began."""

    config_map: str = Field(description="Name of the ConfigMap in the spec.")
    hash: str = Field(description="Stands for its files: two with the same hash have the same.")


class RunStatus(TolerantModel):
    """The status of a BenchmarkRun."""

    observed_generation: int | None = Field(
        None, description="Generation of the spec that this status is about."
    )
    state: State | None = Field(None, description="Where the run is.")
    verdict: str | None = Field(None, description="The result in a sentence.")
    seed: int | None = Field(None, description="Seed of the order of the trials.")
    order: Order | None = Field(
        None,
        description="Rule by which the seed orders the trials. A run that has a seed and no rule "
        "was begun by a version whose rule was Drawn.",
    )
    baseline: str | None = Field(None, description="The server that factors are against.")
    started_at: str | None = Field(None, description="When it got its turn first, RFC 3339.")
    turn_started_at: str | None = Field(
        None,
        description="While it has its turn: since when, or since an operator is back at it, "
        "RFC 3339.",
    )
    used_seconds: float | None = Field(
        None,
        description="How long it had its turn before that, in seconds. Counted anew when failed "
        "trials are asked for again.",
    )
    finished_at: str | None = Field(None, description="When it was over, RFC 3339.")
    retries: int | None = Field(
        None, description="The value of `spec.retry` up to which failed trials were asked for."
    )
    images: RunImages | None = Field(
        None,
        description="The images that the run was begun with; an upgrade changes nothing of it.",
    )
    placement: RunPlacement | None = Field(
        None, description="The placement that the run was begun with; none: it has none."
    )
    scenario_hash: str | None = Field(
        None,
        description="Stands for the work that the run began with and keeps: two runs with the same "
        "hash did the same work.",
    )
    scripts: list[KeptScript] | None = Field(
        None,
        description="The ConfigMaps of scripts that the run began with and keeps copies of.",
    )
    progress: Progress | None = Field(None, description="How far the run is.")
    current_trial: str | None = Field(
        None, description="Name of the trial that is set up or measured now."
    )
    current_beside: str | None = Field(
        None, description="Name of the trial that is measured at the same time as that one."
    )
    step_started_at: str | None = Field(
        None, description="When the current state, check or trial began, RFC 3339."
    )
    lost_attempts: list[LostAttempt] | None = Field(
        None, description="Attempts of the current trial that were lost by no fault of its server."
    )
    fastest: str | None = Field(
        None,
        description="The fastest server, or those that cannot be told apart from it; none while "
        "the run goes on and all that is known is one repetition, and where one server alone has "
        "several and others one.",
    )
    fastest_factor: str | None = Field(
        None,
        description="Its factor against the baseline, such as '25.1x', or '2.00x (at least 1.95)' "
        "where a search found no upper end; none where several cannot be told apart, each of which "
        "has its own in its row.",
    )
    servers: list[ServerStatus] | None = Field(
        None, description="What is known of each server's answers."
    )
    results: list[ResultRow] | None = Field(
        None, description="The figures so far, a row for each server and load."
    )
    objectives: list[ObjectiveResult] | None = Field(
        None,
        description="Each objective of the spec and each threshold of a script, and whether it was "
        "met.",
    )
    control: list[ControlResult] | None = Field(
        None, description="What the control arm says of this cluster, load by load."
    )
    ties: list[Tie] | None = Field(
        None,
        description="Of a run that is over: servers that cannot be told apart under a load, and "
        "what it would cost; at most 20, those that cost least.",
    )
    trial_lengths: list[TrialLength] | None = Field(
        None,
        description="Of a run that is over: shorter trials that would find the same differences in "
        "throughput in less time, of loads where there are any.",
    )
    isolation: Isolation | None = Field(
        None, description="Whether the run had its nodes for itself, by its worst trial so far."
    )
    node_paths: list[NodePath] | None = Field(
        None,
        description="What the nodes of generators and servers exchange, where they are apart: "
        "measured once for each two, after the first trial that was on them.",
    )
    results_config_map: str | None = Field(
        None,
        description="ConfigMap with the archive of everything that was measured, `results.json` "
        "first.",
    )
    storage: Storage | None = Field(
        None, description="How the run and its results are stored; none: as version 1 did."
    )
    conditions: list[Condition] | None = Field(
        None, description="What holds of the run and what does not, with reasons."
    )

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type, or None."""
        for condition in self.conditions or []:
            if condition.type == type_:
                return condition
        return None
