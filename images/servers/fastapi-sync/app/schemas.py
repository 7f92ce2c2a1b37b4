"""What the endpoints answer."""

from pydantic import BaseModel, ConfigDict


class UserOut(BaseModel):
    """One user in an answer."""

    model_config = ConfigDict(from_attributes=True)

    user_id: str
    username: str
    email: str
