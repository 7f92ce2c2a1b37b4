"""FastAPI that waits, in a thread and in the event loop, on gunicorn with uvicorn workers."""
