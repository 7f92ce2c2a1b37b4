"""Which parts belong together."""

import re
import subprocess
from pathlib import Path

import pytest
from laptime_proof import catalogue
from laptime_proof.parts import Part, PartsError, by_name, select

PARTS = by_name(
    [
        Part("venv", check=False),
        Part("lint-go"),
        Part("lint-python", needs=("venv",)),
        Part("up", check=False),
        Part("e2e-runs", needs=("up",), after=("lint-go",)),
        Part("down", needs=("up",), after=("e2e-runs",), always=True, check=False),
    ]
)


def test_a_word_names_all_parts_that_begin_with_it_and_what_they_need() -> None:
    assert list(select(PARTS, ["lint"])) == ["venv", "lint-go", "lint-python"]
    assert list(select(PARTS, ["lint-go"])) == ["lint-go"]
    assert list(select(PARTS, [])) == list(PARTS)


def test_what_tidies_up_comes_with_what_it_tidies_up() -> None:
    assert list(select(PARTS, ["e2e"])) == ["up", "e2e-runs", "down"]


@pytest.mark.parametrize("name", [one.name for one in catalogue.TEST if one.always])
def test_nothing_is_tidied_up_before_each_that_needs_it_is_over(name: str) -> None:
    """By its own word: whatever else it comes after may not be run this time."""
    part = by_name(catalogue.TEST)[name]
    users = {one.name for one in catalogue.TEST if one.check and set(one.needs) & set(part.needs)}
    assert users
    assert users <= set(part.after)


def test_an_unknown_part_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(PartsError, match="no part 'lnt'; there are: venv, lint-go"):
        select(PARTS, ["lnt"])


def test_parts_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(PartsError, match="wait for each other"):
        by_name([Part("a", needs=("b",)), Part("b", after=("a",))])


def test_a_part_that_needs_nothing_real_is_refused() -> None:
    with pytest.raises(PartsError, match="a needs b"):
        by_name([Part("a", needs=("b",))])


@pytest.mark.parametrize("parts", [catalogue.TEST, catalogue.LONG])
def test_every_part_of_the_project_is_a_target_of_its_makefile(parts: tuple[Part, ...]) -> None:
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    targets = {
        word
        for line in makefile.splitlines()
        if (found := re.match(r"([a-z0-9][a-z0-9 -]*):(?!=)", line))
        for word in found[1].split()
    }
    assert set(by_name(parts)) <= targets


# They print a table to choose by, and have no goal that they could miss.
_TABLES = {"bench-history", "bench-between", "bench-outside", "bench-orders"}


def test_every_bench_with_a_goal_is_among_the_long_proofs() -> None:
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    benches = set(re.findall(r"^(bench-[a-z-]+):", makefile, flags=re.MULTILINE))
    assert benches - _TABLES == {
        one.name for one in catalogue.LONG if one.name.startswith("bench-")
    }
    assert benches >= _TABLES


@pytest.mark.parametrize(
    "part",
    [one for one in (*catalogue.TEST, *catalogue.LONG) if one.reads],
    ids=lambda one: one.name,
)
def test_what_a_part_reads_is_there(part: Part) -> None:
    root = Path(__file__).resolve().parents[2]
    for path in (*part.reads, *catalogue.READ_BY_ALL):
        named = path.replace(":(top,exclude)", ":(top)") if path[:2] == ":(" else f":(top){path}"
        command = ["git", "ls-files", "--", named]
        found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        assert found.stdout, path


@pytest.mark.parametrize(
    ("part", "file"),
    [
        ("e2e-servers", ".dockerignore"),
        ("e2e-cluster", "pytest.ini"),
        ("lint-python", "dashboards/requirements.lock"),
        ("test-alerts", "charts/laptime/files/alerts.yaml"),
    ],
)
def test_a_part_names_what_it_reads_beside_its_own_folder(part: str, file: str) -> None:
    parts = by_name([*catalogue.TEST, *catalogue.LONG])
    reads = (*parts[part].reads, *catalogue.READ_BY_ALL)
    root = Path(__file__).resolve().parents[2]
    command = ["git", "ls-files", "--", *reads]
    named = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert file in named.splitlines()


def test_what_the_environment_of_python_is_made_of_is_read_by_all() -> None:
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    found = re.search(r"^VENV_INPUTS := ((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    assert found
    inputs = set(found[1].replace("\\\n", " ").split())
    assert len(inputs) > 5
    assert inputs <= set(catalogue.READ_BY_ALL)


def test_whatever_says_what_it_is_doing_has_been_given_the_word_for_it() -> None:
    """A recipe is one shell of its own: what `$(SAY)` defines, no other recipe has."""
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    recipes = re.findall(r"^(?:define .+|[^\s#][^=\n]*:(?!=).*)\n(?:.+\n)*", makefile, re.MULTILINE)
    speaking = [recipe for recipe in recipes if re.search(r"^\s+say ", recipe, re.MULTILINE)]
    assert len(speaking) > 5
    dumb = [one for one in speaking if "$(SAY)" not in one.partition("say ")[0]]
    assert [one.splitlines()[0] for one in dumb] == []


def test_no_test_that_waits_runs_beside_a_compiler_that_is_as_good_as_it() -> None:
    parts = by_name(catalogue.TEST)
    compilers = {name for name in parts if name.startswith(("build-", "lint-", "unit-"))}
    # What is quiet runs alone.
    alone = {name for name in compilers if parts[name].quiet}
    compilers -= {name for name in compilers if parts[name].behind or parts[name].place < 0.5}
    for name, part in parts.items():
        if name.startswith("e2e-") and part.check and not part.quiet:
            # It renders templates in a second.
            beside = {"lint-chart", *alone}
            if name == "e2e-cluster":
                beside.add("unit-operator")
            assert compilers - beside <= _before(parts, part), name


def test_clusters_come_up_beside_the_operators_tests_and_are_used_after_them() -> None:
    parts = by_name(catalogue.TEST)
    for name, part in parts.items():
        if name.startswith("e2e-up-"):
            assert "unit-operator" not in _before(parts, part)
        elif name.startswith(("e2e-runs-", "e2e-api", "e2e-servers", "e2e-figures")):
            assert "unit-operator" in _before(parts, part), name


def test_nothing_that_is_written_anew_is_read_meanwhile() -> None:
    parts = by_name(catalogue.TEST)
    readers = ("lint-chart", "lint-dashboards", "lint-python", "unit-operator")
    for name in (*readers, "unit-python", "unit-benches", "unit-k6", "e2e-cluster"):
        assert "verify" in _before(parts, parts[name]), name


def _before(parts: dict[str, Part], part: Part) -> set[str]:
    before: set[str] = set()
    for name in (*part.needs, *part.after):
        before |= {name} | _before(parts, parts[name])
    return before
