"""Objectives: bounds that a server must keep under a load."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.durations import DURATION
from laptime.api.metrics import Metric
from laptime.api.names import LoadName, ServerName

DEFAULT_ERROR_RATE = 0.001
"""Share of requests without a right answer that a bound on latency allows where none is said."""

_BOUND = "has(self.atMost) ? self.atMost : '', has(self.atLeast) ? self.atLeast : ''"
_NUMBER = "^[0-9]+([.][0-9]+)?$"


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
                f"[{_BOUND}].all(b, b == '' || b.matches('{DURATION}'))",
                "an objective about latency needs a duration, such as 5ms or 1m30s",
            ),
            rule(
                "self.metric in ['mean', 'p50', 'p90', 'p99', 'p999'] || "
                f"[{_BOUND}].all(b, b == '' || b.matches('{_NUMBER}'))",
                "an objective about requestsPerSecond or errorRate needs a plain number "
                "in quotes, such as '1000' or '0.001'",
            ),
            rule(
                "self.metric != 'errorRate' || "
                f"[{_BOUND}].all(b, !b.matches('{_NUMBER}') || double(b) <= 1.0)",
                "errorRate is a share from 0 to 1: write '0.05' for 5 %",
            ),
            rule(
                "!has(self.errorRate) || self.metric in ['mean', 'p50', 'p90', 'p99', 'p999']",
                "errorRate goes with an objective about latency: for errors alone write an "
                "objective with metric: errorRate",
                ".errorRate",
            ),
        )
    )
    server: ServerName = Field(description="Which server.")
    load: LoadName = Field(description="Under which load.")
    metric: Metric = Field(description="Which figure.")
    at_most: str | None = Field(
        None,
        description="Largest value that is good, such as 5ms, or '0.001' for 0.1 % of errors.",
        min_length=1,
        max_length=16,
    )
    at_least: str | None = Field(
        None,
        description="Smallest value that is good, such as '1000'.",
        min_length=1,
        max_length=16,
    )
    error_rate: float | None = Field(
        None,
        description="Of an objective about latency: largest share of requests without a right "
        "answer with which it can be met (0.001). Fast answers to some requests are no good "
        "latency while others get none.",
        ge=0,
        le=1,
    )

    @property
    def allowed_error_rate(self) -> float:
        """Largest share of requests without a right answer with which it can be met."""
        return DEFAULT_ERROR_RATE if self.error_rate is None else self.error_rate
