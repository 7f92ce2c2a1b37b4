"""Trials that ran on other nodes than the first ones are doubtful, and say so."""

from __future__ import annotations

from laptime.api.placement import Nodes
from laptime.api.results import Figures, TrialOutcome, TrialResult, Validity
from laptime.api.usage import NodeUsage, Source, TrialUsage
from laptime.measure import on_the_same_nodes


def result(ordinal: int, of: str, repetition: int = 1, **nodes: list[str]) -> TrialResult:
    return TrialResult(
        trial=f"t{ordinal}",
        ordinal=ordinal,
        server=of,
        load="closed",
        repetition=repetition,
        outcome=TrialOutcome.MEASURED,
        figures=Figures(requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0),
        nodes=nodes,
    )


def doubtful(
    *results: TrialResult, there: str = "", nodes: Nodes = Nodes.FIXED
) -> dict[str, list[str]]:
    return {
        one.trial: one.validity_reasons
        for one in on_the_same_nodes(results, {"a", "b"} - {*there}, nodes)
        if one.validity is Validity.DOUBTFUL
    }


def test_all_servers_of_a_run_belong_on_the_same_nodes() -> None:
    assert doubtful(result(1, "a", server=["n1"]), result(2, "b", server=["n1"])) == {}
    said = doubtful(result(2, "b", server=["n2"]), result(1, "a", server=["n1"]))
    assert said == {
        "t2": ["server b ran on n2, and on n1 in trial t1: what differs may be the nodes"]
    }


def test_each_part_is_compared_with_itself() -> None:
    first = result(1, "a", server=["n1"], generator=["n2", "n3"], postgres=["n1"])
    moved = result(2, "a", server=["n1"], generator=["n2"], postgres=["n3"])
    assert doubtful(first, moved) == {
        "t2": [
            "generator ran on n2, and on n2 and n3 in trial t1: what differs may be the nodes",
            "postgres ran on n3, and on n1 in trial t1: what differs may be the nodes",
        ]
    }


def test_what_was_doubted_before_is_kept_and_an_invalid_trial_stays_so() -> None:
    first = result(1, "a", server=["n1"])
    other = result(2, "a", server=["n2"]).model_copy(
        update={"validity": Validity.INVALID, "validity_reasons": ["no right answer"]}
    )
    (_, judged) = on_the_same_nodes([first, other], {"a"})
    assert judged.validity is Validity.INVALID
    assert judged.validity_reasons[0] == "no right answer"
    assert len(judged.validity_reasons) == 2


def test_a_trial_that_measured_nothing_says_nothing_of_where_others_belong() -> None:
    failed = result(1, "a", server=["n1"]).model_copy(update={"figures": None})
    assert doubtful(failed, result(2, "a", server=["n2"]), result(3, "b", server=["n2"])) == {}


def test_results_that_do_not_say_where_they_ran_are_left_as_they_are() -> None:
    assert doubtful(result(1, "a"), result(2, "a", server=["x"]), result(3, "a")) == {}
    old = result(1, "a").model_dump(mode="json", by_alias=True, exclude={"nodes"})
    assert TrialResult.model_validate(old).nodes == {}


def test_services_are_where_they_are_and_only_compared_with_themselves() -> None:
    blue, green = result(1, "a", server=["n1"]), result(2, "b", server=["n2"])
    assert doubtful(blue, green, there="ab") == {}
    # Beside one that Laptime deploys too, whichever comes first.
    assert doubtful(blue, green, there="a") == doubtful(blue, green, there="b") == {}
    moved = result(3, "b", server=["n1"])
    assert doubtful(blue, green, moved, there="ab") == {
        "t3": ["server b ran on n1, and on n2 in trial t2: what differs may be the nodes"]
    }


def test_a_first_trial_that_was_asked_for_again_is_compared_with_those_before_it() -> None:
    retried = result(1, "a", server=["n2"]).model_copy(update={"retry": 1})
    other = result(2, "a", server=["n1"])
    assert list(doubtful(retried, other)) == ["t1"]


