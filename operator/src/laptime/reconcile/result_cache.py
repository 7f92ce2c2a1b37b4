"""Stored results of the run that is measured, read once and judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laptime.analysis.stopping import trials_so_far
from laptime.analysis.summary import Summary, summarise
from laptime.api.node_path import NodePath
from laptime.api.results import TrialOutcome, TrialReadings, TrialResult
from laptime.api.status import ServerState
from laptime.manifests.context import RunContext
from laptime.manifests.result import read_readings, read_result
from laptime.measure import of_the_same_bits, on_the_same_nodes, on_their_schemas, watched_result
from laptime.plan import order_of, seed_of
from laptime.reconcile.cache import Room
from laptime.reconcile.views import Run

MOST_PAYLOAD_BYTES = 128 * 2**20
"""Of what the generators of all trials of a run printed, as long as the run is worked on."""


class ResultCache:
    """Stored results of one run. They never change, so each is read from the API server once."""

    def __init__(self, run_uid: str = "") -> None:
        self._results: dict[str, TrialResult] = {}
        # The same judged with their readings, where those are there.
        self._judged: dict[str, TrialResult] = {}
        self._payloads: dict[str, str] = {}
        self._room = Room(
            f"results of run {run_uid}",
            MOST_PAYLOAD_BYTES,
            "what its generators printed takes more than %d bytes, and not all of it is kept: the "
            "rows say whose response times are missing",
        )
        self._readings: dict[str, TrialReadings] = {}
        self._paths: tuple[NodePath, ...] = ()
        self._summary: tuple[object, Summary] | None = None

    def known(self) -> set[str]:
        """Return the trials whose results are here."""
        return set(self._results)

    def results(self, names: set[str], run: Run) -> dict[str, TrialResult]:
        """Return the results of those trials that are stored in the cluster now."""
        found = [result for name, result in self._judged.items() if name in names]
        deployed = {server.name for server in run.spec.deployed}
        checked = {one.name: one.image_id for one in run.status.servers or [] if one.image_id}
        schemas = {
            one.name: one.database_schema for one in run.status.servers or [] if one.database_schema
        }
        own = run.spec.topology.own_databases
        same = on_their_schemas(of_the_same_bits(found, checked), schemas, own)
        judged = on_the_same_nodes(same, deployed, run.spec.nodes)
        return {result.trial: result for result in judged}

    def drop_failed(self, names: set[str], retries: int) -> set[str]:
        """Forget those of the trials that failed before they were last asked for again.

        Returns their names.
        """
        dropped = {
            name
            for name in names
            if self._results[name].outcome is TrialOutcome.FAILED
            and self._results[name].retry < retries
        }
        self.forget(dropped)
        return dropped

    def forget(self, names: set[str]) -> None:
        """Forget trials: what is stored of them from now on is what counts."""
        for name in names:
            self._keep_payload(name, "")
            for known in (self._results, self._judged, self._payloads, self._readings):
                known.pop(name, None)

    def add(self, trial: str, manifest: Mapping[str, Any], context: RunContext) -> None:
        """Take in the ConfigMap of a trial's result.

        What its generators printed is as if it were not stored where that of all trials together
        is more than MOST_PAYLOAD_BYTES.

        Raises:
            ValueError: it is no result.
        """
        self._results[trial], payload = read_result(manifest)
        self._keep_payload(trial, payload)
        self._judge(trial, context)

    def _keep_payload(self, trial: str, payload: str) -> None:
        before = self._payloads.get(trial)
        if before:
            self._room.take(-self._room.size(before))
        fits = not payload or self._room.take(self._room.size(payload))
        self._payloads[trial] = payload if fits else ""

    @property
    def payload_room(self) -> float:
        """How many bytes of what generators print are kept beside what is kept already."""
        return self._room.left_bytes

    @property
    def payloads(self) -> Mapping[str, str]:
        """What the generators of trials printed, by trial; empty where it is not kept."""
        return self._payloads

    def read(self) -> set[str]:
        """Return the trials whose readings are here."""
        return set(self._readings)

    def add_readings(self, trial: str, manifest: Mapping[str, Any], context: RunContext) -> None:
        """Take in the ConfigMap of what was read of a trial whose result is here.

        Raises:
            ValueError: it is no readings.
        """
        self._readings[trial] = read_readings(manifest)
        self._judge(trial, context)

    def know_paths(self, paths: Sequence[NodePath], context: RunContext) -> None:
        """Judge by what is known of the network between nodes, the trials before it was too."""
        if tuple(paths) != self._paths:
            self._paths = tuple(paths)
            for trial in self._results:
                self._judge(trial, context)

    def _judge(self, trial: str, context: RunContext) -> None:
        self._judged[trial] = watched_result(
            self._results[trial],
            self._readings.get(trial),
            context.spec,
            context.scenario.requests,
            context.scenario.services,
            self._paths,
        )

    def summary(self, run: Run, context: RunContext, names: set[str]) -> Summary:
        """Return the figures of all trials together; computed again only when something changed."""
        failures = {
            server.name: (server.reason or "Failed", server.message or "")
            for server in run.status.servers or []
            if server.state is ServerState.FAILED
        }
        key = (
            frozenset(names),
            frozenset(self._readings),
            self._paths,
            tuple(sorted(failures.items())),
            run.given_up,
        )
        if self._summary is None or self._summary[0] != key:
            results = self.results(names, run)
            seed = seed_of(run.spec, run.uid)
            order, out = order_of(run.status), frozenset(failures)
            trials = trials_so_far(run.name, run.spec, seed, order, list(results.values()), out)
            self._summary = (
                key,
                summarise(
                    run.spec,
                    trials,
                    [results[trial.name] for trial in trials if trial.name in results],
                    {name: self._payloads[name] for name in results},
                    context.scenario.published,
                    failures,
                    run.given_up,
                ),
            )
        return self._summary[1]
