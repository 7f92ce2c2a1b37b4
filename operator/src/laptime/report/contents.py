"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from laptime.analysis import Summary
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Published, scenarios


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

    @property
    def published(self) -> Published | None:
        """The published benchmark behind the scenario."""
        scenario = scenarios().get(self.spec.scenario)
        return scenario.published if scenario else None

    @property
    def measured_between(self) -> tuple[str | None, str | None]:
        """First measured request and last measured response of all trials, RFC 3339."""
        begins = [trial.started_at for trial in self.trials if trial.started_at]
        ends = [trial.finished_at for trial in self.trials if trial.finished_at]
        return min(begins, default=None), max(ends, default=None)
