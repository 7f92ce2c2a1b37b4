"""What the cluster did to a pod, by no doing of its own."""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.reasons.reason import Reason, Section

CLUSTER = Section(
    "What the cluster did",
    "Of a server's pod, a tier's or a generator's. No server answers for these: a check or "
    "a trial is [made again](measurement.md#whose-fault-it-was), and what only stands still"
    " is waited for, three and a half minutes with a `startupTimeout` of 30 s.",
    (
        Reason(
            "NodeSilent",
            "the kubelet of the pod's node does not answer, so nobody knows how the pod is",
            "look at the node and its kubelet",
            blame=Fault.NODE,
        ),
        Reason(
            "NodeLost",
            "the node of the pod does not answer any more or got a taint that the pod does not "
            "tolerate, or it or its container runtime was started anew",
            "look at the node",
            blame=Fault.NODE,
        ),
        Reason(
            "NodeRefused",
            "the node took the pod not at all, or ended it when it went down; the message has the "
            "kubelet's reason",
            "look at the node; give the pod's `resources` room",
            blame=Fault.NODE,
        ),
        Reason(
            "NodesClosed",
            "no node takes the pod at present: each is cordoned, not ready, short of memory or "
            "disk, or has a taint that the pod does not tolerate",
            "look at `kubectl describe nodes`; where nodes are tainted on purpose, the "
            "administrator gives a placement tolerations ([a real "
            "cluster](real-cluster.md#placements))",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "PlacementWithoutNodes",
            "no node is one of those that the placement has for a part of the run: none has the "
            "labels that it asks for, or those that have them are tainted",
            "the administrator labels nodes, or changes what the message names "
            "([placements](real-cluster.md#placements))",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "NotScheduled",
            "no scheduler has placed the pod, and none says why; or a scheduling gate keeps it "
            "back, as queues for pods do (Kueue), which the message names",
            "look whether the cluster's scheduler runs; have who sets the gate leave the namespace "
            "of runs out",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "NotStarted",
            "the pod has a node and its container was not started there in time",
            "look at the events of the pod, at the node's container runtime, and how long its "
            "images take: a longer `startupTimeout` gives them the time",
            blame=Fault.NODE,
        ),
        Reason(
            "Evicted",
            "the node ran short of memory or disk and the kubelet ended the pod",
            "make room on the node; set `resources` so that the pod is Guaranteed",
            blame=Fault.NODE,
        ),
        Reason(
            "DiskFull",
            "the container ended and says that there is no space left on its disk, which is the "
            "node's: what a pod writes too much ends it as `StorageExceeded`",
            "make room on the node",
            blame=Fault.NODE,
        ),
        Reason(
            "Drained",
            "somebody evicted the pod by the API, as `kubectl drain` does",
            "do not drain nodes while a run goes on",
            blame=Fault.NODE,
        ),
        Reason(
            "Preempted",
            "the pod had to make room for one of a higher priority",
            "give the runs nodes of their own",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "PodDeleted",
            "somebody else deleted the pod",
            "look who deletes pods in the namespace",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "PodsOverlapped",
            "a pod of an earlier trial had not ended when the next one was measured already, or "
            "a generator of one was gone only meanwhile, whose node had been taken for lost",
            "let the server, or the service, end on SIGTERM; look at its node, and delete one that "
            "is lost between trials",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "TierLost",
            "a tier stopped being ready while a server was measured",
            "look at its pod, its log, and its node: a kubelet that is started again says this of "
            "all its pods",
            blame=Fault.TIER,
        ),
        Reason(
            "InfrastructureFailed",
            "trials of two servers, one after the other, were lost in all their attempts (of three "
            "where none was ever measured): the run ends, with the figures it has",
            "mend what the message names, then apply the run again",
        ),
    ),
)
