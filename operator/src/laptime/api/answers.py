"""What a server has answered to a check, beside what was expected."""

from __future__ import annotations

import json

from pydantic import Field, ValidationError

from laptime.api.base import TolerantModel
from laptime.api.text import plain_tree


class CheckedAnswer(TolerantModel):
    """One check of a scenario on one server."""

    check: str = Field(description="Name of the check.")
    request: str = Field(description="Method and path, as it was asked.")
    expected: str = Field(description="What a right answer is, in words.")
    answered: str = Field(description="Status, media type and the beginning of the body.")
    right: bool = Field(description="Whether the answer was right.")
    said: str = Field("", description="What was not right, in words.")

    def to_line(self) -> str:
        """Return it as a line of JSON."""
        return self.model_dump_json()


def answers_in(text: str) -> list[CheckedAnswer]:
    """Return the answers among the lines of a text; a line that is none says nothing."""
    found = []
    for line in text.splitlines():
        try:
            found.append(CheckedAnswer.model_validate(plain_tree(json.loads(line))))
        except (ValueError, RecursionError, ValidationError):
            continue
    return found
