"""`recipes` with Starlette, asyncpg and orjson."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

# The statements are the scenario's: those of images/servers/starlette-asyncpg.
from book import queries


class OrjsonResponse(JSONResponse):
    """JSON by orjson."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return orjson.dumps(content)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """The connection pool."""
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=int(os.environ["DATABASE_CONNECTIONS"]),
    ) as app.state.pool:
        yield


def with_author(row: asyncpg.Record, *names: str, **more: Any) -> dict[str, Any]:
    """Some columns of a row, and who wrote it."""
    author = {"id": row["author_id"], "name": row["author_name"]}
    return {**{name: row[name] for name in names}, "author": author, **more}


async def random_recipe(request: Request) -> OrjsonResponse:
    """A random recipe of the session's user."""
    async with request.app.state.pool.acquire() as connection:
        await connection.execute(queries.SET_TIME_ZONE)
        session_key = request.cookies.get("sessionid")
        user_id = await connection.fetchval(queries.FIND_USER, session_key)
        if user_id is None:
            raise HTTPException(401)
        recipe = await connection.fetchrow(queries.PICK_RECIPE, user_id)
        if recipe is None:
            raise HTTPException(404)
        ingredients = await connection.fetch(queries.LIST_INGREDIENTS, recipe["id"])
        steps = await connection.fetch(queries.LIST_STEPS, recipe["id"])
        sections = await connection.fetch(queries.LIST_SECTIONS, recipe["id"])
        notes = await connection.fetch(queries.LIST_NOTES, recipe["id"])
        note_ids = [note["id"] for note in notes]
        reactions = await connection.fetch(queries.LIST_REACTIONS, note_ids)
        events = await connection.fetch(queries.LIST_EVENTS, recipe["id"])
    by_note: dict[int, list[dict[str, Any]]] = {note_id: [] for note_id in note_ids}
    for row in reactions:
        by_note[row["note_id"]].append(with_author(row, "id", "emoji", "created"))
    return OrjsonResponse(
        {
            **recipe,
            "ingredients": [{"type": "ingredient", **row} for row in ingredients]
            + [{"type": "section", **row} for row in sections],
            "steps": [dict(row) for row in steps],
            "timeline": [
                with_author(row, "id", "action", "created", type="event") for row in events
            ]
            + [
                with_author(row, "id", "text", "created", type="note", reactions=by_note[row["id"]])
                for row in notes
            ],
        }
    )


async def healthz(request: Request) -> OrjsonResponse:
    """Whether requests are served."""
    return OrjsonResponse({"status": "ok"})


app = Starlette(
    routes=[Route("/api/v1/recipes", random_recipe), Route("/healthz", healthz)],
    lifespan=lifespan,
)
