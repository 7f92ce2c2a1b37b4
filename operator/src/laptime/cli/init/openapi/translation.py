"""An OpenAPI 3 document as a BenchmarkScenario and a BenchmarkRun, and what of it is left out.

Nothing is left out without a word. What one operation needs of another's answer is captured, so
that the requests hold on whatever rows a server has: examples of documents are mostly made up.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any, TypeGuard

from laptime.api import API_VERSION, KIND, SCENARIO_KIND
from laptime.api.scenario import MAX_REQUESTS
from laptime.api.sessions import MAX_SESSIONS, MAX_STEPS
from laptime.cli.init.fitting import fit_into
from laptime.cli.init.names import request_name, words_of
from laptime.cli.init.openapi.document import (
    Operation,
    base_path,
    operations_of,
)
from laptime.cli.init.openapi.node import CannotMake, Node, root_of
from laptime.cli.init.openapi.requests import FIRST_NUMBER, LAST_NUMBER, NUMBER, Made, Requests
from laptime.cli.init.openapi.sources import Login, all_rows, login_of
from laptime.cli.init.translation import PLACEHOLDER, Document, Translation
from laptime.cli.mistakes import Mistake

_ENDING = {"logout", "signout"}
_HEALTH = {"health", "healthz", "healthcheck", "ready", "readyz", "ping", "live", "livez"}


def is_openapi(document: Any) -> TypeGuard[Document]:
    """Return whether a document is one of OpenAPI, of whatever version."""
    return isinstance(document, dict) and ("openapi" in document or "swagger" in document)


def translated(document: Document, file: Path | None = None) -> Translation:
    """Return a document as a scenario and a run; `file` is where it was read from.

    Raises:
        Mistake: it is of another version, or nothing of it can be asked for.
    """
    version = str(document.get("openapi", ""))
    if not version.startswith("3."):
        said = version or f"swagger {document.get('swagger')}"
        raise Mistake(
            f"the document is of version {said}: convert it to OpenAPI 3 first (swagger2openapi)"
        )
    try:
        return _translated(root_of(document, file))
    except CannotMake as error:
        raise Mistake(f"the document cannot be read: {error}") from error


def _translated(root: Node) -> Translation:
    into = Translation()
    operations = operations_of(root, into.left_out)
    login = login_of(root, operations)
    requests = Requests(root, operations, login)
    collections = {rows.collection for rows in all_rows(operations)}
    ranked = sorted(operations, key=lambda one: _rank(one, collections, login))
    made = [found for one in ranked if (found := requests.made(one)) is not None]
    into.left_out += requests.left_out
    ordered = _ordered(made)
    for one in ordered[MAX_REQUESTS:]:
        into.left_out.append(
            f"{one.operation.title}: a scenario has at most {MAX_REQUESTS} requests: make another "
            "one for the rest"
        )
    ordered = ordered[:MAX_REQUESTS]
    if not ordered:
        raise Mistake(
            "no operation of the document can be made into a request:\n"
            + "\n".join(f"  {one}" for one in into.left_out)
        )
    _write(into, root, ordered, requests, login)
    return into


def _rank(operation: Operation, collections: Set[str], login: Login | None) -> int:
    """Return when an operation is asked: what makes rows first, what takes them away last."""
    words = {word for part in operation.path.split("/") for word in words_of(part)}
    if words & _ENDING:
        return 9
    if login is not None and operation in (login.registration, login.operation):
        return 0
    if operation.method == "POST":
        return 1 if operation.path in collections else 4
    if operation.method == "DELETE":
        # What stands in something else goes before it.
        return 8 if operation.path.count("{") == 1 else 7
    return {"GET": 2, "PUT": 3, "PATCH": 3}[operation.method]


def _ordered(made: Sequence[Made]) -> list[Made]:
    """Return requests so that each comes after those that it needs, else as they were."""
    by_title = {one.operation.title: one for one in made}
    placed: dict[str, Made] = {}

    def place(one: Made) -> None:
        if one.operation.title not in placed:
            for needed in one.needs:
                place(by_title[needed.title])
            placed[one.operation.title] = one

    for one in made:
        place(one)
    return list(placed.values())


def _write(
    into: Translation,
    root: Node,
    ordered: Sequence[Made],
    requests: Requests,
    login: Login | None,
) -> None:
    into.health_path = _health_path(ordered)
    ordered = _without_health(ordered, into)
    info = root["info"]
    title = info.text("title") or "An API"
    name = request_name(title, ())[:35].rstrip("-")
    spec: Document = {"title": " ".join(title.split())[:120]}
    feeders: list[Document] = [
        {"name": feeder, "values": [PLACEHOLDER]} for feeder in requests.wanted
    ]
    sent = [one.request() for one in ordered]
    for made in ordered:
        # One that was wanted for a request that could not be made.
        made.captures = [one for one in made.captures if _is_named(str(one["name"]), sent)]
    sent, checks = [one.request() for one in ordered], [one.check() for one in ordered]
    numbered = _is_named(NUMBER, sent)
    if numbered:
        numbers = {"first": FIRST_NUMBER, "last": LAST_NUMBER}
        feeders.append({"name": NUMBER, "range": numbers, "use": "random"})
    if feeders:
        spec["feeders"] = feeders
    spec["requests"] = sent
    if sessions := _sessions(ordered, into):
        spec["sessions"] = sessions
    spec["checks"] = checks
    fit_into(spec, into.left_out)
    into.scenario = _resource(SCENARIO_KIND, name, spec)
    into.run = _resource(
        KIND,
        name,
        {
            "scenario": name,
            "servers": [],
            "loads": [{"name": "closed", "closed": {"connections": 10, "duration": "10s"}}],
            "repetitions": 5,
        },
    )
    into.notes += [
        f"{one.operation.name}: {'; '.join(dict.fromkeys(one.notes))}"
        for one in ordered
        if one.notes
    ]
    prefix = base_path(root)
    if prefix:
        into.notes.append(f"{prefix} before each path is from servers of the document")
    _needed(into, requests, login, numbered)


def _is_named(name: str, sent: Sequence[Document]) -> bool:
    """Whether a template in a request has a name."""
    return any(f"{{{{{name}{after}" in str(one) for one in sent for after in ("}}", "|"))


def _needed(into: Translation, requests: Requests, login: Login | None, numbered: bool) -> None:
    """Say what is still to be written."""
    for feeder, users in requests.wanted.items():
        into.to_write.append(
            f"spec.feeders {feeder}: what the server takes, instead of {PLACEHOLDER}; "
            f"{_some(users)} need{'s' if len(users) == 1 else ''} it, and no operation answers "
            "with it. For a Service: take the header out, and name a Secret in its credentials"
        )
    if login is not None and login.registration is None:
        into.to_write.append(
            f"requests and checks, {login.operation.name}: name and password of a user that the "
            "server knows; no operation registers one"
        )
    if numbered:
        into.notes.append(
            f"{{{{{NUMBER}}}}} is drawn anew each time, where there may be one of a kind only: of "
            "10 million some 50 come twice. Checks take the first, and meet it again where "
            "nobody takes it back: data.postgres.reset does, for a database of the run; a Service "
            f"keeps it: write another first for the feeder {NUMBER} there"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def _resource(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _sessions(ordered: Sequence[Made], into: Translation) -> list[Document]:
    """Return sessions of what belongs together: a resource with all that its requests need."""
    by_title = {one.operation.title: one for one in ordered}
    needed = {title.title for one in ordered for title in one.needs}
    groups: dict[str, list[Made]] = {}
    for one in ordered:
        if one.needs:
            groups.setdefault(_resource_of(one.operation), []).append(one)
    names = {one.operation.name for one in ordered}
    sessions: list[Document] = []
    for group, members in groups.items():
        # One that others need comes with them.
        last = [one for one in members if one.operation.title not in needed] or members
        for steps in _split(last, ordered, by_title, into):
            name = request_name(group, names)
            names.add(name)
            sessions.append({"name": name, "steps": steps})
    for session in sessions[MAX_SESSIONS:]:
        into.left_out.append(
            f"the session {session['name']} ({', '.join(session['steps'])}): a scenario has at "
            f"most {MAX_SESSIONS}"
        )
    return sessions[:MAX_SESSIONS]


def _split(
    members: Sequence[Made],
    ordered: Sequence[Made],
    by_title: dict[str, Made],
    into: Translation,
) -> list[list[str]]:
    """Return the steps of as few sessions as hold all members with what they need."""
    found: list[list[str]] = []
    current: set[str] = set()
    for one in members:
        whole = _with_needs(one, by_title)
        if len(whole) > MAX_STEPS:
            into.left_out.append(
                f"{one.operation.title} in a session: it would have {len(whole)} steps, the most "
                f"is {MAX_STEPS}"
            )
            continue
        if len(current | whole) > MAX_STEPS:
            found.append(_in_order(current, ordered))
            current = set()
        current |= whole
    return [*found, _in_order(current, ordered)] if current else found


def _with_needs(one: Made, by_title: dict[str, Made]) -> set[str]:
    found = {one.operation.title}
    for needed in one.needs:
        found |= _with_needs(by_title[needed.title], by_title)
    return found


def _in_order(titles: set[str], ordered: Sequence[Made]) -> list[str]:
    return [one.operation.name for one in ordered if one.operation.title in titles]


def _resource_of(operation: Operation) -> str:
    """Return what an operation is about: its tag, or the first word of its path."""
    tags = operation.node["tags"].value
    if isinstance(tags, list) and tags and isinstance(tags[0], str):
        return tags[0]
    static = [one for one in operation.path.split("/") if one and not one.startswith("{")]
    return next((one for one in static if not _is_version(one)), "session")


def _is_version(segment: str) -> bool:
    return segment == "api" or (segment[:1] == "v" and segment[1:].replace(".", "").isdecimal())


def _health_path(ordered: Sequence[Made]) -> str | None:
    """Return what answers 200 to anybody: an operation for that, or else the first that does."""
    free = [
        one
        for one in ordered
        if one.operation.method == "GET"
        and not (one.needs or one.headers or one.cookies)
        and "{{" not in one.path
        and one.operation.status == 200
    ]
    for one in free:
        if _is_health(one):
            return one.path
    return free[0].path if free else None


def _is_health(one: Made) -> bool:
    """Say whether an operation is there to be asked by probes: /matches/live is not."""
    words = [
        word
        for segment in one.operation.path.split("/")
        if segment and not _is_version(segment)
        for word in words_of(segment)
    ]
    return one.operation.method == "GET" and bool(words) and set(words) <= _HEALTH | {"check"}


def _without_health(ordered: Sequence[Made], into: Translation) -> Sequence[Made]:
    """Return the requests without that by which a server is asked whether it is ready.

    It is no work that anybody compares servers by, and would be a share of each figure. One that
    others need stays.
    """
    needed = {operation.title for one in ordered for operation in one.needs}
    asked = [
        one
        for one in ordered
        if one.path == into.health_path and _is_health(one) and one.operation.title not in needed
    ]
    if len(asked) == len(ordered):
        return ordered
    into.left_out += [
        f"{one.operation.title}: it says whether the server is ready (healthPath), and is no work"
        for one in asked
    ]
    return [one for one in ordered if one not in asked]
