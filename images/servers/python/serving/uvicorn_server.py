"""`python -m serving.uvicorn_server MODULE:APP` serves an ASGI application until SIGTERM."""

import os
import signal
import sys

import uvicorn

from serving import limits
from serving.profile import allow_profile, serve_profiles
from serving.settings import Settings

# Several workers import this module again, each in its own process.
allow_profile(Settings.from_environment())


def serve(application: str, settings: Settings) -> None:
    """Run uvicorn with the workers and the port that the environment says."""
    # uvicorn ends gracefully and then raises the signal again for whoever handled it before. An
    # ordinary exit would wait for threads that are still blocked in a query.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    serve_profiles(settings)
    uvicorn.run(
        application,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="uvloop",
        http="httptools",
        log_level="info" if settings.access_log else "warning",
        access_log=settings.access_log,
        timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=limits.GRACEFUL_SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=limits.WORKER_SILENCE_SECONDS,
    )


if __name__ == "__main__":
    serve(sys.argv[1], Settings.from_environment())
