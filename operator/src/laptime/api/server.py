"""A server under test, as a run names it."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from laptime.api.base import BY_NAME, Model, rule, rules
from laptime.api.names import IMAGE, ServerName, variable_name
from laptime.api.program import Folders, UserId, Words
from laptime.api.resources import Resources
from laptime.api.service import AUTHORIZATION_KEY, HEALTH_PATH, Service
from laptime.api.topology import OwnTopology

MAX_POOL = 10_000
"""Connections of a process."""
HEALTH_PATH_FORM = "^/([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*/?)?$"
"""Of an image. It stands in the configuration of HAProxy, where other characters mean something."""
SECRET_KEY_PREFIX = "laptime-env-"
"""How keys begin that a server can have of a Secret. None does by chance: what whoever writes runs
can take out of Secrets was put there for runs."""


class EnvironmentVariable(Model):
    """One environment variable of a server under test."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.secret) || self.value == ''",
                "write either value or secret (the name of a Secret that has it), not both: beside "
                "secret leave value out",
                ".value",
            )
        )
    )
    name: str = variable_name(
        rule(
            "!(self in ['PORT', 'DATABASE_URL', 'DATABASE_PASSWORD', 'DATABASE_CONNECTIONS', "
            "'DATABASE_PREPARED_STATEMENTS', 'WORKERS', 'THREADS', 'UPSTREAM_URL', "
            "'PROFILE_PORT'])",
            "is set by Laptime: use port, databaseConnections, workers, threads or profile instead",
        ),
    )
    value: str = Field(
        "",
        description="Its value. $(DATABASE_HOST), $(PORT) and their like stand for what the server "
        "is told (see docs/servers.md), $(SERVICE_CACHE_HOST) and its like for services of the "
        "scenario, $(LICENCE) for a variable LICENCE of env that is in a secret; every other $ for "
        "itself.",
        max_length=8192,
    )
    secret: str | None = Field(
        None,
        description="Name of a Secret in the namespace of the run, which has the value instead: at "
        "its key laptime-env-LICENCE that of the variable LICENCE (see docs/servers.md).",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a Secret in the namespace of the run, such as shop-licence",
            ),
            minLength=1,
            maxLength=253,
        ),
    )

    @property
    def secret_key(self) -> str:
        """The key of its Secret that has the value."""
        return f"{SECRET_KEY_PREFIX}{self.name}"


