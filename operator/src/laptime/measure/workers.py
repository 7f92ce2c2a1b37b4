"""Workers of a server of which one has more to do than the others. Pure.

Why each rule is there stands in docs/decisions/0070.
"""

from __future__ import annotations

from laptime.api.causes import Cause
from laptime.api.usage import MOST_PROCESSES, ComponentUsage, ProcessUsage
from laptime.catalog import processes_of
from laptime.measure.by_design import ByDesign
from laptime.measure.saturation import (
    ONE_THREAD,
    RUNS_AT_LEAST,
    SHOWN_CORES,
    Resource,
    Scene,
)

_UNEVEN = 0.8
"""Workers whose mean is above this part of the busiest one's use have hardly more to give."""
_WAITING = 0.5
"""Requests at the server beside one for each worker: below that, none waits for the full one."""
_MAIN_THREAD = 0.9
"""Of the CPU time of a process: then what kept its main thread from running kept all of it."""
_HELD_BACK = 0.01
"""Of the periods of a CPU limit: who waits for it seems to wait for a CPU."""


def uneven_workers(scene: Scene, known: ByDesign) -> Resource | None:
    """Return the busiest worker of a server, where others of its kind used far less.

    Each process has the connections that it accepted: one that has too many is full while others
    have room. Those of one command and one parent are compared, and none that is a parent itself:
    there are as many as the server has workers, or those are threads of one process.
    """
    server, used = scene.server, scene.component("server")
    workers = processes_of(server)
    if (
        used is None
        or not server.knows_workers
        or not 2 <= workers <= MOST_PROCESSES
        or (used.throttled_share or 0.0) >= _HELD_BACK
    ):
        return None
    alike = used.worker_processes
    if len(alike) < workers or alike[0].cores_peak > ONE_THREAD:
        return None
    busiest = alike[0]
    others = alike[1:workers]
    full = _busy(busiest)
    # As busy as they may have been: they are called idle only if they were.
    kept = [_may_have_waited(one, used) for one in others]
    room = [one.cores + more for one, more in zip(others, kept, strict=True) if more is not None]
    if len(room) < len(others) or sum(room) / len(room) > _UNEVEN * full:
        return None
    # Of one request for each worker that computed at all none waits for another's.
    computing = sum(one.cores >= SHOWN_CORES for one in alike)
    elsewhere = scene.figures.requests_per_second * known.elsewhere_seconds
    elsewhere += scene.statements_delayed
    if scene.at_server - elsewhere - computing < _WAITING:
        return None
    lowest, highest = others[-1].cores, others[0].cores
    apart = f"{lowest:.2f}" if highest - lowest < SHOWN_CORES else f"{lowest:.2f} to {highest:.2f}"
    ready = full - busiest.cores
    waited = f" and waited for a CPU of the node in another {ready:.0%} of the time"
    said = (
        f"the busiest of the server's {workers} worker processes ({busiest.command}) used "
        f"{busiest.cores:.2f} of the 1 core that it can use{waited if ready >= 0.01 else ''}, "
        f"{'the other one' if workers == 2 else 'the others'} {apart}: what it has to do is not "
        "spread evenly over them"
    )
    return Resource(Cause.UNEVEN_WORKERS, full, said)


def _busy(process: ProcessUsage) -> float:
    """Return for which part of the time a process ran, or its main thread ran or was ready to.

    That thread can do no more, whatever others do beside it. What they waited does not count: some
    wait while another one runs.
    """
    main, waited = process.main_thread_cores, process.main_thread_waiting_share
    if main is None or waited is None or main < RUNS_AT_LEAST:
        return min(1.0, process.cores)
    return min(1.0, max(process.cores, main + waited))


def _may_have_waited(process: ProcessUsage, pod: ComponentUsage) -> float | None:
    """Return for what share of time at most a process had no CPU; None where nobody knows."""
    main, waited = process.main_thread_cores, process.main_thread_waiting_share
    if main is not None and waited is not None and main >= _MAIN_THREAD * process.cores:
        return waited
    return pod.cpu_waiting_share
