"""Scenarios and server presets as data, with a typed loader."""

from laptime.catalog.loader import presets, scenarios
from laptime.catalog.models import (
    ID_PLACEHOLDER,
    Answers,
    Check,
    Exchange,
    Ids,
    IdUse,
    OrderClaim,
    Preset,
    Published,
    PublishedMeasurement,
    PublishedServer,
    Request,
    RequestsAtOnce,
    Scenario,
)

__all__ = [
    "ID_PLACEHOLDER",
    "Answers",
    "Check",
    "Exchange",
    "IdUse",
    "Ids",
    "OrderClaim",
    "Preset",
    "Published",
    "PublishedMeasurement",
    "PublishedServer",
    "Request",
    "RequestsAtOnce",
    "Scenario",
    "presets",
    "scenarios",
]
