"""The application, as gunicorn calls it."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "book.django_psycopg.settings")
application = get_wsgi_application()
