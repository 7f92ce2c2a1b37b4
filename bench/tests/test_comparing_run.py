"""Runs of thirteen like servers are drawn from by themselves, by a rule that was fixed before."""

from __future__ import annotations

import json
from pathlib import Path

import measured_noise
import numpy as np
import pytest
from candidates import ours
from comparing.run import LEFT_OVER, NOISES, OF_THIRTEEN, Case, Measured, of_measured
from measured_noise import JOURNAL, left_over
from noise import as_left_over
from outcomes import Outcome, outcome


def test_thirteen_servers_have_halves_of_their_own() -> None:
    chosen_by, held_out = left_over(thirteen=True)
    assert [one.shape for one in (*chosen_by, *held_out)] == [(3, 13)] * 10
    assert (len(chosen_by), len(held_out)) == (4, 6)
    others = left_over()
    # What was drawn from when figures of it were printed.
    assert [len(half) for half in others] == [114, 89]
    assert all(one.shape[1] < 13 for half in others for one in half)


@pytest.mark.parametrize("thirteen", [False, True])
def test_what_is_drawn_from_stays_while_the_journal_grows(
    thirteen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left_over(thirteen=thirteen)
    runs = [json.loads(line) for line in JOURNAL.read_text().splitlines()]
    later = [{**one, "began": one["began"] + 30 * 86400} for one in runs]
    grown = tmp_path / "journal.jsonl"
    grown.write_text("\n".join(map(json.dumps, runs + later)))
    monkeypatch.setattr(measured_noise, "JOURNAL", grown)
    assert list(map(len, left_over(thirteen=thirteen))) == list(map(len, before))


def test_a_noise_that_was_left_over_is_of_its_own_runs() -> None:
    dice = np.random.default_rng(2)
    sizes = {LEFT_OVER: 0.01, OF_THIRTEEN: 0.3}
    measured = Measured(
        [], {name: [size * dice.standard_normal((3, 13))] for name, size in sizes.items()}
    )
    for name, size in sizes.items():
        y = Case(4, 5, name).runs(200, measured)
        assert y.std() == pytest.approx(size, rel=0.3)


def test_like_noise_comes_out_unlike_where_it_is_drawn_from_runs_of_few_repetitions() -> None:
    dice = np.random.default_rng(13)
    found = {}
    for repetitions in (3, 10):
        rest = [
            measured_noise.left_over_of(0.05 * dice.standard_normal((repetitions, 13)))
            for _ in range(200)
        ]
        said = ours(as_left_over(rest, (4000, 5, 13), dice))
        found[repetitions] = outcome(said, said, 13)
    # What docs/statistics.md says of it.
    assert found[3].too_many
    assert found[10].false < 0.045


def test_the_seeds_of_what_was_printed_stay() -> None:
    assert NOISES.index("measured") == 11
    assert NOISES.index(LEFT_OVER) == 16
    assert NOISES.index(OF_THIRTEEN) == len(NOISES) - 1


def test_measured_noise_is_said_beside_its_goals_with_the_interval_of_the_count() -> None:
    fine, wide, false = (
        Outcome(4000, share, coverage, 1.0, 1.0)
        for share, coverage in ((0.04, 0.95), (0.04, 0.97), (0.06, 0.93))
    )
    lines = list(
        of_measured(
            {
                Case(2, 3, "equal"): false,
                Case(2, 3, "measured"): fine,
                Case(2, 3, "measured", 1.5): false,
                Case(2, 3, LEFT_OVER): wide,
                Case(2, 3, OF_THIRTEEN): false,
            }
        )
    )
    assert len(lines) == 3 + 1 + 3
    assert lines[3].startswith("| 2 x 3 | 4.0% (3.4% to 4.7%), 95.0% |")
    ends = (
        "1 of 1 cases; coverage within 94% to 96.5% in 1, above in 0",
        "1 of 1 cases; coverage within 94% to 96.5% in 0, above in 1",
        "0 of 1 cases; coverage within 94% to 96.5% in 0, above in 0",
    )
    assert all(line.endswith(end) for line, end in zip(lines[4:], ends, strict=True))
