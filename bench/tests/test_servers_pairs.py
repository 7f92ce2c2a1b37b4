"""The counterparts by the book: one for each server, set up alike, on the same libraries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pairs import BOOK, OURS, PAIRS, Pair, chosen

from laptime.api.durations import parse_duration
from laptime.api.spec import BenchmarkRunSpec
from laptime.catalog import presets, scenarios
from laptime.cli.own_schemas import violations

ROOT = Path(__file__).parents[2]
BOOKS = ROOT / "bench" / "servers"
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.preset)


def spec_of(pair: Pair) -> BenchmarkRunSpec:
    return BenchmarkRunSpec.model_validate(pair.manifest("1.2.3")["spec"])


def test_every_server_of_the_catalogue_has_a_counterpart() -> None:
    assert sorted(pair.preset for pair in PAIRS) == sorted(presets())


@each_pair
def test_the_cluster_takes_the_run(pair: Pair) -> None:
    found, checked = violations(pair.manifest("1.2.3"))
    assert (found, checked) == ([], True)


@each_pair
def test_both_sides_have_the_same_workers_threads_and_pool(pair: Pair) -> None:
    spec = spec_of(pair)
    ours, book = spec.server(OURS), spec.server(BOOK)
    assert (ours.workers, ours.database_connections) == (book.workers, book.database_connections)
    # What the preset gives to its own image, the run has to give to the other.
    assert (ours.threads or presets()[pair.preset].threads or 1) == (book.threads or 1)
    assert ours.env == []


@each_pair
def test_the_endpoint_is_one_of_a_scenario_that_the_preset_has(pair: Pair) -> None:
    assert pair.scenario in presets()[pair.preset].scenarios
    scenario = scenarios()[pair.scenario]
    assert scenario.request(pair.endpoint).method == "GET"
    assert scenario.needs_database == ("postgres" in pair.topology)


@each_pair
def test_the_image_has_a_program_for_it(pair: Pair) -> None:
    folder = BOOKS / pair.book.removeprefix("book-")
    assert (folder / "Dockerfile").is_file()
    programs = {
        "book-python": re.findall(r"^([a-z-]+)\) exec", _text(folder / "start.sh"), re.MULTILINE)
        if (folder / "start.sh").is_file()
        else [],
        "book-rust": [path.stem for path in folder.glob("src/bin/*.rs")],
        "book-go": ["go-nethttp"],
    }
    assert pair.preset in programs[pair.book]


def test_all_of_them_take_less_than_twenty_minutes() -> None:
    # Between two trials, and around a run: a fresh pod of Python; tiers, checks and their waits.
    between, around = 2.0, 10.0
    seconds = 0.0
    for pair in PAIRS:
        load = spec_of(pair).loads[0]
        # Rounds of a second, for the 40 threads of a FastAPI process.
        rounds = (pair.requests or 0) / 40
        trial = load.warmup_seconds + (load.measured_seconds or rounds) + between
        waits = sum(check.times * check.min_seconds for check in scenarios()[pair.scenario].checks)
        seconds += around + 2 * (waits + pair.repetitions * trial)
    assert seconds < parse_duration("20m")


def test_some_can_be_chosen() -> None:
    assert [pair.preset for pair in chosen("flask, axum-sqlx")] == ["flask", "axum-sqlx"]
    assert chosen(" ") == list(PAIRS)
    assert {pair.repetitions for pair in chosen("", repetitions=15)} == {15}
    with pytest.raises(ValueError, match="no server is called 'axum'; there are: fastapi-sync, "):
        chosen("flask,axum")


def test_rust_has_the_same_versions_on_both_sides() -> None:
    ours, book = (_locked(ROOT / "images/servers/rust"), _locked(BOOKS / "rust"))
    manifest = tomllib.loads(_text(BOOKS / "rust/Cargo.toml"))
    shared = [name for name in manifest["dependencies"] if name in ours]
    assert {"axum", "rocket", "diesel", "sqlx", "tokio", "tokio-postgres", "bb8"} <= set(shared)
    assert {"deadpool-diesel", "rocket_sync_db_pools"} <= set(shared), "the pools of their guides"
    assert {name: book[name] for name in shared} == {name: ours[name] for name in shared}


def test_go_has_the_same_versions_on_both_sides() -> None:
    ours, book = (
        set(re.findall(r"(\S+/\S+) (v\S+)", _text(folder / "go.mod")))
        for folder in (ROOT / "images/servers/go-nethttp", BOOKS / "go")
    )
    assert any("pgx" in name for name, _ in book)
    assert book <= ours


def test_python_has_all_locks_of_the_servers_and_they_agree() -> None:
    dockerfile = _text(BOOKS / "python/Dockerfile")
    pinned: dict[str, set[str]] = {}
    for lock in (ROOT / "images/servers").glob("*/requirements.lock"):
        assert f"COPY {lock.relative_to(ROOT)} " in dockerfile
        for name, version in re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==(\S+)", _text(lock), re.M):
            pinned.setdefault(name, set()).add(version)
    assert {"fastapi", "django", "flask"} <= pinned.keys()
    assert {name: found for name, found in pinned.items() if len(found) > 1} == {}


def _locked(folder: Path) -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for package in tomllib.loads(_text(folder / "Cargo.lock"))["package"]:
        versions.setdefault(package["name"], []).append(package["version"])
    return versions


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
