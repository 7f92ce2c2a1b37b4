"""Conditions by the Kubernetes API conventions."""

from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.status import Condition, ConditionStatus, ConditionType

T, F = ConditionStatus.TRUE, ConditionStatus.FALSE
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def _one(status: ConditionStatus, reason: str, message: str = "") -> list[Condition]:
    verdict = Verdict(ConditionType.SUCCEEDED, status, reason, message)
    return merge_conditions([], [verdict], 1, EARLIER)


def test_a_new_condition_has_everything_the_conventions_ask_for() -> None:
    (condition,) = _one(F, "Measuring", "3 of 5")
    assert condition.to_wire() == {
        "type": "Succeeded",
        "status": "False",
        "reason": "Measuring",
        "message": "3 of 5",
        "observedGeneration": 1,
        "lastTransitionTime": EARLIER,
    }


def test_the_transition_time_moves_only_when_the_status_flips() -> None:
    before = _one(F, "Measuring")
    same = Verdict(ConditionType.SUCCEEDED, F, "Finishing", "almost")
    (kept,) = merge_conditions(before, [same], 2, LATER)
    assert (kept.reason, kept.last_transition_time) == ("Finishing", EARLIER)
    assert kept.observed_generation == 2
    flipped = Verdict(ConditionType.SUCCEEDED, T, "AllMeasured")
    (moved,) = merge_conditions(before, [flipped], 2, LATER)
    assert moved.last_transition_time == LATER


def test_conditions_without_a_verdict_stay_as_they_are() -> None:
    accepted = Condition(type="Accepted", status=T, reason="Ok", last_transition_time=EARLIER)
    foreign = Condition(type="Theirs", status=T, reason="Ok", last_transition_time=EARLIER)
    verdict = Verdict(ConditionType.TIERS_READY, T, "AllReady")
    merged = merge_conditions([foreign, accepted], [verdict], 1, LATER)
    assert [one.type for one in merged] == ["Accepted", "TiersReady", "Theirs"]
    assert merged[0] == accepted
    assert merged[2] == foreign


def test_a_long_message_is_cut_to_what_a_status_should_hold() -> None:
    (condition,) = _one(F, "Broken", "x" * 5000)
    assert len(condition.message) == 1024
