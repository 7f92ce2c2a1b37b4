"""The same server in two runs."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import pytest
from scipy import stats

from laptime.analysis.run_differences import (
    other_cpus,
    other_images,
    paired_otherwise,
    same_in_both,
    what_differs,
)
from laptime.analysis.two_runs import (
    Change,
    compare_runs,
    count_less,
    measured_in_one,
    speeds_apart,
    welch_interval,
)
from laptime.api.attempts import Fault
from laptime.api.metrics import Metric
from laptime.api.placement import Nodes, RunPlacement
from laptime.api.results import TrialResult
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.status import KeptScript
from laptime.api.usage import ComponentUsage, NodeUsage, Source, TrialUsage
from laptime.plan import Trial
from tests.analysis.runs import Outcome, make_spec, run, steady, summary_of
from tests.analysis.test_stopping import result

ONE = make_spec("axum", "sync")


def trials(
    axum: float = 1000.0, sync: float = 500.0, microseconds: int = 1000
) -> list[TrialResult]:
    rates = {"axum": axum, "sync": sync}
    wobbly = steady(rates)

    def script(trial: object) -> Outcome:
        outcome = wobbly(trial)  # type: ignore[arg-type]
        assert outcome is not None
        return Outcome(outcome.rate, (microseconds,) * 400)

    return run(ONE, script)[1]


steady_trials = cache(trials)


def changes(before: list[TrialResult], after: list[TrialResult]) -> dict[tuple[str, str], Change]:
    return {(one.server, one.metric): one.change for one in compare_runs(ONE, before, after)}


def test_the_same_again_has_not_changed() -> None:
    assert set(changes(trials(), trials()).values()) == {Change.NONE_FOUND}


def test_more_requests_and_shorter_times_are_better() -> None:
    found = changes(trials(), trials(axum=1100.0, microseconds=900))
    assert found["axum", Metric.REQUESTS_PER_SECOND] is Change.BETTER
    assert found["axum", Metric.P99] is Change.BETTER
    assert found["sync", Metric.REQUESTS_PER_SECOND] is Change.NONE_FOUND
    back = changes(trials(axum=1100.0, microseconds=900), trials())
    assert back["axum", Metric.REQUESTS_PER_SECOND] is Change.WORSE
    assert back["axum", Metric.P99] is Change.WORSE


def test_less_than_one_percent_is_no_change() -> None:
    found = changes(trials(microseconds=100_000), trials(microseconds=100_300))
    assert found["axum", Metric.P50] is Change.NONE_FOUND


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(60, 61, Change.NONE_FOUND), (60, 63, Change.WORSE), (150, 153, Change.WORSE)],
)
def test_times_one_microsecond_apart_are_known_no_better_than_they_are_counted(
    before: int, after: int, change: Change
) -> None:
    found = compare_runs(ONE, trials(microseconds=before), trials(microseconds=after))
    (p50,) = (one for one in found if (one.server, one.metric) == ("axum", Metric.P50))
    assert p50.change is change
    assert p50.ratio is not None
    assert p50.ratio.low is not None
    assert p50.ratio.high is not None
    assert (p50.ratio.low < p50.ratio.value < p50.ratio.high) is (before < 100)
    rows = summary_of(
        ONE, lambda one: Outcome(500.0, ((before if one.server == "axum" else after),) * 400)
    ).rows
    ranks = {row.latency_figures and row.latency_figures.p50.rank for row in rows}  # type: ignore[union-attr]
    assert ranks == ({1} if change is Change.NONE_FOUND else {1, 2})


def test_a_single_repetition_tells_nothing() -> None:
    first = [trial for trial in trials() if trial.repetition == 1]
    found = compare_runs(ONE, first, trials(axum=3000.0))
    assert {one.change for one in found} == {Change.NOT_KNOWN}
    assert found[0].ratio is not None
    assert found[0].ratio.low is None


def silent(right: int = 0) -> list[TrialResult]:
    """Return trials in which axum answers so many of 900 requests rightly."""
    outcome = Outcome(right / 2, (1000,) * right, errors=900 - right)

    def script(trial: Trial) -> Outcome | None:
        return outcome if trial.server == "axum" else steady({"sync": 500.0})(trial)

    return run(ONE, script)[1]


@pytest.mark.parametrize("right", [0, 1])
def test_a_server_that_answers_nothing_any_more_is_worse(right: int) -> None:
    found = changes(trials(), silent(right))
    assert found["axum", Metric.REQUESTS_PER_SECOND] is Change.WORSE
    assert found["axum", Metric.P99] is Change.WORSE
    assert found["sync", Metric.REQUESTS_PER_SECOND] is Change.NONE_FOUND


def test_a_server_that_answers_again_is_better_and_one_that_does_not_is_the_same() -> None:
    assert changes(silent(), trials())["axum", Metric.REQUESTS_PER_SECOND] is Change.BETTER
    again = compare_runs(ONE, silent(), silent())[0]
    assert (again.server, again.change) == ("axum", Change.NONE_FOUND)
    assert (again.failed_before, again.failed_after) == (5, 5)


def test_one_repetition_without_a_right_answer_leaves_the_others_as_they_are() -> None:
    mixed = [one for one in trials(axum=1100.0) if one.repetition > 1]
    mixed += [one for one in silent() if one.repetition == 1]
    assert changes(trials(), mixed)["axum", Metric.REQUESTS_PER_SECOND] is Change.BETTER


@pytest.mark.parametrize("silent_ones", [1, 3, 4])
def test_repetitions_without_a_right_answer_are_in_no_percentile_faster_than_others(
    silent_ones: int,
) -> None:
    mixed = [one for one in trials(axum=1100.0) if one.repetition > silent_ones]
    mixed += [one for one in silent() if one.repetition <= silent_ones]
    (p50,) = (
        one
        for one in compare_runs(ONE, trials(), mixed, ONE)
        if (one.server, one.metric) == ("axum", Metric.P50)
    )
    assert (p50.change, p50.failed_after) == (Change.NOT_KNOWN, silent_ones)
    assert p50.may_be_worse
    (back,) = (
        one
        for one in compare_runs(ONE, mixed, trials(), ONE)
        if (one.server, one.metric) == ("axum", Metric.P50)
    )
    assert (back.change, back.may_be_worse) == (Change.NOT_KNOWN, False)
    (again,) = (
        one
        for one in compare_runs(ONE, mixed, mixed, ONE)
        if (one.server, one.metric) == ("axum", Metric.P50)
    )
    assert (again.change, again.may_be_worse) == (Change.NOT_KNOWN, True)


P999_ALONE = make_spec("a", repetitions=10)


@cache
def failing(failed: int, repetitions: int = 5) -> list[TrialResult]:
    """Return trials of 2,000 requests, whose p99.9 is lost to three errors in so many of them."""

    def script(trial: Trial) -> Outcome:
        errors = 3 if trial.repetition <= failed else 0
        return Outcome(200.0 + trial.repetition, (1000,) * (2000 - errors), errors=errors)

    return [one for one in run(P999_ALONE, script)[1] if one.repetition <= repetitions]


def p999_of(before: list[TrialResult], after: list[TrialResult]) -> Change:
    (found,) = (one for one in compare_runs(P999_ALONE, before, after) if one.metric is Metric.P999)
    return found.change


@pytest.mark.parametrize(
    ("failed", "repetitions", "change"),
    [
        (1, 1, Change.NOT_KNOWN),
        (1, 5, Change.NOT_KNOWN),
        (2, 2, Change.NOT_KNOWN),
        (3, 3, Change.NOT_KNOWN),
        (4, 4, Change.WORSE),
        (4, 5, Change.NOT_KNOWN),
        (5, 5, Change.WORSE),
        (4, 10, Change.NOT_KNOWN),
        (5, 10, Change.WORSE),
    ],
)
def test_a_percentile_that_failed_now_and_then_is_none_that_got_worse(
    failed: int, repetitions: int, change: Change
) -> None:
    clean, some = failing(0, repetitions), failing(failed, repetitions)
    assert p999_of(clean, some) is change
    back = Change.BETTER if change is Change.WORSE else Change.NOT_KNOWN
    assert p999_of(some, clean) is back


def test_like_runs_whose_percentiles_fail_by_chance_are_rarely_told_apart() -> None:
    """With errors in half of what p99.9 leaves, runs of one failure after none are 22 %."""
    told = [
        (one, other)
        for one in range(6)
        for other in range(6)
        if p999_of(failing(one), failing(other)) in (Change.BETTER, Change.WORSE)
    ]
    assert told
    for share in (0.1, 0.3, 0.5, 0.7):
        likely = [math.comb(5, k) * share**k * (1 - share) ** (5 - k) for k in range(6)]
        assert sum(likely[one] * likely[other] for one, other in told) < 0.05 / 4


def test_one_repetition_that_answers_nothing_says_nothing_of_the_server() -> None:
    first = [one for one in trials() if one.repetition == 1]
    dead = [one for one in silent() if one.repetition == 1]
    assert set(changes(first, dead).values()) == {Change.NOT_KNOWN}
    assert set(changes(trials(), dead).values()) == {Change.NOT_KNOWN}
    both = [one for one in silent() if one.repetition <= 2]
    assert changes(trials(), both)["axum", Metric.REQUESTS_PER_SECOND] is Change.WORSE


def test_a_percentile_is_not_that_of_the_repetitions_with_enough_requests() -> None:
    """Those are the quick ones: the row of the later run has a p99.9 of 30 ms."""
    spec = make_spec("a")

    def of(slow: tuple[int, ...]) -> list[TrialResult]:
        def script(trial: Trial) -> Outcome:
            if trial.repetition in slow:
                return Outcome(90.0, (1000,) * 895 + (30_000,) * 5)
            return Outcome(110.0, (1000,) * 1095 + (10_000 + 10 * trial.repetition,) * 5)

        return run(spec, script)[1]

    (p999,) = (
        one for one in compare_runs(spec, of(()), of((1, 3, 5))) if one.metric is Metric.P999
    )
    assert (p999.change, p999.after, p999.may_be_worse) == (Change.NOT_KNOWN, None, True)
    neither = compare_runs(spec, of((2,)), of((1, 3, 5)))
    assert Metric.P999 not in {one.metric for one in neither}
    assert Metric.P99 in {one.metric for one in neither}
    # Nor of the rest of a run one repetition of which is silent, with few requests that time out.
    stuck = run(spec, lambda _: Outcome(0.0, (), errors=10))[1][:1]
    rest = [*stuck, *of(())[1:]]
    (p50, p99) = (
        next(one for one in compare_runs(spec, of(()), rest) if one.metric is metric)
        for metric in (Metric.P50, Metric.P99)
    )
    assert (p50.failed_after, p99.failed_after) == (1, 0)
    assert p50.change is p99.change is Change.NOT_KNOWN


def test_what_variables_hold_is_not_said_and_no_setting_is_endless() -> None:
    def of(value: str, *names: str, image: str = "registry.example/shop:1") -> BenchmarkRunSpec:
        env = [{"name": name, "value": value} for name in names]
        server = {"name": "mine", "image": image, "env": env}
        loads = [{"name": "closed", "closed": {"connections": 4, "duration": "5s"}}]
        return BenchmarkRunSpec.model_validate(
            {"scenario": "hello", "servers": [server], "loads": loads}
        )

    before, after = of("hunter2", "DB_PASSWORD"), of("hunter3\nx", "DB_PASSWORD")
    assert what_differs(before, after) == ["server mine: env.DB_PASSWORD.value is another one"]
    # Variables are known by their names.
    assert what_differs(of("x", "A", "B"), of("x", "B", "A")) == []
    (said,) = what_differs(before, of("hunter2", "DB_PASSWORD", image=f"a/{'b' * 240}:1"))
    assert len(said) < 300
    parallel = BenchmarkRunSpec.model_validate(
        {**before.to_wire(), "generator": {"parallelism": 4}}
    )
    assert what_differs(before, parallel) == ["the generator: parallelism 1 and 4"]


def test_of_a_variable_in_a_secret_two_runs_are_compared_by_the_name_of_the_secret() -> None:
    def of(**variable: str) -> BenchmarkRunSpec:
        env = [{"name": "LICENCE", **variable}]
        server = {"name": "mine", "image": "registry.example/shop:1", "env": env}
        return BenchmarkRunSpec.model_validate(
            {**ONE.to_wire(), "servers": [server], "baseline": None}
        )

    before = of(secret="licence-of-2026")
    assert what_differs(before, of(secret="licence-of-2026")) == []
    # As an API server stores it, which writes what is left out.
    assert what_differs(before, of(secret="licence-of-2026", value="")) == []
    assert what_differs(before, of(secret="licence-of-2027")) == [
        "server mine: env.LICENCE.secret is another one"
    ]
    (said,) = what_differs(before, of(value="hunter2"))
    assert "env.LICENCE.value is another one" in said
    assert "hunter2" not in said


def test_how_an_image_is_run_is_part_of_what_a_server_is() -> None:
    def of(**more: Any) -> BenchmarkRunSpec:
        server = {"name": "mine", "image": "registry.example/shop:1", **more}
        return BenchmarkRunSpec.model_validate(
            {**ONE.to_wire(), "servers": [server], "baseline": None}
        )

    plain = of()
    for change, said in (
        # Words may be credentials, as variables may.
        ({"command": ["/a", "--token=hunter2"]}, "command is another one"),
        ({"args": ["-p", "hunter2"]}, "args is another one"),
        ({"user": 1000}, "user none and 1000"),
        ({"writable": ["/app"]}, 'writable none and ["/app"]'),
        ({"env": [{"name": "A", "value": "x"}]}, "env.A.value is another one"),
    ):
        other = of(**change)
        assert what_differs(plain, other) == [f"server mine: {said}"]
        mine = [
            one.model_copy(update={"server": "mine"}) for one in trials() if one.server == "axum"
        ]
        known = [one.model_copy(update={"images": {"server": "shop@sha256:1"}}) for one in mine]
        assert same_in_both(plain, plain, (known, known))
        assert same_in_both(plain, other, (known, known)) == set()


def test_a_server_of_both_runs_without_a_trial_in_one_is_named() -> None:
    only = [trial for trial in trials() if trial.server == "sync"]
    assert measured_in_one(ONE, trials(), trials(), ONE) == ([], [])
    assert measured_in_one(ONE, trials(), only, ONE) == ([("axum", "closed")], [])
    assert measured_in_one(ONE, only, trials(), ONE) == ([], [("axum", "closed")])
    # What is not in both specs is said there.
    assert measured_in_one(ONE, trials(), only, make_spec("sync")) == ([], [])


@pytest.mark.parametrize("crashed", [1, 4])
def test_trials_that_no_longer_count_are_said(crashed: int) -> None:
    def crashes(fault: Fault) -> list[TrialResult]:
        lost = Outcome(0.0, failure=("ServerCrashed", "exit 137"), fault=fault)
        rates = steady({"axum": 1000.0, "sync": 500.0})
        return run(
            ONE,
            lambda one: lost if one.server == "axum" and one.repetition <= crashed else rates(one),
        )[1]

    assert count_less(trials(), trials()) == []
    assert count_less(trials(), crashes(Fault.SERVER)) == [
        f"axum under closed: {5 - crashed} of 5 trials count in the later run, "
        "5 of 5 in the earlier one"
    ]
    assert count_less(crashes(Fault.SERVER), trials()) == []
    assert count_less(crashes(Fault.SERVER), crashes(Fault.SERVER)) == []
    # A node that was lost says nothing of the server.
    assert count_less(trials(), crashes(Fault.NODE)) == []


def test_only_what_both_runs_have_is_compared() -> None:
    only = [trial for trial in trials() if trial.server == "sync"]
    assert {one.server for one in compare_runs(ONE, trials(), only)} == {"sync"}


def test_the_interval_is_that_of_welchs_test() -> None:
    chance = random.Random(1)
    before = [chance.gauss(0, 0.1) for _ in range(8)]
    after = [chance.gauss(0.2, 0.4) for _ in range(11)]
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.9)
    found = welch_interval(before, after, 0.9)
    assert found.low == pytest.approx(math.exp(expected.low))
    assert found.high == pytest.approx(math.exp(expected.high))


def test_below_eight_repetitions_it_is_known_no_better_than_the_shorter_run() -> None:
    found = welch_interval([-1.0, 0.0, 1.0], [-1.0, 0.0, 0.0, 0.0, 1.0], 0.95)
    error = math.sqrt(1 / 3 + 0.5 / 5)
    assert found.high is not None
    assert math.log(found.high) == pytest.approx(error * stats.t.ppf(0.975, 2))


@pytest.mark.parametrize(("before", "after", "noise"), [(8, 3, 3.0), (5, 3, 3.0), (3, 3, 10.0)])
def test_runs_of_unlike_numbers_and_noise_are_rarely_called_different(
    before: int, after: int, noise: float
) -> None:
    """By Welch's degrees of freedom in 12, 10 and 8 % of such runs: far out his tails are thin."""
    chance = random.Random(11)
    wrong = 0
    for _ in range(1000):
        lines = [
            welch_interval(
                [chance.gauss(0, 0.05) for _ in range(before)],
                [chance.gauss(0, 0.05 * noise) for _ in range(after)],
                1 - 0.05 / 4,
            )
            for _ in range(4)
        ]
        wrong += not all((one.low or 0) <= 1 <= (one.high or 0) for one in lines)
    assert wrong <= 50


