"""What is true of tables, figures and pictures of the answer: what the result has, nothing else."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from laptime.analysis import wording
from laptime.api.attempts import attempt_name
from laptime.api.interval import Interval
from laptime.api.isolation import Isolation
from laptime.api.results import Tie

from ..harness import condition
from . import grafana
from .facts import Facts, moment
from .grafana import Answers, Row

Truth = Callable[[Facts, dict[str, Any], Answers], Iterator[str]]
"""Yields what a panel says wrongly, or does not say."""
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p999": "0.999"}
_UNITS = {"time": "ms", "data": "bytes"}


def _as_set(found: Iterable[Row]) -> Counter[frozenset[tuple[str, Any]]]:
    """Return rows that can be compared: without what is empty, numbers to twelve digits."""
    return Counter(
        frozenset(
            (field, float(f"{value:.12g}") if isinstance(value, int | float) else value)
            for field, value in row.items()
            if value not in (None, "")
        )
        for row in found
    )


def _compared(said: Iterable[Row], true: Iterable[Row]) -> Iterator[str]:
    told, right = _as_set(said), _as_set(true)
    yield from (f"says {sorted(map(str, one))}" for one in told - right)
    yield from (f"does not say {sorted(map(str, one))}" for one in right - told)


def table(true: Callable[[Facts], Iterable[Row]], **read: Callable[[str], str]) -> Truth:
    """Return what is true of a table or a picture of rows: all of these rows and no others.

    Of a table of several runs those of this one. `read` says what counts of the text of a column.
    """

    def compare(facts: Facts, panel: dict[str, Any], answers: Answers) -> Iterator[str]:
        said = [
            {field: read[field](value) if field in read else value for field, value in row.items()}
            for row in grafana.rows(panel, answers)
            if all(row.get(field, value) == value for field, value in facts.here.items())
        ]
        yield from _compared(said, true(facts))

    return compare


def number(true: Callable[[Facts], float | None]) -> Truth:
    """Return what is true of a figure: this one, or no data."""

    def compare(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
        said = [{"": value} for one in answers["A"] for _, value in one.samples]
        yield from _compared(said, [{"": value}] if (value := true(facts)) is not None else [])

    return compare


def now(facts: Facts, _: dict[str, Any], answers: Answers) -> Iterator[str]:
    """The state, and the trial of the moment."""
    said = [one.labels["state"] for one in answers["A"]]
    if said != [facts.status["state"]]:
        yield f"says {said} of {facts.status['state']}"
    now = [one.labels["now"] for one in answers["B"]]
    trial = re.search(r"-trial-(\d+)", facts.status.get("currentTrial", ""))
    if trial is None:
        yield from (f"says {one}: no trial is measured" for one in now)
        return
    servers, loads = ([one["name"] for one in facts.spec[key]] for key in ("servers", "loads"))
    repetition = (int(trial[1]) - 1) // (len(servers) * len(loads)) + 1
    which = {f"{server}, {load}, repetition {repetition}" for server in servers for load in loads}
    if len(now) != 1 or not which.issuperset(now):
        yield f"says {now} of {trial[0]}"


def _worst(facts: Facts) -> str:
    found = {row.get("validity") for _, row in facts.placed}
    return next((one for one in ("invalid", "doubtful", "valid") if one in found), "")


def said_of_run(facts: Facts) -> Row:
    """What tables of runs say of one; of its outcome nothing before it is over."""
    status = facts.status
    told: Row = {**facts.here, "State": status["state"]}
    if not facts.over:
        return told
    verdict = status.get("verdict") or condition(status, "Succeeded")["message"]
    return {**told, "Validity": _worst(facts), "Verdict": verdict, "Factor": _factor(facts)}


def _factor(facts: Facts) -> str:
    fastest, said = (facts.status.get(key) or "" for key in ("fastest", "fastestFactor"))
    rows = [row for _, row in facts.placed if row["server"] == fastest and row.get("factor")]
    alike = [row for row in rows if row.get("comparedBy") == rows[0].get("comparedBy")]
    if said and len(alike) == 1:
        return wording.factor(Interval.model_validate(alike[0]["factor"]))
    return said if alike else ""


def verdict(facts: Facts) -> list[Row]:
    """The result in a sentence; nothing before the run is over."""
    told = said_of_run(facts)
    return [{key: told[key] for key in ("Verdict", "Validity")}] if facts.over else []


def verdict_of_several(facts: Facts) -> list[Row]:
    """The row of the run among those that are compared."""
    return [{**said_of_run(facts), "Baseline": facts.status.get("baseline")}]


def progress(facts: Facts) -> float:
    """Share of the trials that are over."""
    done = facts.status.get("progress") or {}
    return float(done.get("completed", 0) / (done.get("total") or 1))


def time_left(facts: Facts) -> float | None:
    """Seconds that are left; 0 of a run that is over, None where nobody knows."""
    left = (facts.status.get("progress") or {}).get("remainingSeconds")
    return 0.0 if left is None and "finishedAt" in facts.status else left


def all_runs(facts: Facts) -> list[Row]:
    """The row of the run among all of them."""
    status, done = facts.status, facts.status.get("progress") or {}
    measured = sum(row.get("trials", 0) for _, row in facts.placed)
    finished = moment(status.get("finishedAt"))
    return [
        {
            **said_of_run(facts),
            "Scenario": facts.spec["scenario"],
            "Fastest": status.get("fastest") if facts.over else None,
            "Trials": progress(facts) if done.get("total") else None,
            "Failed": done["completed"] - measured if facts.placed and done else None,
            "Time left": done.get("remainingSeconds"),
            "Created": facts.created,
            "Until": math.inf if finished is None else 1000 * (finished + 75),
        }
    ]


def _ends(interval: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the estimate and the ends; of one that has one end the other is as far as can be."""
    if not interval:
        return {}
    ends = {end: interval[end] for end in ("low", "high") if interval.get(end) is not None}
    farthest = {"low": 0.0, "high": math.inf} if ends else {}
    return {"estimate": interval["value"], **farthest, **ends}


