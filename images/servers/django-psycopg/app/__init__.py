"""Django with its ORM and psycopg, on gunicorn with synchronous workers."""
