"""The API server refuses bad runs at the door, and says what to write instead.

Everything here is judged by a real API server; creations are dry runs unless a test needs the
object.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from conftest import CRD_FILE
from schema_paths import (
    Bound,
    any_item,
    bounds_of,
    changed,
    defaults_of,
    field_of,
    full_run,
    place_in,
    rules_of,
)

RUN = full_run()
TABLE = Path(__file__).parent / "schema" / "refused.yaml"
SCHEMA: dict[str, Any] = yaml.safe_load(CRD_FILE.read_text())["spec"]["versions"][0]["schema"][
    "openAPIV3Schema"
]
SPEC_SCHEMA: dict[str, Any] = SCHEMA["properties"]["spec"]


@dataclass(frozen=True)
class Refusal:
    """What the API server said: its message, and (field, message) of each cause."""

    message: str
    causes: tuple[tuple[str, str], ...]


class Door:
    """Tries runs on the API server without leaving them there."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._objects = client.CustomObjectsApi(api)
        self._namespace = namespace

    def try_run(self, run: dict[str, Any], validation: str = "Strict") -> dict[str, Any] | Refusal:
        """Return the run as it would be stored, or why it is refused."""
        try:
            stored: Any = self._objects.create_namespaced_custom_object(
                "laptime.dev",
                "v1alpha1",
                self._namespace,
                "benchmarkruns",
                run,
                dry_run="All",
                field_validation=validation,
            )
            assert isinstance(stored, dict)
            return stored
        except client.ApiException as error:
            status = json.loads(error.body or "{}")
            causes = (status.get("details") or {}).get("causes") or []
            return Refusal(
                status["message"],
                tuple((one.get("field", ""), one.get("message", "")) for one in causes),
            )


@pytest.fixture(scope="module")
def door(api: client.ApiClient, crd: dict[str, Any], namespace: str) -> Door:
    return Door(api, namespace)


# ---- every rule and every kind of mistake, by the table


@dataclass(frozen=True)
class Case:
    """One line of the table at one place."""

    place: str
    write: Any
    instead: Any
    says: str
    field: str | None
    also: dict[str, Any]
    only_refused: bool

    def __str__(self) -> str:
        return f"{self.place}={json.dumps(self.write)}"[:80]


def _cases() -> list[Case]:
    cases = []
    for line in yaml.safe_load(TABLE.read_text()):
        places = line["at"] if isinstance(line["at"], list) else [line["at"]]
        for place in places:
            cases.append(
                Case(
                    place,
                    line["write"],
                    line["instead"],
                    line["says"],
                    line.get("field", field_of(place)),
                    line.get("also", {}),
                    line.get("only_refused", False),
                )
            )
    return cases


CASES = _cases()


def test_the_full_run_is_accepted(door: Door) -> None:
    assert not isinstance(stored := door.try_run(RUN), Refusal), stored


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_what_to_write(door: Door, case: Case) -> None:
    refusal = door.try_run(changed(RUN, {**case.also, case.place: case.write}))
    assert isinstance(refusal, Refusal), "the API server accepted it"
    assert case.says
    if case.field is None:
        assert case.says in refusal.message
    else:
        assert any(
            field == case.field and case.says in message for field, message in refusal.causes
        ), refusal


@pytest.mark.parametrize("case", [case for case in CASES if not case.only_refused], ids=str)
def test_what_the_message_asks_for_is_accepted(door: Door, case: Case) -> None:
    stored = door.try_run(changed(RUN, {**case.also, case.place: case.instead}))
    assert not isinstance(stored, Refusal), stored


def test_at_least_forty_mistakes_are_tried() -> None:
    assert len({(case.place, json.dumps(case.write)) for case in CASES}) >= 40


def test_every_rule_of_the_crd_is_hit(door: Door) -> None:
    hit = set()
    for case in CASES:
        refusal = door.try_run(changed(RUN, {**case.also, case.place: case.write}))
        assert isinstance(refusal, Refusal)
        for field, message in refusal.causes:
            hit.add((any_item(field), message.split(": ", 2)[-1]))
    for field, message in set(rules_of(SCHEMA)):
        if _of_changes(message):  # needs a run that exists: tested in test_resource.py
            continue
        assert any(where == field and message.endswith(said) for where, said in hit), (
            f"no case in refused.yaml breaks the rule of {field}: {message}"
        )


def _of_changes(message: str) -> bool:
    return "of a spec can be changed" in message or message.startswith(
        ("a cancelled run cannot go on", "retry can only be raised")
    )


# ---- every bound, made from the CRD

