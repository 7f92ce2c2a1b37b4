"""What was expected of an answer and what came, side by side in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from laptime.api.answers import CheckedAnswer
from laptime.api.text import without_passwords
from laptime.catalog import Answers, Check, plain_text
from laptime.verification.judge import Heard, Judge
from laptime.verification.mask import Mask
from laptime.verification.verdict import Verdict

_LONGEST = 1000


def shown(check: Check, judge: Judge, verdict: Verdict | None) -> CheckedAnswer:
    """Return a check that was judged just now; the verdict is None where all was right.

    What the judge hides, such as a token that was captured, is not shown: its name is.
    """
    heard = judge.heard

    def hidden(text: str) -> str:
        text = without_passwords(judge.mask.text(text))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

    return CheckedAnswer(
        check=check.name,
        request=hidden(judge.asked or f"{check.method} {check.path}"),
        expected=hidden(expectation(check)),
        answered="no answer" if heard is None else hidden(_answer(heard, judge.mask)),
        right=verdict is None,
        said="" if verdict is None else hidden(f"{verdict.reason}: {verdict.message}"),
    )


def expectation(check: Check) -> str:
    """Return what a right answer to a check is, a line for each thing."""
    first = f"{check.expect_status} {check.content_type or ''}".strip()
    lines = [first, *(f"{name}: {value}" for name, value in check.expect_headers.items())]
    if check.expected is not None:
        lines.append(_json(check.expected))
    if check.expected_part is not None:
        lines.append(f"in it: {_json(check.expected_part)}")
    if check.json_schema is not None:
        lines.append(f"meets: {_schema(check.json_schema)}")
    if check.same_as_upstream:
        lines.append("what the upstream answers")
    if check.min_seconds:
        lines.append(f"not before {check.min_seconds:g} s")
    lines += [f"has {{{{{one.name}}}}}" for one in check.captures]
    if check.times > 1:
        same = check.answers is Answers.SAME
        lines.append(f"{'the same' if same else 'not always the same'} {check.times} times")
    lines += [f"then {one.query}: {_json(one.rows)}" for one in check.afterwards]
    return "\n".join(lines)


def _answer(heard: Heard, mask: Mask) -> str:
    kind = heard.headers.get("content-type", "").partition(";")[0].strip()
    body = mask.body(heard.body)
    return f"{heard.status} {kind}".strip() + (f"\n{body}" if body else "")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _schema(schema: Mapping[str, Any]) -> str:
    """Return a schema in short: the type, and what an object must have."""
    kind = schema.get("type", "the jsonSchema")
    required = schema.get("required")
    words = kind if isinstance(kind, str) else " or ".join(map(plain_text, kind))
    if isinstance(required, list) and required:
        return f"{words} with {', '.join(map(str, required))}"
    return words
