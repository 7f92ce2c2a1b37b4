"""What the client module writes."""

from __future__ import annotations

import json

import pytest
import yaml

from laptime.catalog import scenarios
from laptime.kube import Manifest, _json_that_is_yaml

TEXTS = [
    "plain", "Łódź", "emoji 🍲 and more 👩‍🍳", "line\u2028break", "next\x85line", "\x7f\x9f",
    "\ufeffbom", 'quote " and \\ud83c', "\\\\🍲", "tab\tand\nlines", "\uffff", "'1': [~]",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_applied_reads_the_same_as_json_and_as_yaml(text: str) -> None:
    manifest: Manifest = {"kind": "ConfigMap", "data": {text: text}}
    written = _json_that_is_yaml(manifest)
    assert json.loads(written) == manifest
    assert yaml.safe_load(written) == manifest


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_the_data_of_every_scenario_can_be_applied(name: str) -> None:
    manifest: Manifest = {"data": dict(scenarios()[name].init_sql)}
    assert yaml.load(_json_that_is_yaml(manifest), yaml.CSafeLoader) == manifest
