"""Loads: how the generators drive a server."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from laptime.api.base import BY_NAME, Model, rule, rules
from laptime.api.durations import (
    ConnectDuration,
    LoadDuration,
    TimeoutDuration,
    WarmupDuration,
    parse_duration,
)
from laptime.api.names import LoadName
from laptime.api.resources import Resources
from laptime.api.script_load import ScriptLoad

_CONNECT_KEEPS_ALIVE = rule(
    "!has(self.connectOver) || self.keepAlive",
    "without keepAlive each request opens a connection: leave connectOver out",
    ".connectOver",
)

_CONNECT_SECONDS = 0.002
_MOST_CONNECT_SECONDS = 2.0
MAX_CONNECTIONS = 10_000
"""Most connections of a closed load."""
MAX_USERS = 60_000
"""Most requests of a load under way at once."""


class Arrivals(StrEnum):
    """How the requests of an open load follow each other."""

    EVEN = "even"
    POISSON = "poisson"


class Protocol(StrEnum):
    """The protocol that requests are sent over."""

    HTTP1 = "http1"
    HTTP2 = "http2"


class ClosedLoad(Model):
    """A fixed number of connections, each sending its next request when the answer is there."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.requests) != has(self.duration)",
                "write either requests (how many in all) or duration (how long), "
                "exactly one of the two",
            ),
            rule(
                "!has(self.requests) || self.requests >= self.connections",
                "requests must be at least connections, so that each connection has one to send",
                ".requests",
            ),
            _CONNECT_KEEPS_ALIVE,
        )
    )
    connections: int = Field(description="Concurrent connections.", ge=1, le=MAX_CONNECTIONS)
    requests: int | None = Field(
        None,
        description="Requests in all, warm-up not counted. A trial may wait for their answers for "
        "an hour, and users may think for another one.",
        ge=1,
        le=1_000_000_000,
    )
    duration: LoadDuration | None = Field(None, description="How long to measure, such as 30s.")
    keep_alive: bool = Field(
        True, description="Use a connection for many requests; false opens one per request."
    )
    connect_over: ConnectDuration | None = Field(
        None,
        description="How long connections are opened before the load begins, one after the other, "
        "so that all processes of a server get their share; 0s opens them all at once. Left out: "
        "2 ms for each connection, at most 2 s.",
    )

    @property
    def connect_seconds(self) -> float:
        """How long connections are opened before the load begins, in seconds."""
        if self.connect_over is not None:
            return parse_duration(self.connect_over)
        if not self.keep_alive:
            return 0.0
        return min(_MOST_CONNECT_SECONDS, _CONNECT_SECONDS * self.connections)


class _Arriving(Model):
    """What all shapes have whose requests arrive, however slow the answers are."""

    model_config = ConfigDict(json_schema_extra=rules(_CONNECT_KEEPS_ALIVE))

    max_connections: int = Field(
        1000,
        description="Most requests in flight; more wait, with the clock running.",
        ge=1,
        le=20000,
    )
    keep_alive: bool = Field(True, description="Use a connection for many requests.")
    arrivals: Arrivals = Field(
        Arrivals.EVEN,
        description="even: each request comes 1/rate after the one before, so that figures vary "
        "least; poisson: requests come independently of each other, as those of many users do, so "
        "that some wait behind others at any rate.",
    )
    connect_over: ConnectDuration | None = Field(
        None,
        description="How long all maxConnections are opened before the load begins, one after the "
        "other; left out: each is opened when all others are busy.",
    )

    @property
    def connect_seconds(self) -> float:
        """How long connections are opened before the load begins, in seconds."""
        return parse_duration(self.connect_over) if self.connect_over is not None else 0.0


class OpenLoad(_Arriving):
    """Requests at a fixed rate, however slow the answers are."""

    rate: int = Field(description="Requests per second.", ge=1, le=1_000_000)
    duration: LoadDuration = Field(description="How long to measure, such as 30s.")

    def rate_at(self, _: float) -> float:
        """Return the requests per second that are asked for at a time of the load, in seconds."""
        return self.rate

    @property
    def highest_rate(self) -> int:
        """Most requests per second."""
        return self.rate


class RampLoad(_Arriving):
    """Requests at a rate that changes evenly, however slow the answers are."""

    from_: int = Field(
        alias="from", description="Requests per second at the start.", ge=1, le=1_000_000
    )
    to: int = Field(description="Requests per second at the end.", ge=1, le=1_000_000)
    duration: LoadDuration = Field(description="From the one to the other, such as 60s.")

    def rate_at(self, seconds: float) -> float:
        """Return the requests per second that are asked for at a time of the load, in seconds."""
        return self.from_ + (self.to - self.from_) * seconds / parse_duration(self.duration)

    @property
    def highest_rate(self) -> int:
        """Most requests per second."""
        return max(self.from_, self.to)


class Step(Model):
    """One rate of several."""

    rate: int = Field(description="Requests per second.", ge=1, le=1_000_000)
    duration: LoadDuration = Field(description="How long it lasts, such as 30s.")