def test_values_without_any_variance_have_an_exact_ratio() -> None:
    found = welch_interval([0.0, 0.0], [math.log(2)] * 2, 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))


def test_equal_runs_are_rarely_called_different() -> None:
    chance = random.Random(7)
    wrong = 0
    for _ in range(400):
        before, after = ([chance.gauss(0, 0.05) for _ in range(5)] for _ in range(2))
        found = welch_interval(before, after, 0.95)
        assert found.low is not None
        assert found.high is not None
        wrong += not found.low <= 1 <= found.high
    assert 4 <= wrong <= 32


def test_the_intervals_of_all_comparisons_hold_at_once() -> None:
    """Without a correction for their number every second of these pairs of runs has a change."""
    chance = random.Random(3)
    names = [f"s{number}" for number in range(12)]
    spec = make_spec(*names)

    def once() -> list[TrialResult]:
        return [
            result(name, repetition, chance.gauss(0, 0.05))
            for name in names
            for repetition in range(1, 6)
        ]

    changed = 0
    for _ in range(100):
        found = compare_runs(spec, once(), once())
        assert len(found) == len(names)
        changed += any(one.change is not Change.NONE_FOUND for one in found)
    assert changed <= 9


def test_one_worker_is_what_a_server_has_that_says_none() -> None:
    # A run stored while the API had a default has 1.
    older = ONE.model_copy(
        update={"servers": [one.model_copy(update={"workers": 1}) for one in ONE.servers]}
    )
    assert what_differs(older, ONE) == []


