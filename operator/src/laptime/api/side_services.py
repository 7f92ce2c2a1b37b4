"""Services that stand around the servers of a scenario: a cache, a queue, a stub of a third party.

They are tiers like the database of a run, but of any image, and what they are is the scenario's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from laptime.api.base import BY_NAME, Model, rule, rules
from laptime.api.names import IMAGE, variable_name
from laptime.api.program import Folders, UserId, Words
from laptime.api.resources import Resources

MAX_SIDE_SERVICES = 8
MAX_SIDE_SERVICE_NAME = 16
"""With the longest name of a run the name of an object is as long as one may be."""

SIDE_PREFIX = "service-"
"""The components of such services begin with it, and no other does."""

_Port = Annotated[int, Field(ge=1, le=65535)]


class SideVariable(Model):
    """An environment variable; the kubelet expands $(SERVICE_CACHE_HOST) and its like in it."""

    name: str = variable_name(
        rule(
            "!self.startsWith('SERVICE_')",
            "names that begin with SERVICE_ are Laptime's: write another one, and "
            "$(SERVICE_CACHE_HOST) in its value",
        )
    )
    value: str = Field(
        "",
        description="Its value. $(SERVICE_CACHE_HOST), $(SERVICE_CACHE_PORT) and "
        "$(SERVICE_CACHE_PASSWORD) stand for the service cache; every other $ for itself.",
        max_length=1024,
    )


_Variables = Annotated[list[SideVariable], Field(max_length=32, json_schema_extra=BY_NAME)]


class Ready(Model):
    """When a service can be used: it takes connections, or it answers a GET with 200 to 399."""

    path: str | None = Field(
        None,
        description="What is asked for; left out: a connection is enough.",
        json_schema_extra=rules(
            rule(
                "self.matches('^/[!-~]*$')",
                "must be a path that begins with /, such as /healthz",
            ),
            minLength=1,
            maxLength=255,
        ),
    )
    port: _Port | None = Field(None, description="One of its ports; left out: the first.")


class ResetRequest(Model):
    """A request that brings a service back to its first state."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "POST", description="The method."
    )
    path: str = Field(
        description="Path and query, such as /__admin/reset.",
        json_schema_extra=rules(
            rule(
                "self.matches('^/[!-~]*$') && !self.startsWith('//') && !self.contains('#')",
                "must be a path that begins with one /, such as /__admin/reset: which service is "
                "asked is said by where it stands",
            ),
            minLength=1,
            maxLength=2048,
        ),
    )
    port: _Port | None = Field(None, description="One of its ports; left out: the first.")
    headers: dict[str, Annotated[str, Field(max_length=2048)]] = Field(
        default_factory=dict,
        description="Header fields, such as content-type.",
        json_schema_extra=rules(
            rule(
                "self.all(n, self[n].matches('^[ -~]*$'))",
                "values of header fields are printable ASCII, such as application/json",
            ),
            maxProperties=16,
        ),
    )
    body: str | None = Field(None, description="The body as it is sent.", max_length=16_384)
    expect_status: int = Field(
        200, description="Status of its answer when it is done.", ge=200, le=599
    )


class ResetJob(Model):
    """A Job that brings a service back to its first state, and ends with exit code 0 then."""

    image: str = Field(description="Its image.", json_schema_extra=IMAGE)
    command: Words = Field(default_factory=list, description="Instead of the image's entrypoint.")
    args: Words = Field(default_factory=list, description="Instead of the image's arguments.")
    env: _Variables = Field(
        default_factory=list, description="Environment variables beside those of all services."
    )
    user: UserId | None = Field(None, description="User and group; left out: the image's own.")


class Reset(Model):
    """How a service is brought to the same state before each trial; its pod goes on."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.request) != has(self.job)",
                "write either request or job; for a fresh pod before each trial leave reset out",
            )
        )
    )
    request: ResetRequest | None = Field(None, description="By a request to it.")
    job: ResetJob | None = Field(None, description="By a program of yours.")


class SideService(Model):
    """A service beside the servers; each trial begins with a fresh pod of it, or after its reset.

    Its pod has the `restricted` Pod Security level, as all pods of a run have: no root, and a
    root file system that is read-only.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.ready) || !has(self.ready.port) || self.ready.port in self.ports",
                "ready.port must be one of ports",
                ".ready",
            ),
            rule(
                "!has(self.reset) || !has(self.reset.request) || !has(self.reset.request.port) || "
                "self.reset.request.port in self.ports",
                "reset.request.port must be one of ports",
                ".reset",
            ),
            rule(
                "!self.stateless || !has(self.reset)",
                "what is stateless has nothing to be reset: leave stateless or reset out",
                ".stateless",
            ),
        )
    )
    name: str = Field(
        description="Its name: the servers find `cache` at $(SERVICE_CACHE_HOST).",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "must be lower-case letters, digits and '-', start with a letter and end with a "
                "letter or digit, such as cache",
            ),
            minLength=1,
            maxLength=MAX_SIDE_SERVICE_NAME,
        ),
    )
    image: str = Field(description="Its image.", json_schema_extra=IMAGE)
    command: Words = Field(default_factory=list, description="Instead of the image's entrypoint.")
    args: Words = Field(default_factory=list, description="Instead of the image's arguments.")
    env: _Variables = Field(default_factory=list, description="Its environment variables.")
    ports: list[_Port] = Field(
        description="TCP ports that it listens on; $(SERVICE_CACHE_PORT) is the first.",
        min_length=1,
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    password: bool = Field(
        False,
        description="Have Laptime make a password for it, anew for each run: "
        "$(SERVICE_CACHE_PASSWORD), for itself and for the servers.",
    )
    ready: Ready | None = Field(
        None, description="When it can be used; left out: when its first port takes connections."
    )
    user: UserId | None = Field(
        None,
        description="User and group that it runs as; left out: the image's own, which may not be "
        "root and must be a number.",
    )
    writable: Folders = Field(
        default_factory=list,
        description="Folders that it writes to, empty in a new pod. All else is read-only but "
        "/tmp.",
    )
    threads: int | None = Field(
        None,
        description="How many threads of it compute at most, where that limits it: 1 for Redis.",
        ge=1,
        le=1024,
    )
    resources: Resources | None = Field(None, description="CPU and memory of its pod.")
    reset: Reset | None = Field(
        None,
        description="How it is brought to the same state before each trial; left out: by a fresh "
        "pod.",
    )
    stateless: bool = Field(
        False, description="It keeps nothing from one request to the next: one pod serves them all."
    )

    @property
    def component(self) -> str:
        """What its pods are called in labels, results and figures."""
        return f"{SIDE_PREFIX}{self.name}"

    @property
    def reset_component(self) -> str:
        """What the pods that reset it are called in labels."""
        return f"reset-{self.name}"

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"service {self.name}"

    @property
    def fresh(self) -> bool:
        """Whether each trial has a pod of it to itself."""
        return self.reset is None and not self.stateless

    @property
    def ready_port(self) -> int:
        """The port that says when it can be used."""
        return (self.ready.port if self.ready else None) or self.ports[0]

    def variable(self, what: Literal["HOST", "PORT", "PASSWORD"]) -> str:
        """Return the name of the environment variable that says so of it."""
        return f"SERVICE_{self.name.upper().replace('-', '_')}_{what}"

    @property
    def variables(self) -> list[str]:
        """The names of all environment variables that say something of it."""
        names = [self.variable("HOST"), self.variable("PORT")]
        return [*names, self.variable("PASSWORD")] if self.password else names