_DECIDED = {
    "spec.precision": None,
    "spec.stopWhen": "decided",
    "spec.smallestDifference": "5%",
}
# Companions of a bound: what else must be so, for the bound alone to decide.
_COMPANIONS: dict[str, dict[str, Any]] = {
    "spec.generator.parallelism maximum": {
        "spec.loads": [{"name": "open", "open": {"rate": 1, "duration": "1s"}}]
    },
    "spec.loads[].saturation.startRate maximum": {"spec.loads.4.saturation.maxRate": 1_000_000},
    "spec.loads[].saturation.maxRate minimum": {"spec.loads.4.saturation.startRate": 1},
    "spec.topology.pgbouncer.poolSize maximum": {
        "spec.topology.postgres.maxConnections": 10000,
        "spec.servers.1.topology": None,
    },
    "spec.topology.postgres.maxConnections minimum": {
        "spec.topology.pgbouncer.poolSize": 5,
        "spec.servers.1.topology": None,
    },
    "spec.servers[].topology.pgbouncer.poolSize maximum": {
        "spec.topology.postgres.maxConnections": 10000,
    },
    "spec.baseline minLength": {"spec.servers.0.name": "a"},
    # The control's name is made from it and must fit as well.
    "spec.baseline maxLength": {"spec.servers.0.name": "a" * 20, "spec.control": None},
    "spec.repetitions maximum": {
        "spec.maxRepetitions": None,
        "spec.control": None,
        "spec.loads": [{"name": "open", "open": {"rate": 1, "duration": "1s"}}],
    },
    "spec.loads[].streams maximum": {
        "spec.topology.haproxy": None,
        "spec.servers.1.topology": None,
        "spec.loads.1.protocol": "http2",
    },
    "spec.loads[].script.options.iterations minimum": {"spec.loads.5.script.options.vus": None},
    "spec.maxRepetitions maximum": {
        "spec.control": None,
        "spec.loads": [{"name": "open", "open": {"rate": 1, "duration": "1s"}}],
    },
    "spec.maxRepetitions minimum": _DECIDED,
    "spec.smallestDifference minLength": _DECIDED,
    "spec.smallestDifference maxLength": _DECIDED,
    "spec.servers[].name minLength": {"spec.baseline": "own"},
    "spec.servers[].name maxLength": {"spec.baseline": "own"},
    "spec.servers minItems": {"spec.baseline": None, "spec.objectives": None},
    "spec.servers maxItems": {
        "spec.baseline": None,
        "spec.objectives": None,
        "spec.repetitions": 1,
        "spec.precision": None,
        "spec.budget": None,
        "spec.maxRepetitions": None,
    },
    "spec.loads minItems": {"spec.objectives": None},
    "spec.loads maxItems": {"spec.objectives": None},
    "spec.objectives[].server minLength": {"spec.servers.1.name": "a"},
    "spec.objectives[].server maxLength": {"spec.servers.1.name": "a" * 20},
    "spec.objectives[].load minLength": {"spec.loads.2.name": "a"},
    "spec.objectives[].load maxLength": {"spec.loads.2.name": "a" * 20},
}
_SHORTENED_OBJECTIVES = ("spec.objectives[].server", "spec.objectives[].load")


def _text(field: str, length: int) -> str:
    """Return a text of that length that the rules of the field allow."""
    if length == 0:
        return ""
    if field.endswith(("healthPath", "script.folder", "writable[]")):
        return "/".ljust(length, "a")
    if field.endswith("cidr"):
        return {4: "::/0", 43: f"{'ffff:' * 7}ffff/128"}.get(length, "1" * length)
    if field.endswith(("precision", "smallestDifference")):
        return "12.34%" if length == 6 else "1" * (length - 1) + "%"
    durations = (
        *("uration", "budget", "warmup", "imeout", ".p99", ".step"),
        *(".latency", ".delay.servers", ".delay.database"),
        *(".connectOver", ".thinkTime.min", ".thinkTime.max"),
    )
    if field.endswith((*durations, "atMost", "atLeast", ".cpu", ".memory")):
        unit = {"memory": "G", "atMost": "", "atLeast": "", "cpu": "", "budget": "m"}.get(
            field.rsplit(".", 1)[1], "s"
        )
        number = length - len(unit)
        return ("1" if number == 1 else "1." + "0" * (number - 2)) + unit
    return "a" * length


