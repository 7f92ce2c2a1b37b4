"""What of a generator's result is stored."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from laptime.measure.figures import NOT_MEASURED
from laptime.measure.generator import GeneratorResult, document_of

_HISTOGRAMS = frozenset(("latency", "serverTime", "connect", "uncorrectedLatency", "lateness"))
_UNREAD = frozenset(("connect",))
"""No figure comes from them, in whichever phase."""


def kept_payload(result: GeneratorResult) -> str:
    """Return the payload without the histograms of which nothing is ever reckoned.

    Those of the warm-up and of a script's own set-up, a third of all that a run leaves, and those
    of connecting, a tenth of it. Counts, errors and each second of all phases stay.
    """
    document = document_of(result)
    document["phases"] = {
        name: _without(_HISTOGRAMS if name in NOT_MEASURED else _UNREAD, phase)
        for name, phase in document["phases"].items()
    }
    plain = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(plain.encode(errors="surrogatepass"), mtime=0)
    return base64.b64encode(packed).decode()


def archived(document: Any) -> Any:
    """Return a generator's document without what nothing reads of a run that is over.

    The histograms of single seconds, a third of what the run would leave: Prometheus has them by
    then, or never will. And those of the server's time, as large as those of the latency: each
    trial's result has their percentiles. Counts, errors and percentiles of each second stay. What
    is no document of a generator is returned as it is.
    """
    phases = document.get("phases") if isinstance(document, dict) else None
    if not isinstance(phases, dict):
        return document
    left = {name: _archived_phase(phase) for name, phase in phases.items()}
    return {**document, "phases": left}


def _archived_phase(phase: Any) -> Any:
    if not isinstance(phase, dict):
        return phase
    kept = dict(phase)
    if isinstance(kept.get("endpoints"), dict):
        kept["endpoints"] = {
            name: _but(one, "serverTime") for name, one in kept["endpoints"].items()
        }
    if isinstance(kept.get("seconds"), list) and "latencySeconds" in kept:
        del kept["latencySeconds"]
        kept["seconds"] = [_but(row, "latency") for row in kept["seconds"]]
    return kept


def _but(one: Any, left_out: str) -> Any:
    if not isinstance(one, dict):
        return one
    return {key: value for key, value in one.items() if key != left_out}


def _without(left_out: frozenset[str], phase: dict[str, Any]) -> dict[str, Any]:
    kept = {key: one for key, one in phase.items() if key not in left_out}
    if "endpoints" in kept:
        kept["endpoints"] = {
            name: {key: one for key, one in endpoint.items() if key not in left_out}
            for name, endpoint in kept["endpoints"].items()
        }
    return kept
