"""uvicorn as a worker of gunicorn: `gunicorn --worker-class serving.uvicorn_worker.Worker`."""

from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker

from serving import limits
from serving.settings import Settings


class Worker(UvicornWorker):
    """uvicorn with its fast parts, and with a limit to its graceful end.

    gunicorn's number of threads means nothing to it: `def` endpoints run in AnyIO's 40 threads.
    """

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "uvloop",
        "http": "httptools",
        "access_log": Settings.from_environment().access_log,
        "timeout_graceful_shutdown": limits.GRACEFUL_SHUTDOWN_SECONDS,
    }
