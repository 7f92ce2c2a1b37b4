"""What makes a bench measure again that counts whole runs and goes on where it stopped."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import alike.run
import cause.run
import deciding.run
import detectable.run
import duet.run
import lanes.run
import nodes.run
import pytest
from going_on import NOT_ASKED_YET, OF_BEHAVIOUR, ROOT, Taken, others_of_nodes
from laptime_proof import lines

SUBJECTS = {
    bench.__name__: bench.SUBJECT
    for bench in (
        alike.run,
        cause.run,
        deciding.run,
        detectable.run,
        duet.run,
        lanes.run,
        nodes.run,
    )
}


def files_of(subject: tuple[str, ...]) -> set[str]:
    """Return the files of git's that a subject names."""
    command = ["git", "ls-files", "--", *subject]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_whatever_a_figure_rests_on_is_of_the_subject(subject: tuple[str, ...]) -> None:
    files = files_of(subject)
    for name in (
        "agent/src/laptime_agent/pods.py",
        "images/exporter/main.go",
        "images/k6/main.go",
        "operator/src/laptime/api/causes.py",
        "operator/src/laptime/catalog/scenarios/users.yaml",
        "operator/src/laptime/manifests/postgres.py",
        "operator/src/laptime/measure/merge.py",
        "operator/src/laptime/plan/order.py",
        "operator/src/laptime/reconcile/placements.py",
        "operator/src/laptime/reconcile/stages/trials.py",
    ):
        assert name in files, name


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_words_tests_and_journals_are_not(subject: tuple[str, ...]) -> None:
    endings = (".md", ".jsonl", "_test.go")
    assert [name for name in files_of(subject) if name.endswith(endings)] == []


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_each_path_of_a_subject_is_one(subject: tuple[str, ...]) -> None:
    assert [one for one in subject if one[0] != ":" and not files_of((one,))] == []


def test_what_explain_tries_is_of_what_explains() -> None:
    tried = {"cli/experiments.py", "cli/explain_plan.py", "analysis/explained.py"}
    assert {f"operator/src/laptime/{name}" for name in tried} <= files_of(cause.run.SUBJECT)


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (Taken(0.05, 0.20), ""),
        (Taken(0.051, 0.20), "stolen 5.1% (at most 5%)"),
        (Taken(0.0, 0.201), "others 20.1% (at most 20%)"),
        (Taken(0.243, 0.5), "stolen 24.3% (at most 5%), others 50.0% (at most 20%)"),
        (Taken(0.0, None), "others not known"),
        (Taken(0.06, None), "stolen 6.0% (at most 5%), others not known"),
        # Of entries of before.
        (Taken(0.0, NOT_ASKED_YET), ""),
    ],
)
def test_what_others_took_is_beyond_a_limit_or_it_is_not(taken: Taken, said: str) -> None:
    assert OF_BEHAVIOUR.beyond(taken) == said


@pytest.mark.parametrize("bench", [alike, cause, deciding], ids=lambda one: one.__name__)
def test_an_entry_of_before_others_were_kept_is_judged_without(bench: Any) -> None:
    entry = lines.entries(bench.run.JOURNAL, lambda fields: bench.run.Entry(**fields))[0]
    assert bench.run.LIMITS.beyond(entry) == ""
    assert bench.run.LIMITS.beyond(replace(entry, others=None)) == "others not known"


def test_a_bench_without_a_limit_of_others_is_judged_whatever_they_took() -> None:
    assert replace(OF_BEHAVIOUR, others=None).beyond(Taken(0.0, 0.9)) == ""
    assert replace(OF_BEHAVIOUR, others=None).beyond(Taken(0.0)) == ""


def test_what_others_took_is_a_share_of_the_nodes_that_told_it() -> None:
    told = {"othersCores": 0.5, "cpus": 2}
    trials = [
        {"figures": {}, "usage": {"nodes": [{"othersCores": 2.0, "cpus": 2}]}},
        {"figures": {"requests": 1}, "usage": {"nodes": [told, {"othersCores": None, "cpus": 2}]}},
        {"figures": {"requests": 1}, "usage": {"nodes": [{"othersCores": 0.1, "cpus": 2}]}},
        {"figures": {"requests": 1}, "usage": None},
    ]
    assert others_of_nodes({"trials": trials}) == 0.15
    assert others_of_nodes({"trials": trials[3:]}) is None
