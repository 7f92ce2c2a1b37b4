"""Printing what a command found: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
import yaml
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from laptime.cli.options import Output

_WIDTH_WITHOUT_TERMINAL = 140


def open_console(*, stderr: bool = False) -> Console:
    """Return a console; one that is no terminal is wide, since a pipe or a log has no width."""
    console = Console(stderr=stderr)
    if console.is_terminal:
        return console
    return Console(stderr=stderr, width=_WIDTH_WITHOUT_TERMINAL)


def print_document(document: Any, output: Output) -> None:
    """Print a JSON-ready document as JSON or YAML."""
    if output is Output.JSON:
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        typer.echo(text, nl=False)


def print_all(lines: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print lines and tables."""
    console = console or open_console()
    for line in lines:
        console.print(line, highlight=False)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a table without frames, as kubectl has them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table
