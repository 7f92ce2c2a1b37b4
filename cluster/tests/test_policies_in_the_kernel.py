"""Real connections between network namespaces, with the rules of a policy between them."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

import pytest

from laptime_cluster.layout import IPV4, IPV6, Family
from laptime_cluster.policies import ruleset

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("nft", "ip", "unshare", "nsenter"))),
    reason="needs root, nftables and iproute2",
)

LISTEN = """
import socket, threading
def serve(listener):
    while True:
        listener.accept()
both = {"family": socket.AF_INET6, "dualstack_ipv6": True}
for listener in [socket.create_server(("", port), **both) for port in (53, 80, 9100)]:
    threading.Thread(target=serve, args=(listener,)).start()
print("there", flush=True)
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.7)"


class Machine:
    """A node and its pods, each a network namespace."""

    def __init__(self, stack: ExitStack, family: Family) -> None:
        self._stack = stack
        self.family = family
        self._processes: dict[str, int] = {}
        self.addresses: dict[str, str] = {"node": self._address(1)}
        self._namespace("node")
        self.run("node", "tee /proc/sys/net/ipv4/ip_forward", "1")
        self.run("node", "tee /proc/sys/net/ipv6/conf/all/forwarding", "1")
        self.run("node", f"ip address add {self._address(1)} dev lo")
        self.listen("node")

    def pod(self, name: str) -> None:
        number = len(self.addresses) + 1
        address = self.addresses[name] = self._address(number)
        node = self.addresses["node"]
        self._namespace(name)
        link, there = f"veth{number}", self._processes[name]
        self.run("node", f"ip link add {link} type veth peer name eth0 netns {there}")
        self.run("node", f"ip link set {link} up")
        if self.family == IPV6:
            # As `ptp` does: a neighbour answers only for what the link itself has.
            self.run("node", f"ip address add {node} dev {link}")
        self.run("node", f"ip route add {address} dev {link} src {node}")
        for command in (
            f"ip address add {address} dev eth0",
            "ip link set eth0 up",
            "ip link set lo up",
            f"ip route add {node} dev eth0",
            f"ip route add default via {node}",
        ):
            self.run(name, command)
        self.listen(name)

    def listen(self, name: str) -> None:
        self._start([*self._inside(name), "python3", "-c", LISTEN])

    def run(self, name: str, command: str, stdin: str | None = None) -> None:
        words = [*self._inside(name), *command.split()]
        subprocess.run(words, input=stdin, text=True, stdout=subprocess.DEVNULL, check=True)

    def forget_neighbours(self) -> None:
        """Have everybody look for the links of the others anew."""
        for name in self.addresses:
            self.run(name, "ip neighbour flush all")

    def reaches(self, source: str, target: str, port: int) -> bool:
        command = ["python3", "-c", CONNECT, self.addresses[target], str(port)]
        done = subprocess.run(
            [*self._inside(source), *command], capture_output=True, timeout=20, check=False
        )
        return done.returncode == 0

    def all_of(self, ways: Iterable[tuple[str, str, int]]) -> dict[tuple[str, str, int], bool]:
        """Try to connect along all ways; what is dropped takes its time."""
        asked = list(ways)
        with ThreadPoolExecutor(4) as threads:
            found = threads.map(lambda way: self.reaches(*way), asked)
            return dict(zip(asked, found, strict=True))

    def _address(self, number: int) -> str:
        return str(ip_network(self.family.pods.format(0))[number])

    def _namespace(self, name: str) -> None:
        sleeping = ["unshare", "--net", "sh", "-c", "echo there; exec sleep 600"]
        self._processes[name] = self._start(sleeping).pid
        for which in ("all", "default"):
            self.run(name, f"tee /proc/sys/net/ipv6/conf/{which}/accept_dad", "0")
        self.run(name, "ip link set lo up")

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start what says that it is there once it is."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._stack.enter_context(_ended(process))
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        return process

    def _inside(self, name: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._processes[name]}/ns/net"]


def _ended(process: subprocess.Popen[bytes]) -> ExitStack:
    stack = ExitStack()
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    return stack


@pytest.fixture(params=[IPV4, IPV6], ids=["ipv4", "ipv6"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with ExitStack() as stack:
        made = Machine(stack, request.param)
        for name in ("server", "postgres", "stranger", "prometheus"):
            made.pod(name)
        yield made


def test_connections_are_those_that_a_policy_allows(machine: Machine) -> None:
    def pod(name: str, namespace: str, **labels: str) -> dict[str, Any]:
        ports = [{"name": "metrics", "containerPort": 9100}]
        return {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": "node", "containers": [{"name": "main", "ports": ports}]},
            "status": {"podIP": machine.addresses[name], "phase": "Running"},
        }

    pods = [
        pod("server", "runs", run="a"),
        pod("postgres", "runs", run="a"),
        pod("stranger", "runs"),
        pod("prometheus", "watch"),
    ]
    namespaces = [
        {"metadata": {"name": name, "labels": {"is": name}}} for name in ("runs", "watch")
    ]
    of_the_run = {"matchLabels": {"run": "a"}}
    watch = {"namespaceSelector": {"matchLabels": {"is": "watch"}}}
    policy = {
        "metadata": {"name": "a-network", "namespace": "runs"},
        "spec": {
            "podSelector": of_the_run,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [{"podSelector": of_the_run}]},
                {"from": [watch], "ports": [{"port": "metrics"}]},
            ],
            "egress": [
                {"to": [{"podSelector": of_the_run}]},
                {
                    "to": [{"ipBlock": {"cidr": str(ip_network(machine.addresses["node"]))}}],
                    "ports": [{"port": 53}],
                },
            ],
        },
    }
    ways = {
        ("server", "postgres", 80): True,
        ("server", "server", 80): True,
        # DNS, and nothing else of the node.
        ("server", "node", 53): True,
        ("server", "node", 80): False,
        ("server", "stranger", 80): False,
        ("stranger", "postgres", 80): False,
        ("stranger", "postgres", 9100): False,
        ("prometheus", "postgres", 9100): True,
        ("prometheus", "postgres", 80): False,
        ("stranger", "prometheus", 80): True,
        # Probes come from the node.
        ("node", "server", 80): True,
    }
    assert machine.all_of(ways) == dict.fromkeys(ways, True)
    families = (machine.family,)
    machine.run(
        "node", "nft -f -", ruleset(pods, namespaces, [policy], node="node", families=families)
    )
    machine.forget_neighbours()
    assert machine.all_of(ways) == ways
    machine.run("node", "nft -f -", ruleset(pods, namespaces, [], node="node", families=families))
    assert machine.all_of(ways) == dict.fromkeys(ways, True)
