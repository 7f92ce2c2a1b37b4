"""FastAPI with asynchronous endpoints and asyncpg."""
