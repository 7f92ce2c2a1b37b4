"""Reasons why a pod does not come up."""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.reasons.reason import Blame, Reason, Section

PODS = Section(
    "A pod that does not come up",
    "Of a tier these end the run, of a server they put it out. What may mend itself, such "
    "as a full node, is waited for until `startupTimeout` (30 s).",
    (
        Reason(
            "ImagePullFailed",
            "the image cannot be pulled: no such name or tag, no rights, or the registry is out of "
            "reach",
            "check name and tag; `spec.imagePullSecrets`, or `images.registry` and "
            "`images.pullSecrets` of the chart, with the Secrets in the namespace of the run; the "
            "message says which of them is not there",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "AddedContainerFailed",
            "a container that the cluster added to the pod, such as the proxy of a mesh, does not "
            "come up or crashes; the message has its name",
            "have whatever adds it leave the run's namespace, or these pods, alone ([what clusters "
            "add](real-cluster.md#what-clusters-add-to-pods))",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "InvalidImageName",
            "what stands in `image`, or follows from the chart's values, is no image reference",
            "write one such as `registry.example/team/server:1.2`",
            blame=Fault.RUN,
        ),
        Reason(
            "SqlMissing",
            "the image of a part of schema or seed has not the file that the scenario names, or "
            "more than may be copied; or the generator's image is too old to take it from there; "
            "the message names the part, and says which",
            "look at `image` and `file` of that part, and at what the image has there "
            "([scenarios](scenarios.md#sql-in-an-image))",
            blame=Fault.RUN,
        ),
        Reason(
            "Unschedulable",
            "the pod fits on no node: too little free CPU or memory, taints, selectors",
            "ask for less in `resources`, make room, or add nodes ([a real "
            "cluster](real-cluster.md))",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "PodRefused",
            "the API server refuses the pod: a ResourceQuota, a LimitRange, an admission rule; the "
            "message has its words. A full quota is waited for; one that wants limits which the "
            "run does not say ends a run of which nothing was measured yet",
            "make the quota larger, or write `resources` for the parts that the message names "
            "([what clusters ask of pods](real-cluster.md#what-clusters-ask-of-pods))",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "ObjectRefused",
            "the API server refuses to store an object of the run, for half of `startupTimeout` by "
            "now, and for a minute where a quota is full; the message names it and says why: an "
            "admission rule, a quota of objects, a right that was taken away; or it does not say "
            "for five minutes whether it stores it, as where an admission webhook does not answer",
            "change the rule, make room, mend the webhook, or look at [what the operator may "
            "do](permissions.md)",
        ),
        Reason(
            "NameTaken",
            "somebody else's object in the namespace has a name that an object of the run must "
            "have; the message names it. It is left as it is, and the run ends",
            "delete or rename that object if nobody needs it, or give the run another name",
        ),
        Reason(
            "NotDeployed",
            "the tiers did not come to stand in twice `startupTimeout` and three minutes; the "
            "message names what is changed back again and again, if anything is",
            "look who else changes these objects: a controller, an admission rule",
        ),
        Reason(
            "PodsInTheWay",
            "a trial or a check could not begin for minutes, since pods of an earlier one did not "
            "end",
            "look at the nodes of the pods that the message names, and whether the cluster's "
            "controller manager runs",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "ReplicasChanged",
            "a server or a tier has several pods where the run has one, which would be measured as "
            "one, or a tier's Deployment was scaled to none; the message names them",
            "exempt the namespace, or what has the label `laptime.dev/run`, from the admission "
            "rule or the autoscaler that gives Deployments other `replicas`; take the labels off "
            "what is no pod of the run",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "PodMissing",
            "no pod was made in time, and nobody says why",
            "look at `kubectl get events`, since an admission rule, a LimitRange or a quota may "
            "refuse it, and whether the cluster's controller manager runs",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "ContainerConfigInvalid",
            "the container cannot be created, such as an image that must run as root or names its "
            "user",
            "give the image a numeric `USER` that is not 0, or write `user` beside `image` "
            "([contract](servers.md))",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "SecretMissing",
            "a Secret of the namespace that the run names in `env` of a server or in `credentials` "
            "of a service is not there, or has not the key that runs take of it; the message has "
            "both",
            "make it by the kubectl command in the message "
            "([variables from a Secret](servers.md#from-a-secret))",
            blame=Fault.CLUSTER,
            once_well=True,
        ),
        Reason(
            "NotReady",
            "its container runs and `/healthz`, or its `healthPath`, does not answer 200 in time",
            "look at its log; listen on `0.0.0.0:$PORT` (of IPv6 `[::]:$PORT`); write the "
            "`healthPath` and the `healthPort` that it has; give a slow starter or a slow pull a "
            "longer `startupTimeout`",
            blame=Blame.PART,
        ),
        Reason(
            "Crashed",
            "its container ended; it is started again",
            "look at the last words in the message; a second end makes it `CrashLoop`",
            blame=Blame.PART,
        ),
        Reason(
            "CrashLoop",
            "its container ends again and again",
            "mend what the last words in the message say (all but `/tmp` and `writable` is "
            "read-only, and nothing runs as root); try the image as in "
            "[servers](servers.md#try-it-without-a-cluster)",
            blame=Blame.PART,
        ),
        Reason(
            "OutOfMemory",
            "the kernel ended it at its memory limit",
            "give more `resources.memory`, or fewer workers",
            blame=Blame.PART,
        ),
        Reason(
            "NodeOutOfMemory",
            "the kernel ended it because the node had no memory left; the container has no limit of"
            " its own",
            "set `resources.memory`; make room on the node",
            blame=Fault.NODE,
            once_well=True,
        ),
        Reason(
            "StorageExceeded",
            "the kubelet ended the pod because it wrote more than it may, such as 1 GiB in `/tmp`",
            "write less",
            blame=Blame.PART,
        ),
    ),
)
