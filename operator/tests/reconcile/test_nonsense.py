"""What one run says that is nonsense costs nobody but that run.

Whoever may write statuses can write whatever the schema lets through, which is much: times are
texts, and nothing is required. And a schema may be of another version than the operator.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import tracemalloc
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from laptime.api.crd import structural_schema
from laptime.api.status import RunStatus, State
from laptime.manifests.objects import UID_LABEL
from laptime.manifests.result import RESULT_KEY
from laptime.reconcile import worker as module
from laptime.reconcile.abandon import abandoned
from laptime.reconcile.cache import Store, Watch
from laptime.reconcile.controller import Controller
from laptime.reconcile.history import HistoryLimits, surplus
from laptime.reconcile.queue import Card, card_of
from laptime.reconcile.run_metrics import RunFigures
from laptime.reconcile.turns import Turns, Used, next_in_turn
from laptime.reconcile.views import (
    COMPLETION_INDEX,
    MOST_VALUES,
    NotUnderstood,
    parse_time,
    run_view,
    understood,
)

from .api_server import ApiServer, serving
from .nodes import working
from .test_controller import hasty, operating, reason, run_manifest, state, until
from .test_cost import FINISHED, finished
from .test_decide import spec_of

__all__ = ["hasty"]

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SCHEMA = structural_schema(RunStatus.model_json_schema(by_alias=True, mode="serialization"))
MOMENTS = [
    "x",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "2026-05-31T23:59:59.999999999Z",
    "2026-01-01",
]

texts = st.sampled_from([*MOMENTS, "", "\0", "\ud800", "\U0001f600" * 3000]) | st.text(max_size=9)
whole = st.sampled_from([0, 1, -1, 2**63, -(2**63)])
numbers = whole | st.sampled_from([1e308, -1e12, 0.5]) | st.floats()
nonsense = st.recursive(
    st.none() | st.booleans() | texts | numbers | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def odd(schema: Mapping[str, Any], *, whole_ones: bool, wild: bool) -> st.SearchStrategy[Any]:
    """Return what may stand there by the schema, but for what is required; and what may not."""
    kind = schema.get("type")
    if "enum" in schema:
        fitting: st.SearchStrategy[Any] = st.sampled_from(schema["enum"])
    elif kind == "object":
        required = schema.get("required", []) if whole_ones else []
        fields = {
            name: odd(one, whole_ones=whole_ones, wild=wild)
            for name, one in schema.get("properties", {}).items()
        }
        fitting = st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in required},
            optional={name: one for name, one in fields.items() if name not in required},
        )
    elif kind == "array":
        fitting = st.lists(odd(schema["items"], whole_ones=whole_ones, wild=wild), max_size=2)
    else:
        fitting = {"integer": whole, "number": numbers, "boolean": st.booleans()}.get(
            str(kind), texts
        )
    return (
        st.integers(0, 9).flatmap(lambda drawn: fitting if drawn else nonsense)
        if wild
        else (fitting)
    )


statuses = (
    odd(SCHEMA, whole_ones=True, wild=False)
    | odd(SCHEMA, whole_ones=False, wild=False)
    | odd(SCHEMA, whole_ones=True, wild=True)
)
specs: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries(
    {},
    optional={
        "ttlSecondsAfterFinished": st.sampled_from([5, 10**30, -5, math.nan, "x"]),
        "retry": nonsense,
        "placement": nonsense,
        "cancel": nonsense,
        "servers": nonsense,
        "scenario": nonsense,
    },
)
maps = nonsense | st.dictionaries(st.sampled_from(["laptime.dev/keep", "a"]), nonsense)


@st.composite
def odd_runs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a run as the API server has it; it may be told to pause, so that it does no work."""
    manifest = run_manifest("odd")
    manifest["metadata"] |= {"uid": "odd", "resourceVersion": "7", "creationTimestamp": FINISHED}
    for name in ("labels", "annotations"):
        if draw(st.booleans()):
            manifest["metadata"][name] = draw(maps)
    manifest["spec"] = draw(specs.map(lambda more: manifest["spec"] | more) | nonsense)
    return {**manifest, "status": draw(statuses)}