def test_what_else_differs_is_said() -> None:
    other = make_spec("axum", "new", loads=("closed", "open"), topology={"postgres": {}})
    other = other.model_copy(
        update={"servers": [other.servers[0].model_copy(update={"workers": 4}), other.servers[1]]}
    )
    assert what_differs(ONE, ONE) == []
    assert what_differs(ONE, other) == [
        "the topology: postgres.maxConnections none and 100",
        "server axum: workers 1 and 4",
        "server sync is in one of them only",
        "server new is in one of them only",
        "load open is in one of them only",
    ]


def test_in_which_settings_a_server_and_its_tiers_differ_is_said_with_both_values() -> None:
    def of(image: str, **more: Any) -> BenchmarkRunSpec:
        server = {"name": "mine", "image": image, "resources": {"cpu": "1"}, **more}
        loads = [{"name": "closed", "closed": {"connections": 4, "duration": "5s"}}]
        pools = {"postgres": {}, "pgbouncer": {"poolSize": 30 if more else 20}}
        spec = {"scenario": "users", "servers": [server], "loads": loads, "topology": pools}
        return BenchmarkRunSpec.model_validate(spec)

    before = of("registry.example/shop:41")
    after = of("registry.example/shop:42", env=[{"name": "MODE", "value": "fast"}], profile=True)
    assert what_differs(before, after) == [
        "the topology: pgbouncer.poolSize 20 and 30",
        "server mine: image registry.example/shop:41 and registry.example/shop:42, "
        "profile false and true, env.MODE.value is another one",
    ]
    many = [{"name": f"V{n}", "value": "x"} for n in range(12)]
    (_, said) = what_differs(before, of("registry.example/shop:42", env=many))
    assert said.endswith("env.V6.value is another one, 5 more")


