"""The CPU of Postgres as each server has it: changed between trials, in the pod that stands.

A run whose servers all have the same is left alone. See
docs/decisions/0075-the-cpu-of-postgres-between-trials.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

from laptime.api.server import Server
from laptime.api.status import State
from laptime.manifests.pods import quantity
from laptime.manifests.postgres import postgres_name
from laptime.measure import Altered
from laptime.reconcile.actions import Resize
from laptime.reconcile.diagnose import Problem
from laptime.reconcile.stages.situation import Situation
from laptime.reconcile.views import PodView


def postgres_sized(situation: Situation, server: str) -> bool:
    """Have Postgres get the CPU that it has for a server; return whether that is in force."""
    wanted = _wanted(situation, server)
    pod = _postgres(situation)
    if wanted is None or pod is None:
        # Without Postgres nothing is measured, whatever it should have.
        return True
    cores = quantity(wanted)
    if not _same(pod.cpu, cores):
        situation.actions.append(Resize(pod.name, pod.main, wanted))
        return False
    return _same(pod.cpu_in_force, cores)


def size_problem(situation: Situation, server: str, purpose: str) -> Problem | None:
    """Return why Postgres has not got the CPU that it has for a server; fatal when it is late."""
    wanted, pod = _wanted(situation, server), _postgres(situation)
    if wanted is None or pod is None or _same(pod.cpu_in_force, quantity(wanted)):
        return None
    reason, said = pod.resize_pending or ("", "")
    why = ": ".join(one for one in (reason, said) if one)
    steps = ((State.VERIFYING, None), (State.RUNNING, purpose))
    late = max(situation.step_seconds(*step) for step in steps) >= situation.spec.startup_seconds
    if not (late or why):
        return None  # it takes a second or two
    if not why and pod.cpu_in_force is None:
        why = "its kubelet does not say what is in force, which takes Kubernetes 1.33"
    return Problem(
        "TierNotResized",
        f"Postgres has not got the {wanted} CPU that it has for server {server}"
        f"{f': {why}' if why else ''}",
        # It is what this server asks for: the others can be measured.
        fatal=late or reason == "Infeasible",
    )


def as_sized(situation: Situation, component: str, altered: Altered) -> Altered:
    """Return what the cluster made of a pod, without the CPU that the run itself changes.

    That is compared above with what is wanted, before anything is measured.
    """
    if component != "postgres" or not _sizes_differ(situation):
        return altered
    kept = tuple(one for one in altered.resources if not one[0].startswith("a CPU "))
    return replace(altered, resources=kept)


def _sizes_differ(situation: Situation) -> bool:
    return any(map(_own, situation.spec.servers))


def _wanted(situation: Situation, name: str) -> str | None:
    """Return what Postgres should have; None: what it was deployed with, which nobody changes."""
    if not _sizes_differ(situation):
        return None
    tier = situation.spec.topology.postgres
    shared = tier.resources.cpu if tier is not None and tier.resources is not None else None
    return _own(situation.spec.server(name)) or shared


def _own(server: Server) -> str | None:
    own = server.topology.postgres if server.topology is not None else None
    return own.cpu if own is not None else None


def _postgres(situation: Situation) -> PodView | None:
    # Labels can be anybody's: changed is what the run's own Deployment has made.
    made_by = postgres_name(situation.context)
    pods = [
        pod
        for pod in situation.observed.pods_of("postgres")
        if pod.live and (pod.owner or "").startswith(made_by)
    ]
    return pods[-1] if pods else None


def _same(cores: float | None, wanted: float) -> bool:
    return cores is not None and math.isclose(cores, wanted, rel_tol=1e-6)
