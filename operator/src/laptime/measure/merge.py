"""One result of what the generators of a trial measured together; nothing is lost.

Counts and histograms add. Generators begin together, so their times are laid over each other at
their starts: the clocks of two nodes need not agree. A phase of a script begins with its first
request, so that of two generators one may begin some seconds later: those are kept.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from laptime.measure.figures import MAX_ENDPOINTS
from laptime.measure.generator import (
    MAX_WARNINGS,
    GeneratorError,
    GeneratorMetric,
    GeneratorResult,
    GeneratorScript,
    document_of,
    inflated,
    parse_payload,
)
from laptime.measure.histogram import Histogram, HistogramError
from laptime.measure.script import OTHER_ENDPOINTS
from laptime.measure.script_metrics import finite, judged_again, merged_metrics
from laptime.measure.sparse_histogram import SparseHistogram

Document = dict[str, Any]

_ADDED = (
    "requests",
    "responses",
    "completedInWindow",
    "bytesReceived",
    "droppedIterations",
    "retried",
)
_SCRIPT_ADDED = ("iterations", "iterationSeconds", "requestSeconds", "moreExceptions")
# Gauges of what each generator has for itself, so that all together have the sum.
_HELD_BY_EACH = ("vus", "vus_max")
_MEASURED = "measured"
_ENDPOINT_HISTOGRAMS = ("latency", "serverTime", "connect", "uncorrectedLatency")


def merge_results(results: Sequence[GeneratorResult]) -> GeneratorResult | GeneratorError:
    """Return the result of all generators of a trial together, or why there cannot be one.

    There must be one result of each generator. Of a second of the phase, counts and the maximum
    are known together; its median and p99 are left out, since they cannot be had from those of
    the parts.
    """
    if len(results) == 1 and results[0].segment is None:
        return results[0]
    error = _incomplete(results)
    if error is not None:
        return error
    documents = _phases_together(
        [
            document_of(result)
            for result in sorted(results, key=lambda one: one.segment.index if one.segment else 0)
        ]
    )
    try:
        merged = _merged(documents)
    except HistogramError as garbled:
        return GeneratorError(
            "ResultGarbled", f"a histogram of the generator cannot be read: {garbled}"
        )
    payload = _packed(merged)
    while not _has_a_place(payload) and _shorten(merged):
        payload = _packed(merged)
    parsed = parse_payload(payload)
    if isinstance(parsed, GeneratorError):
        return parsed
    warnings = dict.fromkeys(text for one in results for text in one.warnings)
    return replace(parsed, warnings=tuple(warnings)[:MAX_WARNINGS])


def _packed(document: Document) -> str:
    packed = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)
    return base64.b64encode(packed).decode()


def _has_a_place(payload: str) -> bool:
    try:
        inflated(payload)
    except OverflowError:
        return False
    return True


def _shorten(document: Document) -> bool:
    """Leave out details of what a script says, and return whether there were any.

    Trends lose a fifth of their cells, parts of metrics first, and what thresholds are about last.
    Without any the response times of the seconds go. So each generator does it with its own.
    """
    script = document.get("script")
    if script is None:
        return False
    judged = {one["metric"] for one in script["thresholds"]}
    crowded = sorted(
        (name for name, one in script["metrics"].items() if one.get("cells")),
        key=lambda name: (
            name in judged,
            "{" not in name,
            -len(script["metrics"][name]["cells"]),
            name,
        ),
    )
    over = sum(len(script["metrics"][name]["cells"]) for name in crowded) / 5
    for name in crowded:
        if over <= 0:
            break
        over -= len(script["metrics"][name].pop("cells"))
    if crowded:
        return True
    script["secondsLeftOut"] = True
    left = [phase for phase in document["phases"].values() if phase.pop("latencySeconds", 0)]
    for row in (row for phase in left for row in phase["seconds"]):
        row.pop("latency", None)
    return bool(left)


def _incomplete(results: Sequence[GeneratorResult]) -> GeneratorError | None:
    count = results[0].segment.count if results and results[0].segment else len(results)
    segments = [(one.segment.index, one.segment.count) for one in results if one.segment]
    if sorted(segments) != [(index, count) for index in range(count)]:
        return GeneratorError(
            "GeneratorLost",
            f"there are results of the generators {sorted(index for index, _ in segments)}, "
            f"and {count} shared the load",
        )
    if len({one.trial for one in results}) > 1:
        return GeneratorError(
            "ResultOfAnotherTrial", "the generators answered for different trials"
        )
    return None


def _phases_together(documents: list[Document]) -> list[Document]:
    """Return the results with each phase beginning at one moment after the common start.

    That is the moment at which it began on the first of the generators; the seconds of the others
    are counted from there. Results without a common start have such phases already.
    """
    if not all(one.get("segment", {}).get("startedAt") for one in documents):
        return documents
    names = {name for one in documents for name in one["phases"]}
    first = {
        name: min(since, default=0.0)
        for name in names
        for since in [[_since_start(one, name) for one in documents if _begun(one, name)]]
    }
    return [
        {
            **one,
            "phases": {
                name: _later(phase, _since_start(one, name) - first[name])
                if _begun(one, name)
                else phase
                for name, phase in one["phases"].items()
            },
        }
        for one in documents
    ]


def _begun(document: Document, phase: str) -> bool:
    return bool(document["phases"].get(phase, {}).get("startedAt"))


def _since_start(document: Document, phase: str) -> float:
    since: float = document["phases"][phase]["startedAt"] - document["segment"]["startedAt"]
    return since


def _later(phase: Document, seconds: float) -> Document:
    """Return a phase as one that began so many seconds before."""
    return {
        **phase,
        "startedAt": phase["startedAt"] - seconds,
        "seconds": [{**row, "t": row["t"] + round(seconds)} for row in phase.get("seconds", [])],
    }


def _merged(documents: list[Document]) -> Document:
    first = documents[0]
    names = {name: None for document in documents for name in document["phases"]}
    merged: Document = {
        "schemaVersion": first["schemaVersion"],
        "trial": first.get("trial", ""),
        "phases": {
            name: _phase([one for one in documents if name in one["phases"]], name)
            for name in names
        },
        "generator": _cost([document["generator"] for document in documents]),
        "generators": [document["generator"] for document in documents],
    }
    # Only generator 0 asks the database.
    asked = (one["statements"] for one in documents if one.get("statements") is not None)
    statements = next(asked, None)
    if statements is not None:
        merged["statements"] = statements
    schemas = (one["databaseSchema"] for one in documents if one.get("databaseSchema"))
    if (schema := next(schemas, None)) is not None:
        merged["databaseSchema"] = schema
    scripts = [document["script"] for document in documents if document.get("script")]
    if scripts:
        merged["script"] = _script(scripts)
        kept = merged["phases"].get(_MEASURED, {}).get("endpoints", {})
        said = {name for one in documents for name in _named(one, _MEASURED)}
        merged["script"]["endpointsLeftOut"] = len(said - kept.keys()) + max(
            part.get("endpointsLeftOut", 0) for part in scripts
        )
        merged["script"]["secondsLeftOut"] = any(part.get("secondsLeftOut") for part in scripts)
    return merged


def _script(parts: list[Document]) -> Document:
    merged: Document = {
        "warmup": parts[0].get("warmup", ""),
        "executors": sorted({one for part in parts for one in part.get("executors", [])}),
        "aborted": any(part.get("aborted") for part in parts),
        **{key: sum(part.get(key, 0) for part in parts) for key in _SCRIPT_ADDED},
    }
    for key in ("checks", "otherHosts"):
        names = {name: None for part in parts for name in part.get(key, {})}
        merged[key] = {
            name: _sums(part[key][name] for part in parts if name in part.get(key, {}))
            for name in names
        }
    merged["exceptions"] = _sums(part.get("exceptions", {}) for part in parts)
    if all(part.get("wrongAnswers") is not None for part in parts):
        merged["wrongAnswers"] = sum(part["wrongAnswers"] for part in parts)
    for key in ("moreChecks", "moreHosts"):
        counts = [part[key] for part in parts if part.get(key)]
        if counts:
            merged[key] = _sums(counts)
    return {**merged, **_thresholds([GeneratorScript.model_validate(part) for part in parts])}


def _thresholds(parts: list[GeneratorScript]) -> Document:
    seconds = max(part.seconds for part in parts)
    merged = merged_metrics([part.metrics for part in parts])
    metrics = {name: one for name, one in merged.items() if _whole(name, parts)}
    left_out = sum("{" not in name for name in merged.keys() - metrics.keys())
    metrics |= {
        name: _of_all(metrics[name], [part.metrics.get(name) for part in parts])
        for name in _HELD_BY_EACH
        if name in metrics
    }
    # Every generator has the same script, and so the same thresholds in the same order.
    thresholds = [
        judged_again(of_one, metrics.get(of_one[0].metric), seconds)
        for of_one in zip(*(part.thresholds for part in parts), strict=False)
    ]
    return {
        "seconds": seconds,
        "metrics": {name: metric.to_wire() for name, metric in metrics.items()},
        "metricsLeftOut": max(left_out, *(part.metrics_left_out for part in parts)),
        "partsLeftOut": any(part.parts_left_out for part in parts),
        "thresholds": [one.to_wire() for one in thresholds],
    }


def _whole(name: str, parts: list[GeneratorScript]) -> bool:
    """Return whether a metric has the samples of all generators.

    One that had no more room may have left out what another one kept. What thresholds are about
    has room of its own, up to some number: how many samples a generator saw of it, each says.
    """
    if any(one.metric == name for part in parts for one in part.thresholds):
        return all(
            name in part.metrics
            or not any(one.samples for one in part.thresholds if one.metric == name)
            for part in parts
        )
    return all(
        name in part.metrics or not (part.metrics_left_out or ("{" in name and part.parts_left_out))
        for part in parts
    )


def _of_all(merged: GeneratorMetric, parts: Sequence[GeneratorMetric | None]) -> GeneratorMetric:
    """Return a gauge of what all generators have together; its highest value is theirs added up."""
    known = [part for part in parts if part is not None and part.samples]
    sums = {
        "last": finite(sum(part.last for part in known)),
        "min": finite(sum(part.min for part in known)),
        "max": finite(sum(part.max for part in known)),
    }
    return merged.model_copy(update=sums)


def _endpoints(parts: list[Document], folded: list[bool]) -> Document:
    """Return the endpoints of a script in all parts together, no more than are shown.

    What one generator counted among all others (`folded` says which of them did), and another one
    apart, nobody knows as a whole: it is among all others. So are the least used ones.
    """
    endpoints = [part.get("endpoints", {}) for part in parts]
    names = {name: None for one in endpoints for name in one}
    whole = {
        name: sum(one[name]["requests"] for one in endpoints if name in one)
        for name in names
        if name != OTHER_ENDPOINTS
        and all(name in one or not some for one, some in zip(endpoints, folded, strict=True))
    }
    most_used = sorted(whole, key=lambda name: (-whole[name], name))
    if len(names) > MAX_ENDPOINTS:
        most_used = most_used[: MAX_ENDPOINTS - 1]
    apart = set(most_used)
    together: dict[str, list[Document]] = {}
    for one in endpoints:
        for name, endpoint in one.items():
            together.setdefault(name if name in apart else OTHER_ENDPOINTS, []).append(endpoint)
    return {name: _endpoint(of_name) for name, of_name in together.items()}


def _named(document: Document, phase: str) -> Document:
    endpoints: Document = document["phases"].get(phase, {}).get("endpoints", {})
    return endpoints


def _phase(documents: list[Document], name: str) -> Document:
    parts: list[Document] = [one["phases"][name] for one in documents]
    merged: Document = {key: sum(part.get(key, 0) for part in parts) for key in _ADDED}
    merged["errors"] = _sums(part.get("errors", {}) for part in parts)
    merged["statusCodes"] = _sums(part.get("statusCodes", {}) for part in parts)
    merged |= _times(parts)
    lateness = [part["lateness"] for part in parts if part.get("lateness")]
    if lateness:
        merged["lateness"] = _histogram(lateness)
    scripts = [one.get("script") or {} for one in documents]
    if any(scripts):
        merged["endpoints"] = _endpoints(
            parts, [script.get("endpointsLeftOut", 0) > 0 for script in scripts]
        )
    else:
        names = {one: None for part in parts for one in part.get("endpoints", {})}
        merged["endpoints"] = {
            one: _endpoint([p["endpoints"][one] for p in parts if one in p.get("endpoints", {})])
            for one in names
        }
    return merged | _seconds(parts)


def _times(parts: list[Document]) -> Document:
    """Return start, end and window, in the time of the first generator that sent anything."""
    used = [part for part in parts if part.get("requests")] or parts[:1]
    base = used[0].get("startedAt")

    def shift(part: Document) -> float:
        """Return what to add to a generator's times to have them in that of the first one."""
        return base - part["startedAt"] if base and part.get("startedAt") else 0.0

    first = min(part.get("firstRequestAt", 0.0) + shift(part) for part in used)
    last = max(part.get("lastResponseAt", 0.0) + shift(part) for part in used)
    times = {"firstRequestAt": first, "lastResponseAt": last, "windowSeconds": last - first}
    if base:
        times["startedAt"] = base
    duration = max(part.get("durationSeconds", 0.0) for part in parts)
    if duration:
        times["durationSeconds"] = times["windowSeconds"] = duration
    return times


