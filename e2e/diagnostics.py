"""When an end-to-end test fails: what the cluster was doing, in the test's report.

A pytest plugin of its own (`-p diagnostics`), so that it also works for tests that fail in their
set-up, before any fixture of theirs exists.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

OPERATOR_NAMESPACE = "laptime-system"
_LOG_LINES = 40
# Older ones are of tests before this one, or of the set-up; a long report hides the assertion.
_NEWEST_EVENTS = 25
_SECONDS = 30

Kubectl = Callable[..., str]


class Diagnostics:
    """Remembers which fixtures are alive, and asks the cluster when a test fails."""

    def __init__(self) -> None:
        self._alive: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Remember a fixture's value."""
        value = yield
        self._alive[fixturedef.argname] = value
        return value

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Forget it."""
        self._alive.pop(fixturedef.argname, None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add conditions, events and logs to the report of a failed test."""
        report = yield
        tool = self._alive.get("kubectl")
        if report.failed and call.when in ("setup", "call") and tool is not None:

            def kubectl(*arguments: str) -> str:
                try:
                    done = tool.run(*arguments, timeout=_SECONDS)
                except (OSError, subprocess.TimeoutExpired) as error:
                    return f"kubectl {' '.join(arguments)}: {error}"
                return str(done.stdout or done.stderr).strip()

            for namespace in dict.fromkeys([*self._namespaces(), OPERATOR_NAMESPACE]):
                report.sections.extend(describe(kubectl, namespace))
        return report

    def _namespaces(self) -> Iterator[str]:
        for value in self._alive.values():
            namespace = getattr(value, "namespace", None)
            if isinstance(namespace, str):
                yield namespace
        if isinstance(self._alive.get("namespace"), str):
            yield self._alive["namespace"]


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    config.pluginmanager.register(Diagnostics(), "laptime-diagnostics")


def describe(kubectl: Kubectl, namespace: str) -> list[tuple[str, str]]:
    """Return (title, text) of what is to be known of a namespace after a failure."""
    sections = [
        (f"runs of {namespace}", "\n".join(_conditions(kubectl, namespace))),
        (f"objects of {namespace}", kubectl("get", "pods,jobs", "-n", namespace, "-o", "wide")),
        (f"newest events of {namespace}", _events(kubectl, namespace)),
    ]
    for pod in kubectl("get", "pods", "-n", namespace, "-o", "name").splitlines():
        if pod.startswith("pod/"):
            log = kubectl(
                *("logs", pod, "-n", namespace, "--all-containers", "--prefix"),
                f"--tail={_LOG_LINES}",
            )
            sections.append((f"log of {pod} in {namespace}", log))
    return [(title, text) for title, text in sections if text]


def _events(kubectl: Kubectl, namespace: str) -> str:
    every = kubectl("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp")
    head, *lines = every.splitlines() or [""]
    return "\n".join([head, *lines[-_NEWEST_EVENTS:]])


def _conditions(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    answer = kubectl("get", "benchmarkruns", "-n", namespace, "-o", "json")
    try:
        runs: list[dict[str, Any]] = json.loads(answer)["items"]
    except (ValueError, KeyError):
        yield answer
        return
    for run in runs:
        status = run.get("status") or {}
        progress = (status.get("progress") or {}).get("text", "")
        yield f"{run['metadata']['name']}: {status.get('state')} {progress}"
        for condition in status.get("conditions") or []:
            words = (condition.get(key, "") for key in ("type", "status", "reason", "message"))
            yield "  " + " ".join(words)
