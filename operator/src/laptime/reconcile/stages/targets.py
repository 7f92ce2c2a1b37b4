"""A server that is a Service of the namespace: whether it can be driven, and stayed what it was."""

from __future__ import annotations

from collections.abc import Iterable

from laptime.api.status import ServerState, State
from laptime.manifests.target import reach_name, reach_policy
from laptime.reconcile.actions import Create
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import BEHIND, SERVICE, PodView, TargetView, WorkloadView

_NAMED = 3


def target_view(situation: Situation, server: str) -> TargetView:
    """Return the Service of a server; one that nobody has looked at is not there."""
    service = situation.spec.server(server).service
    name = service.name if service is not None else server
    return situation.observed.targets.get(server) or TargetView(name)


def target_pods(situation: Situation, server: str) -> list[PodView]:
    """Return the pods behind the Service of a server."""
    return list(target_view(situation, server).pods)


def target_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return why the Service of a server cannot be driven; fatal when its time is over."""
    view = target_view(situation, server)
    known = situation.server_leads_to(server)
    if view.target is not None and known is not None and view.target.fingerprint != known:
        return Problem(
            "ServiceChanged",
            f"Service {view.service} leads elsewhere than when its answers were checked (its "
            "selector or its ports were changed): what is measured now would be another server. "
            "Change it back, or apply the run under another name",
            fatal=True,
        )
    reason, message = view.refused or ("", "")
    if view.target is not None and not any(pod.ready for pod in view.pods):
        selector = ", ".join(f"{key}={value}" for key, value in view.target.selector.items())
        pods = ", ".join(pod.name for pod in view.pods[:_NAMED])
        there = f"of its pods {pods} none is" if pods else f"its selector {selector} matches none"
        reason = "ServiceNotReady"
        message = f"Service {view.service} has no pod that is ready: {there}. Look at its pods"
    if not reason:
        return None
    waits = reason in ("ServiceMissing", "ServiceNotReady")
    return Problem(reason, message, fatal=not waits or _waited_enough(situation, server, purpose))


def _waited_enough(situation: Situation, server: str, purpose: str) -> bool:
    checked = situation.server_state(server) is not ServerState.PENDING
    waited = (
        situation.step_seconds(State.RUNNING, purpose)
        if checked
        else situation.step_seconds(State.VERIFYING)
    )
    return waited >= situation.spec.startup_seconds


def reachable(situation: Situation, server: str, purpose: str) -> bool:
    """Return whether the Service of a server can be driven now, and see to it that it is reached.

    What it leads to is remembered before the run begins to rest on it.
    """
    target = target_view(situation, server).target
    if target is None or target_problem(situation, server, purpose) is not None:
        return False
    situation.remember_target(server, target.fingerprint)
    context = situation.context
    policy = reach_name(context, context.spec.server(server))
    if context.network is not None and policy not in situation.observed.network_policies:
        situation.actions.append(Create(reach_policy(context, context.spec.server(server))))
    return True


def target_words(situation: Situation, server: str) -> frozenset[str]:
    """Return what a Job of a server rests on beside the run's own pods; nothing if deployed."""
    if situation.spec.server(server).deployed:
        return frozenset()
    return target_view(situation, server).words


def target_changed(situation: Situation, server: str, job: WorkloadView) -> Problem | None:
    """Return what became of the Service of a server since a Job was begun; None: nothing.

    Whose doing it was nobody here knows: a crash, a rollout, an autoscaler, its owner.
    """
    view = target_view(situation, server)
    begun = {word for word in job.pods or () if word.startswith((BEHIND, SERVICE))}
    if begun == view.words:
        return None
    before, now = _pods_in(begun), _pods_in(view.words)
    restarted = [name for name in before.keys() & now.keys() if before[name] != now[name]]
    said = [
        f"{what} {', '.join(sorted(names)[:_NAMED])}"
        for what, names in (
            ("started again or replaced:", restarted),
            ("gone:", before.keys() - now.keys()),
            ("new:", now.keys() - before.keys()),
        )
        if names
    ]
    if not said:
        said = ["the Service itself was changed" if view.version else "the Service was deleted"]
    return Problem(
        "ServiceUnsteady",
        f"Service {view.service} did not stay as it was while {server} was measured: "
        f"{'; '.join(said)}",
    )


def _pods_in(words: Iterable[str]) -> dict[str, str]:
    """Return by the name of each pod which one it is, and how often it was started again."""
    behind = (word.removeprefix(BEHIND) for word in words if word.startswith(BEHIND))
    return {name: rest for name, _, rest in (word.partition("/") for word in behind)}
