"""The first isolated run of docs/real-cluster.md is what chart and API server take.

On three nodes its commands are carried out by e2e/runs/test_placements.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from laptime.cli.own_schemas import violations
from laptime.manifests.placement import PlacedPart
from laptime.reconcile.placements import Placements

PAGE = Path(__file__).parents[2] / "docs" / "real-cluster.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
COMMANDS = next(text for _, text in BLOCKS if "helm install" in text)
FILES: dict[str, Any] = {
    text.partition("\n")[0].removeprefix("# "): yaml.safe_load(text)
    for language, text in BLOCKS
    if language == "yaml"
}


def test_it_takes_ten_commands_at_most() -> None:
    assert len(COMMANDS.splitlines()) <= 10


def test_nodes_are_kept_free_before_anything_of_laptime_can_come_to_them() -> None:
    """A taint moves nobody, and its Prometheus works each second of a trial."""
    order = ["kubectl label node", "kubectl taint node", "helm install", "kubectl apply"]
    places = [COMMANDS.index(command) for command in order]
    assert places == sorted(places)


def test_the_run_is_accepted_in_the_placement_that_the_values_name() -> None:
    values, run = FILES["placements.yaml"], FILES["isolated.yaml"]
    assert violations(run) == ([], True)
    (namespace,) = values["runNamespaces"]
    placements = Placements.from_wire(values["placements"])
    found = placements.chosen(run["spec"]["placement"], namespace, None, begun=False)
    assert found is not None
    # Each part has nodes of its own.
    labels = [found.rules[part]["nodeSelector"]["laptime"] for part in PlacedPart]
    assert labels == ["servers", "tiers", "generators"]
    assert all(f" laptime={label}\n" in COMMANDS for label in labels)