class Server(Model):
    """One server under test: a preset of the catalogue, any image that meets the contract, or a
    Service that is there already.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.preset), has(self.image), has(self.service)].exists_one(one, one)",
                "write either preset (a server of the catalogue), image (your own) or service (one "
                "that is there already), exactly one of the three",
            ),
            rule(
                "has(self.image) || !has(self.port)",
                "port goes with image: a preset knows its own port, a service has its at "
                "service.port, leave port out",
                ".port",
            ),
            rule(
                "has(self.image) || !has(self.healthPath)",
                "healthPath goes with image: a preset has its own, a service has its at "
                "service.healthPath, leave healthPath out",
                ".healthPath",
            ),
            rule(
                "has(self.image) || !has(self.healthPort)",
                "healthPort goes with image: a preset and a service are asked at the port that "
                "they have, leave healthPort out",
                ".healthPort",
            ),
            rule(
                "has(self.image) || !has(self.user) && "
                "(!has(self.command) || self.command.size() == 0) && "
                "(!has(self.args) || self.args.size() == 0) && "
                "(!has(self.writable) || self.writable.size() == 0)",
                "command, args, user and writable go with image: a preset is started as it is, and "
                "a service is there already, leave them out",
            ),
            rule(
                "!has(self.service) || (!has(self.workers) || self.workers == 1) && "
                "self.databaseConnections == 5 && !self.profile && !has(self.threads) && "
                "!has(self.resources) && !has(self.topology) && "
                "(!has(self.env) || self.env.size() == 0)",
                "workers, threads, databaseConnections, resources, topology, profile and env are "
                "for servers that Laptime deploys: leave them out, a service is as it is",
                ".service",
            ),
        )
    )
    name: ServerName = Field(description="Name in tables and labels; unique within the run.")
    preset: str | None = Field(None, description="A server of the catalogue.", max_length=40)
    image: str | None = Field(
        None,
        description="An image of your own that meets the server contract (see docs/servers.md).",
        json_schema_extra=IMAGE,
    )
    port: int | None = Field(
        None, description="TCP port that your image listens on (8080).", ge=1, le=65535
    )
    health_path: str | None = Field(
        None,
        description="What your image answers with 200 as soon as it can serve (/healthz); it is "
        "asked by its startup probe, and before every check and trial.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{HEALTH_PATH_FORM}')",
                "must be a path that begins with one /, of letters, digits and . _ ~ -, without a "
                "query, such as /actuator/health",
            ),
            minLength=1,
            maxLength=256,
        ),
    )
    health_port: int | None = Field(
        None,
        description="TCP port at which your image answers healthPath; left out: port. For a "
        "management port, or beside a port that speaks no HTTP/1.1.",
        ge=1,
        le=65535,
    )
    command: Words = Field(
        default_factory=list,
        description="Instead of your image's entrypoint; $(PORT), $(DATABASE_HOST) and their like "
        "stand for what they do in env.",
    )
    args: Words = Field(
        default_factory=list,
        description="Instead of your image's arguments; as those of command.",
    )
    user: UserId | None = Field(
        None,
        description="User and group that your image runs as; left out: its own, which may not be "
        "root and must be a number.",
    )
    writable: Folders = Field(
        default_factory=list,
        description="Folders that your image writes to, empty at first. All else is read-only but "
        "/tmp.",
    )
    service: Service | None = Field(
        None,
        description="A Service of the namespace that is there already: it is driven and checked, "
        "and nothing of it is deployed or changed (see docs/servers.md).",
    )
    workers: int | None = Field(
        None,
        description="Worker processes (worker threads for Rust and Go servers); left out: 1. Of an "
        "image of your own, Laptime knows only by this how many cores it can use.",
        ge=1,
        le=256,
    )
    threads: int | None = Field(
        None,
        description="Threads of each worker process; left out: what the server has by itself.",
        ge=1,
        le=1024,
    )
    database_connections: int = Field(
        5,
        description="Size of the connection pool of each process (Rust and Go servers have one).",
        ge=1,
        le=MAX_POOL,
    )
    resources: Resources | None = Field(None, description="CPU and memory of the server's pod.")
    topology: OwnTopology | None = Field(
        None,
        description="What the tiers do for this server otherwise than for the others: so servers "
        "are compared behind pools and caps of different sizes.",
    )
    profile: bool = Field(
        False,
        description="Leave a flame graph of the server: after the trials it is put under load once "
        "more, counted nowhere, while its CPU is sampled.",
    )
    env: list[EnvironmentVariable] = Field(
        default_factory=list,
        description="More environment variables.",
        max_length=128,
        json_schema_extra=BY_NAME,
    )

    @property
    def deployed(self) -> bool:
        """Whether Laptime deploys it; else it is there already, and stays as it is."""
        return self.service is None

    @property
    def secret_keys(self) -> list[tuple[str, str]]:
        """The Secrets that it names, but those to pull with, each with the key that is taken."""
        found = [(one.secret, one.secret_key) for one in self.env if one.secret is not None]
        if self.service is not None and self.service.credentials is not None:
            found.append((self.service.credentials, AUTHORIZATION_KEY))
        return found

    @property
    def health(self) -> str:
        """The path that it answers with 200 when it serves."""
        if self.service is not None:
            return self.service.health_path
        return self.health_path or HEALTH_PATH

    @property
    def own_health_port(self) -> int | None:
        """The TCP port at which it is asked for that; None: the one that it listens on."""
        return None if self.health_port == self.listen_port else self.health_port

    @property
    def says_health(self) -> bool:
        """Whether the run says which path that is."""
        return self.service is not None or self.health_path is not None

    @property
    def knows_workers(self) -> bool:
        """Whether it is known how many workers it has: of an image by what the run says alone."""
        return self.preset is not None or self.workers is not None

    @property
    def worker_count(self) -> int:
        """How many workers it is told to have."""
        return self.workers or 1

    @property
    def listen_port(self) -> int:
        """The TCP port that the server listens on."""
        return self.port or 8080
