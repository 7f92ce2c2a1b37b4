"""Trials that ran other bits than the first ones are in no comparison."""

from __future__ import annotations

from laptime.api.doubts import NOT_AS_CHECKED, OTHER_IMAGE
from laptime.api.results import Figures, TrialOutcome, TrialResult, Validity
from laptime.measure import of_the_same_bits


def result(ordinal: int, of: str, **images: str) -> TrialResult:
    return TrialResult(
        trial=f"t{ordinal}",
        ordinal=ordinal,
        server=of,
        load="closed",
        repetition=1,
        outcome=TrialOutcome.MEASURED,
        figures=Figures(requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0),
        images=images,
    )


def invalid(*results: TrialResult) -> dict[str, list[str]]:
    return {
        one.trial: one.validity_reasons
        for one in of_the_same_bits(results)
        if one.validity is Validity.INVALID
    }


def test_each_server_is_compared_with_itself() -> None:
    assert invalid(result(1, "a", server="x"), result(2, "b", server="y")) == {}
    said = invalid(result(2, "a", server="y"), result(1, "a", server="x"))
    assert said == {"t2": ["server a ran y, and x in trial t1: they are not the same"]}


def test_the_same_digest_is_the_same_image_by_whatever_name() -> None:
    same = result(2, "a", server="elsewhere/shop@sha256:1", postgres="docker://sha256:2")
    first = result(1, "a", server="shop@sha256:1", postgres="docker://sha256:2")
    assert invalid(first, same) == {}
    other = result(2, "a", server="shop@sha256:9", postgres="docker://sha256:2")
    assert list(invalid(first, other)) == ["t2"]
    # Behind a Service there may be several.
    both = result(1, "a", server="mesh@sha256:3 and shop@sha256:1")
    assert invalid(both, result(2, "a", server="a/shop@sha256:1 and b/mesh@sha256:3")) == {}
    assert list(invalid(both, result(2, "a", server="shop@sha256:1"))) == ["t2"]


def test_a_trial_that_was_asked_for_again_does_not_make_those_of_before_invalid() -> None:
    """The first that was measured is what all are compared with, wherever it is in the plan."""
    good = [result(n, "a", server="x") for n in (2, 3)]
    again = result(1, "a", server="y").model_copy(update={"retry": 1})
    said = "server a ran y, and x in trial t2, which was measured before it: they are not the same"
    assert invalid(again, *good) == {"t1": [said]}
    assert OTHER_IMAGE.said(said)


def test_a_clock_that_is_minutes_behind_does_not_make_the_other_trials_invalid() -> None:
    """Each has the times of its generator's node, and they may be on different ones."""
    results = [result(n, "a", server=image) for n, image in enumerate("xxy", 1)]
    told = [
        one.model_copy(update={"finished_at": f"2026-01-01T00:0{minute}:00Z"})
        for one, minute in zip(results, (5, 6, 1), strict=True)
    ]
    assert list(invalid(*told)) == ["t3"]


def test_a_trial_that_measured_nothing_is_compared_with_nothing() -> None:
    nothing = result(1, "a", server="y").model_copy(update={"figures": None})
    assert invalid(nothing, result(2, "a", server="x"), result(3, "a", server="x")) == {}


def test_tiers_and_generators_are_those_of_the_whole_run() -> None:
    said = invalid(result(1, "a", postgres="x"), result(2, "b", postgres="y"))
    assert said == {"t2": ["postgres ran y, and x in trial t1: they are not the same"]}


def test_what_a_part_of_the_sql_is_from_is_that_of_the_whole_run() -> None:
    rows = "data.postgres.seed[0]"
    said = invalid(result(1, "a", **{rows: "x"}), result(2, "b", **{rows: "y"}))
    assert said == {"t2": [f"{rows} ran y, and x in trial t1: they are not the same"]}


def test_the_script_of_a_load_is_compared_with_itself() -> None:
    other = result(2, "a", script="y").model_copy(update={"load": "other"})
    assert invalid(result(1, "a", script="x"), other) == {}
    said = invalid(result(1, "a", script="x"), result(2, "b", script="y"))
    assert said == {"t2": ["script closed ran y, and x in trial t1: they are not the same"]}


def test_results_that_do_not_say_what_ran_are_left_as_they_are() -> None:
    assert invalid(result(1, "a"), result(2, "a", server="x"), result(3, "a", server="x")) == {}
    old = result(1, "a").model_dump(mode="json", by_alias=True, exclude={"images"})
    assert TrialResult.model_validate(old).images == {}


def test_a_server_is_measured_with_the_bits_that_were_checked() -> None:
    results = [
        result(1, "a", server="x@2"),
        result(2, "a", server="x@1"),
        result(3, "b", server="y@3"),
    ]
    judged = of_the_same_bits(results, {"a": "x@1"})
    said = {one.trial: one.validity_reasons for one in judged if one.validity is Validity.INVALID}
    what = "server a ran x@2, and x@1 when its answers were checked: they are not the same"
    assert said == {"t1": [what]}
    assert NOT_AS_CHECKED.said(what)


def test_a_node_that_pulled_an_image_is_not_compared_with_one_that_was_loaded_with_it() -> None:
    results = [result(1, "a", server="sha256:9"), result(2, "a", server="sha256:8")]
    judged = of_the_same_bits(results, {"a": "x@sha256:1"})
    assert [one.validity is Validity.INVALID for one in judged] == [False, True]
