"""What generators of load write into their logs."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from hdrh.histogram import HdrHistogram


def generator_log(
    trial: str,
    requests_per_second: float = 1000.0,
    requests: int = 2000,
    segment: tuple[int, int] | None = None,
    script: dict[str, Any] | None = None,
    schema: str | None = None,
    at: float = 1_767_225_600.0,
) -> str:
    """Return the log of a generator that measured so many right answers of about 5 ms.

    `segment` is its index among so many, `script` what a script of one's own says, `at` when it
    began, `schema` stands for what it found defined in the database.
    """
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    histogram.record_value(5000, requests)
    encoded = histogram.encode().decode()
    seconds = requests / requests_per_second
    phase = {
        "firstRequestAt": at,
        "lastResponseAt": at + seconds,
        "requests": requests,
        "responses": requests,
        "windowSeconds": seconds,
        "completedInWindow": requests,
        "errors": {},
        "bytesReceived": 1,
        "endpoints": {
            "list": {
                "requests": requests,
                "errors": 0,
                "latency": encoded,
                "serverTime": encoded,
                "connect": encoded,
            }
        },
    }
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "trial": trial,
        "phases": {"measured": phase},
        "generator": {"cpuSeconds": 0.1, "wallSeconds": seconds, "maxProcs": 2},
    }
    if segment is not None:
        document["segment"] = {"index": segment[0], "count": segment[1]}
    if schema is not None:
        document["databaseSchema"] = schema
    if script is not None:
        document["script"] = script
    packed = base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
    return f"LAPTIME-READY\nLAPTIME-RESULT {packed}\n"
