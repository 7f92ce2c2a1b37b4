"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from laptime import __version__
from laptime.analysis import Summary, wording
from laptime.analysis.duet import pairing_said
from laptime.api.node_path import NodePath
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import ResultRow, TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript, State
from laptime.catalog import Published, Scenario
from laptime.report.feeders import FeederKept

LEFT_OUT = {
    "scenario.document": "the scenario",
    "trials.usage.components.coresOverTime": "CPU over time",
    "trials.usage.components.processes": "CPU of single processes",
    "trials.script": "what scripts said in single trials",
    "trials.endpoints": "figures of each request",
    "trials": "single trials",
    "rows.script.metrics": "metrics of scripts",
    "rows.message": "messages of failures",
    "rows.publishedMissing": "why published factors are missing",
    "rows.validityReasons": "reasons of doubts",
    "rows.limitedBy": "what limited whom",
    "rows.usage": "CPU and memory",
    "rows.script": "what scripts said",
    "rows.latencyFigures": "intervals of response times",
    "rows.uncorrectedFigures": "intervals of response times from sent",
    "rows.latency": "response times of all repetitions together",
    "rows.uncorrectedLatency": "the same from sent",
}
"""What may be left out of a document, for people. The spec is read from the run itself then."""


@dataclass(frozen=True)
class Experiment:
    """What a run of its own found of what limits a server under a load."""

    name: str
    """Of that run."""
    server: str
    load: str
    found: Sequence[str]
    """In words, one for each thing that was tried."""


