"""Which header fields and cookies a scenario may name, and what they ask for. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

_SET_BY_US = (
    *("host", "connection", "content-length", "transfer-encoding", "keep-alive", "upgrade"),
    *("expect", "te", "trailer"),
)
_TOKEN = re.compile(r"[-!#$%&*+.^_|~0-9A-Za-z]{1,128}")


def header_problems(place: str, names: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the names of header fields."""
    alike = [name.lower() for name in names]
    for name in dict.fromkeys(one for one in alike if alike.count(one) > 1):
        yield f"{place}: {name} is there twice"
    for name in names:
        if name.lower() in _SET_BY_US:
            yield (
                f"{place}: {name} is a field of the connection, which Laptime sets itself: leave "
                "it out"
            )
        elif name.lower() == "cookie":
            yield f"{place}: write cookies instead of the field {name}"
    yield from name_problems(place, names)


def asks_for_coding(headers: Mapping[str, str]) -> bool:
    """Whether a request asks for an answer that is compressed."""
    return any(
        text.strip().lower() not in ("", "identity")
        for name, text in headers.items()
        if name.lower() == "accept-encoding"
    )


def name_problems(place: str, names: Collection[str]) -> Iterator[str]:
    """Yield which names of header fields or cookies are none."""
    for name in names:
        if not _TOKEN.fullmatch(name):
            yield (f"{place}: {name[:40]!r} is no name: letters, digits and '-', such as x-api-key")
