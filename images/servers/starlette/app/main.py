"""The application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.posts import database_access, open_posts
from serving.settings import Settings

UPSTREAM_TIMEOUT = aiohttp.ClientTimeout(total=30)

settings = Settings.from_environment()
access = database_access()


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Own the connections for as long as the server runs."""
    async with (
        aiohttp.ClientSession(timeout=UPSTREAM_TIMEOUT) as app.state.client,
        open_posts(settings, access) as app.state.read_posts,
    ):
        yield


async def hi(request: Request) -> JSONResponse:
    """A greeting."""
    return JSONResponse({"hello": "world"})


async def users(request: Request) -> JSONResponse:
    """What the upstream answers."""
    if settings.upstream_url is None:
        raise HTTPException(503, "UPSTREAM_URL is not set")
    client: aiohttp.ClientSession = request.app.state.client
    try:
        async with client.get(settings.upstream_url) as response:
            if response.status != 200:
                raise HTTPException(502, f"the upstream answered {response.status}")
            return JSONResponse(await response.json())
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise HTTPException(502, f"the upstream failed: {error}") from error


async def posts(request: Request) -> JSONResponse:
    """The ten latest posts."""
    read_posts = request.app.state.read_posts
    if read_posts is None:
        raise HTTPException(503, "DATABASE_URL is not set")
    return JSONResponse(await read_posts())


async def healthz(request: Request) -> JSONResponse:
    """Answers as soon as requests are served."""
    return JSONResponse({"status": "ok"})


app = Starlette(
    routes=[
        Route("/hi", hi),
        Route("/users", users),
        Route("/posts", posts),
        Route("/healthz", healthz),
    ],
    lifespan=lifespan,
)
