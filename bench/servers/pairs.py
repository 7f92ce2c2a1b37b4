"""The servers of the catalogue, each with its counterpart by the book, and the run of the two."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

OURS = "ours"
BOOK = "by-the-book"
LOAD = "saturated"
REGISTRY = "docker.io/laptime"


@dataclass(frozen=True)
class Pair:
    """A preset, and the image that has a minimal server on the same libraries."""

    preset: str
    book: str
    scenario: str
    endpoint: str
    topology: dict[str, Any] = field(default_factory=lambda: {"postgres": {"maxConnections": 100}})
    settings: dict[str, Any] = field(default_factory=dict)
    # More than a server works on at once, and fewer than the 40 threads of a FastAPI process: with
    # a session in a dependency, as its documentation has it, the server can stand still otherwise.
    connections: int = 32
    duration: str = "4s"
    requests: int | None = None
    """Instead of a duration, where answers come in rounds: a window would cut one."""
    repetitions: int = 5

    @property
    def images(self) -> tuple[str, str]:
        """The short names of both images."""
        return f"server-{self.preset}", self.book

    def manifest(self, version: str) -> dict[str, Any]:
        """Return the BenchmarkRun: both servers with the same workers, threads and pool."""
        length = {"requests": self.requests} if self.requests else {"duration": self.duration}
        both = {"workers": 1, "databaseConnections": 10, **self.settings}
        return {
            "apiVersion": "laptime.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": f"book-{self.preset}"},
            "spec": {
                "scenario": self.scenario,
                # Ours first: servers are verified in this order, the first while the tiers still
                # start, and the counterparts connect to their database when they start.
                "servers": [
                    {"name": OURS, "preset": self.preset, **both},
                    {
                        "name": BOOK,
                        "image": f"{REGISTRY}/{self.book}:{version}",
                        "env": [{"name": "SERVER", "value": self.preset}],
                        **both,
                    },
                ],
                "baseline": BOOK,
                "topology": self.topology,
                "loads": [
                    {
                        "name": LOAD,
                        "endpoints": [self.endpoint],
                        "closed": {"connections": self.connections, **length},
                        "warmup": "1s",
                    }
                ],
                "repetitions": self.repetitions,
            },
        }


PAIRS = (
    Pair("fastapi-sync", "book-python", "users", "list"),
    Pair("fastapi-async", "book-python", "users", "list"),
    Pair("axum-sqlx", "book-rust", "users", "list"),
    # Its 40 threads are what it has: 80 connections keep them busy, in rounds of a second.
    Pair(
        "fastapi-sleep",
        "book-python",
        "sleep",
        "sync-1s",
        topology={},
        connections=80,
        requests=240,
        repetitions=3,
    ),
    Pair("fastapi-tasks", "book-python", "tasks", "read"),
    Pair("rocket-diesel", "book-rust", "tasks", "read"),
    Pair("axum-diesel", "book-rust", "tasks", "read"),
    Pair("django-psycopg", "book-python", "recipes", "recipe"),
    Pair("starlette-asyncpg", "book-python", "recipes", "recipe"),
    Pair("axum-bb8", "book-rust", "recipes", "recipe"),
    Pair("flask", "book-python", "posts", "posts", settings={"threads": 40}),
    Pair("starlette", "book-python", "posts", "posts"),
    Pair("go-nethttp", "book-go", "posts", "posts"),
)


def chosen(names: str, repetitions: int | None = None) -> list[Pair]:
    """Return the pairs of the presets that are listed, by commas or spaces; empty: all.

    `repetitions` replaces the number that each of them has.

    Raises:
        ValueError: there is no such preset; the message lists those there are.
    """
    wanted = names.replace(",", " ").split()
    known = {pair.preset: pair for pair in PAIRS}
    for name in wanted:
        if name not in known:
            raise ValueError(f"no server is called {name!r}; there are: {', '.join(known)}")
    pairs = [known[name] for name in dict.fromkeys(wanted)] or list(PAIRS)
    return (
        pairs if repetitions is None else [replace(one, repetitions=repetitions) for one in pairs]
    )