def _items(field: str, length: int) -> list[Any]:
    items = changed(RUN, {})
    value: Any = items
    for part in place_in(RUN, field).split("."):
        value = value[int(part) if part.isdigit() else part]
    if field.endswith(("script.files", ".endpoints", ".writable")):
        return [f"{value[0]}-{i}" for i in range(length)]
    if not isinstance(value[0], dict):
        return [value[0]] * length
    return [
        {**copy.deepcopy(value[0]), **({"name": f"n{i}"} if "name" in value[0] else {})}
        for i in range(length)
    ]


def _with_size(bound: Bound, size: int) -> dict[str, Any]:
    """Return the run with the bound's field of that size (value, length or number of items)."""
    if bound.keyword.endswith("Items"):
        value: Any = _items(bound.field, size)
    elif bound.keyword.endswith("Length"):
        value = _text(bound.field, size)
    else:
        value = size
    run = RUN
    if bound.field in _SHORTENED_OBJECTIVES:
        run = changed(run, {"spec.objectives": run["spec"]["objectives"][:1]})
    return changed(run, {**_companions(bound), _place(bound): value})


def _companions(bound: Bound) -> dict[str, Any]:
    return _COMPANIONS.get(f"{bound.field} {bound.keyword}", {})


def _place(bound: Bound) -> str:
    # Not all fields can be in one run: companions may bring the one that this is about.
    return place_in(changed(RUN, _companions(bound)), bound.field)


BOUNDS = list(bounds_of(SPEC_SCHEMA, "spec"))


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_a_value_at_the_bound_is_accepted(door: Door, bound: Bound) -> None:
    stored = door.try_run(_with_size(bound, bound.limit))
    assert not isinstance(stored, Refusal), stored


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_a_value_beyond_the_bound_is_refused_with_the_bound(door: Door, bound: Bound) -> None:
    beyond = bound.limit + (1 if bound.keyword.startswith("max") else -1)
    refusal = door.try_run(_with_size(bound, beyond))
    assert isinstance(refusal, Refusal), "the API server accepted it"
    field = field_of(_place(bound))
    assert any(
        where == field and str(bound.limit) in message for where, message in refusal.causes
    ), refusal


def test_numbers_are_bounded_on_both_sides() -> None:
    by_field: dict[str, set[str]] = {}
    for bound in BOUNDS:
        by_field.setdefault(bound.field, set()).add(bound.keyword)
    for field, keywords in by_field.items():
        if "minimum" in keywords or "maximum" in keywords:
            assert {"minimum", "maximum"} <= keywords, field


# ---- defaults, unknown fields, quantities


def test_what_is_left_out_gets_the_documented_default(door: Door) -> None:
    small = {
        **RUN,
        "spec": {
            "scenario": "users",
            "servers": [
                {"name": "a", "image": "example/a:1", "env": [{"name": "A"}]},
                {"name": "b", "service": {"name": "b", "port": 1, "tls": {"configMap": "b"}}},
            ],
            "topology": {"postgres": {}, "pgbouncer": {}, "haproxy": {}, "upstream": {}},
            "generator": {},
            "loads": [
                {"name": "a", "closed": {"connections": 1, "requests": 1}},
                {"name": "b", "open": {"rate": 1, "duration": "1s"}},
                {"name": "c", "ramp": {"from": 1, "to": 2, "duration": "1s"}},
                {"name": "d", "saturation": {"p99": "50ms"}},
                {"name": "e", "script": {"configMap": "a", "env": [{"name": "A"}]}},
                {"name": "f", "stairs": {"steps": [{"rate": 1, "duration": "1s"}]}},
            ],
        },
    }
    stored = door.try_run(small)
    assert not isinstance(stored, Refusal), stored
    defaults = dict(defaults_of(SPEC_SCHEMA, "spec"))
    assert defaults["spec.repetitions"] == 5
    for field, default in defaults.items():
        value: Any = stored
        for part in place_in(stored, field).split("."):
            value = value[int(part) if part.isdigit() else part]
        assert value == default, field


def test_without_strict_validation_an_unknown_field_is_pruned(door: Door) -> None:
    run = changed(RUN, {"spec.surprise": {"a": 1}, "spec.servers.0.entrypoint": ["id"]})
    stored = door.try_run(run, validation="Ignore")
    assert not isinstance(stored, Refusal), stored
    assert "surprise" not in stored["spec"]
    assert "entrypoint" not in stored["spec"]["servers"][0]


@pytest.mark.parametrize("cpu", [2, "2", "2.5", "500m"])
def test_cpu_may_be_written_with_and_without_quotes(door: Door, cpu: int | str) -> None:
    stored = door.try_run(changed(RUN, {"spec.servers.0.resources.cpu": cpu}))
    assert not isinstance(stored, Refusal), stored
    assert stored["spec"]["servers"][0]["resources"]["cpu"] == cpu