def test_how_many_generators_a_node_had_is_compared_too() -> None:
    first = result(1, "a", generator=["n1", "n1", "n2"])
    assert doubtful(first, result(2, "a", generator=["n1", "n1", "n2"])) == {}
    assert doubtful(first, result(2, "a", generator=["n1", "n2", "n2"])) == {
        "t2": [
            "generator ran on n1 and n2 (2 pods), and on n1 (2 pods) and n2 in trial t1: what "
            "differs may be the nodes"
        ]
    }


def test_where_nodes_rotate_only_those_of_one_repetition_belong_together() -> None:
    trials = (
        result(1, "a", server=["n1"], generator=["n3"]),
        result(2, "b", server=["n1"], generator=["n3"]),
        result(3, "b", 2, server=["n2"], generator=["n1"]),
        result(4, "a", 2, server=["n2"], generator=["n1"]),
    )
    assert list(doubtful(*trials)) == list(doubtful(*trials, nodes=Nodes.ANY)) == ["t3", "t4"]
    assert doubtful(*trials, nodes=Nodes.ROTATE) == {}
    moved = result(5, "a", 2, server=["n1"], generator=["n1"])
    assert doubtful(*trials, moved, nodes=Nodes.ROTATE) == {
        "t5": ["server a ran on n1, and on n2 in trial t3: what differs may be the nodes"]
    }
    # A Service does not rotate.
    blue, green = result(1, "a", server=["n1"]), result(2, "a", 2, server=["n2"])
    assert list(doubtful(blue, green, there="a", nodes=Nodes.ROTATE)) == ["t2"]


def seen(result: TrialResult, **models: str | None) -> TrialResult:
    """Return a result with the readings of nodes that have these CPUs."""
    nodes = [NodeUsage(node=name, cpus=2, cpu_model=one) for name, one in models.items()]
    usage = TrialUsage(source=Source.AGENT, complete=True, nodes=nodes)
    return result.model_copy(update={"usage": usage})


def test_a_node_that_was_replaced_by_one_with_other_cpus_is_another_one() -> None:
    first = seen(result(1, "a", server=["n1"], generator=["n2"]), n1="EPYC", n2="Xeon")
    other = result(2, "b", server=["n1"], generator=["n2"])
    assert doubtful(first, seen(other, n1="EPYC", n2="Xeon")) == {}
    assert doubtful(first, seen(other, n1="Xeon", n2="Xeon")) == {
        "t2": ["node n1 has Xeon, and had EPYC in trial t1: what differs may be the machine"]
    }
    # It is said once of a node with several parts, and also where a part moved beside it.
    many = seen(result(1, "a", server=["n1"], postgres=["n1"]), n1="EPYC")
    moved = seen(result(2, "a", server=["n1"], postgres=["n1", "n3"]), n1="Xeon", n3="Xeon")
    assert doubtful(many, moved) == {
        "t2": [
            "postgres ran on n1 and n3, and on n1 in trial t1: what differs may be the nodes",
            "node n1 has Xeon, and had EPYC in trial t1: what differs may be the machine",
        ]
    }


def test_of_a_node_whose_cpus_nobody_tells_nothing_is_said() -> None:
    unread, silent = result(1, "a", server=["n1"]), seen(result(2, "a", server=["n1"]), n1=None)
    first = seen(result(3, "a", server=["n1"]), n1="EPYC")
    assert doubtful(unread, silent, first) == {}
    # What the first of them did not tell, a later one does.
    assert doubtful(unread, silent, first, seen(result(4, "a", server=["n1"]), n1="Xeon")) == {
        "t4": ["node n1 has Xeon, and had EPYC in trial t3: what differs may be the machine"]
    }
    # A node on which no part of the trial ran is nothing to it.
    idle = seen(result(4, "a", server=["n1"]), n1="EPYC", n2="Xeon")
    assert doubtful(seen(result(1, "a", server=["n1"]), n1="EPYC", n2="EPYC"), idle) == {}


def test_where_nodes_rotate_a_machine_may_change_between_repetitions() -> None:
    trials = [
        seen(result(1, "a", server=["n1"]), n1="EPYC"),
        seen(result(2, "a", 2, server=["n1"]), n1="Xeon"),
        seen(result(3, "b", 2, server=["n1"]), n1="EPYC"),
    ]
    assert list(doubtful(*trials)) == ["t2"]
    assert list(doubtful(*trials, nodes=Nodes.ROTATE)) == ["t3"]