def _latency(row: Mapping[str, Any], percentile: str) -> dict[str, float]:
    """Return the same of a percentile; one that fell among failed requests is without an end."""
    figure = (row.get("latencyFigures") or {}).get(percentile)
    if figure is None:
        return {}
    ends = _ends(figure.get("seconds") or {"value": math.inf})
    both = figure.get("seconds") and {"low", "high"} <= figure["seconds"].keys()
    return ends if both else {"estimate": ends["estimate"]}


def _of_line(facts: Facts, place: float, row: Mapping[str, Any]) -> Row:
    server = row["server"]
    told = {"server": server, "load": row["load"], "position": facts.position(server)}
    return {**told, "Place": -place}


def intervals(key: str, field: str, *, compared: bool = False) -> Truth:
    """Return what is true of a picture of intervals, and of its line at 1 where it is of factors.

    Ends above twice the highest estimate are drawn there.
    """

    def drawn(facts: Facts) -> Iterator[Row]:
        measured = [(place, row) for place, row in facts.placed if row.get(key)]
        highest = max((row[key]["value"] for _, row in measured), default=0.0)
        most = 2 * max(highest, 1.0 if compared else 0.0)
        ranks = Counter((row["load"], row.get("rank")) for _, row in facts.placed)
        for place, row in measured:
            shared = compared and row.get("rank") and ranks[row["load"], row["rank"]] > 1
            told = {**_of_line(facts, place, row), "rank": str(row["rank"]) if shared else ""}
            for bound, value in _ends(row[key]).items():
                yield {**told, "bound": bound, field: min(value, most), "Exact": value}
        loads = {row["load"] for _, row in measured} if compared else set()
        for place, row in facts.placed:
            if row["load"] in loads:
                yield {"server": "=1", "load": row["load"], "Place": -place, field: 1.0}

    return table(drawn)


def across_runs(key: str, field: str, *, compared: bool = False) -> Truth:
    """Return what is true of a picture of intervals of several runs: of the lines of this one.

    Each has a place of its own. Where an end is cut is for the highest of all runs to say, and not
    below twice the highest of this one.
    """

    def compare(facts: Facts, panel: dict[str, Any], answers: Answers) -> Iterator[str]:
        run, namespace = facts.here["Run"], facts.here["Namespace"]
        mine = [
            row
            for row in grafana.rows(panel, answers)
            if (row.get("run"), row.get("namespace")) == (run, namespace)
        ]
        measured = [row for _, row in facts.placed if row.get(key)]
        true: list[Row] = [
            {"server": row["server"], "load": row["load"], "bound": bound, "Exact": value}
            for row in measured
            for bound, value in _ends(row[key]).items()
        ]
        if compared:
            ones = [{"server": row["server"], "load": row["load"], field: 1.0} for row in measured]
            true += [{**one, "bound": "=1"} for one in ones]
        told = ("server", "load", "bound", "Exact")
        yield from _compared(
            (
                {name: row[name] for name in told if name in row}
                | ({} if "Exact" in row else {field: row[field]})
                for row in mine
            ),
            true,
        )
        least = 2 * max((row[key]["value"] for row in measured), default=0.0)
        for row in mine:
            if (
                "Exact" in row
                and row[field] != row["Exact"]
                and not least <= row[field] < row["Exact"]
            ):
                yield f"draws {row[field]} for {row['Exact']}"
        places = {(row["server"], row["load"], row["Place"]) for row in mine}
        if not len(places) == len({one[2] for one in places}) == len(measured):
            yield f"has the places {sorted(places)}"
        if scenarios := {row.get("scenario", facts.spec["scenario"]) for row in mine} - {
            facts.spec["scenario"]
        }:
            yield f"is of {scenarios}"

    return compare


