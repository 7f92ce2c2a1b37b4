"""FastAPI with synchronous endpoints, the SQLAlchemy ORM and psycopg."""
