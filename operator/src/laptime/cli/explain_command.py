"""`laptime explain`: what really limits a server, by giving it more and measuring again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laptime.api.experiment import FEWEST_REPETITIONS, Resource
from laptime.cli.mistakes import Mistake
from laptime.cli.options import (
    Context,
    Kubeconfig,
    Name,
    Namespace,
    Output,
    OutputOption,
    connect,
    existing_run,
    name_beside,
    namespace_of,
    program_name,
)

if TYPE_CHECKING:
    from rich.table import Table

    from laptime.analysis.explained import Explained
    from laptime.api.results import ResultRow
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run
    from laptime.plan.experiments import Experiment

_SUFFIX = "-explain"


def explain(
    name: Name,
    server: Annotated[
        str | None, typer.Option("--server", help="The server; needed where there are several.")
    ] = None,
    more: Annotated[
        list[Resource] | None,
        typer.Option(
            "--more", help="Try this one instead of what the run suspects; can be repeated."
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option("--repetitions", help="How often each is measured.", min=2)
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what was explained before.")
    ] = False,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Try what limited a server of a run: measure it beside itself with more of one resource.

    It is a run of its own, RUN-SERVER-explain. A cause is confirmed where more of it makes the
    server at least 5 % faster for sure, and refuted where it does not.
    """
    cluster = connect(kubeconfig, context)
    run = existing_run(cluster, namespace_of(namespace, None, cluster), name)
    spec = _readable(run)
    rows = run.status.results or []
    chosen = server or _only_server(spec)
    tried = _experiment(spec, rows, chosen, more or [], repetitions)
    from laptime.cli.run_commands import measured, progress_console

    console = progress_console(output)
    wanted = _manifest(name_beside(f"{name}-{chosen}", _SUFFIX), tried)
    _not_in_the_way(cluster.run(run.namespace, wanted.name), tried, again)
    for line in _announced(chosen, tried, wanted.name):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    over = measured(cluster, run.namespace, wanted, again, output)
    raise typer.Exit(_show(cluster, run, over, output))


def _readable(run: Run) -> BenchmarkRunSpec:
    if run.spec is None:
        raise Mistake(f"A newer version wrote {run.name}, and this one cannot read it.")
    if not run.over:
        raise Mistake(f"{run.name} is not over yet: what limited its servers is known then")
    return run.spec


def _only_server(spec: BenchmarkRunSpec) -> str:
    there = [one.name for one in spec.servers if one.name != spec.control_name]
    if len(there) > 1:
        raise Mistake(f"Which server? Write --server with one of {', '.join(there)}")
    return there[0]


def _experiment(
    spec: BenchmarkRunSpec,
    rows: Sequence[ResultRow],
    name: str,
    more: Sequence[Resource],
    repetitions: int | None,
) -> Experiment:
    from laptime.analysis import wording
    from laptime.plan.experiments import NothingToTryError, candidates, experiment

    of_server = [row for row in rows if row.server == name and row.limited_by is not None]
    suspected = {
        row.load: [row.limited_by.cause, *row.limited_by.also]
        for row in of_server
        if row.limited_by is not None
    }
    chosen: Sequence[Resource] = list(dict.fromkeys(more))
    loads = [one.name for one in spec.loads]
    if not chosen and name in (one.name for one in spec.servers):
        by_load = {load: candidates(spec.server(name), one) for load, one in suspected.items()}
        loads = [load for load in loads if by_load.get(load)]
        chosen = candidates(spec.server(name), (one for all_ in suspected.values() for one in all_))
        if not chosen:
            causes = [wording.cause(one) for one in dict.fromkeys(_each(suspected.values()))]
            raise Mistake(_nothing(name, causes))
    made = repetitions or max(spec.repetitions, FEWEST_REPETITIONS)
    try:
        return experiment(spec, name, chosen, loads, made)
    except NothingToTryError as error:
        raise Mistake(f"Nothing to try: {error}") from error


