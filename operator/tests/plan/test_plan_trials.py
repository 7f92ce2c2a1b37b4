"""The planner: every trial exactly once, in blocks, in an order that only the seed decides."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from laptime.api.spec import BenchmarkRunSpec
from laptime.plan import plan_trials, seed_of

SEEDS = st.integers(0, 2**31 - 1)


@st.composite
def specs(draw: st.DrawFn, least_pairs: int = 1) -> BenchmarkRunSpec:
    servers = draw(st.integers(1, 8))
    loads = draw(st.integers(-(-least_pairs // servers), max(4, least_pairs)))
    return make_spec(servers, loads, draw(st.integers(1, 12)))


def make_spec(
    servers: int, loads: int, repetitions: int, seed: int | None = None
) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(
        {
            "scenario": "users",
            "servers": [{"name": f"s{n}", "preset": "axum-sqlx"} for n in range(servers)],
            "loads": [
                {"name": f"l{n}", "closed": {"connections": 1, "requests": 1}} for n in range(loads)
            ],
            "repetitions": repetitions,
            "seed": seed,
        }
    )


@given(specs(), SEEDS)
def test_every_server_load_and_repetition_comes_exactly_once(
    spec: BenchmarkRunSpec, seed: int
) -> None:
    planned = Counter((t.server, t.load, t.repetition) for t in plan_trials("run", spec, seed))
    assert planned == Counter(
        (server.name, load.name, repetition)
        for server in spec.servers
        for load in spec.loads
        for repetition in range(1, spec.repetitions + 1)
    )


@given(specs(), SEEDS)
def test_each_repetition_is_a_block(spec: BenchmarkRunSpec, seed: int) -> None:
    repetitions = [trial.repetition for trial in plan_trials("run", spec, seed)]
    assert repetitions == sorted(repetitions)


@given(specs(), SEEDS)
def test_the_order_depends_on_nothing_but_the_seed(spec: BenchmarkRunSpec, seed: int) -> None:
    def order(run_name: str) -> list[tuple[str, str, int]]:
        return [(t.server, t.load, t.repetition) for t in plan_trials(run_name, spec, seed)]

    assert order("one") == order("other")


@given(specs(least_pairs=4), SEEDS)
def test_two_more_repetitions_change_nothing_before_them(spec: BenchmarkRunSpec, seed: int) -> None:
    longer = spec.model_copy(update={"repetitions": spec.repetitions + 2})
    short_plan = plan_trials("run", spec, seed)
    assert plan_trials("run", longer, seed)[: len(short_plan)] == short_plan


def test_different_seeds_make_different_orders() -> None:
    spec = make_spec(servers=3, loads=2, repetitions=5)
    orders = {
        tuple((t.server, t.load) for t in plan_trials("run", spec, seed)) for seed in range(200)
    }
    assert len(orders) == 200


def test_no_server_is_first_more_often_than_its_turn() -> None:
    spec = make_spec(servers=4, loads=1, repetitions=1)
    first = Counter(plan_trials("run", spec, seed)[0].server for seed in range(4000))
    assert set(first) == {"s0", "s1", "s2", "s3"}
    # 1000 are expected each; five standard deviations of the binomial distribution are 137.
    assert all(abs(count - 1000) < 137 for count in first.values())


@given(specs(), SEEDS)
def test_names_are_unique_and_sort_in_the_order_of_the_trials(
    spec: BenchmarkRunSpec, seed: int
) -> None:
    trials = plan_trials("run", spec, seed)
    names = [trial.name for trial in trials]
    assert len(set(names)) == len(names)
    assert names == sorted(names)
    assert [trial.ordinal for trial in trials] == list(range(1, len(trials) + 1))


def test_a_name_has_three_digits_and_more_when_needed() -> None:
    assert plan_trials("demo", make_spec(3, 1, 5), 1)[6].name == "demo-trial-007"
    assert plan_trials("demo", make_spec(10, 1, 100), 1)[6].name == "demo-trial-0007"


def test_the_seed_of_the_spec_wins() -> None:
    assert seed_of(make_spec(1, 1, 1, seed=0), "any") == 0


@given(st.uuids(), st.uuids())
def test_without_a_seed_each_run_gets_its_own_from_its_uid(one: object, other: object) -> None:
    spec = make_spec(1, 1, 1)
    assert seed_of(spec, str(one)) == seed_of(spec, str(one))
    assert (seed_of(spec, str(one)) == seed_of(spec, str(other))) == (one == other)
    assert 0 <= seed_of(spec, str(one)) < 2**31
