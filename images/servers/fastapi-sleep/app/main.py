"""The application."""

import asyncio
import time
from typing import Annotated

from fastapi import FastAPI, Query

# Ten as published; less for runs that should be short.
Seconds = Annotated[float, Query(gt=0, le=60)]

app = FastAPI(openapi_url=None)


@app.get("/sync")
def block_a_thread(seconds: Seconds = 10) -> dict[str, str]:
    """Keeps one of the worker's threads."""
    time.sleep(seconds)
    return {"message": "success"}


@app.get("/async")
async def wait_in_the_loop(seconds: Seconds = 10) -> dict[str, str]:
    """Keeps nothing but memory."""
    await asyncio.sleep(seconds)
    return {"message": "success"}


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Answers as soon as requests are served; async, so that busy threads do not delay it."""
    return {"status": "ok"}
