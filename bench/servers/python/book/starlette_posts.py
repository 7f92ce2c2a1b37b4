"""`posts` with Starlette and asyncpg."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """The connection pool."""
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=int(os.environ["DATABASE_CONNECTIONS"]),
    ) as app.state.pool:
        yield


async def posts(request: Request) -> JSONResponse:
    """The ten latest posts."""
    async with request.app.state.pool.acquire() as connection:
        rows = await connection.fetch("SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10")
    return JSONResponse([dict(row) for row in rows])


async def healthz(request: Request) -> JSONResponse:
    """Whether requests are served."""
    return JSONResponse({"status": "ok"})


app = Starlette(routes=[Route("/posts", posts), Route("/healthz", healthz)], lifespan=lifespan)
