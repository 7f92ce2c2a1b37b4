"""Where the pods of a run may connect to, beside each other and the cluster's DNS."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules

_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_BLOCK = f"^{_BYTE}([.]{_BYTE}){{3}}/(3[0-2]|[12]?[0-9])$"
_NAMESPACE = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class Destination(Model):
    """A range of addresses or a namespace that the pods of a run may connect to."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.cidr) != has(self.namespace)",
                "write either cidr (a range of addresses) or namespace (all its pods), exactly one "
                "of the two",
            )
        )
    )
    cidr: str | None = Field(
        None,
        description="A range of IPv4 addresses; of Services those of their pods.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_BLOCK}')",
                "must be a range of IPv4 addresses such as 203.0.113.7/32 or 10.0.0.0/8",
            ),
            minLength=9,
            maxLength=18,
        ),
    )
    namespace: str | None = Field(
        None,
        description="A namespace: all its pods.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_NAMESPACE}')", "must be the name of a namespace, such as payments"
            ),
            minLength=1,
            maxLength=63,
        ),
    )
    ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(
        default_factory=list, description="TCP ports; all if left out.", max_length=16
    )
