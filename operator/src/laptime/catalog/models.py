"""What the catalogue holds: scenarios, server presets and published figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

from pydantic import Field, JsonValue

from laptime.api.base import Model
from laptime.api.loads import Load
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec

ID_PLACEHOLDER = "{id}"
"""Stands in a path or a body for the id of a row."""


class IdUse(StrEnum):
    """How often a trial may use a prepared id."""

    CYCLE = "cycle"
    ONCE = "once"


class Ids(Model):
    """The ids that requests carry: whole numbers of rows that the seed and the reset make."""

    first: int = Field(ge=0)
    last: int
    use: IdUse = Field(description="Again and again in turn, or each at most once in a trial.")

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


class Exchange(Model):
    """A request, and the status that a right answer has."""

    name: str
    method: str = "GET"
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    expect_status: int = 200
    statements: float | None = Field(
        None, description="Statements about tables that one request costs; None: not known."
    )


class Request(Exchange):
    """One kind of request that a load sends: an endpoint in figures."""

    ids: Ids | None = Field(None, description="What stands for {id} in path and body.")
    asks_upstream: bool = Field(
        False, description="The server asks the run's upstream once for each of these."
    )
    wait_seconds: float = Field(
        0.0, description="How long the server waits on purpose, without any CPU.", ge=0
    )


class Answers(StrEnum):
    """How the answers to the same request relate to each other."""

    SAME = "same"
    DIFFERENT = "different"


class Check(Exchange):
    """One request of the contract, and what a right answer to it is."""

    content_type: str | None = Field(None, description="Media type without parameters.")
    json_schema: dict[str, Any] | None = Field(None, description="JSON Schema of the answer.")
    expected: JsonValue = Field(
        None, description='The whole answer, in which "{id}" is the kept id; None: not compared.'
    )
    times: int = Field(2, description="How often it is asked; 1 where it changes data.", ge=1)
    answers: Answers = Field(
        Answers.SAME, description="different: not all of them may be the same."
    )
    keeps_id: bool = Field(
        False, description="The id of this answer stands for {id} in the checks after it."
    )
    same_as_upstream: bool = Field(
        False, description="The answer is to be what the run's upstream answers."
    )
    min_seconds: float = Field(0.0, description="An answer before that is no right one.")
    timeout_seconds: float = Field(10.0, description="Longest time that the answer may take.")

    @property
    def knows_body(self) -> bool:
        """Whether it says anything of the body of a right answer, which then has one."""
        return (
            self.content_type is not None
            or self.json_schema is not None
            or self.expected is not None
            or self.same_as_upstream
        )

    @property
    def is_constant(self) -> bool:
        """Whether each right answer to this request is the same JSON value."""
        if self.answers is Answers.DIFFERENT or self.keeps_id:
            return False
        asked_again = self.json_schema is not None and self.times > 1
        return self.expected is not None or self.same_as_upstream or asked_again


class PublishedServer(Model):
    """What a published benchmark reports of one server."""

    preset: str
    workers: int = 1
    any_workers: bool = Field(False, description="The source does not say or it does not matter.")
    threads: int | None = Field(None, description="None: it does not matter.")
    env: dict[str, str] = Field(
        default_factory=dict, description="Settings that tell it from others of its preset."
    )
    factor: float | None = Field(None, description="As printed; from the throughputs if absent.")
    requests_per_second: float | None = None
    timeouts: int | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    peak_memory_mib: float | None = None
    peak_cpu_percent: float | None = Field(None, description="Of the whole machine.")

    def is_about(self, server: Server) -> bool:
        """Whether the figures are about a server set up like this one."""
        own = {one.name: one.value for one in server.env}
        return (
            self.preset == server.preset
            and (self.any_workers or self.workers == server.workers)
            and self.threads in (None, server.threads or 1)
            and self.env.items() <= own.items()
        )


class PublishedClosedLoad(Model):
    """The closed load of a published measurement; the number of requests does not matter."""

    connections: int
    keep_alive: bool


class PublishedOpenLoad(Model):
    """The open load of a published measurement, in requests per second."""

    rate: int


class PublishedLoad(Model):
    """The load of a published measurement; exactly one shape."""

    closed: PublishedClosedLoad | None = None
    open: PublishedOpenLoad | None = None
    endpoints: list[str] | None = Field(
        None, description="It sent nothing but these; None: all, or the only one."
    )

    def is_like(self, load: Load) -> bool:
        """Whether factors under this load can be set beside those of the published one."""
        if self.endpoints is not None and not (
            load.endpoints and set(load.endpoints) <= set(self.endpoints)
        ):
            return False
        if self.closed is not None and load.closed is not None:
            return (
                self.closed.connections == load.closed.connections
                and self.closed.keep_alive == load.closed.keep_alive
            )
        if self.open is not None and load.open is not None:
            return self.open.rate == load.open.rate
        return False


class PublishedMeasurement(Model):
    """The published figures under one load."""

    load: PublishedLoad
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

    def of(self, server: Server) -> PublishedServer | None:
        """Return what was published about a server set up like this one."""
        return next((one for one in self.servers if one.is_about(server)), None)


@dataclass(frozen=True)
class OrderClaim:
    """What a source says of two servers."""

    faster: str
    slower: str
    alike: bool = False
    """The source has the same figure for both."""


class Published(Model):
    """The published benchmark behind a scenario."""

    title: str
    baseline: str = Field(description="Preset that its factors are against.")
    notes: list[str] = Field(default_factory=list)
    measurements: list[PublishedMeasurement]

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
                if one.preset in measurement.behind and one.name != spec.control_name
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
        one = measurement.of(server)
        if server.preset in measurement.order:
            places[server.name] = measurement.order.index(server.preset)
        elif one is not None and one.requests_per_second is not None:
            places[server.name] = -one.requests_per_second
    return places


def _factor(one: PublishedServer, base: PublishedServer) -> float | None:
    if one.factor is not None and base.factor is not None:
        return one.factor / base.factor
    if one.requests_per_second is not None and base.requests_per_second is not None:
        return one.requests_per_second / base.requests_per_second
    return None


class Scenario(Model):
    """The work: schema, data, requests, and what a right answer is."""

    name: str
    title: str
    description: str
    needs_database: bool
    needs_upstream: bool = False
    init_sql: list[tuple[str, str]] = Field(
        default_factory=list,
        description="Files that make schema and data in Postgres: (name, SQL), in order.",
    )
    sqlite_sql: list[tuple[str, str]] = Field(
        default_factory=list, description="The same for SQLite; empty: not offered there."
    )
    reset_sql: str = Field("", description="Brings Postgres to the same state before a trial.")
    requests: list[Request] = Field(min_length=1)
    checks: list[Check] = Field(min_length=1)
    published: Published | None = None

    def request(self, name: str) -> Request:
        """Return the request of that name; KeyError if there is none."""
        for request in self.requests:
            if request.name == name:
                return request
        raise KeyError(name)

    def body_check(self, request: Request) -> Literal["same", "nonEmpty"] | None:
        """Return what can be asked of the body of each answer to a request under load.

        By the check of the same name: `same` where it says that the whole answer to this very
        request never changes, `nonEmpty` where it says that there is a body. None: nothing is
        known, or there is no body.
        """
        for check in self.checks:
            if check.name == request.name and check.method == request.method:
                break
        else:
            return None
        if check.expect_status != request.expect_status or not check.knows_body:
            return None
        asked = (check.path, check.headers, check.body)
        constant = check.is_constant and request.ids is None
        if constant and asked == (request.path, request.headers, request.body):
            return "same"
        return "nonEmpty"

    @property
    def counting_checks(self) -> list[Check]:
        """The checks; those that ask what a load asks with the number of its statements."""
        costs = {
            (request.method, request.path, request.expect_status): request.statements
            for request in self.requests
        }
        return [
            check.model_copy(
                update={"statements": costs.get((check.method, check.path, check.expect_status))}
            )
            for check in self.checks
        ]

    @property
    def reset_statements(self) -> list[str]:
        """The statements of `reset_sql`, each of which ends with a semicolon at a line's end."""
        lines = [line for line in self.reset_sql.splitlines() if not line.startswith("--")]
        parts = "\n".join(lines).split(";\n")
        return [part.strip().removesuffix(";") for part in parts if part.strip()]


