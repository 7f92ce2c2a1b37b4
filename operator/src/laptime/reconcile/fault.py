"""Whose fault it was that a trial measured nothing. Pure.

What happened is found by `diagnose` in what the API server shows, and by the generator in what it
prints; who answers for it says the closed list of reasons. A trial that was lost to anything but
its server or the run itself is made again.
"""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.loads import Load
from laptime.api.reasons import REASONS, Blame
from laptime.reconcile.diagnose import Part

_OF_PARTS = {
    Part.SERVER: Fault.SERVER,
    Part.GENERATOR: Fault.GENERATOR,
    Part.TIER: Fault.TIER,
    Part.SCRIPT: Fault.RUN,
}


def whose_fault(
    reason: str, part: Part, load: Load | None = None, *, once_well: bool = True
) -> Fault:
    """Return who answers for a trial, or for the check of a server, that came to nothing.

    `reason` is what happened, to the pod of which `part`, under which `load`. `once_well` says
    whether such a pod has come up before in this run. A reason that nobody knows comes from a
    generator of another version, or from a script: the run's.
    """
    known = REASONS.get(reason)
    if known is None or known.blame is None or (known.once_well and not once_well):
        return Fault.RUN
    if known.blame is Blame.PART:
        return _OF_PARTS[part]
    bound_by_requests = load and load.closed is not None and load.closed.requests
    if reason == "GeneratorTimedOut" and bound_by_requests:
        # It goes on for as long as the server needs: what users think is no part of its hour.
        return Fault.SERVER
    if known.blame is Blame.GENERATOR:
        return Fault.RUN if load and load.script is not None else Fault.GENERATOR
    return known.blame
