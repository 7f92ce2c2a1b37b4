"""The application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy import CursorResult, delete, insert, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.models import Task
from app.schemas import TaskIn, TaskOut
from serving.settings import Settings
from serving.sqlalchemy_engine import make_engine


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Own the connection pool for as long as the server runs."""
    engine = make_engine(Settings.from_environment())
    # A row is answered after its transaction has ended, and must not be read once more for that.
    app.state.sessions = sessionmaker(engine, expire_on_commit=False) if engine else None
    yield
    if engine:
        engine.dispose()


async def get_sessions(request: Request) -> sessionmaker[Session]:
    """The session factory; 503 when the run has no database. Async: it needs no thread."""
    sessions: sessionmaker[Session] | None = request.app.state.sessions
    if sessions is None:
        raise HTTPException(503, "DATABASE_URL is not set")
    return sessions


# Sessions begin and end in the endpoints and not in a dependency, which would keep the connection
# until the answer is serialised in another thread: with all threads waiting for one, never.
Sessions = Annotated[sessionmaker[Session], Depends(get_sessions)]

app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.get("/")
async def hello() -> dict[str, str]:
    """A greeting."""
    return {"message": "Hello, World!"}


@app.post("/tasks", status_code=201, response_model=TaskOut)
def create_task(task: TaskIn, sessions: Sessions) -> Task:
    """Add a task."""
    statement = insert(Task).values(name=task.name, done=task.done).returning(Task)
    with sessions.begin() as session:
        return session.scalars(statement).one()


@app.get("/tasks/{task_id}", response_model=TaskOut)
def read_task(task_id: int, sessions: Sessions) -> Task:
    """One task."""
    with sessions() as session:
        return found(session.scalar(select(Task).where(Task.id == task_id)))


@app.put("/tasks/{task_id}", response_model=TaskOut)
def update_task(task_id: int, task: TaskIn, sessions: Sessions) -> Task:
    """Replace a task's name and state."""
    statement = (
        update(Task)
        .where(Task.id == task_id)
        .values(name=task.name, done=task.done)
        .returning(Task)
    )
    with sessions.begin() as session:
        return found(session.scalar(statement))


@app.delete("/tasks/{task_id}", status_code=204)
def delete_task(task_id: int, sessions: Sessions) -> None:
    """Remove a task."""
    with sessions.begin() as session:
        result = session.execute(delete(Task).where(Task.id == task_id))
        assert isinstance(result, CursorResult)
        if result.rowcount == 0:
            raise HTTPException(404, "no such task")


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Answers as soon as requests are served; async, so that busy threads do not delay it."""
    return {"status": "ok"}


def found(task: Task | None) -> Task:
    """`task`, or 404 when there is none."""
    if task is None:
        raise HTTPException(404, "no such task")
    return task
