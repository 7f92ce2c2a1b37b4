"""The generator's log: one result among other lines, or a clear word on why there is none."""

from __future__ import annotations

import base64
import gzip
import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laptime.measure import (
    GeneratorError,
    GeneratorResult,
    cut_short,
    generator,
    parse_generator_output,
    parse_payload,
)
from tests.measure.samples import document, line, phase

DOCUMENT = document(phase([1000, 2000]))
LINE = line(DOCUMENT)


def error_of(log: str) -> GeneratorError:
    parsed = parse_generator_output(log)
    assert isinstance(parsed, GeneratorError)
    return parsed


def test_the_result_is_found_among_other_lines() -> None:
    log = f"time=now level=warning msg=slow\nLAPTIME-READY\n\n{LINE}\r\nbye\n"
    result = parse_generator_output(log)
    assert isinstance(result, GeneratorResult)
    assert result.trial == "demo-trial-001"
    assert result.phases["measured"].requests == 2


def test_the_payload_is_kept_and_says_the_same_again() -> None:
    result = parse_generator_output(LINE)
    assert isinstance(result, GeneratorResult)
    assert parse_payload(result.payload) == result
    assert json.loads(gzip.decompress(base64.b64decode(result.payload))) == DOCUMENT


def test_fields_of_a_newer_generator_are_ignored() -> None:
    newer = {**DOCUMENT, "extra": 1}
    assert isinstance(parse_generator_output(line(newer)), GeneratorResult)


TIME = 'time="2026-11-23T13:20:24Z"'


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            r'level=error msg="SyntaxError: file:///scripts/s.js: Unexpected (3:4)\n> 3 | \"a"',
            'k6 says: SyntaxError: file:///scripts/s.js: Unexpected (3:4) > 3 | "a',
        ),
        (
            r'level=error msg="Error: no\n\tat file:///scripts/s.js:2:7(3)\n" hint="a hint"',
            "k6 says: Error: no  at file:///scripts/s.js:2:7(3)",
        ),
        (r'level=error msg="\x1b[31m \u00e9 \\"', "k6 says: �[31m é \\"),
        (
            r'level=error msg="a \U0001f600 \Uffffffff \U00110000"',
            r"k6 says: a 😀 \Uffffffff \U00110000",
        ),
        ("level=error msg=short", "k6 says: short"),
    ],
)
def test_k6s_own_words_are_passed_on_with_the_line(said: str, message: str) -> None:
    console = f'{TIME} level=error msg="what the script says" source=console'
    lines = (
        f"{TIME} level=error msg=before",
        f"{TIME} {said}",
        console,
        f"{TIME} level=info msg=x",
    )
    log = "\n".join(lines)
    assert error_of(log) == GeneratorError("ScriptFailed", message)


def test_a_generator_that_was_ended_failed_by_no_doing_of_the_script() -> None:
    said = "\"test run was aborted because k6 received a 'terminated' signal\""
    assert error_of(f"{TIME} level=error msg={said}\n").reason == "ResultMissing"


def test_what_k6_warned_of_is_kept_but_for_single_requests() -> None:
    warned = [f'{TIME} level=warning msg="{text}"' for text in ("Request Failed", "odd", "odd")]
    warned.append(f'{TIME} level=warning msg="Request Failed" error="refused"')
    warned.append(rf'{TIME} level=warning msg=fields error="json: unknown field \"vuss\""')
    console = f'{TIME} level=warning msg="of the script" source=console'
    result = parse_generator_output("\n".join([*warned, console, LINE]))
    assert isinstance(result, GeneratorResult)
    assert result.warnings == ("odd", 'fields: json: unknown field "vuss"')


def test_what_the_generator_reports_is_passed_on() -> None:
    log = 'LAPTIME-ERROR {"reason":"TargetNotReachable","message":"no answer in 30s"}\n'
    assert error_of(log) == GeneratorError("TargetNotReachable", "no answer in 30s")
    assert error_of(f"{LINE}\n{log}").reason == "TargetNotReachable"


@pytest.mark.parametrize(
    "said", ["no json", "[1]", '{"reason": "has spaces"}', '{"reason": 7}', "{}"]
)
def test_a_reported_error_always_has_a_camel_case_reason(said: str) -> None:
    assert error_of(f"LAPTIME-ERROR {said}").reason == "GeneratorFailed"


def test_a_missing_result_quotes_the_last_line() -> None:
    error = error_of("LAPTIME-READY\nlevel=error msg=boom\n")
    assert error.reason == "ResultMissing"
    assert "msg=boom" in error.message
    assert error_of("\n") == GeneratorError("LogMissing", "its log is empty: the node has lost it")
    assert len(error_of("x" * 10**6).message) < 500


