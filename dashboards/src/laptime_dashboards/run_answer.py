"""Panels of one run that say which server is faster, how sure that is, and what limited each."""

from __future__ import annotations

import re

from grafana_foundation_sdk.builders import stat, table, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as dashboard_models

from laptime_dashboards.intervals import GOES_ON, NO_UPPER_END, intervals, lines, of_field
from laptime_dashboards.meanings import CAUSES, PERCENTILES, STATES, VALIDITIES
from laptime_dashboards.panel_defaults import (
    FULL,
    NOT_TOLD,
    figure,
    in_order,
    newest,
    not_told,
    words,
)
from laptime_dashboards.selectors import ROW, RUN
from laptime_dashboards.tables import (
    FACTOR_DECIMALS,
    FACTOR_UNIT,
    HIDDEN,
    Column,
    coloured_words,
    rows,
)

NO_RESULT = f"no trial of the run was measured, {not_told('the 500 rows')}"

PLACE = Column("Place", label="place", number=True, more=HIDDEN)
"""What to sort by: loads and servers in the order of the spec, as in the pictures."""

OF_A_SEARCH = (
    "Of a search (saturation) it is the middle between the rate that was met and the one that was "
    "missed."
)
_NOT_TOLD_SHORT = "run gone or not among newest 50, or operator not scraped"
"""In a small panel."""
_TEXT = 14
"""Pixels of letters there: of a size of its own a sentence shrinks until it fits into one line."""
_SMALL, _STATE = 3, 6
"""Widths of the figures: the trials of a duet have a line each."""
_LOW = 4
"""Height of the figures, of which a verdict needs four lines."""


def verdict() -> table.Panel:
    """The result in a sentence, and whether it can be trusted."""
    series = f'laptime_run_info{{{RUN},verdict!=""}}'
    return rows(
        "Verdict",
        "The result in a sentence, and the validity of the least valid row, when the run is over.",
        "the run is not over, the time range ends before the operator has told of its end, "
        f"{NOT_TOLD}",
        [
            Column("Verdict", label="verdict", longest=True),
            Column(
                "Validity",
                label="validity",
                width=90,
                more=coloured_words(VALIDITIES),
            ),
            Column("", expr=f"max by (verdict, validity) ({series})"),
        ],
        joined=False,
        width=FULL - _STATE - 2 * _SMALL,
        height=_LOW,
        # Room for another line of a sentence; the words say themselves what they are.
    ).show_header(False)


def state() -> stat.Panel:
    """Where the run is, and which trial is measured."""
    current = f"max by (server, load, repetition) (laptime_run_current_trial{{{RUN}}})"
    named = f'label_replace({current}, "word", "repetition", "", "")'
    numbered = f'label_join({named}, "which", " ", "word", "repetition")'
    panel = figure(
        "State",
        f"Where the run is ({', '.join(STATES)}), and the trial that is set up or measured now: "
        "two of a duet.",
        "short",
        "run gone or not in this time (choose one), not among the newest 50, or operator not "
        "scraped",
        [
            newest(f"max by (state) (laptime_run_info{{{RUN}}})", ref="A"),
            newest(f'label_join({numbered}, "now", ", ", "server", "load", "which")', ref="B"),
        ],
        width=_STATE,
        height=_LOW,
        text_size=_TEXT,
        labels=["state", "now"],
    )
    named_states = dashboard_models.DynamicConfigValue(id_val="mappings", value=words(STATES))
    return panel.override_by_regexp("/^state$/", [named_states])


def progress() -> stat.Panel:
    """How far the run is."""
    return figure(
        "Progress",
        "Share of the trials that are over, with verifyOnly of the servers that are checked; of a "
        "run that was refused there are none.",
        "percentunit",
        _NOT_TOLD_SHORT,
        [
            newest(
                f"max(laptime_run_progress_ratio{{{RUN}}}) or 0 * max(laptime_run_info{{{RUN}}})",
                "over",
            )
        ],
        width=_SMALL,
        height=_LOW,
        text_size=_TEXT,
    )


