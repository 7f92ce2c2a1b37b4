"""Why a pod does not do what it should, in words that say what to do. Pure.

Words say only what was observed. A pod that was never placed has no container that runs, and that a
server is not ready is something that only a kubelet which is there can say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from laptime.api.side_services import SIDE_PREFIX
from laptime.api.text import plain_lines
from laptime.manifests.image_files import CARRIER_CONTAINER
from laptime.manifests.objects import Component
from laptime.manifests.placement import part_of
from laptime.manifests.script_image import SCRIPT_CONTAINER
from laptime.manifests.sql_image import sql_place
from laptime.reconcile.views import (
    CONFIG_REASONS,
    IMAGE_REASONS,
    ContainerView,
    Hearing,
    PodView,
    WorkloadView,
)

# Start-up takes moments in which nothing is wrong yet: a pod that the scheduler has not seen, an
# image that failed to pull once. Before this age, only what cannot mend itself is a problem.
_PATIENCE_SECONDS = 4.0
_CRASHES_ENOUGH = 2
_SIGNALS = 128
"""Exit codes from here on are of a container that was ended, and not by itself."""
_HEARD_SECONDS = 2.5
"""A kubelet that has answered for so long has asked its pods whether they are ready."""

_TOLD_SECONDS = 5.0
"""So long after a restart a kubelet may not have said yet how the container ended before."""

# How a kubelet says what of a Secret a variable should have, and is not there.
_NO_SECRET = re.compile(r'secret "([^"\s]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in Secret [^/\s]+/(?P<secret>\S+)")
_MOST_KEYS = 8
"""Of one Secret in one message."""
# How a kubelet says that a pod has written more than it may; all else it evicts for is its node's
# lack, while it runs or before it is admitted.
_WROTE_TOO_MUCH = re.compile(
    r"Usage of EmptyDir volume .* exceeds the limit|exceeded its local ephemeral storage limit"
    r"|Pod ephemeral local storage usage exceeds the total limit"
)
# How the C library says that a disk is full, and Go in small letters. Shared memory is none: its
# limit is the container's.
_DISK_FULL = re.compile(
    r"^(?!.*shared memory).*No space left on device", re.MULTILINE | re.IGNORECASE
)
# How programs of all languages say what no pod of a run may. Databases and clouds go on with "for",
# "to" or "on" where they deny a permission of their own. A connection is denied by who is there.
_READ_ONLY = re.compile(r"read-only file ?system|\bEROFS\b", re.IGNORECASE)
_NOT_ALLOWED = re.compile(
    r"(?<!connect: )permission denied(?! (?:for|to|on)\b)|(?<!connect )\bEACCES\b"
    r"|operation not permitted"
    r"|java\.nio\.file\.AccessDeniedException",
    re.IGNORECASE,
)
# How a registry, or a resolver, says that an image is not to be had, by anybody or by this cluster.
# What else a kubelet says of a pull (503, a time-out, a back-off alone) may be over in a minute.
_NEVER_PULLED = re.compile(
    "not found|no such|does not exist|manifest unknown|name unknown|not known to registry"
    "|unauthori[sz]ed|denied|forbidden|authorization failed|no basic auth credentials"
    "|unknown authority|HTTP response to HTTPS client|no match for platform",
    re.IGNORECASE,
)
# These have such words too: a token of a registry is renewed, a limit is one of some minutes.
_NOT_NOW = re.compile("expired|too ?many ?requests", re.IGNORECASE)
# What a scheduler says of each group of nodes that take no pod, whatever it asks for.
_CLOSED = re.compile(
    r"\d+ node\(s\) (?:were unschedulable|had untolerated taint(?:\(s\)| \{[^}]*\}))"
)
# What it says of nodes that are none of those that a pod may go to, whatever room they have: before
# it looks at labels it looks at taints.
_UNSELECTED = re.compile(r"\d+ node\(s\) didn't match Pod's node affinity/selector")
_OUTSIDE = re.compile(
    rf"{_UNSELECTED.pattern}|\d+ node\(s\) had untolerated taint(?:\(s\)| \{{[^}}]*\}})"
)
# A quota wants limits, or a LimitRange others: nothing that waiting would change.
_RESOURCES_WRONG = re.compile(
    r"must specify |(?:minimum|maximum) \S+ usage per (?:Container|Pod)"
    r"|\S+ max limit to request ratio per |must be less than or equal to \S+ limit"
)
# What of it a run says beside what none can.
_SAYABLE = re.compile(r"\b(?:cpu|memory) (?:for: |usage per |max limit to request ratio |limit)")
_EPHEMERAL = "ephemeral-storage"
# Ends of a container that nobody has seen: the node or its container runtime was started anew.
_UNSEEN_ENDS = ("ContainerStatusUnknown", "Unknown")
# Reasons of pods that a kubelet does not take, or ends because its node goes down.
_NODE_REFUSALS = (
    *("UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage"),
    *(
        "NodeAffinity",
        "NodeShutdown",
        "Terminated",
        "Shutdown",
        "NodePorts",
        "TopologyAffinityError",
    ),
)
# A container runtime could not start what a container should run.
_NOT_STARTED = "StartError"
_NO_PROGRAM = re.compile("no such file|not found", re.IGNORECASE)
_PREEMPTED = ("PreemptionByScheduler", "Preempting")
_TAINTED = "DeletionByTaintManager"
_NODE_GONE = ("DeletionByPodGC", "NodeLost")


class Part(StrEnum):
    """Of what something is said."""

    SERVER = "server"
    GENERATOR = "generator"
    TIER = "tier"
    SCRIPT = "script"
    """The image that a generator takes its script from."""


@dataclass(frozen=True)
class Problem:
    """What is wrong: a CamelCase reason and a message.

    `fatal` means that waiting longer does not help; other problems may mend themselves until the
    start-up time-out. `part` is what it is wrong with. What `passes` is waited for longer than a
    start-up may take: nobody has said that it is for good.
    """

    reason: str
    message: str
    fatal: bool = False
    part: Part = Part.SERVER
    passes: bool = False

    def of(self, part: Part) -> Problem:
        """Return the same problem, of another part."""
        return replace(self, part=part)


def diagnose(
    what: str, pods: Sequence[PodView], now: datetime, *, own_image: bool = False
) -> Problem | None:
    """Return what is wrong with the newest pod of a component, or None.

    `what` names the component in messages, such as "server axum". With `own_image` it is a server
    with an image of its own, beside which a user and folders can be written, as they can beside
    that of each service.
    """
    return _diagnose_pod(what, pods[-1], now, own_image) if pods else None


def stands(pods: Sequence[PodView]) -> bool:
    """Return whether the one pod of a component is there and ready."""
    return sum(pod.live for pod in pods) == 1 and pods[-1].live and pods[-1].ready


def too_many(what: str, pods: Sequence[PodView]) -> Problem | None:
    """Return that several pods of a component live where a run has one, or None.

    Behind one Service they would be measured as one: twice the limits of a server, or half of the
    rows in another database.
    """
    names = sorted(pod.name for pod in pods if pod.live)
    if len(names) < 2:
        return None
    return Problem(
        "ReplicasChanged",
        f"{what} has {len(names)} pods where the run has one: {', '.join(names)}; an admission "
        "rule or an autoscaler gives its Deployment more `replicas`, or a pod of others has its "
        "labels",
    )


def scaled_to_none(what: str, workload: WorkloadView | None) -> Problem | None:
    """Return that somebody has taken the one pod off a tier's Deployment, or None."""
    if workload is None or workload.replicas > 0:
        return None
    return Problem(
        "ReplicasChanged",
        f"{what} has no pod, since Deployment {workload.name} has `replicas: 0`, and not by "
        "Laptime: what scales Deployments down, such as at night, has to leave this one out",
    )


