"""`laptime run` and `laptime watch`: measure, and come back to what is being measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from laptime.cli.mistakes import Mistake, Unreachable
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Name,
    Namespace,
    Output,
    OutputOption,
    Timeout,
    connect,
    existing_run,
    longest_of,
    namespace_of,
    program_name,
    where,
)
from laptime.cli.signals import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from laptime.analysis.against_baseline import AgainstBaseline
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.manifest_file import Manifest
    from laptime.cli.runs import Run

FailIfWorse = Annotated[
    bool,
    typer.Option(
        "--fail-if-worse",
        help="Exit with 2 when a server is worse than the baseline for sure, with 3 when none is "
        "and of one nobody knows.",
    ),
]


def run(
    file: Annotated[Path, typer.Argument(help="Manifest of a BenchmarkRun; - reads stdin.")],
    namespace: Namespace = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the run, instead of the one in the file."),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Delete a finished run of this name first: measure anew."),
    ] = False,
    fail_if_worse: FailIfWorse = False,
    timeout: Timeout = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Apply a BenchmarkRun, show its progress and, at the end, the table of figures.

    The exit code is 0 when it succeeded and met its objectives, 2 when it missed one, 3 when the
    figures do not say of one whether it was met, else 1. --fail-if-worse judges servers by the
    baseline, too.
    """
    from laptime.cli.changed_work import other_run
    from laptime.cli.manifest_file import read_manifest

    longest = longest_of(timeout)
    manifest = read_manifest(file)
    if name is not None:
        manifest = manifest.named(name)
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, manifest.namespace, cluster)
    over = measured(cluster, target, manifest, again, output, longest)
    _report(cluster, over, output, other_run(manifest, over), fail_if_worse=fail_if_worse)


