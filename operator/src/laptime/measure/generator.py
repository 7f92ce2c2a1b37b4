"""What a generator pod wrote to its log, as a typed result."""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
import zlib
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field, ValidationError

from laptime.api.base import TolerantModel
from laptime.api.text import shown

RESULT_PREFIX = "LAPTIME-RESULT "
ERROR_PREFIX = "LAPTIME-ERROR "
CUT_LINE = "LAPTIME-CUT"
"""First line of a log of which only the end was read."""
SCHEMA_VERSION = 1

MAX_PAYLOAD_LENGTH = 900_000
"""Largest result in base64: it is stored in a ConfigMap, which holds 1 MiB at most."""
MAX_PLAIN_BYTES = 16 * 2**20
MAX_VALUES = 2_000_000
MAX_OBJECTS = 250_000
"""What a result may become in the memory: its values, and how many of them are objects. Without
these a text of some kB became 700 MB; the worst now takes 290. A real one that fits into
MAX_PAYLOAD_LENGTH has far less: 1 million values where each second has its buckets, 175,000 objects
and 8 MB where a day has 86,400 seconds with errors in each."""
MAX_SCHEMA_LENGTH = 64
"""What stands for a schema has 41 characters (`laptime.manifests.schema_query`); a check may say
two."""
_QUOTED = 300
_WORDS = 500
_REASON = re.compile("[A-Z][A-Za-z0-9]{0,63}")
# A line of k6's own log, as logrus writes texts: quoted as Go does it where that must be.
_K6_LINE = re.compile(
    r'time="[^"]*" level=(?P<level>error|warning) '
    r'msg=(?P<message>"(?:[^"\\]|\\.)*"|\S*)(?P<fields>.*)'
)
_K6_CAUSE = re.compile(r' error=("(?:[^"\\]|\\.)*"|\S+)')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
# What k6 says when it is ended from outside: the pod knows more of that.
_ENDED = "test run was aborted because k6 received"
# Its last words after those with which the script said so.
_MARKED = "test run was marked as failed"
# k6's words for each request without an answer, which are counted as errors.
_FAILED_REQUEST = "Request Failed"
MAX_WARNINGS = 5

Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Gap = Annotated[int, Field(ge=-(2**53), le=2**53)]


class GeneratorEndpoint(TolerantModel):
    """Counts and histograms (base64) of one request of the scenario."""

    requests: Count = 0
    errors: Count = 0
    dropped: Count = Field(
        0, description="Due and never sent, which are none of those. Older versions: 0."
    )
    completed_in_window: Count | None = None
    latency: str = ""
    server_time: str = ""
    connect: str = ""
    uncorrected_latency: str = Field("", description="Open loads: from sent and not from due.")


class GeneratorSecond(TolerantModel):
    """What ended in one second of a phase."""

    t: Count = Field(0, description="Seconds from the start of the phase.")
    requests: Count = Field(0, description="All that ended, right answers and errors.")
    errors: Count = 0
    dropped: Count = Field(
        0, description="Requests given up unsent, which are none of those. Older versions: 0."
    )
    kinds: dict[str, Count] = Field(default_factory=dict, description="The errors by kind.")
    latency: list[Gap] | None = Field(
        None,
        description="Right answers, as gaps and counts of buckets: a native histogram of "
        "Prometheus of schema 7. Of several seconds that of the last one has them all.",
    )


class GeneratorPhase(TolerantModel):
    """Figures of one phase; times are unix seconds."""

    started_at: Seconds = Field(0.0, description="0 for scripts: then the first request.")
    first_request_at: Seconds = 0.0
    last_response_at: Seconds = 0.0
    requests: Count = 0
    responses: Count = 0
    window_seconds: Seconds | None = None
    completed_in_window: Count | None = None
    errors: dict[str, Count] = Field(default_factory=dict)
    bytes_received: Count = 0
    dropped_iterations: Count = 0
    lateness: str = Field("", description="Open loads: from due to sent, a histogram.")
    endpoints: dict[str, GeneratorEndpoint] = Field(default_factory=dict)
    seconds: list[GeneratorSecond] = Field(default_factory=list)
    latency_seconds: Count = Field(
        0, description="So many seconds share a histogram; 0: they have none (older versions)."
    )


