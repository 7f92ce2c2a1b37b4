"""`laptime suspend`, `resume`, `cancel` and `retry`: what may be asked of a run that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from laptime.api.results import RowState
from laptime.cli.mistakes import Mistake, NewerVersion
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Name,
    Namespace,
    connect,
    existing_run,
    namespace_of,
    program_name,
    where,
)

if TYPE_CHECKING:
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run


def suspend(
    name: Name,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Pause a run after the trial that is going on; other runs have their turn meanwhile."""
    cluster = connect(kubeconfig, context)
    run = _unfinished(cluster, namespace_of(namespace, None, cluster), name)
    cluster.change_run(run, {"suspend": True})
    again = _next("resume", cluster, run)
    typer.echo(f"{name} pauses after the trial that is going on. Go on:  {again}")


def resume(
    name: Name,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let a run that pauses queue again; what it has measured is kept."""
    cluster = connect(kubeconfig, context)
    run = _unfinished(cluster, namespace_of(namespace, None, cluster), name)
    if run.spec is not None and run.spec.cancel:
        raise Mistake(f"{name} was cancelled, which cannot be taken back: it ends")
    cluster.change_run(run, {"suspend": False})
    typer.echo(f"{name} goes on when it has its turn. Watch:  {_next('watch', cluster, run)}")


def cancel(
    name: Name,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """End a run now, with the figures and the report of what was measured so far."""
    cluster = connect(kubeconfig, context)
    run = _unfinished(cluster, namespace_of(namespace, None, cluster), name)
    cluster.change_run(run, {"cancel": True})
    typer.echo(f"{name} ends with what it has measured. Its table:  {_next('watch', cluster, run)}")


def retry(
    name: Name,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Measure the failed trials of a run that is over again; what was measured stays."""
    cluster = connect(kubeconfig, context)
    run = existing_run(cluster, namespace_of(namespace, None, cluster), name)
    if not run.over:
        raise Mistake(f"{name} is not over yet: what was lost is tried again by itself")
    if run.spec is None:
        raise NewerVersion(name)
    if run.spec.cancel:
        raise Mistake(f"{name} was cancelled: apply it under another name, or with --again")
    rows = run.status.results or []
    if rows and all(row.state is RowState.MEASURED for row in rows):
        raise Mistake(
            f"{name} has no failed trials: all was measured. To measure anew, apply it under "
            "another name, or with --again"
        )
    cluster.change_run(run, {"retry": max(run.spec.retry, run.status.retries or 0) + 1})
    watch = _next("watch", cluster, run)
    typer.echo(f"{name} queues again for its failed trials. Watch:  {watch}")


def _next(command: str, cluster: Cluster, run: Run) -> str:
    """Return what to type to ask something else of a run."""
    return f"{program_name()} {command} {run.name}{where(cluster, run.namespace)}"


def _unfinished(cluster: Cluster, namespace: str, name: str) -> Run:
    from laptime.cli.runs import UnreadStatus

    try:
        run = existing_run(cluster, namespace, name)
    except UnreadStatus as unread:
        # Whoever loads a cluster with this program can stop that with it.
        run = unread.run
    if run.over:
        raise Mistake(
            f"{name} is over ({run.status.state}). To measure anew, apply it under another name, "
            "or with laptime run --again"
        )
    return run
