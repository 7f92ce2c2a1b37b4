"""The progress of a run on a terminal (bars that move) or in a log (a line now and then)."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from laptime.api.durations import format_duration
from laptime.cli.live_table import live_table
from laptime.cli.printing import is_on_terminal
from laptime.cli.progress import View

PLAIN_INTERVAL_SECONDS = 10.0


class Display(Protocol):
    """Where the progress of a run is shown."""

    def show(self, view: View) -> None:
        """Show the run as it is now."""

    def warn(self, text: str) -> None:
        """Say that something went wrong."""


def _time_left(view: View) -> str:
    if view.remaining_seconds is None:
        return ""
    if view.remaining_seconds < 1:
        # Before that, what is measured takes longer than was reckoned.
        return "nearly done" if view.all_measured else ""
    least = "at least " if view.to_begin else ""
    return f"{least}{format_duration(view.remaining_seconds)} left"


class LiveDisplay:
    """A progress bar and the figures so far; a context manager that leaves the screen clean."""

    def __init__(self, console: Console, name: str) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[trials]}"),
            TextColumn("[cyan]{task.fields[left]}"),
            TextColumn("[dim]{task.fields[current]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task(
            name, total=None, trials="", left="", current="waiting for the operator"
        )
        self._view: View | None = None
        self._live = Live(
            console=console, get_renderable=self._now, transient=True, refresh_per_second=8
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, view: View) -> None:
        """Move the bars."""
        self._view = view
        self._progress.update(
            self._task,
            description=view.state,
            total=view.total or None,
            completed=view.position,
            trials=view.share,
            left=_time_left(view),
            current=escape(view.current),
        )

    def warn(self, text: str) -> None:
        """Print a line above the bars."""
        self._live.console.print(f"[yellow]! {escape(text)}[/]", highlight=False)

    def _now(self) -> Group:
        measured = self._view is not None and any(row.trials for row in self._view.rows)
        if self._view is None or not measured:
            return Group(self._progress)
        return Group(self._progress, live_table(self._view))


class LineDisplay:
    """A line every ten seconds and at each change of state, for logs and CI."""

    def __init__(
        self,
        console: Console,
        name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._name = name
        self._clock = clock
        self._started = clock()
        self._last_at: float | None = None
        self._last_state = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to put back: lines stay."""

    def show(self, view: View) -> None:
        """Print a line when it is time for one or the state changed."""
        now = self._clock()
        due = self._last_at is None or now - self._last_at >= PLAIN_INTERVAL_SECONDS
        if not due and view.state == self._last_state:
            return
        self._last_at, self._last_state = now, view.state
        parts = [part for part in (view.state, view.share, view.current, _time_left(view)) if part]
        self._print(", ".join(parts))

    def warn(self, text: str) -> None:
        """Print it at once."""
        self._print(f"! {text}")

    def _print(self, text: str) -> None:
        elapsed = format_duration(self._clock() - self._started)
        self._console.print(
            f"[{elapsed:>6}] {self._name}: {text}", markup=False, highlight=False, soft_wrap=True
        )


def open_display(console: Console, name: str) -> LiveDisplay | LineDisplay:
    """Return the display that suits the console."""
    # On a dumb terminal (a shell in Emacs) nothing can be overwritten, and Rich shows nothing.
    moves = is_on_terminal(console) and not console.is_dumb_terminal
    return LiveDisplay(console, name) if moves else LineDisplay(console, name)
