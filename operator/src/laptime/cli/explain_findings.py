"""What experiments on servers have found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from laptime.analysis import wording
from laptime.analysis.explained import Explained, Finding, explained, gain_of, in_vain
from laptime.analysis.suspects import Suspects, suspects
from laptime.api.causes import Cause
from laptime.api.status import State
from laptime.cli.experiments import same_script
from laptime.cli.explain_next import goes_on
from laptime.cli.options import program_name
from laptime.cli.result_table import headline
from laptime.plan.experiments import besides, tried

if TYPE_CHECKING:
    from laptime.cli.runs import Run

_NOTHING = Suspects({}, (), ())


@dataclass(frozen=True)
class Findings:
    """What is known of what limits a server of a run."""

    run: Run
    server: str
    over: Run | None
    """The experiment; None: there is none."""
    found: Sequence[Explained]
    suspected: Suspects
    """But for what was tried."""
    same_work: bool = True
    otherwise: str = ""
    """What all arms had otherwise than the run; empty: nothing."""
    why: str = ""
    """Why there is no experiment, or it is not what was asked for."""
    complete: bool = True
    """Whether what was asked for and can be tried is there."""

    @property
    def same_run(self) -> bool:
        """Whether it is about this run, and not about an earlier one of its name."""
        return self.over is None or self.over.explains == self.run.uid


def findings_of(run: Run, over: Run, server: str, resizes: bool | None) -> Findings:
    """Return what an experiment on a server of a run has found, which is over.

    `resizes` says whether the cluster changes the CPU of pods that run; None: nobody knows.
    """
    found = explained(over.spec, over.status.results or []) if over.spec is not None else []
    works = [one.status.scenario_hash for one in (run, over)]
    other_work = None not in works and works[0] != works[1]
    other_work |= over.spec is not None and not all(
        same_script(load, over, run) for load in over.spec.loads
    )
    suspected = _NOTHING
    # In an earlier run something else may have been suspected.
    if over.spec is not None and over.explains == run.uid:
        confirmed = {one.load for one in found if one.finding is Finding.CONFIRMED}
        suspected = _suspects(run, server, resizes).but_for(tried(over.spec), confirmed)
    return Findings(
        run,
        server,
        over,
        found,
        suspected,
        same_work=not other_work,
        otherwise=besides(run.spec, over.spec) if run.spec and over.spec else "",
        complete=over.status.state is State.SUCCEEDED,
    )


def without_experiment(
    run: Run, server: str, resizes: bool | None, why: str, *, complete: bool
) -> Findings:
    """Return what is known of a server on which there is no experiment, and why there is none."""
    suspected = _suspects(run, server, resizes)
    return Findings(run, server, None, [], suspected, why=why, complete=complete)


def _suspects(run: Run, name: str, resizes: bool | None) -> Suspects:
    server = (
        next((one for one in run.spec.deployed if one.name == name), None) if run.spec else None
    )
    if run.spec is None or server is None:
        return _NOTHING
    rows = [row for row in run.status.results or [] if row.server == name and not in_vain(row)]
    return suspects(run.spec, server, rows, resizes)


def document(its: Findings) -> dict[str, Any]:
    """Return what programs read of a server."""
    why = [its.why] if its.why else []
    if its.over is not None and its.over.status.state is not State.SUCCEEDED:
        why.append(headline(its.over).plain)
    return {
        "server": its.server,
        "name": its.over.name if its.over is not None else None,
        "namespace": its.run.namespace,
        "sameRun": its.same_run,
        "sameWork": its.same_work,
        "besides": its.otherwise,
        "explained": [_wire(one) for one in its.found],
        "notToBeHad": [
            {"candidate": str(one.candidate), "loads": list(one.loads), "message": one.why}
            for one in its.suspected.not_to_be_had
        ],
        "message": "\n".join(why),
    }


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


def findings_table(every: Sequence[Findings], *, with_server: bool) -> Table:
    """Return a table of what was found, with the server of each line or without."""
    table = Table(
        title="What more of it gives", title_justify="left", title_style="dim", box=box.SIMPLE_HEAD
    )
    headings = ("load", "more", "gain", "cause", "then limited by", "")
    for heading in ("server", *headings) if with_server else headings:
        table.add_column(heading, overflow="fold")
    for its in every:
        for cells in _lines(its):
            table.add_row(*map(Text, (its.server, *cells) if with_server else cells))
    return table


def _lines(its: Findings) -> Iterator[tuple[str, ...]]:
    for one in its.found:
        then = wording.cause(one.then.cause) if one.then is not None else "-"
        yield one.load, one.change, gain_of(one) or "-", str(one.finding), then, one.why
    if not its.found and its.over is not None:
        yield "-", "-", "-", str(Finding.NOT_KNOWN), "-", ""
    without = its.suspected.not_to_be_had
    if its.over is None and (its.suspected.can_be or not (without and its.complete)):
        yield "-", "-", "-", "not tried", "-", ""
    for it in without:
        named = it.candidate
        what = wording.cause(named) if isinstance(named, Cause) else str(named)
        yield ", ".join(it.loads), what, "-", str(it.finding), "-", ""


def remarks(its: Findings, resizes: bool | None, there: str) -> Iterator[str]:
    """Yield what is to be said below the table, and what to type to go on.

    `there` are the options that choose the namespace and the cluster.
    """
    if its.why:
        yield from its.why.splitlines()
    if its.over is None:
        return
    for one in its.suspected.not_to_be_had:
        # A sentence or two, for which a column is too narrow.
        yield f"{one.finding.capitalize()}: {one.why}"
    if its.otherwise:
        yield f"Otherwise than in {its.run.name}: {its.otherwise}."
    if not its.same_run:
        yield f"It is about an earlier run named {its.run.name}: --again measures anew."
    if not its.same_work:
        yield (
            f"The scenario or a script has changed since {its.run.name} was measured: this is "
            "about other work."
        )
    yield f"Look further:  {program_name()} report {its.over.name}{there}"
    yield from goes_on(its.run, its.over, its.found, its.suspected.can_be, resizes, there)
