"""asyncpg's connection pool."""

import asyncpg

from serving.settings import Settings


def make_pool(settings: Settings) -> asyncpg.Pool | None:
    """A pool of at most `database_connections` connections, opened when first needed.

    The pool is not open yet: enter it. None when the run has no database.
    """
    if settings.database_url is None:
        return None
    return asyncpg.create_pool(
        settings.database_url,
        # Connections are opened on demand: the server starts before its database is there.
        min_size=0,
        max_size=settings.database_connections,
        statement_cache_size=100 if settings.database_prepared_statements else 0,
    )
