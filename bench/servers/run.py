"""Whether the servers of the catalogue are as fast as minimal ones by the book.

    PYTHONPATH=bench:proof python3 bench/servers/run.py [--only PRESETS] [--repetitions N]
    PYTHONPATH=bench:proof python3 bench/servers/run.py --images

Needs a cluster with the chart installed (KUBECONFIG, or the embedded one) and the images in it
that the second form lists. For each server (pairs.py) it runs a BenchmarkRun of two: ours, and the
shortest program on the same libraries as their documentation shows it, with the same workers,
threads and pool. Prints a table in Markdown, then the figures beside their goals; exits with 1
when one of ours is slower or faster for sure, by more than 5 %, or was not measured, and says *not
judged* while any is undecided, or others used more of the machine than LIMITS say. A faster one is
not what its counterpart is.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from cluster_access import kubectl, results_of, run_to_end
from comparison import Comparison, conclusion, table
from going_on import OF_FIGURES, Taken
from laptime_proof.runner import NOT_JUDGED_CODE
from pairs import BOOK, LOAD, OURS, Pair, chosen

from laptime.api.results import ResultRow, RowState
from laptime.api.status import RunStatus, State

LIMITS = OF_FIGURES
LONGEST_SECONDS = 1200
"""A run with some fifty repetitions is over by then."""
ROOT = Path(__file__).resolve().parents[2]


def compared(pair: Pair, version: str) -> Comparison:
    """Measure a pair."""
    manifest = pair.manifest(version)
    status = RunStatus.model_validate(run_to_end(manifest, LONGEST_SECONDS))
    name = manifest["metadata"]["name"]
    succeeded = status.state is State.SUCCEEDED
    beyond = LIMITS.beyond(Taken.of(results_of(name))) if succeeded else ""
    kubectl("delete", "benchmarkrun", name, "--wait=false")
    rows = {row.server: row for row in status.results or []}
    refused = {one.name: one for one in status.servers or []}
    for server in (OURS, BOOK):
        if server not in rows:
            one = refused.get(server)
            rows[server] = ResultRow(
                server=server,
                load=LOAD,
                state=RowState.FAILED,
                reason=one.reason if one else None,
                message=one.message if one else status.verdict,
            )
    return Comparison.of(pair, list(rows.values()), beyond)


def main() -> int:
    """Print the table and the figures beside their goals; return 1 when one is missed, and
    NOT_JUDGED_CODE when that is not known.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="presets, separated by commas (default: all)")
    parser.add_argument("--repetitions", type=int, metavar="N", help="of each (default: 5, 3)")
    parser.add_argument("--images", action="store_true", help="list the images that are needed")
    arguments = parser.parse_args()
    try:
        pairs = chosen(arguments.only, arguments.repetitions)
    except ValueError as error:
        parser.error(str(error))
    if arguments.images:
        print(*dict.fromkeys(image for pair in pairs for image in pair.images))
        return 0
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    begun = time.monotonic()
    comparisons = []
    for number, pair in enumerate(pairs, start=1):
        comparison = compared(pair, version)
        comparisons.append(comparison)
        cells = "  ".join(cell.replace("`", "") for cell in comparison.cells)
        print(f"[{number}/{len(pairs)}] {cells}", flush=True)
        for text in (comparison.problem, comparison.beyond, *comparison.doubts):
            if text:
                print(f"  {text}", flush=True)
    print(f"\n{table(comparisons)}\n")
    lines, met = conclusion(comparisons)
    print(*lines, sep="\n")
    print(f"{'took':36} {(time.monotonic() - begun) / 60:6.1f} min")
    return NOT_JUDGED_CODE if met is None else int(not met)


if __name__ == "__main__":
    sys.exit(main())
