"""How evenly the work of a server was spread over its worker processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from laptime.analysis import wording
from laptime.api.results import TrialResult
from laptime.api.server import Server
from laptime.api.usage import MOST_PROCESSES
from laptime.catalog import processes_of
from laptime.report.small_table import SmallTable


def process_tables(
    trials: Sequence[TrialResult], servers: Iterable[Server], load: str
) -> list[SmallTable]:
    """Return the table of the servers that had several worker processes; none without such."""
    lines = []
    for server in servers:
        workers = processes_of(server)
        if not 2 <= workers <= MOST_PROCESSES:
            continue
        each = [
            cores
            for trial in trials
            if (trial.server, trial.load) == (server.name, load)
            if len(cores := _cores(trial, server.name)) >= workers
        ]
        if each:
            lines.append((server.name, *_line([cores[:workers] for cores in each])))
    caption = (
        "CPU cores of each worker process, the busiest of a repetition first: means over the "
        "repetitions"
    )
    headings = ("Server", "Worker processes", "Cores", "The busiest, of their mean")
    return [SmallTable(caption, headings, tuple(lines))] if lines else []


def _cores(trial: TrialResult, server: str) -> list[float]:
    used = trial.usage.component("server", server) if trial.usage else None
    return [one.cores for one in used.worker_processes] if used is not None else []


def _line(each: Sequence[Sequence[float]]) -> tuple[str, str, str]:
    means = [fmean(ranked) for ranked in zip(*each, strict=True)]
    all_of_them = fmean(means)
    busiest = f"{means[0] / all_of_them:.2f}x" if all_of_them > 0 else "-"
    return str(len(means)), ", ".join(map(wording.number, means)), busiest
