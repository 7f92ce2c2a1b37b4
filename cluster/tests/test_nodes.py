"""Three nodes on one machine: apart, joined by a network, and taken away in several ways.

Once with IPv4 and once with IPv6 alone. Runs a second cluster beside one that may be in use; needs
root and some ten minutes (make nodes; make nodes ONLY=ipv6: the second half).
"""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from laptime_cluster.layout import IPV4, IPV6, SOURCE, Family, version
from laptime_cluster.places import shares
from tests.throwaway import (
    ENVIRONMENT,
    NAME,
    cluster,
    kubectl,
    pod,
    processes_of_the_cluster,
    start_pods,
)

pytestmark = pytest.mark.skipif(
    os.environ.get("LAPTIME_NODES_TESTS") != "1",
    reason="starts a cluster of three nodes and takes minutes; set LAPTIME_NODES_TESTS=1",
)

NODES = ("laptime", "laptime-2", "laptime-3")
PORT = 8080
LISTEN = """
import socket, sys
listener = socket.create_server(("", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
print("there", flush=True)
while True:
    listener.accept()[0].sendall(sys.argv[1].encode())
"""
ASK = """
import socket, sys
try:
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5)
except OSError as error:
    print(type(error).__name__, error.errno)
else:
    try:
        print(connection.recv(100).decode())
    except TimeoutError:
        print("connected")
"""
CLOCK = """
import time
while True:
    print(time.time(), time.monotonic(), flush=True)
    time.sleep(0.2)
"""
SPIN = """
import sys, time
with open(sys.argv[1], "w") as group:
    group.write("0")
while True:
    since, used = time.monotonic(), time.process_time()
    while time.monotonic() - since < 0.5:
        pass
    print((time.process_time() - used) / (time.monotonic() - since), flush=True)
"""


@pytest.fixture(scope="module", autouse=True, params=["ipv4", "ipv6"])
def family(request: pytest.FixtureRequest) -> Iterator[Family]:
    """Start three nodes; what their addresses are."""
    cluster("down")
    ENVIRONMENT["LAPTIME_CLUSTER_FAMILY"] = request.param
    cluster("up", "--nodes", "3")
    # As for everybody who does not say it again.
    del ENVIRONMENT["LAPTIME_CLUSTER_FAMILY"]
    # A pod on each: `one` on the first, `two` on the second.
    start_pods(*(pod(name, node, app=name) for name, node in zip(PODS, NODES, strict=True)))
    yield {"ipv4": IPV4, "ipv6": IPV6}[request.param]
    cluster("down")


PODS = ("one", "two", "three")


def read(what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", what, "-o", "json"))
    return found


def process_of(name: str) -> int:
    """Return the process of a pod."""
    uid = read(f"pod/{name}")["metadata"]["uid"]
    for process in sorted(processes_of_the_cluster()):
        if uid in Path(f"/proc/{process}/cgroup").read_text():
            return process
    raise AssertionError(f"{name} has no process")


def cpu_group(name: str) -> Path:
    """Return the control group that a pod's CPU time is counted and limited by."""
    lines = Path(f"/proc/{process_of(name)}/cgroup").read_text().splitlines()
    groups = {controllers: path for _, controllers, path in (one.split(":", 2) for one in lines)}
    controllers = next((one for one in groups if "cpu" in one.split(",")), "")
    return Path("/sys/fs/cgroup", controllers, groups[controllers].lstrip("/"))


def inside(name: str, *command: str) -> list[str]:
    return ["nsenter", f"--net=/proc/{process_of(name)}/ns/net", *command]


def ask(name: str, address: str, port: int = PORT) -> str:
    """Return what a pod hears from an address, or the error."""
    command = inside(name, sys.executable, "-I", "-c", ASK, address, str(port))
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def listening(*names: str) -> Iterator[dict[str, str]]:
    """Have pods answer with their names; yields the address of each."""
    servers = []
    try:
        for name in names:
            command = inside(name, sys.executable, "-I", "-c", LISTEN, name)
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE))
            assert servers[-1].stdout is not None
            assert servers[-1].stdout.readline() == b"there\n"
        yield {name: read(f"pod/{name}")["status"]["podIP"] for name in names}
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def wait(what: str, until: Callable[[], object], seconds: float) -> float:
    """Wait until something is true; return how long it took."""
    began = time.monotonic()
    while not until():
        assert time.monotonic() - began < seconds, f"{what} did not come in {seconds} s"
        time.sleep(0.3)
    return time.monotonic() - began


