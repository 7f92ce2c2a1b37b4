"""What a Job rests on: the pods that it was begun on, so that no clocks have to tell.

Creation times have whole seconds, and the clocks of nodes differ: a pod that takes another one's
place in the same second looks as if it had been there from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from laptime.manifests.objects import PODS_ANNOTATION
from laptime.reconcile.views import PodView, WorkloadView


def on_these_pods(
    job: dict[str, Any], pods: Iterable[PodView], more: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a Job that says on which pods it was begun, and how often each had been restarted.

    `more` is what else it rests on, in words without commas.
    """
    said = ",".join(sorted([*(_known_by(pod) for pod in pods if pod.live), *more]))
    metadata = job["metadata"]
    annotations = {**metadata.get("annotations", {}), PODS_ANNOTATION: said}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


def new_since(pod: PodView, job: WorkloadView) -> bool:
    """Return whether a pod came, or was started again, after a Job was begun on others."""
    if job.pods is not None:
        return pod.live and _known_by(pod) not in job.pods
    # A Job of an earlier version.
    return pod.last_started is not None and pod.last_started > job.created


def came_since(pod: PodView, job: WorkloadView) -> bool:
    """Return whether a pod was not there yet, however often restarted, when a Job was begun."""
    if job.pods is None:
        return pod.created > job.created
    return pod.live and pod.name not in {known.partition("/")[0] for known in job.pods}


def _known_by(pod: PodView) -> str:
    return f"{pod.name}/{pod.restarts}"