class RequestsAtOnce(Model):
    """A fixed number of requests that one worker works on at a time; more wait for a place."""

    limit: int | Literal["threads"] = Field(
        description="A number, or the threads of the worker, which is one where nobody says more."
    )
    endpoints: list[str] | None = Field(
        None, description="It holds for these requests of a scenario; None: for all."
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="It holds for servers with these settings."
    )


class Preset(Model):
    """A server that Laptime has an image for."""

    name: str
    title: str
    language: str
    image: str = Field(description="Short name of the image, such as server-axum-sqlx.")
    scenarios: list[str] = Field(min_length=1)
    published_as: str | None = Field(None, description="Its name in published figures.")
    workers: int = Field(1, description="Worker processes, as published.")
    threads: int | None = Field(None, description="Threads of a worker where a run says none.")
    database_connections: int = Field(5, description="Pool of a worker process, as published.")
    workers_are_threads: bool = Field(
        False, description="Its workers are threads of one process, which has one pool."
    )
    requests_at_once: list[RequestsAtOnce] = Field(
        default_factory=list,
        description="The first that fits counts; none fits: a worker takes on all there are.",
    )

    def threads_of(self, server: Server) -> int | None:
        """Return the threads of a worker of a server of this preset; None: nobody says it."""
        return server.threads or self.threads

    def processes_of(self, server: Server) -> int:
        """Return the processes of a server of this preset, each with a pool of its own."""
        return 1 if self.workers_are_threads else server.workers

    def requests_at_once_of(self, server: Server, endpoint: str) -> int | None:
        """Return how many of these requests one worker works on at once; None: no fixed number."""
        env = {one.name: one.value for one in server.env}
        for one in self.requests_at_once:
            if one.endpoints is not None and endpoint not in one.endpoints:
                continue
            if one.env.items() <= env.items():
                return (self.threads_of(server) or 1) if one.limit == "threads" else one.limit
        return None
