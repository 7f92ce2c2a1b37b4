"""The application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.recipes import find_user, pick_recipe
from serving.asyncpg_pool import make_pool
from serving.settings import Settings


class OrjsonResponse(Response):
    """JSON, with times in RFC 3339 as orjson writes them."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body for `content`."""
        return orjson.dumps(content)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Own the connection pool for as long as the server runs."""
    app.state.pool = make_pool(Settings.from_environment())
    if app.state.pool is None:
        yield
    else:
        async with app.state.pool:
            yield


async def random_recipe(request: Request) -> OrjsonResponse:
    """A random recipe of the session's user."""
    pool: asyncpg.Pool | None = request.app.state.pool
    if pool is None:
        raise HTTPException(503, "DATABASE_URL is not set")
    session_key = request.cookies.get("sessionid")
    if session_key is None:
        raise HTTPException(401)
    async with pool.acquire() as connection:
        user_id = await find_user(connection, session_key)
        if user_id is None:
            raise HTTPException(401)
        recipe = await pick_recipe(connection, user_id)
    if recipe is None:
        raise HTTPException(404)
    return OrjsonResponse(recipe)


async def healthz(request: Request) -> OrjsonResponse:
    """Answers as soon as requests are served."""
    return OrjsonResponse({"status": "ok"})


app = Starlette(
    routes=[Route("/api/v1/recipes", random_recipe), Route("/healthz", healthz)],
    lifespan=lifespan,
)
