"""Reasons why a trial measured nothing."""

from __future__ import annotations

from laptime.api.attempts import Fault
from laptime.api.reasons.reason import Blame, Reason, Section

TRIALS = Section(
    "A trial that measured nothing",
    "What was lost to anything but the server or the run itself is [made "
    "again](measurement.md#whose-fault-it-was), three times in all. Then the run goes on "
    "with the next trial; the row says how many are missing, and whose fault it was.",
    (
        Reason(
            "TargetNotReachable",
            "the server of the trial was not healthy within `startupTimeout`",
            "as for `NotReady`; it was healthy when it was verified",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "ServerRestarted",
            "the server ended while it was measured",
            "look for a crash under load, or memory: its row has more",
            blame=Fault.SERVER,
        ),
        Reason(
            "TierRestarted",
            "Postgres, PgBouncer, HAProxy or another tier was started anew while a server was "
            "measured",
            "look why: memory, eviction, a node that was drained",
            blame=Fault.TIER,
        ),
        Reason(
            "TierNotResized",
            "Postgres, PgBouncer or HAProxy did not get the CPU that a server has of its own in it "
            "(`topology.postgres.cpu`, `topology.pgbouncer.cpu`, `topology.haproxy.cpu`): its node "
            "has no room, the API server refuses it (a LimitRange, a quota), the cluster is older "
            "than Kubernetes 1.33, or several pods say that they are it",
            "the message has the words of the kubelet or the API server: less CPU, a node with "
            "more, or a run of its own with that much in the `resources` of the tier; or it names "
            "the pods, of which the run's own Deployment has made one: delete the others",
            blame=Fault.RUN,
        ),
        Reason(
            "ServiceResetFailed",
            "a service of the scenario could not be brought back to its first state: its reset was "
            "answered otherwise than expected, its Job failed, or it took longer than "
            "`startupTimeout`. Before the first server is checked it ends the run",
            "look at `reset` of the service in the scenario; the message has what was answered",
            blame=Blame.PART,
            once_well=True,
        ),
        Reason(
            "ResetFailed",
            "Postgres refuses a statement of the scenario's `reset` or `warm` whenever it is "
            "asked, before a trial or before a server is checked",
            "mend the statement that the message quotes ([data](scenarios.md#data)); where it was "
            "right for the servers before, look whether one changes the schema",
            blame=Fault.RUN,
        ),
        Reason(
            "GeneratorLost",
            "a generator's pod was deleted, killed or lost, or one of several did not come",
            "look at the node; do not drain nodes while a run goes on; give the generators room",
            blame=Fault.GENERATOR,
        ),
        Reason(
            "PartnerFailed",
            "with `pairing: duet`, the server that was to be measured at the same time came to "
            "nothing, as the message quotes: what one of two measured alone says nothing of both",
            "see to the other server",
            blame=Fault.PARTNER,
        ),
        Reason(
            "PartnerMissing",
            "with `pairing: duet`, the trial of the other server is over, so that this one cannot "
            "be measured at the same time any more",
            "apply the run again under another name, if the repetitions that are left are too few",
            blame=Fault.PARTNER,
        ),
        Reason(
            "GeneratorTimedOut",
            "the load took longer than it ever should, and was ended",
            "fewer `requests`; for a script a longer `duration`",
            blame=Blame.GENERATOR,
        ),
        # Kubelets say that both are ready, and yet nobody gets there.
        Reason(
            "DatabaseNotReachable",
            "Postgres was ready, and the generator did not get there",
            "look at the cluster's network: Services, DNS, NetworkPolicies, API server. Where the "
            "message has `too many clients`, as for `TooManyConnections`",
            blame=Fault.CLUSTER,
        ),
        Reason(
            "TooManyConnections",
            "Postgres had no connection left for Laptime, for ten seconds: "
            "`topology.postgres.maxConnections`, the ten that are Laptime's own and those for the "
            "pod before were all in use",
            "a server has more open than `DATABASE_CONNECTIONS` in each of its `WORKERS` "
            "processes: mend it, or write a larger `maxConnections` "
            "([contract](servers.md#what-the-server-gets))",
            blame=Fault.RUN,
        ),
        Reason(
            "GeneratorFailed",
            "the generator gave up; its words are in the message",
            "do what they say; otherwise report it",
            blame=Blame.GENERATOR,
        ),
        Reason(
            "InvalidTrial",
            "the generator cannot send such a load; the message says what to write",
            "change the load; if the API server took it, report it. `unknown field` after an "
            "upgrade in the middle of the run: its generator is the one that it was begun with "
            "(`status.images`), so apply the run again under another name",
            blame=Fault.RUN,
        ),
        Reason(
            "ProtocolNotSpoken",
            "the server does not speak HTTP/2, or takes fewer streams of a connection at once than "
            "the load has",
            "write `streams` as the message says, or `protocol: http1`",
            blame=Fault.RUN,
        ),
        Reason(
            "NothingMeasured",
            "the generator ran the warm-up and nothing else",
            "give the script a scenario beside `warmup` ([own script](own-script.md))",
            blame=Fault.RUN,
        ),
        Reason(
            "ResultMissing",
            "the generator ended without a result; its last line is in the message",
            "report it",
            blame=Blame.GENERATOR,
        ),
        Reason(
            "LogMissing",
            "the node has lost what the generator printed: its log is empty, or it ended well and "
            "its result is not there; or what a tier or a check of answers said at its end. The "
            "container runtime may have been started anew, or the disk is full",
            "look at the container runtime of the node, and at its disk",
            blame=Fault.NODE,
        ),
        Reason(
            "ScriptFailed",
            "the script came to no good end: it cannot be read, `setup()` or `teardown()` threw, "
            "it ended itself, or took too much memory; the message has k6's words and the line",
            "mend the script where it says; `k6 run` shows the same",
            blame=Blame.GENERATOR,
        ),
        Reason(
            "ScriptMissing",
            "the image of a script has not what the load names, or more than may be copied of it; "
            "or the generator's image is too old to take it from there; the message says which",
            "look at `folder` and `key` of the load, and at what the image has there ([own "
            "script](own-script.md#an-image))",
            blame=Fault.RUN,
        ),
        Reason(
            "ResultDuplicate",
            "more than one result in a generator's log",
            "a script must not print lines that begin with `LAPTIME-`",
            blame=Fault.RUN,
        ),
        Reason(
            "ResultGarbled",
            "the result cannot be read: it was cut off, or something else wrote into the log",
            "as for `ResultDuplicate`; look whether the node rotates logs below 1 MB",
            blame=Blame.GENERATOR,
        ),
        Reason(
            "ResultTooLarge",
            "the result does not fit into a ConfigMap",
            "a shorter load, or fewer names of requests in a script",
            blame=Fault.RUN,
        ),
        Reason(
            "ResultVersionUnknown",
            "operator and generator are of different releases",
            "set `images.generator` to the release of the operator",
            blame=Fault.RUN,
        ),
        Reason(
            "ResultOfAnotherTrial",
            "the generator answered for another trial than it was started for",
            "report it",
            blame=Blame.GENERATOR,
        ),
    ),
)
