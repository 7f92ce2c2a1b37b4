"""What is known of a run beside what dashboards say of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from laptime.api.resources import quantity
from laptime.measure.generator import GeneratorPhase, GeneratorSecond

from ..harness import condition, over

NOT_STORED_YET_SECONDS = 15
"""While a run goes on: Prometheus may have a trial before its result is stored, and after."""
TIERS = ("postgres", "pgbouncer", "haproxy")


def moment(text: str | None) -> float | None:
    """Return Unix seconds of a time in RFC 3339; None of none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


@dataclass(frozen=True)
class Facts:
    """What is true of a run at a moment, as the API server and the run's own results have it."""

    run: dict[str, Any]
    trials: list[dict[str, Any]]
    """The results of those that are over, in the order of the plan."""
    readings: list[dict[str, Any]]
    judged: dict[str, str]
    """The validity of each trial by all that is known; empty before the run is over."""
    phases: dict[str, GeneratorPhase]
    """What the generators counted in the measured phases, by the trial."""
    begin: float
    """Begin of the time range; it and the next one are Unix seconds."""
    at: float
    nodes: dict[str, dict[str, str]]
    """The capacity of the nodes by their names."""
    states: Counter[str]
    """The runs of the cluster by their states."""
    increase: Callable[[str], float]
    """By how much all counters that match a selector grew in the time."""
    told: int | None = None
    """Of how many of the trials the operator tells; None: of all. Of none from before it began."""
    kept: bool = True
    """Whether Prometheus has been there since then."""

    @property
    def status(self) -> dict[str, Any]:
        """The run's status; empty before it has one."""
        found: dict[str, Any] = self.run.get("status") or {}
        return found

    @property
    def spec(self) -> dict[str, Any]:
        """The run's spec."""
        found: dict[str, Any] = self.run["spec"]
        return found

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return over(self.status)

    @property
    def here(self) -> dict[str, str]:
        """What columns of the run tables of several have."""
        metadata = self.run["metadata"]
        return {"Run": metadata["name"], "Namespace": metadata["namespace"]}

    @property
    def created(self) -> float:
        """When the run was made, in Unix seconds."""
        return moment(self.run["metadata"]["creationTimestamp"]) or 0.0

    @property
    def placed(self) -> list[tuple[float, dict[str, Any]]]:
        """The rows of the result with their places in the table."""
        return [(float(at), row) for at, row in enumerate(self.status.get("results") or [], 1)]

    @property
    def topology(self) -> dict[str, Any]:
        """The tiers of the run."""
        return self.spec.get("topology") or {}

    def position(self, server: str) -> str:
        """Return the place of a server in the spec, from 1."""
        return str([one["name"] for one in self.spec["servers"]].index(server) + 1)

    def limits(self, component: str) -> dict[str, float]:
        """Return the CPU limits that the spec sets, by server; of a tier by no name."""
        parts = {one["name"]: one for one in self.spec["servers"]}
        if component != "server":
            parts = {"": self.topology.get(component) or {}}
        limits = {name: (one.get("resources") or {}).get("cpu") for name, one in parts.items()}
        return {name: quantity(cpu) for name, cpu in limits.items() if cpu}

    def has(self, part: str) -> bool | None:
        """Return whether lines of a part of the run are there; None: both is right."""
        if part == "spec":
            return True
        if part == "operator":
            return self.kept or None
        absent = {
            **{tier: tier not in self.topology for tier in TIERS},
            "tiers": not self.topology.keys() & set(TIERS),
            "limits": not self.limits("server"),
            "seconds": not self.phases,
        }
        # Of a run that was never set up no tier was ever looked at.
        set_up = bool(condition(self.status, "TiersReady"))
        if not self.kept or not set_up or absent.get(part):
            return False
        return None if part == "live" or not self.trials else True

    @cached_property
    def seconds(self) -> list[tuple[dict[str, Any], int, GeneratorSecond, bool | None]]:
        """Each second: its trial, its step in the time range, whether it is drawn; None: may be.

        One that is not whole is not, but in a phase without any other. There is none of before
        Prometheus was anew.
        """
        lacking = {one["trial"] for one in self.readings if one.get("secondsMissing")}
        found = []
        for trial in self.trials if self.kept else ():
            phase = self.phases.get(trial["trial"])
            if phase is None:
                continue
            window = phase.window_seconds or phase.last_response_at - phase.first_request_at
            whole = {row.t for row in phase.seconds if row.t + 1 <= window + 1e-6}
            for row in phase.seconds:
                end = round(1000 * ((phase.started_at or phase.first_request_at) + row.t + 1))
                step = math.ceil((end - round(1000 * self.begin)) / 1000)
                new = not self.over and end / 1000 > self.at - NOT_STORED_YET_SECONDS
                drawn = None if new or trial["trial"] in lacking else not whole or row.t in whole
                found.append((trial, step, row, drawn))
        return found

    def peak(self, part: str, key: str) -> float | None:
        """Return the highest reading of a tier, or of the pods of a component, of all trials."""
        parts = [(one["tiers"].get(part), one["usage"]["components"]) for one in self.readings]
        found = [tier.get(key) for tier, _ in parts if tier] + [
            one.get(key) for _, pods in parts for one in pods if one["component"] == part
        ]
        return max((one for one in found if one is not None), default=None)
