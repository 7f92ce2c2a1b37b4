"""`users` with FastAPI, `async def` endpoints and asyncpg; the pool lives as long as the server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from fastapi import FastAPI, Request
from pydantic import BaseModel


class User(BaseModel):
    """One user in an answer."""

    user_id: str
    username: str
    email: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The connection pool."""
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=int(os.environ["DATABASE_CONNECTIONS"]),
    ) as app.state.pool:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/", response_model=list[User])
async def list_users(request: Request) -> list[dict[str, Any]]:
    """The first hundred users."""
    async with request.app.state.pool.acquire() as connection:
        rows = await connection.fetch(
            'SELECT user_id, username, email FROM "user" ORDER BY user_id LIMIT 100'
        )
    return [dict(row) for row in rows]


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether requests are served."""
    return {"status": "ok"}
