"""gunicorn's settings: `gunicorn --config python:serving.gunicorn_config MODULE:APP`.

Without a worker class on the command line gunicorn takes its synchronous worker for one thread
and its threaded worker for more.
"""

from typing import Any

from gunicorn.errors import HaltServer

from serving import limits
from serving.profile import allow_profile, serve_profiles
from serving.settings import Settings

_settings = Settings.from_environment()

bind = f"[{_settings.host}]:{_settings.port}"
workers = _settings.workers
threads = _settings.threads
# The threaded worker accepts no more than so many, and keeps none where it has as many threads.
# The largest load has 20,000, and others ask for health.
worker_connections = 21_000 + threads
keepalive = limits.KEEP_ALIVE_SECONDS
graceful_timeout = limits.GRACEFUL_SHUTDOWN_SECONDS
timeout = limits.WORKER_SILENCE_SECONDS
accesslog = "-" if _settings.access_log else None
loglevel = "warning"
# Workers show that they live by touching a file; on a disk that can take them long.
worker_tmp_dir = "/dev/shm"
# Nobody asks it anything, and its place in the home directory would be outside /tmp.
control_socket_disable = True


def on_starting(_arbiter: Any) -> None:
    """Called in the first process, before there are workers."""
    limits.raise_open_files()
    serve_profiles(_settings)


def post_fork(_arbiter: Any, _worker: Any) -> None:
    """Called in each worker."""
    allow_profile(_settings)


def child_exit(arbiter: Any, worker: Any) -> None:
    """Called in the first process when a worker has ended, and then ends the server.

    gunicorn would start another one: the server would go on with a worker that was away and came
    back cold. When the server is to stop, its sockets are closed before.
    """
    if arbiter.LISTENERS:
        raise HaltServer(f"worker {worker.pid} ended", 1)
