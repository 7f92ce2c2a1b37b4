"""SQLAlchemy's engine and its connection pool."""

from functools import partial

from sqlalchemy import URL, Engine, QueuePool, create_engine, make_url

from serving import sqlite_file
from serving.settings import Settings


def make_engine(settings: Settings) -> Engine | None:
    """A pool of exactly `database_connections` connections, opened when first needed.

    None when the run has no database.
    """
    if settings.database_url is None:
        return None
    if settings.sqlite_file is not None:
        return create_engine(
            URL.create("sqlite", database=str(settings.sqlite_file)),
            creator=partial(
                sqlite_file.connect, settings.sqlite_file, settings.database_prepared_statements
            ),
            poolclass=QueuePool,
            pool_size=settings.database_connections,
            max_overflow=0,
        )
    # psycopg prepares a statement on its fifth execution; None turns that off.
    prepare_threshold = 5 if settings.database_prepared_statements else None
    return create_engine(
        make_url(settings.database_url).set(drivername="postgresql+psycopg"),
        pool_size=settings.database_connections,
        max_overflow=0,
        connect_args={"prepare_threshold": prepare_threshold},
    )
