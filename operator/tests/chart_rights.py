"""What the chart's roles grant the operator, read from its templates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).resolve().parents[2] / "charts" / "laptime" / "templates"

Right = tuple[str, str, str]
"""Scope, resource with its group (and, in brackets, the one name it is for), verb."""

# What agent and Prometheus may do, and what the cluster's roles let people do: files of their own.
NOT_THE_OPERATORS = {"watch-role.yaml", "prometheus-serviceaccount.yaml", "rbac-users.yaml"}


def documents(file: str) -> list[dict[str, Any]]:
    """Return the objects of a template with all its conditions met; names as the helpers' are."""
    text = (TEMPLATES / file).read_text()
    lines = [line for line in text.splitlines() if not re.fullmatch(r"\s*\{\{-.*\}\}", line)]
    plain = re.sub(r'\{\{ include "(.*?)" .*?\}\}', r"\1", "\n".join(lines))
    return [one for one in yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "x", plain)) if one]


def asked_for(file: str) -> set[Right]:
    found: set[Right] = set()
    for one in documents(file):
        for rule in one.get("rules") or []:
            # A wildcard would be a word here that no right above has.
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames") or [""]:
                        what = f"{resource}.{group}" if group else resource
                        what += f" ({name})" if name else ""
                        scope = f"{one['kind']} {one['metadata']['name']}"
                        found |= {(scope, what, verb) for verb in rule["verbs"]}
            assert rule.keys() <= {"apiGroups", "resources", "resourceNames", "verbs"}
    return found


def operators_rights() -> set[Right]:
    """Return all that the operator asks for."""
    files = [one for one in sorted(TEMPLATES.iterdir()) if one.is_file()]
    ruled = [one.name for one in files if "\nrules:" in one.read_text()]
    return set().union(*(asked_for(one) for one in ruled if one not in NOT_THE_OPERATORS))


def granted() -> frozenset[tuple[str, str]]:
    """Return which verbs it may use on which resources, wherever that is."""
    return frozenset((what.split(" ")[0], verb) for _, what, verb in operators_rights())
