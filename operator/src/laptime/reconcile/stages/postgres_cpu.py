"""The CPU of Postgres as each server has it: changed between trials, in the pod that stands.

A run whose servers all have the same is left alone. See
docs/decisions/0075-the-cpu-of-postgres-between-trials.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from laptime.api.server import Server
from laptime.api.status import State
from laptime.manifests.pods import quantity
from laptime.manifests.postgres import postgres_name
from laptime.measure import Altered
from laptime.reconcile.actions import Resize
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView, ResizeRefused

_REASON = "TierNotResized"


def postgres_sized(situation: Situation, server: str, left_alone: bool) -> bool:
    """Have Postgres get the CPU that it has for a server; return whether that is in force.

    Unless `left_alone`, something of an earlier trial still works with it as it was.
    """
    wanted = _wanted(situation, server)
    if wanted is None:
        return True
    pod = _postgres(situation)
    if not left_alone or pod is None:
        return False
    if _asked(pod, wanted):
        return _in_force(situation, pod, wanted)
    refused = _refused(situation, pod, wanted)
    if refused is None or refused.may_pass:
        situation.actions.append(Resize(pod.name, pod.main, wanted))
    return False


def size_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return why Postgres has not got the CPU that it has for a server; fatal when it will not.

    None once the Job of the purpose is there: it was in force then.
    """
    wanted, pod = _wanted(situation, server), _postgres(situation)
    if wanted is None or pod is None or not pod.ready or purpose in situation.observed.jobs:
        return None
    steps = ((State.VERIFYING, None), (State.RUNNING, purpose))
    waited = max(situation.step_seconds(*step) for step in steps)
    late = waited >= situation.patience_seconds
    if not _asked(pod, wanted):
        refused = _refused(situation, pod, wanted)
        if refused is not None:
            why = f"the API server refuses it: {refused.message}"
            certain = not refused.may_pass or waited >= situation.spec.startup_seconds
            return _problem(wanted, server, why, fatal=certain)
        # Somebody else changes what is asked for.
        has = f"it has {_said(pod.cpu)}, however often it is changed"
        return _problem(wanted, server, has, fatal=True) if late else None
    if _in_force(situation, pod, wanted):
        return None
    # What the kubelet says may still be about what was asked of it before.
    pending = pod.resize_pending if _heard(pod) else None
    if pending is None:
        why = "its kubelet does not say why"
        return _problem(wanted, server, why, fatal=True) if late else None
    reason, message = pending
    certain = reason == "Infeasible" and pod.observed_generation is not None
    late = certain or waited >= situation.spec.startup_seconds
    return _problem(wanted, server, f"{reason}: {message}", fatal=late)


def as_sized(situation: Situation, server: str, pod: PodView) -> Altered:
    """Return what the cluster made of the pod of Postgres, beside what the run wants it to have."""
    wanted, altered = _wanted(situation, server), pod.altered
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


def _wanted(situation: Situation, name: str) -> str | None:
    """Return what Postgres should have; None: what it was deployed with, which nobody changes."""
    if not any(map(_own, situation.spec.servers)):
        return None
    return _own(situation.spec.server(name)) or _shared(situation)


def _shared(situation: Situation) -> str | None:
    tier = situation.spec.topology.postgres
    return tier.resources.cpu if tier is not None and tier.resources is not None else None


def _own(server: Server) -> str | None:
    own = server.topology.postgres if server.topology is not None else None
    return own.cpu if own is not None else None


def _postgres(situation: Situation) -> PodView | None:
    # Labels can be anybody's: changed is what the run's own Deployment has made.
    made_by = re.compile(rf"{re.escape(postgres_name(situation.context))}(-[a-z0-9]+)?")
    pods = [
        pod
        for pod in situation.observed.pods_of("postgres")
        if pod.live and made_by.fullmatch(pod.owner or "")
    ]
    return pods[-1] if pods else None


def _asked(pod: PodView, wanted: str) -> bool:
    return _same(pod.cpu, wanted) and _same(pod.cpu_request, wanted)


def _in_force(situation: Situation, pod: PodView, wanted: str) -> bool:
    if pod.cpu_in_force is None:
        # A kubelet older than Kubernetes 1.33 says nothing, and changes nothing either.
        shared = _shared(situation)
        return shared is not None and _same(pod.cpu, shared)
    # A cgroup driver may round up to whole hundredths, as systemd does.
    over = _thousandths(pod.cpu_in_force) - _thousandths(quantity(wanted))
    return _heard(pod) and not pod.resizing and 0 <= over < 10


def _heard(pod: PodView) -> bool:
    """Return whether what the kubelet says is about the pod as it is now, as far as it tells."""
    return pod.observed_generation is None or pod.observed_generation >= pod.generation


def _refused(situation: Situation, pod: PodView, wanted: str) -> ResizeRefused | None:
    refusal = situation.observed.resize_refused
    same = refusal is not None and (refusal.pod, refusal.cpu) == (pod.name, wanted)
    return refusal if same else None


def _problem(wanted: str, server: str, why: str, *, fatal: bool) -> Problem:
    # It is what this server asks for: the others can be measured.
    said = f"Postgres has not got the {wanted} CPU that it has for server {server}: {why}"
    return Problem(_REASON, said, fatal=fatal)


def _same(cores: float | None, wanted: str) -> bool:
    # The API server keeps whole thousandths, rounded up.
    return cores is not None and _thousandths(cores) == _thousandths(quantity(wanted))


def _thousandths(cores: float) -> int:
    return math.ceil(round(1000 * cores, 6))


def _said(cores: float | None) -> str:
    return "nothing" if cores is None else f"{cores:g}"
