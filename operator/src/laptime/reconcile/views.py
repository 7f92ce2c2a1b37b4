"""What the reconcile knows of the cluster: small frozen views of Kubernetes objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import pydantic

from laptime.analysis.summary import Summary
from laptime.api.images import by_its_digest
from laptime.api.resources import quantity
from laptime.api.results import TrialReadings, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, RunStatus
from laptime.api.text import has_more_values, plain, shown, without_passwords
from laptime.catalog import ScenarioError
from laptime.manifests.context import Target
from laptime.manifests.objects import PODS_ANNOTATION, known_as
from laptime.measure import UNALTERED, Altered, altered
from laptime.plan import Leads

LABEL = "laptime.dev/"
MOST_VALUES = 100_000
"""In the spec or the status of a run. What the API server takes for one has room for no more than
this of values that mean anything; of empty ones there would be half a million, and gigabytes."""
_MOST_PROBLEMS = 20
_LONGEST_PROBLEM = 2000
_YEARS = range(1970, 3000)
_Model = TypeVar("_Model", bound=pydantic.BaseModel)
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable")
"""How kubelets say that an image cannot be had."""
CONFIG_REASONS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
"""How they say that a container cannot be made as it is asked for."""
STUCK_SECONDS = 120.0
"""A pod that should have ended for so long is on a node that is gone."""


@dataclass(frozen=True)
class ContainerView:
    """State of one container of a pod."""

    name: str
    ready: bool = False
    restarts: int = 0
    waiting_reason: str | None = None
    waiting_message: str | None = None
    # The termination that is current, or the last one when the container was started again.
    exit_code: int | None = None
    exit_reason: str | None = None
    exit_message: str | None = None
    ended_at: datetime | None = None
    running: bool = False
    running_since: datetime | None = None
    # What it should run, and which bits that were.
    image: str | None = None
    image_id: str | None = None
    # Whether it has a memory limit of its own: else the kernel ended it for the whole node's sake.
    limited: bool = False


@dataclass(frozen=True)
class PodView:
    """A pod of the run."""

    name: str
    component: str
    created: datetime
    uid: str = ""
    server: str | None = None
    trial: str | None = None
    # Of a pod of an Indexed Job; 0 for all others.
    index: int = 0
    owner: str | None = None
    owner_uid: str | None = None
    # Whether what has ended of it is never started again, as in the pods of Jobs.
    once: bool = False
    phase: str = "Pending"
    ready: bool = False
    deleting_since: datetime | None = None
    # Since when the operator has known it, and known it to run, by its own clock.
    known_since: datetime | None = None
    known_running_since: datetime | None = None
    # When the newest of its containers was started.
    last_started: datetime | None = None
    unschedulable_message: str | None = None
    # Names of what keeps the scheduler from looking at it at all, such as a queue for pods.
    gates: tuple[str, ...] = ()
    # The placement of its run, and the nodes that it has to go to, where there are some.
    placement: str | None = None
    bound: tuple[str, ...] = ()
    pod_reason: str | None = None
    pod_message: str | None = None
    # Where the scheduler has put it, and when the kubelet there has taken notice.
    node: str | None = None
    acknowledged: datetime | None = None
    # Where other pods reach it.
    address: str | None = None
    # Why it is taken away, where Kubernetes itself says so: CamelCase reason and message.
    disruption: tuple[str, str] | None = None
    # Name and image of the container that it is there for: its first one, as the run asked.
    main: str = ""
    image: str | None = None
    # With which Secrets it pulls, and which of them are not there, where it cannot.
    pull_secrets: tuple[str, ...] = ()
    missing_secrets: tuple[str, ...] = ()
    # Which keys of which Secrets its run names for it, where a container of it cannot be made.
    secret_keys: tuple[tuple[str, str], ...] = ()
    # What of it the cluster has changed.
    altered: Altered = UNALTERED
    # CPU of the main container, in cores: limit, request, and which limit its kubelet has set.
    cpu: float | None = None
    cpu_request: float | None = None
    cpu_in_force: float | None = None
    # Why the kubelet has not got there (CamelCase reason and message), or that it is about to.
    resize_pending: tuple[str, str] | None = None
    resizing: bool = False
    # How often what it should be was changed, and which of these its kubelet speaks of; None where
    # it does not say.
    generation: int = 0
    observed_generation: int | None = None
    containers: tuple[ContainerView, ...] = ()

    @property
    def deleting(self) -> bool:
        """Whether it was told to end."""
        return self.deleting_since is not None

    def stuck(self, now: datetime) -> bool:
        """Return whether it should have ended long ago: its node is gone. It holds up no run."""
        since = self.deleting_since
        return since is not None and (now - since).total_seconds() >= STUCK_SECONDS

    def age(self, now: datetime) -> float:
        """Return for how many seconds it has been there."""
        return (now - (self.known_since or self.created)).total_seconds()

    def running_for(self, now: datetime) -> float | None:
        """Return for how many seconds all its containers have run; None while one does not."""
        if self.running_since is None:
            return None
        return (now - (self.known_running_since or self.running_since)).total_seconds()

    @property
    def live(self) -> bool:
        """Whether the pod counts: not being deleted and not over."""
        return not self.deleting and self.phase not in ("Succeeded", "Failed")

    @property
    def cannot_pull(self) -> bool:
        """Whether one of its containers has no image."""
        return any(one.waiting_reason in IMAGE_REASONS for one in self.containers)

    @property
    def marked_unready(self) -> bool:
        """Whether its node is taken for dead: only the node controller makes ready containers so.

        Ready pods have no probe any more, so that of a kubelet has no reason to.
        """
        return (
            not (self.ready or self.ended)
            and self.phase == "Running"
            and any(one.running for one in self.containers)
            and all(
                one.ready if one.running else one.exit_code == 0 and one.waiting_reason is None
                for one in self.containers
            )
        )

    @property
    def image_id(self) -> str | None:
        """What its main container runs, as the kubelet says; None while it does not say.

        Of several digests that its node knows for the same bits a kubelet says any. So where one
        was asked for, it is that one.
        """
        said = next((one.image_id for one in self.containers if one.name == self.main), None)
        return self.image if said and self.image and by_its_digest(self.image) else said

    @property
    def running_since(self) -> datetime | None:
        """Since when all its containers run; None while one does not."""
        begun = [one.running_since for one in self.containers if one.running]
        if self.phase != "Running" or not begun or None in begun:
            return None
        return max(time for time in begun if time is not None)

    @property
    def own(self) -> tuple[ContainerView, ...]:
        """Its containers without those that the cluster has added."""
        return tuple(one for one in self.containers if one.name not in self.altered.added)

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more, or ever will.

        What the cluster has put beside a Job's container, such as the proxy of a mesh, stays until
        the pod is deleted, and does nothing any more.
        """
        if self.phase in ("Succeeded", "Failed"):
            return True
        of_it = self.own if self.once else self.containers
        over = all(not one.running and one.exit_code is not None for one in of_it)
        return (self.deleting or self.once) and bool(of_it) and over

    @property
    def restarts(self) -> int:
        """Restarts of its containers together."""
        return sum(container.restarts for container in self.containers)