class GeneratorCost(TolerantModel):
    """What the measuring itself cost during the measured phase."""

    cpu_seconds: Seconds = 0.0
    wall_seconds: Seconds = 0.0
    max_procs: Count = 0
    busiest_thread: Seconds = Field(0.0, description="Share of one core, 0 … 1.")
    peak_memory_bytes: Count = 0
    unread_seconds: Seconds = Field(
        0.0, description="From an answer's arrival to its reading, of all answers together."
    )
    version: str = ""
    round_trip_seconds: Seconds | None = Field(
        None, description="To the servers and back: the shortest that the kernel saw."
    )
    segments_sent: Count = 0
    segments_sent_again: Count = 0
    segments_out_of_order: Count = 0


class GeneratorStatement(TolerantModel):
    """How often the database ran a statement in the measured phase."""

    query: str
    calls: Count


class Segment(TolerantModel):
    """A generator's place, from 0, among those that share a load."""

    index: Annotated[int, Field(ge=0, le=15)]
    count: Annotated[int, Field(ge=1, le=16)]


class GeneratorSearch(TolerantModel):
    """What a saturation search found, in requests per second; 0: no rate is known."""

    low: Seconds = 0.0
    high: Seconds = 0.0
    breaking: Seconds = 0.0
    p99_seconds: Seconds = 0.0
    error_rate: Seconds = 0.0
    late: bool = Field(False, description="Missed at `high` by a generator that was late.")
    restless: Count = Field(0, description="Steps that began before the server was as at first.")


class GeneratorCheck(TolerantModel):
    """How often a check of a script held and did not."""

    passed: Count = 0
    failed: Count = 0


class GeneratorHost(TolerantModel):
    """What a script asked of another host than the target."""

    requests: Count = 0
    errors: Count = 0


class GeneratorMetric(TolerantModel):
    """One metric of k6's or of a script's own, in k6's units."""

    type: str
    contains: str = "default"
    samples: Count = 0
    sum: Number = 0.0
    min: Number = 0.0
    max: Number = 0.0
    last: Number = 0.0
    passes: Count = 0
    cells: list[Count] | None = Field(None, description="Of a trend: cell, count, cell, count …")


class GeneratorThreshold(TolerantModel):
    """One threshold of a script, and what became of it."""

    metric: str
    expression: str
    contains: str = "default"
    met: bool
    value: Number = 0.0
    samples: Count = 0


class GeneratorScript(TolerantModel):
    """What a script of a user's own says beside its requests; its names are not to be trusted."""

    warmup: str = ""
    executors: list[str] = Field(default_factory=list, max_length=100)
    iterations: Count = 0
    iteration_seconds: Seconds = 0.0
    request_seconds: Seconds = 0.0
    seconds: Seconds = 0.0
    aborted: bool = False
    checks: dict[str, GeneratorCheck] = Field(default_factory=dict)
    more_checks: GeneratorCheck | None = None
    wrong_answers: Count | None = Field(
        None, description="Calls of check() that failed; null: nobody counted (older versions)."
    )
    exceptions: dict[str, Count] = Field(default_factory=dict)
    more_exceptions: Count = 0
    other_hosts: dict[str, GeneratorHost] = Field(default_factory=dict)
    more_hosts: GeneratorHost | None = None
    metrics: dict[str, GeneratorMetric] = Field(default_factory=dict)
    metrics_left_out: Count = 0
    parts_left_out: bool = False
    endpoints_left_out: Count = Field(0, description="Names of requests counted together.")
    seconds_left_out: bool = Field(False, description="No room for their response times.")
    thresholds: list[GeneratorThreshold] = Field(default_factory=list)


class _Document(TolerantModel):
    schema_version: int
    trial: str = ""
    segment: Segment | None = None
    phases: dict[str, GeneratorPhase]
    generator: GeneratorCost
    statements: list[GeneratorStatement] | None = None
    database_schema: str | None = Field(None, max_length=MAX_SCHEMA_LENGTH)
    generators: list[GeneratorCost] = Field(default_factory=list, max_length=16)
    saturation: GeneratorSearch | None = None
    script: GeneratorScript | None = None


