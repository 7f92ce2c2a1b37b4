"""What `make test` and `make prove` end with."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import prove
import pytest
from laptime_proof import catalogue
from laptime_proof.parts import Part
from laptime_proof.runner import Runner

PARTS = (
    Part("good"),
    Part("bad"),
    Part("noisy"),
    Part("needy", needs=("bad",)),
    Part("choosy"),
    Part("writes"),
    Part("edits"),
)
MAKEFILE = """
good:
\t@true
bad:
\t@exit 3
noisy:
\t@exit 75
choosy:
\t@test -z "$(ONLY)$(FAILED)$(CHANGED)"
writes:
\t@echo {} >>bench/alike/journal.jsonl; echo of today >docs/results/users.md
edits:
\t@echo >>Makefile
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with a Makefile of its own, whose parts are PARTS."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.setattr(prove, "ROOT", tmp_path)
    monkeypatch.setattr(prove, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(catalogue, "TEST", PARTS)
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("parts", "code"),
    [("good", 0), ("bad", 1), ("good,bad", 1), ("needy", 1), ("good noisy", 1), ("nothing", 2)],
)
def test_only_where_all_parts_passed_it_passed(checkout: Path, parts: str, code: int) -> None:
    assert prove.main(["test", parts]) == code


def test_what_did_not_pass_is_all_that_is_run_again(checkout: Path) -> None:
    prove.main(["test", "good,bad"])
    prove.main(["test", "--failed"])
    assert sorted(over(checkout)) == ["bad", "bad", "good"]


def over(checkout: Path) -> list[str]:
    """Return the parts that were run to their end, by the journal."""
    file = checkout / "cache/proof/journal.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    entries = [json.loads(line) for line in lines]
    return [entry["part"] for entry in entries if entry["why"] != "not over"]