def test_other_images_under_the_same_names_are_said() -> None:
    def of(server: str, postgres: str, k6: str = "k6@sha256:17") -> list[TrialResult]:
        images = {"server": server, "postgres": postgres, "generator": k6}
        return [one.model_copy(update={"images": images}) for one in trials()]

    first = of("axum@sha256:1", "postgres@sha256:17")
    assert other_images(ONE, first, first, ONE) == []
    assert other_images(ONE, first, of("axum@sha256:1", "postgres@sha256:18", "k6@2"), ONE) == [
        "the image of generator: k6@sha256:17 and k6@2",
        "the image of postgres: postgres@sha256:17 and postgres@sha256:18",
    ]
    moved = of("axum@sha256:2", "postgres@sha256:17")
    assert other_images(ONE, first, moved, ONE) == [
        f"the image of server {name}: axum@sha256:1 and axum@sha256:2" for name in ("axum", "sync")
    ]
    # By another registry it is the same.
    mirrored = of("mirror/axum@sha256:1", "mirror/postgres@sha256:17", "mirror/k6@sha256:17")
    assert other_images(ONE, first, mirrored, ONE) == []
    # What the specs say themselves is not said twice, and of an older run nobody knows.
    named = [one.model_copy(update={"image": "registry.example/a:2"}) for one in ONE.servers]
    assert other_images(ONE, first, moved, ONE.model_copy(update={"servers": named})) == []
    assert other_images(ONE, trials(), first, ONE) == []


