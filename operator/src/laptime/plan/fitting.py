"""Whether a run and its scenario fit together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from laptime.api.durations import parse_duration
from laptime.api.loads import Protocol
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.topology import MOST_CONNECTIONS
from laptime.catalog import Scenario, presets, processes_of, reference_problems
from laptime.plan.endpoints import load_problem, scarce_rows, sent_requests, sent_sessions
from laptime.plan.pools import (
    connections_needed,
    database_name,
    known_connections,
    pool_sizes,
)
from laptime.plan.profiles import profile_load
from laptime.plan.sessions import shape_problem, thinking_problem
from laptime.plan.told import nameable, texts


def misfits(spec: BenchmarkRunSpec, scenario: Scenario) -> list[str]:
    """Return what of a run does not fit its scenario, with what to write instead."""
    servers = (*_servers(spec, scenario), *_variables(spec, scenario), *_protocols(spec))
    return [*servers, *_topology(spec, scenario), *_shared_services(spec, scenario)]


def load_problems(spec: BenchmarkRunSpec, scenario: Scenario) -> list[str]:
    """Return which loads the scenario cannot serve, with what to write instead."""
    problems = [load_problem(load, scenario, spec.generator.parallelism) for load in spec.loads]
    more = (
        *_without_credentials(spec),
        *_used_up(spec, scenario),
        *_too_short_to_judge(spec),
        *_think_too_long(spec, scenario),
        *_ended_before_their_end(spec),
        *_not_profiled(spec, scenario),
    )
    return [one for one in (*problems, *more) if one is not None]


def left_behind(spec: BenchmarkRunSpec, scenario: Scenario) -> str | None:
    """Return what loads change in Postgres for all trials after them, with what to write; or None.

    It is a warning: of a POST nobody knows whether it changes anything.
    """
    if spec.topology.postgres is None or not spec.deployed or spec.verify_only:
        return None
    if scenario.takes_back or not any(one.writes for one in scenario.requests):
        return None
    sent: dict[str, str] = {}
    for load in spec.loads:
        if load.script is not None:
            # What it sends nobody knows.
            continue
        try:
            requests = sent_requests(sent_sessions(load, scenario))
        except ValueError:
            # It is refused, and told what to write.
            continue
        sent |= {one.name: one.method for one in requests if one.writes and one.statements != 0}
    if not sent:
        return None
    named = ", ".join(f"{name} ({method})" for name, method in sent.items())
    whose = " of its server" if spec.topology.own_databases else ""
    return (
        f"what a trial changes in Postgres by {named} is there for all trials{whose} after it, "
        f"since scenario {scenario.name} has no data.postgres.reset: write there what brings the "
        "rows back, such as TRUNCATE orders; or, where these requests change nothing or that is "
        "meant, reset: [{sql: SELECT 1;}]"
    )


def _without_credentials(spec: BenchmarkRunSpec) -> Iterator[str]:
    known = next(
        (one.name for one in spec.servers if one.service and one.service.credentials), None
    )
    for load in spec.loads:
        if known is not None and load.script is not None:
            yield (
                f"load {load.name}: no script is told the credentials of server {known}: leave "
                "service.credentials out and have the script log in itself, or move this load to a "
                "run of its own"
            )


def _used_up(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    """Yield which rows would be gone after the first trial."""
    service = next((one.name for one in spec.servers if not one.deployed), None)
    for load in spec.loads if service is not None else []:
        if load_problem(load, scenario) is not None:
            continue
        scarce = scarce_rows(load, scenario)
        if scarce is not None:
            yield (
                f"load {load.name}: {scarce.what} once, and nobody brings them back for server "
                f"{service}, which Laptime does not deploy: name other endpoints, or compare it in "
                "a run without this load"
            )


def _too_short_to_judge(spec: BenchmarkRunSpec) -> Iterator[str]:
    """Yield which searches have steps that end before a server that falls behind is slow.

    The queue of one that is asked for twice what it can do grows by half of a step within it, and
    answers that take longer than that leave no steady state to see that it does not keep up.
    """
    for load in spec.loads:
        search = load.saturation
        if search is not None and 2 * search.p99_seconds > search.step_seconds:
            yield (
                f"load {load.name}: p99 ({search.p99}) is more than half of a step "
                f"({search.step}), in which a server that falls behind is hardly that slow yet: "
                f"write step: {math.ceil(2 * search.p99_seconds)}s or more, or a smaller p99"
            )


def _think_too_long(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    """Yield which loads end before their sessions come at the rate, or all requests are sent."""
    for load in spec.loads:
        if load.script is not None or load_problem(load, scenario) is not None:
            continue
        sessions = sent_sessions(load, scenario)
        problem = shape_problem(load, sessions) or thinking_problem(load, sessions)
        if problem is not None:
            yield problem


_GRACE_SECONDS = 30.0
"""How long a script may go on after its duration (images/k6/internal/output/guard.go)."""


def _ended_before_their_end(spec: BenchmarkRunSpec) -> Iterator[str]:
    """Yield which scripts cannot end in time, or measure anything, by what the run says of them.

    What a script says itself nobody knows before.
    """
    for load in spec.loads:
        script = load.script
        if script is None:
            continue
        longest, options = parse_duration(script.duration), script.options
        lasts = None if options is None else options.longest_seconds
        # With iterations its options say how long it may last, and not how long it will.
        allowed = longest + _GRACE_SECONDS
        if options and options.iterations is None and lasts is not None and lasts > allowed:
            what = "stages" if options.stages else "duration"
            yield (
                f"load {load.name}: options.{what} of its script take {lasts:g} s, and its "
                f"duration allows {longest:g} s (5m where it is left out): write script.duration: "
                f"{math.ceil(lasts)}s or more, or shorter options.{what}"
            )
        ends = longest if lasts is None else min(lasts, longest)
        if script.warmup is not None and parse_duration(script.warmup) >= ends:
            yield (
                f"load {load.name}: script.warmup ({script.warmup}) is part of the {ends:g} s that "
                "its script takes at most, and nothing would be left to measure: write a shorter "
                "warmup, or let the script go on for longer"
            )


def _not_profiled(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    """Yield that the load of the profiles uses up its rows before one is taken."""
    asking = next((one.name for one in spec.servers if one.profile), None)
    load = spec.profile_load
    if asking is None or load is None or spec.verify_only or load_problem(load, scenario):
        return
    lasting = profile_load(load)
    scarce = scarce_rows(lasting, scenario)
    if scarce is not None and load_problem(lasting, scenario) is not None:
        yield (
            f"server {asking}: a profile is taken under load {load.name}, the first that is no "
            f"search, for up to {lasting.measured_seconds:g} s, and {scarce.what} once: write a "
            "load before it that names other endpoints, or leave profile out"
        )


def _servers(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    if not scenario.builtin:
        # Whether a preset does the work of a stranger's scenario, its checks tell.
        return
    fitting = [name for name, one in presets().items() if scenario.name in one.scenarios]
    for server in spec.servers:
        if server.preset is not None and server.preset not in fitting:
            yield (
                f"server {server.name}: preset {server.preset} does not do scenario "
                f"{scenario.name}: write {_or(fitting)}, or an image"
            )


def _variables(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    """Yield which texts of servers name variables that there are not, and which are services'."""
    ours = {name: one.name for one in scenario.services for name in one.variables}
    for server in spec.servers:
        known, preset = nameable(spec, server), presets().get(server.preset or "")
        for place, text in texts(server):
            yield from reference_problems(
                f"server {server.name}: {place}", text, scenario.services, known
            )
        for one in server.env:
            if preset is not None and one.secret is not None and one.name in preset.judged_by:
                yield (
                    f"server {server.name}: env.{one.name}: what limits preset {preset.name} is "
                    "judged by its value: write it at value, and no secret"
                )
            if one.name in ours:
                yield (
                    f"server {server.name}: env.{one.name}: Laptime sets it, since scenario "
                    f"{scenario.name} has a service {ours[one.name]}: leave it out, or give yours "
                    "another name"
                )
            if one.name == "DATABASE_NAME" and spec.topology.own_databases:
                # It would be measured on the database of all, or on that of another server.
                yield (
                    f"server {server.name}: env.{one.name}: each server has a database of its own, "
                    f"and this one's is {database_name(spec, server)}: leave it out, or write "
                    "shared at topology.postgres.databases"
                )


