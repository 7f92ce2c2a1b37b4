"""Objectives: bounds that a server must keep under a load."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.names import LoadName, ServerName


class ObjectiveMetric(StrEnum):
    """The figures that an objective can be about."""

    REQUESTS_PER_SECOND = "requestsPerSecond"
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P99 = "p99"
    P999 = "p999"
    ERROR_RATE = "errorRate"


_BOUND = "has(self.atMost) ? self.atMost : '', has(self.atLeast) ? self.atLeast : ''"


class Objective(Model):
    """A bound that a server must keep under a load; all together are `ObjectivesMet`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.atMost) != has(self.atLeast)",
                "write either atMost or atLeast, exactly one of the two",
            ),
            rule(
                "!(self.metric in ['mean', 'p50', 'p90', 'p99', 'p999']) || "
                f"[{_BOUND}].all(b, b == '' || b.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m))+$'))",
                "an objective about latency needs a duration, such as 5ms",
            ),
            rule(
                "self.metric in ['mean', 'p50', 'p90', 'p99', 'p999'] || "
                f"[{_BOUND}].all(b, b == '' || b.matches('^[0-9]+([.][0-9]+)?$'))",
                "an objective about requestsPerSecond or errorRate needs a plain number "
                "in quotes, such as '1000' or '0.001'",
            ),
        )
    )
    server: ServerName = Field(description="Which server.")
    load: LoadName = Field(description="Under which load.")
    metric: ObjectiveMetric = Field(description="Which figure.")
    at_most: str | None = Field(
        None,
        description="Largest value that is good, such as 5ms or '0.001'.",
        min_length=1,
        max_length=16,
    )
    at_least: str | None = Field(
        None,
        description="Smallest value that is good, such as '1000'.",
        min_length=1,
        max_length=16,
    )
