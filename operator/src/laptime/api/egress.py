"""Where the pods of a run may connect to, beside each other and the cluster's DNS."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from laptime.api.base import Model, rule, rules

_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_BLOCK = f"{_BYTE}([.]{_BYTE}){{3}}/(3[0-2]|[12]?[0-9])"
_GROUP = "[0-9a-fA-F]{1,4}"
# Eight groups, or fewer around one `::`.
_GROUPS = "|".join(
    [
        f"({_GROUP}:){{7}}{_GROUP}",
        f"({_GROUP}:){{1,7}}:",
        *(f"({_GROUP}:){{1,{n}}}(:{_GROUP}){{1,{7 - n}}}" for n in range(1, 7)),
        f":(:{_GROUP}){{1,7}}",
        "::",
    ]
)
_RANGE = f"^({_BLOCK}|({_GROUPS})/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$"
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
        description="A range of addresses, of IPv4 or IPv6; of Services those of their pods.",
        json_schema_extra=rules(
            rule(
                f"self.matches('{_RANGE}')",
                "must be a range of addresses such as 203.0.113.7/32, 10.0.0.0/8 or 2001:db8::/32",
            ),
            rule(
                "!self.matches('^::[fF]{4}:')",
                "write a range of IPv4 addresses as 10.0.0.0/8, and not as one of IPv6",
            ),
            minLength=4,
            maxLength=43,
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
