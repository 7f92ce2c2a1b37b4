"""Whether a run and its scenario fit together. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import Scenario, presets
from laptime.plan.endpoints import load_problem


def misfits(spec: BenchmarkRunSpec, scenario: Scenario) -> list[str]:
    """Return what of a run does not fit its scenario, with what to write instead."""
    return [*_servers(spec, scenario), *_topology(spec, scenario)]


def load_problems(spec: BenchmarkRunSpec, scenario: Scenario) -> list[str]:
    """Return which loads the scenario cannot serve, with what to write instead."""
    problems = (load_problem(load, scenario, spec.generator.parallelism) for load in spec.loads)
    return [one for one in problems if one is not None]


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


def _topology(spec: BenchmarkRunSpec, scenario: Scenario) -> Iterator[str]:
    topology = spec.topology
    # A server of the user's own may bring the data of a published scenario along.
    ours = not scenario.builtin or any(server.preset is not None for server in spec.servers)
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
