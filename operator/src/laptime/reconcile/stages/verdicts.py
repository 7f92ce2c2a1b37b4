"""What a pod that asks others has said at its end: see `laptime.verification.verdict`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from laptime.api.text import plain_tree
from laptime.measure.generator import MAX_SCHEMA_LENGTH
from laptime.reconcile.views import PodView


def verdict_in(pods: Iterable[PodView]) -> dict[str, object] | None:
    """Return the verdict of the first pod that has one; None while none has."""
    for pod in pods:
        for container in pod.own:
            if container.exit_code == 0 and container.exit_message:
                verdict = parse_verdict(container.exit_message)
                if verdict is not None:
                    return verdict
    return None


def parse_verdict(text: str) -> dict[str, object] | None:
    """Return the verdict in the last line of a text, made plain; None where there is none."""
    try:
        parsed = plain_tree(json.loads(text.strip().split("\n")[-1]))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) and "ok" in parsed else None


def schema_in(verdict: Mapping[str, object] | None) -> str | None:
    """Return what a verdict says of the schema of the database; None where it says nothing."""
    said = (verdict or {}).get("schema")
    return said if isinstance(said, str) and len(said) <= 2 * MAX_SCHEMA_LENGTH else None
