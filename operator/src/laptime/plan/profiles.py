"""The profiles of a run: each a trial under load that is part of no figure."""

from __future__ import annotations

from collections.abc import Sequence

from laptime.api.loads import Load, OpenLoad
from laptime.api.spec import BenchmarkRunSpec
from laptime.plan.estimate import OVERHEAD_SECONDS
from laptime.plan.trials import Trial

PROFILE_SECONDS = 10
"""How long the CPU is sampled, from the end of the warm-up on."""

# What asks for the profile starts beside the generator, on nodes that may be busy, and writes
# the stacks under load. The load is ended as soon as the profile is there.
_START_AND_ANSWER_SECONDS = 60


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
        if server.profile and load is not None and not spec.verify_only
    )


def profile_load(load: Load) -> Load:
    """Return the load to sample a server under: like `load`, and never over before the profile is.

    A load that is bound by requests, or too short, lasts longer. A ramp or stairs become their
    highest rate, since nobody could say at which of their rates the CPU was sampled. A script is
    left as it is: its length is its own.
    """
    duration = f"{max(load.measured_seconds or 0, PROFILE_SECONDS + _START_AND_ANSWER_SECONDS):g}s"
    if load.closed is not None:
        closed = load.closed.model_copy(update={"requests": None, "duration": duration})
        return load.model_copy(update={"closed": closed})
    if load.open is not None:
        steady = load.open.model_copy(update={"duration": duration})
        return load.model_copy(update={"open": steady})
    changing = load.ramp or load.stairs
    if changing is not None:
        steady = OpenLoad(
            rate=changing.highest_rate,
            duration=duration,
            max_connections=changing.max_connections,
            keep_alive=changing.keep_alive,
            arrivals=changing.arrivals,
            connect_over=changing.connect_over,
        )
        return load.model_copy(update={"ramp": None, "stairs": None, "open": steady})
    return load


def profiling_seconds(spec: BenchmarkRunSpec, profiles: Sequence[Trial]) -> float:
    """Estimate the seconds that these profiles will take, one after the other."""
    return sum(
        spec.load(profile.load).warmup_seconds + PROFILE_SECONDS + OVERHEAD_SECONDS
        for profile in profiles
    )
