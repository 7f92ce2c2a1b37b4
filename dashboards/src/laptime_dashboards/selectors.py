"""Parts of queries: which series belong to the run and the servers that the reader has chosen."""

from __future__ import annotations

RUN = 'namespace="$namespace",run="$run"'
"""Everything of the run."""

ROW = f'{RUN},server=~"$server",load=~"$load"'
"""Rows of the result table, generators, and the seconds of trials."""

EACH_SECOND = f'{ROW},phase="measured"'
"""The seconds that count, as the generators counted them."""

SERVERS = f'{RUN},component="server",server=~"$server"'
"""The pods of servers."""

GENERATOR_PODS = f'{RUN},component="generator",server=~"$server"'
"""The pods of generators."""

TIERS = f'{RUN},component=~"postgres|pgbouncer|haproxy|upstream|service-.+"'
"""The pods that live as long as the run."""

BACKENDS = f'{RUN},proxy!~"health-.*"'
"""HAProxy's backends that carry load: in the others the generators ask whether a server is up."""

SINCE_CREATION = "vector(time()) > $since"
"""For `and on ()`: nothing of an earlier run of the same name. Whose dashboard says it has the
variable."""

CREATED = "max by (namespace, run) (laptime_run_created_timestamp_seconds)"
"""When each run was created, in Unix seconds."""

WINDOW = "$__rate_interval"
"""Four scrapes, or the step if that is longer: each query says its least step."""

STEP = "$__interval"
"""One second, or the step if that is longer: what has a sample each second has one in it."""


def rate(series: str) -> str:
    """Return the rate of a counter over the window."""
    return f"rate({series}[{WINDOW}])"


def placed(expr: str) -> str:
    """Return an aggregation by `server` with the place of the server as the label `position`."""
    places = f"max by (server, position) (laptime_run_server_info{{{RUN}}})"
    return f"{expr} * on (server) group_left (position) {places}"


def quantile(share: float, series: str, *by: str) -> str:
    """Return a quantile (0 to 1) of a histogram's buckets, for each value of the labels `by`."""
    return f"histogram_quantile({share:g}, sum by ({', '.join(('le', *by))}) ({rate(series)}))"
