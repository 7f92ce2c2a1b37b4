"""What the endpoints take and answer."""

from pydantic import BaseModel, ConfigDict


class TaskIn(BaseModel):
    """A task as a client sends it."""

    name: str
    done: bool


class TaskOut(BaseModel):
    """A task in an answer."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    done: bool