def diagnose_refusal(
    what: str, workload: WorkloadView | None, unsaid: Sequence[str] = ()
) -> Problem | None:
    """Return why the API server refuses a Deployment's pods (quota, Pod Security), or None.

    Its controller tries again and again, and somebody may make room. What a pod says of resources
    stays as it is, so where that is refused nobody waits; `unsaid` are the parts of the run that
    say nothing of it.
    """
    if workload is None or workload.refused_message is None:
        return None
    said = f"the pod of {what} was refused: {workload.refused_message}"
    wrong = bool(_RESOURCES_WRONG.search(workload.refused_message))
    unsayable = _EPHEMERAL in workload.refused_message
    if wrong and unsaid and (not unsayable or _SAYABLE.search(workload.refused_message)):
        said = f"{said}. {say_resources(unsaid)}"
    if wrong and unsayable:
        said = (
            f"{said}. No run says {_EPHEMERAL}: a LimitRange for containers with a default of it, "
            "enough for the data of Postgres, gives it to all of them"
        )
    return Problem("PodRefused", said, fatal=wrong)


def say_resources(unsaid: Sequence[str]) -> str:
    """Return what to write where a namespace bounds the resources of its pods."""
    return (
        f'Write resources: {{cpu: "1", memory: 512Mi}}, with what it needs, for '
        f"{', '.join(unsaid)}: a ResourceQuota or a LimitRange may want both of all pods"
    )


