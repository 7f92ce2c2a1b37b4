"""Completion: of what stands in a cluster or the catalogue, for shells and for kubectl.

kubectl asks a program named `kubectl_complete-laptime` for the words that may follow
`kubectl laptime …`; it prints them line by line, and then a directive as Cobra defines it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum

import typer

VARIABLE = "_LAPTIME_COMPLETE"
_FILES_MAY_FOLLOW, _NO_FILES = 0, 4
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


def kubectl_completions(words: Sequence[str]) -> str:
    """Return what kubectl wants to hear; `words` follow `kubectl laptime`, the last unfinished."""
    from laptime.cli.main import complete

    line = ["laptime", *words]
    environment = {
        VARIABLE: "complete_bash",
        "COMP_WORDS": "\n".join(shlex.quote(word) for word in line),
        "COMP_CWORD": str(len(line) - 1),
    }
    out = io.StringIO()
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with contextlib.redirect_stdout(out):
            complete()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
    found = [word for word in out.getvalue().splitlines() if word]
    directive = _NO_FILES if found else _FILES_MAY_FOLLOW
    return "\n".join([*found, f":{directive}"])


def main() -> None:
    """Answer kubectl."""
    print(kubectl_completions(sys.argv[1:]))
