"""The application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import User
from app.schemas import UserOut
from serving.settings import Settings
from serving.sqlalchemy_engine import make_engine


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Own the connection pool for as long as the server runs."""
    engine = make_engine(Settings.from_environment())
    app.state.sessions = sessionmaker(engine) if engine else None
    yield
    if engine:
        engine.dispose()


async def get_sessions(request: Request) -> sessionmaker[Session]:
    """The session factory; 503 when the run has no database. Async: it needs no thread."""
    sessions: sessionmaker[Session] | None = request.app.state.sessions
    if sessions is None:
        raise HTTPException(503, "DATABASE_URL is not set")
    return sessions


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.get("/", response_model=list[UserOut])
def list_users(sessions: Annotated[sessionmaker[Session], Depends(get_sessions)]) -> Sequence[User]:
    """The first hundred users."""
    # The session ends here and not in a dependency, which would keep its connection until the
    # answer is serialised in another thread: with all threads waiting for a connection, never.
    with sessions() as session:
        return session.scalars(select(User).order_by(User.user_id).limit(100)).all()


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Answers as soon as requests are served; async, so that busy threads do not delay it."""
    return {"status": "ok"}