def test_nodes_of_the_same_names_with_other_cpus_are_said() -> None:
    def on(**models: str | None) -> list[TrialResult]:
        nodes = [NodeUsage(node=name, cpus=2, cpu_model=one) for name, one in models.items()]
        usage = TrialUsage(source=Source.AGENT, complete=True, nodes=nodes)
        return [one.model_copy(update={"usage": usage}) for one in trials()]

    intel, amd = on(n1="Xeon", n2="Xeon"), on(n1="EPYC", n2="Xeon")
    assert other_cpus(intel, intel) == other_cpus(amd, on(n3="Xeon", n4="EPYC")) == []
    assert other_cpus(intel, amd) == ["the CPUs: Xeon and EPYC or Xeon"]
    # Of a run without readings, or with a node that does not tell, nobody knows.
    assert other_cpus(intel, trials()) == other_cpus(on(n1="EPYC", n2=None), intel) == []
    assert other_cpus([*on(n1=None), *on(n1="EPYC")], on(n1="Xeon")) == ["the CPUs: EPYC and Xeon"]


def test_a_run_on_one_node_and_one_on_several_differ() -> None:
    rotated = ONE.model_copy(update={"nodes": Nodes.ROTATE})
    assert what_differs(ONE, rotated) == ["the nodes: fixed and rotate"]
    assert what_differs(ONE, ONE.model_copy(update={"nodes": Nodes.FIXED})) == []


