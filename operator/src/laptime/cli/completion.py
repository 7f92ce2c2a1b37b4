"""Completion in shells: of what stands in a cluster or the catalogue."""

from __future__ import annotations

import os
from enum import StrEnum

import typer

VARIABLE = "_LAPTIME_COMPLETE"
_SECONDS = 2.0


class Shell(StrEnum):
    """The shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion_script(shell: Shell, program: str = "laptime") -> str:
    """Return the script that makes a shell complete the words of `laptime`."""
    from typer import completion

    # What Typer's own --show-completion prints; that option knows no program called by a path.
    script = completion.get_completion_script  # type: ignore[attr-defined]
    return str(script(prog_name=program, complete_var=VARIABLE, shell=shell))


def prepare_completion() -> None:
    """Make Typer answer a shell that asks for words; without one it does nothing."""
    if VARIABLE in os.environ:
        from typer import completion

        completion.completion_init()  # type: ignore[attr-defined]


def run_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of runs that begin like this; none when no cluster answers."""
    # A shell that waits for a word must get neither an error nor a long wait.
    try:
        from laptime.cli.cluster_access import Cluster

        cluster = Cluster.connect(ctx.params.get("kubeconfig"), ctx.params.get("context"))
        names = cluster.run_names(ctx.params.get("namespace") or cluster.namespace, _SECONDS)
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


def scenario_names(incomplete: str) -> list[str]:
    """Return the scenarios of the catalogue that begin like this."""
    from laptime.catalog import scenarios

    return [name for name in scenarios() if name.startswith(incomplete)]
