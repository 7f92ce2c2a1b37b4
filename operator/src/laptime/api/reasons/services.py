"""Reasons about a server that is a Service of the namespace."""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.reasons.reason import Reason, Section

SERVICES = Section(
    "A Service that is there already",
    "Of a server with [`service`](servers.md#a-service-that-is-there-already): Laptime looks at "
    "the Service and its pods, and touches neither.",
    (
        Reason(
            "ServiceMissing",
            "the namespace of the run has no Service of that name",
            "create it within `startupTimeout`, or write the name of one that is there",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "ServicePortMissing",
            "the Service has no TCP port of that number or name",
            "write one of those in the message: `port` is the Service's, not that of its pods",
            blame=Fault.RUN,
        ),
        Reason(
            "ServiceRefused",
            "the Service leads out of the namespace, nobody knows where, or to pods of a run",
            "write a Service with an address, and a selector of pods in the namespace of the run",
            blame=Fault.RUN,
        ),
        Reason(
            "ServiceNotReady",
            "no pod behind the Service is ready",
            "look at its selector and at its pods",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "ServiceChanged",
            "selector or port of the Service are not those that were checked",
            "change it back and raise `retry`, or apply the run under another name",
            blame=Fault.RUN,
        ),
        Reason(
            "ServiceUnsteady",
            "while it was measured or checked the Service was changed, or a pod behind it was "
            "started again, replaced, added or taken away. Whose doing that was nobody here knows",
            "look for a crash in its pods; measure it while nobody rolls it out, and with a fixed "
            "number of replicas",
            blame=Fault.CLUSTER,
        ),
    ),
)
