"""What `laptime profile` writes to its log: the folded stacks of a server, or why it has none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from laptime.api.text import plain_lines, shown

OUTPUT_PREFIX = "LAPTIME-PROFILE "
_QUOTED = 300


@dataclass(frozen=True)
class ProfileProblem:
    """Why there is no profile: a CamelCase reason and a message for people."""

    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


def profile_output(taken: str | ProfileProblem) -> str:
    """Return the line that says what was taken."""
    document = (
        {"folded": taken}
        if isinstance(taken, str)
        else {"reason": taken.reason, "message": taken.message}
    )
    return OUTPUT_PREFIX + json.dumps(document)


def parse_profile_output(log_text: str) -> str | ProfileProblem:
    """Return the folded stacks that such a line in a log has, or why there are none."""
    for line in log_text.split("\n"):
        if not line.startswith(OUTPUT_PREFIX):
            continue
        try:
            document: Any = json.loads(line.removeprefix(OUTPUT_PREFIX))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            return ProfileProblem("ProfileGarbled", "what was printed of it is cut off")
        if isinstance(document.get("folded"), str):
            return str(document["folded"])
        return ProfileProblem(
            shown(str(document.get("reason"))), plain_lines(str(document.get("message")))
        )
    last = shown(log_text.strip().rsplit("\n", 1)[-1], _QUOTED) or "nothing"
    return ProfileProblem("ProfileMissing", f"the container that asks for it said: {last}")
