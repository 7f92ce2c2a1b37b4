"""An estimate with its interval: what a figure is around, over its repetitions."""

from __future__ import annotations

from pydantic import Field

from laptime.api.base import TolerantModel


class Interval(TolerantModel):
    """An estimate with its 95 % confidence interval.

    Low and high are None below 2 repetitions, and one of them where a search found no upper end.
    """

    value: float = Field(description="The estimate.")
    low: float | None = Field(None, description="Lower end of the interval.")
    high: float | None = Field(None, description="Upper end of the interval.")