@dataclass(frozen=True)
class End:
    """How a run ended."""

    state: str
    """As its status has it: Succeeded, Failed or Cancelled."""
    reason: str
    """CamelCase, of its condition `Succeeded`."""
    message: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that is known of a run when it is over."""

    name: str
    namespace: str
    spec: BenchmarkRunSpec
    seed: int
    summary: Summary
    trials: Sequence[TrialResult]
    """In the order in which they ran."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Where it was measured: names and values as the caller knows them, such as node and CPU."""
    left_out: Sequence[str] = ()
    """What its document had no place for, as in `leftOut` of results.json."""
    scenario: Scenario | None = None
    """What the run did, without the rows of its feeders; None where nobody kept it."""
    scenario_hash: str | None = None
    """Stands for the work, also where the scenario itself was left out."""
    scenario_builtin: bool | None = None
    """Whether it comes with Laptime, also where it was left out; None where nobody knows."""
    feeders: Sequence[FeederKept] = ()
    """What its feeders hold, but for the rows, which are in no report."""
    published: Published | None = None
    """The published benchmark behind it."""
    placement: RunPlacement | None = None
    """Where the administrator let it be measured; None: anywhere."""
    scripts: Sequence[KeptScript] = ()
    """The ConfigMaps of scripts as they were when it began; none where an older version did."""
    node_paths: Sequence[NodePath] = ()
    """What its nodes exchange, of each two that were apart."""
    end: End | None = None
    """How it ended; None where nobody knows."""
    experiments: Sequence[Experiment] = ()
    """What was tried since of what limits its servers."""
    laptime_version: str = __version__
    """Of the Laptime that measured it."""
    between: tuple[str | None, str | None] = (None, None)
    """What `measured_between` is of a document too large for its trials."""

    def experiments_on(self, row: ResultRow) -> list[Experiment]:
        """Return those on the server of a row, under its load."""
        return [one for one in self.experiments if (one.server, one.load) == (row.server, row.load)]

    @property
    def end_said(self) -> str:
        """How the run ended where it did not succeed, as a sentence without its end; or empty."""
        if self.end is None or self.end.state == State.SUCCEEDED:
            return ""
        parts = dict.fromkeys((self.end.state, self.end.reason, self.end.message))
        return f"The run ended as {': '.join(part for part in parts if part)}"

    @property
    def surroundings(self) -> dict[str, str]:
        """Return names and values of where it was measured, as reports show them."""
        placed = {"Placement": self.placement.said} if self.placement else {}
        return {
            **placed,
            **self._pairing,
            **self._rotation,
            **self._network,
            **self._between_nodes,
            **self.environment,
        }

    @property
    def _pairing(self) -> dict[str, str]:
        """Return whether servers were measured at the same time, by the trials themselves."""
        said = pairing_said(self.trials) if self.spec.duet else []
        return {"Pairing": "; ".join(said)} if said else {}

    @property
    def _between_nodes(self) -> dict[str, str]:
        """Return what two nodes exchange, measured between trials."""
        if not self.node_paths:
            return {}
        return {"Between the nodes": "; ".join(map(wording.node_path, self.node_paths))}

    @property
    def _network(self) -> dict[str, str]:
        """Return how the network between generators and servers was, by all trials."""
        known = [one.network for one in self.trials if one.network is not None]
        trips = [one.round_trip_seconds for one in known if one.round_trip_seconds is not None]
        sent = sum(one.segments_sent for one in known)
        if not trips or not sent:
            return {}
        again = sum(one.segments_sent_again for one in known)
        shortest, longest = (wording.latency(one) for one in (min(trips), max(trips)))
        trip = shortest if shortest == longest else f"{shortest} to {longest}"
        lost = f"{again:,} of {sent:,} segments sent again" if again else "nothing sent again"
        return {"Network to the servers": f"{trip} there and back at least; {lost}"}

    @property
    def _rotation(self) -> dict[str, str]:
        """Return on which nodes the servers were in which repetitions, where nodes rotate."""
        if self.spec.nodes is not Nodes.ROTATE:
            return {}
        there: dict[str, set[int]] = {}
        deployed = {server.name for server in self.spec.deployed}
        for trial in self.trials:
            if trial.figures is not None and trial.server in deployed:
                for node in trial.nodes.get("server", ()):
                    there.setdefault(node, set()).add(trial.repetition)
        turns = sorted(there.items(), key=lambda one: (min(one[1]), one[0]))
        said = "; ".join(f"{node} in {', '.join(map(str, sorted(of)))}" for node, of in turns)
        if len(there) == 1 and len(turns[0][1]) > 1:
            said += " (they did not rotate: no other node took them)"
        return {"Nodes of the servers, by repetition": said or "they rotate"}

    @property
    def trials_known(self) -> bool:
        """Whether `trials` are all there were: a document too large for them has none."""
        return "trials" not in self.left_out

    @property
    def left_out_said(self) -> str:
        """What is missing since the document was too large for it, in words; empty: nothing."""
        said = [LEFT_OUT.get(one, one) for one in self.left_out if one != "spec"]
        return f"{', '.join(said)} (too large for the results of the run)" if said else ""

    @property
    def measured(self) -> bool:
        """Return whether there is any trial that measured something."""
        return any(row.trials for row in self.summary.rows)

    @property
    def trials_said(self) -> str:
        """How many trials were measured of how many, as a sentence without its end."""
        spec = self.spec
        if not self.trials_known:
            return "they did not fit into the results of the run; the rows are from all of them"
        measured = sum(1 for trial in self.trials if trial.figures is not None)
        made = {load.name: spec.first_look for load in spec.loads}
        for trial in self.trials:
            # What is stored can be tampered with.
            if trial.load in made:
                made[trial.load] = max(made[trial.load], trial.repetition)
        planned = len(spec.servers) * sum(made.values())
        fewest, most = min(made.values()), max(made.values())
        said = f"{fewest} to {most}" if fewest < most else f"{most}"
        return f"{measured} of {planned} measured, in {said} repetition{'' if most == 1 else 's'}"

    def repeated(self, row: ResultRow) -> list[str]:
        """Return what became of each attempt of a row's trials that was made again, in words."""
        said = [
            f"repetition {trial.repetition}: {wording.lost_attempt(lost)}"
            for trial in self.trials
            if (trial.server, trial.load) == (row.server, row.load)
            for lost in trial.lost_attempts
        ]
        # A document too large for its trials has only their number.
        return said or ([wording.repeated(row.lost_attempts)] if row.lost_attempts else [])

    @property
    def measured_between(self) -> tuple[str | None, str | None]:
        """First measured request and last measured response of all trials, RFC 3339."""
        begins = [trial.started_at for trial in self.trials if trial.started_at]
        ends = [trial.finished_at for trial in self.trials if trial.finished_at]
        begin, end = self.between
        return min(begins, default=begin), max(ends, default=end)
