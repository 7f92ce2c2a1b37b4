"""A recording of a browser (HAR 1.2) as a BenchmarkScenario and a BenchmarkRun.

One user's way through a server becomes a session; what an answer gave him is captured from it.
Secrets of the recording are not in what is made: those that no answer has are feeders to fill.
https://w3c.github.io/web-performance/specs/HAR/Overview.html
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from laptime.api import API_VERSION, KIND, SCENARIO_KIND
from laptime.api.scenario import MAX_REQUESTS
from laptime.api.sessions import MAX_CAPTURES, MAX_SESSIONS, MAX_STEPS
from laptime.cli.init.fitting import fit_into
from laptime.cli.init.har.entries import Entry, left_out_reason, recorded_entries, schema_of_answer
from laptime.cli.init.har.values import Filling
from laptime.cli.init.names import request_name
from laptime.cli.init.translation import PLACEHOLDER, Document, Translation
from laptime.cli.mistakes import Mistake


def is_recording(document: Any) -> TypeGuard[Document]:
    """Return whether a document is a HAR file."""
    log = document.get("log") if isinstance(document, dict) else None
    return isinstance(log, dict) and isinstance(log.get("entries"), list)


def translated(
    document: Document, host: str | None = None, *, keep_secrets: bool = False
) -> Translation:
    """Return a recording as a scenario and a run.

    `host` is whose requests are meant; None: the one that was asked most often.

    Raises:
        Mistake: there is no such host, or nothing that can be asked again.
    """
    into = Translation()
    entries = recorded_entries(document["log"], into.left_out)
    target = _target(entries, host, into)
    asked = _that_can_be_asked([one for one in entries if one.host == target], into)
    if not asked:
        raise Mistake(
            f"nothing that was asked of {target} can be asked again:\n"
            + "\n".join(f"  {one}" for one in into.left_out)
        )
    filling = Filling(keep_secrets=keep_secrets)
    steps: list[Document] = []
    known: dict[str, Document] = {}
    answers: dict[str, Entry] = {}
    for entry in asked:
        request = filling.request(entry)
        key = json.dumps(request, sort_keys=True)
        if key not in known:
            if len(known) == MAX_REQUESTS:
                into.left_out.append(
                    f"{entry.title}: a scenario has at most {MAX_REQUESTS} requests"
                )
                continue
            taken = [str(one["name"]) for one in known.values()]
            wanted = f"{entry.method} {request['path'].partition('?')[0]}"
            known[key] = {"name": request_name(wanted, taken), **request}
        filling.answered(entry, known[key])
        steps.append(known[key])
        answers[known[key]["name"]] = entry
    _write(into, target, steps, list(known.values()), filling, answers)
    for said in (into.notes, into.left_out, into.to_write):
        said[:] = map(filling.hidden, said)
    return into


def _target(entries: Sequence[Entry], host: str | None, into: Translation) -> str:
    hosts = Counter(one.host for one in entries)
    if not hosts:
        raise Mistake("the recording has no requests")
    if host is not None and host not in hosts:
        raise Mistake(f"nothing was asked of {host}; there is {', '.join(sorted(hosts))}")
    target = host or hosts.most_common(1)[0][0]
    for name, count in hosts.most_common():
        if name != target:
            into.left_out.append(
                f"{name}: {count} request{'s' if count > 1 else ''} to another host; a run has one "
                "kind of server (--host chooses it)"
            )
    return target


def _that_can_be_asked(entries: Sequence[Entry], into: Translation) -> list[Entry]:
    """Return the entries that are requests of a scenario; the others are said, kind by kind."""
    found, reasons = [], dict[str, list[str]]()
    for entry in entries:
        reason = left_out_reason(entry)
        if reason is None:
            found.append(entry)
        else:
            reasons.setdefault(reason, []).append(entry.title)
    for reason, titles in reasons.items():
        more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
        into.left_out.append(f"{', '.join(titles[:3])}{more}: {reason}")
    return found


def _write(
    into: Translation,
    target: str,
    steps: Sequence[Document],
    requests: Sequence[Document],
    filling: Filling,
    answers: Mapping[str, Entry],
) -> None:
    name = request_name(target.replace(":", "-"), ())[:35].rstrip("-")
    filling.drop_unused(requests)
    sessions = _sessions(steps)
    for one in sessions[MAX_SESSIONS:]:
        into.left_out.append(f"steps {', '.join(one['steps'])}: at most {MAX_SESSIONS} sessions")
    spec: Document = {"title": f"As recorded of {target}"[:120]}
    if feeders := filling.feeders():
        spec["feeders"] = feeders
    spec["requests"] = list(requests)
    spec["sessions"] = sessions[:MAX_SESSIONS]
    spec["checks"] = [_check(request, answers[str(request["name"])]) for request in requests]
    fit_into(spec, into.left_out)
    into.scenario = _resource(SCENARIO_KIND, name, spec)
    loads = [{"name": "closed", "closed": {"connections": 10, "duration": "10s"}}]
    run = {"scenario": name, "servers": [], "loads": loads, "repetitions": 5}
    into.run = _resource(KIND, name, run)
    free = (
        one["path"]
        for one in requests
        if not one.get("method") and "expectStatus" not in one and "{{" not in json.dumps(one)
    )
    into.health_path = next(free, None)
    into.notes += filling.notes
    into.to_write += [
        f"spec.feeders {name}: {what}, instead of {PLACEHOLDER} (--with-secrets writes it out)"
        for name, what in filling.wanted.items()
    ]
    into.to_write += filling.unsure
    into.to_write.append(
        "whether the addresses and the bodies may be seen by whoever may read the scenario: what "
        "was typed into forms stands in them, but for what is called as passwords and keys are"
    )


def _check(request: Document, entry: Entry) -> Document:
    """Return the check of a request: an answer as the recorded one, of whatever values."""
    check = dict(request)
    bodiless = entry.answer_is_empty or entry.status in (204, 205, 304)
    if entry.media_type is not None and not bodiless:
        check["contentType"] = entry.media_type
        if entry.answer is not None:
            check["jsonSchema"] = schema_of_answer(entry.answer)
    return {**check, "times": 1}


def _sessions(steps: Sequence[Document]) -> list[Document]:
    """Return the way as sessions of as many steps as one may have.

    Each begins with the requests that answer what its steps need.
    """
    makers = {str(capture["name"]): step for step in reversed(steps) for capture in _captures(step)}
    sessions: list[list[str]] = [[]]
    for step in steps:
        name = str(step["name"])
        have = {key for one in steps if one["name"] in sessions[-1] for key in _names(one)}
        missing = _before(step, makers, have)
        if len(sessions[-1]) + len(missing) + 1 > MAX_STEPS:
            sessions.append([])
            missing = _before(step, makers, set())
        sessions[-1] += [*missing, name]
    names = ["recorded", *(f"recorded-{number}" for number in range(2, len(sessions) + 1))]
    return [{"name": name, "steps": one} for name, one in zip(names, sessions, strict=True)]


def _before(step: Document, makers: dict[str, Document], have: set[str]) -> list[str]:
    """Return the names of the requests that must come before a step, in their order."""
    found: list[str] = []
    text = json.dumps({**step, "captures": []})
    for name, maker in makers.items():
        if f"{{{{{name}" in text and name not in have and maker is not step:
            found += [*_before(maker, makers, have), str(maker["name"])]
    return list(dict.fromkeys(found))


def _names(request: Document) -> list[str]:
    return [str(one["name"]) for one in _captures(request)]


def _captures(request: Document) -> list[Document]:
    found: list[Document] = request.get("captures", [])[:MAX_CAPTURES]
    return found


def _resource(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
