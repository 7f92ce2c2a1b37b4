"""Scenarios and server presets as data, with a typed loader."""

from laptime.api.published import (
    OrderClaim,
    Published,
    PublishedMeasurement,
    PublishedServer,
)
from laptime.api.scenario import (
    ID_PLACEHOLDER,
    Afterwards,
    Answers,
    Check,
    Exchange,
    Ids,
    IdUse,
    Request,
)
from laptime.catalog.documents import (
    ScenarioError,
    config_maps_of,
    document_of,
    document_spec,
    scenario_of,
)
from laptime.catalog.loader import presets, scenarios
from laptime.catalog.models import UNKNOWN, Preset, RequestsAtOnce, Scenario

__all__ = [
    "ID_PLACEHOLDER",
    "UNKNOWN",
    "Afterwards",
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
    "ScenarioError",
    "config_maps_of",
    "document_of",
    "document_spec",
    "presets",
    "scenario_of",
    "scenarios",
]