def test_a_server_that_had_the_machine_alone_in_one_of_both_is_named() -> None:
    def beside(found: list[TrialResult], *servers: str) -> list[TrialResult]:
        return [
            one.model_copy(update={"beside": "other" if one.server in servers else None})
            for one in found
        ]

    together, alone = beside(trials(), "axum", "sync"), beside(trials())
    assert paired_otherwise(together, together) == []
    assert paired_otherwise(alone, alone) == []
    assert paired_otherwise(together, alone) == [
        "the pairing: axum under closed was measured beside another server and then alone",
        "the pairing: sync under closed was measured beside another server and then alone",
    ]
    assert paired_otherwise(beside(trials(), "axum"), together) == [
        "the pairing: sync under closed was measured alone and then beside another server"
    ]


def at_speed(
    seconds: float | None,
    work: str | None = "1",
    *,
    busy: float = 0.9,
    noise: float = 0.0,
    chance: random.Random | None = None,
    elsewhere: float = 200e-6,
) -> list[TrialResult]:
    """Return trials whose servers are on a node where a piece of work takes so long."""
    chance = chance or random.Random(1)

    def usage(server: str) -> TrialUsage:
        took = None if seconds is None else seconds * math.exp(chance.gauss(0, noise))
        there = NodeUsage(node="s", cpus=2, probe_seconds=took, probe_work=work, busy_share=busy)
        other = NodeUsage(
            node="g", cpus=2, probe_seconds=elsewhere, probe_work=work, busy_share=0.5
        )
        component = ComponentUsage(component="server", server=server, pods=1, nodes=["s"])
        return TrialUsage(
            source=Source.AGENT, complete=True, components=[component], nodes=[there, other]
        )

    return [one.model_copy(update={"usage": usage(one.server)}) for one in steady_trials()]


