"""Starlette with aiohttp, and with asynchronous or synchronous database access, on gunicorn."""