def scraped(figures: RunFigures) -> dict[str, set[str]]:
    """Return the runs that each family has something of, as Prometheus reads it."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(figures.text().decode()):
        for sample in family.samples:
            found.setdefault(family.name, set()).add(sample.labels.get("run", ""))
    return found


def good(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    manifest = run_manifest(name)
    metadata = {"uid": name, "resourceVersion": "8", "creationTimestamp": "2026-01-02T00:00:00Z"}
    return {**manifest, "metadata": manifest["metadata"] | metadata, "status": dict(status)}


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(odd_runs())
def test_whatever_a_run_says_of_itself_the_others_have_their_turns_figures_and_ends(
    manifest: dict[str, Any],
) -> None:
    over = good("over", {"state": "Succeeded", "finishedAt": "2026-05-01T00:00:00Z"})
    waits = good("waits", {"state": "Queued"})
    store: Store[Card] = Store(card_of)
    used, figures = Used(), RunFigures()
    for one in (manifest, over, waits):
        store.put(one)
        figures.see(one)
    cards = {card.uid: card for card in store}
    for card in cards.values():
        used.see(card.uid, card, NOW)
    had = used.seconds(NOW)
    # Nobody is before the others because it had less than nothing.
    assert all(0.0 <= one < math.inf for one in had.values())
    used.see("odd", None, NOW)
    assert all(0.0 <= one < math.inf for one in used.seconds(NOW).values())
    for beside in ([], [cards["odd"]]):
        turn = next_in_turn([*beside, cards["waits"]], [], had, Turns(), lambda _: ["lane"])
        assert turn is not None
        assert turn.card.uid in {"waits", *(one.uid for one in beside)}
    doomed, _ = surplus(cards.values(), HistoryLimits(0, 0), NOW)
    assert "over" in {card.uid for card in doomed}
    deadline = cards["odd"].deadline
    assert deadline is None or abs((deadline - NOW).total_seconds()) < math.inf
    # What is remembered of a run is small, whatever it says.
    assert all(len(str(getattr(cards["odd"], field))) < 300 for field in Card.__slots__)
    assert "over" in scraped(figures)["laptime_run_finished_timestamp_seconds"]
    assert scraped(figures)["laptime_run_info"] == {"odd", "over", "waits"}


def test_a_time_to_live_that_is_no_number_never_ends() -> None:
    over = good("over", {"state": "Succeeded", "finishedAt": "2026-05-01T00:00:00Z"})
    over["spec"] = {**over["spec"], "ttlSecondsAfterFinished": math.nan}
    assert card_of(over).deadline is None


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(odd_runs())
def test_a_run_that_nobody_understands_can_be_ended(manifest: dict[str, Any]) -> None:
    try:
        run_view(manifest)
    except NotUnderstood as error:
        problem = str(error)
    else:
        problem = ""
    assert len(problem) < 3000
    assert isinstance(understood(manifest), RunStatus)
    ended = abandoned(manifest, KeyError("x"), NOW)
    assert RunStatus.model_validate(ended.to_wire()).state is State.FAILED


def test_of_a_status_that_is_not_understood_as_a_whole_the_rest_is_kept() -> None:
    status = {"state": "Running", "seed": 7, "results": [{}], "startedAt": 5, "baseline": "s0"}
    kept = understood({"status": status})
    assert (kept.state, kept.seed, kept.baseline) == (State.RUNNING, 7, "s0")
    assert (kept.results, kept.started_at) == (None, None)


@pytest.mark.parametrize("row", ["{}", '{"server":"","load":"","state":"Pending"}'])
def test_a_status_of_more_values_than_any_run_has_is_not_even_looked_at(row: str) -> None:
    """Of half a million empty rows the mistakes alone have 400 MiB."""
    rows = [dict.fromkeys(["server", "load"], "") | {"state": "Pending"}] * (MOST_VALUES // 3)
    manifest = good("many", {"state": "Queued", "results": [{}] * MOST_VALUES + rows})
    with pytest.raises(NotUnderstood, match="more than"):
        run_view(manifest)
    assert understood(manifest) == RunStatus(state=State.QUEUED)


def test_of_a_run_that_is_shown_no_more_is_held_than_its_text_and_of_a_text_not_megabytes() -> None:
    status = {"state": "Failed", "verdict": "x" * 2**20}
    figures = RunFigures()
    manifest = good("wordy", status | {"results": [{} for _ in range(MOST_VALUES)]})
    size = len(json.dumps(manifest))
    tracemalloc.start()
    figures.see(manifest)
    # As objects the rows alone have six times as much.
    assert tracemalloc.get_traced_memory()[0] < 1.5 * size
    tracemalloc.stop()
    figures.see(good("wordy", status))
    assert len(figures.text()) < 50_000
    assert "wordy" in scraped(figures)["laptime_run_info"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:00.5+02:00", datetime(2025, 12, 31, 22, 0, 0, 500_000, tzinfo=UTC)),
        # Where no zone is said.
        ("2026-01-01T00:00:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("x", None),
        ("", None),
        (None, None),
        (5, None),
        # Nobody can add to it, or take from it.
        ("9999-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_a_time_that_is_none_is_none(text: Any, expected: datetime | None) -> None:
    assert parse_time(text) == expected


NONSENSE: dict[str, dict[str, Any]] = {
    "no time of its turn": {"turnStartedAt": "x"},
    "an end that nobody can add to": {
        "state": "Succeeded",
        "finishedAt": "9999-12-31T23:59:59Z",
    },
    "an end without a zone": {
        "state": "Succeeded",
        "finishedAt": "2026-01-01T00:00:00",
        "usedSeconds": 1,
    },
    "no time of its begin": {"startedAt": "x", "usedSeconds": 0},
    "a lane that is none": {"state": "Running", "startedAt": "x", "placement": {"lane": ["a"]}},
    "rows that are none": {"state": "Running", "results": [{}]},
    "rows that are none, before its turn": {"results": [{}]},
    "less than nothing used": {"usedSeconds": -1e12},
    "a number of retries that is none": {"state": "Failed", "finishedAt": "x", "retries": "x"},
}


@pytest.mark.parametrize("status", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_run_with_nonsense_in_its_status_stops_no_other(
    status: dict[str, Any], when: str, hasty: None
) -> None:
    server = ApiServer()
    # It pauses, so that it asks for no lane where it is understood.
    spec = spec_of(1, 1, 1).to_wire() | {"ttlSecondsAfterFinished": 5, "suspend": True}
    server.add({**run_manifest("a-bad-one"), "spec": spec})
    if when == "before":
        server.change("BenchmarkRun", "default", "a-bad-one", status=status)
    server.add(finished("mortal", ttlSecondsAfterFinished=1))
    async with operating(server, history=HistoryLimits(failed=0)) as controller:
        await until(lambda: server.get("BenchmarkRun", "default", "mortal") is None)
        if when == "meanwhile":
            server.change("BenchmarkRun", "default", "a-bad-one", status=status)
        server.add(run_manifest("good"))
        await until(lambda: state(server, "good") == "Deploying")
        # The page of metrics hears of it by the watch, later than who asks the API server.
        started = b'laptime_run_started_timestamp_seconds{namespace="default",run="good"}'
        await until(lambda: started in controller.metrics.text())
        # What goes is heard of as well, and those that are over still go.
        server.remove("BenchmarkRun", "default", "good")
        server.add(finished("mortal-too", ttlSecondsAfterFinished=1))
        old = {"state": "Failed", "finishedAt": FINISHED}
        server.add({**run_manifest("surplus"), "status": old})
        server.add(run_manifest("next"))
        await until(lambda: state(server, "next") == "Deploying")
        await until(lambda: server.get("BenchmarkRun", "default", "mortal-too") is None)
        await until(lambda: server.get("BenchmarkRun", "default", "surplus") is None)


async def test_a_run_at_work_whose_status_becomes_nonsense_ends_and_leaves_nothing_behind(
    hasty: None,
) -> None:
    server = ApiServer()
    server.add(run_manifest("first"))
    server.add(run_manifest("second"))
    async with operating(server):
        await until(lambda: state(server, "first") == "Deploying" and server.of("Deployment"))
        found = server.get("BenchmarkRun", "default", "first") or {}
        uid = found["metadata"]["uid"]
        server.change(
            "BenchmarkRun", "default", "first", status=found["status"] | {"results": [{}]}
        )
        await until(lambda: state(server, "first") == "Failed")
        assert reason(server, "first", "Succeeded") == "InternalError"
        await until(lambda: state(server, "second") == "Deploying")
        left = [
            one["metadata"]["name"]
            for one in server.of("Deployment")
            if one["metadata"]["labels"]["laptime.dev/run-uid"] == uid
        ]
        assert left == []


@pytest.mark.parametrize("index", ["abc", "", "-1", "1.5", "9" * 63])
async def test_a_pod_whose_place_in_its_job_is_no_number_ends_no_run(
    index: str, hasty: None
) -> None:
    server = ApiServer()
    run = server.add(run_manifest("demo"))
    labels = {UID_LABEL: run["metadata"]["uid"], COMPLETION_INDEX: index}
    labels["laptime.dev/component"] = "generator"
    metadata = {"name": "theirs", "namespace": "default", "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}
    server.add({**pod, "spec": {"containers": [{"name": "k6", "image": "theirs"}]}})
    async with operating(server), working(server):
        await until(lambda: state(server, "demo") in {"Succeeded", "Failed"}, 60)
    assert state(server, "demo") == "Succeeded"
    assert server.get("Pod", "default", "theirs") is not None


async def test_a_result_that_would_fill_the_memory_ends_its_own_run_only(hasty: None) -> None:
    server = ApiServer()
    run = server.add(run_manifest("first"))
    uid = run["metadata"]["uid"]
    labels = {UID_LABEL: uid, "laptime.dev/component": "result"}
    owner = {"apiVersion": "laptime.dev/v1alpha1", "kind": "BenchmarkRun", "name": "first"}
    named = {"name": "first-trial-001", "namespace": "default"}
    metadata = {**named, "labels": labels, "ownerReferences": [{**owner, "uid": uid}]}
    # Of 600 kB, which as objects are 300 MB.
    stored = {RESULT_KEY: json.dumps({"lostAttempts": [{}] * 150_000})}
    server.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": stored})
    async with operating(server), working(server):
        await until(lambda: state(server, "first") == "Failed")
        assert reason(server, "first", "Succeeded") == "InternalError"
        server.add(run_manifest("second"))
        await until(lambda: state(server, "second") == "Succeeded", 60)


async def test_a_run_that_waits_with_a_status_that_is_nonsense_is_refused_once(
    hasty: None, caplog: pytest.LogCaptureFixture
) -> None:
    server = ApiServer()
    server.add(run_manifest("first"))
    async with operating(server):
        await until(lambda: state(server, "first") == "Deploying")
        server.add({**run_manifest("waits"), "status": {"results": [{}], "baseline": "s0"}})
        await until(lambda: reason(server, "waits", "Accepted") == "StatusNotUnderstood")
        server.add(run_manifest("later"))
        await until(lambda: state(server, "later") == "Queued")
    assert state(server, "first") == "Deploying"
    said = [one for one in caplog.records if "waits" in one.getMessage()]
    assert len(said) == 1
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_an_object_that_nobody_understands_is_said_once_and_the_others_are_heard_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laptime.reconcile.cache._RETRY_SECONDS", (0.01,))
    server = ApiServer()

    def keep(manifest: dict[str, Any]) -> str:
        return str(manifest["data"]["text"])

    def add(name: str, **data: str) -> None:
        metadata = {"name": name, "labels": {"mine": "yes"}}
        server.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    add("a")
    add("b", text="b")
    store = Store(keep)
    async with serving(server) as kube:
        watch = Watch(kube, store, "ConfigMap", None, "mine=yes", seconds=5.0)
        task = asyncio.create_task(watch.run())
        await watch.first()
        assert list(store) == ["b"]
        for name in ("c", "d", "e"):
            server.change("ConfigMap", "default", "a", data={})
            # The watch is cut, and all is listed anew.
            server.cut()
            add(name, text=name)
            server.compact()
            await until(lambda name=name: name in list(store))  # type: ignore[misc]
        server.change("ConfigMap", "default", "a", data={"text": "at last"})
        await until(lambda: "at last" in list(store))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    said = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(said) == 1
    assert "ConfigMap default/a" in said[0].getMessage()


async def test_whatever_twenty_runs_say_one_beside_them_is_measured_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole operator, its nodes, and runs whose statuses hypothesis has drawn."""
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01,) * 5)
    server = ApiServer()
    for number, drawn in enumerate(_drawn(20)):
        server.add(
            {
                **run_manifest(f"odd-{number:02d}"),
                "spec": drawn["spec"],
                "status": drawn["status"],
            }
        )
    server.add(finished("mortal", ttlSecondsAfterFinished=1))
    limits = HistoryLimits(1000, 1000)
    async with operating(server, history=limits) as controller, working(server):
        server.add(run_manifest("good"))
        await until(lambda: state(server, "good") == "Succeeded", 120)
        await until(lambda: server.get("BenchmarkRun", "default", "mortal") is None)
        await until(lambda: _shows(controller, "good"))


def _shows(controller: Controller, run: str) -> bool:
    return f'laptime_result_requests_per_second{{bound="estimate",load="l0",namespace="default",place="1",position="1",run="{run}"'.encode() in controller.metrics.text()  # fmt: skip  # noqa: E501


def _drawn(count: int) -> Iterable[dict[str, Any]]:
    """Return runs as hypothesis draws them, the same each time, in statuses that JSON can say."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=3 * count,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(statuses, specs)
    def draw(status: Any, spec: dict[str, Any]) -> None:
        if isinstance(status, dict) and status:
            spec = run_manifest("odd")["spec"] | spec | {"suspend": True}
            found.append({"status": status, "spec": spec})

    draw()
    assert len(found) >= count
    return found[-count:]