def test_cpus_that_were_not_as_fast_are_said() -> None:
    said = speeds_apart(at_speed(200e-6, noise=0.01), at_speed(300e-6, noise=0.01))
    assert said is not None
    assert "a fixed piece of work took 1.50x (1.49 to 1.51) as long after" in said
    faster = speeds_apart(at_speed(300e-6), at_speed(200e-6))
    assert faster is not None
    assert "0.67x" in faster
    # What is as fast, or was not told.
    assert speeds_apart(at_speed(200e-6), at_speed(209e-6)) is None
    assert speeds_apart(trials(), at_speed(300e-6)) is None
    assert speeds_apart(at_speed(None, None), at_speed(300e-6)) is None
    # Nodes of generators are none of a server's CPUs.
    assert speeds_apart(at_speed(200e-6), at_speed(200e-6, elsewhere=400e-6)) is None
    assert speeds_apart(at_speed(200e-6), at_speed(300e-6, elsewhere=133e-6)) is not None


def test_work_of_another_kind_is_not_compared() -> None:
    mixed = [*at_speed(300e-6), *at_speed(300e-6, "2")]
    for other in (at_speed(300e-6, "2"), mixed):
        said = speeds_apart(at_speed(200e-6), other)
        assert said is not None
        assert "cannot be compared" in said


def test_an_idle_node_is_no_slow_one() -> None:
    assert speeds_apart(at_speed(200e-6), at_speed(260e-6, busy=0.3)) is None


