"""Django's settings: a database and the routes."""

import os
from urllib.parse import urlsplit

_database = urlsplit(os.environ["DATABASE_URL"])

ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["book.django_psycopg"]
ROOT_URLCONF = "book.django_psycopg.urls"
WSGI_APPLICATION = "book.django_psycopg.wsgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _database.hostname,
        "PORT": _database.port or 5432,
        "NAME": _database.path.removeprefix("/"),
        "USER": _database.username,
        "PASSWORD": _database.password,
        # Persistent connections: a worker keeps its one.
        "CONN_MAX_AGE": None,
    }
}
