"""The servers of the catalogue, started from their images, and what each of them must answer."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from containers import Container, answers, free_port
from tiers import Run

from laptime.catalog import Request, Scenario, presets, scenarios

# What an image does depends on these.
SETTINGS = {
    "server-starlette": [{"DATABASE_ACCESS": "async"}, {"DATABASE_ACCESS": "sync"}],
    "server-django-psycopg": [{"KEEP_CONNECTIONS": "true"}, {"KEEP_CONNECTIONS": "false"}],
    "server-axum-bb8": [{"STATEMENT_CACHE": "true"}, {"STATEMENT_CACHE": "false"}],
}
# A table that each request of a scenario reads: who locks it makes requests wait.
_TABLES = {"users": '"user"', "tasks": "tasks", "recipes": "sessions", "posts": "posts"}


@dataclass(frozen=True)
class Kind:
    """A server image with one of its settings."""

    image: str
    scenarios: tuple[Scenario, ...]
    language: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.image.removeprefix("server-"), *self.environment.values()])

    @property
    def needs_database(self) -> bool:
        """Whether any of its scenarios does."""
        return any(scenario.needs_database for scenario in self.scenarios)

    @property
    def query(self) -> Query:
        """A request that waits for the database."""
        scenario = next(one for one in self.scenarios if one.name in _TABLES)
        reading = (one for one in scenario.requests if one.method == "GET" and one.statements != 0)
        return Query(next(reading), _TABLES[scenario.name])

    @property
    def others(self) -> list[Request]:
        """What else asks the database for something in that scenario, as often as one likes."""
        scenario = next(one for one in self.scenarios if one.name in _TABLES)
        asking = (one for one in scenario.requests if one.statements != 0 and one.ids is None)
        return [one for one in asking if one != self.query.request]

    @property
    def own_code(self) -> str:
        """What functions of the server itself, and not of its libraries, have in their names."""
        crate = self.image.removeprefix("server-").replace("-", "_")
        return {"Python": "(app/", "Go": "main.", "Rust": f"{crate}::"}[self.language]

    @property
    def blocks_its_event_loop(self) -> bool:
        """Whether a worker has one query at a time, whatever its pool and its threads."""
        return self.environment.get("DATABASE_ACCESS") == "sync"

    @property
    def keeps_connections(self) -> bool:
        """Whether connections are open while nobody asks for anything."""
        return self.environment.get("KEEP_CONNECTIONS") != "false"


@dataclass(frozen=True)
class Query:
    """A request, and a table that it reads: who locks the table makes the request wait."""

    request: Request
    table: str


@dataclass(frozen=True)
class Server:
    """A server that answers on `port`."""

    container: Container
    port: int
    start_seconds: float

    def send(self, request: Request, number: int = 0, seconds: float = 10) -> int:
        """Status of one request of a load; `number` chooses its id. Raises OSError."""
        path = path_of(request, number)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(
                request.method, path, request.body, {**request.sent_headers, "Connection": "close"}
            )
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


def path_of(request: Request, number: int = 0) -> str:
    """The path of a request; `number` chooses its id."""
    if request.ids is None:
        return request.path
    return request.path.replace("{id}", str(request.ids.first + number))


def kinds() -> list[Kind]:
    """All server images with all of their settings."""
    catalogue = scenarios()
    return [
        Kind(
            preset.image,
            tuple(catalogue[name] for name in preset.scenarios),
            preset.language,
            environment,
        )
        for preset in presets().values()
        for environment in SETTINGS.get(preset.image, [{}])
    ]


@contextlib.contextmanager
def start(
    run: Run, kind: Kind, *, data: Path | None = None, **environment: str
) -> Iterator[Server]:
    """Run a server until it is healthy; `data` is its /data, keywords environment variables."""
    port = free_port()
    variables = {"PORT": str(port), **kind.environment, **environment}
    writable = {"/data": data} if data else {}
    with run(kind.image, environment=variables, writable=writable) as container:
        seconds = container.wait_until(lambda: answers(port), 60)
        print(f"{kind}: healthy after {seconds:.2f} s")
        yield Server(container, port, seconds)
