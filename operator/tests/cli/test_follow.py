"""Following a run: what is shown when, and how it ends."""

from __future__ import annotations

import io
import itertools
import math
import os
import pty
import re
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from laptime.cli.display import LineDisplay, LiveDisplay, open_display
from laptime.cli.follow import NotOver, follow
from laptime.cli.mistakes import Mistake, Unreachable
from laptime.cli.printing import PlainConsole
from laptime.cli.progress import Tracker, View, describe_trial, warnings
from laptime.cli.runs import Run, parse_run

PROGRESS = {"completed": 0, "total": 10, "remainingSeconds": 80}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Recorder:
    def __init__(self) -> None:
        self.views: list[View] = []
        self.warned: list[str] = []

    def show(self, view: View) -> None:
        self.views.append(view)

    def warn(self, text: str) -> None:
        self.warned.append(text)


def _run(manifest: dict[str, Any], status: dict[str, Any], uid: str = "u") -> Run:
    metadata = {"name": "demo", "namespace": "team", "uid": uid}
    return parse_run({**manifest, "metadata": metadata, "status": status})


def _follow(
    answers: list[Run | Exception | None],
    repeat_first: int = 1,
    before: Callable[[Run], int | None] = lambda _: None,
) -> tuple[Run, Recorder]:
    def all_answers() -> Iterator[Run | Exception | None]:
        for _ in range(repeat_first):
            yield answers[0]
        yield from answers[1:]

    stream = all_answers()

    def fetch() -> Run | None:
        answer = next(stream)
        if isinstance(answer, Exception):
            raise answer
        return answer

    clock, recorder = Clock(), Recorder()
    chosen = " --context prod"
    return follow(fetch, recorder, before, clock, clock.sleep, chosen=chosen), recorder