def percentiles(facts: Facts) -> Iterator[Row]:
    """The picture of the response times that are known."""
    for place, row in facts.placed:
        for percentile, quantile in _QUANTILES.items():
            seconds = _latency(row, percentile).get("estimate", math.inf)
            if seconds < math.inf:
                told = {**_of_line(facts, place, row), "quantile": quantile}
                yield {**told, "p50 | p90 | p99 | p99.9 (ms)": 1000 * seconds}


def _doubts(row: Mapping[str, Any]) -> Iterator[str]:
    yield from row.get("validityReasons") or []
    usage = row.get("usage") or {}
    if usage.get("source") == "nobody":
        yield "nobody watched its pods"
    elif usage.get("unwatched"):
        yield f"nobody watched its pods in {wording.repetitions(usage['unwatched'])}"
    if row.get("failedTrials"):
        why = row.get("message") or row.get("reason") or "no reason is known"
        yield f"{row['failedTrials']} failed: {why}"


def limits(facts: Facts) -> Iterator[Row]:
    """What limited each row, and what is doubtful of it."""
    for place, row in facts.placed:
        limited = row.get("limitedBy") or {}
        yield {
            **{"Load": row["load"], "Server": row["server"], "Place": place},
            "Suspected cause": limited.get("cause"),
            "Evidence": limited.get("evidence") if facts.over else None,
            "Validity": row.get("validity"),
            "Doubts": "; ".join(_doubts(row)) if facts.over else None,
        }


def _figures(row: Mapping[str, Any]) -> Row:
    """The columns that all tables of results have."""
    p99 = _latency(row, "p99")
    return {
        **{"Server": row["server"], "Load": row["load"], "Validity": row.get("validity")},
        "Requests/s": _ends(row.get("requestsPerSecond")).get("estimate"),
        "Factor": _ends(row.get("factor")).get("estimate"),
        **{"p50": _latency(row, "p50").get("estimate"), "p99": p99.get("estimate")},
        **{f"{end} p99": p99.get(end) for end in ("low", "high")},
    }


def results(facts: Facts) -> Iterator[Row]:
    """The table of results."""
    for place, row in facts.placed:
        usage = row.get("usage") or {}
        yield {
            **_figures(row),
            **{"Rank": row.get("rank"), "Place": place, "Trials": row.get("trials", 0)},
            "p90": _latency(row, "p90").get("estimate"),
            "p99.9": _latency(row, "p999").get("estimate"),
            "Errors": row.get("errorRate"),
            **{"Cores": usage.get("coresMean"), "Memory": usage.get("memoryBytes")},
        }


def beside_each_other(facts: Facts, second: int = 1) -> Iterator[Row]:
    """The rows of the run among those of others; a second has so many of the units of its times."""
    for _, row in facts.placed:
        yield {
            "Created": second * facts.created,
            **{**facts.here, **_figures(row)},
            **{
                f"{end} {short}": _ends(row.get(key)).get(end)
                for short, key in (("req/s", "requestsPerSecond"), ("factor", "factor"))
                for end in ("low", "high")
            },
        }


def _digests(text: str) -> str:
    return " ".join(re.findall(r"(?:^|sha\d+:)([0-9a-f]{12})[0-9a-f]{20}", text))


def what_ran(facts: Facts) -> Iterator[Row]:
    """The images of the servers, and the nodes where they ran."""
    for server in facts.status.get("servers") or []:
        nodes = {
            node
            for trial in facts.trials
            if trial["server"] == server["name"] and trial["outcome"] == "Measured"
            for node in (trial.get("nodes") or {}).get("server", ())
        }
        if server.get("image"):
            yield {
                **{**facts.here, "Server": server["name"], "Image": server["image"]},
                "Created": facts.created,
                "Digest": _digests(server.get("imageId") or server["image"]),
                "Nodes": wording.listing(sorted(nodes)) if facts.over and facts.told != 0 else None,
            }


