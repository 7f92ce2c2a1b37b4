"""Panels of one run: what its pods use, where they wait, and how the nodes are."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table, timeseries

from laptime_dashboards.meanings import ISOLATION
from laptime_dashboards.panel_defaults import (
    FULL,
    NOT_TOLD,
    SERVER,
    THIRD,
    in_server_colors,
    of_run,
    time_series,
)
from laptime_dashboards.selectors import (
    BACKENDS,
    GENERATOR_PODS,
    RUN,
    SERVERS,
    TIERS,
    placed,
    rate,
)
from laptime_dashboards.tables import Column, coloured_words, rows

_NO_AGENT = (
    "no pod of the run in this time, the operator is not scraped, or no agent is on its node"
)
_NO_TIER = "the run has no such tier, or nobody watched it"
NODES = f"max by (node) (laptime_pod_memory_working_set_bytes{{{RUN}}})"
"""The nodes on which the run has pods: figures of others do not belong to it."""


def server_cpu() -> timeseries.Panel:
    """CPU of servers and generators."""
    used = "laptime_pod_cpu_seconds_total"
    panel = time_series(
        "CPU of servers and generators",
        "Cores in use by each pod, and the limit of the server where its spec sets one.",
        "short",
        _NO_AGENT,
        [
            of_run(
                placed(f"sum by (server) ({rate(f'{used}{{{SERVERS}}}')})"),
                "{{position}} {{server}}",
                ref="A",
            ),
            of_run(
                placed(f"sum by (server) ({rate(f'{used}{{{GENERATOR_PODS}}}')})"),
                "{{position}} generator of {{server}}",
                ref="B",
            ),
            of_run(
                "max by (server, position) (laptime_run_cpu_limit_cores"
                f'{{{RUN},component="server",server=~"$server"}})',
                "{{position}} limit of {{server}}",
                ref="C",
            ),
        ],
    )
    names = {"A": SERVER, "B": f"generator of {SERVER}", "C": f"limit of {SERVER}"}
    in_server_colors(panel, names, dashed=["B", "C"])
    return panel


def share_of_limit() -> timeseries.Panel:
    """CPU of the servers as a share of what they may have."""
    used = f"sum by (server) ({rate(f'laptime_pod_cpu_seconds_total{{{SERVERS}}}')})"
    limit = f'max by (server, position) (laptime_run_cpu_limit_cores{{{RUN},component="server"}})'
    panel = time_series(
        "CPU of servers, share of the limit",
        "At 100 % the server has all that it may have: more would need a higher limit.",
        "percentunit",
        "no server of the run has a CPU limit, the operator is not scraped, or no agent is on its "
        "node",
        [of_run(f"{used} / on (server) group_right {limit}", "{{position}} {{server}}")],
        limits=[(0.9, "orange"), (1, "red")],
        most=1,
    )
    in_server_colors(panel, {"A": SERVER})
    return panel


def tier_cpu() -> timeseries.Panel:
    """CPU of the tiers."""
    return time_series(
        "CPU of Postgres, PgBouncer and HAProxy",
        "Cores in use by each tier, its exporter included.",
        "short",
        _NO_TIER,
        [
            of_run(
                f"sum by (component) ({rate(f'laptime_pod_cpu_seconds_total{{{TIERS}}}')})",
                "{{component}}",
            )
        ],
    )


def throttling() -> timeseries.Panel:
    """Time that tasks were held back by a CPU limit."""
    held = "laptime_pod_cpu_throttled_seconds_total"
    panel = time_series(
        "Throttling",
        "Seconds that tasks were held back by a CPU limit, in each second, summed over CPUs. Zero "
        "means that no limit was in the way.",
        "s",
        _NO_AGENT,
        [
            of_run(
                placed(f"sum by (server) ({rate(f'{held}{{{SERVERS}}}')})"),
                "{{position}} {{server}}",
                ref="A",
            ),
            of_run(
                f"sum by (component) ({rate(f'{held}{{{TIERS}}}')})",
                "{{component}}",
                ref="B",
            ),
        ],
        limits=[(0.05, "orange")],
    )
    in_server_colors(panel, {"A": SERVER})
    return panel


def memory() -> timeseries.Panel:
    """Working sets."""
    used = "laptime_pod_memory_working_set_bytes"
    panel = time_series(
        "Memory",
        "Working set of each pod: memory in use without the file cache that would be given up "
        "first.",
        "bytes",
        _NO_AGENT,
        [
            of_run(
                placed(f"sum by (server) ({used}{{{SERVERS}}})"),
                "{{position}} {{server}}",
                ref="A",
            ),
            of_run(
                f"sum by (component) ({used}{{{TIERS}}})",
                "{{component}}",
                ref="B",
            ),
            of_run(
                placed(f"sum by (server) ({used}{{{GENERATOR_PODS}}})"),
                "{{position}} generator of {{server}}",
                ref="C",
            ),
        ],
    )
    in_server_colors(panel, {"A": SERVER, "C": f"generator of {SERVER}"}, dashed=["C"])
    return panel


def network() -> timeseries.Panel:
    """Bytes that pods send and get."""
    received = f"laptime_pod_network_receive_bytes_total{{{SERVERS}}}"
    sent = f"laptime_pod_network_transmit_bytes_total{{{SERVERS}}}"
    panel = time_series(
        "Network of the servers",
        "Bytes a second through the interfaces of the servers' pods; sent ones are broken lines.",
        "Bps",
        "no server in this time, the operator is not scraped, no agent is on its node, or "
        "agent.network is false",
        [
            of_run(
                placed(f"sum by (server) ({rate(received)})"),
                "{{position}} {{server}} receives",
                ref="A",
            ),
            of_run(
                placed(f"sum by (server) ({rate(sent)})"),
                "{{position}} {{server}} sends",
                ref="B",
            ),
        ],
    )
    in_server_colors(panel, {"A": f"{SERVER} receives", "B": f"{SERVER} sends"}, dashed=["B"])
    return panel


def haproxy_queue() -> timeseries.Panel:
    """Requests that wait in HAProxy."""
    return time_series(
        "HAProxy: queue",
        "Requests that wait for a free connection to a server, by backend.",
        "short",
        "the run has no HAProxy, or nobody watched it",
        [
            of_run(
                f"sum by (proxy) (haproxy_backend_current_queue{{{BACKENDS}}})",
                "queue {{proxy}}",
                ref="A",
            ),
            of_run(
                f"sum by (proxy) (haproxy_backend_current_sessions{{{BACKENDS}}})",
                "in work {{proxy}}",
                ref="B",
            ),
        ],
    )


def pool() -> timeseries.Panel:
    """Clients of PgBouncer and its connections."""
    return time_series(
        "PgBouncer: pool",
        "Connections to Postgres in use, how many there may be in each pool, and clients that wait "
        "for one. A server with a pool of its own has another one than laptime.",
        "short",
        "the run has no PgBouncer, or exporters are left out",
        [
            of_run(f"sum(laptime_pgbouncer_servers_active{{{RUN}}})", "in use", ref="A"),
            of_run(
                f"max by (database) (laptime_pgbouncer_pool_size{{{RUN}}})",
                "size of {{database}}",
                ref="B",
            ),
            of_run(f"sum(laptime_pgbouncer_clients_waiting{{{RUN}}})", "clients waiting", ref="C"),
        ],
    )


def connections() -> timeseries.Panel:
    """What the connections of Postgres do."""
    return time_series(
        "Postgres: connections",
        "Connections by what they do. Active without a wait means on a CPU, or ready for one.",
        "short",
        "the run has no Postgres, or exporters are left out",
        [
            of_run(
                "sum by (state, wait_event_type)"
                f' (laptime_postgres_connections{{{RUN}, state!="idle"}})',
                "{{state}} {{wait_event_type}}",
                ref="A",
            ),
            of_run(
                f'sum(laptime_postgres_connections{{{RUN}, state="idle"}})',
                "idle",
                ref="B",
            ),
        ],
    )


def isolation() -> table.Panel:
    """Whether the run had its nodes for itself."""
    series = f"laptime_run_isolation{{{RUN}}}"
    return rows(
        "Isolation",
        "Whether others used CPU of the nodes while trials were measured, by the worst trial: "
        "quiet (at most 5 % of a node), shared, or disturbed (so much that there is a doubt). Why "
        "is there when the run is over.",
        f"no trial of the run was measured, {NOT_TOLD}",
        [
            Column(
                "Nodes",
                label="isolation",
                width=100,
                more=coloured_words(ISOLATION),
            ),
            Column("Why", label="why", longest=True, more={"mappings": _without_the_word()}),
            Column("", expr=f"max by (isolation, why) ({series})"),
        ],
        joined=False,
        width=FULL,
        height=4,
    )


def _without_the_word() -> list[dict[str, object]]:
    """Return a mapping of a text that begins with one of the words beside it to the rest of it."""
    either = "|".join(word for word, _ in ISOLATION.values())
    rest = {"pattern": f"/^(?:{either})(?:[:;] )?(.*)$/", "result": {"text": "$1", "index": 0}}
    return [{"type": "regex", "options": rest}]


def node_others() -> timeseries.Panel:
    """What the pods of others use on the nodes of the run."""
    pods = f"sum by (node) ({rate('laptime_node_pods_cpu_seconds_total')})"
    own = f"sum by (node) ({rate(f'laptime_pod_cpu_seconds_total{{{RUN}}}')})"
    each = rate("laptime_neighbour_cpu_seconds_total")
    return time_series(
        "Other pods on the nodes",
        "Cores that all other pods of a node use together, of whatever namespace, and the largest "
        "of those that the agent may see. What of it falls into a measured phase counts.",
        "short",
        "no pod of the run in this time, or no agent on its node",
        [
            of_run(f"{pods} - on (node) {own}", "{{node}} other pods", ref="A"),
            of_run(
                f"topk(10, sum by (node, namespace, pod) ({each}) and on (node) {NODES})",
                "{{node}} {{namespace}}/{{pod}}",
                ref="B",
            ),
        ],
        width=FULL,
    )


def node_cpu() -> timeseries.Panel:
    """CPU of the nodes with pods of the run."""
    in_use = rate('laptime_node_cpu_seconds_total{mode!~"idle|iowait|steal"}')
    taken = rate('laptime_node_cpu_seconds_total{mode="steal"}')
    busy, stolen = f"sum by (node) ({in_use})", f"sum by (node) ({taken})"
    cpus = "max by (node) (laptime_node_cpus)"
    return time_series(
        "CPU of the nodes",
        "Share of all CPUs in use, by everything on the node, and the share that the hypervisor "
        "gave to others. Near 100 % the node limits every server.",
        "percentunit",
        "no pod of the run in this time, or no agent on its node",
        [
            of_run(f"{busy} / {cpus} and on (node) {NODES}", "{{node}} busy", ref="A"),
            of_run(f"{stolen} / {cpus} and on (node) {NODES}", "{{node}} stolen", ref="B"),
        ],
        limits=[(0.9, "red")],
        width=THIRD,
        most=1,
    )


def node_pressure() -> timeseries.Panel:
    """How much tasks of the nodes wait."""
    waiting = rate('laptime_node_pressure_seconds_total{kind="some"}')
    return time_series(
        "Pressure on the nodes",
        "Share of the time in which some task was ready and had to wait for CPU, memory or disk.",
        "percentunit",
        "the nodes' kernels count no pressure (PSI), or no agent is on them",
        [
            of_run(
                f"sum by (node, resource) ({waiting}) and on (node) {NODES}",
                "{{node}} {{resource}}",
            )
        ],
        width=THIRD,
        most=1,
    )


def node_memory() -> timeseries.Panel:
    """Memory that is left on the nodes."""
    return time_series(
        "Memory of the nodes",
        "Memory that programs can still have, and all that there is.",
        "bytes",
        "no pod of the run in this time, or no agent on its node",
        [
            of_run(
                f"max by (node) (laptime_node_memory_available_bytes) and on (node) {NODES}",
                "{{node}} available",
                ref="A",
            ),
            of_run(
                f"max by (node) (laptime_node_memory_total_bytes) and on (node) {NODES}",
                "{{node}} in all",
                ref="B",
            ),
        ],
        width=THIRD,
    )


def node_connections() -> timeseries.Panel:
    """How full the nodes' tables of connections are."""
    share = (
        "max by (node) (laptime_node_nf_conntrack_entries)"
        " / max by (node) (laptime_node_nf_conntrack_entries_limit)"
    )
    return time_series(
        "Connection tracking of the nodes",
        "Share of the entries for connections that are in use. At 100 % packets of new ones are "
        "dropped: use keepAlive, or more nodes.",
        "percentunit",
        "the nodes' kernels track no connections, or no agent is on them that may read it",
        [of_run(f"{share} and on (node) {NODES}", "{{node}}")],
        limits=[(0.9, "red")],
        width=FULL,
        most=1,
    )