def taken_away(what: str, pods: Sequence[PodView]) -> Problem | None:
    """Return why a pod that should be there goes or went, by no doing of its own; None if none did.

    For pods that the run itself does not want to go.
    """
    for pod in pods:
        if pod.pod_reason == "Evicted":
            return _evicted(what, pod)
        reason, words = pod.disruption or (pod.pod_reason or "", pod.pod_message or "")
        said = f" ({words.strip()})" if words else ""
        where = f" on node {pod.node}" if pod.node else ""
        if reason in _PREEMPTED:
            text = f"the pod of {what} had to make room for one of a higher priority{said}"
            return Problem("Preempted", text, fatal=True)
        if reason == _TAINTED:
            text = (
                f"the pod of {what} had to leave node {pod.node or '?'}, which does not answer any "
                f"more or got a taint, as a spot machine that is taken back{said}"
            )
            return Problem("NodeLost", text, fatal=True)
        if reason in _NODE_GONE or pod.marked_unready:
            text = f"the node {pod.node or '?'} of the pod of {what} does not answer any more{said}"
            return Problem("NodeLost", text, fatal=True)
        if reason in _NODE_REFUSALS:
            text = f"the pod of {what}{where} was refused or ended by its node: {reason}{said}"
            return Problem("NodeRefused", text, fatal=True)
        if reason == "EvictionByEvictionAPI":
            text = f"the pod of {what}{where} was evicted, as when a node is drained{said}"
            return Problem("Drained", text, fatal=True)
        if pod.deleting:
            text = f"the pod of {what}{where} was deleted, and not by Laptime"
            return Problem("PodDeleted", text, fatal=True)
    return None


def words_lost(what: str, pods: Sequence[PodView]) -> Problem | None:
    """Return that a component's newest pod ended by itself and its words are not there, or None.

    For images of ours, which always say something: where nothing came, the node has lost it.
    """
    for container in pods[-1].own if pods else ():
        if container.exit_code == 0 and _copied(pods[-1], container):
            # What has copied all says nothing.
            continue
        if container.exit_code in range(_SIGNALS) and not container.exit_message:
            text = f"{what} ended with exit code {container.exit_code}, and what it said is lost"
            return Problem("LogMissing", f"{text}: look at the disk of node {pods[-1].node}")
    return None