class StairsLoad(_Arriving):
    """Requests at several rates, one after the other, however slow the answers are."""

    steps: list[Step] = Field(
        description="The rates, in their order; the warm-up is at the first one.",
        min_length=1,
        max_length=32,
    )

    @property
    def duration(self) -> str:
        """How long all steps take together."""
        return f"{sum(parse_duration(step.duration) for step in self.steps):g}s"

    def rate_at(self, seconds: float) -> float:
        """Return the requests per second that are asked for at a time of the load, in seconds."""
        for step in self.steps:
            seconds -= parse_duration(step.duration)
            if seconds < 0:
                return step.rate
        return self.steps[-1].rate

    @property
    def highest_rate(self) -> int:
        """Most requests per second."""
        return max(step.rate for step in self.steps)


PacedLoad = OpenLoad | RampLoad | StairsLoad
"""Shapes in which all requests come at rates that the spec says."""


class SaturationLoad(_Arriving):
    """A search for the highest rate of requests at which an objective is met."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.startRate <= self.maxRate",
                "startRate must be at most maxRate, where the search ends",
                ".startRate",
            ),
            _CONNECT_KEEPS_ALIVE,
        )
    )
    p99: TimeoutDuration = Field(
        description="Largest 99th percentile of the response times that is good, such as 50ms; at "
        "most half of a step."
    )
    error_rate: float = Field(
        0.001,
        description="Largest share of requests without a right answer. They are slower than all "
        "others: with more than 0.01 of them there is no p99 that is good.",
        ge=0,
        le=1,
    )
    start_rate: int = Field(
        100,
        description="Requests per second of the first step at most: each search begins at a rate "
        "that is drawn between half of it and it; of 1 between 1 and 2.",
        ge=1,
        le=1_000_000,
    )
    max_rate: int = Field(
        100_000, description="Most requests per second that are tried.", ge=1, le=1_000_000
    )
    step: LoadDuration = Field(
        "5s",
        description="How long each rate is tried each time. A search has some 18 steps, and 40 at "
        "most.",
    )

    @property
    def p99_seconds(self) -> float:
        """Largest 99th percentile that is good, in seconds."""
        return parse_duration(self.p99)

    @property
    def step_seconds(self) -> float:
        """How long each rate is tried, in seconds."""
        return parse_duration(self.step)


class Generator(Model):
    """What sends the load."""

    parallelism: int = Field(
        1,
        description="Generators that share each load, each in a pod of its own; they start "
        "together.",
        ge=1,
        le=16,
    )
    resources: Resources | None = Field(
        None,
        description="CPU and memory of each generator's pod; left out: what is free, since one "
        "that is held back measures itself.",
    )


class Share(Model):
    """How often one session, or one request, comes beside the others."""

    name: str = Field(
        description="Name of a session or a request of the scenario.", min_length=1, max_length=63
    )
    weight: int = Field(description="Of the sum of all weights.", ge=1, le=1000)


class ThinkTime(Model):
    """How long a user waits after an answer, evenly drawn between the two."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.max) || duration(self.min) <= duration(self.max)",
                "min must be at most max",
                ".min",
            )
        )
    )
    min: WarmupDuration = Field(description="Shortest time, such as 500ms.")
    max: WarmupDuration | None = Field(None, description="Longest time; left out: min.")

    @property
    def seconds(self) -> tuple[float, float]:
        """The shortest and the longest time in seconds."""
        return parse_duration(self.min), parse_duration(self.max or self.min)


