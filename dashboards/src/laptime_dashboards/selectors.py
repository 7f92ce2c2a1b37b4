"""Parts of queries: which series belong to the run and the trials that the reader has chosen."""

from __future__ import annotations

RUN = 'namespace="$namespace", run="$run"'
"""Everything of the run."""

GENERATOR = f'{RUN}, server=~"$server", load=~"$load", trial=~"$trial"'
"""The generators of the trials; their pods know server, load and trial."""

SERVERS = f'{RUN}, component="server", server=~"$server", trial=~"$trial"'
"""The pods of servers in the trials."""

GENERATOR_PODS = f'{RUN}, component="generator", server=~"$server", trial=~"$trial"'
"""The pods of generators in the trials."""

PODS = f'{RUN}, component=~"server|generator", server=~"$server", trial=~"$trial"'
"""The pods that are made anew for each trial."""

TIERS = f'{RUN}, component=~"postgres|pgbouncer|haproxy"'
"""The pods that live as long as the run."""

BACKENDS = f'{RUN}, proxy!~"health-.*"'
"""HAProxy's backends that carry load: in the others the generators ask whether a server is up."""

ROW = f'{RUN}, server=~"$server", load=~"$load"'
"""Rows of the result table."""

TRIAL = f'{RUN}, trial=~"$trial"'
"""What the operator says of the trials."""

POSITION = f'count_values by (server) ("position", laptime_run_server_position{{{RUN}}})'
"""1 for each server of the run, with its place in the spec as a label."""

WINDOW = "$__rate_interval"
"""Four scrapes, or the step if that is longer: each query says its least step."""


def rate(series: str) -> str:
    """Return the rate of a counter over the window."""
    return f"rate({series}[{WINDOW}])"


def placed(expr: str) -> str:
    """Return an expression by `server` with the place of the server as the label `position`."""
    return f"({expr}) * on (server) group_left (position) {POSITION}"


def quantile(share: float, series: str, *by: str) -> str:
    """Return a quantile (0 to 1) of a histogram's buckets, for each value of the labels `by`."""
    return f"histogram_quantile({share:g}, sum by ({', '.join(('le', *by))}) ({rate(series)}))"
