"""How evenly the work of a server was spread over its worker processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from statistics import fmean

from laptime.analysis import wording
from laptime.api.results import TrialResult, Validity
from laptime.api.server import Server
from laptime.api.usage import MOST_PROCESSES
from laptime.catalog import processes_of
from laptime.measure.saturation import SHOWN_CORES
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
        # As in the row: trials that do not count there do not count here.
        each = [
            cores
            for trial in trials
            if (trial.server, trial.load) == (server.name, load)
            if trial.validity is not Validity.INVALID
            if len(cores := _cores(trial, server.name)) >= workers
        ]
        if each:
            lines.append((server.name, *_line(each, workers)))
    caption = (
        "CPU cores of each worker process, the busiest of a repetition first: means over the "
        "repetitions"
    )
    headings = ("Server", "Worker processes", "Cores", "The busiest, of their mean")
    return [SmallTable(caption, headings, tuple(lines))] if lines else []


def _cores(trial: TrialResult, server: str) -> list[float]:
    used = trial.usage.component("server", server) if trial.usage else None
    return [one.cores for one in used.worker_processes] if used is not None else []


def _line(each: Sequence[Sequence[float]], workers: int) -> tuple[str, str, str]:
    """Return how many processes there are, and what they used: more than it was told, if it has."""
    count = max(workers, *(sum(one >= SHOWN_CORES for one in cores) for cores in each))
    ranks = list(zip_longest(*each, fillvalue=0.0))[:count]
    means = [fmean(ranked) for ranked in ranks]
    all_of_them = fmean(means)
    busiest = f"{means[0] / all_of_them:.2f}x" if all_of_them > 0 else "-"
    return str(len(means)), ", ".join(map(wording.number, means)), busiest
