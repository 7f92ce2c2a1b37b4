"""`laptime servers`, `scenarios` and `schema`: what there is to compare, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laptime.cli.completion import scenario_names
from laptime.cli.mistakes import Mistake
from laptime.cli.options import Output, OutputOption

Scenario = Annotated[
    str | None,
    typer.Option("--scenario", help="Only servers of this one.", autocompletion=scenario_names),
]


def servers(scenario: Scenario = None, output: OutputOption = Output.TABLE) -> None:
    """List the servers that Laptime has images for: the presets of `spec.servers`."""
    from laptime.catalog import presets, scenarios
    from laptime.cli.printing import plain_table, print_all, print_document

    if scenario is not None and scenario not in scenarios():
        raise Mistake(f"There is no scenario {scenario}. There is: {', '.join(scenarios())}")
    found = [one for one in presets().values() if scenario is None or scenario in one.scenarios]
    if output is not Output.TABLE:
        print_document([one.to_wire() for one in found], output)
        return
    rows = [(one.name, one.title, one.language, ", ".join(one.scenarios)) for one in found]
    print_all([plain_table(("PRESET", "SERVER", "LANGUAGE", "SCENARIOS"), rows)])


def list_scenarios(output: OutputOption = Output.TABLE) -> None:
    """List the scenarios: the work that servers are compared on."""
    from laptime.catalog import scenarios
    from laptime.cli.printing import plain_table, print_all, print_document

    found = scenarios().values()
    if output is not Output.TABLE:
        print_document(
            [
                {
                    "name": one.name,
                    "title": one.title,
                    "description": one.description,
                    "needsDatabase": one.needs_database,
                    "requests": [request.to_wire() for request in one.requests],
                    "published": one.published.title if one.published else None,
                }
                for one in found
            ],
            output,
        )
        return
    rows = [
        (
            one.name,
            one.title,
            "yes" if one.needs_database else "no",
            ", ".join(f"{request.method} {request.path}" for request in one.requests),
            one.published.title if one.published else "",
        )
        for one in found
    ]
    headings = ("SCENARIO", "WORK", "DATABASE", "REQUESTS", "AS PUBLISHED BY")
    print_all([plain_table(headings, rows)])


def schema(
    folder: Annotated[Path, typer.Argument(help="Where to, such as the folder of the manifests.")],
) -> None:
    """Write the JSON schemas of runs and scenarios, by which an editor completes and checks them.

    `laptime init` writes the line that names them. In another manifest it is the first one of a
    document: # yaml-language-server: $schema=benchmarkrun.schema.json
    """
    from laptime.cli.generate import write_editor_schemas

    try:
        written = write_editor_schemas(folder)
    except OSError as error:
        raise Mistake(f"Cannot write into {folder}: {error.strerror}") from error
    for file in written:
        typer.echo(file)