def test_a_result_that_breaks_off_anywhere_is_known_to_be_cut_short() -> None:
    assert not cut_short(LINE)
    assert all(cut_short(LINE[:length]) for length in range(len(LINE)))


def test_two_results_are_one_too_many() -> None:
    assert error_of(f"{LINE}\n{LINE}").reason == "ResultDuplicate"


def packed(data: bytes) -> str:
    return generator.RESULT_PREFIX + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("LAPTIME-RESULT ???", "base64"),
        ("LAPTIME-RESULT H4sI", "cut off"),
        (packed(b"plain"), "decompressed"),
        (packed(gzip.compress(b"{}" * 5000, mtime=0)[:-12]), "cut off"),
        (packed(gzip.compress(b"{", mtime=0)), "not JSON"),
        (packed(gzip.compress(b"[" * 100_000, mtime=0)), "not JSON"),
        (LINE[: len(LINE) // 2 // 4 * 4], "base64|cut off|decompressed"),
        (line({**DOCUMENT, "phases": 3}), "phases"),
        (line({**DOCUMENT, "generator": None}), "generator"),
        (line(document(phase([1], requests=-1))), r"phases\.measured\.requests"),
        (line(document(phase([1], windowSeconds=float("nan")))), "windowSeconds"),
        (line(document(phase([1], windowSeconds=float("inf")))), "windowSeconds"),
        (line(document(phase([1], requests=10**400))), r"requests"),
    ],
)
def test_a_garbled_result_says_what_is_wrong_with_it(log: str, says: str) -> None:
    error = error_of(log)
    assert error.reason == "ResultGarbled"
    assert re.search(says, error.message)
    assert len(error.message) < 500


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_version_is_named(version: Any) -> None:
    error = error_of(line({**DOCUMENT, "schemaVersion": version}))
    assert error.reason == "ResultVersionUnknown"
    assert "k6 image" in error.message


@pytest.mark.parametrize("content", [[], "text", 3, None])
def test_a_result_that_is_no_object_is_refused(content: object) -> None:
    assert error_of(line(content)).reason == "ResultVersionUnknown"


def test_a_result_too_large_to_store_is_refused() -> None:
    log = generator.RESULT_PREFIX + "A" * (generator.MAX_PAYLOAD_LENGTH + 4)
    assert error_of(log).reason == "ResultTooLarge"


def test_a_small_result_that_unpacks_to_a_huge_one_is_refused() -> None:
    bomb = gzip.compress(b" " * (generator.MAX_PLAIN_BYTES + 1))
    assert len(packed(bomb)) < generator.MAX_PAYLOAD_LENGTH
    assert error_of(packed(bomb)).reason == "ResultTooLarge"


@pytest.mark.parametrize("value", ["[]", "{}", "0", '{"a":[1]}'])
def test_a_small_result_that_becomes_a_huge_one_in_the_memory_is_refused(value: str) -> None:
    values = ",".join([value] * (8 * 2**20 // (len(value) + 1)))
    bomb = gzip.compress(f'{{"schemaVersion":1,"x":[{values}]}}'.encode())
    assert len(packed(bomb)) < generator.MAX_PAYLOAD_LENGTH
    error = error_of(packed(bomb))
    assert error.reason == "ResultTooLarge"
    assert "values unpacked" in error.message


def test_the_largest_results_that_can_be_stored_are_read() -> None:
    chance = Random(1)

    def second(t: int, requests: int, **more: Any) -> dict[str, Any]:
        return {"t": t, "requests": requests, "p50Us": 9, "p99Us": 99, "maxUs": 999, **more}

    def buckets() -> list[int]:
        return [chance.choice((1, 1, 1, 2, chance.randrange(60))) for _ in range(2 * 333)]

    # As many buckets as a generator prints, in both phases; and a day of seconds with errors.
    full = [second(t, chance.randrange(999), latency=buckets()) for t in range(600)]
    day = [second(t, 0, errors=1, kinds={"reset": 1}) for t in range(86_400)]
    for warmup, measured in ((full, full), ([], day)):
        found = document(phase([1000], seconds=measured))
        found["phases"]["warmup"]["seconds"] = warmup
        assert isinstance(parse_generator_output(line(found)), GeneratorResult)


@given(st.text(max_size=400), st.binary(max_size=300))
def test_no_log_breaks_the_parser(text: str, data: bytes) -> None:
    for log in (text, f"LAPTIME-RESULT {text}", f"LAPTIME-ERROR {text}", packed(data)):
        error = error_of(log)
        assert error.reason.isalnum()
        assert len(error.message) < 1500


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_document_breaks_the_parser(content: object) -> None:
    wrapped = {**DOCUMENT, "phases": {"measured": content}, "generator": content}
    parsed = parse_generator_output(line(wrapped))
    assert isinstance(parsed, GeneratorError | GeneratorResult)
