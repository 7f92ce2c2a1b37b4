"""Generator logs for tests, made as the generator makes them."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from typing import Any

from hdrh.histogram import HdrHistogram

from laptime.measure.generator import RESULT_PREFIX
from laptime.plan import Trial

TRIAL = Trial("demo-trial-001", 1, "axum", "closed", 1)


def histogram(microseconds: list[int]) -> str:
    made = HdrHistogram(1, 3_600_000_000, 3)
    # One after the other they took a quarter of what all tests of figures take.
    for value, times in Counter(microseconds).items():
        made.record_value(value, times)
    encoded: bytes = made.encode()
    return encoded.decode()


def phase(
    microseconds: list[int], errors: int = 0, window: float = 2.0, **more: Any
) -> dict[str, Any]:
    """Return a phase with one endpoint, these response times and this many time-outs."""
    count = len(microseconds) + errors
    return {
        "firstRequestAt": 1_700_000_000.0,
        "lastResponseAt": 1_700_000_000.0 + window,
        "requests": count,
        "responses": len(microseconds),
        "windowSeconds": window,
        "completedInWindow": len(microseconds),
        "errors": {"timeout": errors, "connect": 0},
        "statusCodes": {"200": len(microseconds)},
        "bytesReceived": 100 * len(microseconds),
        "droppedIterations": 0,
        "endpoints": {
            "list": {
                "requests": count,
                "errors": errors,
                "latency": histogram(microseconds),
                "serverTime": histogram([max(1, value - 100) for value in microseconds]),
                "connect": histogram([]),
            }
        },
        "seconds": [],
        **more,
    }


def document(measured: dict[str, Any], **generator: Any) -> dict[str, Any]:
    cost = {"cpuSeconds": 0.5, "wallSeconds": 2.0, "maxProcs": 2, "busiestThread": 0.25}
    return {
        "schemaVersion": 1,
        "trial": TRIAL.name,
        "phases": {"warmup": phase([9_000_000] * 7), "measured": measured},
        "generator": {**cost, "peakMemoryBytes": 10**7, "version": "k6 v2.2.0", **generator},
    }


def line(content: object) -> str:
    packed = gzip.compress(json.dumps(content).encode())
    return RESULT_PREFIX + base64.b64encode(packed).decode()
