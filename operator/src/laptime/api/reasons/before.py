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
            "let an admin of the namespace make the RoleBinding whose command is in the message, or"
            " name the namespace in the chart's `runNamespaces` ([permissions](permissions.md)); "
            "the run goes on by itself then",
        ),
        Reason(
            "CapExceeded",
            "the run is larger than runs of its namespace may be; the message says which cap",
            "ask for less, or split the run; the administrator of the chart may change `runs.caps` "
            "([caps](permissions.md#turns-and-caps))",
        ),
        Reason(
            "SpecNotUnderstood",
            "operator and CustomResourceDefinition are of different versions",
            "bring the chart up to date, with `crds.enabled`; or delete the run and apply it again",
        ),
        Reason(
            "StoredByNewerVersion",
            "an event and no condition: a newer version of Laptime has worked on this run, and this"
            " one (after a `helm rollback`) leaves it as it is",
            "bring the chart up to date again: the run goes on; or delete it and apply it again",
        ),
        Reason(
            "LoadImpossible",
            "a load would use up the rows of the scenario, or names an endpoint that it does not "
            "have",
            "write what the message says, such as a number of requests "
            "([scenarios](scenarios.md#endpoints))",
        ),
        Reason(
            "ConfigMapMissing",
            "the ConfigMap with a script is not in the namespace of the run",
            "create it with the command of the message, within `startupTimeout` ([own "
            "script](own-script.md))",
        ),
        Reason(
            "ConfigMapKeyMissing",
            "the ConfigMap is there and has no such key",
            "add the key, or name one of those in the message",
        ),
    ),
)
