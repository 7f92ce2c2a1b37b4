"""Sessions of a scenario: what one user asks for after the other, and what he keeps in between."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules
from laptime.api.feeders import VALUE_NAME

MAX_SESSIONS = 16
MAX_STEPS = 16
MAX_CAPTURES = 8

LOWER_CASE_NAME: dict[str, Any] = rules(
    rule(
        "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "must be lower-case letters, digits and '-', start with a letter and end with a letter or "
        "digit, such as read-one",
    ),
    minLength=1,
    maxLength=40,
)
_FIELD_NAME: dict[str, Any] = rules(
    rule(
        "self.matches('^[-!#$%&*+.^_|~0-9A-Za-z]+$')",
        "must be a name of letters, digits and '-', such as location",
    ),
    minLength=1,
    maxLength=128,
)


class Capture(Model):
    """A value of an answer that a later request needs, such as a token or the id of a new row.

    It is of one of `json`, `header` and `cookie`, or else of the body; with a regex what that finds
    in it.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.json), has(self.header), has(self.cookie)].filter(one, one).size() == 1 "
                "|| has(self.regex) && !(has(self.json) || has(self.header) || has(self.cookie))",
                "write one of json, header and cookie, with or without a regex, or a regex for "
                "the body",
            )
        )
    )
    name: str = Field(description="Its name in templates: {{name}}.", json_schema_extra=VALUE_NAME)
    pointer: str | None = Field(
        None,
        alias="json",
        description="Place in a JSON body, as a JSON pointer (RFC 6901): /token, /items/0/id.",
        json_schema_extra=rules(
            rule(
                "self.matches('^(/[^/]+)+$')",
                "must be a JSON pointer, such as /token or /items/0/id",
            ),
            minLength=1,
            maxLength=256,
        ),
    )
    header: str | None = Field(
        None,
        description="Name of a header field of the answer; the first one of that name counts.",
        json_schema_extra=_FIELD_NAME,
    )
    cookie: str | None = Field(
        None, description="Name of a cookie that the answer sets.", json_schema_extra=_FIELD_NAME
    )
    regex: str | None = Field(
        None,
        description="Its first group is the value, or all that it finds where it has no group. "
        "Without look-around and back references (RE2).",
        json_schema_extra=rules(
            # One that cannot be compiled fails both.
            rule(
                "''.matches(self) || !''.matches(self)",
                "must be a regular expression as RE2 has it, such as /items/([0-9]+)",
            ),
            minLength=1,
            maxLength=256,
        ),
    )

    @property
    def in_body(self) -> bool:
        """Whether it is looked for in the body of an answer."""
        return self.header is None and self.cookie is None


class Session(Model):
    """Requests that one user sends one after the other."""

    name: str = Field(
        description="Its name; a load can name it instead of a request.",
        json_schema_extra=LOWER_CASE_NAME,
    )
    weight: int = Field(
        1,
        description="How often it comes beside the others in a load that has neither endpoints nor "
        "mix.",
        ge=1,
        le=1000,
    )
    steps: list[Annotated[str, Field(min_length=1, max_length=40)]] = Field(
        description="Names of requests, in their order; one may come more than once.",
        min_length=1,
        max_length=MAX_STEPS,
    )
