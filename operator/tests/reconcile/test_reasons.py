"""The closed list has each reason that a condition, a server or a trial can have."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from laptime.api.conditions import NORMAL_REASONS, TRUE_WHEN
from laptime.api.reasons import REASONS, SECTIONS
from laptime.api.status import ConditionType
from laptime.cli.reasons_page import reasons_page

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "operator" / "src" / "laptime"

# Words of the same form that are no reasons of Laptime. A new word in the code is either added here
# or to the list.
KUBERNETES = {
    *("Accept", "Lease", "NetworkPolicy"),
    *(
        "BenchmarkRun",
        "BenchmarkScenario",
        "ConfigMap",
        "Deployment",
        "Event",
        "Job",
        "Pod",
        "Secret",
        "Service",
    ),
    *("CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "DeadlineExceeded"),
    *("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"),
    *("RunContainerError", "PodScheduled", "ReplicaFailure", "Pending", "Succeeded", "True"),
    *("Always", "Complete", "Delete", "ExternalName", "Never", "Normal", "None", "StartError"),
    "Warning",
    *(
        "DisruptionTarget",
        "Running",
        "ContainerStatusUnknown",
        "Unknown",
        "Preempting",
        "PreemptionByScheduler",
        "Terminated",
    ),
    *("Infeasible", "PodResizeInProgress", "PodResizePending"),
    *("DeletionByTaintManager", "NodeAffinity", "NodePorts", "NodeShutdown", "Shutdown"),
    *("OutOfcpu", "OutOfmemory", "OutOfpods", "TopologyAffinityError", "UnexpectedAdmissionError"),
}
TITLES = {"PgBouncer", "Postgres"}
HTTP = {"Authorization", "Basic", "Bearer"}
NEVER_SHOWN = {
    # The verdict of a server whose answers are right.
    "AnswersRight",
    # What a generator says when another one did not come: shown as GeneratorLost.
    "GeneratorsIncomplete",
    # Why a Secret is made a moment later.
    "OwnerGone",
    # Why what an archive does not name is deleted a little later.
    "ArchiveChanging",
    # The same of what it does name.
    "ListTooOld",
}
_WORD = re.compile(r"(?:[A-Z][a-z]+)+")


def _reasons_of_the_operator() -> set[str]:
    found: set[str] = set()
    for layer in ("reconcile", "measure", "verification", "analysis"):
        for path in (SOURCES / layer).rglob("*.py"):
            # What a package exports is no text.
            if path.name == "__init__.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and _WORD.fullmatch(node.value)
                ):
                    found.add(node.value)
    return found - KUBERNETES - TITLES - HTTP - NEVER_SHOWN


def _reasons_of_the_generator() -> set[str]:
    sources = [one for one in (ROOT / "images" / "k6").rglob("*.go") if "_test" not in one.name]
    words = r'(?:GiveUp\(|SayFailure\(|reason := )"(\w+)"'
    found = {name for one in sources for name in re.findall(words, one.read_text())}
    return found - NEVER_SHOWN


def test_the_code_has_the_reasons_that_are_looked_for() -> None:
    assert {"ImagePullFailed", "WrongAnswer", "GeneratorLost"} <= _reasons_of_the_operator()
    assert {"InvalidTrial", "TargetNotReachable"} <= _reasons_of_the_generator()
    assert _reasons_of_the_operator() >= NORMAL_REASONS


def test_the_list_has_each_reason_of_the_code_and_no_other() -> None:
    listed = [one.name for section in SECTIONS for one in section.reasons]
    assert len(listed) == len(set(listed))
    assert set(listed) == _reasons_of_the_operator() | _reasons_of_the_generator()


def test_each_reason_has_a_meaning_and_something_to_do() -> None:
    assert [one for one in REASONS.values() if not (one.meaning and one.advice)] == []


def test_each_condition_is_explained() -> None:
    assert list(TRUE_WHEN) == list(ConditionType)


def test_the_reference_has_each_reason() -> None:
    page = reasons_page()
    assert [name for name in REASONS if f"| `{name}` |" not in page] == []
