"""The latest posts, read asynchronously or synchronously from Postgres or SQLite."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

from app.async_sqlite import AsyncSqliteConnections
from serving.asyncpg_pool import make_pool
from serving.settings import Settings
from serving.sync_connections import open_connections

LATEST_POSTS = "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10"

Posts = list[dict[str, Any]]
ReadPosts = Callable[[], Awaitable[Posts]]


def database_access() -> str:
    """`async` or `sync`, as DATABASE_ACCESS says; raises ValueError when it says anything else."""
    access = os.environ.get("DATABASE_ACCESS") or "async"
    if access not in ("async", "sync"):
        raise ValueError(f"DATABASE_ACCESS must be async or sync, not {access!r}")
    return access


@asynccontextmanager
async def open_posts(settings: Settings, access: str) -> AsyncIterator[ReadPosts | None]:
    """What reads the posts, with a pool for as long as it is open; None without a database."""
    if settings.database_url is None:
        yield None
    elif access == "sync":
        connections = open_connections(settings)
        assert connections is not None
        with closing(connections):

            async def read_posts() -> Posts:
                # Straight in the event loop, which waits: one query at a time, and no hop to
                # another thread.
                with connections.connection() as connection:
                    return documents(connection.execute(LATEST_POSTS).fetchall())

            yield read_posts
    elif settings.sqlite_file is not None:
        async with AsyncSqliteConnections(
            settings.sqlite_file,
            settings.database_connections,
            settings.database_prepared_statements,
        ) as sqlite:

            async def read_posts() -> Posts:
                async with sqlite.connection() as connection:
                    return documents(await connection.execute_fetchall(LATEST_POSTS))

            yield read_posts
    else:
        pool = make_pool(settings)
        assert pool is not None
        async with pool:

            async def read_posts() -> Posts:
                return documents(await pool.fetch(LATEST_POSTS))

            yield read_posts


def documents(rows: Iterable[Sequence[Any]]) -> Posts:
    """Rows of id, title and body as they are answered."""
    return [{"id": row[0], "title": row[1], "body": row[2]} for row in rows]