def _protocols(spec: BenchmarkRunSpec) -> Iterator[str]:
    """Yield which presets do not speak what a load does; of other servers their checks tell."""
    load = next((one.name for one in spec.loads if one.protocol is Protocol.HTTP2), None)
    speaking = [name for name, one in presets().items() if one.http2]
    for server in spec.servers if load is not None else []:
        if server.preset is not None and server.preset not in speaking:
            yield (
                f"server {server.name}: preset {server.preset} does not speak HTTP/2: write "
                f"protocol: http1 at load {load}, or take {_or(speaking)}, an image or a service"
            )


def _connections(spec: BenchmarkRunSpec) -> Iterator[str]:
    """Yield that Postgres takes fewer connections than are going to be open."""
    postgres = spec.topology.postgres
    needed = connections_needed(spec, known_connections)
    if postgres is None or needed <= postgres.max_connections:
        return
    write = f"maxConnections: {needed} or more, or " if needed <= MOST_CONNECTIONS else ""
    if spec.topology.pgbouncer is not None:
        pools = ", ".join(f"{name} {size}" for name, size in pool_sizes(spec).items())
        yield (
            f"topology.postgres: the pools of PgBouncer ({pools}) keep the connections that they "
            f"have made, {needed} in all, and Postgres takes {postgres.max_connections}: write "
            f"{write}smaller pools"
        )
        return
    largest = max(spec.deployed, key=known_connections)
    processes = processes_of(largest) if largest.preset else 1
    of = f" in each of {processes} processes" if processes > 1 else ""
    yield (
        f"topology.postgres: server {largest.name} may open {needed} connections "
        f"(databaseConnections: {largest.database_connections}{of}), and Postgres takes "
        f"{postgres.max_connections}: write {write}a smaller databaseConnections"
    )


