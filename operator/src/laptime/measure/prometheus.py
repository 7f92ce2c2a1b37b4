"""What Prometheus knows of the window of one trial: queries, and figures from the answers.

Nothing is computed in PromQL. Its `rate` and `increase` extrapolate to the ends of a range, and
that range ends where a query is evaluated; here the raw samples, whose times are those of the
readings, give the exact difference of a counter between the first request and the last response.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from laptime.api.usage import NodeUsage, Source, TrialUsage
from laptime.measure.clocks import Clocks
from laptime.measure.node_usage import (
    cpu_of_run,
    neighbours_on,
    neighbours_query,
    node_gaps,
    node_query,
    stood_still_seconds,
    usage_of_node,
)
from laptime.measure.pod_series import (
    PodSeries,
    agent_query,
    component_of_pod,
    kubelet_query,
    pods_of_agent,
    pods_of_kubelet,
    stalls_query,
    with_cpu_in,
)
from laptime.measure.pod_usage import usage_of_pods
from laptime.measure.promql import (
    PrometheusError,
    Query,
    TrialWindow,
    of_run,
    on_nodes,
    query_samples,
)
from laptime.measure.timeseries import Series

KUBELET_MARGIN_SECONDS = 60.0
AGENT_LONGEST_GAP_SECONDS = 1.5
"""In a longer one a burst of a second would show with less than two thirds of its height."""
KUBELET_LONGEST_GAP_SECONDS = 45.0


async def trial_usage(
    query: Query, wanted: TrialWindow, clocks: Clocks | None = None
) -> TrialUsage:
    """Return what the pods of a run used in the window of a trial.

    Of `clocks` that are apart the difference is taken off; without them all are taken for right.
    The agent's readings, else the kubelet's, else nothing: `source` says which, `gaps` what is
    missing. Ask not before a second or two after the window: the last samples must be there.

    Raises:
        PrometheusError: Prometheus refused a query other than `stalls_query`; whatever else `query`
            raises is passed on.
    """
    found = await query_samples(query, agent_query(wanted), wanted.window)
    refused: list[str] = []
    if any(labels.get("component") == "server" for labels, _ in found):
        stalls, refused = await _stalls(query, wanted)
        found += stalls
    clocks = clocks or Clocks()
    ours, without_uid = of_run(clocks.in_the_windows_time(found), wanted)
    pods = pods_of_agent(ours)
    own = {
        name: pod
        for name, pod in with_cpu_in(pods, wanted.window).items()
        if pod.trial in ("", wanted.trial)
    }
    foreign: list[str] = []
    if own:
        usage = usage_of_pods(wanted, own, Source.AGENT, AGENT_LONGEST_GAP_SECONDS, [])
    else:
        usage, foreign = await _usage_of_kubelet(query, wanted, clocks.asked, without_uid)
    seen = {pod.node for pod in own.values() if pod.node}
    usage = await _with_nodes(query, wanted, usage, seen, pods, clocks, without_uid)
    return usage.missing(without_uid + foreign + refused)


async def _stalls(
    query: Query, wanted: TrialWindow
) -> tuple[list[tuple[Mapping[str, str], Series]], list[str]]:
    """Return how long the server waited for memory or a disk, and why that is not known.

    All else that is known of the trial is worth more than that, so it is a gap.
    """
    try:
        return await query_samples(query, stalls_query(wanted), wanted.window), []
    except PrometheusError as error:
        return [], [f"it is not known whether the server waited for memory or a disk: {error}"]


_NOT_IN_TIME = (
    "the agents tell of pods of the run, and of none of them in this window: scrapes are too far "
    "apart, or agents came later"
)


def not_watched(namespace: str) -> str:
    """Return that the agents tell of nodes and of no pod of the run, and where to look."""
    return (
        "the agents tell of the nodes and of no pod of the run: see whether watching.namespaces of "
        f"the chart names namespace {namespace} (docs/watching.md)"
    )


async def _usage_of_kubelet(
    query: Query, wanted: TrialWindow, nodes: Collection[str], without_uid: list[str]
) -> tuple[TrialUsage, list[str]]:
    """Return what the kubelets tell of the pods on these nodes, and what was left out, in words."""
    found = await query_samples(query, kubelet_query(wanted), wanted.window, KUBELET_MARGIN_SECONDS)
    of_trial = [one for one in found if component_of_pod(one[0]["pod"], wanted) is not None]
    ours, foreign = on_nodes(of_trial, nodes, wanted)
    pods = with_cpu_in(pods_of_kubelet(ours, wanted), wanted.window)
    if pods:
        gaps = ["only the kubelet's figures"]
        usage = usage_of_pods(wanted, pods, Source.KUBELET, KUBELET_LONGEST_GAP_SECONDS, gaps)
        return usage, foreign
    gaps = without_uid or ["neither the agent nor the kubelet has a sample of this window"]
    return TrialUsage(source=Source.NOBODY, complete=False, gaps=gaps), foreign


async def _with_nodes(
    query: Query,
    wanted: TrialWindow,
    usage: TrialUsage,
    seen: set[str],
    pods: Mapping[str, PodSeries],
    clocks: Clocks,
    without_uid: list[str],
) -> TrialUsage:
    """Return what the pods of a trial used together with what their nodes did.

    `seen` are the nodes on which the agents saw pods of the trial. Agents tell of each node, but of
    the pods of some namespaces alone: so a node is judged too of which nobody knows what the run
    used there, and what others used there is not known then. Nor is it where there are pods
    `without_uid`, as that gap says: they may be of the run, or not. `pods` are those of the run, of
    the trial beside it too.
    """
    nodes = sorted(seen | set(clocks.asked))
    if not nodes:
        return usage
    found = await query_samples(query, node_query(nodes), wanted.whole)
    by_node: dict[str, list[tuple[Mapping[str, str], Series]]] = defaultdict(list)
    for labels, series in clocks.in_the_windows_time(found):
        by_node[labels["node"]].append((labels, series))
    if not by_node and not seen:
        return usage
    if usage.source is Source.NOBODY:
        why = _NOT_IN_TIME if pods else not_watched(wanted.namespace)
        usage = usage.model_copy(update={"gaps": without_uid or [why]})
    gaps = [f"no samples of node {node}" for node in nodes if node not in by_node]
    if seen:
        gaps += [f"no samples of any pod on node {node}" for node in sorted(by_node.keys() - seen)]
    still = {node: stood_still_seconds(by_node[node], wanted.whole) for node in sorted(by_node)}
    of_nodes = {
        name: node_gaps(name, found, still[name], wanted.window)
        for name, found in sorted(by_node.items())
    }
    gaps += [gap for of_one in of_nodes.values() for gap in of_one]
    gaps += clocks.gaps(wanted.window)
    read = [
        usage_of_node(
            name,
            by_node[name],
            wanted.window,
            cpu_of_run(name, pods, wanted.window) if name in seen and not without_uid else None,
        ).model_copy(
            update={
                "clock_ahead_seconds": clocks.ahead(name),
                "stood_still_seconds": still[name],
                "complete": not of_nodes[name],
            }
        )
        for name in sorted(by_node)
    ]
    return usage.model_copy(
        update={
            "nodes": await _with_neighbours(query, wanted, read, pods, clocks),
            "gaps": [*usage.gaps, *gaps],
            "complete": usage.complete and not gaps,
        }
    )


async def _with_neighbours(
    query: Query,
    wanted: TrialWindow,
    nodes: list[NodeUsage],
    own: Collection[str],
    clocks: Clocks,
) -> list[NodeUsage]:
    """Return the nodes, those whose agents tell of other pods with the names of some.

    Of `own` pods an agent of an older version, which was there before, may not have told the run.
    """
    told = [one.node for one in nodes if one.other_pods_cores is not None]
    if not told:
        return nodes
    found = await query_samples(query, neighbours_query(told, wanted), wanted.window)
    series: dict[tuple[str, str], Series] = {}
    for labels, one in clocks.in_the_windows_time(found):
        # The query asks for no others; what is stored must not hang on that alone.
        if labels.get("namespace") == wanted.namespace and labels["pod"] not in own:
            key = labels["node"], labels["pod"]
            series[key] = one.merged(series[key]) if key in series else one
    return [
        one.model_copy(update={"neighbours": neighbours_on(one.node, series, wanted.window)})
        if one.node in told
        else one
        for one in nodes
    ]