CUT_SHORT = ("ResultMissing", "ResultGarbled", "LogMissing")
"""What is said of a log whose end is missing: of a generator that was ended, or read too early."""


@dataclass(frozen=True)
class GeneratorResult:
    """The result of a trial, and the text it came as, kept for merging without loss."""

    trial: str
    phases: dict[str, GeneratorPhase]
    costs: tuple[GeneratorCost, ...]
    """Of each generator that took part."""
    payload: str
    """Base64 of gzipped JSON."""
    statements: tuple[GeneratorStatement, ...] | None = None
    """What the database ran in the measured phase; None when nobody asked it."""
    segment: Segment | None = None
    """The place of the one generator that this is the result of, when it was not alone."""
    search: GeneratorSearch | None = None
    script: GeneratorScript | None = None
    """What a script says beside its requests; None for the other loads."""
    warnings: tuple[str, ...] = ()
    """What k6 warned of in its log, each text once."""
    database_schema: str | None = None
    """Stands for what was defined in the database before the load; None: nobody knows."""

    @property
    def cores(self) -> float:
        """CPU time of all generators in the measured phase, divided by its length."""
        wall = max(cost.wall_seconds for cost in self.costs)
        return sum(cost.cpu_seconds for cost in self.costs) / wall if wall > 0 else 0.0

    @property
    def unread_seconds(self) -> float:
        """From an answer's arrival to its reading, of all answers of all generators together."""
        return sum(cost.unread_seconds for cost in self.costs)


@dataclass(frozen=True)
class GeneratorError:
    """Why there is no result: a CamelCase reason and a message for people."""

    reason: str
    message: str

    def to_line(self) -> str:
        """Return the line of a log that says so."""
        said = json.dumps({"reason": self.reason, "message": self.message}, ensure_ascii=False)
        return f"{ERROR_PREFIX}{said}"


def parse_generator_output(log_text: str) -> GeneratorResult | GeneratorError:
    """Return the result in a generator's log, or why there is none; other lines do not matter."""
    results: list[str] = []
    said: list[str] = []
    errors: list[str] = []
    warnings: dict[str, None] = {}
    # Not splitlines(): it also breaks lines at characters that JSON texts may hold.
    for line in log_text.split("\n"):
        line = line.strip()
        if line.startswith(ERROR_PREFIX):
            return _reported(line.removeprefix(ERROR_PREFIX))
        if line.startswith(RESULT_PREFIX):
            results.append(line)
        elif line and not line.startswith("LAPTIME-"):
            said.append(line)
            level, text = _of_k6(line)
            if level == "error" and not (errors and text == _MARKED):
                errors.append(text)
            elif level == "warning" and text != _FAILED_REQUEST:
                warnings[shown(text, _QUOTED)] = None
    if not results and errors and not errors[-1].startswith(_ENDED):
        return GeneratorError("ScriptFailed", f"k6 says: {shown(errors[-1].strip(), _WORDS)}")
    if not log_text.strip():
        # Each prints a line before its first request.
        return GeneratorError("LogMissing", "its log is empty: the node has lost it")
    if not results:
        last = f"; its last line was: {shown(said[-1], _QUOTED)}" if said else ""
        cut = log_text.startswith(f"{CUT_LINE}\n")
        where = " at the end of its log, which is too long to be read as a whole" if cut else ""
        return GeneratorError("ResultMissing", f"the generator printed no result{where}{last}")
    if len(results) > 1:
        return GeneratorError(
            "ResultDuplicate", f"the generator printed {len(results)} results instead of one"
        )
    parsed = parse_payload(results[0].removeprefix(RESULT_PREFIX))
    if isinstance(parsed, GeneratorResult):
        return replace(parsed, warnings=tuple(warnings)[:MAX_WARNINGS])
    return parsed


