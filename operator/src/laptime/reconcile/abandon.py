"""The last resort: a run that nobody can go on with ends, and what it has deployed goes. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.status import ConditionStatus, ConditionType, Progress, RunStatus, State
from laptime.api.storage import Storage, version_to_store
from laptime.kube import KubeError
from laptime.manifests.objects import COMPONENT_LABEL, Component, known_as
from laptime.manifests.result import RESULTS
from laptime.reconcile.actions import Delete
from laptime.reconcile.children import Children
from laptime.reconcile.views import format_time, understood

_LONGEST_TEXT = 500


class StatusNotWritten(KubeError):
    """The status of a run could not be written, whatever it was to say."""

    @property
    def counts(self) -> bool:
        """Whether it is about this run: its size, its changes, or who may write what it says.

        A server error, or no answer, is as likely about all that is stored.
        """
        return self.refused or self.conflict or "request is too large" in self.message


class StatusNotInSchema(StatusNotWritten):
    """The CustomResourceDefinition of the cluster has no place or word for what the status says.

    That is for an administrator to mend, and no fault of the run, which nobody gives up for it.
    """

    @property
    def refused(self) -> bool:
        """Not as something that is wrong with it, whatever an API server calls it."""
        return False

    @property
    def counts(self) -> bool:
        """Others may be written, which say less."""
        return True


def not_written(error: KubeError) -> StatusNotWritten:
    """Return why a status could not be written, by what came of it."""
    if not error.not_in_schema:
        return StatusNotWritten(error.status, error.reason, error.message)
    message = (
        "the CustomResourceDefinition of BenchmarkRun in this cluster is older than the operator, "
        "and has no place or word for what it says of the run. Apply those of its version, by the "
        "chart (crds.enabled) or with kubectl apply --server-side -f crds/ in its checkout: the "
        f"run goes on by itself then. The API server says: {error.message}"
    )
    return StatusNotInSchema(error.status, "StatusNotInSchema", message)


def abandoned(manifest: dict[str, Any], error: Exception, now: datetime) -> RunStatus:
    """Return the status of a run that fails with an error that nobody expected.

    It keeps what the status said before, as far as that can be understood and is so of a run that
    is over.
    """
    generation = manifest["metadata"].get("generation", 1)
    old = understood(manifest)
    text = f"{type(error).__name__}: {error}"[:_LONGEST_TEXT]
    why = f"the operator cannot go on with this run: {text}"
    verdicts = (
        Verdict(ConditionType.SUCCEEDED, ConditionStatus.FALSE, "InternalError", why),
        Verdict(ConditionType.PROGRESSING, ConditionStatus.FALSE, "Finished", "the run is over"),
    )
    moment = format_time(now)
    return old.model_copy(
        update={
            "state": State.FAILED,
            "observed_generation": generation,
            "finished_at": moment,
            "current_trial": None,
            "current_beside": None,
            "progress": old.progress and Progress.ended(old.progress.completed, old.progress.total),
            # What was said of the figures is of a run that goes on, and more is not coming.
            "verdict": f"{why}; {old.verdict}" if old.verdict else None,
            "step_started_at": None,
            "storage": Storage(version=version_to_store(old.storage)),
            "conditions": merge_conditions(old.conditions or [], verdicts, generation, moment),
        }
    )


def deployed(children: Children) -> list[Delete]:
    """Return the deletions of everything that a run has in the cluster but what it measured.

    Its policy stays: it is about pods that have yet to end, and goes with the run.
    """
    return [
        Delete(kind, known_as(one["metadata"]))
        for kind in ("Job", "Deployment", "Service", "ConfigMap")
        for one in children.of(kind)
        if one["metadata"]["labels"].get(COMPONENT_LABEL) not in {*RESULTS, Component.SCRIPT}
    ]
