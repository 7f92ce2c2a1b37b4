"""The names of all metrics that the parts of Laptime export, read from what exports them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from laptime.measure.each_second import ELAPSED, ERRORS, LATENCY, QUANTILE, REQUESTS
from laptime.reconcile.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "agent" / "src" / "laptime_agent" / "exposition.py"
EXPORTER = ROOT / "images" / "exporter"
LIVE = ROOT / "images" / "k6" / "internal" / "live" / "collector.go"
SCRAPES = ROOT / "charts" / "laptime" / "templates" / "_prometheus-config.tpl"

SECONDS = frozenset({REQUESTS, ERRORS, ELAPSED, LATENCY, QUANTILE})
"""What the operator says of each second of a trial."""

PROCESS = frozenset({"process_cpu_seconds_total", "process_resident_memory_bytes"})
"""What operator, agent and Prometheus say of themselves."""


@cache
def exported() -> frozenset[str]:
    """Return all names as Prometheus stores them."""
    return agent() | exporter() | haproxy() | operator() | generator() | SECONDS | PROCESS


def agent() -> frozenset[str]:
    """Return the names that the agent writes."""
    return frozenset(re.findall(r'_Family\(\s*"(\w+)"', AGENT.read_text()))


def generator() -> frozenset[str]:
    """Return the names that the load generator writes while it runs."""
    names = set(re.findall(r'"(laptime_generator_\w+)"', LIVE.read_text()))
    # A histogram is stored as three series.
    latency = {name for name in names if name.endswith("_seconds")}
    parts = {f"{name}_{part}" for name in latency for part in ("bucket", "sum", "count")}
    return frozenset(names - latency | parts)


def exporter() -> frozenset[str]:
    """Return the names that the exporter beside Postgres and PgBouncer writes."""
    text = "".join(file.read_text() for file in EXPORTER.glob("*.go") if "_test" not in file.name)
    names = set(re.findall(r'"(laptime_(?:postgres|pgbouncer)_\w+)"', text))
    # Every source says this of itself, under its own name.
    for suffix in re.findall(r'"laptime_"\+name\+"(_\w+)"', text):
        names |= {f"laptime_{source}{suffix}" for source in ("postgres", "pgbouncer")}
    return frozenset(names)


def haproxy() -> frozenset[str]:
    """Return the names that the chart's Prometheus keeps of HAProxy's."""
    (kept,) = re.findall(r"^(haproxy_\S+)$", SCRAPES.read_text(), re.MULTILINE)
    return frozenset(_expanded(kept))


def kept_of_runs() -> re.Pattern[str]:
    """Return which names the chart's Prometheus keeps of what pods of runs say."""
    (kept,) = re.findall(r'define "laptime.runMetrics" -}}(\S+?){{- end', SCRAPES.read_text())
    return re.compile(kept)


def operator() -> frozenset[str]:
    """Return the names that the operator answers a scrape with."""
    names: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", Metrics().text().decode(), re.MULTILINE):
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names |= {name + suffix for suffix in suffixes}
    return frozenset(names)


def _expanded(pattern: str) -> set[str]:
    """Return all strings that a regular expression of names, groups and | matches."""
    parts = _split(pattern)
    if len(parts) > 1:
        return {name for part in parts for name in _expanded(part)}
    group = re.search(r"\(", pattern)
    if group is None:
        return {pattern}
    depth, end = 0, group.start()
    for end in range(group.start(), len(pattern)):
        depth += {"(": 1, ")": -1}.get(pattern[end], 0)
        if depth == 0:
            break
    before, inside, after = (
        pattern[: group.start()],
        pattern[group.start() + 1 : end],
        pattern[end + 1 :],
    )
    return {before + middle + rest for middle in _expanded(inside) for rest in _expanded(after)}


def _split(pattern: str) -> list[str]:
    """Return the alternatives outside of all groups."""
    parts, depth = [""], 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
