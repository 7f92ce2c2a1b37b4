"""`laptime explain`: what really limits a server, by giving it more and measuring again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laptime.api.experiment import (
    ABOUT_ANNOTATION,
    EXPLAINS_LABEL,
    FEWEST_REPETITIONS,
    TIER_CPU,
    Resource,
)
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
    name_beside,
    namespace_of,
    program_name,
    where,
)

if TYPE_CHECKING:
    from rich.table import Table

    from laptime.analysis.explained import Explained
    from laptime.analysis.suspects import NotToBeHad, Suspects
    from laptime.api.results import ResultRow
    from laptime.api.server import Server
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.manifest_file import Manifest
    from laptime.cli.runs import Run
    from laptime.plan.experiments import Experiment

_SUFFIX = "-explain"
_HASHED = 6


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
    chosen = server or _only_server(spec)
    from laptime.cli.run_commands import followed, measured, progress_console

    console = progress_console(output)
    there = _name(name, chosen)
    resizes = cluster.resizes_pods()
    before = cluster.run(run.namespace, there)
    if before is not None and not before.deleting:
        _no_strangers(cluster, before, run, chosen)
        if not again and not more and repetitions is None:
            # What it tried stands in itself.
            if before.over:
                console.print(
                    f"{there} is finished already, this is its result; --again measures anew."
                )
            over = followed(cluster, before, output)
            raise typer.Exit(_show(cluster, run, over, resizes, output))
    results = run.status.results or []
    tries, loads = list(more or []), [one.name for one in spec.loads]
    left_out: list[str] = []
    if again and before is not None and before.spec is not None and before.explains == run.uid:
        # Somebody may have named what it tried, and its result is deleted.
        repetitions = repetitions or before.spec.repetitions
        if not tries:
            loads = [one.name for one in before.spec.loads]
            tries, left_out = _tried_by(before.spec, spec, chosen, results)
    tried, not_tried = _experiment(spec, results, chosen, tries, loads, resizes, repetitions)
    if before is not None and not before.deleting:
        if not before.over:
            raise Mistake(f"{there} goes on: wait until it is over, or end it with cancel")
        if not again:
            raise Mistake(f"{there} was measured before: --again deletes it, and measures anew")
    not_tried = list(dict.fromkeys([*left_out, *not_tried]))
    for line in [*_announced(chosen, tried, there), *(f"  Not tried: {one}" for one in not_tried)]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    manifest = _manifest(there, run, tried)
    known = before.uid if before is not None else ""
    over = measured(cluster, run.namespace, manifest, again, output, replaces=known)
    raise typer.Exit(_show(cluster, run, over, resizes, output))


def _name(run: str, server: str) -> str:
    """Return the name of the experiment on a server of a run, which no other one has.

    `demo-a` and `b` are put together as `demo` and `a-b` are: then a hash tells them apart.
    """
    both = f"{run}-{server}"
    if both.count("-") > 1:
        both += f"-{hashlib.sha256(f'{run}/{server}'.encode()).hexdigest()[:_HASHED]}"
    return name_beside(both, _SUFFIX)


def _readable(run: Run) -> BenchmarkRunSpec:
    if run.spec is None:
        raise NewerVersion(run.name)
    if not run.over:
        raise Mistake(f"{run.name} is not over yet: what limited its servers is known then")
    return run.spec


def _only_server(spec: BenchmarkRunSpec) -> str:
    there = [one.name for one in spec.servers if one.name != spec.control_name]
    if len(there) > 1:
        raise Mistake(f"Which server? Write --server with one of {', '.join(there)}")
    return there[0]


def _tried_by(
    before: BenchmarkRunSpec, spec: BenchmarkRunSpec, name: str, rows: Sequence[ResultRow]
) -> tuple[list[Resource], list[str]]:
    """Return what an experiment on a server of a run tried, and why not all of it is tried again.

    Not workers that the same limit would hold as well: an older version tried these.
    """
    from laptime.analysis.explained import given_limit, limited_by_the_cluster
    from laptime.plan.experiments import candidates, tried

    found, server = tried(before), next((one for one in spec.servers if one.name == name), None)
    its_rows = [row for row in rows if row.server == name]
    given = given_limit(name, its_rows)
    if server is None or given is None:
        return found, []
    suspected = [row.limited_by for row in its_rows if row.limited_by is not None]
    causes = [cause for one in suspected for cause in (one.cause, *one.also)]
    held = set(candidates(server, causes)).difference(candidates(server, causes, given))
    left = [one for one in found if one not in held]
    return left, [limited_by_the_cluster(name, given)] if left != found else []


def _experiment(
    spec: BenchmarkRunSpec,
    rows: Sequence[ResultRow],
    name: str,
    more: Sequence[Resource],
    loads: Sequence[str],
    resizes: bool | None,
    repetitions: int | None,
) -> tuple[Experiment, list[str]]:
    """Return the experiment, and why some of what is suspected is not in it.

    What a cluster `resizes` for all anybody knows (None) is tried where it was asked for.
    """
    from laptime.analysis.explained import in_vain
    from laptime.analysis.suspects import TOO_OLD
    from laptime.plan.experiments import NothingToTryError, changeable, experiment

    made = repetitions or max(spec.repetitions, FEWEST_REPETITIONS)
    try:
        server = changeable(spec, name)
        its_rows = [row for row in rows if row.server == name]
        vain = {row.load: why for row in its_rows if row.load in loads and (why := in_vain(row))}
        loads = [one for one in loads if one not in vain]
        chosen, not_tried = list(dict.fromkeys(more)), list(vain.values())
        if not loads:
            raise NothingToTryError("; ".join(not_tried))
        asked_in_vain = [f"{one}: {TOO_OLD}" for one in TIER_CPU if one in chosen]
        if asked_in_vain and resizes is False:
            raise NothingToTryError("; ".join(asked_in_vain))
        if not chosen:
            its_rows = [row for row in its_rows if row.load in loads]
            chosen, loads, others = _suspected(spec, server, its_rows, resizes, not_tried)
            not_tried += others
        return experiment(spec, name, chosen, loads, made), not_tried
    except NothingToTryError as error:
        raise Mistake(f"Nothing to try: {error}") from error


def _suspected(
    spec: BenchmarkRunSpec,
    server: Server,
    rows: Sequence[ResultRow],
    resizes: bool | None,
    vain: Sequence[str],
) -> tuple[list[Resource], list[str], list[str]]:
    """Return what is to be tried, under which loads, those that it may limit, and why not more.

    `vain` says under which loads nothing could be compared, which are not among the rows.
    """
    from laptime.analysis.suspects import suspects
    from laptime.plan.experiments import MOST_CANDIDATES, NothingToTryError

    found = suspects(spec, server, rows, resizes)
    if not any(found.by_load.values()):
        raise Mistake("\n".join([*vain, _nothing(spec, server.name, rows)]))
    not_tried = [one.why for one in found.not_to_be_had]
    chosen, left = list(found.can_be[:MOST_CANDIDATES]), found.can_be[MOST_CANDIDATES:]
    if not chosen:
        raise NothingToTryError("; ".join(not_tried))
    not_tried += [f"{one}: an experiment tries {MOST_CANDIDATES} at most" for one in left]
    loads = [load for load, its in found.by_load.items() if set(its) & set(chosen)]
    return chosen, loads, not_tried


def _nothing(spec: BenchmarkRunSpec, name: str, rows: Sequence[ResultRow]) -> str:
    from laptime.analysis import wording
    from laptime.analysis.suspects import load_itself
    from laptime.api.causes import Cause
    from laptime.api.results import Validity

    choices = f"Write --more with what to try: {', '.join(Resource)}"
    found = {row.load: row.limited_by for row in rows if row.limited_by is not None}
    causes = list(dict.fromkeys(one.cause for one in found.values()))
    itself = [(load, one) for load, one in found.items() if one.cause is Cause.OFFERED_LOAD]
    said = [why for load, one in itself if (why := load_itself(spec.load(load), one)) is not None]
    of_load = f"Of {name} itself nothing is suspected: {'; '.join(said)}\n" if said else ""
    known = [one for one in causes if one not in (Cause.UNKNOWN, Cause.OFFERED_LOAD)]
    if known:
        return (
            f"What limited {name} lies outside of it "
            f"({', '.join(wording.cause(one) for one in known)}), and all servers of a run share "
            "that. Change it in the topology, the loads or the nodes of a second run, and compare "
            f"both:  {program_name()} compare BEFORE AFTER\n{of_load}Or: {choices}"
        )
    if of_load:
        return f"{of_load}Or: {choices}"
    if Cause.UNKNOWN in causes:
        return f"What limited {name} is not known. {choices}"
    if causes:
        return f"Nothing limited {name}: all that was sent was answered in time. {choices}"
    invalid = next((one for one in rows if one.validity is Validity.INVALID), None)
    if invalid is not None:
        why = next(iter(invalid.validity_reasons), "no valid trial")
        return f"Nothing is suspected of {name}: its figures are invalid ({why}). {choices}"
    return f"Nothing is suspected of {name}: nobody watched it, or it was not measured. {choices}"


def _manifest(name: str, run: Run, tried: Experiment) -> Manifest:
    from laptime.api import API_VERSION, KIND
    from laptime.api.spec import CHANGEABLE
    from laptime.cli.manifest_file import Manifest

    # What may be changed of a run that is there is not spelt out: it is nothing that was tried.
    spec = {key: one for key, one in tried.spec.to_wire().items() if key not in CHANGEABLE}
    labels = {EXPLAINS_LABEL: run.uid}
    annotations = {ABOUT_ANNOTATION: f"{run.name}/{tried.spec.baseline_name}"}
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": spec,
    }
    return Manifest(document, ())


def _no_strangers(cluster: Cluster, before: Run, run: Run, server: str) -> None:
    """Leave a run alone that has the name of the experiment, and is none on this server.

    One on an earlier run of the same name is meant, too: what it says of itself tells so.
    """
    about = f"{run.name}/{server}"
    ours = before.explains == run.uid and before.about in (None, about)
    if before.explains is None or not (ours or before.about == about):
        raise Mistake(
            f"{before.name} is there already, and is no experiment on {server} of {run.name}: "
            f"delete it, if it is yours:  kubectl delete br {before.name} -n {before.namespace}"
            f"{cluster.chosen}"
        )
    if before.spec is None:
        raise NewerVersion(before.name)


def _announced(name: str, tried: Experiment, run: str) -> list[str]:
    from laptime.plan import plan_trials, remaining_seconds

    trials = plan_trials(run, tried.spec, 0)
    minutes = remaining_seconds(tried.spec, trials, {}) / 60
    return [
        f"Run {run} measures {name} beside itself with more under "
        f"{', '.join(one.name for one in tried.spec.loads)}, {len(trials)} trials, about "
        f"{max(1, round(minutes))} min:",
        *(f"  {arm.server.name}: {arm.change}" for arm in tried.arms),
        *([f"  {tried.besides}"] if tried.besides else []),
    ]


def _show(
    cluster: Cluster,
    run: Run,
    over: Run,
    resizes: bool | None,
    output: Output,
) -> int:
    from laptime.analysis.explained import explained
    from laptime.api.status import State
    from laptime.cli.experiments import same_script
    from laptime.cli.explain_next import goes_on
    from laptime.cli.printing import open_console, print_all, print_document
    from laptime.cli.result_table import result_lines
    from laptime.plan.experiments import besides

    found = explained(over.spec, over.status.results or []) if over.spec is not None else []
    works = [one.status.scenario_hash for one in (run, over)]
    other_work = None not in works and works[0] != works[1]
    other_work |= over.spec is not None and not all(
        same_script(load, over, run) for load in over.spec.loads
    )
    other_run = over.explains != run.uid
    otherwise = besides(run.spec, over.spec) if run.spec and over.spec else ""
    suspected = _suspects(run, over, found, resizes)
    code = 0 if over.status.state is State.SUCCEEDED else 1
    if output is not Output.TABLE:
        document = {
            "name": over.name,
            "namespace": over.namespace,
            "sameRun": not other_run,
            "sameWork": not other_work,
            "besides": otherwise,
            "explained": [_wire(one) for one in found],
            "notToBeHad": [
                {"candidate": str(one.candidate), "loads": list(one.loads), "message": one.why}
                for one in suspected.not_to_be_had
            ],
        }
        print_document(document, output)
        return code
    console = open_console()
    print_all([*result_lines(over, console), _table(found, suspected.not_to_be_had)], console)
    for one in suspected.not_to_be_had:
        # A sentence or two, for which a column is too narrow.
        line = f"{one.finding.capitalize()}: {one.why}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if otherwise:
        console.print(f"Otherwise than in {run.name}: {otherwise}.", highlight=False, markup=False)
    if other_run:
        console.print(f"It is about an earlier run named {run.name}: --again measures anew.")
    if other_work:
        console.print(
            f"The scenario or a script has changed since {run.name} was measured: this is about "
            "other work."
        )
    there = where(cluster, over.namespace)
    further = f"Look further:  {program_name()} report {over.name}{there}"
    for line in [further, *goes_on(run, over, found, suspected.can_be, resizes, there)]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return code


def _suspects(run: Run, over: Run, found: Sequence[Explained], resizes: bool | None) -> Suspects:
    """Return what the run suspects of the server of an experiment, but for what that tried.

    Nothing where it is about an earlier run, in which something else may have been suspected.
    """
    from laptime.analysis.explained import Finding, in_vain
    from laptime.analysis.suspects import Suspects, suspects
    from laptime.plan.experiments import tried

    if run.spec is None or over.spec is None or over.explains != run.uid:
        return Suspects({}, (), ())
    name = over.spec.baseline_name
    server = next((one for one in run.spec.deployed if one.name == name), None)
    rows = [row for row in run.status.results or [] if row.server == name and not in_vain(row)]
    if server is None:
        return Suspects({}, (), ())
    confirmed = {one.load for one in found if one.finding is Finding.CONFIRMED}
    return suspects(run.spec, server, rows, resizes).but_for(tried(over.spec), confirmed)


def _wire(one: Explained) -> dict[str, Any]:
    return {
        "load": one.load,
        "server": one.arm,
        "change": one.change,
        "finding": str(one.finding),
        "gain": one.gain.to_wire() if one.gain is not None else None,
        "metric": str(one.compared_by),
        "thenLimitedBy": str(one.then.cause) if one.then is not None else None,
        "message": one.why,
    }


def _table(found: Sequence[Explained], without: Sequence[NotToBeHad]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from laptime.analysis import wording
    from laptime.analysis.explained import gain_of
    from laptime.api.causes import Cause

    table = Table(
        title="What more of it gives", title_justify="left", title_style="dim", box=box.SIMPLE_HEAD
    )
    for heading in ("load", "more", "gain", "cause", "then limited by", ""):
        table.add_column(heading, overflow="fold")
    for one in found:
        then = wording.cause(one.then.cause) if one.then is not None else "-"
        cells = (one.load, one.change, gain_of(one) or "-", str(one.finding), then, one.why)
        table.add_row(*map(Text, cells))
    for it in without:
        named = it.candidate
        what = wording.cause(named) if isinstance(named, Cause) else str(named)
        cells = (", ".join(it.loads), what, "-", str(it.finding), "-", "")
        table.add_row(*map(Text, cells))
    return table
