"""Sends the requests of a contract in their order and judges the answers."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from referencing.exceptions import Unresolvable

from laptime.catalog import (
    ID_PLACEHOLDER,
    Afterwards,
    Answers,
    Capture,
    Check,
    Value,
    filled,
    filled_afterwards,
)
from laptime.verification.captures import MAX_BODY_BYTES, captured
from laptime.verification.compare import first_difference, first_violation, parse_strict, quoted
from laptime.verification.mask import Mask
from laptime.verification.verdict import Wrong

if TYPE_CHECKING:
    from laptime.verification.statement_counter import Witness

_MAX_ANSWER_BYTES = 8 * 1024 * 1024
# Postgres counts a statement when its portal is closed. A server that ends its transaction after
# the answer, such as one with a session for each request, is counted a little later.
_COUNTED_SECONDS = 1.0
_COUNT_AGAIN_SECONDS = 0.02
# A pattern or references of a schema may take for ever on an answer.
_SCHEMA_SECONDS = 60.0
# It goes into paths, bodies and queries: what ends none of them.
_ID = re.compile(r"[-_0-9A-Za-z]{1,128}")


@dataclass(frozen=True)
class Answer:
    """What a server has answered, and was right."""

    headers: httpx.Headers
    body: bytes
    json: Any = None
    """None where nothing is compared."""


@dataclass(frozen=True)
class Heard:
    """What a server has answered, right or wrong."""

    status: int
    headers: httpx.Headers
    body: bytes


class Judge:
    """One conversation with a server: what it said before matters for what is right now."""

    def __init__(
        self,
        client: httpx.Client,
        upstream_url: str | None = None,
        counter: Witness | None = None,
        values: Mapping[str, Value] | None = None,
        mask: Mask | None = None,
        bodies: Collection[str] = (),
    ) -> None:
        """`values` stand for those of feeders, by their names in templates.

        What is captured is hidden by `mask`. Answers to the checks named in `bodies` have a body.
        """
        self._bodies = frozenset(bodies)
        self._client = client
        self._upstream_url = upstream_url
        self._counter = counter
        self._values: dict[str, Value] = dict(values or {})
        self.asked: str | None = None
        """Method and path of the last check; None: it could not be asked."""
        self.heard: Heard | None = None
        """The last answer to it; None: there was none."""
        self.mask = Mask() if mask is None else mask
        """Hides what was captured so far."""

    def judge(self, check: Check) -> None:
        """Ask as often as the check says.

        Raises:
            Wrong: with the first thing that is not right.
        """
        try:
            self._judge(check)
        except RecursionError:
            # What JSON's reader still takes may be too deep for whatever looks into it.
            raise Wrong("NotJson", f"{self.asked}: nested too deeply") from None

    def _judge(self, check: Check) -> None:
        self.asked = self.heard = None
        try:
            check = filled(check, self._values)
        except ValueError as error:
            # The scenario was checked: only what an answer had in it can be wrong.
            raise Wrong("CaptureMissing", f"{check.method} {check.path}: {error}") from None
        what = self.asked = f"{check.method} {check.path}"
        if check.same_as_upstream:
            check = check.model_copy(update={"expected": self._upstream_answer(what)})
        before = self._counter.total() if self._counter else 0
        answers = [self._right_answer(check, what)]
        for _ in range(check.times - 1):
            answers.append(self._right_answer(check, f"{what}, asked again"))
        differences = [
            first_difference(answers[0].json, other.json, quote=self.mask.quoted)
            for other in answers[1:]
        ]
        if check.answers is Answers.DIFFERENT:
            if not any(differences):
                raise Wrong(
                    "AnswerNeverChanges",
                    f"{what} answered the same {check.times} times, expected a random choice",
                )
        # Only where the whole answer is not compared anyway can another one differ.
        elif difference := next(filter(None, differences), None):
            raise Wrong(
                "AnswerNotStable", f"{what} answered differently when asked again: {difference}"
            )
        if self._counter is not None and check.statements is not None:
            each = _statements(self._counter, before, check.statements * check.times) / check.times
            if each < check.statements:
                raise Wrong(
                    "StatementMissing",
                    f"{what}: statements for each request: expected {check.statements:g}, the "
                    f"database saw {each:g}",
                )
        if check.keeps_id:
            self._values[ID_PLACEHOLDER] = self._id_of(answers[-1].json, what)
        for capture in check.captures:
            self._values[capture.name] = self._kept(capture, answers[-1], what)
        for one in check.afterwards:
            self._holds(one, what)

    def _holds(self, afterwards: Afterwards, what: str) -> None:
        if self._counter is None:
            return
        try:
            afterwards = filled_afterwards(afterwards, self._values)
        except ValueError as error:
            raise Wrong("CaptureMissing", f"{what}: afterwards: {error}") from None
        rows = self._counter.rows(afterwards.query)
        difference = first_difference(afterwards.rows, rows, "rows", quote=self.mask.quoted)
        if difference is not None:
            raise Wrong(
                "WrongRows",
                f"{what}: afterwards {self.mask.quoted(afterwards.query)} answers: {difference}",
            )

    def _upstream_answer(self, what: str) -> Any:
        if self._upstream_url is None:
            raise Wrong("NoUpstream", f"{what}: the run has no upstream to compare the answer with")
        upstream = Check(name="upstream", path=self._upstream_url)
        response, body = self._request(upstream, f"the upstream {self._upstream_url}", whole=True)
        if response.status_code != upstream.expect_status:
            raise Wrong("NoUpstream", f"the upstream answers {response.status_code}")
        return self._json(body, f"the upstream {self._upstream_url}")

    def _right_answer(self, check: Check, what: str) -> Answer:
        began = time.monotonic()
        self.heard = None
        response, body = self._request(check, what, whole=_looks_into(check))
        self.heard = Heard(response.status_code, response.headers, body)
        seconds = time.monotonic() - began
        for capture in check.captures:
            # Also of an answer that is wrong, and of each one where there are several.
            if (value := captured(capture, response.headers, body)) is not None:
                self.mask.hide_captured(capture.name, value)
        if response.status_code != check.expect_status:
            raise Wrong(
                "WrongStatus",
                f"{what}: expected status {check.expect_status}, got {response.status_code}"
                f"{self._excerpt(body)}",
            )
        if check.content_type is not None:
            got = response.headers.get("content-type", "")
            if got.partition(";")[0].strip().lower() != check.content_type.lower():
                raise Wrong(
                    "WrongContentType",
                    f"{what}: expected content type {check.content_type}, got "
                    f"{self.mask.quoted(got)}",
                )
        for name, value in check.expect_headers.items():
            if (got := response.headers.get(name)) != value:
                raise Wrong(
                    "WrongHeader",
                    f"{what}: header {name}: expected {self.mask.quoted(value)}, got "
                    f"{'none' if got is None else self.mask.quoted(got)}",
                )
        if seconds < check.min_seconds:
            raise Wrong(
                "AnsweredTooSoon",
                f"{what}: expected an answer after {check.min_seconds:g}s, got it after "
                f"{seconds:.2f}s",
            )
        if not check.compares_body:
            if check.name in self._bodies and not body:
                # Under load no answer to this request is right without one.
                raise Wrong(
                    "WrongAnswer",
                    f"{what}: the body is empty, and the check has contentType: where a right "
                    "answer may be empty, leave it out",
                )
            return Answer(response.headers, body)
        answer = self._json(body, what)
        difference = None
        if check.expected is not None:
            difference = first_difference(check.expected, answer, quote=self.mask.quoted)
        if difference is None and check.expected_part is not None:
            difference = first_difference(
                check.expected_part, answer, partly=True, quote=self.mask.quoted
            )
        if difference is None and check.json_schema is not None:
            difference = self._violation(check.json_schema, answer, what)
        if difference is not None:
            raise Wrong("WrongAnswer", f"{what}: {difference}")
        return Answer(response.headers, body, answer)

    def _violation(self, schema: Mapping[str, Any], answer: Any, what: str) -> str | None:
        try:
            with _at_most(_SCHEMA_SECONDS):
                return first_violation(schema, answer, self.mask.quoted)
        except TimeoutError:
            trouble = (
                f"takes more than {_SCHEMA_SECONDS:g}s: write patterns without repetitions within "
                "repetitions, such as (a+)+"
            )
        except OverflowError:
            raise Wrong(
                "WrongAnswer", f"{what}: it has a number that is too large to be compared"
            ) from None
        except RecursionError:
            trouble = "refers to itself without an end, or the answer is nested too deeply for it"
        except Unresolvable as error:
            trouble = f"has no {error.ref[:100]}, to which it refers"
        raise Wrong("SchemaNotCheckable", f"{what}: the jsonSchema of the check {trouble}")

    def _request(self, check: Check, what: str, *, whole: bool) -> tuple[httpx.Response, bytes]:
        """Return an answer and its body; of a larger one the beginning, unless it is `whole`."""
        deadline = time.monotonic() + check.timeout_seconds
        limit = f"{check.timeout_seconds:g}s"
        content = None if check.body is None else check.body.encode()
        body, size = bytearray(), 0
        sent = check.sent_headers
        try:
            with self._client.stream(
                check.method,
                check.path,
                headers=[(name.encode(), text.encode()) for name, text in sent.items()],
                content=content,
                timeout=check.timeout_seconds,
            ) as response:
                for part in response.iter_bytes():
                    size += len(part)
                    if whole and size > _MAX_ANSWER_BYTES:
                        raise Wrong("WrongAnswer", f"{what}: {_too_large()}")
                    body += part[: _MAX_ANSWER_BYTES - len(body)]
                    # httpx only bounds the pause between two parts.
                    if time.monotonic() > deadline:
                        raise Wrong("TimedOut", f"{what}: no whole answer in {limit}")
                return response, bytes(body)
        except httpx.TimeoutException:
            raise Wrong("TimedOut", f"{what}: no answer in {limit}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Wrong("ConnectionLost", f"{what}: {said(error)}") from None

    def _kept(self, capture: Capture, answer: Answer, what: str) -> Value:
        coding = answer.headers.get("content-encoding", "identity").strip().lower()
        if capture.in_body and coding not in ("", "identity"):
            raise Wrong(
                "CaptureMissing",
                f"{what}: the answer is compressed, and under load nobody looks into it for "
                f"{{{{{capture.name}}}}}: have the server answer it as it is",
            )
        value = captured(capture, answer.headers, answer.body)
        if value is None:
            longer = capture.in_body and len(answer.body) > MAX_BODY_BYTES
            where = f", in its first {MAX_BODY_BYTES} bytes, and no more are looked at under load"
            raise Wrong(
                "CaptureMissing",
                f"{what}: the answer has nothing for {{{{{capture.name}}}}}, which is "
                f"{_source(capture)}{where if longer else ''}{self._excerpt(answer.body)}",
            )
        return value

    def _id_of(self, answer: Any, what: str) -> int | str:
        kept = answer.get("id") if isinstance(answer, Mapping) else None
        if (
            isinstance(kept, bool)
            or not isinstance(kept, int | str)
            or not _ID.fullmatch(str(kept))
        ):
            raise Wrong(
                "WrongAnswer",
                f"{what}: expected a field id with a number, or a text of letters, digits, '-' and "
                f"'_', got {self.mask.quoted(answer)}",
            )
        return kept

    def _json(self, body: bytes, what: str) -> Any:
        try:
            return parse_strict(body.decode("utf-8"))
        except ValueError as error:
            raise Wrong("NotJson", f"{what}: not JSON: {error}{self._excerpt(body)}") from None

    def _excerpt(self, body: bytes) -> str:
        text = self.mask.body(body)
        return f"; it said {quoted(text)}" if text else ""


def _looks_into(check: Check) -> bool:
    """Whether a check asks for anything of the body itself."""
    return check.compares_body or any(one.in_body for one in check.captures)


def _too_large() -> str:
    most = _MAX_ANSWER_BYTES
    said = f"{most} bytes" if most % 2**20 else f"{most // 2**20} MiB"
    return (
        f"the answer has more than {said}, which is the most that Laptime compares: leave "
        "expected, expectedPart, jsonSchema, sameAsUpstream and captures of the body out of this "
        "check, which then takes any size"
    )


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End what takes longer, whatever it is at.

    Raises:
        TimeoutError: it took longer.
    """

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def said(error: Exception) -> str:
    """Return what an error says, or its name if it says nothing."""
    return str(error) or type(error).__name__


def _statements(counter: Witness, before: int, expected: float) -> int:
    """Return the statements since `before`; those that are missing get a moment to appear."""
    deadline = time.monotonic() + _COUNTED_SECONDS
    while (seen := counter.total() - before) < expected and time.monotonic() < deadline:
        time.sleep(_COUNT_AGAIN_SECONDS)
    return seen


def _source(capture: Capture) -> str:
    named = (("JSON at", capture.pointer), ("header", capture.header), ("cookie", capture.cookie))
    source = next((f"{what} {name}" for what, name in named if name is not None), "in the body")
    return source if capture.regex is None else f"{source}, where {capture.regex} finds it"
