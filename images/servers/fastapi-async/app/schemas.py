"""What the endpoints answer."""

from pydantic import BaseModel


class UserOut(BaseModel):
    """One user in an answer."""

    user_id: str
    username: str
    email: str
