"""Reasons why a run is not begun."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

BEFORE = Section(
    "Before anything is deployed",
    "",
    (
        Reason(
            "NamespaceNotEnabled",
            "the operator has no rights in the namespace of the run",
            "name the namespace in the chart's `runNamespaces`, or let an admin of it make the "
            "RoleBinding whose command is in the message, and name it in `watching.namespaces`, "
            "so that its pods are watched ([permissions](permissions.md#where-runs-are-allowed)); "
            "the run goes on by itself then",
        ),
        Reason(
            "CapExceeded",
            "the run is larger than runs of its namespace may be, or does not say how large it is; "
            "the message says which cap",
            "ask for less, split the run, or write the `resources` that the message names; the "
            "administrator of the chart may change `runs.caps` "
            "([caps](permissions.md#turns-and-caps))",
        ),
        Reason(
            "PlacementMissing",
            "the administrator has named no such placement; of a run that has begun, the one that "
            "it began with was taken away",
            "write one of those that the message names in `placement`, or leave it out "
            "([placements](real-cluster.md#placements))",
        ),
        Reason(
            "PlacementNotAllowed",
            "runs of this namespace may not use the placement",
            "write one of those that the message names in `placement`, or leave it out; the "
            "administrator of the chart may change `placements.NAME.namespaces`",
        ),
        Reason(
            "PlacementChanged",
            "the administrator has changed the placement while the run went on or paused: other "
            "figures would not be comparable with those that are measured",
            "apply the run under another name",
        ),
        Reason(
            "SpecNotUnderstood",
            "operator and CustomResourceDefinition are of different versions",
            "bring the chart up to date, with `crds.enabled`; or delete the run and apply it again",
        ),
        Reason(
            "StatusNotUnderstood",
            "somebody else than the operator has written the status of the run, or another version",
            "delete the run and apply it again; see who may write `benchmarkruns/status`, which no "
            "role of the chart gives to anybody but the operator",
        ),
        Reason(
            "StoredByNewerVersion",
            "an event and no condition: a newer version of Laptime has worked on this run, and this"
            " one (after a `helm rollback`) leaves it as it is",
            "bring the chart up to date again: the run goes on; or delete it and apply it again",
        ),
        Reason(
            "StatusNotWritten",
            "an event and no condition: for five minutes the API server has taken no status of "
            "the run, so what it has in the cluster was taken down and others have its turn; it is"
            " tried again after a quarter of an hour",
            "mend what the message says, such as a run that is too large for etcd with its "
            "annotations and `managedFields`, a policy that denies writes of its status, or "
            "somebody who changes it in each moment; or delete it and apply it again",
        ),
        Reason(
            "StatusNotInSchema",
            "an event and no condition: the CustomResourceDefinitions are older than the operator, "
            "as where they come by another way than the chart, and have no place for a field of "
            "the status, or no word for what stands there, which the message names; the run is not "
            "begun or not gone on with, and one that has a lane is as with `StatusNotWritten` "
            "after five minutes. It is said once in a quarter of an hour",
            "apply those of the operator's version ([how](real-cluster.md#upgrade-move-remove)): "
            "the run goes on by itself then, within a quarter of an hour",
        ),
        Reason(
            "LoadImpossible",
            "a load would use up the rows of the scenario, names an endpoint that it does not "
            "have, one that needs what another one captures, or one twice",
            "write what the message says, such as a number of requests "
            "([scenarios](scenarios.md#endpoints))",
        ),
        Reason(
            "ScenarioMissing",
            "neither the namespace has a BenchmarkScenario of that name, nor does one "
            "come with Laptime",
            "apply it within `startupTimeout`, or write another name ([scenarios](scenarios.md))",
        ),
        Reason(
            "ScenarioTextMissing",
            "a ConfigMap or a key that the scenario takes SQL or a table from is not there, or is "
            "no text in UTF-8",
            "create it with the command of the message, within `startupTimeout`; convert what is "
            "no text, for which nobody waits",
        ),
        Reason(
            "ScenarioNotUnderstood",
            "the scenario is of another version's schema",
            "write what the message says, or use the version of Laptime that it was written for",
        ),
        Reason(
            "ScenarioWrong",
            "the scenario breaks a rule that its schema cannot say",
            "write what the message says; `kubectl laptime validate` says the same "
            "without a cluster",
        ),
        Reason(
            "ExtensionNotAllowed",
            "the scenario asks for an extension of Postgres that the administrator does not allow",
            "leave it out, or have it added to the chart's `scenarios.extensions`",
        ),
        Reason(
            "ScenarioDoesNotFit",
            "a preset does other work, or the topology lacks what the scenario needs, or has what "
            "does not stand before a Service that is there already; or a server names a variable "
            "that it is not told ([in its own words](servers.md#in-its-own-words))",
            "write what the message says",
        ),
        Reason(
            "ScenarioChanged",
            "what the run keeps of its scenario was deleted, and the resource is other work by "
            "now; or somebody else has written what the run keeps",
            "apply the run under another name",
        ),
        Reason(
            "ScriptChanged",
            "the run's copy of a script's ConfigMap was deleted, and the ConfigMap has another "
            "content by now",
            "apply the run under another name",
        ),
        Reason(
            "ScenarioUnreadable",
            "what the run keeps of its scenario is not what this version of Laptime stores",
            "apply the run under another name, or use the version that began it",
        ),
        Reason(
            "ConfigMapMissing",
            "the ConfigMap with a script, or with certificates (`service.tls`), is not in the "
            "namespace of the run",
            "create it with the command of the message, within `startupTimeout` ([own "
            "script](own-script.md))",
        ),
        Reason(
            "ConfigMapKeyMissing",
            "the ConfigMap is there and has no such key",
            "add the key, or name one of those in the message",
        ),
        Reason(
            "RemoteImport",
            "a script imports a module from an address, and pods of a run have no way there; the "
            "message says which, in which line",
            "put the file into the script's ConfigMap and import it from there, or name its "
            "addresses in `egress` ([own script](own-script.md#what-leads-out))",
        ),
        Reason(
            "OtherHostsNamed",
            "a script names hosts that are neither the target nor named by the run, or imports "
            "from one that the run may reach; whether it asks them, only its trials will show",
            "take the target from `__ENV` where it is meant; nothing where such requests are meant "
            "([own script](own-script.md#what-leads-out))",
        ),
        Reason(
            "ScriptInImage",
            "a script is in an image, which nobody reads before its first trial",
            "nothing; requests to other hosts are counted apart ([own "
            "script](own-script.md#what-leads-out))",
        ),
    ),
)
