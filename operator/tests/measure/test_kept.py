"""What of a generator's result is stored: all that anything is ever reckoned from."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from laptime.measure import GeneratorResult, kept_payload, parse_payload, trial_result
from laptime.plan import Trial
from tests import version_1

TRIAL = Trial("first-trial-001", 1, "axum", "closed", 1)


def payloads() -> list[str]:
    data = (one["data"] for one in version_1.single())
    return [one["generator.b64"] for one in data if "generator.b64" in one]


def document(payload: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(payload)))
    return read


def without_connecting(phase: dict[str, Any]) -> dict[str, Any]:
    """Return a phase without the histograms that no figure comes from; it must have had them."""
    read: dict[str, Any] = json.loads(json.dumps(phase))
    for endpoint in read["endpoints"].values():
        del endpoint["connect"]
    return read


def test_only_histograms_of_the_warm_up_and_of_connecting_go() -> None:
    for payload in payloads():
        parsed = parse_payload(payload)
        assert isinstance(parsed, GeneratorResult)
        before, after = document(payload), document(kept_payload(parsed))
        warmup = before["phases"].pop("warmup")
        kept = after["phases"].pop("warmup")
        before["phases"] = {
            name: without_connecting(phase) for name, phase in before["phases"].items()
        }
        assert after == before
        for endpoint in warmup["endpoints"].values():
            assert endpoint.pop("latency")
            del endpoint["serverTime"], endpoint["connect"]
        assert kept == warmup
        assert len(kept_payload(parsed)) < 0.8 * len(payload)


def test_figures_are_the_same_by_what_is_stored() -> None:
    first = parse_payload(payloads()[0])
    assert isinstance(first, GeneratorResult)
    stored = parse_payload(kept_payload(first))
    assert isinstance(stored, GeneratorResult)
    assert trial_result(TRIAL, stored) == trial_result(TRIAL, first)
    # Once is enough.
    assert kept_payload(stored) == kept_payload(first)


def test_what_a_script_asks_at_its_beginning_and_end_is_no_figure_either() -> None:
    parsed = parse_payload(payloads()[0])
    assert isinstance(parsed, GeneratorResult)
    whole = document(parsed.payload)
    phase = whole["phases"].pop("warmup")
    whole["phases"] |= {"setup": phase, "teardown": phase}
    packed = base64.b64encode(gzip.compress(json.dumps(whole).encode())).decode()
    of_script = parse_payload(packed)
    assert isinstance(of_script, GeneratorResult)
    kept = document(kept_payload(of_script))["phases"]
    for name in ("setup", "teardown"):
        assert all("latency" not in one for one in kept[name]["endpoints"].values())
    assert kept["measured"] == without_connecting(whole["phases"]["measured"])
