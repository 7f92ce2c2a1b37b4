"""The application."""

import threading

import requests
from flask import Flask, Response, abort, jsonify

from serving.settings import Settings
from serving.sync_connections import open_connections

LATEST_POSTS = "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10"
UPSTREAM_TIMEOUT_SECONDS = 30

settings = Settings.from_environment()
# gunicorn imports this module in each worker, so that every worker has a pool of its own.
connections = open_connections(settings)
# A session keeps its connection to the upstream, and is nothing that threads can share.
of_thread = threading.local()
app = Flask(__name__)


@app.get("/hi")
def hi() -> Response:
    """A greeting."""
    return jsonify(hello="world")


def upstream_session() -> requests.Session:
    """The session of this thread."""
    if not hasattr(of_thread, "session"):
        of_thread.session = requests.Session()
    session: requests.Session = of_thread.session
    return session


@app.get("/users")
def users() -> Response:
    """What the upstream answers."""
    if settings.upstream_url is None:
        abort(503, "UPSTREAM_URL is not set")
    try:
        response = upstream_session().get(settings.upstream_url, timeout=UPSTREAM_TIMEOUT_SECONDS)
        document = response.json() if response.status_code == 200 else None
    except requests.RequestException as error:
        abort(502, f"the upstream failed: {error}")
    if document is None:
        abort(502, f"the upstream answered {response.status_code}")
    return jsonify(document)


@app.get("/posts")
def posts() -> Response:
    """The ten latest posts."""
    if connections is None:
        abort(503, "DATABASE_URL is not set")
    with connections.connection() as connection:
        rows = connection.execute(LATEST_POSTS).fetchall()
    return jsonify([{"id": row[0], "title": row[1], "body": row[2]} for row in rows])


@app.get("/healthz")
def healthz() -> Response:
    """Answers as soon as requests are served."""
    return jsonify(status="ok")
