"""The CPU of tiers as each server has it: changed between trials, in the pods that stand.

Tiers of which all servers have the same are left alone. See
docs/decisions/0075-the-cpu-of-postgres-between-trials.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from laptime.api.resources import quantity
from laptime.api.server import Server
from laptime.api.status import State
from laptime.api.topology import SIZED_TIERS
from laptime.measure import Altered
from laptime.reconcile.actions import Resize
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView, ResizeRefused

_REASON = "TierNotResized"


@dataclass(frozen=True)
class _Sized:
    """A tier that has other CPU for one server than for another, in the trials of a server."""

    tier: str
    wanted: str
    shared: str | None
    """What the pod was deployed with."""
    claiming: tuple[PodView, ...]
    """The pods that say that the run's own Deployment has made them."""

    @property
    def pod(self) -> PodView | None:
        """The one that does; None where there are several: the operator sees no ReplicaSets."""
        return self.claiming[0] if len(self.claiming) == 1 else None

    @property
    def asked(self) -> bool:
        """Whether that is what the pod is to have."""
        return self.pod is not None and _asked(self.pod, self.wanted)

    @property
    def grows(self) -> bool:
        """Whether it gets more than it has."""
        has = self.pod.cpu_in_force or self.pod.cpu if self.pod is not None else None
        return has is None or quantity(self.wanted) > has

    @property
    def in_force(self) -> bool:
        """Whether the pod has it."""
        return self.pod is not None and self.asked and _in_force(self.pod, self.wanted, self.shared)


def tiers_sized(situation: Situation, server: str, purpose: str, left_alone: bool) -> bool:
    """Have tiers get the CPU that they have for a server; return whether that is in force.

    One after the other, those that get less first. Unless `left_alone`, something of an earlier
    trial still works with them as they were. What `size_problem` gives up for a purpose (a trial)
    is not asked for again: a refusal keeps all back that comes after it, so the failure too.
    """
    first = _first_that_differs(situation, server)
    if first is None:
        return True
    if left_alone and first.pod is not None and not first.asked:
        refused = _refused(situation, first.pod, first.wanted)
        problem = size_problem(situation, server, purpose)
        given_up = problem is not None and problem.fatal
        if not given_up and (refused is None or refused.may_pass):
            situation.actions.append(Resize(first.pod.name, first.pod.main, first.wanted))
    return False


def size_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return why a tier has not got the CPU that it has for a server; fatal when it will not.

    None once the Job of the purpose is there: it was in force then.
    """
    first = _first_that_differs(situation, server)
    if first is None or purpose in situation.observed.jobs:
        return None
    steps = ((State.VERIFYING, None), (State.RUNNING, purpose))
    waited = max(situation.step_seconds(*step) for step in steps)
    late = waited >= situation.patience_seconds
    pod, wanted = first.pod, first.wanted
    if pod is None or not pod.ready:
        return None
    if not first.asked:
        refused = _refused(situation, pod, wanted)
        if refused is not None:
            why = f"the API server refuses it: {refused.message}"
            certain = not refused.may_pass or waited >= situation.spec.startup_seconds
            return _problem(first, server, why, fatal=certain)
        # Somebody else changes what is asked for.
        has = f"it has {_said(pod.cpu)}, however often it is changed"
        return _problem(first, server, has, fatal=True) if late else None
    # What the kubelet says may still be about what was asked of it before.
    pending = pod.resize_pending if _heard(pod) else None
    if pending is None:
        why = "its kubelet does not say why"
        return _problem(first, server, why, fatal=True) if late else None
    reason, message = pending
    certain = reason == "Infeasible" and pod.observed_generation is not None
    late = certain or waited >= situation.spec.startup_seconds
    return _problem(first, server, f"{reason}: {message}", fatal=late)


def as_sized(situation: Situation, server: str, tier: str, pod: PodView) -> Altered:
    """Return what the cluster made of the pod of a tier, beside what the run wants it to have."""
    wanted, altered = _wanted(situation, tier, server), pod.altered
    if wanted is None:
        return altered
    # Those are told beside what it was deployed with.
    others = tuple(one for one in altered.resources if not one[0].startswith("a CPU "))
    has = (("limit", pod.cpu), ("request", pod.cpu_request))
    wrong = tuple(
        (f"a CPU {what} of {_said(cores)}", wanted)
        for what, cores in has
        if not _same(cores, wanted)
    )
    return replace(altered, resources=(*wrong, *others))


def _first_that_differs(situation: Situation, server: str) -> _Sized | None:
    """Return which tier is changed next: first those that get less, since others need that room."""
    differing = [one for one in _sized(situation, server) if not one.in_force]
    return min(differing, key=lambda one: one.grows, default=None)


def _sized(situation: Situation, server: str) -> Iterator[_Sized]:
    for tier in SIZED_TIERS:
        wanted = _wanted(situation, tier, server)
        if wanted is not None:
            shared = situation.spec.topology.cpu_of(tier)
            yield _Sized(tier, wanted, shared, _claiming(situation, tier))


def _wanted(situation: Situation, tier: str, name: str) -> str | None:
    """Return what a tier should have; None: what it was deployed with, which nobody changes."""
    if tier not in SIZED_TIERS or not any(_own(one, tier) for one in situation.spec.servers):
        return None
    return _own(situation.spec.server(name), tier) or situation.spec.topology.cpu_of(tier)


def _own(server: Server, tier: str) -> str | None:
    return server.topology.cpu_of(tier) if server.topology is not None else None


def _claiming(situation: Situation, tier: str) -> tuple[PodView, ...]:
    # Labels can be anybody's. So can the name of an owner, but then there are two such pods: the
    # Deployment makes one, and the next one when that is gone.
    made_by = re.compile(rf"{re.escape(situation.context.object_name(tier))}(-[a-z0-9]+)?")
    pods = situation.observed.pods_of(tier)
    return tuple(one for one in pods if one.live and made_by.fullmatch(one.owner or ""))


def _asked(pod: PodView, wanted: str) -> bool:
    return _same(pod.cpu, wanted) and _same(pod.cpu_request, wanted)


def _in_force(pod: PodView, wanted: str, shared: str | None) -> bool:
    if pod.cpu_in_force is None:
        # A kubelet older than Kubernetes 1.33 says nothing, and changes nothing either.
        return shared is not None and _same(pod.cpu, shared)
    # A cgroup driver may round up to whole hundredths, as systemd does.
    over = round(1000 * (pod.cpu_in_force - quantity(wanted)))
    return _heard(pod) and not pod.resizing and 0 <= over < 10


def _heard(pod: PodView) -> bool:
    """Return whether what the kubelet says is about the pod as it is now, as far as it tells."""
    return pod.observed_generation is None or pod.observed_generation >= pod.generation


def _refused(situation: Situation, pod: PodView, wanted: str) -> ResizeRefused | None:
    refusal = situation.observed.resize_refused
    same = refusal is not None and (refusal.pod, refusal.cpu) == (pod.name, wanted)
    return refusal if same else None


def _problem(of: _Sized, server: str, why: str, *, fatal: bool) -> Problem:
    # It is what this server asks for: the others can be measured.
    what = f"the {of.wanted} CPU that it has for server {server}"
    said = f"{SIZED_TIERS[of.tier]} has not got {what}: {why}"
    return Problem(_REASON, said, fatal=fatal)


def _same(cores: float | None, wanted: str) -> bool:
    return cores == quantity(wanted)


def _said(cores: float | None) -> str:
    return "nothing" if cores is None else f"{cores:g}"