def _each(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [one for some in lists for one in some]


def _nothing(name: str, causes: Sequence[str]) -> str:
    choices = ", ".join(Resource)
    if not causes:
        return (
            f"Nothing is suspected of {name}, since nobody watched it or it was not measured. "
            f"Write --more with what to try: {choices}"
        )
    return (
        f"What limited {name} lies outside of it ({', '.join(causes)}), and all servers of a run "
        "share that. Change it in the topology, the loads or the nodes of a second run, and "
        f"compare both:  {program_name()} compare BEFORE AFTER\n"
        f"Or write --more with what to try: {choices}"
    )


def _manifest(name: str, tried: Experiment) -> Any:
    from laptime.api import API_VERSION, KIND
    from laptime.cli.manifest_file import Manifest

    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": tried.spec.to_wire(),
    }
    return Manifest(document, ())


def _not_in_the_way(before: Run | None, tried: Experiment, again: bool) -> None:
    """Leave alone what has the name and is no experiment on this server, or a different one."""
    if before is None or before.deleting:
        return
    there, wanted = before.spec, tried.spec
    name = wanted.baseline_name
    if there is None or (there.scenario, there.baseline_name, there.servers[0]) != (
        wanted.scenario,
        name,
        wanted.servers[0],
    ):
        raise Mistake(
            f"{before.name} is there already, and is no experiment on {name} as it is in the run: "
            f"delete it, if it is yours:  kubectl delete br {before.name} -n {before.namespace}"
        )
    if again or there == wanted.model_copy(update={"seed": there.seed}):
        return
    if not before.over:
        raise Mistake(f"{before.name} goes on, and tries something else: wait until it is over")
    raise Mistake(f"{before.name} tried something else: --again deletes it, and measures anew")


def _announced(name: str, tried: Experiment, run: str) -> list[str]:
    from laptime.plan import plan_trials, remaining_seconds

    trials = plan_trials(run, tried.spec, 0)
    minutes = remaining_seconds(tried.spec, trials, {}) / 60
    return [
        f"Run {run} measures {name} beside itself with more, {len(trials)} trials, about "
        f"{max(1, round(minutes))} min:",
        *(f"  {arm.server.name}: {arm.change}" for arm in tried.arms),
    ]


def _show(cluster: Cluster, run: Run, over: Run, output: Output) -> int:
    from laptime.analysis.explained import explained
    from laptime.cli.printing import open_console, print_all, print_document
    from laptime.cli.result_table import exit_code, result_lines
    from laptime.cli.run_commands import where

    found = explained(over.spec, over.status.results or []) if over.spec is not None else []
    other_work = run.status.scenario_hash != over.status.scenario_hash
    if output is not Output.TABLE:
        document = {
            "name": over.name,
            "namespace": over.namespace,
            "sameWork": not other_work,
            "explained": [_wire(one) for one in found],
        }
        print_document(document, output)
        return exit_code(over.status)
    console = open_console()
    print_all([*result_lines(over, console), _table(found)], console)
    if other_work:
        console.print(
            f"The scenario has changed since {run.name} was measured: this is about other work."
        )
    there = where(cluster, over.namespace)
    console.print(
        f"Look further:  {program_name()} report {over.name}{there}", highlight=False, markup=False
    )
    return exit_code(over.status)


def _wire(one: Explained) -> dict[str, Any]:
    return {
        "load": one.load,
        "server": one.arm,
        "change": one.change,
        "finding": str(one.finding),
        "gain": one.gain.to_wire() if one.gain is not None else None,
        "thenLimitedBy": str(one.then.cause) if one.then is not None else None,
        "message": one.why,
    }


def _table(found: Sequence[Explained]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from laptime.analysis import wording

    table = Table(
        title="What more of it gives", title_justify="left", title_style="dim", box=box.SIMPLE_HEAD
    )
    for heading in ("load", "more", "gain", "cause", "then limited by", ""):
        table.add_column(heading, overflow="fold")
    for one in found:
        gain = wording.factor(one.gain) if one.gain is not None else "-"
        then = wording.cause(one.then.cause) if one.then is not None else "-"
        cells = (one.load, one.change, gain, str(one.finding), then, one.why)
        table.add_row(*map(Text, cells))
    return table
