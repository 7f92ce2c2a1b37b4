"""Asking Prometheus for raw samples of one trial, and for nothing that it would compute."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from laptime.api.text import plain_tree, shown
from laptime.measure.timeseries import Series, Window

Query = Callable[[str, Mapping[str, str]], Awaitable[Mapping[str, Any]]]
"""Asks a path of Prometheus' HTTP API, with parameters; gives the decoded JSON."""

QUERY_PATH = "/api/v1/query"

RUN_UID = "run_uid"
"""The label that says of which run a pod is."""

AGENT_MARGIN_SECONDS = 5.0
"""How far beyond the window samples are asked for: the ends need a sample on each side."""

_PIECE_SECONDS = 600.0
"""The longest time whose samples are asked for at once."""

_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|\{')
_MOST_NODES = 3
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class PrometheusError(Exception):
    """Prometheus answered with an error, or with something else than samples."""


@dataclass(frozen=True)
class TrialWindow:
    """Whose figures are wanted: one trial of a run and its measured phase.

    Raises:
        ValueError: a name, or the uid, is none that Kubernetes allows.
    """

    namespace: str
    run: str
    uid: str
    """Of the run, which its pods say as well: its name a pod of anybody can have."""
    trial: str
    window: Window
    until: float | None = None
    """When the last answer was there, where that is later than the window's end (Unix seconds)."""
    server: str | None = None
    """Where pods are known by their names alone, no other server's are of this trial."""
    beside: str | None = None
    """A trial of the same run that was measured at the same time: its pods are no neighbours."""

    @property
    def whole(self) -> Window:
        """The window, and the time in which answers to its requests were waited for."""
        return Window(self.window.start, max(self.window.end, self.until or self.window.end))

    def __post_init__(self) -> None:
        for name in (self.namespace, self.run, self.uid, self.trial, self.beside or self.trial):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of an object")


def selector(labels: Mapping[str, tuple[str, str]]) -> str:
    """Return a PromQL selector: of each label how it is compared, and with what."""
    # A string of JSON is one of PromQL too, but for characters beyond U+FFFF as pairs of escapes.
    quoted = {
        name: (how, json.dumps(value, ensure_ascii=False)) for name, (how, value) in labels.items()
    }
    return "{" + ",".join(f"{name}{how}{value}" for name, (how, value) in quoted.items()) + "}"


def narrowed(promql: str, matchers: Mapping[str, str]) -> str:
    """Return a query all of whose selectors ask for labels with exactly these values too.

    Raises:
        ValueError: it has no selector in braces, so that it would be asked of everybody.
    """
    if not matchers:
        return promql
    more = "".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}," for name, value in matchers.items()
    )
    found = _STRING_OR_BRACE.sub(lambda one: "{" + more if one[0] == "{" else one[0], promql)
    if found == promql:
        raise ValueError(f"{promql!r} has no selector that matchers could be added to")
    return found


def any_of(names: Iterable[str]) -> str:
    """Return a pattern that matches these names and no others."""
    return "|".join(re.escape(name) for name in sorted(names))


async def query_samples(
    query: Query, selected: str, window: Window, margin: float = AGENT_MARGIN_SECONDS
) -> list[tuple[Mapping[str, str], Series]]:
    """Return the samples of all series of a selector in a window, and `margin` seconds around it.

    A long window is asked for in pieces: what is read of one answer takes ten times its length in
    memory, and nothing else is done meanwhile.

    Raises:
        PrometheusError: an answer is an error, or no samples.
    """
    end, seconds = window.end + margin, window.seconds + 2 * margin
    pieces = math.ceil(seconds / _PIECE_SECONDS)
    # A millisecond more, since the begin of a range may be no part of it.
    span = f"{int(1000 * seconds / pieces) + 1}ms"
    found: dict[str, tuple[Mapping[str, str], Series]] = {}
    for later in reversed(range(pieces)):
        until = end - later * seconds / pieces
        for labels, samples in await _piece(query, f"{selected}[{span}]", until):
            series = Series.of(samples)
            key = json.dumps(labels, sort_keys=True)
            found[key] = labels, found[key][1].followed_by(series) if key in found else series
    return list(found.values())


async def _piece(
    query: Query, promql: str, time: float
) -> list[tuple[Mapping[str, str], list[list[Any]]]]:
    answer = await query(QUERY_PATH, {"query": promql, "time": f"{time:.3f}"})
    if answer.get("status") != "success":
        raise PrometheusError(
            shown(f"{answer.get('errorType', 'no status')}: {answer.get('error', '')}", 500)
        )
    data = answer.get("data") or {}
    if data.get("resultType") != "matrix":
        raise PrometheusError(f"expected a matrix, got {data.get('resultType')!r}")
    # Labels may be those of somebody else's pods.
    return [(plain_tree(one["metric"]), one["values"]) for one in data["result"]]


def of_run(
    found: Iterable[tuple[Mapping[str, str], Series]], wanted: TrialWindow
) -> tuple[list[tuple[Mapping[str, str], Series]], list[str]]:
    """Return the samples of pods with the uid of a run, and the gap where others have no uid.

    Its name says nothing: other pods can have it as a label, and another run, of a cluster whose
    series are here too, or of before. A pod that one agent tells of with its uid and one of an
    older version without, as when they are upgraded in a trial, is one pod.
    """
    every = list(found)
    own = {_where(labels) for labels, _ in every if labels.get(RUN_UID) == wanted.uid} - {None}
    kept, without = [], False
    for labels, series in every:
        if labels.get(RUN_UID) == wanted.uid or (RUN_UID not in labels and _where(labels) in own):
            kept.append((labels, series))
        elif RUN_UID not in labels:
            # One sample in the window covers nothing of it.
            without = without or bool(
                series.covered(wanted.window)
                or series.within(wanted.window.start, wanted.window.end)
            )
    if not without:
        return kept, []
    return kept, [
        f"Prometheus has samples of pods of a run of this name without the label {RUN_UID}, which "
        "says of which run they are. They are left out: agents of an older version do not say it, "
        "nor does a scrape configuration that does not take it (docs/watching.md)"
    ]


def _where(labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return which pod series are of, without its run; None where they do not say it."""
    found = tuple(labels.get(name, "") for name in ("namespace", "pod", "node"))
    return found if all(found) else None


def on_nodes(
    found: Iterable[tuple[Mapping[str, str], Series]], nodes: Collection[str], wanted: TrialWindow
) -> tuple[list[tuple[Mapping[str, str], Series]], list[str]]:
    """Return the samples of pods without those on other nodes than a trial ran on, and the gap.

    For pods that are known by their names alone, as to kubelets: names of runs are those of one
    cluster, and a Prometheus of several has the pods of each. Where it is not known where the trial
    ran, all are kept.
    """
    if not nodes:
        return list(found), []
    kept, foreign = [], set()
    for labels, series in found:
        node = labels.get("node")
        if not node or node in nodes:
            kept.append((labels, series))
        elif series.covered(wanted.window) > 0.0:
            foreign.add(node)
    if not foreign:
        return kept, []
    names = ", ".join(sorted(foreign)[:_MOST_NODES])
    more = len(foreign) - _MOST_NODES
    return kept, [
        f"Prometheus has pods of a run of this name on {shown(names, 300)}"
        f"{f' and {more} more nodes' if more > 0 else ''}, where no part of this trial ran: series "
        "of another cluster answer too. They are left out; write what tells the clusters apart in "
        "prometheus.matchers of the chart (docs/watching.md)"
    ]
