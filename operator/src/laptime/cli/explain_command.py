"""`laptime explain`: what really limits a server, by giving it more and measuring again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laptime.api.experiment import Resource
from laptime.cli.mistakes import Mistake, NewerVersion
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
    where,
)

if TYPE_CHECKING:
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.explain_plan import Asked
    from laptime.cli.runs import Run


def explain(
    name: Name,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", help="This server alone; without it each one, one after the other."
        ),
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
    """Try what limited the servers of a run: measure each beside itself with more of one resource.

    For each server it is a run of its own, RUN-SERVER-explain, one after the other; those that are
    there already are shown. A cause is confirmed where more of it makes the server at least 5 %
    faster for sure, and refuted where it does not.
    """
    from laptime.cli.explain_every import EveryServer
    from laptime.cli.explain_plan import Asked

    cluster = connect(kubeconfig, context)
    run = existing_run(cluster, namespace_of(namespace, None, cluster), name)
    spec = _readable(run)
    asked = Asked(more or [], repetitions, again)
    servers = [one.name for one in spec.servers if one.name != spec.control_name]
    if server is None and len(servers) > 1:
        raise typer.Exit(EveryServer(cluster, run, spec, asked, output).explain(servers))
    one = servers[0] if server is None else server
    raise typer.Exit(_explain_one(cluster, run, spec, one, asked, output))


def _readable(run: Run) -> BenchmarkRunSpec:
    if run.spec is None:
        raise NewerVersion(run.name)
    if not run.over:
        raise Mistake(f"{run.name} is not over yet: what limited its servers is known then")
    return run.spec


def _explain_one(
    cluster: Cluster, run: Run, spec: BenchmarkRunSpec, server: str, asked: Asked, output: Output
) -> int:
    from laptime.cli.explain_plan import announced, carried_out, planned
    from laptime.cli.run_commands import progress_console

    console = progress_console(output)
    resizes = cluster.resizes_pods()
    one = planned(cluster, run, spec, server, asked, resizes)
    for line in announced(one):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    over = carried_out(cluster, run, one, asked.again, output)
    return _show(cluster, run, over, server, resizes, output)


def _show(
    cluster: Cluster, run: Run, over: Run, server: str, resizes: bool | None, output: Output
) -> int:
    from laptime.cli.explain_findings import document, findings_of, findings_table, remarks
    from laptime.cli.printing import open_console, print_all, print_document
    from laptime.cli.result_table import result_lines

    its = findings_of(run, over, server, resizes)
    if output is not Output.TABLE:
        print_document(document(its), output)
    else:
        console = open_console()
        print_all([*result_lines(over, console), findings_table([its], with_server=False)], console)
        for line in remarks(its, resizes, where(cluster, over.namespace)):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0 if its.complete else 1
