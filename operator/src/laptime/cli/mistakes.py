"""What went wrong, said so that the person at the terminal can mend it: no traceback."""

from __future__ import annotations

import json
import re
from typing import Any

from laptime.api import KIND, PLURAL, SCENARIO_KIND

INSTALL_HINT = (
    "Install Laptime first: helm upgrade --install laptime charts/laptime "
    "--namespace laptime-system --create-namespace"
)
INSTALL_THE_PROGRAM = "pip install './operator[cli]' (in a checkout of Laptime)"
"""What installs the program with all its libraries, which is published nowhere."""
# .spec.servers[name="a"].prest: field not declared in schema
_UNDECLARED = re.compile(r"((?:[.]\w+(?:\[[^\]]*\])*)+): field not declared in schema")


class Mistake(Exception):
    """Something the user can mend; `str()` of it says what and how."""


class Unreachable(Mistake):
    """The API server did not answer; it may do so a moment later."""


class NotAllowed(Mistake):
    """The API server does not let these credentials do that."""


class NotAccepted(NotAllowed):
    """The API server does not know these credentials, or they are too old."""


class NewerVersion(Mistake):
    """What a newer version of Laptime wrote of a run cannot be read by this one."""

    def __init__(self, name: str) -> None:
        """Name the run."""
        super().__init__(
            f"A newer version of Laptime wrote {name}, and this one cannot read it. Update this "
            f"program:\n  {INSTALL_THE_PROGRAM}"
        )


def explain_refusal(status: int | None, body: str | bytes | None, what: str) -> Mistake:
    """Return the API server's refusal in words.

    `status` is the HTTP status, `body` the `Status` object as JSON (or any text), `what` the thing
    that was tried, such as "apply BenchmarkRun demo".
    """
    answer = _as_status(body)
    message = str(answer.get("message") or f"HTTP {status}").strip()
    if status == 404 and _kind_is_unknown(answer, message):
        return Mistake(f"This cluster does not know the kind {KIND}.\n{INSTALL_HINT}")
    if "field not declared in schema" in message:
        # "failed to create typed patch object (default/demo; …): .spec.x: field not declared …"
        said = _UNDECLARED.sub(lambda found: _with_hint(found, message), message)
        return Mistake(f"Could not {what}: unknown field.\n  {said.rpartition('): ')[2]}")
    if status == 401:
        return NotAccepted(
            f"Could not {what}: the API server does not accept the credentials of this kubeconfig."
        )
    if status == 403:
        return NotAllowed(f"Could not {what}: not allowed.\n  {message}")
    causes = (answer.get("details") or {}).get("causes") or []
    if status == 422 and causes:
        lines = [f"Could not {what}: the API server refused it."]
        for cause in causes:
            field = cause.get("field") or ""
            if field == "<nil>":
                # Only says that more rules are checked once the schema is met.
                continue
            lines.append(f"  {field}: {_shorten(str(cause.get('message', '')), field)}")
        return Mistake("\n".join(dict.fromkeys(lines)))
    return Mistake(f"Could not {what}: the API server refused it.\n  {message}")


def is_outage(status: int | None, body: str | bytes | None) -> bool:
    """Tell whether the API server failed, so that asking again later may help."""
    # What does not fit the schema is answered by 500 too in a server-side apply.
    return status in (429, 500, 502, 503, 504) and b"failed to create typed patch object" not in (
        body.encode() if isinstance(body, str) else body or b""
    )


def is_missing(body: str | bytes | None, name: str) -> bool:
    """Tell whether a 404 means that the run of this name is missing, and not its kind."""
    details = _as_status(body).get("details") or {}
    return details.get("kind") == PLURAL and details.get("name") == name


def _with_hint(found: re.Match[str], message: str) -> str:
    from laptime.cli.generate import catalogue_crd, catalogue_scenario_crd
    from laptime.cli.schema_rules import meant_by

    crds = {KIND: catalogue_crd, SCENARIO_KIND: catalogue_scenario_crd}
    build = next((one for kind, one in crds.items() if f"Kind={kind})" in message), None)
    if build is None:
        return found[0]
    crd = build()
    right = meant_by(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], found[1])
    return found[0] if right is None else f"{found[0]}: did you mean {right}?"


def _as_status(body: str | bytes | None) -> dict[str, Any]:
    if not body:
        return {}
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    try:
        answer = json.loads(text)
    except ValueError:
        return {"message": text.strip()[:500]}
    return answer if isinstance(answer, dict) else {"message": text.strip()[:500]}


def _kind_is_unknown(answer: dict[str, Any], message: str) -> bool:
    # A path under a group that no CRD serves is answered by a bare "404 page not found"; an object
    # that is missing has its kind in the details.
    details = answer.get("details") or {}
    return "page not found" in message or (
        details.get("kind") in (None, "", PLURAL) and not details.get("name")
    )


def _shorten(message: str, field: str) -> str:
    # "Invalid value: "object": write either preset or image": the part that the schema wrote for
    # people stands last, and the value is in the user's file anyway.
    prefix = 'Invalid value: "'
    if message.startswith(prefix):
        _, separator, rest = message[len(prefix) :].partition('": ')
        if separator and rest:
            message = rest
    return message.removeprefix(f"{field} ").strip()
