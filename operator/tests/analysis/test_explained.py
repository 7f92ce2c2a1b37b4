"""What an experiment says of a cause: confirmed, refuted, undecided or not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log
from random import Random

import pytest

from laptime.analysis import summarise
from laptime.analysis.explained import ONE_SIDED, WORTH, Explained, Finding, explained, said_of
from laptime.analysis.statistics import interval_of_logs
from laptime.api import doubts
from laptime.api.causes import Cause, LimitedBy
from laptime.api.loads import Load
from laptime.api.resources import Resources
from laptime.api.results import TrialResult
from laptime.api.server import Server
from laptime.api.spec import BenchmarkRunSpec
from laptime.api.usage import RowUsage, Source
from laptime.measure import on_the_same_nodes
from laptime.plan import Trial
from laptime.report.status import status_rows
from tests.analysis.runs import Outcome as Measured
from tests.analysis.runs import Script, make_spec, run, summary_of

NAMES = ("mine", "mine-conns")


def said_by(script: Script, repetitions: int = 5, load: Load | None = None) -> Explained:
    spec = make_spec(*NAMES, repetitions=repetitions)
    arm = spec.servers[1].model_copy(update={"database_connections": 10})
    changes = {"servers": [spec.servers[0], arm], "loads": [load] if load else spec.loads}
    spec = spec.model_copy(update=changes)
    (found,) = explained(spec, summary_of(spec, script).rows)
    return found


def gaining(*factors: float) -> Script:
    """Return a script in which the second server is so many times as fast, by repetitions."""

    def outcome(trial: Trial) -> Measured:
        return Measured(1000.0 * (factors[trial.repetition - 1] if trial.server != "mine" else 1))

    return outcome


@pytest.mark.parametrize(
    ("factors", "finding"),
    [
        ((1.62, 1.60, 1.63, 1.61, 1.64), Finding.CONFIRMED),
        ((1.00, 1.01, 0.99, 1.02, 1.00), Finding.REFUTED),
        ((0.60, 0.61, 0.59, 0.62, 0.60), Finding.REFUTED),
        # 3 % for sure: it is there, and nothing worth having.
        ((1.03, 1.031, 1.029, 1.032, 1.03), Finding.REFUTED),
        ((1.05, 1.00, 1.10, 1.02, 1.08), Finding.UNDECIDED),
        ((1.5, 0.8, 2.0, 1.0, 1.2), Finding.UNDECIDED),
    ],
)
def test_the_whole_interval_of_the_gain_decides(
    factors: tuple[float, ...], finding: Finding
) -> None:
    found = said_by(gaining(*factors))
    assert found.finding is finding
    assert (found.arm, found.change) == ("mine-conns", "10 database connections instead of 5")


def test_of_response_times_the_gain_is_how_many_times_as_short() -> None:
    arriving = {"rate": 100, "maxConnections": 10, "duration": "10s"}
    load = Load.model_validate({"name": "open", "open": arriving})

    def outcome(trial: Trial) -> Measured:
        slow = trial.server == "mine"
        return Measured(100.0, ((4000 if slow else 1000) + trial.repetition * 10,) * 1000)

    found = said_by(outcome, load=load)
    assert found.finding is Finding.CONFIRMED
    assert found.gain is not None
    assert found.gain.value == pytest.approx(3.9, abs=0.1)
    assert found.gain.low is not None
    assert found.gain.high is not None
    assert found.gain.low < found.gain.value < found.gain.high
    assert found.compared_by.value == "p99"
    assert said_of(found).startswith("confirmed: 3.9")
    assert " as short a p99 with 10 database connections instead of 5" in said_of(found)


def test_what_was_not_measured_confirms_and_refutes_nothing() -> None:
    def failing(trial: Trial) -> Measured:
        if trial.server == "mine":
            return Measured(1000.0)
        return Measured(0.0, failure=("Crashed", "exit code 1"))

    found = said_by(failing)
    assert (found.finding, found.gain) == (Finding.NOT_KNOWN, None)
    assert "mine-conns was not measured" in found.why


def test_one_repetition_confirms_nothing() -> None:
    found = said_by(gaining(3.0), repetitions=1)
    assert found.finding is Finding.NOT_KNOWN
    assert found.why == "the gain has no interval: there are too few repetitions"


def test_doubts_of_either_side_are_said() -> None:
    def busy(trial: Trial) -> Measured:
        return Measured(1000.0, busiest_thread=0.99 if trial.server == "mine" else 0.3)

    found = said_by(busy)
    assert found.why.startswith("doubtful: ")


def test_doubts_that_a_large_status_has_no_room_for_are_still_doubts() -> None:
    def busy(trial: Trial) -> Measured:
        return Measured(1000.0 * (1.6 if trial.server != "mine" else 1), busiest_thread=0.99)

    spec = make_spec(*NAMES)
    arm = spec.servers[1].model_copy(update={"database_connections": 10})
    spec = spec.model_copy(update={"servers": [spec.servers[0], arm]})
    rows = summary_of(spec, busy).rows
    (whole,) = explained(spec, rows)
    assert whole.why.startswith("doubtful: the generator used 99%")
    (short,) = explained(spec, status_rows(rows, 1))
    assert short.finding is Finding.CONFIRMED
    assert short.why == "doubtful: its report says why"


IMAGE = Server.model_validate({"name": "mine", "image": "registry.example/mine:1"})


def with_workers(
    gain: float, peak: float | None, unchanged: Server = IMAGE, peak_before: float = 1.0
) -> Explained:
    """Return what an arm with a second worker gives, whose use of its CPU had this peak."""
    arm = unchanged.model_copy(
        update={"name": "mine-workers", "workers": 2 * unchanged.worker_count}
    )
    spec = make_spec(*NAMES).model_copy(update={"servers": [unchanged, arm]})
    rows = []
    for row in summary_of(spec, gaining(*[gain * one for one in (1.0, 1.01, 0.99, 1, 1)])).rows:
        of_row = peak if row.server == arm.name else peak_before
        usage = RowUsage(source=Source.AGENT, cores_mean=of_row, cores_peak=of_row)
        limited_by = LimitedBy(cause=Cause.UNKNOWN, evidence="0.5 of the 2")
        rows.append(row.model_copy(update={"usage": usage, "limited_by": limited_by}))
    (found,) = explained(spec, rows)
    return found


def test_more_workers_of_an_image_that_may_not_heed_them_are_not_refuted() -> None:
    same = with_workers(1.0, peak=1.02)
    assert (same.finding, same.then) == (Finding.NOT_KNOWN, None)
    assert same.gain is not None
    assert same.change.startswith("2 workers, if the image heeds WORKERS, instead of 1, ")
    assert same.why == (
        "whether mine-workers had more workers nobody knows: it never used more than 1.02 cores"
    )
    unwatched = with_workers(1.0, peak=None)
    assert unwatched.finding is Finding.NOT_KNOWN
    assert unwatched.why == (
        "whether mine-workers had more workers nobody knows: nobody read what it used"
    )
    # Of several threads one more or less is not seen.
    assert with_workers(1.0, peak=3.1, peak_before=3.0).finding is Finding.NOT_KNOWN


def test_more_workers_that_ran_or_made_it_faster_are_judged() -> None:
    ran = with_workers(1.0, peak=1.4)
    assert (ran.finding, ran.why) == (Finding.REFUTED, "")
    assert ran.then is not None
    assert with_workers(1.6, peak=1.02).finding is Finding.CONFIRMED
    for heeds in (
        IMAGE.model_copy(update={"workers": 1}),
        Server.model_validate({"name": "mine", "preset": "axum-sqlx"}),
    ):
        assert with_workers(1.0, peak=1.02, unchanged=heeds).finding is Finding.REFUTED


@pytest.mark.parametrize(
    ("limit", "gain", "finding"),
    [
        ("500m", 1.0, Finding.NOT_KNOWN),
        ("1", 1.0, Finding.NOT_KNOWN),
        ("1500m", 1.0, Finding.REFUTED),
        ("1", 1.6, Finding.CONFIRMED),
    ],
)
def test_more_workers_under_a_limit_that_they_fill_already_refute_nothing(
    limit: str, gain: float, finding: Finding
) -> None:
    unchanged = Server.model_validate({"name": "mine", "preset": "fastapi"})
    arm = unchanged.model_copy(update={"name": "mine-workers", "workers": 2})
    spec = make_spec(*NAMES).model_copy(update={"servers": [unchanged, arm]})
    rows = []
    for row in summary_of(spec, gaining(*[gain * one for one in (1.0, 1.01, 0.99, 1, 1)])).rows:
        what = f"server {row.server}"
        said = doubts.LIMIT_ADDED.says(what=what, limits=f"{limit} of CPU")
        rows.append(row.model_copy(update={"validity_reasons": [said]}))
    (found,) = explained(spec, rows)
    assert found.finding is finding
    why = f"the cluster limits mine to {limit} CPU, and the run does not: write resources.cpu"
    assert found.why.startswith(why) is (finding is Finding.NOT_KNOWN)


SEARCH = Load.model_validate({"name": "limit", "saturation": {"p99": "50ms"}})


@pytest.mark.parametrize(
    ("mine", "more", "finding"),
    [
        # Both did all that was asked of them: more of it may give any amount.
        ((10_000, 0), (10_000, 0), Finding.NOT_KNOWN),
        ((5000, 5200), (10_000, 0), Finding.CONFIRMED),
        ((10_000, 0), (5000, 5200), Finding.REFUTED),
        ((5000, 0), (10_000, 10_400), Finding.NOT_KNOWN),
        ((10_000, 10_400), (5000, 0), Finding.NOT_KNOWN),
        ((5000, 5200), (10_000, 10_400), Finding.CONFIRMED),
    ],
)
def test_a_search_without_an_upper_end_refutes_nothing(
    mine: tuple[float, float], more: tuple[float, float], finding: Finding
) -> None:
    def searched(trial: Trial) -> Measured:
        low, high = mine if trial.server == "mine" else more
        search = {"low": low, "high": high, "p99Seconds": 0.05, "errorRate": 0.001}
        return Measured(low, search=search)

    said = said_by(searched, load=SEARCH)
    assert said.finding is finding
    if finding is Finding.NOT_KNOWN:
        assert "may do more than was found: the objective was met at" in said.why


def test_a_search_that_a_late_generator_ended_refutes_nothing() -> None:
    def searched(trial: Trial) -> Measured:
        search = {"low": 5000, "high": 5200, "p99Seconds": 0.05, "errorRate": 0.001, "late": True}
        return Measured(5000, search=search)

    said = said_by(searched, load=SEARCH)
    assert said.finding is Finding.NOT_KNOWN
    assert "the generator did not send in time" in said.why


GAINS = (1.38, 1.40, 1.42, 1.39, 1.41)


def more_cpu() -> BenchmarkRunSpec:
    """Return an experiment whose arm asks for more CPU."""
    spec = make_spec(*NAMES)
    arm = spec.servers[1].model_copy(update={"resources": Resources(cpu="2")})
    return spec.model_copy(update={"servers": [spec.servers[0], arm]})


@pytest.mark.parametrize(
    ("node", "finding"),
    [
        # It fits there alone: whether it is the node or the CPU nobody knows.
        (lambda one: "b" if one.server != "mine" else "a", Finding.NOT_KNOWN),
        (
            lambda one: "b" if one.server != "mine" and one.repetition > 2 else "a",
            Finding.NOT_KNOWN,
        ),
        # Where the first trial was there is nobody any more.
        (
            lambda one: "a" if one.ordinal == 1 else "b" if one.server == "mine" else "c",
            Finding.NOT_KNOWN,
        ),
        (
            lambda one: "b" if one.server != "mine" and one.repetition == 3 else "a",
            Finding.CONFIRMED,
        ),
        (lambda one: "b" if one.repetition > 2 else "a", Finding.CONFIRMED),
    ],
)
@pytest.mark.parametrize("worth", [1.0, 0.7])
def test_an_arm_that_ran_on_another_node_confirms_and_refutes_nothing(
    node: Callable[[TrialResult], str], finding: Finding, worth: float
) -> None:
    spec = more_cpu()
    trials, results, payloads = run(spec, gaining(*(worth * one for one in GAINS)))
    placed = [
        one.model_copy(
            update={
                "nodes": {"server": [node(one)]},
                "finished_at": f"2026-01-01T00:00:{one.ordinal:02d}Z",
            }
        )
        for one in results
    ]
    judged = on_the_same_nodes(placed, NAMES)
    (found,) = explained(spec, summarise(spec, trials, judged, payloads, None, {}).rows)
    if worth < 1.0 and finding is Finding.CONFIRMED:
        finding = Finding.REFUTED
    assert found.finding is finding
    assert found.gain is not None
    if finding is Finding.NOT_KNOWN:
        assert found.why.startswith("more differs than what was tried: server mine")
        assert "what differs may be the nodes" in found.why


@pytest.mark.parametrize(
    ("doubt", "of_arm", "of_both"),
    [
        (doubts.CONTAINER_ADDED, {"containers": "container proxy"}, {}),
        (doubts.IMAGE_REPLACED, {"image": "mirror/mine:2", "asked": "mine:1"}, {}),
        # Half of what was asked for is twice as much for an arm.
        (
            doubts.OTHER_RESOURCES,
            {"has": "a CPU limit of 1", "asked": "2"},
            {"has": "a CPU limit of 500m", "asked": "1"},
        ),
    ],
    ids=lambda one: one.text[:20] if isinstance(one, doubts.Doubt) else "",
)
def test_what_the_cluster_made_of_an_arm_alone_confirms_nothing(
    doubt: doubts.Doubt, of_arm: dict[str, str], of_both: dict[str, str]
) -> None:
    spec = more_cpu()
    found = []
    for also in (False, True):
        rows = []
        for row in summary_of(spec, gaining(*GAINS)).rows:
            differs = of_arm | of_both if row.server == "mine" else of_arm
            said = doubt.says(what=f"server {row.server}", **differs)
            told = [doubts.in_repetitions([said] * 5, 5)]
            has = also or row.server != "mine"
            rows.append(row.model_copy(update={"validity_reasons": told if has else []}))
        (one,) = explained(spec, rows)
        found.append(one.finding)
    assert found == [Finding.NOT_KNOWN, Finding.CONFIRMED]


@pytest.mark.parametrize("noise", [0.01, 0.06])
@pytest.mark.parametrize("repetitions", [5, 9, 15, 19, 25, 30, 60, 100])
def test_what_is_in_fewer_repetitions_than_it_takes_is_in_the_interval(
    repetitions: int, noise: float
) -> None:
    """An arm on a node 1.5 times as fast gains nothing by itself, and is not confirmed."""
    random = Random(1)
    elsewhere = next(n for n in range(repetitions, 0, -1) if n / repetitions < ONE_SIDED)
    runs, confirmed = 40, 0
    for _ in range(runs):
        logs = [random.gauss(0, noise) for _ in range(repetitions)]
        logs[:elsewhere] = [one + log(1.5) for one in logs[:elsewhere]]
        low = interval_of_logs(logs).low
        confirmed += low is not None and low >= WORTH
    assert confirmed <= 0.05 * runs


def elsewhere_in(repetitions: int, of: int, node: str = "b") -> str:
    said = doubts.OTHER_NODES.says(what="server mine-conns", nodes=node, before="a", trial="t1")
    return doubts.in_repetitions([said] * repetitions, of)


def doubted(of_arm: list[str], of_unchanged: list[str]) -> Explained:
    """Return what an arm gives of which, and of whose unchanged server, such is said."""
    spec = more_cpu()
    rows = [
        row.model_copy(
            update={"validity_reasons": of_unchanged if row.server == "mine" else of_arm}
        )
        for row in summary_of(spec, gaining(*GAINS)).rows
    ]
    (found,) = explained(spec, rows)
    return found


def test_half_of_many_repetitions_elsewhere_is_no_chance() -> None:
    assert doubted([elsewhere_in(14, 30)], []).finding is Finding.NOT_KNOWN
    assert doubted([elsewhere_in(8, 30)], []).finding is Finding.CONFIRMED
    # In each trial it is on one of them.
    several = [elsewhere_in(5, 30, "b"), elsewhere_in(5, 30, "c")]
    assert doubted(several, []).finding is Finding.NOT_KNOWN


def test_what_the_cluster_changed_of_one_pod_counts_once() -> None:
    def changed(server: str, repetitions: int) -> list[str]:
        return [
            doubts.in_repetitions(
                [doubts.OTHER_RESOURCES.says(what=f"server {server}", has=has, asked=asked)]
                * repetitions,
                5,
            )
            for has, asked in (
                ("a CPU limit of 1", "2"),
                ("a CPU request of 1", "2"),
                ("a memory limit of 1Gi", "2Gi"),
            )
        ]

    assert doubted(changed("mine-conns", 1), []).finding is Finding.CONFIRMED
    # Quoted is what decided.
    found = doubted(changed("mine-conns", 1), changed("mine", 5))
    assert found.finding is Finding.NOT_KNOWN
    assert found.why.endswith("and 2 was asked for (in 5 of 5 repetitions)")


def test_a_load_that_has_no_rows_yet_is_left_out() -> None:
    spec = make_spec(*NAMES)
    assert explained(spec, []) == []


def test_what_is_doubtful_or_not_known_is_said_with_it() -> None:
    found = said_by(gaining(1.62, 1.60, 1.63, 1.61, 1.64))
    clean = "with 10 database connections instead of 5"
    assert said_of(found).endswith(clean)
    assert said_of(replace(found, why="doubtful: others used 0.8 cores")).endswith(
        f"{clean} (doubtful: others used 0.8 cores)"
    )
    unknown = replace(found, finding=Finding.NOT_KNOWN, gain=None, why="there is no factor")
    assert said_of(found).startswith("confirmed: 1.62x (")
    assert said_of(unknown) == (
        "not known: 10 database connections instead of 5 (there is no factor)"
    )
