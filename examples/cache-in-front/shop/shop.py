"""One endpoint: a product with its ratings, from Postgres, and from Redis where there is one."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import redis.asyncio as redis
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KEPT_SECONDS = 300
PRODUCT = """
SELECT p.id, p.name, count(r.stars)::int AS ratings, coalesce(avg(r.stars), 0)::float8 AS stars
FROM products p LEFT JOIN ratings r ON r.product_id = p.id
WHERE p.id = $1 GROUP BY p.id
"""


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Hold the connections to the database and, where there is one, to the cache."""
    connections = int(os.environ.get("DATABASE_CONNECTIONS", "5"))
    cache_url = os.environ.get("CACHE_URL")
    app.state.cache = redis.from_url(cache_url) if cache_url else None
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=connections, max_size=connections
    ) as app.state.database:
        yield


async def product(request: Request) -> Response:
    """Answer a product: what the cache has, else what the database says."""
    number = request.path_params["number"]
    cache: redis.Redis | None = request.app.state.cache
    key = f"product:{number}"
    text = await cache.get(key) if cache is not None else None
    if text is None:
        row = await request.app.state.database.fetchrow(PRODUCT, number)
        if row is None:
            return Response(status_code=404)
        text = json.dumps(dict(row)).encode()
        if cache is not None:
            await cache.set(key, text, ex=KEPT_SECONDS)
    return Response(text, media_type="application/json")


async def healthz(request: Request) -> Response:
    """Answer as soon as requests are served."""
    return Response("ok")


app = Starlette(
    routes=[Route("/products/{number:int}", product), Route("/healthz", healthz)],
    lifespan=lifespan,
)

if __name__ == "__main__":
    uvicorn.run(
        "shop:app",
        # A pod of an IPv6 cluster has no other address.
        host="::" if ":" in os.environ.get("POD_IP", "") else "0.0.0.0",
        port=int(os.environ.get("PORT", "8080")),
        workers=int(os.environ.get("WORKERS", "1")),
        access_log=False,
    )
