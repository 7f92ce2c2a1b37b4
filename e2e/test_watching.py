"""Agent and Prometheus on the cluster: what they say of a pod is what the kernel counted in it.

The pod knows its own truth: it does a known work and writes down the kernel's counters of it.
With LAPTIME_RECORD=FOLDER the answers of Prometheus and that truth are written there.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from conftest import OPERATOR_NAMESPACE, Tool
from laptime.api.isolation import Quietness
from laptime.api.usage import Source, TrialUsage
from laptime.measure.isolation import trial_isolation
from laptime.measure.prometheus import trial_usage
from laptime.measure.promql import TrialWindow
from laptime.measure.timeseries import Series, Window, increase
from laptime.measure.validity import MAX_OTHERS_SHARE

pytestmark = pytest.mark.operator

WATCHING_NAMESPACE = os.environ.get("LAPTIME_WATCHING_NAMESPACE", OPERATOR_NAMESPACE)
NAMESPACE = "default"
"""One with runs, as the chart has it by itself."""
RUN = "watched"
UID = "watched-uid"
MADE_HERE, THIS = "laptime.test/made-by", secrets.token_hex(4)
"""A label of pods that these tests have made, whose namespace is everybody's."""
OF_SERVER = {
    "laptime.dev/run": RUN,
    "laptime.dev/component": "server",
    "laptime.dev/server": "work",
}
"""What anybody may write on a pod; of the run it is by the uid alone."""
SETTLED_SECONDS = 3.0
MOST_OF_THE_MACHINE = 0.03

# 100 MB; then, in ten seconds: nothing, one second of all of a core, nothing, half a core.
WORK = """
import json, os, time
memory = bytearray(os.urandom(1) * 100_000_000)
def counter():
    for path, scale in (("cpuacct/cpuacct.usage", 1e-9), ("cpu.stat", 1e-6)):
        if os.path.exists("/sys/fs/cgroup/" + path):
            text = open("/sys/fs/cgroup/" + path).read()
            return scale * int(text.split()[1] if "usage_usec" in text else text)
def peak():
    for path in ("memory/memory.max_usage_in_bytes", "memory.peak"):
        if os.path.exists("/sys/fs/cgroup/" + path):
            return int(open("/sys/fs/cgroup/" + path).read())
def burn(seconds):
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        pass
    return time.process_time() - used
counted = []
def mark():
    counted.append((time.time(), counter()))
time.sleep(6)
mark()
time.sleep(3)
mark()
burst = 0.0
for _ in range(20):
    burst += burn(0.05)
    mark()
time.sleep(3)
for _ in range(30):
    mark()
    burn(0.05)
    mark()
    time.sleep(0.05)
mark()
(start, before), (end, after) = counted[0], counted[-1]
# On as before: a window's end lies between two readings, and what is used in between is taken to
# be used evenly.
for _ in range(15):
    mark()
    burn(0.05)
    mark()
    time.sleep(0.05)
mark()
print(json.dumps({"start": start, "end": end, "cpu": after - before, "burst": burst,
                  "memory": peak(), "counted": counted}), flush=True)
time.sleep(600)
"""


# Half a core, of which nobody who is measured knows. Of CPU time, which is made up for where it was
# late: half of the time would be less on a machine that does something else as well.
NEIGHBOUR = """
import time
began, used = time.monotonic(), time.process_time()
while True:
    while time.process_time() - used < (time.monotonic() - began) / 2:
        pass
    time.sleep(0.05)
"""


