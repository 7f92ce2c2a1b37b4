"""Flask with requests and blocking database connections, on gunicorn with threads."""
