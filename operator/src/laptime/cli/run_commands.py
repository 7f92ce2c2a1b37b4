"""`laptime run` and `laptime watch`: measure, and come back to what is being measured."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laptime.cli.options import (
    Context,
    Kubeconfig,
    Name,
    Namespace,
    Output,
    OutputOption,
    connect,
    existing_run,
    namespace_of,
    program_name,
)

if TYPE_CHECKING:
    from rich.console import Console

    from laptime.cli.cluster_access import Cluster


def run(
    file: Annotated[Path, typer.Argument(help="Manifest of a BenchmarkRun; - reads stdin.")],
    namespace: Namespace = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Delete a finished run of this name first: measure anew."),
    ] = False,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Apply a BenchmarkRun, show its progress and, at the end, the table of figures.

    The exit code is 0 when it succeeded and met its objectives, 2 when it missed one, 3 when the
    figures do not say of one whether it was met, else 1.
    """
    from laptime.cli.manifest_file import read_manifest

    manifest = read_manifest(file)
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, manifest.namespace, cluster)
    before = cluster.run(target, manifest.name)
    console = _progress_console(output)
    if before is not None and (before.deleting or (again and before.over)):
        console.print(f"Deleting the finished run {before.name} and its results.")
        cluster.delete_run(before)
    applied = cluster.apply_file(target, manifest, manifest.run)
    if applied.over:
        console.print(
            f"{applied.name} is finished already, this is its result; --again measures anew."
        )
    _follow_and_report(cluster, applied.namespace, applied.name, output)


def watch(
    name: Name,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the progress of a run that is there already, and its table at the end."""
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, None, cluster)
    existing_run(cluster, target, name)
    _follow_and_report(cluster, target, name, output)


def _progress_console(output: Output) -> Console:
    from laptime.cli.printing import PlainConsole

    # What a program reads must not have a progress bar in it.
    return PlainConsole(stderr=output is not Output.TABLE)


def _follow_and_report(cluster: Cluster, namespace: str, name: str, output: Output) -> None:
    from laptime.cli.display import open_display
    from laptime.cli.follow import follow
    from laptime.cli.printing import open_console, print_all, print_document
    from laptime.cli.result_table import exit_code, result_lines

    console = _progress_console(output)
    where = "" if namespace == cluster.namespace else f" -n {shlex.quote(namespace)}"
    try:
        with open_display(console, name) as display:
            over = follow(lambda: cluster.run(namespace, name), display, cluster.turns_before)
    except KeyboardInterrupt:
        console.print(
            f"The run goes on in the cluster. Come back:  {program_name()} watch {name}{where}\n"
            f"                           End it:      {program_name()} cancel {name}{where}",
            highlight=False,
            soft_wrap=True,
        )
        raise
    if output is not Output.TABLE:
        print_document(
            {"name": over.name, "namespace": over.namespace, "status": over.status.to_wire()},
            output,
        )
        raise typer.Exit(exit_code(over.status))
    wide = open_console()
    print_all(result_lines(over, wide), wide)
    console.print(
        "Look further:\n"
        f"  kubectl get br{where} -o wide\n"
        f"  kubectl describe br {name}{where}\n"
        f"  {program_name()} report {name}{where}",
        highlight=False,
        soft_wrap=True,
    )
    raise typer.Exit(exit_code(over.status))
