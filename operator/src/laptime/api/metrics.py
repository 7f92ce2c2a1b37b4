"""The figures that servers are judged and compared by."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """One figure of a server under a load."""

    REQUESTS_PER_SECOND = "requestsPerSecond"
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P99 = "p99"
    P999 = "p999"
    ERROR_RATE = "errorRate"

    @property
    def share(self) -> float | None:
        """The share of requests that a percentile is about, 0.99 for p99; None for others."""
        return _SHARES.get(self)

    @property
    def is_latency(self) -> bool:
        """Whether it is a response time: less is better."""
        return self is Metric.MEAN or self in _SHARES


_SHARES = {Metric.P50: 0.5, Metric.P90: 0.9, Metric.P99: 0.99, Metric.P999: 0.999}