def test_what_a_killed_run_was_to_run_did_not_pass(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prove.main(["test", "good,choosy"]) == 0
    done = len(over(checkout))

    def killed(self: Runner, _: object) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_until_over", killed)
        with pytest.raises(SystemExit):
            prove.main(["test", "good"])
    assert over(checkout)[done:] == []
    assert prove.main(["test", "--failed"]) == 0
    assert over(checkout)[done:] == ["good"]


def test_where_nothing_was_run_nothing_has_passed(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove.main(["test", "--failed"]) == 2
    assert f"nothing was run yet in {checkout}" in capsys.readouterr().err
    prove.main(["test", "good"])
    assert prove.main(["test", "--failed"]) == 0
    said = capsys.readouterr().out
    assert "nothing that was run here failed the last time" in said
    assert "never run here: bad, noisy, needy, choosy, writes, edits" in said


def test_what_failed_here_has_not_passed_since_it_passed_elsewhere(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prove.main(["test", "bad"]) == 1
    other = checkout / "other"
    other.mkdir()
    (other / "Makefile").write_text("bad:\n")
    with monkeypatch.context() as patch:
        patch.setattr(prove, "ROOT", other)
        assert prove.main(["test", "bad"]) == 0
    assert prove.main(["test", "--failed"]) == 1


def test_what_failed_the_last_time_is_not_over_on_its_commit(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "LONG", (Part("flaky"),))
    (checkout / ".gitignore").write_text("cache\nbroken\n")
    (checkout / "Makefile").write_text("flaky:\n\t@test ! -e broken\n")
    commit_all(checkout)
    assert prove.main(["long"]) == 0
    (checkout / "broken").touch()
    assert prove.main(["long", "flaky"]) == 1
    assert prove.main(["long"]) == 1


@pytest.mark.parametrize("flag", ["--failed", "--changed"])
def test_what_is_wanted_may_stand_behind_what_chooses_of_it(checkout: Path, flag: str) -> None:
    assert prove.main(["test", flag, "good"]) == 0


def test_what_chose_a_part_chooses_nothing_within_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a make on whose command line they stand hands them on.
    monkeypatch.setenv("MAKEFLAGS", " -- ONLY=choosy FAILED=1 CHANGED=1")
    assert prove.main(["test", "choosy"]) == 0


@pytest.mark.parametrize("flags", ["i", "ik --no-print-directory -- X=1", "n", "-i", "t", "q"])
def test_no_flag_of_make_lets_a_part_pass(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setenv("MAKEFLAGS", flags)
    assert prove.main(["test", "bad"]) == 1
    monkeypatch.delenv("MAKEFLAGS")
    monkeypatch.setenv("GNUMAKEFLAGS", flags.partition(" --")[0])
    assert prove.main(["test", "bad"]) == 1


def test_a_part_has_the_variables_of_the_make_that_runs_all(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "Makefile").write_text('good:\n\t@test "$(ENGINE) $(RUNS)" = "a b 2"\n')
    monkeypatch.setenv("MAKEFLAGS", "k -j2 --jobserver-auth=3,4 -- ENGINE=a\\ b RUNS=2")
    assert prove.main(["test", "good"]) == 0


def commit_all(checkout: Path) -> None:
    """Commit all files, in a repository that is made if there is none."""
    who = ["-c", "user.name=one", "-c", "user.email=one@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=checkout, check=True)


def test_what_reads_nothing_that_changed_since_it_passed_is_not_run_again(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = (
        Part("good", reads=("docs",)),
        Part("choosy"),
        Part("bad", reads=("docs",)),
        Part("needy", needs=("brings",), reads=("images",)),
        Part("brings", check=False),
    )
    monkeypatch.setattr(catalogue, "TEST", parts)
    (checkout / "Makefile").write_text(f"{MAKEFILE}brings needy:\n\t@true\n")
    (checkout / ".gitignore").write_text("cache\n")
    (checkout / "docs").mkdir()
    (checkout / "docs/one.md").write_text("one\n")
    commit_all(checkout)

    def run_again() -> list[str]:
        before = len(over(checkout))
        prove.main(["test", "--changed"])
        return sorted(over(checkout)[before:])

    assert run_again() == ["bad", "brings", "choosy", "good", "needy"]
    # Nothing has changed; what failed is run again all the same.
    assert run_again() == ["bad"]
    assert "good                 passed on " in capsys.readouterr().out
    # A file that nobody has named, committed or not, is read by whoever names none.
    (checkout / "README.md").write_text("new\n")
    assert run_again() == ["bad", "choosy"]
    commit_all(checkout)
    # What passed while files differed from the commit passed on no commit.
    assert run_again() == ["bad", "choosy"]
    assert run_again() == ["bad"]
    (checkout / "docs/two.md").write_text("two\n")
    assert run_again() == ["bad", "choosy", "good"]
    commit_all(checkout)
    assert run_again() == ["bad", "choosy", "good"]
    (checkout / "docs/one.md").write_text("other\n")
    commit_all(checkout)
    assert run_again() == ["bad", "choosy", "good"]
    # What all read.
    (checkout / "VERSION").write_text("2\n")
    commit_all(checkout)
    assert run_again() == ["bad", "brings", "choosy", "good", "needy"]


@pytest.mark.parametrize("file", ["docs/results/README.md", "bench/alike/journal.jsonl"])
def test_what_a_bench_writes_is_read_by_whoever_names_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    monkeypatch.setattr(catalogue, "TEST", (Part("good"), Part("choosy", reads=("images",))))
    (checkout / ".gitignore").write_text("cache\n")
    (checkout / file).parent.mkdir(parents=True)
    (checkout / file).write_text("right\n")
    commit_all(checkout)
    assert prove.main(["test", "--changed"]) == 0
    (checkout / file).write_text("wrong\n")
    capsys.readouterr()
    assert prove.main(["test", "--changed"]) == 0
    said = capsys.readouterr().out
    assert "choosy               passed on " in said
    assert "parts: 1 passed" in said
    # It passed with that change, which is of no commit.
    subprocess.run(["git", "checkout", "-q", file], cwd=checkout, check=True)
    assert prove.main(["test", "--changed"]) == 0
    assert "parts: 1 passed" in capsys.readouterr().out
    # One commit of it alone is one commit further for all.
    (checkout / file).write_text("anew\n")
    commit_all(checkout)
    assert prove.main(["test", "--changed"]) == 0
    assert prove.main(["test", "--changed"]) == 0
    assert "nothing that any part reads has changed" in capsys.readouterr().out


def test_where_no_part_reads_what_changed_nothing_is_run(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalogue, "TEST", (Part("good"),))
    (checkout / ".gitignore").write_text("cache\n")
    commit_all(checkout)
    assert prove.main(["test", "--changed"]) == 0
    assert prove.main(["test", "--changed"]) == 0
    assert "nothing that any part reads has changed" in capsys.readouterr().out
    # Without the word for it everything is run.
    assert prove.main(["test"]) == 0
    assert "parts: 1 passed, 0 failed" in capsys.readouterr().out


def test_what_parts_write_themselves_is_not_what_they_run(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "LONG", (Part("writes"), Part("good", needs=("writes",))))
    for name in ("bench/alike/journal.jsonl", "docs/results/users.md", ".gitignore"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("cache\n")
    commit_all(checkout)
    assert prove.main(["long"]) == 0
    assert prove.commit("long") not in ("unknown", "unknown+")
    assert prove.main(["long"]) == 0
    assert "all of it passed on this commit" in capsys.readouterr().out
    commit_all(checkout)
    assert prove.main(["test", "edits"]) == 0
    assert "of no commit" in capsys.readouterr().out