def watch(
    name: Name,
    namespace: Namespace = None,
    fail_if_worse: FailIfWorse = False,
    timeout: Timeout = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the progress of a run that is there already, and its table at the end."""
    longest = longest_of(timeout)
    cluster = connect(kubeconfig, context)
    target = namespace_of(namespace, None, cluster)
    existing_run(cluster, target, name)
    over = _followed(cluster, target, name, output, longest)
    _report(cluster, over, output, fail_if_worse=fail_if_worse)


def followed(cluster: Cluster, run: Run, output: Output) -> Run:
    """Show the progress of a run that is there already, and return it when it is over."""
    return run if run.over else _followed(cluster, run.namespace, run.name, output)


def measured(
    cluster: Cluster,
    namespace: str,
    manifest: Manifest,
    again: bool,
    output: Output,
    longest: float = math.inf,
    *,
    replaces: str | None = None,
) -> Run:
    """Apply a run, show its progress, and return it when it is over.

    One of that name that is over already is the result, or is measured `again`: it is deleted when
    nothing is known that would keep the new one from being measured. `replaces` is the uid of the
    only one that may be deleted; None: any of that name.

    Raises:
        Mistake: the API server or the operator would refuse it, it began with other work than that
            of its file, or it was not over after `longest` seconds.
    """
    from laptime.cli.patience import patiently

    console = progress_console(output)
    before = cluster.run(namespace, manifest.name)
    if before is not None and replaces is not None and before.uid != replaces:
        raise Mistake(
            f"{before.name} was made by somebody in this moment: look at it, and try again"
        )
    finished = before is not None and before.over and not before.deleting
    if before is not None and (before.deleting or (again and finished)):
        if finished:
            _refuse_what_cannot_be(cluster, namespace, manifest)
            console.print(f"Deleting the finished run {before.name} and its results.")
        else:
            console.print(f"Waiting for {before.name} to be gone, which is being deleted.")
        patiently(partial(cluster.delete_run, before))
    if before is not None and not (before.over or before.deleting):
        _refuse_other_run(
            manifest,
            before,
            "Nothing was applied: wait until it is over and give --again, end it "
            f"({program_name()} cancel {before.name}{where(cluster, namespace)}), or give "
            "--name NAME.",
        )
        if again:
            _refuse_what_began(cluster, before)
            console.print(
                f"{before.name} has not begun: it is not deleted, and takes what is there when it "
                "begins."
            )
    if finished and not again:
        _refuse_what_was_edited(cluster, namespace, manifest)
    try:
        applied = patiently(partial(cluster.apply_file, namespace, manifest, manifest.run))
    except INTERRUPTED:
        there = f"{manifest.name}{where(cluster, namespace)}"
        _say_the_way_back(console, "The run may have been applied by now.", there)
        raise
    if applied.over:
        console.print(
            f"{applied.name} is finished already, this is its result; --again measures anew."
        )
    there = f"{applied.name}{where(cluster, applied.namespace)}"
    # A run that is queued takes what is there when it begins, and others apply files too.
    changed = (
        "Somebody changed what is in the cluster under that name while it was queued: give it a "
        f"name of its own in the file. End the run:  {program_name()} cancel {there}"
    )
    return _followed(
        cluster,
        applied.namespace,
        applied.name,
        output,
        longest,
        lambda run: _refuse_other_run(manifest, run, changed),
    )


def _refuse_other_run(manifest: Manifest, run: Run, what_to_do: str) -> None:
    """Raise Mistake where a run that goes on measures other work than its file has by now."""
    from laptime.cli.changed_work import other_run

    other = None if run.over else other_run(manifest, run)
    if other is not None:
        raise Mistake(f"{run.name} goes on. {other} {what_to_do}")


def _refuse_what_began(cluster: Cluster, run: Run) -> None:
    """Raise Mistake where a run that goes on is not measured anew, whatever images have changed."""
    if run.status.started_at is not None:
        there = f"{run.name}{where(cluster, run.namespace)}"
        raise Mistake(
            f"{run.name} goes on since {run.status.started_at}, with the images of then. Nothing "
            f"was applied: look at it ({program_name()} watch {there}), give --again when it is "
            f"over, end it ({program_name()} cancel {there}), or give --name NAME."
        )


def _refuse_what_was_edited(cluster: Cluster, namespace: str, manifest: Manifest) -> None:
    """Raise Mistake where a finished run of that name is another one, with what to do about it."""
    try:
        cluster.check_run(namespace, manifest.run)
    except Unreachable:
        raise
    except Mistake as mistake:
        raise Mistake(
            f"{mistake}\n{manifest.name} is finished: with --again its result is deleted and the "
            "file is measured, with --name NAME both are kept."
        ) from mistake


def _refuse_what_cannot_be(cluster: Cluster, namespace: str, manifest: Manifest) -> None:
    """Raise Mistake where a run would be refused, before its predecessor is deleted for it."""
    from laptime.cli.validate_command import refuse_misfits

    cluster.check_file(namespace, manifest, manifest.run, anew=True)
    refuse_misfits(cluster, namespace, manifest)


def progress_console(output: Output) -> Console:
    """Return where to say how far something is."""
    from laptime.cli.printing import PlainConsole

    # What a program reads must not have a progress bar in it.
    return PlainConsole(stderr=output is not Output.TABLE)


def _followed(
    cluster: Cluster,
    namespace: str,
    name: str,
    output: Output,
    longest: float = math.inf,
    judge: Callable[[Run], None] = lambda _: None,
) -> Run:
    """Show the progress of a run, and return it when it is over.

    `judge` is shown the run whenever it has begun with something, and may raise Mistake.
    """
    from laptime.cli.display import open_display
    from laptime.cli.follow import LEFT, follow, goes_on

    judged: object = None

    def look() -> Run | None:
        nonlocal judged
        run = cluster.run(namespace, name)
        began_with = run and (run.status.scripts, run.status.scenario_hash)
        if run is not None and began_with != judged:
            judged = began_with
            judge(run)
        return run

    console = progress_console(output)
    try:
        with open_display(console, name) as display:
            return follow(
                look, display, cluster.turns_before, longest=longest, chosen=cluster.chosen
            )
    except LEFT as ended:
        if goes_on(ended):
            there = f"{name}{where(cluster, namespace)}"
            _say_the_way_back(console, "The run goes on in the cluster.", there)
        raise


def _say_the_way_back(console: Console, lead: str, there: str) -> None:
    program = program_name()
    console.print(
        f"{lead} Come back:  {program} watch {there}\n"
        f"                           End it:      {program} cancel {there}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _report(
    cluster: Cluster,
    over: Run,
    output: Output,
    other: str | None = None,
    *,
    fail_if_worse: bool = False,
) -> NoReturn:
    """Print a run that is over, and exit; `other`: why it is not what was asked for."""
    from laptime.cli.printing import open_console, print_all, print_document
    from laptime.cli.result_table import result_lines

    if output is not Output.TABLE:
        print_document(
            {"name": over.name, "namespace": over.namespace, "status": over.status.to_wire()},
            output,
        )
        _exit(over, output, other, fail_if_worse)
    wide = open_console()
    print_all(result_lines(over, wide), wide)
    there = where(cluster, over.namespace)
    further = [
        f"kubectl get br{there} -o wide",
        f"kubectl describe br {over.name}{there}",
        f"{program_name()} report {over.name}{there}",
    ]
    suspect = _suspect(over)
    if suspect is not None:
        further.append(f"{program_name()} explain {over.name} --server {suspect}{there}")
    progress_console(output).print(
        "Look further:\n  " + "\n  ".join(further),
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    _exit(over, output, other, fail_if_worse)


def _exit(over: Run, output: Output, other: str | None, fail_if_worse: bool) -> NoReturn:
    from laptime.cli.result_table import exit_code

    if other is not None:
        # What somebody waits for with a pipeline is the work of the file.
        raise Mistake(other)
    judged = _judged(over, output) if fail_if_worse else None
    raise typer.Exit(exit_code(over.status, judged))


def _judged(over: Run, output: Output) -> AgainstBaseline:
    """Return which servers of a run are worse than the baseline, and say it where it succeeded."""
    from laptime.analysis.against_baseline import against_baseline
    from laptime.api.status import State

    control = None if over.spec is None else over.spec.control_name
    found = against_baseline(over.status.results or [], over.status.baseline, control)
    # Why a run failed is said above, and a server that was measured in part is a part of that.
    if over.status.state is State.SUCCEEDED:
        baseline = over.status.baseline or "the baseline"
        said = [f"Worse than {baseline}: {one}" for one in found.worse]
        said += [f"Not known whether worse than {baseline}: {one}" for one in found.not_known]
        for line in said:
            progress_console(output).print(line, highlight=False, markup=False, soft_wrap=True)
    return found


def _suspect(run: Run) -> str | None:
    """Return the first server of which an experiment could tell what limits it."""
    from laptime.analysis.explained import given_limit, in_vain
    from laptime.plan.experiments import candidates, possible

    if run.spec is None or run.explains is not None:
        return None
    deployed = {one.name: one for one in run.spec.deployed if one.name != run.spec.control_name}
    for row in run.status.results or []:
        server, found = deployed.get(row.server), row.limited_by
        if server is None or found is None or in_vain(row):
            continue
        suspected = candidates(server, [found.cause], given_limit(server.name, [row]))
        if possible(run.spec, server.name, suspected)[0]:
            return server.name
    return None