@dataclass(frozen=True)
class WorkloadView:
    """A Deployment or a Job of the run."""

    name: str
    created: datetime
    uid: str = ""
    manifest_hash: str | None = None
    trial: str | None = None
    replicas: int = 1
    deleting: bool = False
    refused_message: str | None = None
    failed_reason: str | None = None
    failed_message: str | None = None
    # Whether a Job has ended well.
    complete: bool = False
    # Those of server and tiers when a Job was made, with how often each had been started again, and
    # what else it says of that moment.
    pods: frozenset[str] | None = None
    # How many pods the controller of a Job has made, as far as it has said so.
    made: int = 0
    # Since when the operator has known it, by its own clock.
    known_since: datetime | None = None

    def age(self, now: datetime) -> float:
        """Return for how many seconds it has been there."""
        return (now - (self.known_since or self.created)).total_seconds()

    def begun_beside(self, *kinds: str) -> frozenset[str]:
        """Return the names of the pods beside which a Job was made, of these kinds."""
        words = ((kind, word) for kind in kinds for word in self.pods or ())
        return frozenset(word.removeprefix(kind) for kind, word in words if word.startswith(kind))

    def own(self, pods: Iterable[PodView]) -> list[PodView]:
        """Return the pods that a Job has made, without those of an earlier one of its name.

        Not by the times at which they were made: API servers that stand beside each other write
        those, each by its own clock.
        """
        return [pod for pod in pods if pod.owner_uid == self.uid]


