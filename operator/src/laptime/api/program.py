"""How an image of somebody's own is run: its words, its user, and the folders that it writes to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from laptime.api.base import rule, rules

_Word = Annotated[str, Field(max_length=2048)]
Words = Annotated[list[_Word], Field(max_length=64)]
"""Of a command, or its arguments."""

UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""Of a user and its group; not root."""

_Folder = Annotated[
    str,
    Field(
        json_schema_extra=rules(
            rule(
                "self.matches('^(/[-_.A-Za-z0-9]+)+$') && !self.matches('/[.][.]?(/|$)') && "
                "self != '/tmp'",
                "must be a folder such as /data or /var/lib/mysql; /tmp can be written to anyway",
            ),
            rule(
                "!self.matches('^/(proc|sys|dev)(/|$)')",
                "must be none of /proc, /sys and /dev, which are the kernel's, nor a folder in "
                "them",
            ),
            maxLength=255,
        )
    ),
]
Folders = Annotated[
    list[_Folder], Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"})
]
"""That can be written to."""
