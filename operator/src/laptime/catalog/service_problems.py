"""What is wrong with the services of a scenario, and with what names them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from laptime.api.side_services import SideService, SideVariable
from laptime.catalog.header_names import header_problems
from laptime.catalog.templates import check_ends

_REFERENCE = re.compile(r"[$][(]((?:SERVICE|DATABASE)_[^)]*|[A-Z_]+)[)]")


def service_problems(services: Sequence[SideService]) -> list[str]:
    """Return all that is wrong, one sentence each; nothing for good ones."""
    return [said for one in services for said in _about(one, services)]


def reference_problems(
    place: str,
    text: str,
    services: Sequence[SideService],
    told: Mapping[str, str | None] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield what a text names of services that there is not, with what there is.

    `told` is what else a server may name: None, or why there is no such one.
    """
    known = [name for one in services for name in one.variables]
    passwords = {one.variable("PASSWORD"): one.name for one in services}
    for name in dict.fromkeys(_REFERENCE.findall(text)):
        if name in known or told.get(name, "") is None:
            continue
        if not name.startswith("SERVICE_"):
            yield from _of_the_contract(place, name, told)
            continue
        if name in passwords:
            yield (
                f"{place}: service {passwords[name]} has no password: write password: true there, "
                f"or leave $({name}) out"
            )
            continue
        there = ", ".join(f"$({one})" for one in known)
        yield (
            f"{place}: there is no $({name[:40]}): "
            + (f"there is {there}" if known else "the scenario has no services")
        )


def _of_the_contract(place: str, name: str, told: Mapping[str, str | None]) -> Iterator[str]:
    if name in told:
        why = told[name]
    elif told and name.startswith("DATABASE_"):
        why = f"there is {', '.join(f'$({one})' for one, no in told.items() if no is None)}"
    else:
        return
    if why is not None:
        yield f"{place}: there is no $({name[:40]}): {why}"


def _about(one: SideService, services: Sequence[SideService]) -> Iterator[str]:
    place = f"services.{one.name}"
    yield from _words(place, [*one.command, *one.args], services)
    yield from _variables(place, one.env, services)
    job = one.reset.job if one.reset is not None else None
    if job is not None:
        yield from _words(f"{place}.reset.job", [*job.command, *job.args], services)
        yield from _variables(f"{place}.reset.job", job.env, services)
    request = one.reset.request if one.reset is not None else None
    if request is not None:
        yield from header_problems(f"{place}.reset.request.headers", request.headers)
        for name, text in request.headers.items():
            try:
                check_ends(text)
            except ValueError as error:
                yield f"{place}.reset.request.headers.{name}: {error}"
        if request.method == "GET" and request.body is not None:
            yield (
                f"{place}.reset.request: a GET has no body: write method POST, or leave body out"
            )


def _words(place: str, words: Iterable[str], services: Sequence[SideService]) -> Iterator[str]:
    for word in words:
        yield from reference_problems(f"{place}: {word[:40]!r}", word, services)


def _variables(
    place: str, env: Iterable[SideVariable], services: Sequence[SideService]
) -> Iterator[str]:
    for one in env:
        yield from reference_problems(f"{place}.env.{one.name}", one.value, services)
