"""What is true of lines that results do not have second by second.

They lie between bounds, reach what trials have as their highest, and come together to what the
counters have grown by.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laptime.api.resources import quantity

from . import grafana
from .facts import Facts, moment
from .grafana import Answers, Series
from .results import Truth

Bound = float | Callable[[Facts, Mapping[str, str]], float]
_Named = Sequence[tuple[str, Series]]


@dataclass(frozen=True)
class Line:
    """What is true of all lines of a query."""

    of: str
    """The part of a run without which there is no data: see `Facts.has`."""
    most: Bound = math.inf
    least: float = 0.0
    own: str = ""
    """A selector of the counters whose growth is drawn; RUN in it stands for the run."""
    peak: Callable[[Facts], float | None] = lambda _: None
    """What trials have as their highest, which has to be in the picture."""
    exact: Callable[[Facts], Mapping[str, float]] | None = None
    """The values of all lines, by their names, where they are known and stay the same."""
    may: str = ""
    """Why there may be no data all the same."""

    def wrong(self, facts: Facts, series: Iterable[Series], legend: str) -> Iterator[str]:
        """Yield what is not so."""
        named = [(grafana.name(legend, one.labels), one) for one in series if one.samples]
        there = facts.has(self.of)
        if self.exact is not None:
            exact = {} if there is False else self.exact(facts)
            # Where both is right, one that is there is right as well.
            yield from _not_exact(exact if there or named else {}, named)
            return
        if there is not None and bool(named) is not there and (named or not self.may):
            yield f"{'data' if named else 'no data'} of {self.of}"
        for name, one in named:
            most = self.most(facts, one.labels) if callable(self.most) else self.most
            worst = [value for _, value in one.samples if not self.least <= value <= most]
            if worst:
                yield f"{name!r} is {worst[:5]}, not {self.least} to {most}"
        if named and there:
            values = [value for _, one in named for _, value in one.samples]
            peak = self.peak(facts)
            # One scrape may come late, and the picture then has what was one less.
            if peak is not None and max(values) < 0.85 * peak - float(peak).is_integer():
                yield f"at most {max(values)}, where a trial had {peak}"
            if self.own:
                yield from self._not_all(facts, values)

    def _not_all(self, facts: Facts, values: Sequence[float]) -> Iterator[str]:
        drawn = sum(values) * (5 if self.of == "operator" else 1)
        grown = facts.increase(_of_run(self.own, facts))
        # At the ends of counters a rate is a guess. The operator's grew before the run as well.
        least = 0.0 if self.of == "operator" else 0.25 * grown
        if not least <= drawn <= 1.6 * grown + 1e-6:
            yield f"{drawn} in all, where the counters grew by {grown}"


def _not_exact(exact: Mapping[str, float], named: _Named) -> Iterator[str]:
    for name, one in named:
        right = exact.get(name, math.nan)
        if not all(math.isclose(value, right, rel_tol=0.01) for _, value in one.samples):
            yield f"{name!r} is {one.samples[0][1]}, where {right} is right"
    if missing := exact.keys() - dict(named).keys():
        yield f"no line {sorted(missing)}"


def _of_run(selector: str, facts: Facts) -> str:
    here = 'namespace="{Namespace}",run="{Run}"'.format(**facts.here)
    return selector.replace("RUN", here)


def lines(**by_letter: Line) -> Truth:
    """Return what is true of a picture of lines; two lines of one name nobody could tell apart."""

    def compare(facts: Facts, panel: dict[str, Any], answers: Answers) -> Iterator[str]:
        legends = {one["refId"]: one["legendFormat"] for one in panel["targets"]}
        if legends.keys() != by_letter.keys():
            yield f"has the queries {sorted(legends)}"
        names = Counter(
            grafana.name(legends[letter], one.labels)
            for letter, series in answers.items()
            for one in series
        )
        yield from (f"two lines {name!r}" for name, count in names.items() if count > 1)
        for letter, line in by_letter.items():
            wrong = line.wrong(facts, answers[letter], legends[letter])
            yield from (f"{letter}: {one}" for one in wrong)

    return compare


def states(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
    """Compare the runs by state at the end of the time with those of the cluster."""
    said = Counter({one.labels["state"]: round(one.samples[-1][1]) for one in answers["A"]})
    if said != facts.states and (said or facts.kept):
        yield f"says {+said}, where {facts.states} is right"


def cpus(facts: Facts, _: object = None) -> float:
    """Return the CPUs of all nodes, and some more: on a full node readings are late."""
    return 1.3 * sum(quantity(one["cpu"]) for one in facts.nodes.values())


def memory(facts: Facts, _: object = None) -> float:
    """Return the bytes of all nodes."""
    return sum(quantity(one["memory"]) for one in facts.nodes.values())


def cores_of(facts: Facts, component: str, server: str) -> float:
    """Return the cores that a part may use, and some more, as of the CPUs."""
    limit = facts.limits(component).get(server)
    return cpus(facts) if limit is None else 1.3 * limit


def cores(component: str) -> Callable[[Facts, Mapping[str, str]], float]:
    """Return the same as a bound."""
    return lambda facts, labels: cores_of(facts, component, labels.get("server", ""))


def limits(component: str, name: str) -> Callable[[Facts], dict[str, float]]:
    """Return the limits of a component by the names of their lines."""
    return lambda facts: {
        name.format(server=server, position=facts.position(server) if server else ""): cores
        for server, cores in facts.limits(component).items()
    }


def sizes(facts: Facts) -> dict[str, float]:
    """Return the size of the pool by the name of its line."""
    size = facts.peak("pool", "poolSize")
    return {} if size is None else {"size of laptime": size}


def memory_in_all(facts: Facts) -> dict[str, float]:
    """Return the memory of each node by the name of its line."""
    return {f"{name} in all": quantity(one["memory"]) for name, one in facts.nodes.items()}


def mean_cores(facts: Facts) -> float | None:
    """Return the most that a server used in the mean of a trial; of short ones no rate says it."""
    windows = [(one.get("figures") or {}).get("windowSeconds", 0.0) for one in facts.trials]
    return facts.peak("server", "coresMean") if min(windows, default=0.0) > 5 else None


def pool_size(facts: Facts, _: object = None) -> float:
    """Return how many connections a pool may have, as far as trials tell."""
    return facts.peak("pool", "poolSize") or math.inf


def connections(facts: Facts, _: object = None) -> float:
    """Return how many connections loads have, or a few while servers are checked."""
    every = [(one.get("closed") or {}).get("connections", math.inf) for one in facts.spec["loads"]]
    return float(max(16, *every))


def connections_share(facts: Facts) -> float | None:
    """Return the highest share of Postgres' connections that a trial had in use."""
    most, limit = (facts.peak("database", key) for key in ("connectionsMax", "maxConnections"))
    return most / limit if most is not None and limit else None


def read(part: str, key: str) -> Callable[[Facts], float | None]:
    """Return the highest reading of a part."""
    return lambda facts: facts.peak(part, key)


def stored_lately(facts: Facts) -> float:
    """Return how many measured trials of the run the operator has stored in some minutes."""
    measured = [one for one in facts.trials if one["outcome"] == "Measured"]
    ends = [moment(one.get("finishedAt")) for one in measured]
    return float(sum(end is not None and -540 < end - facts.at < -15 for end in ends))
