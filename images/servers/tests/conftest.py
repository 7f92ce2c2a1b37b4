"""A database with the data of all scenarios, a PgBouncer before it, and a way to start servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from containers import Container, Roots, free_port, run_container
from processes import binary_of, run_process
from tiers import FORGETFUL, Database, Run, start_bouncer, start_database

from imagebuild.catalog import discover
from imagebuild.engines import find_engine
from imagebuild.store import Store, default_cache
from laptime.catalog import Scenario, scenarios

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs an image by its short name; see `run_container`."""
    store = Store(default_cache() / "images")
    engine = find_engine(default_cache())
    images = discover(ROOT)
    on_exit = ExitStack()
    roots = Roots(on_exit, engine)
    begun: set[str] = set()

    def start(image: str, **options: object) -> AbstractContextManager[Container]:
        if binary := binary_of(image):
            return run_process(binary, **options)  # type: ignore[arg-type]
        if image not in begun:
            assert store.key(image), f"{image} is not built: python3 images/build.py {image}"
            assert not store.is_of_another(ROOT, image), f"{image} was built by another checkout"
            begun.add(image)
        return run_container(engine, store, roots, image, images[image].version, **options)  # type: ignore[arg-type]

    with on_exit:
        yield start


@pytest.fixture(scope="session")
def database(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Postgres with the data of all scenarios."""
    files = (sql for scenario in scenarios().values() for _, sql in scenario.init_sql)
    # Each once: a scenario may be made of others.
    seed = "\n".join(dict.fromkeys(files))
    with start_database(run, tmp_path_factory.mktemp("postgres"), free_port(), seed) as database:
        seconds = database.container.wait_until(database.ready, 120)
        print(f"postgres: ready after {seconds:.2f} s")
        yield database


@pytest.fixture(scope="session")
def bouncer(
    run: Run, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """PgBouncer in front of Postgres."""
    with start_bouncer(run, database, tmp_path_factory.mktemp("pgbouncer")) as bouncer:
        yield bouncer


@pytest.fixture(scope="session")
def forgetful_bouncer(
    run: Run, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """The same, where a statement prepared under no name never outlives its transaction."""
    folder = tmp_path_factory.mktemp("forgetful")
    with start_bouncer(run, database, folder, FORGETFUL) as bouncer:
        yield bouncer


@pytest.fixture
def fresh(database: Database) -> Callable[[Scenario], None]:
    """Brings the data of a scenario to the state before a trial, in Postgres."""

    def reset(scenario: Scenario) -> None:
        for statement in scenario.reset_statements:
            database.query(statement)

    return reset
