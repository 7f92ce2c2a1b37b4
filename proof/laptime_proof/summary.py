"""What is said at the end: how long the slowest parts took, what failed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from laptime_proof.journal import Entry, Outcome
from laptime_proof.parts import Part

_SLOWEST = 10


def closing_lines(
    parts: Mapping[str, Part], entries: Mapping[str, Entry], seconds: float, stolen: float
) -> list[str]:
    """Return the summary of a run of `parts`; its last line counts the checks.

    `seconds` is the time from the first part's begin to the last one's end, `stolen` the share of
    CPU time that the hypervisor took meanwhile (from 0 to 1).
    """
    slowest = sorted(entries.values(), key=lambda entry: -entry.seconds)[:_SLOWEST]
    lines = ["", f"slowest {len(slowest)} of {len(entries)} parts:"]
    for entry in slowest:
        lines.append(
            f"  {entry.part:<20} {entry.seconds:6.0f} s   "
            f"CPU busy {entry.busy:4.0%}, taken by the hypervisor {entry.stolen:4.0%}"
        )
    lines.append(
        f"in all {seconds:.0f} s, of which the hypervisor took {stolen:.0%}: "
        f"{seconds * (1 - stolen):.0f} s without it"
    )
    bad = [entry for entry in entries.values() if entry.outcome is not Outcome.PASSED]
    for entry in bad:
        lines.append(
            f"{entry.outcome.upper()}: {entry.part}{f' ({entry.why})' if entry.why else ''}"
        )
    checks = [entry for entry in entries.values() if parts[entry.part].check]
    passed = sum(entry.outcome is Outcome.PASSED for entry in checks)
    not_judged = sum(entry.outcome is Outcome.NOT_JUDGED for entry in checks)
    failed = len(checks) - passed - not_judged
    # A provision that failed is no check, but nothing is proven without it.
    failed += sum(entry.outcome is Outcome.FAILED for entry in bad if not parts[entry.part].check)
    skipped = f", {not_judged} skipped" if not_judged else ""
    lines.append(f"parts: {passed} passed, {failed} failed{skipped}")
    return lines


def standing(parts: Iterable[Part], entries: Iterable[Entry]) -> list[str]:
    """Return a line for each check: when it last passed, on which commit, how often of how many."""
    by_part: dict[str, list[Entry]] = {}
    for entry in entries:
        by_part.setdefault(entry.part, []).append(entry)
    lines = [f"{'part':<20} {'passed':>8}  {'not judged':>10}  last passed"]
    for part in parts:
        if not part.check:
            continue
        found = [one for one in by_part.get(part.name, []) if one.outcome is not Outcome.NOT_RUN]
        passed = [one for one in found if one.outcome is Outcome.PASSED]
        not_judged = sum(one.outcome is Outcome.NOT_JUDGED for one in found)
        last = "never"
        if passed:
            day = datetime.fromtimestamp(passed[-1].began, UTC).strftime("%Y-%m-%d %H:%M UTC")
            last = f"{day} on {passed[-1].commit}"
        judged = len(found) - not_judged
        lines.append(f"{part.name:<20} {len(passed):>3} of {judged:<2}  {not_judged:>10}  {last}")
    return lines
