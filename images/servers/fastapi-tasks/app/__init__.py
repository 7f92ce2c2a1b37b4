"""A todo API: FastAPI with synchronous endpoints and the SQLAlchemy ORM."""
