"""Names: of servers and loads, which become labels, of images, and of environment variables."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from laptime.api.base import rule, rules

_LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

FILE_NAME = "[.]?[-_a-zA-Z0-9][-._a-zA-Z0-9]*"
"""Of a file or folder: not "." and not begun with "..", as it is with keys of ConfigMaps."""


def _name_rules(what: str) -> dict[str, object]:
    return rules(
        rule(
            f"self.matches('{_LABEL}')",
            f"{what} must be lower-case letters, digits and '-', start with a letter and end "
            "with a letter or digit, such as axum or fastapi-16",
        ),
        maxLength=20,
        minLength=1,
    )


ServerName = Annotated[str, Field(json_schema_extra=_name_rules("a server's name"))]
LoadName = Annotated[str, Field(json_schema_extra=_name_rules("a load's name"))]

IMAGE: dict[str, Any] = rules(
    rule(
        "self.matches('^[a-z0-9][-._a-z0-9/:]*[a-zA-Z0-9._-]*(@sha256:[a-f0-9]{64})?$')",
        "must be an image reference such as registry.example/team/server:1.2",
    ),
    minLength=1,
    maxLength=255,
)


def path_in_image(what: str, example: str) -> dict[str, Any]:
    """Return the `json_schema_extra` of the whole path of a file or a folder in an image."""
    return rules(
        rule(
            f"self.matches('^(/{FILE_NAME})+$')",
            f"must be the whole path of a {what} in the image, such as {example}",
        ),
        minLength=2,
        maxLength=253,
    )


def variable_name(*more: dict[str, str]) -> Any:
    """Return the field of an environment variable's name, with more rules of what it may be."""
    return Field(
        description="Name of the variable.",
        json_schema_extra=rules(
            rule(
                "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
                "must be a name of letters, digits and '_' that starts with no digit",
            ),
            *more,
            minLength=1,
            maxLength=64,
        ),
    )
