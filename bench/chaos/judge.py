"""Whether a run came through a fault: nothing stuck, lost, counted twice, wrong or blamed. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.plan import Kind

OVER = ("Succeeded", "Failed", "Cancelled")
_CONDITIONS = ("Succeeded", "CleanedUp")
_OF_A_FULL_MACHINE = frozenset({"PodsOverlapped"})
"""What a pod that ends late costs, on a machine with several clusters, also where nothing is done.

It is the cluster's, it is made again, and no figure comes of it."""


@dataclass(frozen=True)
class Counted:
    """What a generator printed of the measured phase, read from its log on the node."""

    requests: int
    errors: int


@dataclass(frozen=True)
class Facts:
    """What there is to know of a run after its end."""

    run: str
    planned: frozenset[tuple[str, str, int]]
    """Server, load, repetition."""
    connections: int
    """So many requests are under way when the measured phase begins."""
    status: Mapping[str, Any]
    ended: bool
    """Within its deadline."""
    results: Sequence[Mapping[str, Any]]
    """The stored result of each trial."""
    counted: Mapping[str, Counted] = field(default_factory=dict)
    """By the name of the attempt: what its generator printed."""
    printed: Mapping[str, Any] = field(default_factory=dict)
    """By the name of the attempt: all phases of that, which a reader wants to see of a failure."""
    created: Sequence[str] = ()
    """Names of the Jobs of trials that the API server has created for the operator, in order."""
    left: frozenset[str] = frozenset()
    """What there still is of the run when it is over and folded, but for its archive."""
    left_after_deletion: frozenset[str] = frozenset()


def problems(kind: Kind, facts: Facts) -> list[str]:
    """Return what went wrong, a sentence each; none when the run came through."""
    state = facts.status.get("state") or "no state"
    if not facts.ended or state not in OVER:
        return [f"stuck in {state} ({facts.status.get('currentTrial') or 'no trial'})"]
    found = []
    if state != "Succeeded":
        said = [
            f"{one['type']} {one.get('reason')}: {one.get('message')}"
            for one in facts.status.get("conditions") or []
            if one["type"] in _CONDITIONS and one["status"] != "True"
        ]
        found.append(f"ended {state}: {'; '.join(said) or 'no reason'}")
    found += _lost_or_twice(facts)
    for result in facts.results:
        found += _of_result(kind, facts, result)
    found += _blamed(facts)
    for when, left in (("over", facts.left), ("deleted", facts.left_after_deletion)):
        if left:
            found.append(f"left behind when {when}: {', '.join(sorted(left))}")
    return found


def attempt_of(result: Mapping[str, Any]) -> str:
    """Return the name that the Job of the attempt that counts has."""
    attempt = result.get("attempt") or 1
    return result["trial"] if attempt == 1 else f"{result['trial']}-attempt-{attempt}"


def _lost_or_twice(facts: Facts) -> list[str]:
    found = []
    counts = Counter((one["server"], one["load"], one["repetition"]) for one in facts.results)
    for trial in sorted(facts.planned | set(counts)):
        if trial not in facts.planned:
            found.append(f"{trial} was never planned")
        elif counts[trial] != 1:
            found.append(f"{trial} has {counts[trial]} results")
    twice = [name for name, count in Counter(facts.created).items() if count > 1]
    found += [f"{name} was created twice" for name in twice]
    wanted = Counter((server, load) for server, load, _ in facts.planned)
    rows = {(row["server"], row["load"]): row for row in facts.status.get("results") or []}
    for which, count in sorted(wanted.items()):
        row = rows.get(which) or {}
        shown = (row.get("trials") or 0) + (row.get("failedTrials") or 0)
        if shown != count:
            found.append(f"the row of {which} counts {shown} trials of {count}")
        measured = [
            one for one in facts.results
            if (one["server"], one["load"]) == which and one["outcome"] == "Measured"
        ]  # fmt: skip
        if (row.get("trials") or 0) != len(measured):
            found.append(f"the row of {which} has {row.get('trials')} of {len(measured)} measured")
        requests = sum(one["figures"]["requests"] for one in measured if one.get("figures"))
        if (row.get("requests") or 0) != requests:
            found.append(f"the row of {which} has {row.get('requests')} requests of {requests}")
    return found


def _of_result(kind: Kind, facts: Facts, result: Mapping[str, Any]) -> list[str]:
    found = []
    trial = result["trial"]
    lost = [
        one.get("fault")
        for one in result.get("lostAttempts") or []
        if one.get("reason") not in _OF_A_FULL_MACHINE
    ]
    if result["outcome"] != "Measured":
        why = f"{result.get('reason')}: {result.get('message')}"
        if result.get("fault") not in kind.blamed:
            found.append(f"{trial} failed, blaming {result.get('fault')}: {why}")
    else:
        found += _figures(facts, result)
    for blamed in sorted({str(one) for one in lost if one not in kind.blamed}):
        reasons = [
            f"{one.get('reason')}: {one.get('message')}"
            for one in result["lostAttempts"]
            if str(one.get("fault")) == blamed
        ]
        found.append(f"an attempt of {trial} was lost, blaming {blamed} ({'; '.join(reasons)})")
    return found


def _figures(facts: Facts, result: Mapping[str, Any]) -> list[str]:
    trial, figures = result["trial"], result.get("figures") or {}
    if result.get("validity") == "invalid":
        return [f"{trial} is invalid: {'; '.join(result.get('validityReasons') or [])}"]
    found = []
    counted = facts.counted.get(attempt_of(result))
    if counted is None:
        found.append(f"{trial}: what its generator printed was not seen on the node")
    elif (figures.get("requests"), figures.get("errors")) != (counted.requests, counted.errors):
        found.append(
            f"{trial} has {figures.get('requests')} requests and {figures.get('errors')} errors, "
            f"its generator counted {counted.requests} and {counted.errors} "
            f"({json.dumps({name: one.requests for name, one in facts.counted.items()})})"
        )
    if figures.get("errors"):
        found.append(f"{trial} has {figures['errors']} errors of a healthy server")
    if not figures.get("requests"):
        found.append(f"{trial} has no requests")
    statements, errors = result.get("statements"), figures.get("errors") or 0
    right = (figures.get("requests") or 0) - errors
    if statements is not None and statements < right - facts.connections:
        # Each request of the scenario is one statement at least.
        found.append(f"{trial} has {right} answers, and its database ran {statements} statements")
    return found


def _blamed(facts: Facts) -> list[str]:
    found = [
        f"server {one['name']} is out: {one.get('reason')}: {one.get('message')}"
        for one in facts.status.get("servers") or []
        if one.get("state") == "Failed" or one.get("reason")
    ]
    found += [
        f"the row of {row['server']} is Failed: {row.get('reason')}: {row.get('message')}"
        for row in facts.status.get("results") or []
        if row.get("state") == "Failed"
    ]
    return found
