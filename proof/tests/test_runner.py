"""Parts run side by side, a failure stops only what needs it, and nothing is left running."""

import subprocess
import threading
import time
from pathlib import Path

import pytest
from laptime_proof import runner as runner_of_parts
from laptime_proof.journal import (
    Entry,
    Journal,
    Outcome,
    commit_of,
    failed_last,
    passed_on,
    same_as,
)
from laptime_proof.parts import Part, by_name
from laptime_proof.runner import Runner, code_of_recipe
from laptime_proof.summary import closing_lines, standing


class World:
    """A folder in which parts are shell commands that write down when they begin and end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.journal = Journal(folder / "journal.jsonl")

    def run(self, parts: list[Part], commands: dict[str, str], jobs: int = 3) -> Runner:
        runner = self.runner(commands, jobs)
        runner.run(by_name(parts))
        return runner

    def runner(self, commands: dict[str, str], jobs: int = 3) -> Runner:
        def command(part: Part) -> list[str]:
            text = commands.get(part.name, "true")
            script = f"echo +{part.name} >>order; {text}; code=$?; echo -{part.name} >>order"
            return ["sh", "-c", f"{script}; exit $code"]

        return Runner(
            command,
            self.folder,
            self.folder / "logs",
            self.journal,
            self.commit,
            jobs,
            self.said.append,
        )

    def commit(self) -> str:
        file = self.folder / "commit"
        return file.read_text() if file.exists() else "abc"

    def over(self) -> list[Entry]:
        return [one for one in self.journal.entries() if one.why != "not over"]

    def order(self) -> list[str]:
        return (self.folder / "order").read_text().split()


def until_begun(*parts: str) -> str:
    """Return a command that is over soon after other parts have begun, or fails after a minute."""
    begun = " && ".join(f"grep -q ^+{part}$ order" for part in parts)
    waits = f"for _ in $(seq 1200); do {begun} && break; sleep 0.05; done"
    return f"{waits}; {begun} && sleep 0.3"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def outcomes(runner: Runner) -> dict[str, str]:
    return {name: str(entry.outcome) for name, entry in runner.entries.items()}


def test_a_failure_stops_what_needs_it_and_nothing_else(world: World) -> None:
    parts = [
        Part("build", check=False),
        Part("uses", needs=("build",)),
        Part("later", after=("uses",)),
        Part("other"),
    ]
    runner = world.run(parts, {"build": "echo the compiler says no; false"})
    assert outcomes(runner) == {
        "build": "failed",
        "uses": "not run",
        "later": "passed",
        "other": "passed",
    }
    assert runner.entries["uses"].why == "needs build"
    assert "  | the compiler says no" in world.said
    lines = closing_lines(by_name(parts), runner.entries, 10.0, 0.1)
    assert "FAILED: build (the compiler says no)" in lines
    assert "NOT RUN: uses (needs build)" in lines
    assert lines[-1] == "parts: 2 passed, 2 failed"


def test_the_summary_names_the_tests_that_failed(world: World) -> None:
    log = [
        "____ test_up[controller manager] ____",
        ">       assert first == 1, first",
        "E       AssertionError: 2",
        "E       assert 2 == 1",
        "",
        "tests/harness.py:12: AssertionError",
        "FAILED tests/test_up.py::test_up[controller manager] - AssertionError: no - why",
        "ERROR tests/test_up.py::test_down",
        "=== RUN   TestLoop",
        "    --- FAIL: TestLoop/open (0.01s)",
        "test answers::of_users ... FAILED",
        "test answers::of_tasks ... ok",
        "FAILED: not a test",
        *(f"FAILED tests/test_many.py::test_{number}" for number in range(3)),
    ]
    (world.folder / "log").write_text("\n".join(log))
    runner = world.run([Part("unit")], {"unit": "cat log; false"})
    assert (
        "FAILED: unit (tests/test_up.py::test_up[controller manager], tests/test_up.py::test_down, "
        "TestLoop/open, answers::of_users, tests/test_many.py::test_0 and 2 more; "
        "tests/harness.py:12: AssertionError: 2)"
    ) in closing_lines(by_name([Part("unit")]), runner.entries, 10.0, 0.0)


def test_parts_run_beside_each_other_but_a_quiet_one_alone(world: World) -> None:
    parts = [Part("one"), Part("two"), Part("quiet", quiet=True, after=("one",)), Part("three")]
    commands = {"one": until_begun("two"), "two": until_begun("one"), "quiet": "sleep 0.4"}
    world.run(parts, commands, jobs=2)
    order = world.order()
    assert set(order[:2]) == {"+one", "+two"}
    assert order.index("-quiet") == order.index("+quiet") + 1


def test_what_mostly_waits_takes_less_than_a_place(world: World) -> None:
    waits = [Part(name, place=0.6) for name in ("a", "b", "c")]
    commands = {name: until_begun(*"abc") for name in "abc"}
    world.run([*waits, Part("whole")], commands, jobs=2)
    order = world.order()
    assert set(order[:3]) == {"+a", "+b", "+c"}
    assert order.index("+whole") > 4, "beside two of them there is room for no whole one"


def test_what_computes_runs_behind_all_others_one_at_a_time(world: World) -> None:
    behind = [Part(name, behind=True) for name in ("first", "second")]
    parts = [Part("one"), Part("two"), *behind, Part("quiet", quiet=True)]
    said = "sleep 0.3; chrt --pid $$ >policy; cat /proc/self/autogroup >group || true"
    commands = {"one": until_begun("first"), "two": until_begun("first"), "first": said}
    world.run(parts, commands, jobs=2)
    order = world.order()
    assert set(order[:3]) == {"+one", "+two", "+first"}, "no place is needed"
    assert order.index("+second") > order.index("-first")
    assert order.index("-quiet") == order.index("+quiet") + 1
    assert "SCHED_IDLE" in (world.folder / "policy").read_text()
    group = (world.folder / "group").read_text().split()
    assert group == [] or group[-1] == "19", "else it is as good as any other session"


def test_tidying_up_is_done_whatever_happened_and_only_if_there_is_something(world: World) -> None:
    parts = [
        Part("up", check=False),
        Part("check", needs=("up",)),
        Part("down", needs=("up",), after=("check",), always=True, check=False),
        Part("missing", check=False),
        Part("never-up", needs=("missing",), check=False),
        Part("never-down", needs=("never-up",), always=True, check=False),
    ]
    runner = world.run(parts, {"up": "false", "missing": "false"})
    assert outcomes(runner)["down"] == "passed"
    assert outcomes(runner)["never-down"] == "not run"
    assert "+never-down" not in world.order()


def test_who_is_stopped_ends_what_runs_and_tidies_up(world: World) -> None:
    parts = [
        Part("up", check=False),
        Part("check", needs=("up",)),
        Part("then", needs=("check",)),
        Part("down", needs=("up",), after=("check",), always=True, check=False),
    ]
    runner = world.runner({"check": "sleep 600"})

    def stop_soon() -> None:
        while not (world.folder / "order").exists() or "+check" not in world.order():
            time.sleep(0.02)
        runner.stop()

    threading.Thread(target=stop_soon).start()
    runner.run(by_name(parts))
    assert outcomes(runner) == {
        "up": "passed",
        "check": "not run",
        "then": "not run",
        "down": "passed",
    }
    table = standing(parts[1:2], world.journal.entries())
    assert table[1].split()[:4] == ["check", "0", "of", "0"]


def test_who_is_stopped_lets_a_part_put_back_what_it_changed(world: World) -> None:
    """As pytest does on an interrupt, and on no other signal."""
    wait = "import time\ntry:\n time.sleep(600)\nfinally:\n open('restored', 'w')"
    (world.folder / "Makefile").write_text("check:\n\t@python3 wait.py\n")
    (world.folder / "wait.py").write_text(f"open('begun', 'w')\n{wait}\n")
    runner = world.runner({"check": "exec make check"})

    def stop_soon() -> None:
        while not (world.folder / "begun").exists():
            time.sleep(0.02)
        runner.stop()

    threading.Thread(target=stop_soon).start()
    runner.run(by_name([Part("check")]))
    assert (world.folder / "restored").exists()


def test_what_listens_to_no_signal_is_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_of_parts, "_STOP_SECONDS", 0.5)
    deaf = "trap '' INT TERM; touch begun; for _ in $(seq 6000); do sleep 0.1; done; touch over"
    runner = world.runner({"check": deaf})

    def stop_soon() -> None:
        while not (world.folder / "begun").exists():
            time.sleep(0.02)
        runner.stop()

    threading.Thread(target=stop_soon).start()
    runner.run(by_name([Part("check")]))
    assert outcomes(runner) == {"check": "not run"}
    assert not (world.folder / "over").exists()


UP_AND_DOWN = [
    Part("up", check=False),
    Part("check", needs=("up",)),
    Part("down", needs=("up",), after=("check",), always=True, check=False),
]


def test_a_journal_that_cannot_be_written_ends_nothing(world: World) -> None:
    world.journal.file.symlink_to("/dev/full")
    runner = world.run(UP_AND_DOWN, {})
    assert outcomes(runner) == {"up": "passed", "check": "passed", "down": "passed"}
    assert sum("is not in the journal: [Errno 28] No space" in line for line in world.said) == 6


def test_without_room_for_its_log_a_part_is_run_and_tidied_up(world: World) -> None:
    (world.folder / "logs").write_text("no folder")
    runner = world.run(UP_AND_DOWN, {"check": "false"})
    assert outcomes(runner) == {"up": "passed", "check": "failed", "down": "passed"}
    assert sum("has no log: " in line for line in world.said) == 3


def test_a_part_that_cannot_be_begun_has_failed_and_is_tidied_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = subprocess.Popen

    def popen(command: list[str], **options: object) -> object:
        if "+check" in command[-1]:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return begin(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", popen)
    runner = world.run(UP_AND_DOWN, {})
    assert outcomes(runner) == {"up": "passed", "check": "failed", "down": "passed"}
    assert runner.entries["check"].why.startswith("did not begin: [Errno 11]")


def test_a_runner_that_breaks_ends_what_runs_and_tidies_up_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = world.runner({"check": "sleep 600"})
    look = runner._look

    def broken() -> None:
        if "check" in runner._running and not runner._stopped.is_set():
            raise RuntimeError("a mistake")
        look()

    monkeypatch.setattr(runner, "_look", broken)
    with pytest.raises(RuntimeError, match="a mistake"):
        runner.run(by_name(UP_AND_DOWN))
    assert outcomes(runner) == {"up": "passed", "check": "not run", "down": "passed"}


def test_what_was_interrupted_while_it_came_up_is_taken_down(world: World) -> None:
    parts = [Part("up", check=False), Part("down", needs=("up",), always=True, check=False)]
    runner = world.runner({"up": "sleep 600"})

    def stop_soon() -> None:
        while not (world.folder / "order").exists() or "+up" not in world.order():
            time.sleep(0.02)
        runner.stop()

    threading.Thread(target=stop_soon).start()
    runner.run(by_name(parts))
    assert outcomes(runner) == {"up": "not run", "down": "passed"}


def test_too_much_noise_is_neither_a_pass_nor_a_miss(world: World) -> None:
    parts = [Part("bench", quiet=True), Part("lint")]
    (world.folder / "Makefile").write_text("bench:\n\t@echo too noisy; exit 75\n")
    runner = world.run(parts, {"bench": "make bench"})
    assert outcomes(runner)["bench"] == "not judged"
    assert not any("too noisy" in line for line in world.said), "there is nothing to look at"
    lines = closing_lines(by_name(parts), runner.entries, 1.0, 0.0)
    assert lines[-1] == "parts: 1 passed, 0 failed, 1 skipped"
    table = standing(parts, world.journal.entries())
    assert table[1].split() == ["bench", "0", "of", "0", "1", "never"]
    assert table[2].startswith("lint")
    assert "on abc" in table[2]


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (["make: *** [Makefile:7: bench-alike] Error 75"], 75),
        (["make[1]: *** [Makefile:7: bench-alike] Fehler 75"], 75),
        # What the bench needs did not come: the outer make says 2.
        (["make[2]: *** [Makefile:7: bar] Error 75", "make[1]: *** [Makefile:9: foo] Error 2"], 2),
        (["make: *** [Makefile:7: bench-alike] Error 1", "make: *** Waiting for 75"], 1),
        (["make: *** No rule to make target 'bench-75'.  Stop."], 2),
        (["exit code 75"], 2),
    ],
)
def test_what_a_recipe_ended_with_is_what_its_make_said_last(log: list[str], code: int) -> None:
    assert code_of_recipe(2, log) == code


def test_a_miss_is_no_lack_of_quiet(world: World) -> None:
    (world.folder / "Makefile").write_text("bench:\n\t@echo 75; exit 1\n")
    assert outcomes(world.run([Part("bench")], {"bench": "make bench"})) == {"bench": "failed"}


def test_the_journal_remembers_what_did_not_pass_the_last_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for part, outcome in [
        ("lint", Outcome.FAILED),
        ("unit", Outcome.FAILED),
        ("lint", Outcome.PASSED),
        ("e2e", Outcome.NOT_RUN),
    ]:
        journal.add(Entry(part, outcome, 0.0, 1.0, "abc", 0.0))
    # What a process that was killed left half written.
    journal.file.write_text(journal.file.read_text() + '{"part": "li')
    assert failed_last(journal.entries(), "") == {"lint": False, "unit": True, "e2e": True}
    journal.add(Entry("unit", Outcome.PASSED, 0.0, 1.0, "abc", 0.0))
    assert failed_last(journal.entries(), "") == {"lint": False, "unit": False, "e2e": True}
    assert failed_last(journal.entries(), "/other") == {}


def test_what_passed_on_this_commit_is_over_and_on_changed_files_nothing_is() -> None:
    entries = [
        Entry("bench-truth", Outcome.PASSED, 0.0, 1.0, "abc", 0.0),
        Entry("bench-cause", Outcome.FAILED, 0.0, 1.0, "abc", 0.0),
        Entry("examples", Outcome.PASSED, 0.0, 1.0, "other", 0.0),
        Entry("bench-agent", Outcome.PASSED, 0.0, 1.0, "abc+", 0.0),
        Entry("bench-scale", Outcome.PASSED, 0.0, 1.0, "unknown", 0.0),
        # By chance it passes.
        Entry("bench-duet", Outcome.PASSED, 0.0, 1.0, "abc", 0.0),
        Entry("bench-duet", Outcome.FAILED, 0.0, 1.0, "abc", 0.0),
        # That it failed on another commit, or was wanted and not begun, says nothing of this one.
        Entry("bench-truth", Outcome.FAILED, 0.0, 1.0, "other", 0.0),
        Entry("bench-truth", Outcome.NOT_RUN, 0.0, 0.0, "abc", 0.0),
    ]
    assert passed_on(entries, "abc") == {"bench-truth"}
    assert passed_on(entries, "abc+") == passed_on(entries, "unknown") == set()


def test_a_part_that_ran_on_other_files_is_of_no_commit(world: World) -> None:
    parts = [Part("before"), Part("during", needs=("before",)), Part("after", needs=("during",))]
    world.run(parts, {"during": "printf def >commit"})
    assert [one.commit for one in world.over()] == ["abc", "abc+", "abc+"]
    assert passed_on(world.journal.entries(), "abc") == {"before"}
    assert passed_on(world.journal.entries(), "def") == set()
    assert sum("of no commit" in line for line in world.said) == 2
    world.run(parts, {"before": "printf def+ >commit"})
    assert [one.commit for one in world.over()][3:] == ["def+"] * 3


def test_a_proof_is_of_the_last_commit_that_changed_what_it_runs(tmp_path: Path) -> None:
    def commit(file: str) -> str:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
        who = ["-c", "user.name=one", "-c", "user.email=one@example.com"]
        for command in (["add", "-A"], [*who, "commit", "-qm", file]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        head = ["git", "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(
            head, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    first = commit("code/one")
    second = commit("code/tests-of-one")
    last = commit("docs/one")
    code = ("code", ":(top,exclude,glob)code/tests*")
    assert commit_of(tmp_path) == last
    assert commit_of(tmp_path, "code") == second
    assert commit_of(tmp_path, *code) == commit_of(tmp_path / "code", *code) == first
    (tmp_path / "code" / "tests-of-two").touch()
    assert commit_of(tmp_path) == last + "+"
    assert commit_of(tmp_path, *code) == first
    (tmp_path / "code" / "two").touch()
    assert commit_of(tmp_path / "docs", *code) == first + "+"
    assert commit_of(tmp_path, "nothing") == "unknown"


@pytest.mark.parametrize(
    ("setting", "value"), [("status.showUntrackedFiles", "no"), ("core.excludesFile", "hidden")]
)
def test_no_setting_of_git_hides_a_new_file(tmp_path: Path, setting: str, value: str) -> None:
    who = ["-c", "user.name=one", "-c", "user.email=one@example.com"]
    hidden = tmp_path / "hidden"
    hidden.write_text("*.py\n")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    value = str(hidden) if value == "hidden" else value
    for command in (
        ["init", "-q"],
        [*who, "commit", "-qm", "all", "--allow-empty"],
        ["config", setting, value],
    ):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    commit = commit_of(checkout)
    assert same_as(checkout, commit)
    (checkout / "new.py").touch()
    assert commit_of(checkout) == f"{commit}+"
    assert not same_as(checkout, commit)
