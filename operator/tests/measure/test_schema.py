"""Whether a server was measured on the schema that it was checked on."""

from __future__ import annotations

import pytest

from laptime.api.doubts import OTHER_SCHEMA
from laptime.api.results import Figures, TrialOutcome, TrialResult, Validity
from laptime.measure import on_their_schemas

OLD, NEW, OTHER = "q1-a", "q1-b", "q1-c"


def result(of: str, schema: str | None, **fields: object) -> TrialResult:
    return TrialResult.model_validate(
        {
            "trial": "t1",
            "ordinal": 1,
            "server": of,
            "load": "closed",
            "repetition": 1,
            "outcome": TrialOutcome.MEASURED,
            "figures": Figures(
                requests=1, errors=0, window_seconds=1.0, requests_per_second=1.0
            ).to_wire(),
            "databaseSchema": schema,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (NEW, "on that of server new"),
        (
            OTHER,
            "no server was checked on it: one has changed it since, or the database was made anew",
        ),
    ],
)
def test_a_server_on_another_schema_than_at_its_check_is_doubtful(schema: str, why: str) -> None:
    (judged,) = on_their_schemas([result("old", schema)], {"old": OLD, "new": NEW})
    assert judged.validity is Validity.DOUBTFUL
    (said,) = judged.validity_reasons
    assert said == (
        "server old was measured on another schema of the database than it was checked on: " + why
    )
    assert OTHER_SCHEMA.said(said)


@pytest.mark.parametrize(
    ("schema", "checked"),
    [
        (OLD, {"old": OLD, "new": NEW}),
        # Its first requests have changed it: a trial finds it as it was before them, or after.
        (OLD, {"old": f"{OLD},{NEW}"}),
        (NEW, {"old": f"{OLD},{NEW}"}),
        # Nobody knows: it took too long, or an earlier version has begun the run.
        (None, {"old": OLD, "new": NEW}),
        (NEW, {"new": NEW}),
        # Asked otherwise, by another version.
        ("q2-a", {"old": OLD, "new": NEW}),
    ],
)
def test_what_is_the_same_or_not_known_is_no_doubt(
    schema: str | None, checked: dict[str, str]
) -> None:
    one = result("old", schema)
    assert on_their_schemas([one], checked) == [one]


def test_whose_schema_it_is_is_said_of_either_of_two() -> None:
    checked = {"old": OLD, "new": f"{NEW},{OTHER}"}
    for schema in (NEW, OTHER):
        (judged,) = on_their_schemas([result("old", schema)], checked)
        assert judged.validity_reasons[0].endswith("on that of server new")


def test_with_a_database_of_its_own_no_server_is_on_that_of_another() -> None:
    """However alike they are, as where all of them begin with the same copy."""
    (judged,) = on_their_schemas([result("old", NEW)], {"old": OLD, "new": NEW}, True)
    assert judged.validity_reasons[0].endswith(
        "it has changed since, or the database was made anew"
    )


def test_what_is_invalid_stays_so_and_says_the_schema_too() -> None:
    broken = result("old", NEW, validity=Validity.INVALID, validityReasons=["no right answer"])
    (judged,) = on_their_schemas([broken], {"old": OLD})
    assert judged.validity is Validity.INVALID
    assert judged.validity_reasons[0] == "no right answer"
    assert OTHER_SCHEMA.said(judged.validity_reasons[1])
