"""What is wrong with feeders, templates, captures and sessions of a scenario. Pure.

All that the generator would refuse when a trial begins is said here, before anything is deployed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from laptime.api.feeders import NumberRange
from laptime.api.scenario import Exchange, Request
from laptime.catalog.feeding import Column, columns_of
from laptime.catalog.header_names import asks_for_coding
from laptime.catalog.models import Scenario
from laptime.catalog.needs import missing_capture
from laptime.catalog.regexes import pattern_of
from laptime.catalog.templates import (
    Part,
    Place,
    Value,
    check_ends,
    check_path,
    check_templates,
    encoded,
    names_in,
    parts_of,
    rendered,
    templates_of,
)

MAX_FEEDER_BYTES = 700_000
"""Of all tables together: they are in one ConfigMap of the run."""


def work_problems(scenario: Scenario) -> list[str]:
    """Return all that is wrong, one sentence each; nothing for good ones."""
    columns: dict[str, Column] = {}
    said: list[str] = []
    for feeder in scenario.feeders:
        try:
            columns |= columns_of(feeder)
        except ValueError as error:
            said.append(f"feeders.{feeder.name}.csv: {error}")
    said += _sizes(scenario)
    said += _names(scenario)
    if said:
        # What rests on them would be said to be wrong as well.
        return said
    said += _captures(scenario)
    said += [one for request in scenario.requests for one in _templates(request, scenario, columns)]
    if not said:
        said += _sessions(scenario)
    return [*said, *_checks(scenario, columns)]


def _sizes(scenario: Scenario) -> Iterator[str]:
    size = sum(len(text.encode()) for text in scenario.feeder_files.values())
    if size > MAX_FEEDER_BYTES:
        yield (
            f"feeders: their tables have {size} bytes together, the most is {MAX_FEEDER_BYTES}, "
            "since a ConfigMap holds 1 MiB: leave columns out that no template names, or make "
            "values from a range, such as user{{n}}"
        )


def _names(scenario: Scenario) -> Iterator[str]:
    names = [feeder.name for feeder in scenario.feeders]
    for name in _twice(names):
        yield f"feeders: two have the name {name}: give each a name of its own"
    for place, exchange in _exchanges(scenario):
        for name in _twice(one.name for one in exchange.captures):
            yield f"{place}.captures: two have the name {name}: give each a name of its own"
        for one in exchange.captures:
            if one.name in names:
                yield (
                    f"{place}.captures.{one.name}: a feeder has this name too: give one of them "
                    "another"
                )


def _captures(scenario: Scenario) -> Iterator[str]:
    for place, exchange in _exchanges(scenario):
        for one in exchange.captures:
            if one.in_body and asks_for_coding(exchange.headers):
                yield (
                    f"{place}.captures.{one.name}: the request asks for a compressed answer, and "
                    "nobody looks into one under load: leave accept-encoding out, or capture from "
                    "a request without it"
                )
            if one.regex is None:
                continue
            try:
                pattern_of(one.regex)
            except ValueError as error:
                yield f"{place}.captures.{one.name}.regex: {error}"


def _templates(
    request: Request, scenario: Scenario, columns: Mapping[str, Column]
) -> Iterator[str]:
    captured = {one.name for other in scenario.requests for one in other.captures}
    for field, place, template in templates_of(request):
        where = f"requests.{request.name}.{field}"
        try:
            parts = parts_of(template)
            if place is Place.PATH:
                check_path(template)
            elif place is Place.HEADER:
                check_ends(_with(parts))
        except ValueError as error:
            yield f"{where}: {error}"
            continue
        for part in parts:
            if not part.name:
                continue
            if part.name in columns:
                yield from _cells(where, part, parts, place, columns[part.name])
            elif part.name not in captured:
                yield f"{where}: {_unknown(part.name, [*columns, *sorted(captured)])}"


def _with(parts: Sequence[Part], one: Part | None = None, text: str = "") -> str:
    """Return a template with a text for one of its values, and a letter for each other one."""
    return "".join(text if part is one else "x" if part.name else part.text for part in parts)


def _cells(
    where: str, part: Part, parts: Sequence[Part], place: Place, column: Column
) -> Iterator[str]:
    """Yield the first row of a feeder that cannot stand where a template wants it."""
    if isinstance(column.cells, NumberRange):
        return
    for number, cell in enumerate(column.cells, start=1):
        try:
            text = encoded(part, place, cell)
            if place is Place.HEADER:
                what = f"{{{{{part.name}}}}}: with it the field"
                check_ends(_with(parts, part, text), what)
        except ValueError as error:
            yield f"{where}: feeder {column.feeder}, row {number}: {error}"
            return


def _unknown(name: str, known: Sequence[str]) -> str:
    there = ", ".join(f"{{{{{one}}}}}" for one in known[:20])
    return (
        f"{{{{{name}}}}} is neither of a feeder nor captured before: "
        + (f"there is {there}" if there else "write feeders, or captures of an earlier request")
        + "; for the text itself write {{'{{'}}"
    )


def _sessions(scenario: Scenario) -> Iterator[str]:
    requests = {request.name: request for request in scenario.requests}
    feeders = {feeder.name for feeder in scenario.feeders}
    for name in _twice(session.name for session in scenario.sessions):
        yield f"sessions: two have the name {name}: give each a name of its own"
    for session in scenario.sessions:
        place = f"sessions.{session.name}"
        if session.name in requests:
            yield (
                f"{place}: a request has this name too, and loads name both: give one of them "
                "another"
            )
        unknown = [step for step in session.steps if step not in requests]
        if unknown:
            yield f"{place}.steps: there is no request {unknown[0]}; there is {', '.join(requests)}"
            continue
        missing = missing_capture([requests[step] for step in session.steps], feeders)
        if missing is not None:
            step, name = missing
            yield (
                f"{place}.steps: {step} needs {{{{{name}}}}}, which no step before it captures: "
                f"write {_capturing(scenario, name)} before it"
            )
    steps = {step for session in scenario.sessions for step in session.steps}
    for request in scenario.requests:
        if request.name in steps:
            if request.weight != 1:
                yield (
                    f"requests.{request.name}.weight: it is a step of a session: write the weight "
                    "at the session"
                )
            continue
        missing = missing_capture([request], feeders)
        if missing is not None:
            _, name = missing
            yield (
                f"requests.{request.name}: it needs {{{{{name}}}}}, and is no step of a session: "
                f"write a session such as {{name: {request.name}-session, steps: "
                f"[{_capturing(scenario, name)}, {request.name}]}}"
            )


def _capturing(scenario: Scenario, name: str) -> str:
    return next(
        request.name
        for request in scenario.requests
        if any(one.name == name for one in request.captures)
    )


def _checks(scenario: Scenario, columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield what is wrong with the templates of checks, which are asked one after the other."""
    values: dict[str, Value] = {name: column.first for name, column in columns.items()}
    captured: dict[str, None] = {}
    for check in scenario.checks:
        place = f"checks.{check.name}"
        own = dict.fromkeys(one.name for one in check.captures)
        for field, where, template in check_templates(check):
            # What must hold afterwards may be about what the answer has made.
            kept = captured | own if field == "afterwards" else captured
            try:
                names = names_in(template)
                unknown = [one for one in names if one not in values and one not in kept]
                if unknown and unknown[0] in own:
                    yield (
                        f"{place}.{field}: {{{{{unknown[0]}}}}} is captured by this very check, "
                        "when its answer is there: leave it out (expectedPart tells a part of an "
                        "answer), or ask for it in afterwards or in the next check"
                    )
                elif unknown:
                    yield f"{place}.{field}: {_unknown(unknown[0], [*values, *kept])}"
                else:
                    if where is Place.PATH:
                        check_path(template)
                    elif where is Place.HEADER:
                        check_ends(_with(parts_of(template)))
                    if where is not None and not set(names) & set(kept):
                        rendered(template, where, values)
            except ValueError as error:
                yield f"{place}.{field}: {error}"
        captured |= own


def _exchanges(scenario: Scenario) -> Iterator[tuple[str, Exchange]]:
    for request in scenario.requests:
        yield f"requests.{request.name}", request
    for check in scenario.checks:
        yield f"checks.{check.name}", check


def _twice(names: Iterable[str]) -> list[str]:
    every = list(names)
    return sorted({name for name in every if every.count(name) > 1})
