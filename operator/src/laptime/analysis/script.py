"""What a script says over all repetitions of a server under its load."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api.script import ScriptFigures
from laptime.measure import checks_together, hosts_together

MAX_CHECKS = 20
MAX_HOSTS = 10
"""What a row shows one by one; the trials have all."""


def script_of_row(scripts: Sequence[ScriptFigures]) -> ScriptFigures | None:
    """Return what the script says in all repetitions together; None for other loads."""
    if not scripts:
        return None
    checks = checks_together(check for one in scripts for check in one.checks)
    hosts = hosts_together(host for one in scripts for host in one.other_hosts)
    return ScriptFigures(
        warmup_named=all(one.warmup_named for one in scripts),
        executors=sorted({kind for one in scripts for kind in one.executors}),
        iterations=sum(one.iterations for one in scripts),
        iteration_seconds=sum(one.iteration_seconds for one in scripts),
        dropped_iterations=sum(one.dropped_iterations for one in scripts),
        aborted=any(one.aborted for one in scripts),
        checks_passed=sum(one.checks_passed for one in scripts),
        checks_failed=sum(one.checks_failed for one in scripts),
        checks=checks[:MAX_CHECKS],
        other_hosts=hosts[:MAX_HOSTS],
        warnings=list(dict.fromkeys(text for one in scripts for text in one.warnings)),
    )