def late(
    what: str,
    pods: Sequence[PodView],
    kubelets: Mapping[str, Hearing],
    limit_seconds: float,
    now: datetime,
    *,
    own_image: bool = False,
) -> Problem | None:
    """Return why a component's newest pod is not ready, once that has taken too long; else None.

    `what` and `own_image` are those of `diagnose`.

    The server's own time begins when its container runs: what comes before is the cluster's time,
    and what nobody hears of a kubelet that stands still is nobody's.
    """
    if not pods:
        return None
    pod = pods[-1]
    age = pod.age(now)
    if pod.ready or age < limit_seconds:
        return None
    problem = diagnose(what, pods, now, own_image=own_image)
    stuck = problem and Problem(problem.reason, problem.message, fatal=True)
    if not pod.containers and pod.acknowledged is None and pod.node is None:
        text = f"no scheduler has placed the pod of {what} within {age:.0f} s"
        return stuck or Problem("NotScheduled", text)
    hearing = kubelets.get(pod.name, Hearing())
    if hearing.silent:
        return Problem(
            "NodeSilent",
            f"the kubelet of node {pod.node} does not answer, so nobody knows how the pod of "
            f"{what} is: look at the node",
        )
    running = pod.running_for(now)
    if stuck is not None or running is None:
        return stuck or Problem(
            "NotStarted",
            f"the container of {what} was not started on node {pod.node} within {age:.0f} s"
            f"{_waiting(pod)}: its image may still be being pulled, for which a longer "
            "spec.startupTimeout (at most 10m) gives it the time; else look at the events of its "
            "pod and at the node",
        )
    if running < limit_seconds or hearing.heard_seconds < _HEARD_SECONDS:
        return None
    return not_ready(what, pods, limit_seconds)


def _waiting(pod: PodView) -> str:
    reasons = {one.waiting_reason for one in pod.containers if one.waiting_reason}
    return f" ({', '.join(sorted(reasons))})" if reasons else ""


def without_pod(
    what: str, job: WorkloadView, unsaid: Sequence[str], now: datetime
) -> Problem | None:
    """Return that the controller of Jobs makes no pod for one; None while it is about to.

    Only its events say why, which the operator may not read.
    """
    if job.made or job.deleting or job.age(now) < _PATIENCE_SECONDS:
        return None
    said = (
        f"{what} has no pod: kubectl describe job {job.name} says why, or kubectl get events once "
        "that is gone"
    )
    return Problem("PodMissing", f"{said}. {say_resources(unsaid)}" if unsaid else said)


def may_be_pulled_yet(pod: PodView, container: ContainerView) -> bool:
    """Return whether a registry may be away, or busy: it has not said that it has no such image."""
    said = container.waiting_message or ""
    if _NOT_NOW.search(said):
        return True
    for_good = container.waiting_reason == "ErrImageNeverPull" or pod.missing_secrets
    return not (for_good or _NEVER_PULLED.search(said))


def not_ready(what: str, pods: Sequence[PodView], timeout_seconds: float) -> Problem:
    """Return the problem of a component that did not get ready in time without saying why."""
    if not pods:
        return Problem(
            "PodMissing",
            f"{what} has no pod after {timeout_seconds:g} s: kubectl get events says why, unless "
            "the cluster's controller manager stands still",
            fatal=True,
        )
    return Problem(
        "NotReady",
        f"{what} was not ready after {timeout_seconds:g} s: its container runs, but its readiness "
        "probe fails. Look at its log; a server must answer 200 at /healthz on its PORT, or at its "
        "healthPath and healthPort, a service as its ready says (spec.startupTimeout gives it "
        "longer)",
        fatal=True,
    )