@dataclass(frozen=True)
class TargetView:
    """A Service of the namespace that a run drives and does not deploy."""

    service: str
    version: str = ""
    """Another one after each change of it; empty: there is none."""
    target: Target | None = None
    """Where it leads to; None: it is not driven."""
    refused: tuple[str, str] | None = None
    """Why it is not: CamelCase reason and message."""
    pods: tuple[PodView, ...] = ()
    """Those behind it that count, by their names."""

    @property
    def words(self) -> frozenset[str]:
        """What a trial of it rests on: the Service as it is, its pods, how often each restarted."""
        pods = {f"{BEHIND}{pod.name}/{pod.uid}/{pod.restarts}" for pod in self.pods}
        return frozenset(pods | {f"{SERVICE}{self.service}/{self.version}"})


BEHIND, SERVICE = "behind=", "service="
STUCK, SENDS = "stuck=", "sends="
"""How a Job names pods of earlier trials that are on nodes which do not answer: as no more than
that, and as one whose load need not be over yet."""


@dataclass(frozen=True)
class Hearing:
    """What was heard of the kubelet of a pod that does not get on."""

    heard_seconds: float = 0.0
    """From the first to the last of its answers, with none missing."""
    silent: bool = False
    """Whether it did not answer the last time."""


@dataclass(frozen=True)
class Refusal:
    """An action that cannot be carried out until somebody changes something."""

    message: str
    since: datetime
    reason: str = "ObjectRefused"
    # How long it may mend itself, in seconds; None: as long as the run's start-up allows.
    patience_seconds: float | None = None
    # Whether only room in a quota is missing: others' objects may go.
    room: bool = False


@dataclass(frozen=True)
class ResizeRefused:
    """That the API server lets a pod not have so much CPU."""

    pod: str
    cpu: str
    message: str
    may_pass: bool = False
    """Whether only room in a quota is missing."""


@dataclass(frozen=True)
class Observed:
    """Everything of one run that the API server shows."""

    deployments: Mapping[str, WorkloadView] = field(default_factory=dict)
    jobs: Mapping[str, WorkloadView] = field(default_factory=dict)
    pods: tuple[PodView, ...] = ()
    # Manifest hash (None where there is none) by name.
    services: Mapping[str, str | None] = field(default_factory=dict)
    config_maps: Mapping[str, str | None] = field(default_factory=dict)
    network_policies: Mapping[str, str | None] = field(default_factory=dict)
    # Kind and name of what is being deleted, and is not gone yet.
    deleting: frozenset[tuple[str, str]] = frozenset()
    # Uids of the ConfigMaps that Secrets are called by, by name.
    secret_owners: Mapping[str, str] = field(default_factory=dict)
    # Name of the ConfigMap of the run's archive, once it is there.
    results_config_map: str | None = None
    # Whether failed trials were asked for again since it was written.
    archive_outdated: bool = False
    # Uids of the ConfigMaps with results that are there, and of those that are in the archive.
    single: frozenset[str] = frozenset()
    archived: frozenset[str] = frozenset()
    # Stored results by trial.
    results: Mapping[str, TrialResult] = field(default_factory=dict)
    # How many bytes of what generators print are stored beside them.
    payload_room: float = math.inf
    # Trials that had failed and were asked for again: their results that still stand singly.
    failed_before: frozenset[str] = frozenset()
    # What Prometheus read of measured trials and is not stored yet, by trial.
    readings: Mapping[str, TrialReadings] = field(default_factory=dict)
    # Measured trials whose readings will still come: nothing of the run ends before.
    unread: frozenset[str] = frozenset()
    # Logs of generators whose container ended or whose result line was seen, by trial and index.
    outputs: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    # Of stored profiles why they could not be taken, by name; empty if they were.
    profiles: Mapping[str, str] = field(default_factory=dict)
    # Logs of containers that asked for a profile and ended, by the profile's name.
    profile_outputs: Mapping[str, str] = field(default_factory=dict)
    # What verifiers that are over have printed, by pod, where a run only verifies.
    answers: Mapping[str, str] = field(default_factory=dict)
    # ConfigMaps of scripts and certificates: name -> its keys, None: there is no such ConfigMap.
    scripts: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    # Where scripts lead to beside their target, by load.
    leads: Mapping[str, Leads] = field(default_factory=dict)
    # ConfigMaps of scripts that the run has copies of: name -> what stands for their files.
    kept_scripts: Mapping[str, str] = field(default_factory=dict)
    # Those of which it has none yet, as they are now.
    script_sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Services that are driven and not deployed, by the names of their servers.
    targets: Mapping[str, TargetView] = field(default_factory=dict)
    # None: nothing is measured.
    summary: Summary | None = None
    # What was heard of kubelets, by the name of a pod; of pods that get on nobody asks.
    kubelets: Mapping[str, Hearing] = field(default_factory=dict)
    # What cannot be done, again and again since some time.
    refusal: Refusal | None = None
    # What was refused of the CPU of a pod, the last time that it was asked for.
    resize_refused: ResizeRefused | None = None
    # For how long somebody has looked at the run without a gap: nothing has lasted longer.
    at_work_seconds: float = math.inf
    # Whether the run keeps its scenario, or why there is none.
    scenario_kept: bool = True
    scenario_problem: ScenarioError | None = None
    # Whether its rules are looked at, so that nobody knows yet.
    scenario_looked_at: bool = False

    def pods_of(
        self, component: str, *, server: str | None = None, trial: str | None = None
    ) -> list[PodView]:
        """Return the pods of a component, oldest first.

        Of one second the one that lives is the newest: another is made once one is over.
        """
        return sorted(
            (
                pod
                for pod in self.pods
                if pod.component == component
                and (server is None or pod.server == server)
                and (trial is None or pod.trial == trial)
            ),
            key=lambda pod: (pod.created, pod.live, pod.name),
        )