def _shared_services(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    if spec.duet and scenario.services:
        names = ", ".join(one.name for one in scenario.services)
        yield (
            "pairing: duet measures servers that share nothing but the machine, and both would ask "
            f"the services of the scenario ({names}): leave pairing out"
        )


def _topology(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    topology = spec.topology
    there = next((one.name for one in spec.servers if not one.deployed), None)
    for name, before in (
        ("haproxy", topology.haproxy is not None),
        ("delay.servers", topology.delay is not None and topology.delay.servers is not None),
    ):
        if there is not None and before:
            yield (
                f"topology.{name} stands before servers that Laptime deploys, and server {there} "
                "is there already: leave it out, or compare that server in a run without it"
            )
    yield from _connections(spec)
    # A server of the user's own may bring the data of a published scenario along, and a Service
    # that is there already has its own, behind it.
    ours = any(not scenario.builtin or one.preset is not None for one in spec.deployed)
    if topology.sqlite and not scenario.offers_sqlite:
        instead = "postgres: {}" if scenario.offers_postgres else "database: none"
        yield (
            f"topology.database: scenario {scenario.name} has no data for SQLite: write {instead} "
            "instead of database: sqlite"
        )
    elif topology.postgres is not None and scenario.needs_database and not scenario.offers_postgres:
        yield (
            f"topology.postgres: scenario {scenario.name} has no data for Postgres: write "
            "database: sqlite instead"
        )
    elif ours and scenario.needs_database and topology.postgres is None and not topology.sqlite:
        choices = ["postgres: {}"] * scenario.offers_postgres
        choices += ["database: sqlite"] * scenario.offers_sqlite
        yield (
            f"topology: scenario {scenario.name} needs a database: add {' or '.join(choices)} to "
            "the topology"
        )
    if ours and scenario.needs_upstream and topology.upstream is None:
        yield (
            f"topology: scenario {scenario.name} asks another service: add upstream: {{}} to the "
            "topology"
        )


def _or(names: list[str]) -> str:
    *others, last = sorted(names)
    return f"{', '.join(others)} or {last}" if others else last