def test_trials_that_are_not_compared_say_nothing_of_the_speed() -> None:
    lost = [one.model_copy(update={"figures": None}) for one in at_speed(900e-6)]
    other = [one.model_copy(update={"load": "other"}) for one in at_speed(900e-6)]
    assert speeds_apart(at_speed(200e-6), [*at_speed(200e-6), *lost, *other]) is None


@pytest.mark.parametrize(("repetitions", "most"), [(1, 0), (2, 0), (3, 10)])
def test_chance_is_rarely_taken_for_another_speed(repetitions: int, most: int) -> None:
    """What is off the middle of its row is fewer degrees of freedom: 20 % of one repetition erred.

    Two servers have three degrees from three repetitions on.
    """
    chance, wrong = random.Random(3), 0
    for _ in range(100):
        before, after = (
            [
                one
                for one in at_speed(200e-6, noise=0.5, chance=chance)
                if one.repetition <= repetitions
            ]
            for _ in range(2)
        )
        wrong += speeds_apart(before, after) is not None
    assert wrong <= most


def test_how_often_a_server_was_measured_does_not_bear_on_the_speed() -> None:
    """Of two servers on nodes of unlike speed one has lost trials in the later run."""

    def of(kept: int) -> list[TrialResult]:
        slow = [one for one in at_speed(300e-6, noise=0.01) if one.server == "sync"]
        quick = [one for one in at_speed(200e-6, noise=0.01) if one.server == "axum"]
        return [*slow, *(one for one in quick if one.repetition <= kept)]

    assert speeds_apart(of(5), of(2)) is None


def test_a_script_that_was_edited_between_two_runs_is_said() -> None:
    def kept(**hashes: str) -> list[KeptScript]:
        return [KeptScript(config_map=name, hash=one) for name, one in hashes.items()]

    before, after = kept(shop="0a", lib="1a"), kept(shop="0b", lib="1a", more="2a")
    assert what_differs(ONE, ONE, scripts=(before, after)) == [
        "the script: ConfigMap shop was changed between them (0a and 0b)"
    ]
    # An older version kept none: nothing is known of them.
    assert what_differs(ONE, ONE, scripts=((), after)) == []


def test_runs_in_different_placements_differ() -> None:
    isolated = RunPlacement(name="isolated", rules="0a")
    changed = isolated.model_copy(update={"rules": "0b"})
    shared = RunPlacement(name="shared", rules="0a")

    def said(before: RunPlacement | None, after: RunPlacement | None) -> list[str]:
        return what_differs(ONE, ONE, placements=(before, after))

    assert said(None, None) == said(isolated, isolated) == []
    assert said(isolated, shared) == ["the placement: isolated and shared"]
    assert said(isolated, None) == ["the placement: isolated and none"]
    assert said(None, shared) == ["the placement: none and shared"]
    assert said(isolated, changed) == ["the placement: isolated was changed between them"]
    east, west = (isolated.model_copy(update={"lane": lane}) for lane in ("east", "west"))
    assert said(east, west) == ["the lane: east and west"]
    assert said(isolated, west) == ["the lane: none and west"]
    # The name alone says nothing of the rules.
    assert said(isolated, RunPlacement(name="isolated")) == []


def test_a_run_that_looked_again_and_again_has_the_intervals_of_its_own_report() -> None:
    stops = {"stopWhen": "decided", "repetitions": ONE.repetitions}
    spec = BenchmarkRunSpec.model_validate({**ONE.to_wire(), **stops})
    by_looks, once = (compare_runs(one, trials(), trials(), ONE)[0] for one in (spec, ONE))
    rows = {
        (row.server, row.load): row
        for row in summary_of(spec, steady({"axum": 1000.0, "sync": 500.0})).rows
    }
    row = rows[by_looks.server, by_looks.load]
    assert by_looks.before == row.requests_per_second
    assert by_looks.after == once.after
    assert by_looks.ratio is not None
    assert once.ratio is not None
    assert (by_looks.ratio.low or 0) < (once.ratio.low or 0)
