"""The way of the benchmarks to a cluster: kubectl, in the namespace `default`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laptime.report.archive import Archive

NAMESPACE = "default"


def _program() -> str:
    cache = Path(os.environ.get("LAPTIME_CACHE", Path.home() / ".cache" / "laptime"))
    return shutil.which("kubectl", path=f"{cache}/bin/kubectl") or next(
        (str(path) for path in sorted(cache.glob("bin/kubernetes-*/kubectl"))),
        shutil.which("kubectl") or sys.exit("kubectl is missing: run `make cluster` first"),
    )


def kubectl(*arguments: str, stdin: str | None = None, check: bool = True) -> str:
    """Return kubectl's output; exit with what it said when it fails."""
    done = subprocess.run(
        [_program(), "-n", NAMESPACE, *arguments], input=stdin, capture_output=True, text=True
    )
    if check and done.returncode != 0:
        sys.exit(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


@contextmanager
def watching(*arguments: str) -> Iterator[Iterable[str]]:
    """Give the lines of a kubectl that goes on until it is ended here."""
    command = [_program(), "-n", NAMESPACE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.terminate()


def kubectl_json(*arguments: str) -> Any:
    """Return what kubectl has as JSON; exit with what it said when it fails."""
    return json.loads(kubectl(*arguments, "-o", "json"))


def stored_of(run: str) -> Archive:
    """Return everything that a run has stored, wherever that is now."""
    from laptime.report.archive import stored_in

    return stored_in(kubectl_json("get", "configmaps", "-l", f"laptime.dev/run={run}")["items"])


def results_of(run: str) -> Any:
    """Return the results.json of a run that is over."""
    return json.loads(stored_of(run).files["results.json"])


def run_to_end(manifest: Mapping[str, Any], longest_seconds: float) -> dict[str, Any]:
    """Run a benchmark anew and return its status when it is over; exit when it never is.

    A run of that name that is there already is deleted with all that it stored.
    """
    name = manifest["metadata"]["name"]
    kubectl("delete", "benchmarkrun", name, "--ignore-not-found", "--wait=true")
    kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    begun = time.monotonic()
    while True:
        status: dict[str, Any] = kubectl_json("get", "benchmarkrun", name).get("status") or {}
        if status.get("state") in ("Succeeded", "Failed", "Cancelled"):
            return status
        if time.monotonic() - begun > longest_seconds:
            sys.exit(
                f"{name} did not end in {longest_seconds:.0f} s: {json.dumps(status, indent=1)}"
            )
        time.sleep(0.5)
