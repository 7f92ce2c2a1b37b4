"""What a run must have for its scenario, as CEL rules of the CRD."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from laptime.api.base import rule

_SQLITE = "(has(self.topology.database) && self.topology.database == 'sqlite')"


@dataclass(frozen=True)
class ScenarioFacts:
    """What the schema has to know of a scenario of the catalogue."""

    name: str
    endpoints: tuple[str, ...]
    """Names of its requests."""
    presets: tuple[str, ...]
    """The servers that implement it."""
    needs_database: bool = False
    offers_sqlite: bool = False
    needs_upstream: bool = False


def scenario_rules(scenarios: Sequence[ScenarioFacts]) -> list[dict[str, str]]:
    """Return the rules of the spec: one of each kind, whatever the number of scenarios.

    The API server estimates what all rules of a CRD may cost and refuses it above a bound
    (https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints).

    A server of the user's own may bring its own data: what a scenario needs beside the servers is
    asked for only where a preset is among them.
    """
    presets = {one.name: one.presets for one in scenarios}
    endpoints = {one.name: one.endpoints for one in scenarios}
    both = [one.name for one in scenarios if one.needs_database and one.offers_sqlite]
    postgres_only = [one.name for one in scenarios if one.needs_database and not one.offers_sqlite]
    asking = [one.name for one in scenarios if one.needs_upstream]
    offering = [one.name for one in scenarios if one.offers_sqlite]
    there = "has(self.topology.postgres)"
    return [
        rule(
            f"self.servers.all(s, !has(s.preset) || s.preset in {_map(presets)}[self.scenario])",
            f"write a preset of the scenario, or an image: {_by_scenario(presets)}",
            ".servers",
        ),
        rule(
            "self.loads.all(l, !has(l.endpoints) || "
            f"l.endpoints.all(e, e in {_map(endpoints)}[self.scenario]))",
            f"write endpoints of the scenario: {_by_scenario(endpoints)}",
            ".loads",
        ),
        _tier_rule(postgres_only, there, "need a database: add postgres: {} to the topology"),
        _tier_rule(
            both,
            f"({there} || {_SQLITE})",
            "need a database: add postgres: {} or database: sqlite to the topology",
        ),
        _tier_rule(
            asking,
            "has(self.topology.upstream)",
            "ask another service: add upstream: {} to the topology",
        ),
        rule(
            f"!has(self.topology) || !{_SQLITE} || self.scenario in {_list(offering)}",
            f"database: sqlite is offered by scenario {_or(offering)}: use postgres: {{}} instead",
            ".topology",
        ),
    ]


def _tier_rule(scenarios: Sequence[str], there: str, message: str) -> dict[str, str]:
    return rule(
        f"!(self.scenario in {_list(scenarios)}) || self.servers.all(s, !has(s.preset)) || "
        f"(has(self.topology) && {there})",
        f"the presets of scenario {_or(scenarios)} {message}",
        ".topology",
    )


def _map(names: Mapping[str, Iterable[str]]) -> str:
    return "{" + ", ".join(f"'{key}': {_list(names[key])}" for key in sorted(names)) + "}"


def _by_scenario(names: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{key} has {_or(names[key])}" for key in sorted(names))


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(names)) + "]"


def _or(names: Iterable[str]) -> str:
    *others, last = sorted(names)
    return f"{', '.join(others)} or {last}" if others else last
