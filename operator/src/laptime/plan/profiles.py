"""The profiles of a run: each a trial under load that is part of no figure."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api.spec import BenchmarkRunSpec
from laptime.plan.estimate import OVERHEAD_SECONDS
from laptime.plan.trials import Trial

PROFILE_SECONDS = 10
"""How long the CPU is sampled, from the end of the warm-up on.

Under a load that is shorter the rest is idle, and what takes no CPU is in no profile.
"""


def profile_name(run_name: str, server: str) -> str:
    """Return the name of a server's profile; Job and ConfigMap are called so.

    Together with the longest names of a run and a server it just fits (63 characters).
    """
    return f"{run_name}-flame-{server}"


def plan_profiles(run_name: str, spec: BenchmarkRunSpec) -> tuple[Trial, ...]:
    """Return the profiles that the spec asks for, in the order of its servers.

    They come after all trials, so that they disturb none. Ordinal and repetition are 0: they have
    no place among the trials.
    """
    load = spec.profile_load
    return tuple(
        Trial(profile_name(run_name, server.name), 0, server.name, load.name, 0)
        for server in spec.servers
        if server.profile and load is not None
    )


def profiling_seconds(spec: BenchmarkRunSpec, profiles: Sequence[Trial]) -> float:
    """Estimate the seconds that these profiles will take, one after the other."""
    return sum(
        spec.load(profile.load).warmup_seconds + PROFILE_SECONDS + OVERHEAD_SECONDS
        for profile in profiles
    )