class Prometheus:
    """The Prometheus of the cluster, asked through the API server."""

    def __init__(self, kubectl: Tool) -> None:
        self._kubectl = kubectl
        self.recorded: list[dict[str, Any]] = []

    async def __call__(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """Be the operator's query."""
        service = f"/api/v1/namespaces/{WATCHING_NAMESPACE}/services/laptime-prometheus:9090"
        answer = json.loads(
            self._kubectl("get", "--raw", f"{service}/proxy{path}?{urlencode(parameters)}")
        )
        assert isinstance(answer, dict)
        self.recorded.append({"query": parameters["query"], "answer": answer})
        return answer

    def value(self, promql: str) -> float:
        """Return the one value of an expression."""
        answer = asyncio.run(self("/api/v1/query", {"query": promql}))
        (found,) = answer["data"]["result"]
        return float(found["value"][1])


@pytest.fixture(scope="module")
def prometheus(kubectl: Tool, release: str) -> Prometheus:
    for kind, name in (("daemonset", "laptime-agent"), ("deployment", "laptime-prometheus")):
        kubectl("rollout", "status", f"{kind}/{name}", "-n", WATCHING_NAMESPACE, "--timeout=90s")
    return Prometheus(kubectl)


def _start(kubectl: Tool, namespace: str, trial: str, image: str, node: str | None = None) -> str:
    """Start the pod of a trial; it begins its work after some seconds."""
    name = f"{RUN}-server-work-{trial}-x"
    labels = {**OF_SERVER, "laptime.dev/run-uid": UID, "laptime.dev/trial": f"{RUN}-{trial}"}
    return _start_pod(kubectl, namespace, name, image, WORK, labels, node)


def _start_pod(
    kubectl: Tool,
    namespace: str,
    name: str,
    image: str,
    work: str,
    labels: dict[str, str],
    node: str | None = None,
) -> str:
    container = {
        "name": "server",
        "image": image,
        "command": ["python3", "-c", work],
        "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**labels, MADE_HERE: THIS}},
        "spec": {
            **({"nodeName": node} if node else {}),
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }
    # Somebody may have a pod of this name.
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
    return name


def _truth(kubectl: Tool, namespace: str, pod: str) -> dict[str, Any]:
    """Wait until the work is done and return what the pod wrote down."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        log = kubectl("logs", pod, "-n", namespace).strip()
        if log:
            found = json.loads(log)
            assert isinstance(found, dict)
            return found
        time.sleep(0.5)
    pytest.fail(f"{pod} did not do its work in 60 s")


def _usage(prometheus: Prometheus, namespace: str, trial: str, truth: Any) -> TrialUsage:
    time.sleep(SETTLED_SECONDS)
    window = Window(truth["start"], truth["end"])
    wanted = TrialWindow(namespace, RUN, UID, f"{RUN}-{trial}", window)
    prometheus.recorded.clear()
    return asyncio.run(trial_usage(prometheus, wanted))


def _of_what_was_seen(prometheus: Prometheus, truth: Mapping[str, Any]) -> float | None:
    """Return the CPU time in the window by what the pod counted at the moments of the samples.

    The pod works unevenly: of seconds without samples nobody but itself knows what it did in them.
    """
    times = [
        time
        for asked in prometheus.recorded
        for one in asked["answer"]["data"]["result"]
        if one["metric"]["__name__"] == "laptime_pod_cpu_seconds_total"
        and one["metric"].get("server") == "work"
        for time, _ in one["values"]
    ]
    window = Window(truth["start"], truth["end"])
    # It slept before and sleeps afterwards.
    (_, first), *_, (_, last) = truth["counted"]
    counted = Series.of([(0.0, first), *truth["counted"], (2 * window.end, last)])
    return increase(Series.of((time, counted.at(time) or 0.0) for time in times), window)


def _approximately(seconds: float | None) -> Any:
    """Return what compares as equal to a CPU time but for 5 %, or to None."""
    return None if seconds is None else pytest.approx(seconds, rel=0.05)


@pytest.fixture
def namespace(kubectl: Tool) -> Iterator[str]:
    """The namespace of the pods; afterwards there are none that was made here."""
    yield NAMESPACE
    kubectl("delete", "pods", "-n", NAMESPACE, "-l", f"{MADE_HERE}={THIS}", "--wait=false")


@pytest.fixture(scope="module")
def image(kubectl: Tool, release: str) -> str:
    """An image with Python that is there: the operator's."""
    return kubectl(
        *("get", "deployment", "laptime-operator", "-n", OPERATOR_NAMESPACE),
        *("-o", "jsonpath={.spec.template.spec.containers[0].image}"),
    )


def test_figures_are_those_of_the_kernel(
    kubectl: Tool, prometheus: Prometheus, namespace: str, image: str
) -> None:
    pod = _start(kubectl, namespace, "trial-001", image)
    where = kubectl("get", "pod", pod, "-n", namespace, "-o", "jsonpath={.spec.nodeName}")
    _start_pod(kubectl, namespace, "neighbour", image, NEIGHBOUR, OF_SERVER, where)
    truth = _truth(kubectl, namespace, pod)
    usage = _usage(prometheus, namespace, "trial-001", truth)
    _record(prometheus, namespace, truth)
    assert usage.source is Source.AGENT
    assert usage.gaps == []
    assert usage.complete
    assert usage.resolution_seconds == pytest.approx(0.2, abs=0.05)
    work = usage.component("server")
    assert work is not None
    assert work.server == "work"
    assert work.cpu_seconds == pytest.approx(truth["cpu"], rel=0.02)
    assert work.memory_peak_bytes == pytest.approx(truth["memory"], rel=0.02)
    # The burst of one second is not smeared over the two seconds that it lies in.
    assert work.cores_peak is not None
    assert 0.85 * truth["burst"] < work.cores_peak < 1.15
    assert work.received_bytes is not None
    (node,) = usage.nodes
    assert node.cpus > 0
    assert node.stolen_share is not None
    assert node.busy_share is not None
    assert node.stood_still_seconds == 0.0
    assert node.others_cores is not None
    assert work.cores_mean is not None
    busy = node.busy_share * node.cpus
    # The neighbour, and the node's daemons, but no interrupts.
    assert 0.4 < node.others_cores < busy - work.cores_mean + 0.05
    # It has the labels of the run but for the uid.
    assert work.pods == 1
    assert node.neighbours is not None
    assert "neighbour" in [one.pod for one in node.neighbours]
    # kube-proxy has the node track connections, and the scrapes of the agent are some.
    assert node.connection_tracking is not None
    assert node.connection_tracking.limit is not None
    assert 0 < node.connection_tracking.entries < node.connection_tracking.limit


@pytest.fixture
def elsewhere(kubectl: Tool) -> Iterator[str]:
    """A namespace that is none of the run's; it goes with all that is in it."""
    name = f"neighbours-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def test_neighbours_have_a_word_and_names_for_their_own_namespace_alone(
    kubectl: Tool, prometheus: Prometheus, namespace: str, elsewhere: str, image: str
) -> None:
    where = None
    for name, home in (("neighbour-own", namespace), ("neighbour-other", elsewhere)):
        _start_pod(kubectl, home, name, image, NEIGHBOUR, {"app": "neighbour"}, where)
        where = kubectl("get", "pod", name, "-n", home, "-o", "jsonpath={.spec.nodeName}")
    assert where is not None
    pod = _start(kubectl, namespace, "trial-004", image, where)
    truth = _truth(kubectl, namespace, pod)
    usage = _usage(prometheus, namespace, "trial-004", truth)
    (node,) = usage.nodes
    # Half a core each, whatever their namespace; on a full machine they get less.
    assert node.other_pods_cores is not None
    assert node.other_pods_cores >= 0.7
    assert node.others_cores is not None
    assert node.others_cores >= node.other_pods_cores
    assert node.neighbours is not None
    names = {one.pod: one.cores for one in node.neighbours}
    assert 0.3 < names["neighbour-own"] < 0.6
    assert "neighbour-other" not in usage.model_dump_json()
    # Of two CPUs 0.7 are more than a quarter, of more perhaps not.
    isolation = trial_isolation(usage, [where])
    share = node.others_cores / node.cpus
    assert isolation.word is (Quietness.DISTURBED if share > MAX_OTHERS_SHARE else Quietness.SHARED)
    assert isolation.others_cores == node.others_cores
    # The administrator sees both, where the agent watches all namespaces.
    watched = kubectl(
        *("get", "daemonset", "laptime-agent", "-n", WATCHING_NAMESPACE),
        *("-o", "jsonpath={.spec.template.spec.containers[0].args}"),
    )
    if "--namespace=*" in watched:
        metric = "laptime_neighbour_cpu_seconds_total"
        labels = f'namespace="{elsewhere}",pod="neighbour-other"'
        assert prometheus.value(f"max_over_time({metric}{{{labels}}}[1m])") > 1.0


def test_together_they_cost_little(prometheus: Prometheus) -> None:
    cores = sum(
        prometheus.value(f'sum(rate(process_cpu_seconds_total{{job="{job}"}}[1m]))')
        for job in ("laptime-agent", "laptime-operator", "laptime-prometheus")
    )
    cpus = prometheus.value("sum(laptime_node_cpus)")
    assert 0.0 < cores / cpus < MOST_OF_THE_MACHINE


def test_killing_the_agent_leaves_figures_that_are_marked_or_right(
    kubectl: Tool, prometheus: Prometheus, namespace: str, image: str
) -> None:
    pod = _start(kubectl, namespace, "trial-002", image)
    time.sleep(9)
    kubectl(
        *("delete", "pod", "-n", WATCHING_NAMESPACE, "-l", "app.kubernetes.io/component=agent"),
        *("--force", "--grace-period=0"),
    )
    truth = _truth(kubectl, namespace, pod)
    usage = _usage(prometheus, namespace, "trial-002", truth)
    work = usage.component("server")
    assert work is not None
    # The next agent may be there before the killed one is gone: then nothing is missing.
    assert usage.complete == (not usage.gaps)
    # The kernel went on counting while nobody looked.
    if usage.complete:
        assert work.cpu_seconds == pytest.approx(truth["cpu"], rel=0.02)
    else:
        assert work.cpu_seconds == _approximately(_of_what_was_seen(prometheus, truth))


def test_killing_prometheus_makes_the_figures_incomplete(
    kubectl: Tool, prometheus: Prometheus, namespace: str, image: str
) -> None:
    pod = _start(kubectl, namespace, "trial-003", image)
    time.sleep(9)
    kubectl(
        *("delete", "pod", "-n", WATCHING_NAMESPACE),
        *("-l", "app.kubernetes.io/component=prometheus", "--force", "--grace-period=0"),
    )
    truth = _truth(kubectl, namespace, pod)
    kubectl(
        *("rollout", "status", "deployment/laptime-prometheus", "-n", WATCHING_NAMESPACE),
        "--timeout=90s",
    )
    usage = _usage(prometheus, namespace, "trial-003", truth)
    assert not usage.complete
    assert usage.gaps
    work = usage.component("server")
    # What the killed one had is gone with its pod, if the next one's store is not kept.
    if work is not None:
        assert work.cpu_seconds == _approximately(_of_what_was_seen(prometheus, truth))


def _record(prometheus: Prometheus, namespace: str, truth: Any) -> None:
    folder = os.environ.get("LAPTIME_RECORD")
    if folder:
        document = {
            "namespace": namespace,
            "run": RUN,
            "trial": f"{RUN}-trial-001",
            "truth": truth,
            "answers": prometheus.recorded,
        }
        Path(folder, "agent.json").write_text(json.dumps(document) + "\n")
