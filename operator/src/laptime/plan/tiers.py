"""What tiers have for all servers of a run, by what single servers ask of them. Pure."""

from __future__ import annotations

import math

from laptime.api.resources import quantity
from laptime.api.spec import BenchmarkRunSpec

MOST_HAPROXY_THREADS = 64


def haproxy_threads(spec: BenchmarkRunSpec) -> int | None:
    """Return how many threads HAProxy has in a run; None: as many as its node has cores.

    HAProxy counts the cores of the node, not those of its quota, and more threads than cores only
    get in each other's way. It has as many as are of use to the server for which it has most CPU:
    they stay when its CPU is changed.
    """
    topologies = (spec.topology, *(spec.topology_of(one) for one in spec.deployed))
    seen = (one.cpu_of("haproxy") for one in topologies)
    cores = [quantity(one) for one in seen if one is not None]
    return max(1, min(MOST_HAPROXY_THREADS, math.ceil(max(cores)))) if cores else None
