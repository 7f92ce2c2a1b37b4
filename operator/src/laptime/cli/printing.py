"""Printing what a command found: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
import yaml
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from laptime.api.text import plain_lines
from laptime.cli.options import Output

_WIDTH_WITHOUT_TERMINAL = 140


class PlainConsole(Console):
    """A console on which only Rich itself can colour or move anything.

    Statuses, results and messages are other people's words: whoever may write ConfigMaps can put
    escape sequences into them, which Rich passes on; and of `app.py:100:` it would make a picture.
    """

    def __init__(self, **options: Any) -> None:
        """Take the options of Rich's console."""
        super().__init__(**options, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is printed, without anything in a text that could not be printed."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(plain_lines(one.text), one.style)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console; one that is no terminal is wide, since a pipe or a log has no width."""
    console = PlainConsole(stderr=stderr)
    if is_on_terminal(console):
        return console
    return PlainConsole(stderr=stderr, width=_WIDTH_WITHOUT_TERMINAL)


def is_on_terminal(console: Console) -> bool:
    """Return whether a console prints on a terminal, and not only in colours as on one."""
    # Rich takes FORCE_COLOR, which many pipelines set, for a terminal that can move.
    return console.is_terminal and console.file.isatty()


def say(text: str, *, err: bool = False) -> None:
    """Print text as it is, but for what cannot be printed."""
    typer.echo(plain_lines(text), nl=not text.endswith("\n"), err=err)


def print_document(document: Any, output: Output) -> None:
    """Print a JSON-ready document as JSON or YAML."""
    if output is Output.JSON:
        say(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        say(text)


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
