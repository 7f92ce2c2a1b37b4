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
\t@test -z "$(ONLY)$(FAILED)"
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
    lines = (checkout / "cache/proof/journal.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["part"] for line in lines) == ["bad", "bad", "good"]


def test_what_chose_a_part_chooses_nothing_within_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a make on whose command line they stand hands them on.
    monkeypatch.setenv("MAKEFLAGS", " -- ONLY=choosy FAILED=1")
    assert prove.main(["test", "choosy"]) == 0


def test_what_parts_write_themselves_is_not_what_they_run(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "LONG", (Part("writes"), Part("good", needs=("writes",))))
    for name in ("bench/alike/journal.jsonl", "docs/results/users.md", ".gitignore"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("cache\n")
    who = ["-c", "user.name=one", "-c", "user.email=one@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    assert prove.main(["long"]) == 0
    assert prove.commit() not in ("unknown", "unknown+")
    assert prove.main(["long"]) == 0
    assert "all of it passed on this commit" in capsys.readouterr().out
    assert prove.main(["test", "edits"]) == 0
    assert "of no commit" in capsys.readouterr().out
