"""`python -m serving.uvicorn_server MODULE:APP` serves an ASGI application until SIGTERM."""

import os
import signal
import sys
import time
from multiprocessing.connection import wait
from typing import Any, NoReturn

import uvicorn
from uvicorn.supervisors import Multiprocess

from serving import limits
from serving.profile import allow_profile, serve_profiles
from serving.settings import Settings

_LOOK_SECONDS = 0.5
"""How often uvicorn looks whether it is to end."""

# Several workers import this module again, each in its own process.
allow_profile(Settings.from_environment())


class Workers(Multiprocess):
    """The first process, when there are several workers; it ends when one of them does.

    uvicorn would start another one and say nothing above the level of information: the server
    would go on with a worker that was away and came back cold.
    """

    def keep_subprocess_alive(self) -> None:
        """Look after the workers; called twice a second."""
        ends = {worker.process.sentinel: worker for worker in self.processes}
        for worker in self.processes:
            if self.should_exit.is_set():
                return
            worker.parent_conn.send(b"ping")
            # Not for its answer alone: for that of one that ends before it uvicorn waits in vain.
            silent_until = time.monotonic() + limits.WORKER_SILENCE_SECONDS
            while not (ready := wait([worker.parent_conn, *ends], _LOOK_SECONDS)):
                if self.signal_queue:
                    return  # It is to end, which has not to wait for a worker that hangs.
                if time.monotonic() > silent_until:
                    _give_up(f"worker {worker.pid} says nothing")
            ended = next((ends[one] for one in ready if one in ends), None)
            if ended is None:
                worker.parent_conn.recv()
            elif not self.should_exit.is_set():
                _give_up(f"worker {ended.pid} ended")


def _give_up(why: str) -> NoReturn:
    print(f"{why}, and so the server ends", file=sys.stderr)
    os._exit(1)


def serve(application: str, settings: Settings) -> None:
    """Run uvicorn with the workers and the port that the environment says."""
    # uvicorn ends gracefully and then raises the signal again for whoever handled it before. An
    # ordinary exit would wait for threads that are still blocked in a query.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    limits.raise_open_files()
    serve_profiles(settings)
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "loop": "uvloop",
        "http": "httptools",
        "log_level": "info" if settings.access_log else "warning",
        "access_log": settings.access_log,
        "timeout_keep_alive": limits.KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": limits.GRACEFUL_SHUTDOWN_SECONDS,
    }
    if settings.workers > 1:
        config = uvicorn.Config(application, **options)
        Workers(config, [config.bind_socket()]).run()
    else:
        uvicorn.run(application, **options)


if __name__ == "__main__":
    serve(sys.argv[1], Settings.from_environment())