def _diagnose_pod(what: str, pod: PodView, now: datetime, own_image: bool) -> Problem | None:
    if pod.pod_reason == "Evicted":
        return _evicted(what, pod)
    if pod.gates and pod.age(now) >= _PATIENCE_SECONDS:
        several = len(pod.gates) > 1
        return Problem(
            "NotScheduled",
            f"the pod of {what} waits behind the scheduling gate{'s' if several else ''} "
            f"{' and '.join(pod.gates)}: whoever set {'them' if several else 'it'} has to let it "
            "go, or to leave the run's namespace out",
        )
    if pod.unschedulable_message and pod.age(now) >= _PATIENCE_SECONDS:
        return _unschedulable(what, pod, pod.unschedulable_message)
    for container in pod.containers:
        if container.name in pod.altered.added:
            problem = _of_a_stranger(what, pod, container, now)
        else:
            own = own_image or pod.component.startswith(SIDE_PREFIX)
            advised = own and container.name == pod.main
            problem = _diagnose_container(what, pod, container, now, advised)
        if problem:
            return problem.of(Part.SCRIPT) if container.name == SCRIPT_CONTAINER else problem
    return None


def _of_a_stranger(
    what: str, pod: PodView, container: ContainerView, now: datetime
) -> Problem | None:
    """Return what is wrong with a container that is nobody's doing but the cluster's."""
    problem = _diagnose_container(f"container {container.name}", pod, container, now)
    return problem and Problem(
        "AddedContainerFailed",
        f"the cluster added container {container.name} to the pod of {what}, and it does not get "
        f"on: {problem.message}",
        fatal=problem.fatal,
    )


def _unschedulable(what: str, pod: PodView, said: str) -> Problem:
    """Return why no node takes a pod, and what of its placement that is about."""
    groups = _groups_of_nodes(said)
    if pod.placement is None and not pod.bound:
        # It selects nodes of Linux and no others: those of Windows are none that could be opened.
        groups = [one for one in groups if not _UNSELECTED.fullmatch(one)] or groups
    closed = all(map(_CLOSED.fullmatch, groups))
    if pod.placement is None:
        of, more, tolerations = "", "add nodes", ""
    else:
        part = part_of(pod.component)
        rules = f"placements.{pod.placement}.{part} of Laptime's chart"
        if not (closed or pod.bound) and all(map(_OUTSIDE.fullmatch, groups)):
            return Problem(
                "PlacementWithoutNodes",
                f"placement {pod.placement} has no node for its {part}, so there is none for the "
                f"pod of {what}: {said}. The cluster's administrator gives nodes the labels, or "
                f"the placement the tolerations: {rules}",
            )
        of = f" of placement {pod.placement} ({part})"
        more = f"have nodes added that {rules} asks for"
        tolerations = f"; which taints are tolerated is in {rules}"
    if closed:
        return Problem(
            "NodesClosed",
            f"no node{of} takes the pod of {what}: {said}. Look at the taints of the nodes, and "
            f"whether they are cordoned or short of memory or disk{tolerations}",
        )
    bound = f" and has to go to {' or '.join(pod.bound)}" if of and pod.bound else ""
    return Problem(
        "Unschedulable",
        f"the pod of {what} fits on no node{of}{bound}: {said}. Ask for less in its resources, or "
        f"{more}",
    )


def _copied(pod: PodView, container: ContainerView) -> str | None:
    """Return what a container takes out of its image to be copied, in words; None: nothing."""
    if container.name == CARRIER_CONTAINER:
        return "the program that copies files of images"
    if pod.component == Component.POSTGRES:
        return sql_place(container.name)
    return "the script" if container.name == SCRIPT_CONTAINER else None


def _diagnose_copying(copied: str, pod: PodView, container: ContainerView) -> Problem | None:
    """Return why what is to be copied cannot be had; None: for no reason of its own."""
    started = container.exit_reason != _NOT_STARTED
    if container.name != CARRIER_CONTAINER:
        own_end = container.exit_code in range(1, _SIGNALS) or not started
        words = f"{copied} cannot be taken from its image {container.image}{_last_words(container)}"
    else:
        own_end = not started and bool(_NO_PROGRAM.search(container.exit_message or ""))
        words = (
            f"the image of the generator ({container.image}) has no program that copies files of "
            "another image: it is of an earlier release of Laptime"
        )
    reason = "SqlMissing" if pod.component == Component.POSTGRES else "ScriptMissing"
    return Problem(reason, words, fatal=True) if own_end else None


