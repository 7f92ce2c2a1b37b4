"""gunicorn's settings: `gunicorn --config python:serving.gunicorn_config MODULE:APP`.

Without a worker class on the command line gunicorn takes its synchronous worker for one thread
and its threaded worker for more.
"""

from serving import limits
from serving.settings import Settings

_settings = Settings.from_environment()

bind = f"0.0.0.0:{_settings.port}"
workers = _settings.workers
threads = _settings.threads
keepalive = limits.KEEP_ALIVE_SECONDS
graceful_timeout = limits.GRACEFUL_SHUTDOWN_SECONDS
timeout = limits.WORKER_SILENCE_SECONDS
accesslog = "-" if _settings.access_log else None
loglevel = "warning"
# Workers show that they live by touching a file; on a disk that can take them long.
worker_tmp_dir = "/dev/shm"
# Nobody asks it anything, and its place in the home directory would be outside /tmp.
control_socket_disable = True