@dataclass(frozen=True)
class Run:
    """A BenchmarkRun as it is in the API server."""

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    spec: BenchmarkRunSpec
    status: RunStatus
    deleting: bool = False
    version: str = ""
    """Its resource version."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def begun(self) -> bool:
        """Whether it ever had its turn."""
        return self.status.started_at is not None

    @property
    def given_up(self) -> str | None:
        """Why it ends, or ended, without all of its figures (CamelCase); None: it does not."""
        succeeded = self.status.condition(ConditionType.SUCCEEDED)
        if succeeded is None or succeeded.status != ConditionStatus.FALSE:
            return None
        return succeeded.reason


def parse_time(text: object) -> datetime | None:
    """Return an RFC 3339 time in UTC, or None where it is none: statuses are written by hand too.

    Nor is one that is centuries away: nobody could add to it. Without a zone it is one of UTC.
    """
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year in _YEARS else None


def seconds_used(status: RunStatus, now: datetime) -> float:
    """Return for how many seconds a run has had the lane, in all its turns together."""
    since = parse_time(status.turn_started_at)
    turn = (now - since).total_seconds() if since is not None else 0.0
    return (status.used_seconds or 0.0) + max(0.0, turn)


def format_time(time: datetime) -> str:
    """Return a time as RFC 3339 with whole seconds, as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class NotUnderstood(ValueError):
    """The spec or the status of a run does not fit this version's models."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(f"{part}: {problem}")
        self.of_status = part == "status"
        self.reason = "StatusNotUnderstood" if self.of_status else "SpecNotUnderstood"
        """CamelCase."""


def run_view(manifest: Mapping[str, Any]) -> Run:
    """Return the view of a BenchmarkRun.

    Raises:
        NotUnderstood: its spec or its status does not fit this version's models.
    """
    metadata = manifest["metadata"]
    spec = _fitting(BenchmarkRunSpec, "spec", manifest.get("spec"))
    return Run(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        created=_created(metadata),
        spec=spec.with_control(),
        status=status_view(manifest),
        deleting="deletionTimestamp" in metadata,
        version=metadata.get("resourceVersion", ""),
    )


def status_view(manifest: Mapping[str, Any]) -> RunStatus:
    """Return the status of a BenchmarkRun.

    Raises:
        NotUnderstood: it does not fit this version's models.
    """
    return _fitting(RunStatus, "status", manifest.get("status") or {})


def understood(manifest: Mapping[str, Any]) -> RunStatus:
    """Return of the status of a BenchmarkRun those fields that fit, each taken by itself."""
    found = {}
    said = manifest.get("status")
    for name, value in said.items() if isinstance(said, dict) else ():
        with suppress(NotUnderstood):
            _fitting(RunStatus, "status", {name: value})
            found[name] = value
    return RunStatus.model_validate(found)


def _fitting(model: type[_Model], part: str, document: Any) -> _Model:
    if has_more_values(document, MOST_VALUES):
        raise NotUnderstood(part, f"it has more than {MOST_VALUES} values")
    try:
        return model.model_validate(document)
    except pydantic.ValidationError as error:
        # Of thousands of problems even their text is many megabytes.
        many = error.error_count()
        said = shown(str(error), _LONGEST_PROBLEM) if many <= _MOST_PROBLEMS else f"{many} problems"
        raise NotUnderstood(part, said) from None


def has_place(pod: Mapping[str, Any]) -> bool:
    """Whether the place in its Job that a Pod says is a number, as that of each that a Job made."""
    said = (pod["metadata"].get("labels") or {}).get(COMPLETION_INDEX, "0")
    return isinstance(said, str) and said.isascii() and said.isdecimal() and len(said) < 10


def pod_view(manifest: Mapping[str, Any]) -> PodView:
    """Return the view of a Pod.

    Raises:
        ValueError: it has no place (`has_place`).
    """
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    scheduled = conditions.get("PodScheduled", {})
    owners = metadata.get("ownerReferences") or []
    statuses = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    spec = manifest.get("spec", {})
    containers = spec.get("containers") or [{}]
    changes = altered(manifest)
    main = next((one for one in containers if one.get("name") == changes.main), containers[0])
    limited = {
        one.get("name")
        for one in [*containers, *(spec.get("initContainers") or [])]
        if "memory" in ((one.get("resources") or {}).get("limits") or {})
    }
    disruption = conditions.get("DisruptionTarget", {})
    begun = (
        parse_time((one.get("state") or {}).get("running", {}).get("startedAt"))
        for one in status.get("containerStatuses") or []
    )
    started = [time for time in begun if time is not None]
    return PodView(
        name=metadata["name"],
        component=labels.get(LABEL + "component", ""),
        created=_created(metadata),
        uid=metadata.get("uid", ""),
        server=labels.get(LABEL + "server"),
        trial=labels.get(LABEL + "trial"),
        index=int(labels.get(COMPLETION_INDEX, "0")),
        owner=owners[0]["name"] if owners else None,
        owner_uid=owners[0].get("uid") if owners else None,
        once=spec.get("restartPolicy") == "Never",
        phase=status.get("phase", "Pending"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting_since=parse_time(metadata.get("deletionTimestamp")),
        last_started=max(started) if started else None,
        unschedulable_message=(
            _said(scheduled, "message") if scheduled.get("reason") == "Unschedulable" else None
        ),
        gates=tuple(plain(str(one.get("name"))) for one in spec.get("schedulingGates") or []),
        placement=labels.get(LABEL + "placement"),
        bound=_bound(spec),
        pod_reason=_said(status, "reason"),
        pod_message=_said(status, "message"),
        node=_said(spec, "nodeName"),
        address=_said(status, "podIP"),
        acknowledged=parse_time(status.get("startTime")),
        disruption=(_said(disruption, "reason") or "", _said(disruption, "message") or "")
        if disruption.get("status") == "True"
        else None,
        main=main.get("name", ""),
        image=_said(main, "image"),
        pull_secrets=tuple(
            plain(str(one["name"])) for one in spec.get("imagePullSecrets") or [] if one.get("name")
        ),
        altered=changes,
        cpu=_cpu(main, "limits"),
        cpu_request=_cpu(main, "requests"),
        cpu_in_force=_cpu(
            next(
                (
                    one
                    for one in status.get("containerStatuses") or []
                    if one.get("name") == main.get("name")
                ),
                {},
            ),
            "limits",
        ),
        resize_pending=_resize_pending(conditions),
        resizing=conditions.get("PodResizeInProgress", {}).get("status") == "True",
        generation=int(metadata.get("generation") or 0),
        observed_generation=status.get("observedGeneration"),
        containers=tuple(_container_view(one, one["name"] in limited) for one in statuses),
    )


def with_secret_keys(pod: PodView, spec: BenchmarkRunSpec) -> PodView:
    """Return a pod with what the run names of Secrets for it, where it is not made as asked for."""
    if not any(one.waiting_reason in CONFIG_REASONS for one in pod.containers):
        return pod
    keys = (pair for one in spec.servers if one.name == pod.server for pair in one.secret_keys)
    return replace(pod, secret_keys=tuple(keys))


def _cpu(container: Mapping[str, Any], kind: str) -> float | None:
    """Return `limits` or `requests` of CPU of a container or its status, in cores, or None."""
    said = ((container.get("resources") or {}).get(kind) or {}).get("cpu")
    try:
        return None if said is None else quantity(str(said))
    except ValueError:
        return None


def _resize_pending(conditions: Mapping[str, Any]) -> tuple[str, str] | None:
    pending = conditions.get("PodResizePending", {})
    if pending.get("status") != "True":
        return None
    return _said(pending, "reason") or "", _said(pending, "message") or ""


def _bound(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the nodes that a pod has to go to; none: it may go to any."""
    rules = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names = (
        name
        for term in needed.get("nodeSelectorTerms") or []
        for one in term.get("matchFields") or []
        for name in one.get("values") or []
    )
    return tuple(dict.fromkeys(names))


