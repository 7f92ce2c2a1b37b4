"""What of a decision cannot be taken back: nobody makes it by what was heard long ago. Pure."""

from __future__ import annotations

from laptime.api.results import TrialOutcome, TrialResult
from laptime.api.status import ConditionStatus, ConditionType, ServerState
from laptime.kube import Manifest
from laptime.manifests.objects import COMPONENT_LABEL, Component
from laptime.manifests.result import read_result
from laptime.reconcile.actions import Action, Create, Decision
from laptime.reconcile.views import Run


def grave(run: Run, decision: Decision) -> bool:
    """Whether a decision blames somebody or gives something up."""
    old = run.status
    succeeded = decision.status.condition(ConditionType.SUCCEEDED)
    if succeeded is not None and succeeded.status is ConditionStatus.FALSE:
        before = old.condition(ConditionType.SUCCEEDED)
        if before is None or before.status is not ConditionStatus.FALSE:
            return True
    lost = {(one.trial, one.attempt) for one in old.lost_attempts or []}
    if {(one.trial, one.attempt) for one in decision.status.lost_attempts or []} - lost:
        return True
    out = {one.name for one in old.servers or [] if one.state is ServerState.FAILED}
    for server in decision.status.servers or []:
        if server.state is ServerState.FAILED and server.name not in out:
            return True
    results = filter(None, map(stored_result, decision.actions))
    return any(_doubted(run, read_result(manifest)[0]) for manifest in results)


def stored_result(action: Action) -> Manifest | None:
    """Return the object in which an action stores a result for ever, or None."""
    if not isinstance(action, Create) or action.manifest["kind"] != "ConfigMap":
        return None
    labels = action.manifest["metadata"]["labels"]
    stored = labels[COMPONENT_LABEL] == Component.RESULT and "immutable" in action.manifest
    return action.manifest if stored else None


def _doubted(run: Run, result: TrialResult) -> bool:
    """Whether somebody else than the server may have had a hand in a result."""
    figures = result.figures
    if not run.spec.server(result.server).deployed:
        # Its pods are others' to start again and to replace.
        return True
    return result.outcome is TrialOutcome.FAILED or (figures is not None and figures.errors > 0)