def _groups_of_nodes(message: str) -> list[str]:
    """Return what a scheduler says of each group of nodes that did not take a pod."""
    of_nodes = message.partition(" nodes are available: ")[2].partition(". ")[0].rstrip(".")
    return of_nodes.split(", ")


def _evicted(what: str, pod: PodView) -> Problem:
    message = pod.pod_message or ""
    reason = "StorageExceeded" if _WROTE_TOO_MUCH.search(message) else "Evicted"
    return Problem(reason, f"the pod of {what} was evicted: {message}", fatal=True)


def unexplained(pods: Sequence[PodView], now: datetime) -> bool:
    """Return whether a container was started again, and its kubelet may still say why."""
    return any(_unexplained(one, now) for one in (pods[-1].containers if pods else ()))


def _unexplained(container: ContainerView, now: datetime) -> bool:
    since = container.running_since
    young = since is not None and (now - since).total_seconds() < _TOLD_SECONDS
    return container.restarts > 0 and container.exit_code is None and young


def _diagnose_container(
    what: str, pod: PodView, container: ContainerView, now: datetime, advised: bool = False
) -> Problem | None:
    copied, waiting = _copied(pod, container), container.waiting_reason
    if copied and waiting is None and container.exit_code == 0:
        # It is done, and not for the first time where the node was started anew.
        return None
    what = copied or what
    image = container.image or pod.image
    if waiting == "InvalidImageName":
        return Problem(
            "InvalidImageName",
            f"the image of {what} ({image}) is not a valid reference: {container.waiting_message}",
            fatal=True,
        )
    if waiting in IMAGE_REASONS:
        return Problem(
            "ImagePullFailed",
            f"the image of {what} ({image}) cannot be pulled: "
            f"{container.waiting_message or waiting}. {_what_to_pull_with(pod)}",
            passes=may_be_pulled_yet(pod, container),
        )
    if waiting in CONFIG_REASONS and _DISK_FULL.search(container.waiting_message or ""):
        return Problem(
            "DiskFull",
            f"the container of {what} cannot be created, no space is left: look at the disk of "
            f"node {pod.node}",
        )
    if waiting in CONFIG_REASONS:
        said = container.waiting_message or waiting
        words = f"the container of {what} cannot be created: {said}"
        if secret := _secret_to_make(pod, said):
            return Problem("SecretMissing", f"{words}. {secret}")
        return Problem("ContainerConfigInvalid", f"{words}{_user_to_write(said)}")
    if container.exit_reason == "OOMKilled" and not container.limited:
        return Problem(
            "NodeOutOfMemory",
            f"{what} was killed because its node had no memory left; it has no limit of its own. "
            "Give it one in resources.memory, or make room on the node",
            fatal=True,
        )
    if container.exit_reason == "OOMKilled":
        return Problem(
            "OutOfMemory",
            f"{what} was killed because it needed more memory than its limit. Give it more in "
            "resources.memory",
            fatal=True,
        )
    untold = container.restarts > 0 and container.exit_code is None
    # A kubelet that has seen how it ended says so. One whose container runtime was started anew
    # may have nothing to say for ever.
    for_good = untold and container.running and not _unexplained(container, now)
    if container.exit_reason in _UNSEEN_ENDS or for_good:
        return Problem(
            "NodeLost",
            f"the container of {what} ended and nobody saw how: node {pod.node} or its container "
            "runtime was started anew",
            fatal=True,
        )
    if untold:
        # Just started again: for a moment the kubelet does not say how it ended.
        return Problem("Crashed", f"{what} was started again")
    enough = container.restarts >= _CRASHES_ENOUGH
    # With 0 they are the answer that it was asked for, with a server's words in it.
    if container.exit_code and _DISK_FULL.search(container.exit_message or ""):
        return Problem(
            "DiskFull",
            f"{what} ended with exit code {container.exit_code} and says that no space is left: "
            f"look at the disk of node {pod.node}{_last_words(container)}",
            fatal=enough,
        )
    if copied and (problem := _diagnose_copying(copied, pod, container)):
        return problem
    if enough or waiting == "CrashLoopBackOff":
        return Problem(
            "CrashLoop",
            f"{what} ends again and again (exit code {container.exit_code}"
            f"{_last_words(container)}){_rule_of_pods(container) if advised else ''}",
            fatal=enough,
        )
    if container.restarts > 0:
        return Problem(
            "Crashed",
            f"{what} ended with exit code {container.exit_code}{_last_words(container)}"
            f"{_rule_of_pods(container) if advised else ''}",
        )
    return None


