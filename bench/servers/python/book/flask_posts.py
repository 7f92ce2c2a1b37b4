"""`posts` with Flask and psycopg's pool."""

import atexit
import os

from flask import Flask, Response, jsonify
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

pool = ConnectionPool(
    os.environ["DATABASE_URL"],
    min_size=1,
    max_size=int(os.environ["DATABASE_CONNECTIONS"]),
    kwargs={"row_factory": dict_row},
    open=True,
)
atexit.register(pool.close)
app = Flask(__name__)


@app.get("/posts")
def posts() -> Response:
    """The ten latest posts."""
    with pool.connection() as connection:
        rows = connection.execute("SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10")
        return jsonify(rows.fetchall())


@app.get("/healthz")
def healthz() -> Response:
    """Whether requests are served."""
    return jsonify(status="ok")
