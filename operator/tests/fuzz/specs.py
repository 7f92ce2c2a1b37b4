"""Specs made from the CRD's schema: each field within its bounds, and some of them beyond.

Bounds and enumerations are read from the schema; what several fields must agree on (names that
others refer to, one shape for each load) is arranged afterwards, or most would be refused.
`spoil` then breaks some of them again.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from laptime.api.durations import parse_duration
from laptime.api.topology import SIZED_TIERS
from laptime.catalog import presets, scenarios
from laptime.cli.generate import catalogue_crd
from tests.attacks import ATTACKS

Node = dict[str, Any]

SCHEMA: Node = catalogue_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][
    "spec"
]
_TEXTS = [text for text in ATTACKS.values() if "\ud83c" not in text] + [
    "",
    "plain",
    "$(HOME)",
    "🍲",
]
_SHAPES = ("closed", "open", "ramp", "stairs", "saturation", "script")
_LATENCIES = ("mean", "p50", "p90", "p99", "p999")
_FEWEST = {"precision": 8, "stopWhen": 3}
"""After so many repetitions such runs look at first."""


def make(random: Random, most_trials: int) -> Node:
    """Return a spec of at most so many trials that the API server should take."""
    spec = _Maker(random).value(SCHEMA, "spec")
    _arrange(spec, random, most_trials)
    assert isinstance(spec, dict)
    return spec


def spoil(spec: Node, random: Random) -> Node:
    """Return the spec with something in it changed, which the API server will often refuse."""
    spoiled = copy.deepcopy(spec)
    places = list(_places(spoiled))
    holder, key = random.choice(places)
    change: Callable[[Any], Any] = random.choice(_CHANGES)
    value = change(copy.deepcopy(holder[key]))
    if value is _GONE:
        del holder[key]
    else:
        holder[key] = value
    return spoiled


_GONE = object()
_CHANGES: list[Callable[[Any], Any]] = [
    lambda _: _GONE,
    lambda _: None,
    lambda value: [value, value],
    lambda value: {"a": value},
    lambda value: value * 7 if isinstance(value, int | list) else f"{value}0",
    lambda value: -value if isinstance(value, int | float) else f"-{value}",
    lambda value: 0 if isinstance(value, int) else "",
    lambda value: 2**63 if isinstance(value, int) else f"{value}" * 300,
    lambda value: str(value) if isinstance(value, int | float) else 7,
    lambda value: value + 0.5 if isinstance(value, int) else "\x1b[2J",
    lambda value: not value,
    lambda value: f"{value}\n" if isinstance(value, str) else value,
]


def _places(node: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in children:
        found.append((node, key))
        if isinstance(child, dict | list):
            found += _places(child)
    return found


class _Maker:
    """Makes values for the nodes of the schema."""

    def __init__(self, random: Random) -> None:
        self.random = random
        # Of one spec all optional fields are likely, of another hardly any.
        self.likely = random.choice([0.05, 0.3, 0.6, 0.95])

    def value(self, node: Node, path: str) -> Any:
        random = self.random
        if "enum" in node:
            return random.choice(node["enum"])
        if node.get("x-kubernetes-int-or-string"):
            pool = ["1Gi", "256Mi", "4Mi", "64Mi"] if path.endswith("memory") else ["1", "250m", 2]
            return random.choice(pool)
        match node["type"]:
            case "object":
                required = node.get("required", [])
                return {
                    name: self.value(child, f"{path}.{name}")
                    for name, child in node["properties"].items()
                    if name in required or random.random() < self.likely
                }
            case "array":
                return self._list(node, path)
            case "boolean":
                return random.random() < 0.5
            case "integer":
                return self._integer(node["minimum"], node["maximum"])
            case "number":
                return random.choice([node["minimum"], node["maximum"], random.random(), 0.001])
        return self._text(node, path)

    def _integer(self, least: int, most: int) -> int:
        if self.random.random() < 0.2:
            return self.random.choice([least, most])
        # As many small ones as large ones.
        low = math.log(least + 1)
        found = math.exp(self.random.uniform(low, math.log(most + 1))) - 1
        return min(most, max(least, round(found)))

    def _list(self, node: Node, path: str) -> list[Any]:
        most = node.get("maxItems", 3)
        count = self.random.choice([1, 1, 2, 3, min(5, most)])
        made = [self.value(node["items"], f"{path}[]") for _ in range(min(count, most))]
        if not isinstance(made[0], dict) or "name" not in made[0]:
            return made if node["items"].get("type") == "object" else sorted(set(made))
        # Names are keys.
        return list({one["name"]: one for one in made}.values())

    def _text(self, node: Node, path: str) -> str:
        rules = [one["rule"] for one in node.get("x-kubernetes-validations", [])]
        pattern = next((found[1] for one in rules if (found := _MATCHES.search(one))), None)
        if pattern is None:
            text: str = self.random.choice(_TEXTS)[: node.get("maxLength", 100)]
            return text if len(text) >= node.get("minLength", 0) else "text"
        if "duration(" in " ".join(rules):
            return self._duration(" ".join(rules))
        for known, pool in _OF_PATTERN.items():
            if pattern.startswith(known):
                return self.random.choice(pool)
        raise AssertionError(f"{path}: no text is known for the pattern {pattern}")

    def _duration(self, rule: str) -> str:
        bounds = [parse_duration(one) for one in re.findall(r"duration\('([^']+)'\)", rule)]
        least, most = min(bounds), max(bounds)
        if self.random.random() < 0.1:
            seconds = self.random.choice([least, most])
        else:
            low = math.log(max(least, 1e-4))
            seconds = math.exp(self.random.uniform(low, math.log(most)))
        seconds = min(most, max(least, seconds))
        if seconds >= 60 or seconds == int(seconds):
            return f"{int(seconds)}s"
        # Of a delay only whole milliseconds are taken.
        return f"{round(seconds * 1e6)}us" if "(us|ms)" in rule else f"{math.ceil(seconds * 1e3)}ms"


_OF_AN_IMAGE = ("image", "port", "healthPath", "healthPort", "command", "args", "user", "writable")

_MATCHES = re.compile(r"self\.matches\('([^']+)'\)")
# Patterns by how they begin: a new one in the schema needs texts here.
_OF_PATTERN: Mapping[str, list[str]] = {
    "^[a-z]([-a-z0-9]*": ["a", "axum", "fastapi-16", "a" * 20, "x--y", "z9"],
    "^[a-z0-9]([-a-z0-9.]*": ["my-k6-script", "a.b", "0"],
    "^[a-z0-9]([-a-z0-9]*": ["payments", "0", "a" * 63],
    "^/[!-~]*$": ["/", "/healthz", "/ready?full=1"],
    "^/([A-Za-z0-9._~-]+(/": ["/live", "/actuator/health", "/"],
    "^[a-z0-9][-._a-z0-9/:]*": ["registry.example/a/b:1.2", "a", f"a@sha256:{'0' * 64}"],
    "^[-._a-zA-Z0-9]+$": ["script.js", "a", "a..", "x" * 253],
    "^[.]?[-_a-zA-Z0-9]": ["script.js", "a", ".a", "x" * 253, "shop/main.js"],
    "^(/[-_.A-Za-z0-9]+)+": ["/data", "/var/lib/app", "/" + "x" * 254],
    "^(/[.]?[-_a-zA-Z0-9]": ["/scripts", "/a/.b/c..", "/" + "x" * 252],
    "^[A-Za-z_][A-Za-z0-9_]*$": ["MODE", "_", "a1", "LONG" * 16],
    "^[A-Za-z_][-._A-Za-z0-9]*$": ["team", "a.b-c"],
    "^([1-9][0-9]?([.]": ["2%", "0.5%", "99%", "10.25%"],
    "^((25[0-5]": ["10.0.0.0/8", "203.0.113.7/32", "0.0.0.0/0", "2001:db8::/32", "::/0"],
}


def _arrange(spec: Node, random: Random, most_trials: int) -> None:
    """Make parts of a spec agree with each other."""
    if spec["scenario"] not in scenarios():
        # A name of any other scenario is right as well; there would be nothing to simulate.
        spec["scenario"] = random.choice(sorted(scenarios()))
    scenario = scenarios()[spec["scenario"]]
    fitting = [name for name, one in presets().items() if scenario.name in one.scenarios]
    for number, server in enumerate(spec["servers"]):
        # Names may be long, and short enough for a control.
        server["name"] = f"{server['name'][: random.choice([8, 17])].rstrip('-')}{number:02d}"
        if "service" in server and random.random() < 0.2:
            _arrange_service(server)
        elif random.random() < 0.7 and fitting:
            for own in (*_OF_AN_IMAGE, "service"):
                server.pop(own, None)
            server["preset"] = random.choice(fitting)
        else:
            server.pop("preset", None)
            server.pop("service", None)
            server.setdefault("image", "registry.example/mine:1")
        for variable in server.get("env", []):
            if "secret" in variable:
                variable.pop("value", None)
    if random.random() < 0.9:
        # A shorter one ends most runs before their first trial.
        spec.pop("startupTimeout", None)
    _arrange_topology(spec, random)
    for number, load in enumerate(spec["loads"]):
        load["name"] = f"{load['name'][:17].rstrip('-')}{number:02d}"
        _arrange_load(load, random, [one.name for one in scenario.requests])
    _arrange_pairing(spec)
    if spec.get("generator", {}).get("parallelism", 1) > 1:
        _arrange_generators(spec)
    if any(one.get("profile") for one in spec["servers"]) and all(
        "saturation" in one for one in spec["loads"]
    ):
        for one in spec["servers"]:
            one.pop("profile", None)
    _arrange_trials(spec, random, most_trials)
    names = [one["name"] for one in spec["servers"]]
    if "baseline" in spec:
        spec["baseline"] = random.choice(names)
    if spec.get("control") and len(spec.get("baseline", names[0])) > 12:
        spec["control"] = False
    for objective in spec.get("objectives", []):
        _arrange_objective(objective, random, names, [one["name"] for one in spec["loads"]])
    for destination in spec.get("egress", []):
        if "namespace" in destination:
            destination.pop("cidr", None)
        else:
            destination.setdefault("cidr", "10.0.0.0/8")


def _arrange_pairing(spec: Node) -> None:
    """Leave a duet what two servers may have that share nothing but the machine."""
    if spec.get("pairing") != "duet":
        return
    shared = {"postgres", "haproxy", "upstream", "delay"} & set(spec["topology"])
    scenario = scenarios()[spec["scenario"]]
    needed = {"postgres": scenario.needs_database, "upstream": scenario.needs_upstream}
    servers = [one for one in spec["servers"] if "service" not in one][:2]
    lasting = [
        one
        for one in spec["loads"]
        if not {"saturation", "script"} & set(one) and "requests" not in one.get("closed", {})
    ]
    if any(needed.get(one) for one in shared) or len(servers) < 2 or not lasting:
        del spec["pairing"]
        return
    spec["servers"], spec["loads"], spec["control"] = servers, lasting, False
    for tier in shared:
        spec["topology"].pop(tier)
    spec["topology"].pop("pgbouncer", None)
    _arrange_pools(servers, spec["topology"])


def _arrange_service(server: Node) -> None:
    """Leave of a server what one has that is there already."""
    for deployed in set(server) - {"name", "service"}:
        del server[deployed]
    service = server["service"]
    if "portName" in service:
        service.pop("port", None)
    else:
        service.setdefault("port", 80)


def _arrange_topology(spec: Node, random: Random) -> None:
    topology = spec.setdefault("topology", {})
    scenario = scenarios()[spec["scenario"]]
    sqlite = scenario.offers_sqlite and topology.get("database") == "sqlite"
    if sqlite:
        topology.pop("postgres", None)
    else:
        topology.pop("database", None)
        if scenario.needs_database:
            topology.setdefault("postgres", {})
    if scenario.needs_upstream:
        topology.setdefault("upstream", {})
    if "postgres" not in topology:
        topology.pop("pgbouncer", None)
    _arrange_pools(spec["servers"], topology)
    delay = topology.get("delay")
    if any("service" in one for one in spec["servers"]) and random.random() < 0.9:
        # Else the run ends before its first trial.
        topology.pop("haproxy", None)
        for one in spec["servers"]:
            one.get("topology", {}).pop("haproxy", None)
        topology.pop("delay", None)
        delay = None
    if delay is not None:
        if "postgres" not in topology:
            delay.pop("database", None)
        if not delay:
            delay["servers"] = random.choice(["20ms", "1.5s"])


def _arrange_pools(servers: list[Node], topology: Node) -> None:
    """Leave servers settings of their own in the tiers that there are, and pools that fit."""
    own = [one["topology"] for one in servers if "topology" in one]
    for name in {"pgbouncer", "haproxy", "upstream"} - set(topology):
        for one in own:
            one.pop(name, None)
    for name in SIZED_TIERS:
        if "cpu" not in topology.get(name, {}).get("resources", {}):
            for one in own:
                one.get(name, {}).pop("cpu", None)
    for one in own:
        if one.get("postgres") == {}:
            del one["postgres"]
    if "pgbouncer" not in topology:
        if "postgres" in topology:
            for one in servers:
                _arrange_connections(one, topology["postgres"].get("maxConnections", 100))
        return
    pools = [topology["pgbouncer"], *(one["pgbouncer"] for one in own if "pgbouncer" in one)]
    most = topology["postgres"].get("maxConnections", 100)
    sizes = [one.get("poolSize", pools[0].get("poolSize", 25)) for one in pools]
    # With a database each, every server has a pool, and so has the control.
    each = len(servers) + 1
    if each >= most or topology["postgres"].get("databases") != "perServer":
        topology["postgres"].pop("databases", None)
        each = 1
    # Each pool is smaller than what Postgres takes.
    if each * sum(sizes) < most:
        return
    if each * len(pools) >= most:
        for one in own:
            one.pop("pgbouncer", None)
        pools = pools[:1]
    for one in pools:
        one["poolSize"] = (most - 1) // (each * len(pools))


def _arrange_connections(server: Node, most: int) -> None:
    """Leave a server no more connections than Postgres takes, each of its workers a process."""
    if server.get("workers", 1) > most:
        server["workers"] = most
    room = most // server.get("workers", 1)
    if server.get("databaseConnections", 5) > room:
        server["databaseConnections"] = room


def _arrange_load(load: Node, random: Random, endpoints: list[str]) -> None:
    node = SCHEMA["properties"]["loads"]["items"]["properties"]
    shapes = [one for one in _SHAPES if one in load] or [random.choice(_SHAPES)]
    shape = random.choice(shapes)
    for other in _SHAPES:
        if other != shape:
            load.pop(other, None)
    content = load.setdefault(shape, None) or _Maker(random).value(node[shape], shape)
    load[shape] = content
    if "endpoints" in load:
        fitting = sorted(set(load["endpoints"]) & set(endpoints)) or endpoints[:1]
        load["endpoints"] = fitting
        load.pop("mix", None)
    if "mix" in load:
        weights = [one["weight"] for one in load["mix"]]
        named = zip(endpoints, weights, strict=False)
        load["mix"] = [{"name": name, "weight": weight} for name, weight in named]
    if shape != "closed":
        load.pop("thinkTime", None)
    elif "thinkTime" in load:
        load["thinkTime"] = {"min": "0s", **load["thinkTime"], "max": "1h"}
    if content.get("keepAlive") is False:
        content.pop("connectOver", None)
    if shape == "closed":
        if random.random() < 0.5 and "requests" in content:
            content.pop("duration", None)
            content["requests"] = max(content["requests"], content["connections"])
        else:
            content.pop("requests", None)
            content.setdefault("duration", "2s")
    elif shape == "saturation":
        low, high = content.get("startRate", 100), content.get("maxRate", 100_000)
        if low > high:
            content["startRate"], content["maxRate"] = high, low
        if 2 * parse_duration(content["p99"]) > parse_duration(content.get("step", "5s")):
            content["p99"] = "500ms"
    elif shape == "script":
        if "image" in content and random.random() < 0.3:
            content.pop("configMap", None)
            content.pop("files", None)
        else:
            content.pop("image", None)
            content.pop("folder", None)
            content.setdefault("configMap", "my-k6-script")
            content["key"] = content.get("key", "script.js").replace("/", "-")
        load.pop("endpoints", None)
        load.pop("mix", None)
        load.pop("warmup", None)
        load.pop("timeout", None)
        options = content.get("options") or {}
        if "stages" in options:
            options.pop("duration", None)
            options.pop("iterations", None)
        if "iterations" in options:
            options["iterations"] = max(options["iterations"], options.get("vus", 1))


def _arrange_generators(spec: Node) -> None:
    count = spec["generator"]["parallelism"]
    for load in spec["loads"]:
        if "script" in load or "saturation" in load:
            spec["generator"]["parallelism"] = 1
            return
        for shape, field in (("closed", "connections"), ("open", "maxConnections"),
                             ("ramp", "maxConnections"), ("stairs", "maxConnections")):  # fmt: skip
            if field in load.get(shape, {}):
                load[shape][field] = max(load[shape][field], count)
        closed = load.get("closed", {})
        if "requests" in closed:
            closed["requests"] = max(closed["requests"], closed["connections"])


def _arrange_trials(spec: Node, random: Random, most: int) -> None:
    while (len(spec["servers"]) + 1) * len(spec["loads"]) > most:
        longer = max(("servers", "loads"), key=lambda key: len(spec[key]))
        spec[longer].pop()
    each = (len(spec["servers"]) + bool(spec.get("control"))) * len(spec["loads"])
    room = max(1, most // each)
    spec["repetitions"] = min(spec.get("repetitions", 5), room, 100)
    able = [name for name, fewest in _FEWEST.items() if name in spec and room >= fewest]
    if len(spec["servers"]) < 2 and "stopWhen" in able:
        able.remove("stopWhen")
    stops = random.choice(able) if able else None
    left_out = _FEWEST.keys() - {stops}
    left_out |= set() if stops else {"maxRepetitions", "budget"}
    left_out |= set() if stops == "stopWhen" else {"smallestDifference"}
    for name in left_out:
        spec.pop(name, None)
    if stops is not None:
        fewest = max(_FEWEST[stops], spec["repetitions"])
        spec["maxRepetitions"] = random.randint(fewest, min(200, max(room, fewest)))


def _arrange_objective(one: Node, random: Random, servers: list[str], loads: list[str]) -> None:
    one["server"], one["load"] = random.choice(servers), random.choice(loads)
    bound = random.choice(["atMost", "atLeast"])
    for name in ("atMost", "atLeast"):
        one.pop(name, None)
    latency = one["metric"] in _LATENCIES
    numbers = ["0.001", "1", *["900"] * (one["metric"] == "requestsPerSecond")]
    one[bound] = random.choice(["5ms", "1s", "200us"] if latency else numbers)
    if not latency:
        one.pop("errorRate", None)