def is_ready(node: str) -> bool:
    conditions = read(f"node/{node}")["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def kubelet_answers(node: str) -> bool:
    """Whether the API server reaches the kubelet of a node."""
    path = f"/api/v1/nodes/{node}/proxy/healthz"
    try:
        return kubectl("get", "--raw", path, "--request-timeout=3s") == "ok"
    except subprocess.CalledProcessError:
        return False


def test_each_node_runs_on_its_own_cpus() -> None:
    own = shares(sorted(os.sched_getaffinity(0)), 3)
    for name, node, cpus in zip(PODS, NODES, own, strict=True):
        assert os.sched_getaffinity(process_of(name)) == set(cpus)
        status = read(f"node/{node}")["status"]
        assert status["allocatable"]["cpu"] == str(len(cpus))
        kubelets = [
            process
            for process, comm in processes_of_the_cluster(f"{node}/").items()
            if comm == "kubelet"
        ]
        assert [os.sched_getaffinity(one) for one in kubelets] == [set(cpus)]


def test_pods_of_different_nodes_reach_each_other_by_address_and_by_service(
    family: Family,
) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "two"},
        "spec": {"selector": {"app": "two"}, "ports": [{"port": 80, "targetPort": PORT}]},
    }
    kubectl("apply", "-f", "-", text=json.dumps(service))
    query = SOURCE / "laptime_cluster" / "name_query.py"
    with listening(*PODS) as addresses:
        said = {(a, b): ask(a, addresses[b]) for a in PODS for b in PODS}
        assert said == {(a, b): b for a in PODS for b in PODS}
        for name in PODS:
            command = inside(name, sys.executable, str(query), family.dns_service_address,
                             "two.default.svc.cluster.local")  # fmt: skip
            address = subprocess.check_output(command, text=True).strip()

            def served(who: str = name, where: str = address) -> bool:
                return ask(who, where, 80) == "two"

            wait(f"the Service for {name}", served, 10)
            # The API server says nothing until it is spoken to.
            assert ask(name, family.first_service_address, 443) == "connected"
    kubectl("delete", "service", "two")


def addresses_within(command: list[str]) -> dict[str, list[str]]:
    """Return the addresses of each link that are of more than the link, as a command sees them."""
    found = json.loads(subprocess.check_output([*command, "ip", "-json", "address"], text=True))
    return {
        link["ifname"]: [
            address["local"] for address in link["addr_info"] if address["scope"] == "global"
        ]
        for link in found
    }


def test_nodes_and_pods_have_addresses_of_the_family_and_no_others(family: Family) -> None:
    for name in PODS:
        (known,) = read(f"pod/{name}")["status"]["podIPs"]
        assert addresses_within(inside(name)) == {"lo": [], "eth0": [known["ip"]]}
        assert ip_address(known["ip"]) in ip_network(family.pod_range)
    for place in ("control", *NODES):
        there = addresses_within(["nsenter", f"--net=/run/{NAME}/namespaces/{place}/network"])
        found = [address for addresses in there.values() for address in addresses]
        assert found
        assert {ip_address(address).version for address in found} == {family.version}


def test_there_is_no_way_out_of_any_node(family: Family) -> None:
    nowhere = "192.0.2.1" if family == IPV4 else "2001:db8::1"
    of_the_machine = [
        address
        for link, addresses in addresses_within([]).items()
        for address in addresses
        if Path(f"/sys/class/net/{link}/ifalias").read_text().strip() != NAME
    ]
    assert of_the_machine
    for place in ("control", *NODES):
        for address in ("192.0.2.1", "2001:db8::1", *of_the_machine):
            namespace = f"/run/{NAME}/namespaces/{place}/network"
            command = ["nsenter", f"--net={namespace}", "ip", "route", "get", address]
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            refused = ("No route to host", "Network is unreachable")
            assert said.stderr.strip().endswith(refused), f"{place} has a way to {address}"
    for name in PODS:
        # At once, and not because nobody answers in time.
        unreachable = errno.EHOSTUNREACH if family == IPV4 else errno.ENETUNREACH
        assert ask(name, nowhere) == f"OSError {unreachable}"


