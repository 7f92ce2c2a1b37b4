"""Django's settings, for nothing but an API: no sessions, forms or templates."""

import os
from urllib.parse import unquote, urlsplit

from serving.settings import Settings

ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["app"]
# It says the length of an answer; without, each would be sent in chunks.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
APPEND_SLASH = False
ROOT_URLCONF = "app.urls"
TIME_ZONE = "UTC"
USE_TZ = True
# Of requests only those that failed with an exception.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}


def keeps_connections() -> bool:
    """What KEEP_CONNECTIONS says; raises ValueError when it is neither true nor false."""
    keeps = os.environ.get("KEEP_CONNECTIONS") or "true"
    if keeps not in ("true", "false"):
        raise ValueError(f"KEEP_CONNECTIONS must be true or false, not {keeps!r}")
    return keeps == "true"


def database(settings: Settings, *, kept: bool) -> dict[str, object]:
    """The database of the run. Unless `kept`, a worker connects anew for each request, which is
    what Django does by itself; threads share a pool either way.
    """
    url = urlsplit(settings.database_url or "")
    threaded = settings.threads > 1
    # A connection that one request has runs no statement twice.
    prepared = settings.database_prepared_statements and (kept or threaded)
    options: dict[str, object] = {
        # psycopg prepares a statement on its fifth execution, if its values are sent apart from it.
        "prepare_threshold": 5 if prepared else None,
        "server_side_binding": prepared,
    }
    if threaded:
        options["pool"] = {"min_size": 0, "max_size": settings.database_connections}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": url.hostname,
        "PORT": url.port or 5432,
        "NAME": url.path.removeprefix("/"),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        # A synchronous worker has one request at a time and keeps the one connection that it
        # needs; threads share a pool.
        "CONN_MAX_AGE": None if kept and not threaded else 0,
        "OPTIONS": options,
    }


_settings = Settings.from_environment()
DATABASES = (
    {"default": database(_settings, kept=keeps_connections())} if _settings.database_url else {}
)
HAS_DATABASE = _settings.database_url is not None