def _what_to_pull_with(pod: PodView) -> str:
    if pod.missing_secrets:
        return (
            f"There is no Secret {' and no Secret '.join(pod.missing_secrets)} in the run's "
            "namespace, with which it is to be pulled: create it with kubectl create secret "
            f"docker-registry {pod.missing_secrets[0]}, or take it out of spec.imagePullSecrets "
            "of the run, or images.pullSecrets of the chart"
        )
    if pod.pull_secrets:
        return (
            "Check its name and tag, and that one of the Secrets with which it is pulled is for "
            f"its registry: {', '.join(pod.pull_secrets)}"
        )
    return (
        "Check its name and tag, and that the cluster may pull it; a private registry needs a "
        "Secret in spec.imagePullSecrets"
    )


def _secret_to_make(pod: PodView, said: str) -> str | None:
    """Return how to make what a run takes of a Secret; None: it is not that which is missing."""
    no_secret, no_key = _NO_SECRET.search(said), _NO_KEY.search(said)
    if no_secret and (keys := [key for secret, key in pod.secret_keys if secret == no_secret[1]]):
        # What it lacks then, the kubelet says one after the other.
        literals = " ".join(f"--from-literal={key}='…'" for key in keys[:_MOST_KEYS])
        return (
            f"There is no Secret {no_secret[1]} in the run's namespace: make it, with what the run "
            f"takes of it, by kubectl create secret generic {no_secret[1]} {literals}"
        )
    if no_key and (no_key["secret"], no_key["key"]) in pod.secret_keys:
        patch = f'{{"stringData": {{"{no_key["key"]}": "…"}}}}'
        return (
            f"Secret {no_key['secret']} in the run's namespace has no key {no_key['key']}, and the "
            f"run takes no other for this: add it by kubectl patch secret {no_key['secret']} -p "
            f"'{patch}'"
        )
    return None


def _user_to_write(said: str) -> str:
    """Return what to write where a kubelet cannot tell that an image does not run as root."""
    if "runAsNonRoot" not in said:
        return ""
    return ". No container runs as root: give its image a numeric USER, or write user beside image"


def _rule_of_pods(container: ContainerView) -> str:
    """Return the rule of pods that the words of a container seem to be about."""
    said = container.exit_message or ""
    if found := _READ_ONLY.search(said):
        rule = (
            "all but /tmp and the folders of writable is read-only. Name there, beside image, what "
            "it writes to"
        )
    elif found := _NOT_ALLOWED.search(said):
        rule = (
            "it runs without root and capabilities. Have it listen on a port from 1024 on, and let "
            "its user have the files that it needs, or write another user beside image"
        )
    return f". It says {found[0]!r}: {rule}" if found else ""


def _last_words(container: ContainerView) -> str:
    if not container.exit_message:
        return ""
    text = plain_lines(container.exit_message)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return f"; its last words: {' | '.join(lines[-3:])[-300:]}" if lines else ""
