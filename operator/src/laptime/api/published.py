"""Figures that somebody has published about a scenario, to set beside those of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from laptime.api.base import Model
from laptime.api.loads import Arrivals, Load, Protocol
from laptime.api.server import MAX_POOL, Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.text import plain

MAX_MEASUREMENTS = 64
MAX_POOLS = 64
"""Far more than anybody publishes: with a bound of both a rule of the CRD may look at each name."""


POOL_BOUNDS: JsonDict = {"minimum": 1, "maximum": MAX_POOL}
"""Of what is written: what a run keeps may be of a version that had none."""


class OfSource(Model):
    """What a source says. Of what a run keeps, fields of a newer version stay and mean nothing.

    They change nothing that is measured. Who reads what somebody writes forbids them (`extra`).
    """

    model_config = ConfigDict(extra="allow")


class PublishedServer(OfSource):
    """What a published benchmark reports of one server."""

    preset: str = Field(description="Preset of the catalogue that it is about.", max_length=40)
    workers: int = Field(1, description="Worker processes.")
    any_workers: bool = Field(False, description="The source does not say or it does not matter.")
    threads: int | None = Field(None, description="None: it does not matter.")
    env: dict[str, str] = Field(
        default_factory=dict, description="Settings that tell it from others of its preset."
    )
    database_connections: int | None = Field(
        None,
        description="Pool of each process, where it differs between servers of the preset; None: "
        "what `databaseConnections` of the measurement says.",
        json_schema_extra=POOL_BOUNDS,
    )
    factor: float | None = Field(None, description="As printed; from the throughputs if absent.")
    requests_per_second: float | None = Field(None, description="Throughput.")
    timeouts: int | None = Field(None, description="Requests that were given up.")
    mean_ms: float | None = Field(None, description="Mean latency in ms.")
    p50_ms: float | None = Field(None, description="Median latency in ms.")
    p99_ms: float | None = Field(None, description="99th percentile of the latency in ms.")
    p999_ms: float | None = Field(None, description="99.9th percentile of the latency in ms.")
    peak_memory_mib: float | None = Field(None, description="Largest memory in MiB.")
    peak_cpu_percent: float | None = Field(None, description="Of the whole machine.")

    @property
    def setup(self) -> tuple[object, ...]:
        """How the server was set up, but for its pool."""
        return self.workers, self.any_workers, self.threads, self.env

    def is_about(self, server: Server) -> bool:
        """Whether the figures are about a server set up like this one, but for its pool."""
        return self.preset == server.preset and not self.otherwise(server)

    def otherwise(self, server: Server) -> list[str]:
        """Return what the source had otherwise than a server of this preset, in words."""
        said = []
        if not (self.any_workers or self.workers == server.worker_count):
            said.append(f"{_counted(self.workers, 'worker')} (here {server.worker_count})")
        if self.threads is not None and self.threads != (server.threads or 1):
            said.append(f"{_counted(self.threads, 'thread')} (here {server.threads or 1})")
        own = {one.name: one.value for one in server.env}
        return said + [
            f"{name}={value} (not here)"
            for name, value in self.env.items()
            if own.get(name) != value
        ]


class PublishedClosedLoad(OfSource):
    """The closed load of a published measurement; the number of requests does not matter."""

    connections: int = Field(description="Concurrent connections.")
    keep_alive: bool = Field(description="Whether a connection was used for many requests.")


class PublishedOpenLoad(OfSource):
    """The open load of a published measurement, in requests per second."""

    rate: int = Field(description="Requests per second.")


class PublishedLoad(OfSource):
    """The load of a published measurement; exactly one shape."""

    closed: PublishedClosedLoad | None = Field(None, description="A fixed number of connections.")
    open: PublishedOpenLoad | None = Field(None, description="A fixed rate.")
    endpoints: list[str] | None = Field(
        None, description="It sent nothing but these; None: all, or the only one."
    )

    def is_like(self, load: Load) -> bool:
        """Whether factors under this load can be set beside those of the published one."""
        # Sources sent all that they name in turn, at once, and evenly where at a rate.
        if load.think_time is not None or load.mix is not None:
            return False
        if load.arriving is not None and load.arriving.arrivals is not Arrivals.EVEN:
            return False
        if (self.endpoints is None) is not (load.endpoints is None):
            return False
        if not set(load.endpoints or ()) <= set(self.endpoints or ()):
            return False
        if load.protocol is not Protocol.HTTP1:
            return False
        if self.closed is not None and load.closed is not None:
            return (
                self.closed.connections == load.closed.connections
                and self.closed.keep_alive == load.closed.keep_alive
            )
        if self.open is not None and load.open is not None:
            return self.open.rate == load.open.rate
        return False


class PublishedMeasurement(OfSource):
    """The published figures under one load."""

    load: PublishedLoad = Field(description="What was sent.")
    database_connections: dict[str, Annotated[int, Field(json_schema_extra=POOL_BOUNDS)]] = Field(
        default_factory=dict,
        description="Pool of each process, by preset, where the source says it and it matters.",
        json_schema_extra={"maxProperties": MAX_POOLS},
    )
    servers: list[PublishedServer] = Field(
        default_factory=list, description="What is more special before what is less."
    )
    order: list[str] = Field(
        default_factory=list, description="Presets, fastest first, where no figures are published."
    )
    behind: list[str] = Field(
        default_factory=list,
        description="Presets slower than all of `order`, in no order among themselves.",
    )

    def has_pool_of(self, server: Server) -> bool:
        """Whether the source gave a server of the preset as many connections as this one has."""
        rows: Sequence[PublishedServer | None] = self._rows_of(server) or [None]
        return any(self._has_pool(server, row) for row in rows)

    def of(self, server: Server) -> PublishedServer | None:
        """Return what was published about a server set up like this one."""
        rows = self._rows_of(server)
        return next((one for one in rows if self._has_pool(server, one)), None)

    def missing(self, server: Server) -> str:
        """Return why a server has no factor here; of several rows the nearest one says it."""
        if server.preset is None:
            return "figures are published of presets, and this is none"
        rows = [one for one in self.servers if one.preset == server.preset]
        if not rows and server.preset in (*self.order, *self.behind):
            return "its place is published, and no figure"
        if not rows:
            return f"nothing is published of {server.preset} under such a load"
        said = min((self._otherwise(server, row) for row in rows), key=len)
        return f"published with {', '.join(said)}" if said else "its throughput is not published"

    def _rows_of(self, server: Server) -> list[PublishedServer]:
        """Return the most special rows about such a server: they differ by their pools alone."""
        rows = [one for one in self.servers if one.is_about(server)]
        return [one for one in rows if one.setup == rows[0].setup]

    def _pool(self, server: Server, row: PublishedServer | None) -> int | None:
        """Return the pool of each process of a preset, in a row of it; None: it is not said."""
        if row is not None and row.database_connections is not None:
            return row.database_connections
        return self.database_connections.get(server.preset or "")

    def _has_pool(self, server: Server, row: PublishedServer | None) -> bool:
        return self._pool(server, row) in (None, server.database_connections)

    def _otherwise(self, server: Server, row: PublishedServer) -> list[str]:
        said = row.otherwise(server)
        pool = self._pool(server, row)
        if pool is not None and pool != server.database_connections:
            words = f"{_counted(pool, 'database connection')} in each process"
            said.append(f"{words} (here {server.database_connections})")
        return said


@dataclass(frozen=True)
class OrderClaim:
    """What a source says of two servers."""

    faster: str
    slower: str
    alike: bool = False
    """The source has the same figure for both."""


class Published(OfSource):
    """The published benchmark behind a scenario."""

    title: str = Field(description="What was measured, and by whom.", max_length=200)
    baseline: str = Field(description="Preset that its factors are against.")
    notes: list[str] = Field(
        default_factory=list, description="What to know before anything is compared with it."
    )
    measurements: list[PublishedMeasurement] = Field(
        description="The figures, one entry for each load.",
        min_length=1,
        json_schema_extra={"maxItems": MAX_MEASUREMENTS},
    )

    @property
    def figures(self) -> dict[str, PublishedServer]:
        """Figures by preset, of the first measurement with one worker."""
        return {one.preset: one for one in self.measurements[0].servers if one.workers == 1}

    @property
    def factors(self) -> dict[str, float]:
        """Factors against the published baseline by preset, of the first measurement."""
        base = self.figures[self.baseline]
        factors = {preset: _factor(one, base) for preset, one in self.figures.items()}
        return {preset: factor for preset, factor in factors.items() if factor is not None}

    def factor(self, spec: BenchmarkRunSpec, server: str, load: str) -> float | None:
        """Return the published factor of a server of a run against the run's baseline.

        None when the source says nothing about one of the two, or nothing under such a load.
        """
        for measurement in self._like(spec, load):
            one = measurement.of(spec.server(server))
            base = measurement.of(spec.server(spec.baseline_name))
            if one is not None and base is not None:
                return _factor(one, base)
        return None

    def missing(self, spec: BenchmarkRunSpec, server: str, load: str) -> str | None:
        """Return why a server of a run has no published factor where the baseline has one.

        None where it has one, and where the baseline has none: then no server has.
        """
        if self.factor(spec, server, load) is not None:
            return None
        for measurement in self._like(spec, load):
            base = measurement.of(spec.server(spec.baseline_name))
            if base is not None and _factor(base, base) is not None:
                return plain(measurement.missing(spec.server(server)))
        return None

    def about(self, spec: BenchmarkRunSpec, server: str, load: str) -> PublishedServer | None:
        """Return what was published about a server of a run under such a load; None if nothing."""
        found = (one.of(spec.server(server)) for one in self._like(spec, load))
        return next((one for one in found if one is not None), None)

    def order(self, spec: BenchmarkRunSpec, load: str) -> list[str]:
        """Return the servers of a run that the source ranks under such a load, fastest first."""
        for measurement in self._like(spec, load):
            places = _places(measurement, spec)
            return sorted(places, key=places.__getitem__)
        return []

    def claims(self, spec: BenchmarkRunSpec, load: str) -> list[OrderClaim]:
        """Return what the source says of each two servers of a run under such a load."""
        for measurement in self._like(spec, load):
            places = _places(measurement, spec)
            behind = [
                one.name
                for one in spec.servers
                if one.preset in measurement.behind
                and one.name != spec.control_name
                and measurement.has_pool_of(one)
            ]
            claims = [OrderClaim(first, last) for first in places for last in behind]
            for one, other in combinations(sorted(places, key=places.__getitem__), 2):
                rows = [measurement.of(spec.server(name)) for name in (one, other)]
                if places[one] < places[other]:
                    claims.append(OrderClaim(one, other))
                elif not measurement.order and rows[0] is not rows[1]:
                    # One row for both says nothing about what tells them apart.
                    claims.append(OrderClaim(one, other, alike=True))
            return claims
        return []

    def _like(self, spec: BenchmarkRunSpec, load: str) -> Iterator[PublishedMeasurement]:
        return (one for one in self.measurements if one.load.is_like(spec.load(load)))


def _places(measurement: PublishedMeasurement, spec: BenchmarkRunSpec) -> dict[str, float]:
    """Return the place of each server that the source ranks; the lower, the faster."""
    places: dict[str, float] = {}
    for server in spec.servers:
        if server.name == spec.control_name:
            continue  # the source knows the baseline once
        if not measurement.has_pool_of(server):
            continue
        one = measurement.of(server)
        if server.preset in measurement.order:
            places[server.name] = measurement.order.index(server.preset)
        elif one is not None and one.requests_per_second is not None:
            places[server.name] = -one.requests_per_second
    return places


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _factor(one: PublishedServer, base: PublishedServer) -> float | None:
    if one.factor is not None and base.factor is not None:
        return one.factor / base.factor
    if one.requests_per_second is not None and base.requests_per_second is not None:
        return one.requests_per_second / base.requests_per_second
    return None
