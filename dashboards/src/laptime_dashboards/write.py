"""Write all dashboards as JSON, with sorted keys, into the folder that the chart ships."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from laptime_dashboards import compare, operator, run, runs, server, tiers
from laptime_dashboards.frame import (
    COMPARE_UID,
    OPERATOR_UID,
    RUN_UID,
    RUNS_UID,
    SERVER_UID,
    SINCE,
    TIERS_UID,
)

PLUGIN_VERSION = "11.1.0"
"""The oldest Grafana whose panels have these options."""


def dashboards() -> dict[str, Dashboard]:
    """Return all dashboards by their uid, which is the name of their file."""
    return {
        RUNS_UID: runs.build(),
        RUN_UID: run.build(),
        COMPARE_UID: compare.build(),
        SERVER_UID: server.build(),
        TIERS_UID: tiers.build(),
        OPERATOR_UID: operator.build(),
    }


def encode(dashboard: Dashboard) -> str:
    """Return a dashboard as Grafana reads it from a file."""
    document = json.loads(json.dumps(dashboard.build(), cls=JSONEncoder))
    for variable in document["templating"]["list"]:
        if variable["name"] == SINCE:
            # An address that somebody kept would bring the creation of an earlier run.
            variable["skipUrlSync"] = True
    every = [one for panel in document["panels"] for one in (panel, *panel.get("panels", ()))]
    for number, panel in enumerate(every, 1):
        # Links to one panel, to look at it alone or to embed it, go by its number.
        panel["id"] = number
        if panel["type"] != "row":
            # What has no version is taken for something older and is rewritten, XY charts wrongly.
            panel["pluginVersion"] = PLUGIN_VERSION
    return json.dumps(document, sort_keys=True, indent=1) + "\n"


def write(folder: Path) -> None:
    """Write each dashboard into the folder, and remove JSON files of dashboards that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{uid}.json": encode(dashboard) for uid, dashboard in dashboards().items()}
    for old in folder.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="whose JSON files become the dashboards")
    write(parser.parse_args().folder)
