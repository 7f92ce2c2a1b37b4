"""Reasons of conditions while nothing is wrong."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

NORMAL = Section(
    "Nothing is wrong",
    "",
    (
        Reason(
            "Accepted",
            "the spec is good",
            "nothing",
        ),
        Reason(
            "Queued",
            "another run is measured now",
            "wait: namespaces take turns by the time that they had in the last day, and in a "
            "namespace the oldest run comes first ([turns](permissions.md#turns-and-caps)). "
            "`kubectl laptime watch RUN` says how many come before it at least, and `kubectl get br"
            " -A --field-selector status.state=Queued` lists those that wait; or suspend, cancel or"
            " delete one that is before it",
            normal=True,
        ),
        Reason(
            "Suspended",
            "the run pauses, since `spec.suspend` is true",
            "`kubectl laptime resume RUN`, when it shall go on",
            normal=True,
        ),
        Reason(
            "Suspending",
            "the run is about to pause: what it had deployed is deleted",
            "wait",
        ),
        Reason(
            "Resumed",
            "the run has paused and goes on",
            "nothing",
            normal=True,
        ),
        Reason(
            "Cancelled",
            "`spec.cancel` is true: the run has ended with what it had measured",
            "read the report",
        ),
        Reason(
            "Deploying",
            "the tiers and Services are set up",
            "wait",
        ),
        Reason(
            "Starting",
            "a tier is not ready yet; nothing is wrong with it so far",
            "wait",
            normal=True,
        ),
        Reason(
            "Ready",
            "all tiers stand",
            "nothing",
        ),
        Reason(
            "Verifying",
            "the answers of a server are being checked",
            "wait",
            normal=True,
        ),
        Reason(
            "AnswersMatch",
            "every server gave right answers",
            "nothing",
        ),
        Reason(
            "NothingLeadsOut",
            "no script imports from or names another host than its target",
            "nothing",
        ),
        Reason(
            "Preparing",
            "a fresh pod of the next server is coming up",
            "wait",
        ),
        Reason(
            "Measuring",
            "a trial runs; the message says which",
            "wait",
        ),
        Reason(
            "NotFinished",
            "the run goes on, so nothing is known of its end",
            "wait",
            normal=True,
        ),
        Reason(
            "Profiling",
            "all trials were run, and a server is put under load once more for its profile",
            "wait",
        ),
        Reason(
            "Finishing",
            "results are stored, what the run had deployed is deleted",
            "wait",
        ),
        Reason(
            "Finished",
            "the run is over",
            "read the report",
            normal=True,
        ),
        Reason(
            "Completed",
            "every server has figures under every load",
            "read the report",
        ),
        Reason(
            "OnlyVerified",
            "every server gave right answers, and nothing was measured, as `spec.verifyOnly` asks",
            "`kubectl laptime verify` shows the answers",
        ),
        Reason(
            "AllMet",
            "every objective was met",
            "nothing",
        ),
        Reason(
            "Profiled",
            "every profile that was asked for was taken; the message says where they are",
            "`kubectl laptime report RUN --profiles FOLDER`",
        ),
    ),
)
