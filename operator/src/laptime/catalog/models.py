"""What the catalogue holds: scenarios and server presets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import Field

from laptime.api.base import Model
from laptime.api.scenario import Answers, BenchmarkScenarioSpec, Check, InitSql, Request, Sql
from laptime.api.server import Server
from laptime.catalog.feeding import first_values
from laptime.catalog.header_names import asks_for_coding
from laptime.catalog.needs import values_of
from laptime.catalog.statements import statements_of
from laptime.catalog.tables import csv_text
from laptime.catalog.templates import Value

_FRESH_STATISTICS = (
    "SELECT pg_stat_reset()",
    "SELECT pg_stat_statements_reset()",
    # None falls into the middle of a trial.
    "CHECKPOINT",
)
"""What Laptime itself asks of Postgres before each trial, between reset and warm-up of the rows."""
_TEXTS = {"title", "description", "published"}
"""What is said about a scenario and changes nothing of its work."""


@dataclass(frozen=True)
class PackedSql:
    """A part of schema or seed whose statements are in an image."""

    name: str
    """The file that it is in the order of all parts, such as 02-seed.sql."""
    what: str
    """schema or seed."""
    index: int
    """Which of them it is, from 0."""
    image: str
    file: str


class Scenario(BenchmarkScenarioSpec):
    """The work under its name; all SQL is in it, but what is in images."""

    name: str = Field(description="As spec.scenario has it.")
    builtin: bool = Field(False, description="It comes with Laptime.")

    @property
    def hash(self) -> str:
        """16 hex digits that stand for the work: what is said about it is not part of it.

        A field that is not used counts for nothing, so that a version of Laptime with more fields
        has the same hash.
        """
        work = self.model_dump(
            mode="json",
            by_alias=True,
            exclude_defaults=True,
            exclude={*_TEXTS, "name", "builtin"},
        )
        text = json.dumps(work, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def needs_database(self) -> bool:
        """Whether a server needs a database for it."""
        return self.data is not None

    @property
    def needs_upstream(self) -> bool:
        """Whether a server needs an upstream for it."""
        asked = any(request.asks_upstream for request in self.requests)
        return asked or any(check.same_as_upstream for check in self.checks)

    @property
    def offers_postgres(self) -> bool:
        """Whether the data can be in Postgres."""
        return self.data is not None and self.data.postgres is not None

    @property
    def offers_sqlite(self) -> bool:
        """Whether the data can be in SQLite."""
        return self.data is not None and self.data.sqlite is not None

    @property
    def extensions(self) -> list[str]:
        """The extensions of Postgres that it asks for."""
        postgres = self.data.postgres if self.data else None
        return list(postgres.extensions) if postgres else []

    @property
    def init_sql(self) -> list[tuple[str, str]]:
        """Files that make schema and rows in Postgres: (name, SQL), in order.

        Those in images are none of them: their names in the same order are in `packed_sql`.
        """
        return [(name, one.text) for name, _, _, one in self._init_parts if one.image is None]

    @property
    def packed_sql(self) -> list[PackedSql]:
        """The parts of schema and seed in Postgres that are in images, in order."""
        return [
            PackedSql(name, what, index, one.image, one.file or "")
            for name, what, index, one in self._init_parts
            if one.image is not None
        ]

    @property
    def sql_places(self) -> dict[str, str]:
        """Where the files that make Postgres' database stand in the scenario, by their names."""
        return {name: f"data.postgres.{what}[{index}]" for name, what, index, _ in self._init_parts}

    @property
    def _init_parts(self) -> list[tuple[str, str, int, InitSql]]:
        postgres = self.data.postgres if self.data else None
        return _named(postgres.schema_, postgres.seed) if postgres else []

    @property
    def sqlite_sql(self) -> list[tuple[str, str]]:
        """The same for SQLite; empty: not offered there."""
        sqlite = self.data.sqlite if self.data else None
        parts = _named(sqlite.schema_, sqlite.seed) if sqlite else []
        return [(name, one.text) for name, _, _, one in parts]

    @property
    def reset_statements(self) -> list[str]:
        """The statements that bring Postgres to the same state, one by one."""
        postgres = self.data.postgres if self.data else None
        if postgres is None:
            return []
        return [
            *(one for part in postgres.reset for one in statements_of(part.text)),
            *_FRESH_STATISTICS,
            *(one for part in postgres.warm for one in statements_of(part.text)),
        ]

    @property
    def takes_back(self) -> bool:
        """Whether it says how the rows of Postgres come back before each trial and each check."""
        postgres = self.data.postgres if self.data else None
        return postgres is not None and bool(postgres.reset)

    @property
    def prepares(self) -> bool:
        """Whether it has statements of its own for Postgres before each trial and each check."""
        postgres = self.data.postgres if self.data else None
        return postgres is not None and bool(postgres.reset or postgres.warm)

    @property
    def feeder_names(self) -> list[str]:
        """The names of its feeders."""
        return [feeder.name for feeder in self.feeders]

    @property
    def feeder_files(self) -> dict[str, str]:
        """The tables of feeders: name of the file, CSV."""
        return {
            f"{feeder.name}.csv": csv_text(feeder.csv)
            for feeder in self.feeders
            if feeder.csv is not None
        }

    @property
    def check_values(self) -> dict[str, Value]:
        """What stands for the values of feeders in checks: those of the first row."""
        return first_values(self.feeders)

    def request(self, name: str) -> Request:
        """Return the request of that name; KeyError if there is none."""
        for request in self.requests:
            if request.name == name:
                return request
        raise KeyError(name)

    def body_check(
        self, request: Request, sent: Sequence[Request]
    ) -> Literal["same", "nonEmpty"] | None:
        """Return what can be asked of the body of each answer to a request under load.

        `sent` is all that the load sends, this request too. By the check of the same name: `same`
        where the answer to this very request never changes, `nonEmpty` where it has a body. None:
        nothing is known, or there is no body.
        """
        for check in self.checks:
            if check.name == request.name and check.method == request.method:
                break
        else:
            return None
        if check.expect_status != request.expect_status or not check.knows_body:
            return None
        asked = (check.path, check.sent_headers, check.body)
        one_request = request.ids is None and not values_of(request)
        if one_request and asked == (request.path, request.sent_headers, request.body):
            constant = check.constant
            if constant is None:
                constant = self._stays_the_same(check, request, sent)
            return "same" if constant else "nonEmpty"
        return "nonEmpty"

    @property
    def bodies_asked_for(self) -> list[str]:
        """The checks with a media type alone of whose answers a load asks that they have a body."""
        asked = {one.name for one in self.requests if self.body_check(one, self.requests)}
        return [
            check.name
            for check in self.checks
            if check.name in asked and check.content_type is not None and not check.compares_body
        ]

    def _stays_the_same(self, check: Check, request: Request, sent: Sequence[Request]) -> bool:
        """Return whether the right answer to a request is a constant of the work itself.

        Two answers alike when it was checked are no proof: what else is sent may change the rows
        that it shows, and the time of day goes on.
        """
        if check.answers is Answers.DIFFERENT or check.keeps_id:
            return False
        if asks_for_coding(request.headers):
            # What compresses may put a time or random bytes into each answer, as Django does.
            return False
        if check.same_as_upstream:
            return True
        if check.expected is None:
            return False
        alone = all(one.method == "GET" for one in sent if one.name != request.name)
        # That it changes nothing of its own whole answer was seen when it was asked again.
        if alone and (request.method == "GET" or check.times > 1):
            return True
        # What a load can change is in tables then, and this answer comes from none.
        return request.statements == 0 and self.needs_database and not self.services

    @property
    def counting_checks(self) -> list[Check]:
        """The checks; those that ask what a load asks with the number of its statements.

        That of the request of the same name, else of one that sends the same: with another body the
        same path may do other work.
        """
        return [
            check
            if check.statements is not None
            else check.model_copy(update={"statements": self._statements_of(check)})
            for check in self.checks
        ]

    def _statements_of(self, check: Check) -> float | None:
        asked = (check.method, check.path, check.expect_status)
        like = [one for one in self.requests if (one.method, one.path, one.expect_status) == asked]
        named = [request for request in like if request.name == check.name]
        same = named or [request for request in like if request.body == check.body]
        costs = {request.statements for request in same}
        return costs.pop() if len(costs) == 1 else None