def test_policies_hold_between_nodes(family: Family) -> None:
    selector = {"podSelector": {"matchLabels": {"app": "one"}}}
    policy: dict[str, Any] = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "two"},
        "spec": {
            "podSelector": {"matchLabels": {"app": "two"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [selector]}],
            "egress": [],
        },
    }
    with listening(*PODS) as addresses:
        assert ask("three", addresses["two"]) == "two"
        kubectl("apply", "-f", "-", text=json.dumps(policy))
        wait("the policy", lambda: ask("three", addresses["two"]) == "TimeoutError None", 10)
        assert ask("one", addresses["two"]) == "two"
        assert ask("two", addresses["one"]) == "TimeoutError None"
        # All pods but those of the first node.
        block = {"cidr": family.pod_range, "except": [family.pods.format(0)]}
        policy["spec"]["ingress"] = [{"from": [{"ipBlock": block}]}]
        kubectl("apply", "-f", "-", text=json.dumps(policy))
        wait("the block", lambda: ask("three", addresses["two"]) == "two", 10)
        assert ask("one", addresses["two"]) == "TimeoutError None"
        kubectl("delete", "networkpolicy", "two")
        wait("its end", lambda: ask("one", addresses["two"]) == "two", 10)


def test_images_are_loaded_into_all_nodes_and_a_clock_can_be_wrong_on_one() -> None:
    cluster("load", "agent")
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "clock"},
        "spec": {
            "selector": {"matchLabels": {"app": "clock"}},
            "template": {
                "metadata": {"labels": {"app": "clock"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [
                        {
                            "name": "clock",
                            "image": f"docker.io/laptime/agent:{version()}",
                            "command": ["python3", "-u", "-c", CLOCK],
                            "securityContext": {
                                "readOnlyRootFilesystem": True,
                                "runAsNonRoot": True,
                            },
                        }
                    ],
                },
            },
        },
    }
    kubectl("apply", "-f", "-", text=json.dumps(daemon_set))
    kubectl("rollout", "status", "daemonset/clock", "--timeout=60s")

    def offsets() -> dict[str, tuple[float, float]]:
        """Return by how much the two clocks of each node's pod are fast."""
        found = {}
        since = time.clock_gettime(time.CLOCK_REALTIME) - time.monotonic()
        pods = json.loads(kubectl("get", "pods", "-l", "app=clock", "-o", "json"))["items"]
        for one in pods:
            node, name = one["spec"]["nodeName"], one["metadata"]["name"]
            logs = Path(f"/var/lib/{NAME}/{node}/log/pods")
            (log,) = logs.glob(f"default_{name}_*/clock/*.log")
            lines = [line.split(" ", 3) for line in log.read_text().splitlines()[-15:]]
            # The node writes down when it read a line: late on a busy machine, never too early.
            fast = [
                (float(day) - at, float(monotonic) + since - at)
                for written, _, _, said in lines
                for day, monotonic in [said.split()]
                for at in [datetime.fromisoformat(f"{written[:26]}+00:00").timestamp()]
            ]
            found[node] = (max(day for day, _ in fast), max(mono for _, mono in fast))
        return found

    def near(node: str, seconds: float) -> bool:
        found = offsets()
        return set(found) == set(NODES) and all(
            abs(of_day - (seconds if name == node else 0.0)) < 0.1 and abs(since_start) < 0.1
            for name, (of_day, since_start) in found.items()
        )

    wait("the right time", lambda: near("laptime-2", 0.0), 15)
    clock = ("clock", "laptime-2", "0.3", "--namespace", "default", "--daemonset", "clock")
    cluster(*clock)
    kubectl("rollout", "status", "daemonset/clock", "--timeout=60s")
    wait("the wrong time", lambda: near("laptime-2", 0.3), 20)
    before = {one["metadata"]["name"] for one in read("pods")["items"]}
    cluster("clock", "laptime-2", "0", *clock[3:])
    wait("the right time again", lambda: near("laptime-2", 0.0), 20)
    assert {one["metadata"]["name"] for one in read("pods")["items"]} == before
    kubectl("delete", "daemonset", "clock")


