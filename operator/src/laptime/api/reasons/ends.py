"""How a run ended."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

ENDS = Section(
    "At the end",
    "",
    (
        Reason(
            "TurnOver",
            "the run has had its turn for as long as runs of its namespace may; what it has "
            "measured stays",
            "as for `CapExceeded`; or `kubectl laptime retry`, which has a turn of its own",
        ),
        Reason(
            "TrialsFailed",
            "in a row: some trials of this server under this load failed, the first for the reason "
            "that is named",
            "that reason above; the figures of the others stand, and are marked as doubtful",
        ),
        Reason(
            "ServersFailed",
            "at least one server has no figures under one of the loads; the message says each",
            "the reason of each server above",
        ),
        Reason(
            "AllServersFailed",
            "every server lacks the figures of one load or all",
            "begin with the first server of the message; when all have the same reason it is mostly"
            " a tier, the namespace or an image",
        ),
        Reason(
            "ObjectivesMissed",
            "a bound was not kept, for sure; the message has bound and figure",
            "it is a result: `laptime run` exits with 2",
        ),
        Reason(
            "ObjectsLeft",
            "minutes after the last trial something of the run was still there; the message names "
            "it. The next run has its turn all the same",
            "delete what is named, or the run, and everything of it goes too",
        ),
        Reason(
            "ResultsNotStored",
            "the API server would not store the results of the whole run; those of each trial are "
            "stored",
            "read why in the message: a quota, an admission rule; the figures are in the status",
        ),
        Reason(
            "InternalError",
            "an error that nobody expected happened several times; the message has its text. What "
            "the run had deployed is deleted",
            "look at the operator's log, and report it",
        ),
    ),
)