UNKNOWN = Scenario.model_construct(name="", requests=[], checks=[])
"""Stands for the scenario of a run that was not looked up, since nothing is made from it yet."""


_Part = TypeVar("_Part", bound=Sql)


def _named(schema: Sequence[_Part], seed: Sequence[_Part]) -> list[tuple[str, str, int, _Part]]:
    """Return all parts in their order: the name of the file, schema or seed, which of them."""
    parts = [("schema", i, one) for i, one in enumerate(schema)]
    parts += [("seed", i, one) for i, one in enumerate(seed)]
    return [(f"{n:02d}-{what}.sql", what, i, one) for n, (what, i, one) in enumerate(parts, 1)]


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
    database_connections: int = Field(5, description="Pool of each worker where a run says none.")
    workers_are_threads: bool = Field(
        False, description="Its workers are threads of one process, which has one pool."
    )
    http2: bool = Field(False, description="It speaks HTTP/2, without TLS (h2c).")
    requests_at_once: list[RequestsAtOnce] = Field(
        default_factory=list,
        description="The first that fits counts; none fits: a worker takes on all there are.",
    )

    def threads_of(self, server: Server) -> int | None:
        """Return the threads of a worker of a server of this preset; None: nobody says it."""
        return server.threads or self.threads

    def processes_of(self, server: Server) -> int:
        """Return the processes of a server of this preset, each with a pool of its own."""
        return 1 if self.workers_are_threads else server.worker_count

    @property
    def judged_by(self) -> set[str]:
        """The variables by whose values it is known how many requests a worker works on at once."""
        return {name for one in self.requests_at_once for name in one.env}

    def requests_at_once_of(self, server: Server, endpoint: str) -> int | None:
        """Return how many of these requests one worker works on at once; None: no fixed number."""
        env = {one.name: one.value for one in server.env}
        for one in self.requests_at_once:
            if one.endpoints is not None and endpoint not in one.endpoints:
                continue
            if one.env.items() <= env.items():
                return (self.threads_of(server) or 1) if one.limit == "threads" else one.limit
        return None