def _condition(type_: str, reason: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": "False",
        "reason": reason,
        "message": "why",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_ends_with_the_run(manifest: Any) -> None:
    over = _run(manifest, {"state": "Succeeded"})
    result, recorder = _follow([_run(manifest, {"state": "Running"}), over])
    assert result is over
    assert [view.state for view in recorder.views] == ["Running", "Succeeded"]


def test_a_run_that_is_to_be_retried_is_followed_to_its_new_end(manifest: Any) -> None:
    asked = {**manifest, "spec": {**manifest["spec"], "retry": 2}}
    before = _run(asked, {"state": "Failed", "retries": 1})
    over = _run(asked, {"state": "Succeeded", "retries": 2})
    again = _run(asked, {"state": "Queued", "retries": 2})
    result, recorder = _follow([before, again, over], repeat_first=60)
    assert result is over
    states = list(dict.fromkeys(view.state for view in recorder.views))
    assert states == ["Waiting for the operator", "Queued", "Succeeded"]
    assert len(recorder.warned) == 1
    assert "No sign of the operator" in recorder.warned[0]


def test_a_cancelled_run_is_over_whatever_was_asked_of_it(manifest: Any) -> None:
    wanted = {**manifest["spec"], "retry": 1, "cancel": True}
    cancelled = _run({**manifest, "spec": wanted}, {"state": "Cancelled"})
    assert _follow([cancelled])[0] is cancelled


def test_a_condition_that_turned_false_is_said_once(manifest: Any) -> None:
    broken = _run(
        manifest, {"state": "Running", "conditions": [_condition("ServersVerified", "WrongAnswer")]}
    )
    _, recorder = _follow([broken, _run(manifest, {"state": "Failed"})], repeat_first=5)
    assert recorder.warned == ["ServersVerified is False: WrongAnswer: why"]


def test_a_deleted_run_ends_it(manifest: Any) -> None:
    with pytest.raises(Mistake, match="was deleted"):
        _follow([_run(manifest, {}), None])


def test_another_run_of_the_same_name_is_not_taken_for_it(manifest: Any) -> None:
    with pytest.raises(Mistake, match="was deleted"):
        _follow([_run(manifest, {}), _run(manifest, {"state": "Succeeded"}, uid="other")])


def test_a_short_outage_is_waited_for(manifest: Any) -> None:
    result, recorder = _follow(
        [Unreachable("gone"), _run(manifest, {"state": "Succeeded"})], repeat_first=20
    )
    assert result.over
    assert recorder.warned == ["gone; trying again"]


def test_a_long_outage_ends_it() -> None:
    with pytest.raises(Unreachable):
        _follow([Unreachable("gone")], repeat_first=1000)


def test_a_cluster_that_is_out_of_reach_is_waited_for_no_longer_than_the_run() -> None:
    clock = Clock()

    def fetch() -> Run | None:
        raise Unreachable("gone")

    with pytest.raises(Unreachable):
        follow(fetch, Recorder(), clock=clock, sleep=clock.sleep, longest=10.0)
    assert 10 <= clock.now < 12


def test_a_silent_operator_is_mentioned(manifest: Any) -> None:
    _, recorder = _follow(
        [_run(manifest, {}), _run(manifest, {"state": "Succeeded"})], repeat_first=60
    )
    assert len(recorder.warned) == 1
    assert "No sign of the operator" in recorder.warned[0]
    # The chart may be installed in any namespace.
    assert recorder.warned[0].endswith(
        "kubectl get deployments,pods -A "
        "-l app.kubernetes.io/name=laptime,app.kubernetes.io/component=operator --context prod"
    )


def test_time_left_runs_on_between_two_updates(manifest: Any) -> None:
    tracker = Tracker()
    progress = {"completed": 5, "total": 10, "remainingSeconds": 50}
    status = {"state": "Running", "currentTrial": "demo-trial-006", "progress": progress}
    run = _run(manifest, status)
    views = [tracker.view(run, now) for now in (100.0, 105.0, 109.0, 300.0)]
    assert [view.remaining_seconds for view in views] == [50, 45, 41, 0]
    positions = [view.position for view in views]
    assert positions == sorted(positions)
    assert positions[0] == 5
    assert positions[1] == pytest.approx(5.5)
    assert positions[-1] < 6


def test_the_bar_stands_still_until_something_is_measured(manifest: Any) -> None:
    tracker = Tracker()
    progress = {"completed": 0, "total": 10, "remainingSeconds": 50}
    run = _run(manifest, {"state": "Verifying", "progress": progress})
    assert [tracker.view(run, now).position for now in (0.0, 20.0)] == [0, 0]


def test_the_current_trial_in_words(manifest: Any) -> None:
    status = {"state": "Running", "seed": 7, "currentTrial": "demo-trial-010"}
    text = describe_trial(_run(manifest, status))
    assert text in {"axum, repetition 5 of 5", "fastapi, repetition 5 of 5"}
    assert describe_trial(_run(manifest, status | {"currentTrial": "x"})) == ""
    profiled = {**manifest["spec"]["servers"][0], "profile": True}
    spec = {**manifest["spec"], "servers": [profiled, *manifest["spec"]["servers"][1:]]}
    flame = f"{manifest['metadata']['name']}-flame-{profiled['name']}"
    told = _run({**manifest, "spec": spec}, status | {"currentTrial": flame})
    assert describe_trial(told) == f"profile of {profiled['name']}"


def test_two_trials_at_the_same_time_are_one_attempt(manifest: Any) -> None:
    spec = {**manifest["spec"], "pairing": "duet", "topology": {}}
    lost = [
        {
            "trial": f"demo-trial-{number}",
            "attempt": 1,
            "fault": fault,
            "reason": "GeneratorLost",
            "lostAt": "2026-01-01T00:00:00Z",
        }
        for number, fault in (("009", "generator"), ("010", "partner"))
    ]
    current = "demo-trial-009-attempt-2"
    status = {"state": "Running", "seed": 7, "currentTrial": current, "lostAttempts": lost}
    said = ", repetition 5 of 5, attempt 2"
    # Where the other server is out it is alone.
    alone = describe_trial(_run({**manifest, "spec": spec}, status))
    assert alone in {f"axum{said}", f"fastapi{said}"}
    status["currentBeside"] = "demo-trial-010-attempt-2"
    text = describe_trial(_run({**manifest, "spec": spec}, status))
    assert text in {f"axum and fastapi{said}", f"fastapi and axum{said}"}


def test_ordinary_conditions_are_no_warnings(manifest: Any) -> None:
    status = {
        "conditions": [
            _condition("TiersReady", "Starting"),
            _condition("Progressing", "ImagePullFailed"),
            _condition("Succeeded", "Failed"),
            _condition("ObjectivesMet", "Missed"),
        ]
    }
    assert warnings(_run(manifest, status).status) == []


def test_a_server_that_is_out_is_a_warning(manifest: Any) -> None:
    server = {"name": "mine", "state": "Failed", "reason": "WrongAnswer", "message": "no array"}
    said = warnings(_run(manifest, {"servers": [server]}).status)
    assert said == ["mine is out: WrongAnswer: no array"]


def test_a_log_gets_a_line_every_ten_seconds_and_at_a_change() -> None:
    clock, out = Clock(), io.StringIO()
    console = Console(file=out)
    with LineDisplay(console, "demo", clock) as display:
        for second in range(25):
            clock.now = second
            state = "Deploying" if second < 3 else "Running"
            display.show(View(state, 0, 0 if second < 3 else 4, 0.0, "[axum]", 60.0 - second))
        display.warn("[oops]")
    assert out.getvalue().splitlines() == [
        "[    0s] demo: Deploying, [axum], 1m00s left",
        "[    3s] demo: Running, 0/4 trials, [axum], 57s left",
        "[   13s] demo: Running, 0/4 trials, [axum], 47s left",
        "[   23s] demo: Running, 0/4 trials, [axum], 37s left",
        "[   24s] demo: ! [oops]",
    ]


def test_the_bar_shows_state_trials_and_time_left() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with LiveDisplay(console, "demo") as display:
        display.show(View("Running", 7, 15, 7.5, "axum, repetition 3 of 5", 80.0))
        display.warn("[oops]")
    shown = out.getvalue()
    for part in ("Running", "7/15 trials", "1m20s left", "axum, repetition 3 of 5", "! [oops]"):
        assert part in shown


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_log_with_colours_gets_lines_too(
    laptime: Callable[..., tuple[int, str, str]],
    fake: Any,
    kubeconfig: Path,
    manifest_file: Path,
    finished_status: Any,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    # Many pipelines set one of them for all their jobs.
    monkeypatch.setenv(variable, "1")
    fake.statuses = [{}, {"state": "Running", "seed": 7, "progress": PROGRESS}, finished_status]
    code, out, _ = laptime("run", manifest_file, "--kubeconfig", kubeconfig)
    assert code == 0
    coloured = re.compile(r"\x1b\[[0-9;]*m")
    lines = coloured.sub("", out).splitlines()
    assert any("demo: Running, 0/10 trials" in line for line in lines)
    assert not any("\x1b" in line for line in lines), "nothing moves in a log"
    # A log has no width, and the table that of none.
    monkeypatch.delenv(variable)
    _, plain, _ = laptime("watch", "demo", "--kubeconfig", kubeconfig)
    (row,) = (line for line in plain.splitlines() if line.startswith(" axum "))
    assert row in lines
    assert coloured.search(out), "colours are what was asked for"


def test_a_terminal_that_cannot_move_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:
        with open_display(PlainConsole(file=terminal), "demo") as display:
            display.show(View("Running", 1, 4, 1.0, "axum", 60.0))
        terminal.flush()
        assert select.select([ours], [], [], 0)[0], "nothing was shown"
        said = os.read(ours, 1000).decode()
    os.close(ours)
    assert said.endswith(" demo: Running, 1/4 trials, axum, 1m00s left\r\n")


class Queue:
    """A run that has its turn after so many seconds, and what looking at it costs the cluster."""

    def __init__(self, manifest: Any, state: str | None, seconds: float, turns: int = 0) -> None:
        self._waits = _run(manifest, {"state": state} if state else {})
        self._over = _run(manifest, {"state": "Succeeded"})
        self._seconds = seconds
        self._turns = turns
        self.clock = Clock()
        self.looks: list[float] = []
        self.counts: list[float] = []

    def look(self) -> Run:
        self.looks.append(self.clock.now)
        return self._over if self.clock.now >= self._seconds else self._waits

    def count(self, _: Run) -> int:
        self.counts.append(self.clock.now)
        return self._turns

    def follow(self, longest: float = math.inf) -> Recorder:
        recorder, clock = Recorder(), self.clock
        follow(self.look, recorder, self.count, clock, clock.sleep, longest=longest)
        return recorder


def test_a_queued_run_says_how_many_come_before_it(manifest: Any) -> None:
    queue, recorder = Queue(manifest, "Queued", seconds=40), Recorder()
    counts = iter([2, 1, 0, None])
    follow(queue.look, recorder, lambda _: next(counts), queue.clock, queue.clock.sleep)
    said = list(dict.fromkeys(view.state for view in recorder.views))
    # Counted every ten seconds.
    assert said == [
        "Queued: at least 2 runs before it",
        "Queued: at least 1 run before it",
        "Queued",
        "Succeeded",
    ]
    assert next(counts, "all") == "all"


@pytest.mark.parametrize("state", ["Queued", "Suspended", None])
def test_a_run_that_waits_for_long_is_looked_at_less_often(
    manifest: Any, state: str | None
) -> None:
    queue = Queue(manifest, state, seconds=3600)
    queue.follow()
    between = [after - before for before, after in itertools.pairwise(queue.looks)]
    assert between[0] == 0.5
    assert all(one >= before - 1e-9 for before, one in itertools.pairwise(between))
    assert max(between) == pytest.approx(5)
    assert len(between) < 3600 / 5 + 30


def test_a_run_that_goes_on_is_looked_at_twice_a_second(manifest: Any) -> None:
    queue = Queue(manifest, "Running", seconds=600)
    queue.follow()
    assert len(queue.looks) == 1201


def test_a_run_that_has_its_turn_after_a_long_wait_is_looked_at_as_any_other(
    manifest: Any,
) -> None:
    clock, looks = Clock(), list[float]()

    def look() -> Run:
        looks.append(clock.now)
        state = "Queued" if clock.now < 600 else "Running" if clock.now < 700 else "Succeeded"
        return _run(manifest, {"state": state})

    follow(look, Recorder(), clock=clock, sleep=clock.sleep)
    begun = [at for at in looks if at >= 600]
    assert begun[0] < 605
    between = [after - before for before, after in itertools.pairwise(begun)]
    assert between == pytest.approx([0.5] * len(between))


def test_nobody_waits_longer_for_a_queued_run_than_they_would(manifest: Any) -> None:
    queue = Queue(manifest, "Queued", seconds=3600)
    with pytest.raises(NotOver):
        queue.follow(longest=92)
    assert queue.clock.now == pytest.approx(92)


@pytest.mark.parametrize(("turns", "seconds"), [(0, 10), (10, 10), (60, 60), (200, 200)])
def test_who_is_far_behind_in_a_queue_counts_it_less_often(
    manifest: Any, turns: int, seconds: float
) -> None:
    # A count is a list of all runs that are not over: of each watcher in turn.
    queue = Queue(manifest, "Queued", 3600, turns)
    recorder = queue.follow()
    between = [after - before for before, after in itertools.pairwise(queue.counts)]
    assert all(seconds - 1e-9 <= one <= seconds + 5 for one in between)
    if turns:
        waiting = {view.state for view in recorder.views[:-1]}
        assert waiting == {f"Queued: at least {turns} runs before it"}


def shown(*views: View) -> list[str]:
    """Return what a log has of each view, without the time."""
    out = io.StringIO()
    for view in views:
        LineDisplay(Console(file=out), "demo", lambda: 0.0).show(view)
    return [line.partition("demo: ")[2] for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("state", ["Queued", "Deploying", "Suspending", "Suspended"])
def test_a_run_that_has_to_begin_is_never_nearly_done(manifest: Any, state: str) -> None:
    tracker = Tracker()
    progress = {"completed": 0, "total": 2, "remainingSeconds": 8}
    waits = _run(manifest, {"state": state, "progress": progress})
    begins = _run(manifest, {"state": "Running", "progress": progress})
    assert shown(
        tracker.view(waits, 0.0),
        tracker.view(waits, 100.0),
        # From here on the time passes.
        tracker.view(begins, 100.0),
        tracker.view(begins, 105.0),
    ) == [
        f"{state}, 0/2 trials, at least 8s left",
        f"{state}, 0/2 trials, at least 8s left",
        "Running, 0/2 trials, 8s left",
        "Running, 0/2 trials, 3s left",
    ]


def test_nearly_done_is_said_when_all_is_measured() -> None:
    assert shown(
        View("Running", 1, 2, 1.95, "axum", 0.0),
        View("Running", 2, 2, 2.0, "", 0.0),
        View("Finishing", 1, 2, 1.0, "", 0.0),
    ) == [
        "Running, 1/2 trials, axum",
        "Running, 2/2 trials, nearly done",
        "Finishing, 1/2 trials, nearly done",
    ]
