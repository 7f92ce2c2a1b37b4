"""What a user writes: the spec of a BenchmarkRun.

The CRD is generated from these models, so each bound and each CEL rule here is what the API
server enforces. A rule's message says what to write instead.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.durations import (
    BudgetDuration,
    TimeoutDuration,
    parse_duration,
)
from laptime.api.egress import Destination
from laptime.api.loads import Generator, Load
from laptime.api.names import ServerName
from laptime.api.objectives import Objective
from laptime.api.pairing import DUET_RULES, Pairing
from laptime.api.placement import Nodes, PlacementName
from laptime.api.pull_secret import MAX_PULL_SECRETS, PullSecret
from laptime.api.server import Server
from laptime.api.topology import SIZED_TIERS, Topology

# `<run>-server-<server>` names a Service and `<run>-verify-<server>` a Job: 63 characters at most,
# 8 of them in the middle and 20 of the server's name.
MAX_RUN_NAME_LENGTH = 35
MAX_SCENARIO_NAME_LENGTH = 40
MAX_SERVERS = 32
MAX_LOADS = 16
MAX_TRIALS = 2000
MAX_REPETITIONS = 100
CHANGEABLE = ("suspend", "cancel", "retry", "ttlSecondsAfterFinished")
"""What may be changed of a run that is accepted: everything else is what its results are about."""
LEAST_TTL_SECONDS = 30
"""So long a run stays after its end, however little it has to live: who follows it reads it."""
CONTROL_SUFFIX = "-control"

PRECISION_REPETITIONS = 8
"""With a precision to reach, intervals are first looked at after this many repetitions: fewer
make intervals that are too narrow by chance, and those would be the ones to stop at."""
DECIDED_REPETITIONS = 3
"""Where a run stops once all orders are known, it looks after this many repetitions at first."""
_MOST_REPETITIONS = 30


_PERCENTAGE = rules(
    rule(
        "self.matches('^([1-9][0-9]?([.][0-9]{1,2})?|0[.][1-9][0-9]?)%$')",
        "must be a percentage from 0.1% to 99%, such as 2% or 0.5%",
    ),
    minLength=2,
    maxLength=6,
)
_UNIQUE = "self.all(x, self.exists_one(y, x.name == y.name))"


def _own_cpu_rule(tier: str) -> dict[str, str]:
    theirs, shared = f"s.topology.{tier}", f"self.topology.{tier}"
    return rule(
        f"self.servers.all(s, !has(s.topology) || !has({theirs}) || !has({theirs}.cpu) || "
        f"has(self.topology) && has({shared}) && has({shared}.resources) && "
        f"has({shared}.resources.cpu))",
        f"a server has a limit of CPU of its own in the {SIZED_TIERS[tier]} of the run: write "
        f"{tier}: {{resources: {{cpu: 1}}}} in spec.topology, with what the other servers have, or "
        "leave it out at the server",
        ".servers",
    )


class StopWhen(StrEnum):
    """What ends a run before it has all repetitions that it may have."""

    DECIDED = "decided"


class BenchmarkRunSpec(Model):
    """The spec of a BenchmarkRun: what is compared, on which work, under which load."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!oldSelf.cancel || self.cancel",
                "a cancelled run cannot go on: apply it under another name, or delete it and "
                "apply it again",
                ".cancel",
            ),
            rule(
                "self.retry >= oldSelf.retry",
                "retry can only be raised: each time it is, failed trials are measured again",
                ".retry",
            ),
            rule(
                "!has(self.baseline) || self.servers.exists(s, s.name == self.baseline)",
                "baseline must be the name of one of spec.servers",
                ".baseline",
            ),
            rule(
                "!has(self.objectives) || self.objectives.all(o, "
                "self.servers.exists(s, s.name == o.server))",
                "each objective's server must be the name of one of spec.servers",
                ".objectives",
            ),
            rule(
                "!has(self.objectives) || self.objectives.all(o, "
                "self.loads.exists(l, l.name == o.load))",
                "each objective's load must be the name of one of spec.loads",
                ".objectives",
            ),
            rule(
                "(self.servers.size() + (self.control ? 1 : 0)) * self.loads.size() * "
                "(has(self.maxRepetitions) ? self.maxRepetitions : has(self.precision) && "
                f"self.repetitions < {PRECISION_REPETITIONS} ? {PRECISION_REPETITIONS} : "
                "has(self.stopWhen) && "
                f"self.repetitions < {DECIDED_REPETITIONS} ? {DECIDED_REPETITIONS} : "
                f"self.repetitions) <= {MAX_TRIALS}",
                f"servers x loads x repetitions must be at most {MAX_TRIALS} trials, with "
                "maxRepetitions and the control: split the run",
            ),
            rule(
                "!has(self.precision) || !has(self.stopWhen)",
                "precision and stopWhen are two ways to stop: write one of them",
                ".stopWhen",
            ),
            rule(
                "!has(self.stopWhen) || self.servers.size() > 1",
                "stopWhen: decided compares servers, and there is one: write precision, or "
                "repetitions for a fixed number",
                ".stopWhen",
            ),
            rule(
                "!has(self.smallestDifference) || has(self.stopWhen)",
                "smallestDifference goes with stopWhen: decided: leave it out, or add that",
                ".smallestDifference",
            ),
            rule(
                "!has(self.maxRepetitions) || has(self.precision) || has(self.stopWhen)",
                "maxRepetitions goes with precision or stopWhen: write repetitions for a fixed "
                "number",
                ".maxRepetitions",
            ),
            rule(
                "!has(self.maxRepetitions) || !has(self.precision) || "
                f"self.maxRepetitions >= {PRECISION_REPETITIONS}",
                f"with precision maxRepetitions must be at least {PRECISION_REPETITIONS}: fewer "
                "are never looked at",
                ".maxRepetitions",
            ),
            rule(
                "!has(self.budget) || has(self.precision) || has(self.stopWhen)",
                "budget goes with precision or stopWhen: without them the number of trials is "
                "fixed",
                ".budget",
            ),
            rule(
                "!has(self.maxRepetitions) || self.maxRepetitions >= self.repetitions",
                "maxRepetitions must be at least repetitions",
                ".maxRepetitions",
            ),
            rule(
                "!self.control || (has(self.baseline) ? self.baseline : "
                "self.servers[0].name).size() <= 12",
                "with control the baseline's name must have at most 12 characters: the control is "
                "named <baseline>-control",
                ".control",
            ),
            rule(
                "!self.control || !self.servers.exists(s, s.name == "
                "(has(self.baseline) ? self.baseline : self.servers[0].name) + '-control')",
                "control adds a server named <baseline>-control: give yours another name",
                ".control",
            ),
            rule(
                "!self.servers.exists(s, s.profile) || self.loads.exists(l, !has(l.saturation))",
                "a profile is taken under one steady load, and a saturation search is none: add a "
                "closed or an open load, or leave profile out",
                ".servers",
            ),
            rule(
                "!has(self.generator) || self.loads.all(l, "
                "(!has(l.closed) || l.closed.connections >= self.generator.parallelism) && "
                "(!has(l.open) || l.open.maxConnections >= self.generator.parallelism) && "
                "(!has(l.ramp) || l.ramp.maxConnections >= self.generator.parallelism) && "
                "(!has(l.stairs) || l.stairs.maxConnections >= self.generator.parallelism))",
                "each generator needs a connection of its own: make connections and "
                "maxConnections of every load at least generator.parallelism",
                ".generator",
            ),
            rule(
                "!has(self.generator) || self.loads.all(l, !has(l.script) || "
                "!has(l.script.options) || !has(l.script.options.rate) || "
                "l.script.options.rate >= self.generator.parallelism)",
                "generators share the requests per second of a script: make options.rate at least "
                "generator.parallelism",
                ".generator",
            ),
            rule(
                "!has(self.topology) || !has(self.topology.haproxy) || "
                "self.loads.all(l, l.protocol == 'http1')",
                "HAProxy would speak HTTP/2 in place of the servers: leave topology.haproxy out, "
                "or write protocol: http1",
                ".loads",
            ),
            *DUET_RULES,
            *(_own_cpu_rule(tier) for tier in SIZED_TIERS),
            rule(
                "self.servers.all(s, !has(s.topology) || !has(s.topology.pgbouncer) || "
                "has(self.topology) && has(self.topology.pgbouncer))",
                "a server has a pool of its own in the PgBouncer of the run: add pgbouncer: {} to "
                "spec.topology, or leave it out at the server",
                ".servers",
            ),
            rule(
                "self.servers.all(s, !has(s.topology) || !has(s.topology.haproxy) || "
                "has(self.topology) && has(self.topology.haproxy))",
                "a server has a cap of its own in the HAProxy of the run: add haproxy: {} to "
                "spec.topology, or leave it out at the server",
                ".servers",
            ),
            rule(
                "self.servers.all(s, !has(s.topology) || !has(s.topology.upstream) || "
                "has(self.topology) && has(self.topology.upstream))",
                "a server has a latency of its own of the upstream of the run: add upstream: {} to "
                "spec.topology, or leave it out at the server",
                ".servers",
            ),
            rule(
                "!has(self.topology) || !has(self.topology.postgres) || self.servers.all(s, "
                "!has(s.topology) || !has(s.topology.pgbouncer) || "
                "!has(s.topology.pgbouncer.poolSize) || "
                "s.topology.pgbouncer.poolSize <= self.topology.postgres.maxConnections)",
                "the poolSize of each server must not be larger than postgres.maxConnections",
                ".servers",
            ),
            rule(
                "!has(self.generator) || self.generator.parallelism == 1 || "
                "self.loads.all(l, !has(l.saturation))",
                "a saturation search runs in one generator: leave generator.parallelism at 1, or "
                "move the search to a run of its own",
                ".generator",
            ),
        )
    )
    scenario: str = Field(
        description="The work: a BenchmarkScenario of the namespace, or one that comes with "
        "Laptime.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "must be the name of a scenario: lower-case letters, digits and '-', such as users",
            ),
            minLength=1,
            maxLength=MAX_SCENARIO_NAME_LENGTH,
        ),
    )
    servers: Annotated[
        list[Server],
        Field(
            min_length=1,
            max_length=MAX_SERVERS,
            json_schema_extra=rules(
                rule(_UNIQUE, "two servers have the same name: give each a name of its own")
            ),
        ),
    ] = Field(description="The servers under test, one image per pod.")
    baseline: ServerName | None = Field(
        None, description="The server that factors are against; the first one if left out."
    )
    topology: Topology = Field(
        default_factory=lambda: Topology(),
        description="The tiers around the servers: database, pools, proxies, an upstream.",
    )
    loads: Annotated[
        list[Load],
        Field(
            min_length=1,
            max_length=MAX_LOADS,
            json_schema_extra=rules(
                rule(_UNIQUE, "two loads have the same name: give each a name of its own")
            ),
        ),
    ] = Field(description="How the servers are driven; exactly one shape each.")
    generator: Generator = Field(
        default_factory=lambda: Generator(), description="What sends the load."
    )
    repetitions: int = Field(
        5,
        description="How often each server is measured under each load.",
        ge=1,
        le=MAX_REPETITIONS,
    )
    precision: str | None = Field(
        None,
        description="Repeat until each factor (of a single server: its figure) is known to "
        "within this to each side, with 95 % confidence, such as 2%: that of throughput, "
        "for closed loads whatever their objectives are; where the rate is fixed (open, ramp, "
        "stairs, scripts that rest) that of the response time which their first objective about "
        "one names, or of p99.",
        json_schema_extra=_PERCENTAGE,
    )
    stop_when: StopWhen | None = Field(
        None,
        description="decided: look after each repetition, from the third or `repetitions` on, and "
        "measure no more under a load once any two servers are told apart, or proven to differ by "
        "less than smallestDifference. All looks at a load together err in at most 5 % of runs.",
    )
    smallest_difference: str | None = Field(
        None,
        description="With stopWhen: servers that differ by less than this for sure need not be "
        "told apart, such as 2%. Left out, like servers are measured up to maxRepetitions.",
        json_schema_extra=_PERCENTAGE,
    )
    max_repetitions: int | None = Field(
        None,
        description="With precision or stopWhen: give up after this many repetitions (30).",
        ge=DECIDED_REPETITIONS,
        le=200,
    )
    budget: BudgetDuration | None = Field(
        None,
        description="With precision or stopWhen: begin no further repetition after this time, such "
        "as 2h.",
    )
    control: bool = Field(
        False,
        description="Measure the baseline a second time, as <baseline>-control: what differs there "
        "is chance, and says how small a difference this cluster can show.",
    )
    seed: int | None = Field(
        None,
        description="Seed of the order of the trials; made from the run's uid if left out.",
        ge=0,
        le=2**31 - 1,
    )
    startup_timeout: TimeoutDuration = Field(
        "30s",
        description="Longest time that a tier or a server may take to get ready.",
    )
    placement: PlacementName | None = Field(
        None,
        description="Where the pods of the run go: one of the placements that the administrator "
        "has named in Laptime's chart for this namespace. Left out, its default one; without any, "
        "generators apart from the rest where there is room.",
    )
    nodes: Nodes | None = Field(
        None,
        description="fixed, or left out: all trials go where the first one was. rotate: those of a "
        "repetition go where its first one was, and the servers of the next one to another node if "
        "they can, so that the figures hold for more than one node. any: each goes where the "
        "scheduler likes; those on other nodes than the first are doubtful.",
    )
    pairing: Pairing | None = Field(
        None,
        description="interleaved, or left out: one trial after the other. duet: two servers "
        "without tiers are measured at the same time, so that what disturbs the machine disturbs "
        "both; their figures are those of a server that shares its machine with the other.",
    )
    objectives: list[Objective] = Field(
        default_factory=list, description="Bounds that must be kept.", max_length=64
    )
    egress: list[Destination] = Field(
        default_factory=list,
        description="Where the pods of the run may connect to, beside each other and the cluster's "
        "DNS, where NetworkPolicies are enforced.",
        max_length=16,
    )
    image_pull_secrets: Annotated[
        list[PullSecret],
        Field(
            max_length=MAX_PULL_SECRETS,
            json_schema_extra=rules(rule(_UNIQUE, "two of imagePullSecrets are the same one")),
        ),
    ] = Field(
        default_factory=list,
        description="Secrets of the namespace with which images are pulled from private "
        "registries, for every pod of the run; those of the chart come on top.",
    )
    verify_only: bool = Field(
        False,
        description="Deploy the servers, check their answers, and measure nothing: what each "
        "answered is kept beside what was expected (kubectl laptime verify).",
    )
    suspend: bool = Field(
        False,
        description="Pause after the trial that is going on: the tiers go, and other runs have "
        "their turn. Taken back, the run queues again. Can be changed at any time.",
    )
    cancel: bool = Field(
        False,
        description="End the run now, with the figures and the report of what was measured. Can "
        "be set at any time, and not be taken back.",
    )
    retry: int = Field(
        0,
        description="Raise it when the run is over, and its failed trials are measured again; what "
        "was measured stays.",
        ge=0,
        le=100,
    )
    ttl_seconds_after_finished: int | None = Field(
        None,
        description="Delete the run and its results this many seconds after it finished, and not "
        f"before {LEAST_TTL_SECONDS}: whoever waits for the run needs a while to read them.",
        ge=0,
        le=31_536_000,
    )

    @property
    def baseline_name(self) -> str:
        """Name of the server that factors are against."""
        return self.baseline or self.servers[0].name

    @property
    def control_name(self) -> str | None:
        """Name of the control arm; None when there is none."""
        return self.baseline_name + CONTROL_SUFFIX if self.control else None

    def with_control(self) -> BenchmarkRunSpec:
        """Return the spec with the control arm as a server of its own, after all others.

        It is deployed, verified and measured as any server; only the analysis knows what it is.
        """
        name = self.control_name
        if name is None or any(server.name == name for server in self.servers):
            return self
        # A profile of the same server a second time would say nothing new.
        changes = {"name": name, "profile": False}
        control = self.server(self.baseline_name).model_copy(update=changes)
        return self.model_copy(update={"servers": [*self.servers, control]})

    @property
    def duet(self) -> bool:
        """Whether the two servers of a repetition are measured at the same time."""
        return self.pairing is Pairing.DUET

    @property
    def profile_load(self) -> Load | None:
        """The load that profiles are taken under: the first that is no search; None without one."""
        return next((load for load in self.loads if load.saturation is None), None)

    @property
    def precision_share(self) -> float | None:
        """The precision to reach as a share: 0.02 for 2%; None for a fixed number of trials."""
        return _share(self.precision)

    @property
    def smallest_difference_share(self) -> float | None:
        """The smallest difference worth knowing as a share; None where each one is."""
        return _share(self.smallest_difference)

    @property
    def by_results(self) -> bool:
        """Whether the results say how many repetitions there are; False for a fixed number."""
        return self.precision is not None or self.stop_when is not None

    @property
    def first_look(self) -> int:
        """Repetitions that are always made."""
        if not self.by_results:
            return self.repetitions
        fewest = PRECISION_REPETITIONS if self.precision else DECIDED_REPETITIONS
        return min(max(self.repetitions, fewest), self.most_repetitions)

    @property
    def most_repetitions(self) -> int:
        """Repetitions that are never exceeded."""
        if not self.by_results:
            return self.repetitions
        if self.max_repetitions is not None:
            return self.max_repetitions
        affordable = MAX_TRIALS // (len(self.servers) * len(self.loads))
        return max(self.repetitions, min(_MOST_REPETITIONS, affordable))

    @property
    def budget_seconds(self) -> float | None:
        """Time after which no further repetition begins; None: no limit."""
        return parse_duration(self.budget) if self.budget else None

    @property
    def startup_seconds(self) -> float:
        """Longest time that a tier or a server may take to get ready, in seconds."""
        return parse_duration(self.startup_timeout)

    @property
    def deployed(self) -> list[Server]:
        """The servers that Laptime deploys: all but Services that are there already."""
        return [server for server in self.servers if server.deployed]

    @property
    def script_config_maps(self) -> list[str]:
        """The ConfigMaps that files of scripts come from, each once, sorted by name."""
        scripts = [] if self.verify_only else [one.script for one in self.loads if one.script]
        return sorted({name for script in scripts for name in script.config_maps})

    @property
    def config_maps(self) -> list[tuple[str, str, str | None]]:
        """What pods take from ConfigMaps of the namespace: who needs it, ConfigMap, key.

        Without a key all of it is taken.
        """
        scripts = [
            (f"load {load.name}", name, load.script.key if name == load.script.config_map else None)
            for load in self.loads
            if load.script is not None and not self.verify_only
            for name in load.script.config_maps
        ]
        certificates = [
            (f"server {one.name}", one.service.tls.config_map, one.service.tls.key)
            for one in self.servers
            if one.service is not None and one.service.tls is not None
        ]
        return [*scripts, *certificates]

    def topology_of(self, server: Server) -> Topology:
        """Return the tiers around a server, with what they do for it alone: a Service that is there
        already has none of the run.
        """
        return self.topology.as_seen_by(server.topology) if server.deployed else Topology()

    def server(self, name: str) -> Server:
        """Return the server of that name; KeyError if there is none."""
        return _named(self.servers, name)

    def load(self, name: str) -> Load:
        """Return the load of that name; KeyError if there is none."""
        return _named(self.loads, name)


def _share(percentage: str | None) -> float | None:
    return float(percentage.removesuffix("%")) / 100 if percentage else None


_Named = TypeVar("_Named", Server, Load)


def _named(items: list[_Named], name: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)