def time_left() -> stat.Panel:
    """The estimate of the time left."""
    return figure(
        "Time left",
        "Hours, minutes and seconds, by the trials so far; 0 of a run that is over, and none of "
        "one that waits and was not accepted.",
        "dthms",
        f"no estimate, {_NOT_TOLD_SHORT}",
        [
            newest(
                f"max(laptime_run_remaining_seconds{{{RUN}}})"
                f" or 0 * max(laptime_run_finished_timestamp_seconds{{{RUN}}})",
                "left",
            )
        ],
        width=_SMALL,
        height=_LOW,
        text_size=_TEXT,
    )


def factors() -> xychart.Panel:
    """Each server's factor against the baseline with its interval."""
    return intervals(
        "Factor against the baseline",
        "Each line is the 95 % interval of a server's throughput, or response time where the rate "
        "is fixed, divided by the baseline's, with the estimate in it. The broken line (of one row "
        "alone a grey point) is at 1: an interval over it says that no difference from the "
        "baseline was found. (=2) after names: "
        "they share rank 2, so they are not told apart; Ties has the pairs of a run that is over, "
        "of other ranks too. Below two repetitions there is only the estimate. "
        f"{NO_UPPER_END} {GOES_ON}",
        "laptime_result_factor",
        "Factor",
        FACTOR_UNIT,
        NO_RESULT,
        decimals=FACTOR_DECIMALS,
        compared=True,
    )


def throughputs() -> xychart.Panel:
    """Each server's throughput with its interval."""
    return intervals(
        "Throughput",
        "Right answers a second: the estimate over all repetitions within its 95 % interval. "
        f"{OF_A_SEARCH} {NO_UPPER_END} {GOES_ON}",
        "laptime_result_requests_per_second",
        "Requests/s",
        # The unit is in the name of the axis: in each number it would leave room for few of them.
        "locale",
        NO_RESULT,
    )


def percentiles() -> xychart.Panel:
    """Response times to p99.9."""
    points = " | ".join(word for word, _ in PERCENTILES.values())
    name = f"{points} (ms)"
    panel = lines(
        "Response times",
        "Each line is a server's response times over all repetitions, to the right on a "
        f"logarithmic axis; its points are, from the left, the exact {points}. A long line makes "
        "some wait long. Of few answers the last is not known, and the line has a point less. So "
        "it has where one fell among requests without a right answer, which makes no server "
        "quicker: the table of results says failed.",
        # On a logarithmic axis there is no place for it.
        f'laptime_result_latency_seconds{{{ROW},bound="estimate",'
        f'quantile=~"{"|".join(PERCENTILES)}"}} < Inf',
        "quantile",
        name,
        "none",
        NO_RESULT,
        # As in the throughput the unit is in the name of the axis, whose ends would be cut off.
        scale="1000 * ",
    )
    logarithmic = {"type": common.ScaleDistribution.LOG, "log": 10}
    axis = [of_field("custom.scaleDistribution", logarithmic)]
    panel.override_by_regexp(f"/^{re.escape(name)}/", axis)
    return panel.override_by_regexp("/^quantile/", [of_field("mappings", words(PERCENTILES))])


def limits() -> table.Panel:
    """What held each server back, and what is doubtful."""
    return rows(
        "What limited each server (suspected), and what is doubtful",
        "The cause in most repetitions and, when the run is over, the readings that make it "
        "suspected and what is to be doubted (docs/measurement.md). kubectl laptime explain tries "
        "whether it is so.",
        NO_RESULT,
        [
            Column("Load", label="load", width=75),
            Column("Server", label="server", width=115),
            Column(
                "Suspected cause",
                label="cause",
                # Grafana makes rows as high as the values need, and not their words.
                width=208,
                more={"mappings": words(CAUSES)},
            ),
            Column("Evidence", label="evidence"),
            Column(
                "Validity",
                label="validity",
                width=75,
                more=coloured_words(VALIDITIES),
            ),
            Column("Doubts", label="doubts", width=300, longest=True),
            Column(
                "",
                expr=f"max by (server, load, cause, evidence) (laptime_result_limited_by{{{ROW}}})",
            ),
            Column(
                "",
                expr="max by (server, load, place, validity, doubts) "
                f"(laptime_result_state{{{ROW}}})",
            ),
            PLACE,
        ],
        width=FULL,
        # Four servers with two lines each.
        height=9,
    ).with_transformation(in_order(PLACE.title))
