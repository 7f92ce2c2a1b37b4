"""`tasks` with FastAPI, `def` endpoints and SQLAlchemy; the session is a dependency."""

import os
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

engine = create_engine(
    make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"),
    pool_size=int(os.environ["DATABASE_CONNECTIONS"]),
    max_overflow=0,
)


class Base(DeclarativeBase):
    """All models."""


class Task(Base):
    """A row of the table."""

    __tablename__ = "tasks"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    done: Mapped[bool]


class TaskIn(BaseModel):
    """A task as it is sent."""

    name: str
    done: bool


class TaskOut(TaskIn):
    """A task in an answer."""

    model_config = ConfigDict(from_attributes=True)

    id: int


def get_session() -> Iterator[Session]:
    """A session for the length of a request."""
    with Session(engine) as session:
        yield session


SessionDependency = Annotated[Session, Depends(get_session)]

app = FastAPI()


def find(session: Session, task_id: int) -> Task:
    """The task; 404 when there is none."""
    task = session.get(Task, task_id)
    if task is None:
        raise HTTPException(404, "no such task")
    return task


@app.get("/")
async def hello() -> dict[str, str]:
    """A greeting."""
    return {"message": "Hello, World!"}


@app.post("/tasks", status_code=201, response_model=TaskOut)
def create_task(new: TaskIn, session: SessionDependency) -> Task:
    """Add a task."""
    task = Task(**new.model_dump())
    session.add(task)
    session.commit()
    session.refresh(task)
    return task


@app.get("/tasks/{task_id}", response_model=TaskOut)
def read_task(task_id: int, session: SessionDependency) -> Task:
    """One task."""
    return find(session, task_id)


@app.put("/tasks/{task_id}", response_model=TaskOut)
def update_task(task_id: int, new: TaskIn, session: SessionDependency) -> Task:
    """Replace a task's name and state."""
    task = find(session, task_id)
    task.name, task.done = new.name, new.done
    session.commit()
    session.refresh(task)
    return task


@app.delete("/tasks/{task_id}", status_code=204)
def delete_task(task_id: int, session: SessionDependency) -> None:
    """Remove a task."""
    session.delete(find(session, task_id))
    session.commit()


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether requests are served."""
    return {"status": "ok"}
