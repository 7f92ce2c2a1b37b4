"""What runs that were really measured say of their noise, in two halves.

`data/measured.json` has `tables`, one for each load of the runs that docs/results shows (or showed
at the commit named in `source`): value and ends of the 95 % interval of each server's throughput
and factor. They had fewer than 8 repetitions, so both were Student's, and the standard deviations
follow from them. `trials` are kept results, trial by trial.

The journal of bench-alike has whole runs of like servers, of several kinds, quiet and beside other
work: throughput and p99 of each trial. Of these not only the size of the noise is known but its
shape, so it is drawn from what was left over of their trials.

Which half a table or run belongs to was fixed before any rule was tried on them: the one that is
chosen by has the tables whose run and load, and the runs whose begin, have an even CRC-32.

Runs of thirteen like servers came when all was chosen, and are drawn from by themselves. By what
rule they enter was written down before (docs/statistics.md).
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from alike.kinds import FIGURES, KINDS
from numpy.typing import NDArray

from laptime.analysis.distributions import student_quantile

DATA = Path(__file__).parent / "data" / "measured.json"
UNTIL = 1795795800.0
"""Unix time: the journal grows, and what is drawn from it stays."""
UNTIL_OF_THIRTEEN = 1796054400.0
JOURNAL = Path(__file__).parents[1] / "alike" / "journal.jsonl"
Array = NDArray[np.float64]
_LEAST_OWN = 0.1
"""Share of a server's variance that is taken to be its own at least: what all servers have in
common in a repetition is known from three to five of them."""


def halves() -> tuple[list[list[float]], list[list[float]]]:
    """Return the standard deviations of the servers of each measured load: to choose by, held out.

    As logarithms, without what the repetitions did to all servers. Loads without any noise in the
    digits that are shown are left out, and servers that were measured once.
    """
    stored = json.loads(DATA.read_text())
    found: tuple[list[list[float]], list[list[float]]] = ([], [])
    for one in (*stored["tables"], *stored["trials"]):
        deviations = _of_table(one) if "rows" in one else _of_trials(one)
        if len(deviations) > 1:
            found[zlib.crc32(f"{one['run']} {one['load']}".encode()) % 2].append(deviations)
    return found


def left_over(*only: str, thirteen: bool = False) -> tuple[list[Array], list[Array]]:
    """Return what is left over of the trials of each run of like servers: to choose by, held out.

    One array for each figure of each run (all of FIGURES, or `only` some), repetitions by servers,
    in logarithms: without what a server has on average and what a repetition did to all, and as
    large as it was before these were taken out. Runs that lost a trial are left out. With
    `thirteen` it is that of the runs of thirteen servers, else that of all other kinds.
    """
    until = UNTIL_OF_THIRTEEN if thirteen else UNTIL
    found: tuple[list[Array], list[Array]] = ([], [])
    for line in JOURNAL.read_text().splitlines():
        run = json.loads(line)
        kind = run.get("kind", "four")
        if run["lost"] or run["began"] > until or (kind == "thirteen") != thirteen:
            continue
        half = found[zlib.crc32(f"{run['began']}".encode()) % 2]
        figures = [name for name in only or FIGURES if name in KINDS[kind].figures]
        half += [left_over_of(np.log(np.array([*run[name].values()]).T)) for name in figures]
    return found


def left_over_of(logs: Array) -> Array:
    """Return what is left over of one figure of a run: repetitions by servers, in logarithms."""
    repetitions, servers = logs.shape
    rest: Array = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    return rest * math.sqrt(logs.size / ((repetitions - 1) * (servers - 1)))


def _of_table(table: dict[str, Any]) -> list[float]:
    repetitions = table["repetitions"]
    rows = [row for row in table["rows"] if row["requests_per_second"]]
    variances = [_variance(row["requests_per_second"], repetitions) for row in rows]
    if not rows or rows[0]["factor"]:
        return []  # nothing known of the baseline, which stands first
    # The variance of a difference says what server and baseline have in common.
    together = [
        (variance + variances[0] - _variance(row["factor"], repetitions)) / 2
        for row, variance in zip(rows[1:], variances[1:], strict=True)
        if row["factor"]
    ]
    return _own(variances, float(np.median(together)) if together else 0.0)


def _of_trials(run: dict[str, Any]) -> list[float]:
    rates = list(run["requests_per_second"].values())
    y = np.log(np.array([one for one in rates if len(one) == len(rates[0])]))
    if y.shape[1] < 2 or len(y) < 2:
        return []
    covariances = np.cov(y)
    common = covariances[np.triu_indices(len(y), 1)]
    return _own([float(one) for one in np.diag(covariances)], float(np.median(common)))


def _own(variances: list[float], common: float) -> list[float]:
    return [
        math.sqrt(max(variance - max(common, 0.0), _LEAST_OWN * variance))
        for variance in variances
        if variance > 0
    ]


def _variance(interval: list[float], repetitions: int) -> float:
    _, low, high = interval
    error = math.log(high / low) / 2 / student_quantile(repetitions - 1, 0.975)
    return repetitions * error**2
