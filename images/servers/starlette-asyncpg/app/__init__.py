"""Starlette with asyncpg and orjson, on gunicorn with uvicorn workers."""
