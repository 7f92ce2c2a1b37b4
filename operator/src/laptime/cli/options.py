"""Options that several commands have, and how they are turned into a connection."""

from __future__ import annotations

import hashlib
import math
import os
import shlex
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laptime.cli.completion import run_names
from laptime.cli.mistakes import Mistake
from laptime.cli.signals import end_as_by_ctrl_c

# The Kubernetes client takes a second to load: it is imported where it is used.
if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the run (default: the context's)."),
]
Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", help="Kubeconfig (default: $KUBECONFIG).")
]
Context = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig.")]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        help="How long to wait, such as 90m; then the exit code is 1, and the run goes on.",
    ),
]
Name = Annotated[str, typer.Argument(help="Name of the run.", autocompletion=run_names)]


_HASHED = 8
"""Characters of the hash in a name that was too long."""


class Output(StrEnum):
    """How a command prints what it found."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="For people, or for programs.")
]


def connect(kubeconfig: Path | None, context: str | None) -> Cluster:
    """Return a connection; Mistake when there is no cluster to talk to."""
    # Before the client writes a key into a file.
    end_as_by_ctrl_c()
    from laptime.cli.cluster_access import Cluster

    cluster = Cluster.connect(kubeconfig, context)
    given = {"--context": context, "--kubeconfig": kubeconfig}
    cluster.chosen = "".join(
        f" {option} {shlex.quote(str(value))}" for option, value in given.items() if value
    )
    return cluster


def namespace_of(option: str | None, manifest: str | None, cluster: Cluster) -> str:
    """Return the namespace of a run; Mistake when file and option disagree."""
    if option and manifest and option != manifest:
        raise Mistake(f"The file says namespace {manifest}, the option says {option}: which one?")
    return option or manifest or cluster.namespace


def where(cluster: Cluster, namespace: str) -> str:
    """Return the options that name a namespace and its cluster, where a command needs them."""
    option = "" if namespace == cluster.namespace else f" -n {shlex.quote(namespace)}"
    return f"{option}{cluster.chosen}"


def longest_of(timeout: str | None) -> float:
    """Return how many seconds to wait at most; Mistake when that is no duration."""
    from laptime.api.durations import parse_duration

    if timeout is None:
        return math.inf
    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise Mistake(f"--timeout {timeout}: {error}") from error


def existing_run(cluster: Cluster, namespace: str, name: str) -> Run:
    """Return a run; Mistake when there is none of that name."""
    found = cluster.run(namespace, name)
    if found is None:
        raise Mistake(
            f"There is no BenchmarkRun {name} in namespace {namespace}. "
            f"All of them: kubectl get br --all-namespaces{cluster.chosen}"
        )
    return found


def name_beside(name: str, suffix: str) -> str:
    """Return the name of a run that is made for another, which the suffix says of what kind."""
    from laptime.api.spec import MAX_RUN_NAME_LENGTH

    longest = MAX_RUN_NAME_LENGTH - len(suffix)
    if len(name) > longest:
        # Long names often differ at the end alone.
        whole = hashlib.sha256(name.encode()).hexdigest()[:_HASHED]
        name = f"{name[: longest - _HASHED - 1].rstrip('-')}-{whole}"
    return f"{name}{suffix}"


def program_name() -> str:
    """Return what to type to call this program again: `laptime`, `kubectl laptime` or a path."""
    called = Path(sys.argv[0])
    if called.name.startswith("kubectl-"):
        return called.name.replace("-", " ", 1)
    if called.name != "laptime":
        return "laptime"
    found = shutil.which("laptime")
    if found is not None and Path(found).absolute() == called.absolute():
        return "laptime"
    return os.path.relpath(called)
