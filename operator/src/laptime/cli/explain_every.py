"""`laptime explain` of a whole run: each of its servers, one experiment after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from laptime.api.status import State
from laptime.cli.explain_findings import (
    Findings,
    document,
    findings_of,
    findings_table,
    remarks,
    without_experiment,
)
from laptime.cli.explain_plan import (
    Asked,
    MeasuredBefore,
    NotTried,
    Planned,
    about,
    announced,
    carried_out,
    cost,
    planned,
)
from laptime.cli.mistakes import Mistake, NotAccepted, Unreachable
from laptime.cli.options import Output, program_name, where
from laptime.cli.printing import open_console, print_all, print_document
from laptime.cli.result_table import headline, result_lines
from laptime.cli.run_commands import progress_console
from laptime.cli.signals import INTERRUPTED
from laptime.plan.experiments import tried

if TYPE_CHECKING:
    from laptime.api.experiment import Resource
    from laptime.api.spec import BenchmarkRunSpec
    from laptime.cli.cluster_access import Cluster
    from laptime.cli.runs import Run

_FOR_ALL = (Unreachable, NotAccepted)
"""What keeps one server from being explained and all others as well."""


class EveryServer:
    """The servers of a run, of which each has an experiment of its own."""

    def __init__(
        self, cluster: Cluster, run: Run, spec: BenchmarkRunSpec, asked: Asked, output: Output
    ) -> None:
        """Take the run, which is over, its spec, and what is asked of each server."""
        self._cluster, self._run, self._spec = cluster, run, spec
        self._asked, self._output = asked, output
        self._resizes = cluster.resizes_pods()
        self._console = progress_console(output)
        self._plans: dict[str, Planned] = {}
        self._found: dict[str, Findings] = {}

    def explain(self, servers: Sequence[str]) -> int:
        """Try what limited each of these servers, show what was found, and return the exit code.

        What keeps one from being explained keeps no other one. Where somebody ends it, or the
        cluster is out of reach, what was found until then is shown.
        """
        for server in servers:
            self._plan(server)
        self._announce(servers)
        to_do = [one for one in self._plans.values() if one.server not in self._found]
        try:
            for place, one in enumerate(to_do, 1):
                self._say(f"{place} of {len(to_do)}: {one.name}")
                self._measure(one)
        except (*INTERRUPTED, *_FOR_ALL):
            rest = [one for one in to_do if one.server not in self._found]
            for one in rest:
                anew = "anew " if self._asked.again else ""
                self._without(one.server, f"{one.name} is not measured {anew}yet", complete=False)
            self._show(servers)
            for line in self._what_is_missing(rest):
                self._say(line)
            raise
        self._show(servers)
        every = self._found.values()
        tried = any(one.over is not None for one in every)
        return 0 if tried and all(one.complete for one in every) else 1

    def _plan(self, server: str) -> None:
        try:
            one = planned(self._cluster, self._run, self._spec, server, self._asked, self._resizes)
        except _FOR_ALL:
            raise
        except MeasuredBefore as other:
            its = findings_of(self._run, other.run, server, self._resizes)
            self._found[server] = replace(its, why=str(other), complete=False)
        except Mistake as mistake:
            self._without(server, str(mistake), complete=isinstance(mistake, NotTried))
        else:
            self._plans[server] = one
            if one.stands is not None and one.stands.over:
                self._found[server] = findings_of(self._run, one.stands, server, self._resizes)

    def _announce(self, servers: Sequence[str]) -> None:
        costs = [cost(one) for one in self._plans.values() if one.to_make is not None]
        if costs:
            runs = f"{len(costs)} runs, one after the other" if len(costs) > 1 else "1 run"
            trials, seconds = map(sum, zip(*costs, strict=True))
            self._say(f"{runs}, {trials} trials, {about(seconds)} in all.")
        for server in servers:
            if server in self._plans:
                for line in announced(self._plans[server]):
                    self._say(line)
            else:
                self._say_of(server, self._found[server].why.splitlines())

    def _measure(self, one: Planned) -> None:
        try:
            over = carried_out(self._cluster, self._run, one, self._asked.again, self._output)
        except _FOR_ALL:
            raise
        except Mistake as mistake:
            self._say_of(one.server, str(mistake).splitlines())
            self._without(one.server, str(mistake), complete=False)
            return
        if self._output is Output.TABLE:
            console = open_console()
            print_all(result_lines(over, console), console)
        self._found[one.server] = findings_of(self._run, over, one.server, self._resizes)

    def _without(self, server: str, why: str, *, complete: bool) -> None:
        self._found[server] = without_experiment(
            self._run, server, self._resizes, why, complete=complete
        )

    def _show(self, servers: Sequence[str]) -> None:
        every = [self._found[server] for server in servers]
        if self._output is not Output.TABLE:
            print_document([document(one) for one in every], self._output)
            return
        print_all([findings_table(every, with_server=True)])
        there = where(self._cluster, self._run.namespace)
        for one in every:
            ended = one.over if one.over and one.over.status.state is not State.SUCCEEDED else None
            lines = list(remarks(one, self._resizes, there))
            if ended is not None:
                anew = f"{self._command} --server {one.server} --again{there}"
                lines += [headline(ended).plain, f"Measure it anew:  {anew}"]
            self._say_of(one.server, lines)

    def _what_is_missing(self, rest: Sequence[Planned]) -> list[str]:
        """Return what to type to have the rest explained, of which the first may go on."""
        if not rest:
            return []
        there = where(self._cluster, self._run.namespace)
        options = _options(self._asked.more, self._asked.repetitions)
        which = [options]
        if self._asked.again:
            first, *others = rest
            # Of the others there still is what was measured before.
            which = [f" --server {first.server}{self._of_the_first(first, options)}"]
            which += [f" --server {one.server} --again{options}" for one in others]
        return [f"What is missing:  {self._command}{one}{there}" for one in which]

    def _of_the_first(self, one: Planned, options: str) -> str:
        """Return with which options one that was to be measured anew is, by what is there now."""
        try:
            there = self._cluster.run(self._run.namespace, one.name)
        except Mistake:
            return ""  # which deletes nothing
        if there is not None and not there.deleting:
            return f" --again{options}" if there.uid == one.replaces else ""
        if one.to_make is None:
            return options
        return _options(tried(one.to_make.spec), one.to_make.spec.repetitions)

    @property
    def _command(self) -> str:
        return f"{program_name()} explain {self._run.name}"

    def _say_of(self, server: str, lines: Sequence[str]) -> None:
        self._say("\n  ".join([f"{server}:", *lines]))

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def _options(more: Sequence[Resource], repetitions: int | None) -> str:
    said = "".join(f" --more {one}" for one in more)
    return said if repetitions is None else f"{said} --repetitions {repetitions}"
