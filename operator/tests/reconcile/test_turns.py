"""Whose turn it is, and how large a run may be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from laptime.api.pairing import Pairing
from laptime.api.resources import Resources
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import ConditionStatus, ConditionType, RunStatus, State
from laptime.api.topology import Topology
from laptime.reconcile import worker
from laptime.reconcile.decide import asked_again
from laptime.reconcile.queue import Card, card_of
from laptime.reconcile.settings import Settings, SettingsError, load_settings
from laptime.reconcile.sightings import without_absence
from laptime.reconcile.turns import Caps, Turn, Turns, Used, cap_exceeded, next_in_turn
from laptime.reconcile.views import format_time, seconds_used

from .api_server import ApiServer
from .test_controller import operating, reason, run_manifest, state, until
from .test_deadlines import over, said
from .test_deadlines import until as world_until
from .test_decide import spec_of
from .world import IMAGES, World, manifest_of

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def card(namespace: str, created: int, **more: Any) -> Card:
    return Card(namespace, f"run-{created}", f"{namespace}-{created}", f"{created:04d}", **more)


def alone(cards: list[Card], had: dict[str, float], turns: Turns) -> Card | None:
    """Return whose turn it is where there are no lanes and nobody is at work."""
    turn = next_in_turn(cards, [], had, turns, lambda _: ())
    assert turn is None or turn.lane is None
    return turn.card if turn is not None else None


def order(cards: list[Card], turns: Turns, seconds: float = 60.0) -> list[str]:
    """Return whose runs are measured one after the other, each for so long."""
    used, left, had = Used(), list(cards), []
    while (chosen := alone(left, used.seconds(NOW), turns)) is not None:
        left.remove(chosen)
        had.append(chosen.uid)
        used.see(chosen.uid, replace(chosen, used_seconds=seconds, finished=NOW), NOW)
    return had


def test_namespaces_take_turns_however_many_runs_one_of_them_has() -> None:
    cards = [*(card("a", n) for n in range(4)), card("b", 7), card("b", 8)]
    assert order(cards, Turns()) == ["a-0", "b-7", "a-1", "b-8", "a-2", "a-3"]


def test_in_a_namespace_the_oldest_run_comes_first() -> None:
    assert order([card("a", 3), card("a", 1), card("a", 2)], Turns()) == ["a-1", "a-2", "a-3"]


def test_what_counts_is_the_time_and_not_the_number_of_runs() -> None:
    used = Used()
    used.see("long", card("a", 1, used_seconds=900.0, finished=NOW), NOW)
    for n in range(5):
        used.see(f"short-{n}", card("b", n, used_seconds=60.0, finished=NOW), NOW)
    chosen = alone([card("a", 8), card("b", 9)], used.seconds(NOW), Turns())
    assert chosen is not None
    assert chosen.namespace == "b"


def test_a_higher_priority_comes_first_and_the_star_is_everybody_else() -> None:
    cards = [card("a", 1), card("b", 2), card("b", 3), card("c", 4)]
    turns = Turns(priorities={"b": 10, "*": 1, "c": -1})
    assert order(cards, turns) == ["b-2", "b-3", "a-1", "c-4"]


def test_time_of_yesterday_and_of_nobody_counts_no_more_but_that_of_a_deleted_run_does() -> None:
    used = Used()
    used.see("1", card("a", 1, used_seconds=60.0, finished=NOW), NOW)
    used.see("1", None, NOW + timedelta(hours=1))
    used.see("2", card("b", 2, turn_started=NOW), NOW)
    used.see("2", None, NOW + timedelta(hours=2))
    assert used.seconds(NOW + timedelta(hours=23)) == {"a": 60.0, "b": 7200.0}
    assert used.seconds(NOW + timedelta(hours=25)) == {"b": 7200.0}
    assert used.seconds(NOW + timedelta(hours=27)) == {}


def test_time_that_no_run_says_counts_for_a_day() -> None:
    used = Used()
    used.add("a", 60.0, NOW)
    used.add("a", 30.0, NOW + timedelta(hours=1))
    used.see("1", card("a", 1, used_seconds=5.0, finished=NOW), NOW)
    assert used.seconds(NOW + timedelta(hours=23), {"b": 1.0}) == {"a": 95.0, "b": 1.0}
    assert used.seconds(NOW + timedelta(hours=24.5)) == {"a": 30.0}
    assert used.seconds(NOW + timedelta(hours=26)) == {}


def test_time_of_a_run_that_pauses_counts_for_a_day_and_what_is_changed_of_it_counts_nothing() -> (
    None
):
    used = Used()
    used.see("1", card("a", 1, state=State.RUNNING, turn_started=NOW), NOW)
    paused = card("a", 1, state=State.SUSPENDED, used_seconds=600.0)
    used.see("1", paused, NOW + timedelta(hours=1))
    used.see("1", replace(paused, kept=True), NOW + timedelta(hours=20))
    assert used.seconds(NOW + timedelta(hours=24)) == {"a": 600.0}
    assert used.seconds(NOW + timedelta(hours=26)) == {}
    used.see("1", replace(paused, state=State.QUEUED), NOW + timedelta(hours=27))
    assert used.seconds(NOW + timedelta(hours=28)) == {}
    # Nor does its end begin another day.
    over = replace(paused, state=State.CANCELLED, finished=NOW + timedelta(hours=29))
    used.see("1", over, NOW + timedelta(hours=29))
    assert used.seconds(NOW + timedelta(hours=30)) == {}
    used.see("2", paused, NOW)
    used.see("2", None, NOW + timedelta(hours=40))
    assert used.seconds(NOW + timedelta(hours=41)) == {}


def test_the_turn_of_a_run_that_is_deleted_in_its_middle_counts() -> None:
    used = Used()
    used.see("1", card("a", 1, state=State.RUNNING, turn_started=NOW), NOW)
    # That it goes on is known to whoever works on it.
    assert used.seconds(NOW + timedelta(minutes=9), {"a": 540.0}) == {"a": 540.0}
    used.see("1", None, NOW + timedelta(minutes=10))
    assert used.seconds(NOW + timedelta(minutes=11)) == {"a": 600.0}


def test_the_turn_of_a_deleted_run_ends_with_its_deletion_and_begins_where_it_was_heard_of() -> (
    None
):
    used = Used()
    # The operator starts a day after its predecessor has ended.
    run = card("a", 1, state=State.RUNNING, turn_started=NOW - timedelta(hours=25))
    used.see("1", run, NOW)
    deleted = replace(run, deleting=True)
    used.see("1", deleted, NOW + timedelta(minutes=10))
    # Somebody's finalizer holds it.
    used.see("1", deleted, NOW + timedelta(minutes=20))
    assert used.seconds(NOW + timedelta(minutes=20)) == {"a": 600.0}
    used.see("1", None, NOW + timedelta(hours=20))
    assert used.seconds(NOW + timedelta(hours=20)) == {"a": 600.0}
    assert used.seconds(NOW + timedelta(hours=25)) == {}


def test_what_a_run_had_before_it_was_asked_for_again_counts_for_its_day_too() -> None:
    used = Used()
    over = card("a", 1, state=State.FAILED, used_seconds=600.0, finished=NOW)
    used.see("1", over, NOW)
    queued = replace(over, state=State.QUEUED, used_seconds=0.0, finished=None, retry=1, retries=1)
    used.see("1", queued, NOW + timedelta(hours=1))
    assert used.seconds(NOW + timedelta(hours=1)) == {"a": 600.0}
    again = NOW + timedelta(hours=2)
    used.see("1", replace(queued, state=State.RUNNING, turn_started=again), again)
    ended = again + timedelta(minutes=1)
    used.see("1", replace(queued, state=State.FAILED, used_seconds=60.0, finished=ended), ended)
    assert used.seconds(ended) == {"a": 660.0}
    assert used.seconds(NOW + timedelta(hours=25)) == {"a": 60.0}
    assert used.seconds(NOW + timedelta(hours=27)) == {}


def test_a_run_that_is_measured_keeps_the_lane_and_a_cancelled_one_is_finished_first() -> None:
    active = card("z", 9, state=State.RUNNING)
    cancelled = card("y", 8, state=State.QUEUED, cancel=True, started=True)
    cards = [card("a", 1), cancelled, active]
    assert alone(cards, {}, Turns()) == active
    assert alone(cards[:2], {}, Turns()) == cancelled


def test_what_a_deleted_run_has_goes_before_its_lane_is_given_to_another() -> None:
    held = card("z", 9, state=State.RUNNING, deleting=True)
    assert alone([card("a", 1), held], {}, Turns()) == held
    assert not replace(held, state=State.SUSPENDED).held
    assert not replace(held, stored_version=99).held
    # It waits for nobody, and who is in its lane already stays there.
    of_lane = replace(held, lane="x")
    others = [card("a", 1, wish="x"), card("b", 2, wish="x,y")]
    assert together([*others, of_lane]) == ["z-9 x", "b-2 y"]
    assert together([*others, of_lane], Turn(card("c", 3), "x")) == ["z-9 x", "b-2 y"]


def together(cards: list[Card], *at_work: Turn, had: dict[str, float] | None = None) -> list[str]:
    """Return who begins now beside those at work, in which lane; wishes are lanes, with commas."""
    now = list(at_work)

    def lanes(card: Card) -> list[str]:
        return [card.lane] if card.lane else [one for one in (card.wish or "").split(",") if one]

    while (turn := next_in_turn(cards, now, had or {}, Turns(), lanes)) is not None:
        now.append(turn)
    return [f"{turn.card.uid} {turn.lane}" for turn in now[len(at_work) :]]


def test_a_run_takes_the_first_of_its_lanes_that_is_free() -> None:
    both = [
        card("a", 1, wish="east,west"),
        card("b", 2, wish="east,west"),
        card("c", 3, wish="west"),
    ]
    assert together(both) == ["a-1 east", "b-2 west"]
    assert together(both, Turn(both[0], "west")) == ["b-2 east"]
    assert together(both[1:], Turn(both[0], "east")) == ["b-2 west"]
    # One that waits for a lane holds up nobody who wants another one.
    east = [card("a", 1, wish="east"), card("b", 2, wish="east"), card("c", 3, wish="north")]
    assert together(east) == ["a-1 east", "c-3 north"]


def test_one_that_has_begun_waits_for_its_own_lane() -> None:
    paused = card("a", 1, wish="east,west", lane="west", started=True)
    other = card("b", 2, wish="east,west")
    assert together([paused], Turn(other, "west")) == []
    assert together([paused], Turn(other, "east")) == ["a-1 west"]


def test_a_run_without_a_lane_is_alone_and_nobody_behind_it_begins_before() -> None:
    alone, laned = card("a", 2), card("b", 3, wish="east")
    at_work = card("c", 1, wish="west", state=State.RUNNING)
    assert together([alone, laned], Turn(at_work, "west")) == []
    assert together([alone, laned]) == ["a-2 None"]
    assert together([laned], Turn(alone, None)) == []
    # One that comes before it begins.
    first = card("d", 1, wish="east")
    assert together([alone, first], Turn(at_work, "west"), had={"a": 9.0}) == ["d-1 east"]


def test_a_run_without_a_lane_holds_others_up_only_when_its_namespace_is_next() -> None:
    alone, first, second = card("a", 1), card("b", 2, wish="east"), card("b", 3, wish="west")
    at_work = Turn(card("b", 0, wish="north"), "north")
    # The namespace of the one has had twenty hours, and the other one none.
    assert together([alone, first, second], at_work, had={"a": 72000.0}) == ["b-2 east", "b-3 west"]
    assert together([alone, first, second], at_work, had={"b": 60.0}) == []


def test_a_run_without_a_lane_gets_its_turn_however_many_others_there_are() -> None:
    """Two namespaces with runs for two lanes without end, and one run without a lane."""
    used, now, number = Used(), NOW, 0
    at_work: list[Turn] = []
    alone = card("a", 0)
    for _ in range(20):
        waiting = [alone]
        for namespace in ("b", "c"):
            number += 1
            waiting.append(card(namespace, number, wish="east,west"))

        def lanes(one: Card) -> list[str]:
            return (one.wish or "").split(",") if one.wish else []

        going_on = {turn.card.namespace: 30.0 for turn in at_work}
        while True:
            had = used.seconds(now, going_on)
            turn = next_in_turn(waiting, at_work, had, Turns(), lanes)
            if turn is None:
                break
            if turn.card is alone:
                return
            at_work.append(turn)
        # The one that has been at work for longest ends, and never both at once.
        over = at_work.pop(0)
        used.see(over.card.uid, replace(over.card, used_seconds=60.0, finished=now), now)
    raise AssertionError("it never had its turn")


def test_one_that_is_cancelled_while_it_pauses_waits_for_nobody() -> None:
    cancelled = card("a", 1, state=State.SUSPENDED, cancel=True, started=True)
    other, at_work = card("b", 2, wish="east"), card("c", 3, wish="west", state=State.RUNNING)
    assert together([cancelled, other], Turn(at_work, "west"))[0] == "a-1 None"
    # One that still has pods is at work, and ends where it is.
    active = card("a", 1, state=State.RUNNING, cancel=True, started=True)
    assert together([active], Turn(at_work, "west")) == []


def test_after_a_restart_all_that_were_at_work_go_on_before_anybody_begins() -> None:
    cards = [
        card("a", 1, wish="east,west"),
        card("b", 8, lane="west", started=True, state=State.RUNNING),
        card("b", 9, lane="east", started=True, state=State.DEPLOYING),
    ]
    assert together(cards) == ["b-8 west", "b-9 east"]


def test_namespaces_that_had_as_much_time_get_as_many_lanes() -> None:
    cards = [
        card("a", 1, wish="east,west"),
        card("a", 2, wish="east,west"),
        card("b", 3, wish="east,west"),
    ]
    assert together(cards) == ["a-1 east", "b-3 west"]
    # What counts first is the time.
    assert together(cards, had={"b": 500.0}) == ["a-1 east", "a-2 west"]


CAPS: dict[str, tuple[dict[str, Any], str]] = {
    "trials": ({"trials": 11}, "it asks for 12 trials, and may have 11"),
    "servers": ({"servers": 1}, "it asks for 2 servers, and may have 1"),
    "generators": ({"generators": 1}, "it asks for 2 generators, and may have 1"),
    "duration": ({"duration": "30s"}, "and may take 30s"),
    "cpu": ({"cpu": "5500m"}, "it asks for 7 cores in the pods of a trial, and may have 5.5"),
    "memory": ({"memory": "1Gi"}, "it asks for 1664 MiB of memory in the pods of a trial"),
}
LARGE = spec_of(
    2,
    2,
    3,
    generator={"parallelism": 2, "resources": {"cpu": "2", "memory": "256Mi"}},
    topology={"postgres": {"resources": {"cpu": "2", "memory": "1Gi"}}},
)
LARGE = LARGE.model_copy(
    update={
        "servers": [
            one.model_copy(update={"resources": Resources(cpu=cpu, memory="128Mi")})
            for one, cpu in zip(LARGE.servers, ("1", "500m"), strict=True)
        ]
    }
)


@pytest.mark.parametrize("cap", CAPS)
def test_a_run_over_a_cap_is_told_which_and_who_may_change_it(cap: str) -> None:
    document, words = CAPS[cap]
    turns = Turns.from_wire({"caps": {"team": document, "*": {"trials": 1000}}})
    exceeded = cap_exceeded(LARGE, "team", turns)
    assert exceeded is not None
    assert words in exceeded
    assert "runs.caps of Laptime's chart, which the cluster's administrator may change" in exceeded
    assert cap_exceeded(LARGE, "others", turns) is None


def test_a_run_within_all_caps_is_taken() -> None:
    just = {"trials": 12, "servers": 2, "generators": 2, "cpu": "7", "memory": "1664Mi"}
    turns = Turns.from_wire({"caps": {"*": {**just, "duration": "1h"}}})
    assert cap_exceeded(LARGE, "team", turns) is None
    assert cap_exceeded(LARGE, "team", Turns()) is None


def long(servers: int, loads: int, **more: Any) -> BenchmarkRunSpec:
    """Return the spec of a run whose trials take 111 s each, a repetition of 24 of them 2,664 s."""
    document = spec_of(servers, loads, 1).to_wire()
    for one in document["loads"]:
        one["closed"] = {"connections": 2, "duration": "104s", "connectOver": "0s"}
    return BenchmarkRunSpec.model_validate({**document, **more})


@pytest.mark.parametrize(
    ("budget", "cap", "said"),
    [
        (None, "22h13m", ""),
        (
            None,
            "22h11m",
            "it takes about 22h12m (all 30 repetitions: maxRepetitions and budget make them "
            "fewer), and may take 22h11m. ",
        ),
        ("2h", "24h", ""),
        ("2h", "2h44m24s", ""),
        (
            "2h",
            "2h44m",
            "it takes about 2h44m (its budget of 2h, and the repetition that began before its "
            "end), and may take 2h44m. ",
        ),
        (
            "1m",
            "2h",
            "it takes about 2h13m (the 3 repetitions that it has at least), and may take 2h00m. ",
        ),
        # More than all of them take.
        ("48h", "19h", "it takes about 22h12m (all 30 repetitions: "),
    ],
)
def test_a_budget_bounds_what_a_run_is_reckoned_with(
    budget: str | None, cap: str, said: str
) -> None:
    run = long(8, 3, stopWhen="decided", **({"budget": budget} if budget else {}))
    exceeded = cap_exceeded(run, "team", Turns.from_wire({"caps": {"*": {"duration": cap}}}))
    assert (exceeded is None) == (not said)
    assert (exceeded or "").startswith(said)


def test_a_cap_says_what_requests_are_reckoned_with() -> None:
    loads = [{"name": "many", "closed": {"connections": 10, "requests": 10_000_000}}]
    run = BenchmarkRunSpec.model_validate({**spec_of(2, 1, 5).to_wire(), "loads": loads})
    assert cap_exceeded(run, "team", Turns.from_wire({"caps": {"*": {"duration": "24h"}}})) is None
    said = cap_exceeded(run, "team", Turns.from_wire({"caps": {"*": {"duration": "10h"}}}))
    assert said is not None
    assert said.startswith(
        "it takes about 10h01m (5 repetitions; requests of loads without a duration at 1,000/s), "
        "and may take 10h00m. "
    )


def test_two_servers_at_the_same_time_and_their_generators_all_count() -> None:
    changed = {"pairing": Pairing.DUET, "topology": Topology()}
    duet = LARGE.model_copy(update=changed)
    # Two servers of 1 and 0.5, four generators of 2.
    just = {"trials": 12, "generators": 4, "cpu": "9500m", "memory": "1280Mi"}
    assert cap_exceeded(duet, "team", Turns.from_wire({"caps": {"*": just}})) is None
    for name, less in (("generators", 3), ("cpu", "9"), ("memory", "1279Mi")):
        turns = Turns.from_wire({"caps": {"*": {**just, name: less}}})
        assert cap_exceeded(duet, "team", turns) is not None, name


def test_what_makes_up_a_cap_exactly_is_within_it() -> None:
    """Three tenths, a tenth and two are more than six tenths where floats are added up."""
    document = spec_of(1, 1, 1, topology={}).to_wire()
    small = {"cpu": "0.1", "memory": "1.4Gi"}
    document["generator"] = {"parallelism": 3, "resources": small}
    document["servers"][0]["resources"] = {"cpu": "0.2", "memory": "0.7Gi"}
    document["topology"]["postgres"] = {"resources": small}
    run = BenchmarkRunSpec.model_validate(document)
    for caps, fits in (
        ({"cpu": "0.6", "memory": "6.3Gi"}, True),
        ({"cpu": "599m"}, False),
        ({"memory": "6.2999Gi"}, False),
    ):
        assert (cap_exceeded(run, "team", Turns.from_wire({"caps": {"*": caps}})) is None) == fits


@pytest.mark.parametrize("what", ["cpu", "memory"])
def test_no_cap_is_passed_by_leaving_out_what_it_is_about(what: str) -> None:
    turns = Turns.from_wire({"caps": {"*": {what: "1000"}, "free": {"trials": 1000}}})
    silent = spec_of(2, 1, 1, topology={"postgres": {}, "pgbouncer": {}})
    servers = ", ".join(f"server {one.name}" for one in silent.servers)
    said = cap_exceeded(silent, "team", turns)
    assert said is not None
    assert said.startswith(
        f"there is a cap on {what}, and it does not say how much topology.postgres, "
        f"topology.pgbouncer, {servers}, generator may have: write resources: {{{what}: "
    )
    assert cap_exceeded(silent, "free", turns) is None
    # Each pod by itself: to say all but one is not enough.
    generator = LARGE.generator.model_copy(update={"resources": None})
    said = cap_exceeded(LARGE.model_copy(update={"generator": generator}), "team", turns)
    assert said is not None
    assert "how much generator may have" in said


def test_of_a_service_that_is_there_already_no_size_is_asked() -> None:
    turns = Turns.from_wire({"caps": {"*": {"cpu": "4"}}})
    there = {"name": "there", "service": {"name": "web", "port": 80}}
    document = spec_of(1, 1, 1, generator={"resources": {"cpu": "1"}}, topology={}).to_wire()
    run = BenchmarkRunSpec.model_validate({**document, "servers": [there]})
    assert cap_exceeded(run, "team", turns) is None


@pytest.mark.parametrize(
    ("named", "allowed", "beyond"),
    [
        ({"cidr": "10.20.3.0/24"}, ["10.20.0.0/16"], ""),
        ({"cidr": "10.20.3.7/16"}, ["10.20.0.0/16"], ""),
        ({"cidr": "10.0.0.0/8"}, ["10.20.0.0/16"], "10.0.0.0/8"),
        ({"cidr": "0.0.0.0/0"}, [], "0.0.0.0/0"),
        ({"cidr": "2001:db8:1::/48"}, ["2001:db8::/32", "10.0.0.0/8"], ""),
        ({"cidr": "::/0"}, ["0.0.0.0/0", "2001:db8::/32"], "::/0"),
        ({"namespace": "payments"}, ["payments"], ""),
        ({"namespace": "kube-system"}, ["payments", "0.0.0.0/0"], "kube-system"),
    ],
)
def test_a_run_may_connect_to_what_its_namespace_may_name_and_nowhere_else(
    named: dict[str, str], allowed: list[str], beyond: str
) -> None:
    run = spec_of(2, 1, 1, egress=[named])
    said = cap_exceeded(run, "team", Turns.from_wire({"caps": {"team": {"egress": allowed}}}))
    if beyond:
        may = ", ".join(allowed) or "nothing"
        assert said is not None
        assert said.startswith(f"its egress names {beyond}, and may name {may}. ")
    else:
        assert said is None
    assert cap_exceeded(run, "team", Turns.from_wire({"caps": {"*": {"trials": 99}}})) is None


def test_what_is_no_range_of_addresses_is_said_at_the_start() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0/8"):
        Turns.from_wire({"caps": {"*": {"egress": ["10.0.0/8"]}}})


EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=[one.stem for one in EXAMPLES])
def test_no_example_is_over_the_caps_of_the_chart(path: Path) -> None:
    values = yaml.safe_load((ROOT / "charts" / "laptime" / "values.yaml").read_text())
    turns = Turns.from_wire(values["runs"])
    assert turns.caps_of("team").duration_seconds == 86_400
    for one in yaml.safe_load_all(path.read_text()):
        if one["kind"] == "BenchmarkRun":
            spec = BenchmarkRunSpec.model_validate(one["spec"]).with_control()
            assert cap_exceeded(spec, "team", turns) is None


@pytest.mark.parametrize("text", ['{"caps": {"a": {"trails": 1}}}', '{"caps": ["a"]}', "{"])
def test_what_the_operator_cannot_read_is_said_at_its_start(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    images = tmp_path / "images.json"
    names = ("postgres", "pgbouncer", "haproxy", "generator", "operator")
    images.write_text(json.dumps({**dict.fromkeys(names, "x"), "servers": {"a": "x"}}))
    monkeypatch.setenv("LAPTIME_IMAGES_FILE", str(images))
    monkeypatch.setenv("LAPTIME_RUNS", '{"caps": {"a": {"trials": 1}}, "priorities": {"a": 2}}')
    assert load_settings().turns == Turns({"a": 2}, {"a": Caps(trials=1)})
    monkeypatch.setenv("LAPTIME_RUNS", text)
    with pytest.raises(SettingsError, match="LAPTIME_RUNS"):
        load_settings()


async def test_the_time_in_which_a_run_may_not_go_on_is_none_of_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_FORBIDDEN_SECONDS", 0.5)
    server = ApiServer(forbidden={"default"})
    long_ago = datetime.now(UTC) - timedelta(hours=30)
    begun = {
        "state": "Running",
        "startedAt": (long_ago - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "turnStartedAt": (long_ago - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "progress": {"completed": 1, "total": 3, "text": "1/3"},
    }
    server.add({**run_manifest("demo"), "status": begun})

    def status() -> dict[str, Any]:
        found: dict[str, Any] = (server.get("BenchmarkRun", "default", "demo") or {})["status"]
        return found

    async with operating(server):
        await until(lambda: reason(server, "demo", "Accepted") == "NamespaceNotEnabled")
        assert "turnStartedAt" not in status()
        assert status()["progress"]["text"] == "1/3, NamespaceNotEnabled"
        used = status()["usedSeconds"]
        assert used < 120
        server.forbidden.clear()
        await until(lambda: reason(server, "demo", "Accepted") == "Accepted", 20)
        await until(lambda: "turnStartedAt" in status(), 20)
        assert status()["usedSeconds"] == used


async def test_a_run_over_a_cap_can_be_cancelled() -> None:
    server = ApiServer()
    server.add({**run_manifest("large"), "spec": spec_of(1, 1, 3).to_wire()})
    capped = Settings(images=IMAGES, turns=Turns(caps={"*": Caps(trials=2)}))
    async with operating(server, capped):
        await until(lambda: reason(server, "large", "Accepted") == "CapExceeded")
        found = server.get("BenchmarkRun", "default", "large") or {}
        assert found["status"]["progress"]["text"] == "CapExceeded"
        spec = {**found["spec"], "cancel": True}
        server.change("BenchmarkRun", "default", "large", spec=spec)
        await until(lambda: state(server, "large") == "Cancelled")


async def test_a_run_over_a_cap_waits_until_the_cap_is_changed() -> None:
    server = ApiServer()
    server.add({**run_manifest("large"), "spec": spec_of(1, 1, 3).to_wire()})
    server.add(run_manifest("small"))
    capped = Settings(images=IMAGES, turns=Turns(caps={"*": Caps(trials=2)}))
    async with operating(server, capped):
        await until(lambda: reason(server, "large", "Accepted") == "CapExceeded")
        await until(lambda: state(server, "small") == "Deploying")
        assert state(server, "large") == "Queued"
    server.remove("BenchmarkRun", "default", "small")
    async with operating(server):
        await until(lambda: state(server, "large") == "Deploying")
        assert reason(server, "large", "Accepted") == "Accepted"


def test_a_run_that_takes_longer_than_it_may_ends_with_what_it_has_measured() -> None:
    world = World(spec_of(2, 1, 10), Random(2))
    world.context = replace(world.context, longest_seconds=60.0)
    world_until(world, over)
    assert world.run.status.state is State.FAILED
    succeeded = said(world, ConditionType.SUCCEEDED)
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "TurnOver")
    assert "for 1m00s, as long as it may" in succeeded.message
    assert 0 < len(world.results_written) < 20
    assert (world.run.status.used_seconds or 0) > 60
    assert world.run.status.turn_started_at is None


def used_seconds(world: World) -> float:
    """Return how much of its turns a run that is over has had, as the queue knows it."""
    return card_of(manifest_of(world.run)).used_seconds


def retried(world: World) -> None:
    """Have the failed trials of a run that is over asked for again."""
    retry = world.run.spec.retry + 1
    spec = world.run.spec.model_copy(update={"retry": retry})
    asked = replace(world.run, spec=spec, generation=world.run.generation + 1)
    world.run = replace(asked, status=asked_again(asked, world.now))


def to_its_end(world: World) -> None:
    while not over(world):
        world.step()
        world.advance()
        assert world.passes < 1000, world.run.status


def test_the_time_in_which_no_operator_was_there_is_none_of_a_runs_turn() -> None:
    undisturbed = World(spec_of(1, 1, 3), Random(2))
    world_until(undisturbed, over)
    world = World(spec_of(1, 1, 3), Random(2))
    world.context = replace(world.context, longest_seconds=24 * 3600.0)
    world_until(world, lambda world: world.results_written)
    world.now += timedelta(hours=25)
    to_its_end(world)
    assert world.run.status.state is State.SUCCEEDED
    # A minute of it, since nobody knows when the one before has ended.
    assert abs(used_seconds(world) - used_seconds(undisturbed) - 60) < 60


@pytest.mark.parametrize("lives_seconds", [20, 59, 61, 90, 600])
def test_an_operator_that_is_started_again_and_again_lets_no_run_have_its_turn_for_ever(
    lives_seconds: int,
) -> None:
    # At a step that never ends.
    status = RunStatus(turn_started_at=format_time(NOW), step_started_at=format_time(NOW))
    now = NOW
    while seconds_used(status, now) < 3600:
        status = without_absence(status, now, 0.0)
        assert without_absence(status, now + timedelta(seconds=9), 9.0) is status
        now += timedelta(seconds=lives_seconds)
        assert without_absence(status, now, float(lives_seconds)) is status
        # What it had is never more than the time that has passed.
        assert seconds_used(status, now) <= (now - NOW).total_seconds()
    # A minute is counted of the time until nobody was there for longer than that.
    assert now - NOW <= 61 * timedelta(seconds=60 + lives_seconds)


def test_a_clock_that_is_set_or_a_machine_that_sleeps_takes_nothing_of_a_turn() -> None:
    begun = RunStatus(
        turn_started_at=format_time(NOW), step_started_at=format_time(NOW + timedelta(minutes=50))
    )
    now = NOW + timedelta(hours=26)
    # By the clock that nobody sets an hour has passed.
    assert seconds_used(without_absence(begun, now, 3600.0), now) == 3600
    back = NOW - timedelta(hours=1)
    assert seconds_used(without_absence(begun, back, 3600.0), back) == 3600
    paused = RunStatus(used_seconds=60.0)
    assert without_absence(paused, now, 0.0) is paused


def test_a_run_that_had_its_turn_has_another_one_when_it_is_asked_for_again() -> None:
    world = World(spec_of(2, 1, 10), Random(2))
    world.context = replace(world.context, longest_seconds=60.0)
    measured: list[int] = []
    while world.run.status.state is not State.SUCCEEDED:
        if over(world):
            assert said(world, ConditionType.SUCCEEDED).reason == "TurnOver"
            if len(measured) == 1:
                # As it was stored where the time without an operator counted.
                status = world.run.status.model_copy(update={"used_seconds": 90028.0})
                world.run = replace(world.run, status=status)
            retried(world)
        world_until(world, over)
        measured.append(len(world.results_written))
        assert used_seconds(world) < 120
    assert measured == sorted(set(measured))
    assert len(measured) > 2
    assert len(world.results_written) == 20


def test_a_run_that_is_cancelled_once_it_was_asked_for_again_has_had_no_turn_since() -> None:
    world = World(spec_of(2, 1, 10), Random(2))
    world.context = replace(world.context, longest_seconds=60.0)
    world_until(world, over)
    world.now += timedelta(hours=9)
    retried(world)
    spec = world.run.spec.model_copy(update={"cancel": True})
    world.run = replace(world.run, spec=spec)
    to_its_end(world)
    assert used_seconds(world) < 10
