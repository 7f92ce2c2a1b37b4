"""NetworkPolicies as rules of nftables. Pure.

A pod that a policy selects has a chain for what leaves it, or what comes to it, in which each
allowed thing returns and the rest is dropped. Packets between pods, and those to the control plane
(DNS, the API server), pass `forward`, those from pods to their node `input`; what the node itself
sends to pods (probes, logs) is not asked, as Kubernetes has it, nor what the control plane sends.
Each node has the rules of its own pods alone: what leaves a pod is asked where it starts, what
comes to one where it ends, so that a pod that comes or goes elsewhere changes nothing here unless a
rule names it. Addresses are those after kube-proxy's rules: of pods, not of Services.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from laptime_cluster.layout import FAMILIES, Family

TABLE = "laptime-policies"
Object = Mapping[str, Any]

_OVER = ("Succeeded", "Failed")
# How neighbours find each other: without it nothing that is allowed arrives.
_NEIGHBOURS = ", ".join(
    f"nd-{one}"
    for one in ("neighbor-solicit", "neighbor-advert", "router-solicit", "router-advert")
)


@dataclass(frozen=True)
class _Peers:
    """Whom a rule allows: pods, or a range of addresses, or (None) everybody."""

    pods: tuple[Object, ...] = ()
    block: Object | None = None


def ruleset(
    pods: Iterable[Object],
    namespaces: Iterable[Object],
    policies: Iterable[Object],
    *,
    node: str,
    families: Sequence[Family] = FAMILIES,
) -> str:
    """Return the script for `nft -f` that enforces the policies on a node.

    It replaces what was before. The pods are those of the whole cluster.
    """
    objects = (list(pods), list(namespaces), list(policies))
    return "".join(_table(*objects, node, family) for family in families)


def _table(
    pods: Iterable[Object],
    namespaces: Iterable[Object],
    policies: Iterable[Object],
    node: str,
    family: Family,
) -> str:
    world = _World(pods, namespaces, family)
    chains: list[str] = []
    jumps: dict[str, list[str]] = {"Egress": [], "Ingress": []}
    wanted = sorted(
        policies, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"])
    )
    own_pods = [pod for pod in world.pods if pod["spec"].get("nodeName") == node]
    for number, pod in enumerate(own_pods):
        for direction, found in jumps.items():
            selecting = [one for one in wanted if world.selects(one, pod, direction)]
            if not selecting:
                continue
            name = f"{direction.lower()}-{number}"
            lines = [line for policy in selecting for line in world.allowed(policy, pod, direction)]
            # A pod always reaches itself.
            own = f"{family.keyword} {_SIDES[direction]} {_address(pod)} return"
            body = "\n".join(f"    {line}" for line in dict.fromkeys([own, *lines, "drop"]))
            chains.append(f"  chain {name} {{\n{body}\n  }}")
            found.append(f"{_address(pod)} : jump {name}")
    neighbours = f"icmpv6 type {{ {_NEIGHBOURS} }} accept" if family.version == 6 else ""
    leaving = _jumps(f"{family.keyword} saddr", jumps["Egress"])
    hooks = {
        "forward": [
            f"{family.keyword} saddr {family.control_address} accept",
            leaving,
            _jumps(f"{family.keyword} daddr", jumps["Ingress"]),
        ],
        "input": [neighbours, leaving],
    }
    for hook, lines in hooks.items():
        body = "\n".join(f"    {line}" for line in lines if line)
        chains.append(
            f"  chain {hook} {{\n    type filter hook {hook} priority 10;\n"
            f"    ct state established,related accept\n{body}\n  }}"
        )
    table = f"table {family.keyword} {TABLE}"
    return f"{table}\ndelete {table}\n{table} {{\n" + "\n".join(chains) + "\n}\n"


# Where the other side of a connection stands in a packet.
_SIDES = {"Egress": "daddr", "Ingress": "saddr"}


def _jumps(side: str, found: Sequence[str]) -> str:
    return f"{side} vmap {{ {', '.join(found)} }}" if found else ""


def _address(pod: Object) -> str:
    address: str = pod["status"]["podIP"]
    return address


class _World:
    """The pods and namespaces that selectors are about."""

    def __init__(
        self, pods: Iterable[Object], namespaces: Iterable[Object], family: Family
    ) -> None:
        self._family = family
        # A rule for no pod must not become one for all.
        self._nobody: tuple[Object, ...] = ({"status": {"podIP": family.nobody}},)
        own = (_in_family(pod, family) for pod in filter(_has_a_network, pods))
        # A node that was killed gives addresses out again, and its old pods are still known: nft
        # takes none of the rules where one address is in them twice.
        youngest = {
            _address(pod): pod
            for pod in sorted(
                filter(None, own), key=lambda one: one["metadata"]["creationTimestamp"]
            )
        }
        self.pods = [youngest[address] for address in sorted(youngest)]
        self._labels = {one["metadata"]["name"]: _labels(one) for one in namespaces}

    def selects(self, policy: Object, pod: Object, direction: str) -> bool:
        """Whether a policy isolates a pod in a direction."""
        spec = policy["spec"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return (
            direction in types
            and policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and matches(spec.get("podSelector"), _labels(pod))
        )

    def allowed(self, policy: Object, pod: Object, direction: str) -> Iterator[str]:
        """Yield a rule of nftables for each thing that a policy allows a pod."""
        egress = direction == "Egress"
        for rule in policy["spec"].get(direction.lower()) or []:
            everybody = [_Peers()]
            peers = [
                self._peers(peer, policy["metadata"]["namespace"])
                for peer in rule.get("to" if egress else "from") or []
            ]
            for one in peers or everybody:
                for port in rule.get("ports") or [None]:
                    yield from self._rules(one, port, pod, egress)

    def _peers(self, peer: Object, namespace: str) -> _Peers:
        if "ipBlock" in peer:
            # What is only in another family is nobody.
            if ip_network(peer["ipBlock"]["cidr"], strict=False).version != self._family.version:
                return _Peers(pods=self._nobody)
            return _Peers(block=peer["ipBlock"])
        where = peer.get("namespaceSelector")
        return _Peers(
            pods=tuple(
                pod
                for pod in self.pods
                if matches(peer.get("podSelector"), _labels(pod))
                and (
                    pod["metadata"]["namespace"] == namespace
                    if where is None
                    else matches(where, self._labels.get(pod["metadata"]["namespace"], {}))
                )
            )
            or self._nobody
        )

    def _rules(
        self, peers: _Peers, port: Object | None, pod: Object, egress: bool
    ) -> Iterator[str]:
        side = f"{self._family.keyword} {'daddr' if egress else 'saddr'}"
        if port is None or not isinstance(port.get("port"), str):
            yield f"{_whom(peers, side)}{_port(port)}return"
            return
        # A name means another number in each pod that has the port.
        targets = (peers.pods or self.pods) if egress else [pod]
        for number in sorted({n for target in targets for n in _numbers(target, port)}):
            those = tuple(target for target in targets if number in _numbers(target, port))
            whom = _Peers(pods=those) if egress and peers.block is None else peers
            yield f"{_whom(whom, side)}{_port({**port, 'port': number})}return"


def _whom(peers: _Peers, side: str) -> str:
    if peers.block is not None:
        excepted = peers.block.get("except") or []
        but = f"{side} != {{ {', '.join(sorted(excepted))} }} " if excepted else ""
        return f"{side} {peers.block['cidr']} {but}"
    if not peers.pods:
        return ""
    return f"{side} {{ {', '.join(sorted(_address(pod) for pod in peers.pods))} }} "


def _port(port: Object | None) -> str:
    if port is None:
        return ""
    protocol = port.get("protocol", "TCP").lower()
    if "port" not in port:
        return f"meta l4proto {protocol} "
    last = f"-{port['endPort']}" if "endPort" in port else ""
    return f"{protocol} dport {port['port']}{last} "


def _numbers(pod: Object, port: Object) -> set[int]:
    """Return the ports of a pod that have this name."""
    return {
        one["containerPort"]
        for container in (pod.get("spec") or {}).get("containers") or []
        for one in container.get("ports") or []
        if one.get("name") == port["port"]
        and one.get("protocol", "TCP") == port.get("protocol", "TCP")
    }


def matches(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match a selector; an empty one matches all."""
    selector = selector or {}
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(one, labels) for one in selector.get("matchExpressions") or []
    )


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels


def _has_a_network(pod: Object) -> bool:
    status = pod.get("status") or {}
    own = not (pod.get("spec") or {}).get("hostNetwork")
    return own and bool(status.get("podIP")) and status.get("phase") not in _OVER


def _in_family(pod: Object, family: Family) -> Object | None:
    """The pod with its address of a family, or None when it has none there."""
    status = pod["status"]
    for one in status.get("podIPs") or [{"ip": status["podIP"]}]:
        if ip_address(one["ip"]).version == family.version:
            return {**pod, "status": {**status, "podIP": one["ip"]}}
    return None


def _labels(one: Object) -> Mapping[str, str]:
    return one["metadata"].get("labels") or {}
