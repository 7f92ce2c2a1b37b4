"""A trial belongs where the first measured one was, and need not after it was lost.

Where nodes rotate the first is that of its repetition.
"""

from __future__ import annotations

from laptime.api.placement import Nodes
from laptime.api.results import Figures, TrialOutcome, TrialResult
from laptime.plan import NodeDesign, Places

PARTS = ("server", "generator")


def places_of(
    results: list[TrialResult], lost: int = 0, nodes: Nodes = Nodes.FIXED, repetition: int = 1
) -> Places:
    return NodeDesign(nodes, frozenset({"a"})).of_trial(results, repetition, lost, PARTS)


def result(
    ordinal: int, measured: bool = True, repetition: int = 1, **nodes: list[str]
) -> TrialResult:
    figures = Figures(requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0)
    return TrialResult(
        trial=f"t{ordinal}",
        ordinal=ordinal,
        server="a",
        load="closed",
        repetition=repetition,
        outcome=TrialOutcome.MEASURED if measured else TrialOutcome.FAILED,
        figures=figures if measured else None,
        nodes=nodes,
    )


def test_the_first_trial_may_go_anywhere() -> None:
    assert places_of([]) == Places()
    assert places_of([result(1, measured=False, server=["n1"])]) == Places()
    assert places_of([result(1)]) == Places()


def test_later_ones_go_where_the_first_measured_one_was() -> None:
    results = [result(3, server=["n3"]), result(2, server=["n2"], generator=["n1", "n4"])]
    assert places_of(results).nodes == {"server": ("n2",), "generator": ("n1", "n4")}


def test_one_that_was_lost_may_go_elsewhere() -> None:
    assert places_of([result(1, server=["n1"])], lost=1) == Places({"server": ("n1",)}, firm=False)


def test_servers_of_a_run_do_not_follow_the_pods_of_a_service() -> None:
    service = result(1, server=["n1"], generator=["n2"]).model_copy(update={"server": "there"})
    assert places_of([service]) == Places({"generator": ("n2",)})
    both = [service, result(2, server=["n3"], generator=["n2"])]
    expected = Places({"server": ("n3",), "generator": ("n2",)})
    assert places_of(both) == expected


def test_what_was_measured_first_says_where_and_not_what_was_planned_first() -> None:
    retried = result(1, server=["n2"]).model_copy(update={"retry": 1})
    first = result(2, server=["n1"])
    assert places_of([retried, first]).nodes == {"server": ("n1",)}


def test_what_was_measured_first_is_told_by_no_clock_of_a_node() -> None:
    # The generator of the second one was on a node whose clock is minutes behind.
    first = result(1, server=["n1"]).model_copy(update={"finished_at": "2026-02-03T10:09:00Z"})
    second = result(2, server=["n2"]).model_copy(update={"finished_at": "2026-02-03T10:01:00Z"})
    assert places_of([first, second]).nodes == {"server": ("n1",)}


def test_trials_are_no_longer_bound_once_one_went_elsewhere_until_one_was_back() -> None:
    first = result(1, server=["n1"], generator=["n2", "n3"])
    moved = result(2, server=["n4"], generator=["n2"])
    back = result(3, server=["n1"], generator=["n3"])
    anchored = {"server": ("n1",), "generator": ("n2", "n3")}
    assert places_of([first, moved]) == Places(anchored, firm=False)
    assert places_of([first, moved, back]) == Places(anchored)


def test_a_tier_that_is_elsewhere_unbinds_nothing_else() -> None:
    first = result(1, server=["n1"], postgres=["n1"])
    second = result(2, server=["n1"], postgres=["n2"])
    assert places_of([first, second]) == Places({"server": ("n1",)})


def test_a_node_of_several_generators_is_asked_for_once() -> None:
    assert places_of([result(1, generator=["n1", "n1", "n2"])]).nodes["generator"] == ("n1", "n2")


def rotated(repetition: int, *results: TrialResult, lost: int = 0) -> Places:
    return places_of([*results], lost, Nodes.ROTATE, repetition)


def test_rotating_binds_the_trials_of_a_repetition_to_its_first_and_to_no_other() -> None:
    first = result(1, server=["n1"], generator=["n3"])
    second = result(3, repetition=2, server=["n2"], generator=["n1"])
    assert rotated(1, first).nodes == {"server": ("n1",), "generator": ("n3",)}
    assert rotated(2, first).nodes == {}
    assert rotated(2, first, second).nodes == {"server": ("n2",), "generator": ("n1",)}
    # One of an earlier repetition that is asked for again belongs to that one.
    assert rotated(1, first, second).nodes == {"server": ("n1",), "generator": ("n3",)}
    assert not rotated(2, first, second, lost=1).firm


def test_rotating_goes_to_nodes_without_a_turn_and_then_to_those_with_fewer() -> None:
    turns = [result(n, repetition=n, server=[node]) for n, node in enumerate("abab", 1)]
    assert rotated(1).avoided == ()
    assert rotated(2, *turns[:1]).avoided == (("a",),)
    assert rotated(3, *turns[:2]).avoided == (("a", "b"),)
    assert rotated(4, *turns[:3]).avoided == (("a", "b"), ("a",))
    assert rotated(5, *turns).avoided == (("a", "b"),)


def test_a_repetition_had_its_turn_on_the_node_of_its_first_trial() -> None:
    moved = [
        result(1, repetition=1, server=["a"]),
        result(2, repetition=1, server=["b"]),
        result(3, repetition=1, server=["b"]),
    ]
    assert rotated(2, *moved).avoided == (("a",),)
    service = result(1, server=["n1"]).model_copy(update={"server": "there"})
    assert rotated(2, service, result(2, False, server=["n2"])).avoided == ()


def test_any_node_will_do_where_the_run_says_so() -> None:
    first = result(1, server=["n1"], postgres=["n2"])
    assert places_of([first], 0, Nodes.ANY) == Places()
    anywhere, rotating = (NodeDesign(one, frozenset({"a"})) for one in (Nodes.ANY, Nodes.ROTATE))
    assert anywhere.of_tiers([first], ("postgres",)) == Places()
    assert rotating.of_tiers([first], ("postgres",)) == Places({"postgres": ("n2",)})


def test_rotating_leaves_a_node_where_nothing_worked() -> None:
    good = [result(1, repetition=1, server=["a"]), result(2, repetition=2, server=["b"])]
    # Nothing of the third repetition was measured: first anywhere new, in the end where it worked.
    assert rotated(3, *good, lost=1) == rotated(3, *good) == Places(avoided=(("a", "b"),))
    assert rotated(3, *good, lost=2) == Places({"server": ("a",)}, firm=False)
    failed = result(3, False, repetition=3, server=["c"])
    assert rotated(3, *good, failed).avoided == (("a", "b", "c"), ("c",))
    # Once something was, it is where that was, as ever.
    measured = result(4, repetition=3, server=["b"])
    assert rotated(3, *good, failed, measured, lost=2).nodes == {"server": ("b",)}
