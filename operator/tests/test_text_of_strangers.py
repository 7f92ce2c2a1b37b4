"""What strangers say is shown and does nothing else: at each door for text, and in logs."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from laptime.api.conditions import Verdict, merge_conditions
from laptime.api.results import TrialResult
from laptime.api.status import ConditionStatus, ConditionType
from laptime.api.text import plain, plain_lines, plain_tree, shown, without_passwords
from laptime.kube.errors import kube_error
from laptime.log_lines import LineFormatter
from laptime.manifests.result import RESULT_KEY, read_result
from laptime.measure.generator import GeneratorError, parse_generator_output
from laptime.measure.node_usage import neighbours_query, node_query
from laptime.measure.profile_output import ProfileProblem, parse_profile_output
from laptime.measure.promql import TrialWindow, query_samples
from laptime.measure.stacks import parse_stacks
from laptime.measure.timeseries import Window
from laptime.reconcile.diagnose import diagnose
from laptime.reconcile.stages.verdicts import parse_verdict
from laptime.reconcile.views import PodView, job_view, pod_view
from laptime.verification.compare import quoted

from .attacks import ATTACKS, harmless

ALL = [pytest.param(text, id=what) for what, text in ATTACKS.items()]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("attack", ALL)
def test_text_is_one_line_that_can_be_printed(attack: str) -> None:
    assert plain(attack).isprintable()
    assert shown(attack, 20).isprintable()
    assert harmless(plain_lines(attack).replace("\t", ""))
    plain(attack).encode()


def test_what_can_be_printed_stays_as_it_is() -> None:
    for text in ("expected 3 items, got 4", "Łódź 🍲 → 1.2 µs ± 3 %", "日本語 \\ \"'`$<>&", ""):
        assert plain(text) == plain_lines(text) == text
    assert plain_lines("a\tb\nc\r\n") == "a\tb\nc \n"
    assert plain("a b\nc") == "a b c"
    assert plain_tree({"a\x1b": ["b\x9b", 1, None, {"c": "d\ne"}]}) == {
        "a�": ["b�", 1, None, {"c": "d\ne"}]
    }


@pytest.mark.parametrize("attack", ALL)
def test_what_an_image_says_of_its_end(attack: str) -> None:
    manifest = _pod(
        state={"waiting": {"reason": "CreateContainerError", "message": attack}},
        lastState={"terminated": {"exitCode": 1, "reason": attack, "message": attack}},
    )
    manifest["status"] |= {"reason": "Evicted", "message": attack}
    view = pod_view(manifest)
    evicted = diagnose("server a", [view], NOW)
    assert evicted is not None
    assert harmless(evicted.message)
    for restarts in (0, 1, 3):
        ended = {"exitCode": 1, "reason": "Error", "message": attack}
        waiting = {"reason": "CreateContainerError", "message": attack} if not restarts else {}
        view = pod_view(
            _pod(
                state={"waiting": waiting} if waiting else {},
                lastState={"terminated": ended},
                restartCount=restarts,
            )
        )
        problem = diagnose("server a", [view], NOW)
        assert problem is not None
        assert harmless(problem.message), problem


def _pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}},
        "spec": {"containers": [{"name": "server", "image": "image"}]},
        "status": {"containerStatuses": [{"name": "server", **status}]},
    }


PASSWORD = "Zq3-x_Y9abcdefgh"
RUNS_OWN = "0123456789abcdef" * 3
"""As the operator makes them: 24 bytes in hexadecimal digits."""


@pytest.mark.parametrize(
    "said",
    [
        f"invalid URL: postgresql://laptime:{PASSWORD}@demo-postgres:5432/laptime?x=1",
        f"redis://:{PASSWORD}@cache:6379",
        f"jdbc:postgresql://host/laptime?user=laptime&password={PASSWORD}&ssl=off",
        f"host=demo user=laptime password='{PASSWORD}' dbname=laptime",
        f"Password = {PASSWORD}",
        # The kubelet keeps the end of a log: this begins anywhere in it.
        f"ptime:{PASSWORD}@demo-postgres/laptime",
        f"{PASSWORD[5:]}@demo-postgres/laptime",
    ],
)
def test_a_password_in_last_words_is_told_nobody(said: str) -> None:
    (container,) = pod_view(
        _pod(lastState={"terminated": {"exitCode": 1, "message": said}}, restartCount=3)
    ).containers
    problem = diagnose("server a", [PodView("a", "server", NOW, containers=(container,))], NOW)
    assert problem is not None
    assert "its last words" in problem.message
    assert PASSWORD[5:] not in f"{problem.message}{container.exit_message}"


@pytest.mark.parametrize(
    "said",
    [
        f"{{ host: 'demo', password: '{PASSWORD}', port: 5432 }}",
        json.dumps({"pool": {"password": PASSWORD}}),
        json.dumps({"message": json.dumps({"password": PASSWORD})}),
        f"{{Host:demo Port:5432 Password:{PASSWORD} Name:laptime}}",
        f'{{:host=>"demo", :password=>"{PASSWORD}"}}',
        f'DB_PASSWORD  "{PASSWORD}"',
        f"Server=demo;Uid=laptime;Pwd={PASSWORD};",
        f"- DATABASE_PASSWORD: {PASSWORD}",
    ],
)
def test_a_password_in_a_printed_configuration_is_not_shown(said: str) -> None:
    shown_instead = without_passwords(said)
    assert shown_instead == said.replace(PASSWORD, "…")
    assert PASSWORD[:5] not in quoted({"error": said})


@pytest.mark.parametrize(
    "before",
    ["/app -p ", "/app?pw=", "laptime%3A", "/app\\n", "x_", "", "[secret "],
)
@pytest.mark.parametrize("after", ["", " -v", "%40demo", "_x", ",", "]"])
def test_a_password_of_a_run_is_not_shown_whatever_stands_around_it(
    before: str, after: str
) -> None:
    """The words of a command, which a kubelet quotes where it cannot start them, name anything."""
    said = f'exec: "{before}{RUNS_OWN}{after}": stat: no such file or directory'
    waiting = {"waiting": {"reason": "RunContainerError", "message": said}}
    (container,) = pod_view(_pod(state=waiting)).containers
    assert container.waiting_message is not None
    problem = diagnose("server a", [PodView("a", "server", NOW, containers=(container,))], NOW)
    assert problem is not None
    assert RUNS_OWN[:8] not in f"{problem.message}{container.waiting_message}"
    assert without_passwords(said) == said.replace(RUNS_OWN, "…")


def test_a_password_in_a_wrong_answer_is_told_nobody_wherever_it_is_cut_off() -> None:
    for before in range(100):
        body = f"{before * 'x'} cannot reach postgresql://laptime:{PASSWORD}@demo-postgres:5432"
        assert PASSWORD[:5] not in quoted({"error": body})


def test_what_is_no_password_stays() -> None:
    for text in (
        "listening on http://0.0.0.0:8080/ and [::]:8081",
        "GET http://demo-server:8080/a?mail=ada@example.com 500",
        "ask admin@example.com; password authentication failed for user laptime",
        json.dumps({"url": "http://host:8080", "mail": "a@b.example", "password": "no"}),
        json.dumps({"password": None, "pwd": {"minLength": 12}}),
        "password: is required; pwd: /srv/a-folder-with-a-long-name",
        # Digests and IDs of usual lengths, also beside each other.
        *(f"sha: {'0123456789abcdef' * 8}"[: 5 + digits] for digits in (32, 40, 56, 64, 96, 128)),
        f"{'a' * 16}-{'b' * 32}.{'c' * 40}",
        "0." + "3" * 40,
    ):
        assert without_passwords(text) == text


def test_a_verdict_with_a_password_in_it_is_read() -> None:
    said = f'got {{"error": "postgres://a:{PASSWORD}@b", "dsn": "password={PASSWORD}"}}'
    text = json.dumps({"ok": False, "message": said})
    verdict = parse_verdict(without_passwords(text))
    assert verdict is not None
    assert PASSWORD not in str(verdict["message"])


@pytest.mark.parametrize("attack", ALL)
def test_what_a_controller_says_of_a_job(attack: str) -> None:
    failed = {"type": "Failed", "status": "True", "reason": attack, "message": attack}
    metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
    view = job_view({"metadata": metadata, "status": {"conditions": [failed]}})
    assert harmless(f"{view.failed_reason}{view.failed_message}")


@pytest.mark.parametrize("attack", ALL)
def test_what_a_server_answered_to_the_verifier(attack: str) -> None:
    # JSON hides control characters from whoever looks at the text of it.
    for text in (
        json.dumps({"ok": False, "message": attack}, ensure_ascii=which) for which in (False, True)
    ):
        verdict = parse_verdict(f"said before\n{text}")
        assert verdict is not None
        assert harmless(str(verdict["message"]))
    assert parse_verdict("[" * 100_000) is None


@pytest.mark.parametrize("attack", ALL)
def test_what_a_generator_prints(attack: str) -> None:
    error = "LAPTIME-ERROR " + json.dumps({"reason": attack, "message": attack})
    for log in (attack, error, f"LAPTIME-ERROR {attack}", f"LAPTIME-RESULT {attack}"):
        said = parse_generator_output(log)
        assert isinstance(said, GeneratorError)
        assert harmless(said.message)
        assert said.reason.isalnum()


@pytest.mark.parametrize("attack", ALL)
def test_what_is_said_of_a_profile(attack: str) -> None:
    document = "LAPTIME-PROFILE " + json.dumps({"reason": attack, "message": attack})
    for log in (document, attack, f"LAPTIME-PROFILE {attack}", "LAPTIME-PROFILE [1]"):
        said = parse_profile_output(log)
        assert isinstance(said, ProfileProblem)
        assert harmless(str(said))
    for stack in parse_stacks("\n".join(f"{line} 7" for line in attack.split("\n"))):
        assert all(harmless(name) for name in stack)


@pytest.mark.parametrize("attack", ALL)
def test_what_the_api_server_quotes(attack: str) -> None:
    for text in (attack, json.dumps({"reason": attack, "message": attack})):
        error = kube_error(403, text)
        assert harmless(f"{error} {error.reason} {error.message}")
    assert len(kube_error(403, "x" * 10**6).message) <= 2000
    assert len(kube_error(403, "[" * 10**6).message) <= 2000


@pytest.mark.parametrize("attack", ALL)
def test_what_somebody_wrote_into_a_stored_result(attack: str) -> None:
    result = {
        "trial": "t", "ordinal": 1, "server": attack, "load": attack, "repetition": 1,
        "outcome": "Failed", "reason": attack, "message": attack,
        "validity": "invalid", "validityReasons": [attack],
    }  # fmt: skip
    manifest = {"metadata": {"name": "t"}, "data": {RESULT_KEY: json.dumps(result)}}
    read, _ = read_result(manifest)
    assert isinstance(read, TrialResult)
    texts = [read.server, read.load, read.reason, read.message, *read.validity_reasons]
    assert all(harmless(str(text)) for text in texts)


@pytest.mark.parametrize("attack", ALL)
def test_a_condition_and_so_an_event(attack: str) -> None:
    verdict = Verdict(ConditionType.SUCCEEDED, ConditionStatus.FALSE, "Failed", attack)
    (condition,) = merge_conditions([], [verdict], 1, "2026-01-01T00:00:00Z")
    assert harmless(condition.message.replace("\t", ""))


@pytest.mark.parametrize("attack", ALL)
async def test_a_query_asks_for_this_value_and_for_nothing_else(attack: str) -> None:
    async def answer(path: str, parameters: Any) -> dict[str, Any]:
        metric = {"__name__": "laptime_node_cpus", "node": attack}
        one = {"metric": metric, "values": [[1, "1"]]}
        return {"status": "success", "data": {"resultType": "matrix", "result": [one]}}

    ((labels, _),) = await query_samples(answer, "{x}", Window(0.0, 1.0))
    assert harmless(labels["node"])
    nodes = [labels["node"]]
    window = Window(0.0, 1.0)
    # A selector, strings by the rules of PromQL, a range: there is no way out of a string.
    string = r'"(?:[^"\\\n]|\\["\\nrtbf]|\\u00[0-9a-f]{2})*"'
    wanted = TrialWindow("team", "demo", "6f1c", "demo-1", window)
    for query, after in (
        (node_query(nodes), r',resource=~"\|cpu",kind=~"\|some"'),
        (neighbours_query(nodes, wanted), ',run_uid!="6f1c"'),
    ):
        before = r'(?:,namespace="team")?'
        selected = rf"\{{__name__=~{string}{before},node=~{string}{after}\}}"
        assert re.fullmatch(selected, query), query
        query.encode()


@pytest.mark.parametrize("attack", ALL)
def test_a_record_of_the_log_is_one_line(attack: str) -> None:
    record = logging.LogRecord("laptime", logging.INFO, "f", 1, "said: %s", (attack,), None)
    line = LineFormatter().format(record)
    assert "\n" not in line
    assert harmless(line)


@pytest.mark.parametrize("attack", ALL)
def test_a_traceback_cannot_pass_for_a_record(attack: str) -> None:
    try:
        raise ValueError(attack)
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("laptime", logging.ERROR, "f", 1, "failed", (), info)
    first, *rest = LineFormatter().format(record).split("\n")
    assert first.endswith("ERROR laptime: failed")
    assert rest
    assert all(line.startswith("  | ") and harmless(line) for line in rest)
