"""Scenarios and server presets as data, with a typed loader."""

from laptime.api.feeders import Feeder, Use
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
from laptime.api.sessions import Capture, Session
from laptime.catalog.documents import (
    ScenarioError,
    config_maps_of,
    document_of,
    document_spec,
    scenario_of,
    stored_document,
    stored_text,
)
from laptime.catalog.feeding import rows_of
from laptime.catalog.filling import filled, filled_afterwards
from laptime.catalog.loader import presets, processes_of, scenarios, threads_of
from laptime.catalog.models import UNKNOWN, PackedSql, Preset, RequestsAtOnce, Scenario
from laptime.catalog.needs import missing_capture, values_of
from laptime.catalog.regexes import pattern_of
from laptime.catalog.service_problems import reference_problems
from laptime.catalog.templates import (
    Value,
    check_templates,
    names_in,
    plain_text,
)

__all__ = [
    "ID_PLACEHOLDER",
    "UNKNOWN",
    "Afterwards",
    "Answers",
    "Capture",
    "Check",
    "Exchange",
    "Feeder",
    "IdUse",
    "Ids",
    "OrderClaim",
    "PackedSql",
    "Preset",
    "Published",
    "PublishedMeasurement",
    "PublishedServer",
    "Request",
    "RequestsAtOnce",
    "Scenario",
    "ScenarioError",
    "Session",
    "Use",
    "Value",
    "check_templates",
    "config_maps_of",
    "document_of",
    "document_spec",
    "filled",
    "filled_afterwards",
    "missing_capture",
    "names_in",
    "pattern_of",
    "plain_text",
    "presets",
    "processes_of",
    "reference_problems",
    "rows_of",
    "scenario_of",
    "scenarios",
    "stored_document",
    "stored_text",
    "threads_of",
    "values_of",
]