def _container_view(status: Mapping[str, Any], limited: bool) -> ContainerView:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return ContainerView(
        name=status["name"],
        ready=bool(status.get("ready")),
        restarts=status.get("restartCount", 0),
        waiting_reason=_said(waiting, "reason"),
        # A program that cannot be started is quoted, with what its first word was expanded to.
        waiting_message=without_passwords(_said(waiting, "message") or "") or None,
        exit_code=ended.get("exitCode"),
        exit_reason=_said(ended, "reason"),
        # Several lines, or JSON: whoever reads it cleans what else is in it.
        exit_message=None if ended.get("message") is None else without_passwords(ended["message"]),
        ended_at=parse_time(ended.get("finishedAt")),
        running="running" in state,
        running_since=parse_time((state.get("running") or {}).get("startedAt")),
        image=_said(status, "image") or None,
        image_id=_said(status, "imageID") or None,
        limited=limited,
    )


def deployment_view(manifest: Mapping[str, Any]) -> WorkloadView:
    """Return the view of a Deployment."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    refused = _condition(manifest, "ReplicaFailure")
    template_labels = spec["template"]["metadata"].get("labels") or {}
    return WorkloadView(
        name=known_as(metadata),
        created=_created(metadata),
        manifest_hash=_hash(metadata),
        trial=template_labels.get(LABEL + "trial"),
        replicas=spec.get("replicas", 1),
        deleting="deletionTimestamp" in metadata,
        refused_message=_said(refused or {}, "message"),
    )


def job_view(manifest: Mapping[str, Any]) -> WorkloadView:
    """Return the view of a Job."""
    metadata = manifest["metadata"]
    failed = _condition(manifest, "Failed") or {}
    return WorkloadView(
        name=known_as(metadata),
        created=_created(metadata),
        uid=metadata.get("uid", ""),
        manifest_hash=_hash(metadata),
        trial=(metadata.get("labels") or {}).get(LABEL + "trial"),
        deleting="deletionTimestamp" in metadata,
        failed_reason=_said(failed, "reason"),
        failed_message=_said(failed, "message"),
        complete=_condition(manifest, "Complete") is not None,
        pods=_begun_on(metadata),
        made=_made(manifest.get("status") or {}),
    )


def _made(status: Mapping[str, Any]) -> int:
    ended = status.get("uncountedTerminatedPods") or {}
    counted = sum(status.get(key) or 0 for key in ("active", "succeeded", "failed"))
    return counted + sum(len(ended.get(key) or ()) for key in ("succeeded", "failed"))


def _begun_on(metadata: Mapping[str, Any]) -> frozenset[str] | None:
    said = (metadata.get("annotations") or {}).get(PODS_ANNOTATION)
    return None if said is None else frozenset(filter(None, said.split(",")))


def hash_by_name(manifests: list[dict[str, Any]]) -> dict[str, str | None]:
    """Return the manifest hash of each object, by name."""
    return {known_as(m["metadata"]): _hash(m["metadata"]) for m in manifests}


def _condition(manifest: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    for condition in (manifest.get("status") or {}).get("conditions") or []:
        if condition["type"] == type_ and condition["status"] == "True":
            found: Mapping[str, Any] = condition
            return found
    return None


def _said(status: Mapping[str, Any], key: str) -> str | None:
    """Return what is said there, so that it can be shown: images and nodes are not trusted."""
    text = status.get(key)
    return None if text is None else plain(str(text))


def _hash(metadata: Mapping[str, Any]) -> str | None:
    value: str | None = (metadata.get("annotations") or {}).get(LABEL + "manifest-hash")
    return value


def _created(metadata: Mapping[str, Any]) -> datetime:
    created = parse_time(metadata.get("creationTimestamp"))
    assert created is not None
    return created