def _each_trial(facts: Facts) -> Iterator[Row]:
    for trial in facts.trials[: facts.told]:
        begin, end = (moment(trial.get(key)) for key in ("startedAt", "finishedAt"))
        yield {
            "Trial": attempt_name(trial["trial"], trial.get("attempt", 1)),
            **{key.capitalize(): trial[key] for key in ("server", "load", "outcome")},
            "Repetition": str(trial["repetition"]),
            "Validity": facts.judged.get(trial["trial"]),
            "Started": begin,
            "Length": end - begin if begin is not None and end is not None else None,
            "Requests/s": (trial.get("figures") or {}).get("requestsPerSecond"),
        }


def trials(facts: Facts, panel: dict[str, Any], answers: Answers) -> Iterator[str]:
    """Compare each trial that the operator tells of.

    Its result is stored before it is judged by what was read of its pods.
    """
    read = {} if facts.judged else {"Validity": lambda _: ""}
    yield from table(_each_trial, **read)(facts, panel, answers)


def missing(facts: Facts) -> float | None:
    """Trials that lack seconds, of those whose pods somebody read."""
    lacking = [one for one in facts.readings if one.get("secondsMissing")]
    return float(len(lacking)) if facts.told != 0 and facts.readings else None


def ties(facts: Facts) -> Iterator[Row]:
    """Who is not told apart."""
    for one in facts.status.get("ties") or []:
        tie = Tie.model_validate(one)
        told = {"Load": tie.load, "Servers": " and ".join(tie.servers)}
        by, cost = wording.metric(tie.compared_by), wording.tie(tie)
        yield {**told, "Compared by": by, "What would tell them apart": cost}


def objectives(facts: Facts) -> Iterator[Row]:
    """What came of objectives and thresholds."""
    for one in facts.status.get("objectives") or []:
        told = {key.capitalize(): one[key] for key in ("load", "server", "bound", "outcome")}
        yield {**told, "Measured": one["measured"] if facts.over else None}


def isolation(facts: Facts) -> Iterator[Row]:
    """Whether the run had its nodes for itself."""
    if "isolation" in facts.status:
        found = Isolation.model_validate(facts.status["isolation"])
        why = wording.isolation(found) if facts.over else None
        yield {"Nodes": found.word.value, "Why": why}


def _scripts(facts: Facts) -> Iterator[tuple[Row, dict[str, Any]]]:
    for _, row in facts.placed:
        if row.get("script"):
            yield {"Load": row["load"], "Server": row["server"]}, row["script"]


def checks(facts: Facts) -> Iterator[Row]:
    """The checks of scripts."""
    for told, script in _scripts(facts):
        for check in script.get("checks") or []:
            rate = check.get("rate")
            # One that failed once is never shown as 100 %.
            rate = rate if rate in (None, 1) else min(rate, 0.999999)
            counts = {"Passed": check["passed"], "Failed": check["failed"], "Rate": rate}
            yield {**told, "Check": check["name"], **counts}


def _ends_by_title(title: str, interval: Mapping[str, Any] | None) -> Row:
    names = {"estimate": title, "low": f"low {title.lower()}", "high": f"high {title.lower()}"}
    return {names[bound]: value for bound, value in _ends(interval).items()}


def _script_figures(facts: Facts) -> Iterator[tuple[Row, dict[str, Any], dict[str, Any]]]:
    for told, script in _scripts(facts):
        for metric in script.get("metrics") or []:
            yield from ((told, metric, figure) for figure in metric.get("figures") or [])


def iterations(facts: Facts) -> Iterator[Row]:
    """The iterations of scripts."""
    figures = {
        tuple(told.items()): {
            **_ends_by_title("Rate/s", figure["estimate"]),
            **_ends_by_title("Factor", figure.get("factor")),
        }
        for told, metric, figure in _script_figures(facts)
        if metric["name"] == "iterations"
    }
    for told, script in _scripts(facts):
        counts = {"Ended": script["iterations"], "Dropped": script["droppedIterations"]}
        yield {**told, **counts, **figures.get(tuple(told.items()), {})}


def metrics(facts: Facts) -> Iterator[Row]:
    """The metrics of scripts, without those that have a table of their own."""
    for told, metric, figure in _script_figures(facts):
        unit = _UNITS.get(metric.get("contains", ""), "")
        if metric["name"] != "iterations":
            yield {
                **{**told, "Metric": metric["name"], "Figure": figure["name"]},
                "Unit": f"{unit}/s" if unit and metric["type"] == "counter" else unit,
                **_ends_by_title("Value", figure["estimate"]),
                **_ends_by_title("Factor", figure.get("factor")),
            }


def in_states(*states: str) -> Truth:
    """Return what is true of how many runs of the cluster are in these states."""
    return number(lambda facts: float(sum(facts.states[state] for state in states)))
