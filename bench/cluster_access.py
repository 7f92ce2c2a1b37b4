"""The way of the benchmarks to a cluster: kubectl, in the namespace `default`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laptime.report.archive import Archive

NAMESPACE = "default"


def kubectl(*arguments: str, stdin: str | None = None, check: bool = True) -> str:
    """Return kubectl's output; exit with what it said when it fails."""
    cache = Path(os.environ.get("LAPTIME_CACHE", Path.home() / ".cache" / "laptime"))
    program = shutil.which("kubectl", path=f"{cache}/bin/kubectl") or next(
        (str(path) for path in sorted(cache.glob("bin/kubernetes-*/kubectl"))),
        shutil.which("kubectl") or sys.exit("kubectl is missing: run `make cluster` first"),
    )
    done = subprocess.run(
        [program, "-n", NAMESPACE, *arguments], input=stdin, capture_output=True, text=True
    )
    if check and done.returncode != 0:
        sys.exit(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def kubectl_json(*arguments: str) -> Any:
    """Return what kubectl has as JSON; exit with what it said when it fails."""
    return json.loads(kubectl(*arguments, "-o", "json"))


def stored_of(run: str) -> Archive:
    """Return everything that a run has stored, wherever that is now."""
    from laptime.report.archive import stored_in

    return stored_in(kubectl_json("get", "configmaps", "-l", f"laptime.dev/run={run}")["items"])