def cut_short(log_text: str) -> bool:
    """Return whether the end of a generator's log is missing, as far as it can be told from it."""
    parsed = parse_generator_output(log_text)
    return isinstance(parsed, GeneratorError) and parsed.reason in CUT_SHORT


def _of_k6(line: str) -> tuple[str, str]:
    """Return level and message of a line of k6's own log; empty texts where it is none.

    What the script writes to its console is not k6's.
    """
    found = _K6_LINE.fullmatch(line)
    if found is None or "source=console" in found["fields"]:
        return "", ""
    cause = _K6_CAUSE.search(found["fields"])
    text = _plain(found["message"])
    if cause is not None and text != _FAILED_REQUEST:
        text = f"{text}: {_plain(cause[1])}"
    return found["level"], text


def _plain(quoted: str) -> str:
    return _ESCAPE.sub(_unescaped, quoted[1:-1]) if quoted.startswith('"') else quoted


def _unescaped(escape: re.Match[str]) -> str:
    text = escape[1]
    if len(text) == 1:
        return _ESCAPED.get(text, text)
    code = int(text[1:], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def parse_payload(payload: str) -> GeneratorResult | GeneratorError:
    """Return the result that a payload (base64 of gzipped JSON) carries, or what is wrong."""
    try:
        plain = inflated(payload)
    except OverflowError as error:
        return _too_large(str(error))
    except ValueError as error:
        return _garbled(str(error))
    try:
        document: Any = json.loads(plain)
    except (ValueError, RecursionError):
        return _garbled("it is not JSON")
    version = document.get("schemaVersion") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        return GeneratorError(
            "ResultVersionUnknown",
            f"the generator's result has schemaVersion {shown(str(version), 20)}, this operator "
            f"reads {SCHEMA_VERSION}: use the k6 image of the same release",
        )
    try:
        parsed = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return _garbled(f"{place}: {first['msg']}")
    statements = None if parsed.statements is None else tuple(parsed.statements)
    costs = tuple(parsed.generators) or (parsed.generator,)
    return GeneratorResult(
        parsed.trial,
        parsed.phases,
        costs,
        payload,
        statements,
        parsed.segment,
        parsed.saturation,
        parsed.script,
        database_schema=parsed.database_schema,
    )


def inflated(payload: str) -> bytes:
    """Return the JSON that a payload (base64 of gzip) carries, which may be read as a whole.

    Raises:
        OverflowError: it is too large, packed or unpacked; whoever wrote it need not be trusted.
        ValueError: it is no such payload, or cut off.
    """
    if len(payload) > MAX_PAYLOAD_LENGTH:
        raise OverflowError(f"{len(payload)} characters")
    try:
        packed = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not base64") from None
    inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = inflate.decompress(packed, MAX_PLAIN_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None
    if len(plain) > MAX_PLAIN_BYTES:
        raise OverflowError(f"more than {MAX_PLAIN_BYTES} bytes unpacked")
    if not inflate.eof:
        raise ValueError("it is cut off")
    objects = plain.count(b"{")
    if objects > MAX_OBJECTS or plain.count(b",") + plain.count(b"[") + objects > MAX_VALUES:
        raise OverflowError(f"more than {MAX_OBJECTS} objects or {MAX_VALUES} values unpacked")
    return plain


def document_of(result: GeneratorResult) -> dict[str, Any]:
    """Return everything that a result, which was read before, says."""
    document: dict[str, Any] = json.loads(inflated(result.payload))
    return document


def _reported(text: str) -> GeneratorError:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return GeneratorError("GeneratorFailed", shown(text, _QUOTED))
    reason = document.get("reason")
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        reason = "GeneratorFailed"
    return GeneratorError(reason, shown(str(document.get("message", "")), 1000))


def _garbled(why: str) -> GeneratorError:
    return GeneratorError(
        "ResultGarbled", f"the generator's result cannot be read: {shown(why, _QUOTED)}"
    )


def _too_large(size: str) -> GeneratorError:
    return GeneratorError(
        "ResultTooLarge",
        f"the generator's result has {size}; at most {MAX_PAYLOAD_LENGTH} characters can be "
        "stored: shorten the load",
    )
