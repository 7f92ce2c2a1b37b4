"""Whose fault it was that a trial measured nothing: one closed table. Pure.

What happened is found by `diagnose` in what the API server shows, and by the generator in what it
prints. Here it is only said who answers for it. A trial that was lost to anything but its server or
the run itself is made again.
"""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.loads import Load
from laptime.reconcile.diagnose import Part

# What became of a pod, whatever its part: its own doing has no place here.
_OF_PODS = {
    "Drained": Fault.NODE,
    "Evicted": Fault.NODE,
    "NodeLost": Fault.NODE,
    "NodeRefused": Fault.NODE,
    "NodeSilent": Fault.NODE,
    "NotStarted": Fault.NODE,
    "NotScheduled": Fault.CLUSTER,
    "PodDeleted": Fault.CLUSTER,
    "PodMissing": Fault.CLUSTER,
    "PodsInTheWay": Fault.CLUSTER,
    "PodsOverlapped": Fault.CLUSTER,
    "Preempted": Fault.CLUSTER,
    "InvalidImageName": Fault.RUN,
}
# Such a pod could be made before, when its server was checked; it is the cluster that has changed.
# Where none could be made yet, it is what the run asks for.
_ONCE_WELL = {
    "ContainerConfigInvalid": Fault.CLUSTER,
    "ImagePullFailed": Fault.CLUSTER,
    "NodeOutOfMemory": Fault.NODE,
    "PodRefused": Fault.CLUSTER,
    "Unschedulable": Fault.CLUSTER,
}
# What a container did itself: who answers for it follows from the part that it is.
_OWN_DOING = ("Crashed", "CrashLoop", "NotReady", "OutOfMemory", "StorageExceeded")
_OF_PARTS = {Part.SERVER: Fault.SERVER, Part.GENERATOR: Fault.GENERATOR, Part.TIER: Fault.TIER}
_OF_TRIALS = {
    "ServerRestarted": Fault.SERVER,
    "TierLost": Fault.TIER,
    "TierRestarted": Fault.TIER,
    "GeneratorLost": Fault.GENERATOR,
    # Kubelets say that both are ready, and yet nobody gets there.
    "TargetNotReachable": Fault.CLUSTER,
    "DatabaseNotReachable": Fault.CLUSTER,
    # Again it would be the same.
    "InvalidTrial": Fault.RUN,
    "NothingMeasured": Fault.RUN,
    "ResultDuplicate": Fault.RUN,
    "ResultTooLarge": Fault.RUN,
    "ResultVersionUnknown": Fault.RUN,
}
# What a generator says of itself. Where a script of the user's runs in it, it is the script's.
_OF_GENERATORS = (
    *("GeneratorFailed", "GeneratorTimedOut", "ResultGarbled", "ResultMissing"),
    "ResultOfAnotherTrial",
)


def whose_fault(
    reason: str, part: Part, load: Load | None = None, *, once_well: bool = True
) -> Fault:
    """Return who answers for a trial, or for the check of a server, that came to nothing.

    `reason` is what happened, to the pod of which `part`, under which `load`. `once_well` says
    whether such a pod has come up before in this run. A reason that nobody knows comes from a
    generator of another version, or from a script: the run's.
    """
    if reason in _OWN_DOING:
        return _OF_PARTS[part]
    if reason in _ONCE_WELL:
        return _ONCE_WELL[reason] if once_well else Fault.RUN
    bound_by_requests = load and load.closed is not None and load.closed.requests
    if reason == "GeneratorTimedOut" and bound_by_requests:
        # It goes on for as long as the server needs.
        return Fault.SERVER
    if reason in _OF_GENERATORS:
        return Fault.RUN if load and load.script is not None else Fault.GENERATOR
    return {**_OF_PODS, **_OF_TRIALS}.get(reason, Fault.RUN)


KNOWN = frozenset({*_OF_PODS, *_ONCE_WELL, *_OWN_DOING, *_OF_TRIALS, *_OF_GENERATORS})
"""Every reason for which a trial can fail."""
STANDSTILLS = frozenset(
    {"NodeLost", "NodeSilent", "NotScheduled", "NotStarted", "PodDeleted", "PodMissing"}
)
"""What a cluster has not done yet and may still do, once it is well again."""
