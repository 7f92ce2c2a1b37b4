"""What `laptime profile` makes of a server's answer, and what the operator makes of its log."""

from __future__ import annotations

import httpx
import pytest

from laptime.measure.profile import MAX_FOLDED_BYTES, ProfileTask, main, take_profile
from laptime.measure.profile_output import ProfileProblem, parse_profile_output, profile_output
from laptime.measure.stacks import OTHERS, Stack, fold_stacks, parse_stacks

TASK = ProfileTask(
    server="http://demo-server-axum:8080",
    profiles="http://demo-server-axum:6060",
    wait_seconds=0.0,
    warmup_seconds=3.0,
    seconds=10,
)


def taken(answer: httpx.Response | Exception) -> str | ProfileProblem:
    """Return what is made of a server that is healthy and answers so."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.port == 8080:
            assert request.url.path == "/healthz"
            return httpx.Response(200)
        assert str(request.url) == "http://demo-server-axum:6060/profile?seconds=10"
        if isinstance(answer, Exception):
            raise answer
        return answer

    return take_profile(TASK, httpx.MockTransport(handle), lambda _: None)


def test_the_warm_up_is_waited_for() -> None:
    waited: list[float] = []
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text="main 1\n"))
    assert take_profile(TASK, transport, waited.append) == "main 1\n"
    assert waited == [3.0]


def test_a_server_is_waited_for_where_it_says_that_it_serves() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        known = request.url.path in ("/ready", "/profile")
        return httpx.Response(200 if known else 404, text="main 1\n")

    task = TASK.model_copy(update={"health_path": "/ready"})
    assert take_profile(task, httpx.MockTransport(handle), lambda _: None) == "main 1\n"


def test_stacks_are_added_up_and_the_most_frequent_come_first() -> None:
    answer = httpx.Response(200, text="main;read 3\nmain;list all 7\r\n\nmain;read 5\n")
    assert taken(answer) == "main;read 8\nmain;list all 7\n"


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (httpx.ConnectError("refused"), "ProfileNotOffered", "nothing listens on its PROFILE_PORT"),
        (httpx.ReadTimeout("late"), "ProfileFailed", "GET /profile: late"),
        (httpx.Response(404), "ProfileNotOffered", "docs/servers.md"),
        (httpx.Response(500, text="no permission"), "ProfileFailed", "500: no permission"),
        (httpx.Response(200, text=""), "ProfileEmpty", "it used no CPU in 10 s"),
        (httpx.Response(200, text="<html>"), "ProfileNotUnderstood", "'<html>'"),
    ],
)
def test_why_there_is_none(answer: httpx.Response | Exception, reason: str, said: str) -> None:
    problem = taken(answer)
    assert isinstance(problem, ProfileProblem)
    assert problem.reason == reason
    assert said in problem.message


def test_a_server_that_does_not_get_healthy_is_named_as_such() -> None:
    problem = take_profile(TASK, httpx.MockTransport(lambda _: httpx.Response(503)), lambda _: None)
    assert isinstance(problem, ProfileProblem)
    assert problem.reason == "NotReady"


def test_a_task_that_cannot_be_read_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"LAPTIME_PROFILE": '{"server": 1}'}) == 2
    problem = parse_profile_output(capsys.readouterr().out)
    assert isinstance(problem, ProfileProblem)
    assert problem.reason == "TaskUnreadable"


@pytest.mark.parametrize("text", ["main 1\nmain;Zoë 2\n", ProfileProblem("Reason", "a\nmessage")])
def test_what_is_printed_is_read_again(text: str | ProfileProblem) -> None:
    assert parse_profile_output(f"other\n{profile_output(text)}\nmore\n") == text


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("", "ProfileMissing"),
        ("Traceback\n", "ProfileMissing"),
        (profile_output("main 1")[:-3], "ProfileGarbled"),
    ],
)
def test_a_log_without_a_profile_says_so(log: str, reason: str) -> None:
    problem = parse_profile_output(log)
    assert isinstance(problem, ProfileProblem)
    assert problem.reason == reason


@pytest.mark.parametrize(
    "line", ["main", "main x", "main -1", "main 1.5", " 7", "main 9999999999999"]
)
def test_a_line_that_is_no_stack_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a stack"):
        parse_stacks(f"main 1\n{line}\n")


def test_names_without_end_and_endless_recursion_are_cut() -> None:
    ((stack, count),) = parse_stacks(";".join(["f" * 1000] * 1000) + " 3").items()
    assert count == 3
    assert len(stack) == 200
    assert {len(name) for name in stack} == {200}


def test_control_characters_are_not_passed_on() -> None:
    assert parse_stacks("a\x1b[0m;b\x00 1") == {("a�[0m", "b�"): 1}


def test_rare_stacks_become_one_where_all_do_not_fit() -> None:
    names = [f"function-{number:05}" * 10 for number in range(5000)]
    stacks: dict[Stack, int] = {(name,): place + 1 for place, name in enumerate(names)}
    folded = fold_stacks(stacks, MAX_FOLDED_BYTES)
    assert len(folded.encode()) <= MAX_FOLDED_BYTES
    kept = parse_stacks(folded)
    assert sum(kept.values()) == sum(stacks.values())
    rarest = min(count for stack, count in kept.items() if stack != OTHERS)
    assert kept[OTHERS] == sum(count for count in stacks.values() if count < rarest)
