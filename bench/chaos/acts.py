"""How each kind of fault is done, and what shows that it was felt.

Each act is called in the moment that the plan says, does its fault, takes it back, and returns what
shows that it bit: an empty text when nothing does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from chaos import node
from chaos.plan import Fault
from chaos.proxy import Proxy
from chaos.tampering import (
    AnswersCut,
    AnswersLost,
    ClockDiffers,
    Killed,
    Leave,
    ListsStale,
    Refused,
    Slow,
    Unanswered,
    WatchesCut,
    WatchesExpired,
    WatchesFrozen,
)
from chaos.wire import refusal

from laptime_cluster import disks

Act = Callable[[Fault, Proxy, str], str]
"""Called with the fault, the proxy and the name of the run."""

_TIERS = ("postgres", "pgbouncer", "haproxy")
_POD_SECONDS = 30.0
MOST_BITE_SECONDS = 75.0
"""So long is waited for what a proxy was told to do once or a few times."""


# The operator ------------------------------------------------------------------------------


def replace_operator() -> None:
    """Have a new operator started at once: the kubelet would wait longer each time."""
    for pod in node.pods(node.SYSTEM, "app.kubernetes.io/component=operator"):
        node.delete_pod(pod)


def _operator_killed(fault: Fault, proxy: Proxy, run: str) -> str:
    killed = proxy.tamper
    assert isinstance(killed, Killed)
    if not killed.bites:
        return ""
    replace_operator()
    return f"the operator's process was killed at write {killed.write} and is another one now"


def _operator_frozen(fault: Fault, proxy: Proxy, run: str) -> str:
    pid = node.operator_pid()
    if not pid:
        return ""
    seconds = node.stand_still(pid, fault.between(5, 40))
    return f"the operator's process {pid} was stopped for {seconds:.1f} s" if seconds else ""


# The connection ----------------------------------------------------------------------------


def _for_seconds(make: Callable[[Fault, Proxy], Leave], low: float, high: float) -> Act:
    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        tamper = make(fault, proxy)
        proxy.tamper = tamper
        time.sleep(fault.between(low, high))
        proxy.tamper = None
        return _said(tamper)

    return act


def _until_done(make: Callable[[Fault], Leave], *, stays: bool = False) -> Act:
    """Tamper until it was done as often as it is to be, or the run is over; or stay in place."""

    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        tamper = make(fault)
        proxy.tamper = tamper
        end = time.monotonic() + MOST_BITE_SECONDS
        while tamper.bites < tamper.most and time.monotonic() < end and not is_over(run):
            time.sleep(0.1)
        if not stays:
            proxy.tamper = None
        return _said(tamper)

    return act


def _said(tamper: Leave) -> str:
    return f"{tamper.bites} times {type(tamper).__name__}" if tamper.bites else ""


def is_over(run: str) -> bool:
    """Whether a run is over and folded."""
    found = node.ask("GET", f"{node.RUNS}/{run}") or {}
    return ((found.get("status") or {}).get("storage") or {}).get("folded") is True


def _stale(fault: Fault, proxy: Proxy) -> ListsStale:
    age = fault.between(3, 8)

    def version() -> str | None:
        return proxy.version_at(time.monotonic() - age)

    return ListsStale(version)


# The cluster -------------------------------------------------------------------------------


def _frozen(name: str, low: float, high: float) -> Act:
    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        seconds = node.stand_still(node.daemon_pid(name), fault.between(low, high))
        return f"{name} was stopped for {seconds:.1f} s" if seconds else ""

    return act


def _away(name: str, low: float, high: float) -> Act:
    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        before = node.daemon_pid(name)
        seconds = node.be_away(name, fault.between(low, high))
        return f"{name}, process {before}, was killed, and not there for {seconds:.1f} s"

    return act


def _stopped(name: str) -> Act:
    """By turns frozen and killed."""

    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        way = (_frozen, _away)[fault.number % 2]
        return way(name, 5, 40)(fault, proxy, run)

    return act


def _rights_taken(fault: Fault, proxy: Proxy, run: str) -> str:
    before = proxy.refused[403]
    node.ask("DELETE", f"{node.RIGHTS}/laptime")
    try:
        time.sleep(fault.between(3, 12))
    finally:
        node.give_rights()
    count = proxy.refused[403] - before
    return f"{count} requests were refused with 403" if count else ""


def _quota(what: str) -> Act:
    """Leave no room for objects of a kind: operator or controllers are refused."""

    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        before = proxy.refused[403]
        path = f"/api/v1/namespaces/{node.NAMESPACE}"
        quota = {"metadata": {"name": "chaos"}, "spec": {"hard": {what: "0"}}}
        node.ask("POST", f"{path}/resourcequotas", quota)

        def refused() -> int:
            events = node.ask("GET", f"{path}/events?fieldSelector=reason=FailedCreate")["items"]
            of_controllers = [
                one
                for one in events
                if run in one["involvedObject"]["name"] and "quota" in one["message"]
            ]
            return proxy.refused[403] - before + len(of_controllers)

        end = time.monotonic() + MOST_BITE_SECONDS
        try:
            time.sleep(fault.between(5, 20))
            while not (count := refused()) and time.monotonic() < end and not is_over(run):
                time.sleep(0.2)
        finally:
            node.ask("DELETE", f"{path}/resourcequotas/chaos")
        return f"{count} times {what} were over the quota" if count else ""

    return act


def _etcd_full(fault: Fault, proxy: Proxy, run: str) -> str:
    refused = proxy.refused[500]
    node.be_full(True)
    try:
        time.sleep(fault.between(3, 15))
        said = node.refusal_of_a_write()
    finally:
        node.be_full(False)
    count = proxy.refused[500] - refused
    return f"a write was refused with {said!r}, {count} of the operator's" if said else ""


def _disk_full(fault: Fault, proxy: Proxy, run: str) -> str:
    seconds = fault.between(3, 30)
    try:
        taken = disks.fill(node.DISK)
        full = disks.is_full(node.DISK)
        time.sleep(seconds)
        pods = node.pods(node.NAMESPACE, f"laptime.dev/run={run}")
    finally:
        disks.empty(node.DISK)
    if not full:
        return ""
    evicted = sum(one["status"].get("reason") == "Evicted" for one in pods)
    return (
        f"the last {taken >> 20} MiB of the disk were taken for {seconds:.1f} s, "
        f"{evicted} pods of the run were evicted"
    )


def _pod_of(run: str, component: str) -> dict[str, Any] | None:
    """Wait for a running pod of a component; None when the run is over before."""
    end = time.monotonic() + _POD_SECONDS
    selector = f"laptime.dev/run={run},laptime.dev/component={component}"
    while time.monotonic() < end and not is_over(run):
        for pod in node.pods(node.NAMESPACE, selector):
            if pod["status"].get("phase") == "Running":
                return pod
        time.sleep(0.05)
    return None


def _deleted(component: str) -> Act:
    def act(fault: Fault, proxy: Proxy, run: str) -> str:
        pod = _pod_of(run, component)
        if pod is None:
            return ""
        time.sleep(fault.delay_seconds)
        return _delete(pod)

    return act


def _delete(pod: dict[str, Any]) -> str:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{name}"
    found = node.ask("GET", path)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return ""
    node.delete_pod(pod)
    now = node.ask("GET", path)
    gone = now is None or now["metadata"]["uid"] != uid or "deletionTimestamp" in now["metadata"]
    return f"{name} was deleted at once" if gone else ""


def _tier_killed(fault: Fault, proxy: Proxy, run: str) -> str:
    pod = _pod_of(run, _TIERS[fault.number % len(_TIERS)])
    if pod is None:
        return ""
    if fault.number // len(_TIERS) % 2:
        return _delete(pod)
    killed = node.kill_containers(pod)
    return f"{killed} processes of {pod['metadata']['name']} were killed" if killed else ""


def _watchers_killed(fault: Fault, proxy: Proxy, run: str) -> str:
    component = ("prometheus", "agent")[fault.number % 2]
    found = node.pods(node.SYSTEM, f"app.kubernetes.io/component={component}")
    return "; ".join(filter(None, map(_delete, found)))


def _cordoned(fault: Fault, proxy: Proxy, run: str) -> str:
    node.cordon(True)
    began = time.monotonic()
    try:
        time.sleep(fault.between(5, 30))
    finally:
        node.cordon(None)
    return f"no pod could be scheduled for {time.monotonic() - began:.1f} s"


def _tainted(fault: Fault, proxy: Proxy, run: str) -> str:
    before = {pod["metadata"]["uid"] for pod in node.pods(node.NAMESPACE, f"laptime.dev/run={run}")}
    node.taint()
    try:
        time.sleep(fault.between(3, 10))
    finally:
        node.untaint()
    now = {pod["metadata"]["uid"] for pod in node.pods(node.NAMESPACE, f"laptime.dev/run={run}")}
    gone = before - now
    return f"{len(gone)} pods of the run were evicted" if gone else ""


ACTS: dict[str, Act] = {
    "killed-before-write": _operator_killed,
    "killed-after-write": _operator_killed,
    "operator-frozen": _operator_frozen,
    "answer-cut": _until_done(lambda fault: AnswersCut(fault.count(1, 5), fault.place)),
    "answer-lost": _until_done(lambda fault: AnswersLost(fault.count(1, 4))),
    "watch-cut": _for_seconds(lambda fault, _: WatchesCut(fault.count(0, 8000)), 4, 8),
    "watch-frozen": _for_seconds(lambda _, __: WatchesFrozen(), 3, 30),
    "watch-expired": _for_seconds(lambda _, __: WatchesExpired(), 2, 10),
    "stale-list": _for_seconds(_stale, 4, 15),
    "conflict": _until_done(
        lambda fault: Refused(
            refusal(409, "Conflict", "Operation cannot be fulfilled: try again"),
            fault.count(1, 5),
        )
    ),
    "too-many-requests": _for_seconds(
        lambda _, __: Refused(refusal(429, "TooManyRequests", "later", Retry_After="1")), 3, 10
    ),
    "server-error": _for_seconds(
        lambda _, __: Refused(refusal(500, "InternalError", "etcdserver: timed out")), 3, 10
    ),
    "no-answer": _until_done(
        lambda fault: Unanswered(fault.count(1, 2), done=bool(fault.number % 2))
    ),
    "slow-answers": _for_seconds(lambda fault, _: Slow(fault.between(0.5, 3)), 15, 15),
    "clock-difference": _until_done(
        lambda fault: ClockDiffers((90.0, -90.0)[fault.number % 2]), stays=True
    ),
    "etcd-frozen": _frozen("etcd", 3, 20),
    "etcd-killed": _away("etcd", 1, 8),
    "api-server-frozen": _frozen("kube-apiserver", 3, 20),
    "api-server-killed": _away("kube-apiserver", 1, 8),
    "kubelet-frozen": _frozen("kubelet", 5, 60),
    "kubelet-killed": _away("kubelet", 2, 20),
    "containerd-frozen": _frozen("containerd", 5, 40),
    "containerd-killed": _away("containerd", 2, 15),
    "scheduler-stopped": _stopped("kube-scheduler"),
    "controllers-stopped": _stopped("kube-controller-manager"),
    "rights-taken": _rights_taken,
    "quota-of-pods": _quota("pods"),
    "quota-of-results": _quota("configmaps"),
    "dns-gone": _away("coredns", 5, 20),
    "etcd-full": _etcd_full,
    "disk-full": _disk_full,
    "watchers-killed": _watchers_killed,
    "generator-deleted": _deleted("generator"),
    "server-deleted": _deleted("server"),
    "tier-killed": _tier_killed,
    "node-cordoned": _cordoned,
    "node-tainted": _tainted,
}