def _endpoint(parts: list[Document]) -> Document:
    merged: Document = {
        key: sum(part.get(key, 0) for part in parts) for key in ("requests", "errors")
    }
    if dropped := sum(part.get("dropped", 0) for part in parts):
        merged["dropped"] = dropped
    in_window = [part.get("completedInWindow") for part in parts]
    if None not in in_window:
        merged["completedInWindow"] = sum(in_window)
    for key in _ENDPOINT_HISTOGRAMS:
        texts = [part[key] for part in parts if part.get(key)]
        if texts or key != "uncorrectedLatency":
            merged[key] = _histogram(texts)
    return merged


def _seconds(parts: list[Document]) -> Document:
    merged: dict[int, Document] = {}
    for row in (row for part in parts for row in part.get("seconds", [])):
        into = merged.setdefault(row["t"], {"t": row["t"], "requests": 0, "errors": 0, "maxUs": 0})
        into["requests"] += row.get("requests", 0)
        into["errors"] += row.get("errors", 0)
        into["maxUs"] = max(into["maxUs"], row.get("maxUs", 0))
        if row.get("dropped"):
            into["dropped"] = into.get("dropped", 0) + row["dropped"]
        if row.get("kinds"):
            into["kinds"] = _sums((into.get("kinds", {}), row["kinds"]))
    rows = [merged[t] for t in sorted(merged)]
    together = [part.get("latencySeconds", 0) for part in parts if part.get("seconds")]
    if not rows or not all(together):
        return {"seconds": rows}
    # As many seconds to a histogram as where they are the most: one, two, four and so on.
    longest = max(together)
    latencies: dict[int, SparseHistogram] = {}
    for part in parts:
        for row in part.get("seconds", []):
            into_second = min(row["t"] // longest * longest + longest - 1, rows[-1]["t"])
            latency = latencies.setdefault(into_second, SparseHistogram())
            latency.update(SparseHistogram.decode(row.get("latency") or []))
    for t, latency in latencies.items():
        if t in merged and latency:
            merged[t]["latency"] = latency.encode()
    return {"seconds": rows, "latencySeconds": longest}


def _cost(costs: list[Document]) -> Document:
    """Return what all generators cost together; `generators` keeps what each cost."""
    segments = ("segmentsSent", "segmentsSentAgain", "segmentsOutOfOrder")
    added = ("cpuSeconds", "maxProcs", "threads", "unreadSeconds", *segments)
    highest = ("wallSeconds", "busiestThread", "peakMemoryBytes")
    round_trips = [cost["roundTripSeconds"] for cost in costs if "roundTripSeconds" in cost]
    return {
        **{key: sum(cost.get(key, 0) for cost in costs) for key in added},
        **{key: max(cost.get(key, 0) for cost in costs) for key in highest},
        "version": costs[0].get("version", ""),
        **({"roundTripSeconds": min(round_trips)} if round_trips else {}),
    }


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for key, count in one.items():
            total[key] = total.get(key, 0) + count
    return total


def _histogram(texts: Iterable[str]) -> str:
    return Histogram.merged(Histogram.decode(text) for text in texts).encode()
