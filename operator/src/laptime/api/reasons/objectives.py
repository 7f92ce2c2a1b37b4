"""What came of an objective."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

OBJECTIVES = Section(
    "What came of an objective",
    "What came of one objective (`status.objectives`) has a reason of its own. "
    "`ObjectivesMet` is Unknown with that of the first one that is not known; `laptime run`"
    " exits with 3 then.",
    (
        Reason(
            "BoundKept",
            "the whole interval of the figure keeps the bound",
            "nothing",
        ),
        Reason(
            "BoundNotKept",
            "the whole interval is on the wrong side of it",
            "it is a result",
        ),
        Reason(
            "TooManyErrors",
            "more requests than the objective's `errorRate` (0.1 % where none is said) had no right"
            " answer, so that the latency of the others is no good news",
            "look at `errorsByKind` of the trials",
        ),
        Reason(
            "NoRightAnswer",
            "not one request had a right answer",
            "as above",
        ),
        Reason(
            "IntervalAcrossBound",
            "the bound lies within the interval",
            "more `repetitions`, or a bound that is not so near",
        ),
        Reason(
            "MeasuredOnce",
            "a single repetition does not say how far chance goes",
            "at least 2 repetitions, better 5",
        ),
        Reason(
            "TooFewAnswers",
            "a repetition has fewer requests than the percentile needs: 100 for p99, 1,000 for "
            "p99.9; or no sample of a threshold's metric came in one of them",
            "a longer load, or a lower percentile; for a threshold, look at its tags",
        ),
        Reason(
            "Doubtful",
            "a doubt bears on this very figure, in the direction that could change the outcome; the"
            " message says which",
            "mend what it names ([objectives](measurement.md#objectives))",
        ),
        Reason(
            "Invalid",
            "the row is invalid: the figures are about something else than the work that was asked "
            "for; or a threshold would be met, and some repetition was invalid",
            "the reasons of the row",
        ),
        Reason(
            "NotMeasured",
            "the server has no figures under this load",
            "the reason of the server or row above",
        ),
    ),
)
