"""From a spec to its ordered trials. Pure."""

from laptime.plan.endpoints import SentSession, load_problem, sent_requests, sent_sessions
from laptime.plan.estimate import (
    MOST_STEPS,
    OVERHEAD_SECONDS,
    USUAL_RATE,
    longest_rest_seconds,
    remaining_seconds,
)
from laptime.plan.fitting import left_behind, load_problems, misfits
from laptime.plan.order import order_of, orders, williams_squares
from laptime.plan.placement import NodeDesign, Places, in_time
from laptime.plan.profiles import (
    PROFILE_SECONDS,
    plan_profiles,
    profile_load,
    profile_name,
    profiling_seconds,
)
from laptime.plan.script_sources import Lead, Leads, may_reach, script_leads
from laptime.plan.sessions import (
    ALONE,
    REQUESTS_BOUND_SECONDS,
    WithinSessions,
    seconds_at_a_rate,
    thinking_seconds,
    too_short,
    within_sessions,
)
from laptime.plan.starts import start_rate
from laptime.plan.trials import Trial, feeder_seed, plan_trials, seed_of

__all__ = [
    "ALONE",
    "MOST_STEPS",
    "OVERHEAD_SECONDS",
    "PROFILE_SECONDS",
    "REQUESTS_BOUND_SECONDS",
    "USUAL_RATE",
    "Lead",
    "Leads",
    "NodeDesign",
    "Places",
    "SentSession",
    "Trial",
    "WithinSessions",
    "feeder_seed",
    "in_time",
    "left_behind",
    "load_problem",
    "load_problems",
    "longest_rest_seconds",
    "may_reach",
    "misfits",
    "order_of",
    "orders",
    "plan_profiles",
    "plan_trials",
    "profile_load",
    "profile_name",
    "profiling_seconds",
    "remaining_seconds",
    "script_leads",
    "seconds_at_a_rate",
    "seed_of",
    "sent_requests",
    "sent_sessions",
    "start_rate",
    "thinking_seconds",
    "too_short",
    "williams_squares",
    "within_sessions",
]