def test_a_slow_node_gets_its_share_and_no_more() -> None:
    # In the control group of a pod of the second node.
    command = [sys.executable, "-I", "-c", SPIN, str(cpu_group("two") / "cgroup.procs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None

        def used() -> float:
            """CPUs that it used in its next half second."""
            assert busy.stdout is not None
            return float(busy.stdout.readline())

        try:
            cluster("slow", "laptime-2", "30")
            wait("less", lambda: used() < 0.35, 20)
            cluster("slow", "laptime-2", "100")
            wait("more", lambda: used() > 0.5, 60)
        finally:
            busy.kill()
    refused = cluster("slow", "laptime-2", "0", check=False)
    assert refused.returncode == 1
    assert "write 1 to 100" in refused.stderr


def test_a_frozen_node_does_not_answer_and_others_do() -> None:
    assert kubelet_answers("laptime-2")
    cluster("freeze", "laptime-2")
    assert not kubelet_answers("laptime-2")
    assert kubelet_answers("laptime-3")
    assert "`thaw laptime-2`" in cluster("up", check=False).stderr
    assert cluster("status", check=False).returncode in (0, 1)
    cluster("thaw", "laptime-2")
    wait("the kubelet", lambda: kubelet_answers("laptime-2"), 10)


def test_a_node_that_is_cut_off_reaches_nobody_and_comes_back() -> None:
    with listening("one", "two") as addresses:
        assert ask("one", addresses["two"]) == "two"
        cluster("cut", "laptime-2")
        assert "Error" in ask("one", addresses["two"])
        assert "Error" in ask("two", addresses["one"])
        assert not kubelet_answers("laptime-2")
        wait("that it is missed", lambda: not is_ready("laptime-2"), 90)
        assert "`mend laptime-2`" in cluster("up", check=False).stderr
        cluster("mend", "laptime-2")
        wait("its return", lambda: is_ready("laptime-2"), 60)
        wait("its pod", lambda: ask("one", addresses["two"]) == "two", 10)


def test_a_drained_node_has_no_pods_until_it_may_again() -> None:
    start_pods(pod("drained", "laptime-3"))
    cluster("drain", "laptime-3")
    assert [
        one["metadata"]["name"]
        for one in read("pods")["items"]
        if one["spec"].get("nodeName") == "laptime-3"
    ] == []
    kubectl("apply", "-f", "-", text=json.dumps(pod("three", "laptime-3", app="three")))
    time.sleep(1)
    assert "nodeName" not in read("pod/three")["spec"]
    kubectl("taint", "node", "laptime-3", "dedicated=laptime:NoSchedule")
    assert "the cluster is up" in cluster("up").stdout
    kubectl("taint", "node", "laptime-3", "dedicated-")
    # Of the cluster that there was: a new one would have no pods.
    assert read("pod/one")["status"]["phase"] == "Running"
    cluster("uncordon", "laptime-3")
    kubectl("wait", "--for=condition=Ready", "pod/three", "--timeout=60s")


def test_a_stopped_node_is_dead_and_runs_its_pods_again_when_it_starts() -> None:
    cluster("stop", "laptime-2")
    assert processes_of_the_cluster("laptime-2/") == {}
    assert "kubelet of laptime-2" in cluster("status", check=False).stdout
    wait("that it is missed", lambda: not is_ready("laptime-2"), 90)
    assert is_ready("laptime-3")
    refused = cluster("start", "laptime-3", check=False)
    assert "laptime-3 is not stopped" in refused.stderr
    assert "`start laptime-2`" in cluster("up", check=False).stderr
    cluster("start", "laptime-2")
    assert cluster("status").returncode == 0

    def runs_again() -> bool:
        (status,) = read("pod/two")["status"]["containerStatuses"]
        return bool(status["restartCount"] and status["ready"])

    wait("the pod", runs_again, 60)
    with listening("two") as addresses:
        assert ask("one", addresses["two"]) == "two"


def test_other_addresses_are_refused_and_the_cluster_stays(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "LAPTIME_CLUSTER_FAMILY", "dual")
    refused = cluster("up", check=False)
    assert refused.returncode == 1
    assert f"has the addresses ipv{family.version}, not dual: `down` first" in refused.stderr
    # Only a new one would have others.
    assert cluster("status").returncode == 0


def test_another_number_of_nodes_is_refused_and_the_cluster_stays() -> None:
    refused = cluster("up", "--nodes", "2", check=False)
    assert refused.returncode == 1
    assert "the cluster is up with 3 nodes, not 2" in refused.stderr
    assert "the cluster is up" in cluster("up").stdout
    unknown = cluster("freeze", "laptime-4", check=False)
    assert "there is no node laptime-4; there are laptime, laptime-2, laptime-3" in unknown.stderr
