"""`users` with FastAPI, `def` endpoints and SQLAlchemy; the session is a dependency."""

import os
from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel, ConfigDict
from sqlalchemy import create_engine, make_url, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

engine = create_engine(
    make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"),
    pool_size=int(os.environ["DATABASE_CONNECTIONS"]),
    max_overflow=0,
)


class Base(DeclarativeBase):
    """All models."""


class User(Base):
    """A row of the table."""

    __tablename__ = "user"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    username: Mapped[str]
    email: Mapped[str]


class UserOut(BaseModel):
    """One user in an answer."""

    model_config = ConfigDict(from_attributes=True)

    user_id: str
    username: str
    email: str


def get_session() -> Iterator[Session]:
    """A session for the length of a request."""
    with Session(engine) as session:
        yield session


app = FastAPI()


@app.get("/", response_model=list[UserOut])
def list_users(session: Annotated[Session, Depends(get_session)]) -> Sequence[User]:
    """The first hundred users."""
    return session.scalars(select(User).order_by(User.user_id).limit(100)).all()


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether requests are served."""
    return {"status": "ok"}
