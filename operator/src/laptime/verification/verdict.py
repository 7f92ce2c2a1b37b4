"""What is said of a server's answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

MAX_VERDICT_BYTES = 3 * 1024
"""The kubelet keeps 4 KiB of a termination message."""


@dataclass(frozen=True)
class Verdict:
    """Whether the answers were right, or the first thing that was not."""

    ok: bool
    reason: str
    """CamelCase; `AnswersRight` when ok."""
    message: str
    schema: str | None = None
    """Stands for what is defined in the database: before the first check and, after a comma, after
    the last one where that differs. None: nobody asked, or it is not known."""

    def to_json(self) -> str:
        """Return the verdict as JSON of at most 3 KiB; a long message is cut."""
        message = self.message
        while True:
            said = {**asdict(self), "message": message}
            if self.schema is None:
                del said["schema"]
            text = json.dumps(said, ensure_ascii=False)
            if len(text.encode()) <= MAX_VERDICT_BYTES:
                return text
            message = message[: len(message) * 3 // 4].rstrip("…") + "…"


class Wrong(Exception):
    """Something that is not right; carries the verdict."""

    def __init__(self, reason: str, message: str) -> None:
        self.verdict = Verdict(False, reason, message)