class Load(Model):
    """One load: how the generator drives a server. Exactly one shape each."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.closed), has(self.open), has(self.ramp), has(self.stairs), "
                "has(self.saturation), has(self.script)].filter(shape, shape).size() == 1",
                "write exactly one shape per load: closed, open, ramp, stairs, saturation or "
                "script",
            ),
            rule(
                "!has(self.endpoints) || !has(self.script)",
                "a script sends what it likes: leave endpoints out",
                ".endpoints",
            ),
            rule(
                "!has(self.mix) || !(has(self.endpoints) || has(self.script))",
                "mix says which requests are sent and how often: leave endpoints out; a script "
                "sends what it likes",
                ".mix",
            ),
            rule(
                "!has(self.thinkTime) || has(self.closed)",
                "users of an open load leave after their request, and a script rests by itself: "
                "leave thinkTime out",
                ".thinkTime",
            ),
            rule(
                "self.streams == 1 || !has(self.script)",
                "a script shares its connections as it likes: leave streams out",
                ".streams",
            ),
            rule(
                "!has(self.script) || self.warmup == '3s'",
                "a script warms up by itself, or for as long as script.warmup says: write it "
                "there, and leave this one out",
                ".warmup",
            ),
            rule(
                "self.protocol == 'http1' || ((!has(self.closed) || self.closed.keepAlive) && "
                "(!has(self.open) || self.open.keepAlive) && "
                "(!has(self.ramp) || self.ramp.keepAlive) && "
                "(!has(self.stairs) || self.stairs.keepAlive) && "
                "(!has(self.saturation) || self.saturation.keepAlive))",
                "connections of HTTP/2 are kept: leave keepAlive out, or write protocol: http1",
                ".protocol",
            ),
            rule(
                "self.streams == 1 || self.protocol == 'http2'",
                "only a connection of HTTP/2 has several streams: write protocol: http2, or leave "
                "streams out",
                ".streams",
            ),
            rule(
                "!has(self.closed) || !has(self.closed.requests) || "
                "self.closed.requests >= self.closed.connections * self.streams",
                "requests must be at least connections times streams, so that each user has one to "
                "send",
                ".streams",
            ),
            rule(
                "(has(self.closed) ? self.closed.connections : "
                "has(self.open) ? self.open.maxConnections : "
                "has(self.ramp) ? self.ramp.maxConnections : "
                "has(self.stairs) ? self.stairs.maxConnections : "
                "has(self.saturation) ? self.saturation.maxConnections : 1) * self.streams "
                f"<= {MAX_USERS}",
                f"connections times streams must be at most {MAX_USERS}: write fewer connections "
                "(maxConnections is 1000 where it is left out)",
                ".streams",
            ),
        )
    )
    name: LoadName = Field(description="Name in tables and labels; unique within the run.")
    closed: ClosedLoad | None = Field(None, description="A fixed number of connections.")
    open: OpenLoad | None = Field(None, description="A fixed rate of requests.")
    ramp: RampLoad | None = Field(None, description="A rate of requests that grows or falls.")
    stairs: StairsLoad | None = Field(None, description="Several rates, one after the other.")
    saturation: SaturationLoad | None = Field(
        None, description="The highest rate at which an objective is met."
    )
    script: ScriptLoad | None = Field(None, description="A k6 script of your own.")
    endpoints: list[Annotated[str, Field(min_length=1, max_length=40)]] | None = Field(
        None,
        description="Which sessions or requests of the scenario are sent, in turn, each named "
        "once; left out: all of them, by their weights.",
        min_length=1,
        max_length=16,
        json_schema_extra=rules(
            rule(
                "self.all(one, self.exists_one(other, one == other))",
                "endpoints are sent equally often, so name each once: for other shares write mix, "
                "such as mix: [{name: read, weight: 3}, {name: create, weight: 1}]",
            )
        ),
    )
    mix: list[Share] | None = Field(
        None,
        description="Which sessions or requests of the scenario are sent, and how often beside "
        "each other, in an order that is the same for all servers.",
        min_length=1,
        max_length=16,
        json_schema_extra=BY_NAME,
    )
    think_time: ThinkTime | None = Field(
        None,
        description="How long a user, who has a connection of his own, waits after each answer; "
        "it is part of no response time.",
    )
    protocol: Protocol = Field(
        Protocol.HTTP1,
        description="http1, or http2: with TLS the server chooses it (ALPN), without it is spoken "
        "at once (h2c, prior knowledge). The server's answers are checked over it as well. What a "
        "script speaks it chooses itself: beside one this is about the checks alone.",
    )
    streams: int = Field(
        1,
        description="HTTP/2: how many users share a connection, each with a stream of his own; "
        "the load has connections times streams of them.",
        ge=1,
        le=1000,
    )
    warmup: WarmupDuration = Field(
        "3s", description="Load of the same shape before the measured part, never counted."
    )
    timeout: TimeoutDuration = Field("30s", description="Time-out of one request.")

    @property
    def warmup_seconds(self) -> float:
        """Length of the warm-up before the measured part in seconds; a script has its own."""
        return 0.0 if self.script else parse_duration(self.warmup)

    @property
    def timeout_seconds(self) -> float:
        """Time-out of one request in seconds."""
        return parse_duration(self.timeout)

    @property
    def paced(self) -> PacedLoad | None:
        """The shape, if all requests come at rates that it says."""
        return self.open or self.ramp or self.stairs

    @property
    def arriving(self) -> PacedLoad | SaturationLoad | None:
        """The shape, if requests arrive however slow the answers are."""
        return self.paced or self.saturation

    @property
    def connections(self) -> int | None:
        """Most connections that it has open; None for a script."""
        if self.closed is not None:
            return self.closed.connections
        return None if self.arriving is None else self.arriving.max_connections

    @property
    def users(self) -> int | None:
        """Most requests under way at once: one for each connection or, with HTTP/2, each stream."""
        return None if self.connections is None else self.connections * self.streams

    @property
    def connect_seconds(self) -> float:
        """How long connections are opened before the load begins, in seconds."""
        shape = self.closed or self.arriving
        return 0.0 if shape is None else shape.connect_seconds

    @property
    def measured_seconds(self) -> float | None:
        """Length of the measured part in seconds; None where nobody knows it before."""
        shape = self.closed or self.paced or self.script
        if shape is None or shape.duration is None:
            return None
        return parse_duration(shape.duration)
