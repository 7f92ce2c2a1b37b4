"""How two servers are compared: one after the other, or at the same time."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from laptime.api.base import rule


class Pairing(StrEnum):
    """Whether the trials of a repetition are measured in turn."""

    INTERLEAVED = "interleaved"
    """One after the other."""
    DUET = "duet"
    """Two at the same time: whatever disturbs one of them disturbs the other too."""


_DUET = "!has(self.pairing) || self.pairing != 'duet' || "


def _only(what: str, condition: str, message: str) -> dict[str, Any]:
    return rule(_DUET + condition, f"pairing: duet measures {message}", f".{what}")


DUET_RULES = (
    _only(
        "servers",
        "self.servers.size() == 2",
        "two servers at the same time: write two servers, or leave pairing out",
    ),
    _only(
        "servers",
        "self.servers.all(s, !has(s.service))",
        "servers that Laptime deploys, each fresh for its trial: leave pairing out for a service "
        "that is there already",
    ),
    _only(
        "control",
        "!self.control",
        "two servers at the same time, and a control is a third one: leave control out",
    ),
    _only(
        "topology",
        "!has(self.topology) || !(has(self.topology.postgres) || has(self.topology.haproxy) || "
        "has(self.topology.upstream) || has(self.topology.delay))",
        "servers that share no tier, since one would wait for what the other does to it: leave "
        "the tiers out, or leave pairing out",
    ),
    _only(
        "loads",
        "self.loads.all(l, !has(l.saturation) && !has(l.script) && "
        "!(has(l.closed) && has(l.closed.requests)))",
        "loads that both servers have for the same time: write closed with a duration, open, ramp "
        "or stairs, or leave pairing out",
    ),
)
"""What a run with `pairing: duet` may not have."""
