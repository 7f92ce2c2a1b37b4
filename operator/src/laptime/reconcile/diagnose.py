"""Why a pod does not do what it should, in words that say what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from laptime.api.text import plain_lines
from laptime.reconcile.views import ContainerView, PodView, WorkloadView

# Start-up takes moments in which nothing is wrong yet: a pod that the scheduler has not seen, an
# image that failed to pull once. Before this age, only what cannot mend itself is a problem.
_PATIENCE_SECONDS = 4.0
_CRASHES_ENOUGH = 2

_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable")
_CONFIG_REASONS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class Problem:
    """What is wrong: a CamelCase reason and a message.

    `fatal` means that waiting longer does not help; other problems may mend themselves until the
    start-up time-out.
    """

    reason: str
    message: str
    fatal: bool = False


def diagnose(what: str, pods: Sequence[PodView], now: datetime) -> Problem | None:
    """Return what is wrong with the newest pod of a component, or None.

    `what` names the component in messages, such as "server axum".
    """
    return _diagnose_pod(what, pods[-1], now) if pods else None


def diagnose_refusal(what: str, workload: WorkloadView | None) -> Problem | None:
    """Return why the API server refuses a Deployment's pods (quota, Pod Security), or None."""
    if workload is None or workload.refused_message is None:
        return None
    return Problem(
        "PodRefused",
        f"the pod of {what} was refused: {workload.refused_message}",
        fatal=True,
    )


def not_ready(what: str, pods: Sequence[PodView], timeout_seconds: float) -> Problem:
    """Return the problem of a component that did not get ready in time without saying why."""
    if not pods:
        return Problem("PodMissing", f"{what} has no pod after {timeout_seconds:g} s", fatal=True)
    return Problem(
        "NotReady",
        f"{what} was not ready after {timeout_seconds:g} s: its container runs, but its readiness "
        "probe fails. Look at its log; a server must answer 200 at /healthz on its PORT "
        "(spec.startupTimeout gives it longer)",
        fatal=True,
    )


def _diagnose_pod(what: str, pod: PodView, now: datetime) -> Problem | None:
    age = (now - pod.created).total_seconds()
    if pod.pod_reason == "Evicted":
        return Problem("Evicted", f"the pod of {what} was evicted: {pod.pod_message}", fatal=True)
    if pod.unschedulable_message and age >= _PATIENCE_SECONDS:
        return Problem(
            "Unschedulable",
            f"the pod of {what} fits on no node: {pod.unschedulable_message}. Ask for less in its "
            "resources, or add nodes",
        )
    for container in pod.containers:
        problem = _diagnose_container(what, pod, container)
        if problem:
            return problem
    return None


def _diagnose_container(what: str, pod: PodView, container: ContainerView) -> Problem | None:
    waiting = container.waiting_reason
    if waiting == "InvalidImageName":
        return Problem(
            "InvalidImageName",
            f"the image of {what} ({pod.image}) is not a valid reference: "
            f"{container.waiting_message}",
            fatal=True,
        )
    if waiting in _IMAGE_REASONS:
        return Problem(
            "ImagePullFailed",
            f"the image of {what} ({pod.image}) cannot be pulled: "
            f"{container.waiting_message or waiting}. Check its name and tag, and that the "
            "cluster may pull it",
        )
    if waiting in _CONFIG_REASONS:
        return Problem(
            "ContainerConfigInvalid",
            f"the container of {what} cannot be created: {container.waiting_message or waiting}",
        )
    if container.exit_reason == "OOMKilled":
        return Problem(
            "OutOfMemory",
            f"{what} was killed because it needed more memory than its limit. Give it more in "
            "resources.memory",
            fatal=True,
        )
    if container.restarts >= _CRASHES_ENOUGH or waiting == "CrashLoopBackOff":
        return Problem(
            "CrashLoop",
            f"{what} ends again and again (exit code {container.exit_code}"
            f"{_last_words(container)})",
            fatal=container.restarts >= _CRASHES_ENOUGH,
        )
    if container.restarts > 0 and container.exit_code is not None:
        return Problem(
            "Crashed",
            f"{what} ended with exit code {container.exit_code}{_last_words(container)}",
        )
    return None


def _last_words(container: ContainerView) -> str:
    if not container.exit_message:
        return ""
    text = plain_lines(container.exit_message)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return f"; its last words: {' | '.join(lines[-3:])[-300:]}" if lines else ""
