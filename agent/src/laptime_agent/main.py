"""The command `laptime-agent`: puts the parts together and runs until it is told to end."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from types import FrameType

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from laptime_agent import __version__
from laptime_agent.exposition import Exposition
from laptime_agent.files import KernelFile
from laptime_agent.hierarchy import Hierarchy
from laptime_agent.node import Node
from laptime_agent.sampler import Sampler
from laptime_agent.server import make_server
from laptime_agent.watch import ApiServer, PodWatch

ALL_NAMESPACES = "*"
_STALE_SECONDS = 5.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent; ends with status 2 when it is told something that cannot be."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, _end)
    try:
        hierarchy = Hierarchy(options.cgroups)
        api = ApiServer.of_this_pod()
    except (ValueError, KeyError) as error:
        logging.error("cannot start: %s", error)
        sys.exit(2)
    group = hierarchy.settle(options.pod_uid) if options.pod_uid else None
    sampler = Sampler(hierarchy, Node(group=group), options.proc)
    watches = []
    for name in options.namespace:
        namespace = None if name == ALL_NAMESPACES else name
        watch = PodWatch(api, options.node, namespace, partial(sampler.tell, name))
        others = partial(sampler.neighbours.tell, name)
        neighbours = PodWatch(api, options.node, namespace, others, neighbours=True)
        watches.append((name, (watch, neighbours)))
        neighbours.start()
        watch.start()
    exposition = Exposition(sampler, options.node, own_metrics(sampler, watches))
    server = make_server(options.port, exposition.render, lambda: is_fresh(sampler))
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    logging.info("cgroup v%d, node %s, port %d", hierarchy.version, options.node, options.port)
    sampler.run_for_ever()


def is_fresh(sampler: Sampler) -> bool:
    """Return whether the node was read in the last seconds."""
    node = sampler.node
    return node is not None and time.time() - node.timestamp_ms / 1000 < _STALE_SECONDS


def own_metrics(
    sampler: Sampler, watches: Iterable[tuple[str, Sequence[PodWatch]]] = ()
) -> CollectorRegistry:
    """Return the metrics about the agent itself."""
    registry = CollectorRegistry()
    build = Gauge("laptime_agent_info", "Version of the agent.", ["version"], registry=registry)
    build.labels(__version__).set(1)
    registry.register(_OwnCollector(sampler, tuple(watches)))
    return registry


class _OwnCollector(Collector):
    def __init__(
        self, sampler: Sampler, watches: tuple[tuple[str, Sequence[PodWatch]], ...]
    ) -> None:
        self._sampler = sampler
        self._watches = watches
        self._memory = KernelFile("/proc/self/statm")

    def collect(self) -> Iterable[Metric]:
        """Yield the agent's own metrics as they are now."""
        # prometheus-client's own ProcessCollector takes as long as all pods together.
        yield CounterMetricFamily(
            "process_cpu_seconds", "CPU time of the agent.", value=time.process_time()
        )
        yield GaugeMetricFamily(
            "process_resident_memory_bytes",
            "Memory of the agent.",
            value=int(self._memory.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        )
        late = CounterMetricFamily("laptime_agent_late_ticks", "Readings that came too late.")
        late.add_metric([], self._sampler.late_ticks)
        yield late
        tracked = GaugeMetricFamily("laptime_agent_pods", "Pods of runs that are being read.")
        tracked.add_metric([], sum(one.found for one in self._sampler.pods))
        yield tracked
        up = GaugeMetricFamily(
            "laptime_agent_watch_up",
            "Whether the API server tells of the pods of a namespace (* for all).",
            labels=["watched"],
        )
        for name, both in self._watches:
            up.add_metric([name], float(all(watch.up for watch in both)))
        yield up


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="laptime-agent", description="What the pods of runs on this node use, each second."
    )
    parser.add_argument(
        "--node", default=os.environ.get("NODE_NAME"), help="name of this node ($NODE_NAME)"
    )
    parser.add_argument(
        "--pod-uid",
        default=os.environ.get("POD_UID"),
        help="uid of this pod ($POD_UID), by which the node's own part of a machine is found",
    )
    parser.add_argument(
        "--namespace",
        action="append",
        default=[],
        help=f"namespace with runs, again for more; {ALL_NAMESPACES} for all; left out: none",
    )
    parser.add_argument(
        "--cgroups", default="/sys/fs/cgroup", help="where the cgroups of the host are mounted"
    )
    parser.add_argument(
        "--proc",
        help="where /proc of the host is mounted; left out: no figures of networks and processes",
    )
    parser.add_argument("--port", type=int, default=9464, help="port of /metrics (%(default)s)")
    options = parser.parse_args(arguments)
    if not options.node:
        parser.error("say which node this is: --node or $NODE_NAME")
    return options


def _end(number: int, frame: FrameType | None) -> None:
    # Nothing has to be put away, and threads that wait for the network would not end by themselves.
    os._exit(0)
