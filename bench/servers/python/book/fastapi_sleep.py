"""`sleep` with FastAPI."""

import asyncio
import time

from fastapi import FastAPI

app = FastAPI()


@app.get("/sync")
def sync(seconds: float = 10) -> dict[str, str]:
    """Waits in a thread."""
    time.sleep(seconds)
    return {"message": "success"}


@app.get("/async")
async def wait(seconds: float = 10) -> dict[str, str]:
    """Waits in the event loop."""
    await asyncio.sleep(seconds)
    return {"message": "success"}


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether requests are served."""
    return {"status": "ok"}
